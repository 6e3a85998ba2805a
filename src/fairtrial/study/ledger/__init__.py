"""The ledger: one SQLite file that holds everything known about a study and its runs.

- `writer` writes it, from the process that runs the study only; `commit_group` holds what waits for
  a commit; `lock` keeps a second process from writing.
- `reader` reads it, also while it is written, and returns what `ledger_rows` and `ledger_summary`
  define.
- `ledger_file` creates, checks and migrates the file that `schema` describes; `packing` is the data
  format; `volumes` detects network file systems; `sqlite_errors` explains what is wrong.
- `fingerprint` decides whether a study is the one in the ledger; `plan_changes` keeps the results
  of runs if it isn't.
- `study_lock` is the dated digest of what was planned. `recording` stores the first version of a
  study and its changes, which `amendments` reads; `claim_changes` compares claims, `data_changes`
  the runs they rest on, `earlier_folders` finds earlier results of the same study; `claim_history`
  says which claims are confirmatory. `first_results` reads results as if nothing had changed.
- `journal_store` and `journal_entries` store the journals of runs, `interim_looks` the looks at
  partial results.
"""

from fairtrial._facade import attach

__getattr__, __dir__ = attach(__name__, __file__)
