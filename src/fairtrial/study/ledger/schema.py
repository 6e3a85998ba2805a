"""The tables of a ledger file, and how an older file becomes a newer one."""

from __future__ import annotations

LEDGER_NAME = "ledger.sqlite"
APPLICATION_ID = 0x66747269
"""What marks an SQLite file as a ledger: "ftri"."""
VERSION = 1
GONE = 0xFFFFFFFF
"""The place of a run that is no longer in the plan."""
JOURNAL = """
-- what attempts at a run have put into its journal, in order (agents/journal.py). By the run, not
-- by its turn: a run that leaves the plan and comes back finds it. Made whenever a ledger is opened
-- for writing that was begun before there were journals; nothing else changes by it. `attempt` is
-- that which has made the entry; 0 once it is over, and what it paid stands with what came of it.
CREATE TABLE IF NOT EXISTS journal (
    run_id TEXT NOT NULL, seed INTEGER NOT NULL, number INTEGER NOT NULL,
    attempt INTEGER NOT NULL, data BLOB NOT NULL, crc INTEGER NOT NULL,
    PRIMARY KEY (run_id, seed, number)
);
CREATE INDEX IF NOT EXISTS untold ON journal (run_id, seed, attempt) WHERE attempt > 0;
"""
TABLES = f"""
CREATE TABLE facts (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
-- what the study is: 'study' and 'folder', 'print' (see prints.py), 'order': for each turn the
-- place in the plan, as 32-bit numbers, 'amendments', 'first study' and 'changes' (see
-- amendments.py); and what happens: 'live', updated with every commit
CREATE TABLE conditions (place INTEGER PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE sessions (
    session INTEGER PRIMARY KEY, started_at TEXT, ended_at TEXT, ended_how TEXT,
    executor TEXT, slots INTEGER, host TEXT, pid INTEGER, provenance TEXT
);
-- A turn is a place in the order of execution: rows are added (nearly) in its order, so adding
-- one costs the same however many there are.
CREATE TABLE results (
    turn INTEGER PRIMARY KEY, run_id TEXT NOT NULL, seed INTEGER NOT NULL, status TEXT NOT NULL,
    failure_kind TEXT, attempt INTEGER NOT NULL, session INTEGER NOT NULL,
    cost_usd REAL NOT NULL, tokens INTEGER NOT NULL, latency_s REAL NOT NULL
);
-- apart from results, so that counting reads little; crc is that of the body: SQLite finds a page
-- that is out of joint, but not one that holds other bytes
CREATE TABLE bodies (
    turn INTEGER PRIMARY KEY, body BLOB NOT NULL, stdout BLOB, stderr BLOB, crc INTEGER NOT NULL
);
-- attempts that are not the result: broken and tried again, cancelled, retried on request
CREATE TABLE attempts (
    turn INTEGER NOT NULL, attempt INTEGER NOT NULL, session INTEGER NOT NULL,
    status TEXT NOT NULL, failure_kind TEXT, cost_usd REAL NOT NULL, tokens INTEGER NOT NULL,
    latency_s REAL NOT NULL, body BLOB, stdout BLOB, stderr BLOB, PRIMARY KEY (turn, attempt)
) WITHOUT ROWID;
-- what attempts cost, without reading what came of them
CREATE INDEX attempt_costs ON attempts (cost_usd, tokens);
CREATE TABLE events (
    turn INTEGER NOT NULL, attempt INTEGER NOT NULL, number INTEGER NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (turn, attempt, number)
) WITHOUT ROWID;
-- verdicts of a later evaluator over stored outputs (packing.Scores); they take the place of the
-- first ones
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
"""For each older version the script that makes it the next one. They run in one transaction, so
none may hold a COMMIT of its own."""
