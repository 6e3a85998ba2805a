"""The ledger: one SQLite file that holds all that is known of a study and its runs.

`store` writes it (the parent process alone), `reading` reads it, also while it is written (`rows`
and `summary` are what it gives). Both go through `opening`, which makes, checks and mends the file
that `schema` describes, on a volume that `volumes` knows; `faults` says what is wrong with it.
`lock` says whose it is, `prints` whether a study is the one it was begun with, `carrying` what
becomes of its runs if not, `amendments` how the plan changed after results were there, `packing`
how results are laid down in it.
"""
