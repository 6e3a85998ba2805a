"""What a study has spent, by every command and file that shows it: they have to agree."""

import hashlib
import json
from contextlib import closing

import pytest
from run_kit import read_table

from fairtrial.study import spell_cost
from fairtrial.study.ledger import LedgerReader
from fairtrial.study.ledger.lock import LOCK_NAME

BESIDE = "for attempts without a result here"


def fingerprint(folder):
    """All that a folder holds, but for who was the last to own it."""
    with closing(LedgerReader.open(folder)) as reader:  # also lays what was in the log in place
        rows = list(reader.connection.iterdump())
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    sums = {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if path.name != LOCK_NAME
    }
    return rows, sums


def spending(run, folder, scratch):
    """US dollars and tokens: status, report and tables agree, and none of them writes anything.

    run: the command; scratch: a folder for what it writes elsewhere
    """
    before = fingerprint(folder)
    code, out, err = run("status", folder, "--json")
    assert code == 0, err
    status = json.loads(out)
    cost_usd, tokens = status["cost_usd"], status["tokens"]
    lines = run("status", folder)[1].splitlines()
    assert (f"  cost     {spell_cost(cost_usd)}" in lines) == (cost_usd > 0)
    assert (f"  tokens   {tokens:,}" in lines) == (tokens > 0)

    assert run("export", folder, "--out", scratch / "tables")[0] == 0
    spent_in_manifest = json.loads((scratch / "tables/manifest.json").read_text())["spent"]
    assert (spent_in_manifest["cost_usd"], spent_in_manifest["tokens"]) == (cost_usd, tokens)
    rows, others = read_table(scratch / "tables", "runs.csv"), spent_in_manifest["not_in_runs"]
    in_rows = sum(float(row["cost_usd"] or 0) for row in rows)
    assert in_rows + others["cost_usd"] == pytest.approx(cost_usd)
    used = sum(int(row[f"{way}_tokens"] or 0) for row in rows for way in ("input", "output"))
    assert used + others["tokens"] == tokens

    report = json.loads(run("report", folder, "--json")[1])
    assert (report["cost_usd"], report["tokens"]) == (cost_usd, tokens)
    run("report", folder, "--out", scratch / "report.md")
    text = (scratch / "report.md").read_text()
    assert (f"cost: {spell_cost(cost_usd)}" in text) == (cost_usd > 0)
    assert (f"{spell_cost(others['cost_usd'])} {BESIDE}" in text) == (others["cost_usd"] > 0)
    assert (f"{others['tokens']:,} {BESIDE}" in text) == (others["tokens"] > 0)
    assert fingerprint(folder) == before
    return cost_usd, tokens
