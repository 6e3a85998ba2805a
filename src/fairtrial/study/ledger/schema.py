"""The tables of a ledger file, and the migrations of older files."""

from __future__ import annotations

LEDGER_NAME = "ledger.sqlite"
APPLICATION_ID = 0x66747269
"""Marks an SQLite file as a ledger: "ftri"."""
VERSION = 1
REMOVED = 0xFFFFFFFF
"""Stands for the plan index of a run that is no longer in the plan."""
JOURNAL = """
-- The journal entries of runs, in order (agents/journal.py). By run, not by execution index: a run
-- that leaves the plan and comes back finds its entries. Created when a ledger without this table
-- is opened for writing. `attempt` is the attempt that made the entry, or 0 once that is over and
-- its costs are stored with its result.
CREATE TABLE IF NOT EXISTS journal (
    run_id TEXT NOT NULL, seed INTEGER NOT NULL, number INTEGER NOT NULL,
    attempt INTEGER NOT NULL, data BLOB NOT NULL, crc INTEGER NOT NULL,
    PRIMARY KEY (run_id, seed, number)
);
CREATE INDEX IF NOT EXISTS untold ON journal (run_id, seed, attempt) WHERE attempt > 0;
"""
TABLES = f"""
CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
-- 'study' and 'folder'; 'print': the study's fingerprint; 'order': for each execution index the
-- plan index, as 32-bit numbers; 'amendments', 'first study', 'first conditions', 'changes' and
-- 'code changes' (see amendments.py), 'lock' (study_lock.py), 'earlier folders' (the file of that
-- name), 'planned looks' (planned_looks.py); 'live': the current progress, updated with every
-- commit. In all tables, `turn` is the execution index and `place` the position in plan order:
-- these names stay, so that older files open.
CREATE TABLE conditions (place INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE sessions (
    session INTEGER PRIMARY KEY, started_at TEXT, ended_at TEXT, ended_how TEXT,
    executor TEXT, slots INTEGER, host TEXT, pid INTEGER, provenance TEXT
);
-- Rows are added (nearly) in the order of their key, so adding one costs the same however many
-- there are.
CREATE TABLE results (
    turn INTEGER PRIMARY KEY, run_id TEXT NOT NULL, seed INTEGER NOT NULL, status TEXT NOT NULL,
    failure_kind TEXT, attempt INTEGER NOT NULL, session INTEGER NOT NULL,
    cost_usd REAL NOT NULL, tokens INTEGER NOT NULL, latency_s REAL NOT NULL
);
-- Separate from results, so that counting reads little. crc is the checksum of the body: SQLite
-- detects broken pages, but not changed content.
CREATE TABLE bodies (
    turn INTEGER PRIMARY KEY, body BLOB NOT NULL, stdout BLOB, stderr BLOB, crc INTEGER NOT NULL
);
-- Attempts that are not the result: broken and retried, cancelled, rerun on request.
CREATE TABLE attempts (
    turn INTEGER NOT NULL, attempt INTEGER NOT NULL, session INTEGER NOT NULL,
    status TEXT NOT NULL, failure_kind TEXT, cost_usd REAL NOT NULL, tokens INTEGER NOT NULL,
    latency_s REAL NOT NULL, body BLOB, stdout BLOB, stderr BLOB, PRIMARY KEY (turn, attempt)
) WITHOUT ROWID;
-- Sums up costs without reading bodies.
CREATE INDEX attempt_costs ON attempts (cost_usd, tokens);
CREATE TABLE events (
    turn INTEGER NOT NULL, attempt INTEGER NOT NULL, number INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (turn, attempt, number)
) WITHOUT ROWID;
-- Results of rescoring stored outputs (packing.RescoredOutput); they replace the first verdicts.
CREATE TABLE scores (turn INTEGER PRIMARY KEY, evaluator TEXT NOT NULL, rows BLOB NOT NULL);
{JOURNAL}"""
SESSION_COLUMNS = (
    "session",
    "started_at",
    "ended_at",
    "ended_how",
    "executor",
    "slots",
    "host",
    "pid",
    "provenance",
)
MIGRATIONS: dict[int, str] = {}
"""For each older version the script that migrates it to the next one. All run in one transaction,
so none may contain COMMIT."""
