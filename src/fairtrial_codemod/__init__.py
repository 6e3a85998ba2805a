"""An offline proposer for fairtrial: source transformations of slow patterns.

It needs no model, key or network. From the outside in:

- `proposer`: `CodemodProposer`, the entry point; answers requests of the optimizer
- `planning`, `recipes`: which transformations are applied, in which order, to which functions
- `reachability`: the functions that the benchmarks can reach; others are left alone
- `catalog`: the list of all transformations, and `transform`, which applies one to a source
- `transforms`: one module for each kind of slow pattern; `ruff` has those of ruff
- `analysis`: what the syntax tree shows about names, loops, effects and types
- `writing`, `imports`: write the changes into the text; `assumptions`: what changes rely on

A transformation is a function from a `SourceFile` to `CodeChange`s: it looks for a pattern, asks
`analysis` whether a change is safe, and returns the edits. To add one, write that function, give it
a line in `catalog.CATALOG`, and programs in ``tests/codemod``.
"""
