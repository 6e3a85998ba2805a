"""Source transformations for known slow patterns, a small module for each family.

`ast` decides, libcst writes: a transformation finds changes in the syntax tree, and `writing` puts
them into the source without touching anything else. What several of them have to know of code (is
it hashable, may it change meanwhile, has it effects) is answered once, in `analysis`. Each is as
careful as syntax allows: names that are shadowed, captured by a closure or changed in between are
left alone. What syntax can't tell (does it overload an operator?) the arena finds out.
"""
