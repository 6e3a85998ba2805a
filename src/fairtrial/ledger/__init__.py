"""The ledger: one SQLite file that holds all that is known of a study and its runs.

`store` writes it (the parent process alone), `reading` reads it, also while it is written, `lock`
says whose it is, `prints` whether a study is the one it was begun with, `packing` how results are
laid down in it.
"""
