"""The ledger: one SQLite file that holds everything known about a study and its runs.

`writer` writes it, from the process that runs the study only; `reader` reads it, also while it is
written, and returns what `rows` and `summary` define. `opening` creates, checks and migrates the
file that `schema` describes; `volumes` detects network file systems; `sqlite_errors` explains what
is wrong with a file. `lock` keeps a second process from writing. `fingerprint` decides whether a
study is the one in the ledger, `plan_changes` keeps the results of runs if it isn't, `amendments`
and `claim_changes` record changes after results were known. `journal` and `journal_entries` store
the journals of runs, `interim_looks` the looks at partial results, `packing` is the data format.
"""
