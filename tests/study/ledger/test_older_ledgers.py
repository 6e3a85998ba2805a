"""Ledgers that were written before modules and agents got their present names still open.

Those in `tests/data/ledgers` come from that version: `tiny` has three of four runs done, and the
evaluator failed on one of them; `optimizer` has one run of the agent that was named `optimise`.
"""

import json
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from fairtrial import open_results, rescore_study
from fairtrial.core import plugins

LEDGERS = Path(__file__).parents[2] / "data" / "ledgers"


@pytest.fixture
def open_old(tmp_path, monkeypatch):
    """Copy a study and its ledger to a folder, as if it had been run there, and go there."""

    def copy(name):
        folder = tmp_path / name
        shutil.copytree(LEDGERS / name, folder)
        (folder / "out").mkdir()
        (folder / "out" / ".gitignore").write_text("*\n")
        ledger = (folder / "ledger.sqlite").rename(folder / "out" / "ledger.sqlite")
        with closing(sqlite3.connect(ledger)) as connection:
            connection.execute("UPDATE facts SET value = ? WHERE name = 'folder'", (str(folder),))
            connection.commit()
        monkeypatch.chdir(folder)
        return folder

    yield copy
    plugins._import_module.cache_clear()
    sys.modules.pop("tiny_agent", None)


def test_an_older_ledger_shows_its_status_and_its_results(open_old, run):
    open_old("tiny")
    code, out, _ = run("status", "out", "--json")
    status = json.loads(out)
    assert (code, status["counts"]) == (0, {"failed": 1, "success": 2})
    assert (status["planned"], status["cost_usd"], status["tokens"]) == (4, 0.75, 39)
    with open_results("out") as results:
        assert [result.outputs["answer"] for result in results] == [12, 13, 14]
        assert [result.evaluator_failed for result in results] == [True, False, False]
        assert results[0].observations[0]["text"] == "x is 2"
        assert results[0].stdout == "answering 2\n"


def test_an_older_ledger_is_exported_and_reported(open_old, run):
    folder = open_old("tiny")
    assert run("export", "out")[0] == 0
    assert "x is 3" in (folder / "out" / "events.csv").read_text("utf-8")
    code, out, _ = run("report", "out")
    assert code == 0
    assert "A tiny study" in out


def test_an_older_study_is_resumed(open_old, run):
    open_old("tiny")
    code, _, err = run("resume", "out")
    assert code == 5, err  # one run has failed
    with open_results("out") as results:
        assert [result.outputs["answer"] for result in results] == [11, 12, 13, 14]
        assert [result.executor for result in results] == ["serial"] * 4
        assert [result.host == "host" for result in results] == [False, True, True, True]


def test_an_older_run_whose_evaluator_failed_is_scored_again(open_old):
    open_old("tiny")
    rescored = rescore_study("out", lambda answer: {"score": answer / 2})
    assert (rescored.scored, rescored.passed_over) == (3, 0)
    with open_results("out") as results:
        assert {result.status.value for result in results} == {"success"}


def test_an_older_optimizer_run_is_shown_exported_and_reported(open_old, run):
    folder = open_old("optimizer")
    code, out, _ = run("status", "out", "--json")
    assert (code, json.loads(out)["counts"]) == (0, {"success": 1})
    assert run("export", "out")[0] == 0
    assert "fast.diff" in (folder / "out" / "candidates.csv").read_text("utf-8")
    code, out, _ = run("report", "out")
    assert code == 0
    assert "One optimizer run" in out


def test_an_older_optimizer_study_is_resumed(open_old, run):
    open_old("optimizer")
    code, _, err = run("resume", "out")
    assert code == 0, err
    with open_results("out") as results:
        (result,) = results
        assert result.status.value == "success"
        assert result.outputs["best"] is not None
