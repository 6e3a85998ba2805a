"""Agents that crash, hang or flood their worker cost one run."""

import os
import shutil
import signal
import sys

import pytest
from fault_stage_kit import is_gone, wait_until

from fairtrial import open_results

pytest_plugins = ("fault_fixtures",)
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

ENDS = {
    # deed: status, failure_kind, what the error says, attempt
    "nothing": ("success", "", "", "1"),
    "die_once": ("success", "", "", "2"),
    "die_always": ("broken", "killed", "SIGKILL", "2"),
    "segfault": ("failed", "crash", "SIGSEGV", "1"),
    "leave": ("failed", "exit", "exit code 3", "1"),
    "abort": ("failed", "crash", "SIGABRT", "1"),
    "quit": ("failed", "exit", "SystemExit: that's it", "1"),
    "raise": ("failed", "exception", "LookupError: nothing here", "1"),
    "recurse": ("failed", "exception", "RecursionError", "1"),
    "hang": ("failed", "timeout", "took longer than {} s", "1"),
    "spin": ("failed", "timeout", "took longer than {} s", "1"),
    "flood_stdout": ("success", "", "", "1"),
    "flood_events": ("success", "", "", "1"),
    "unwritable": ("broken", "unwritable", "outputs.thing", "1"),
    "out_of_memory": ("failed", "exception", "MemoryError", "1"),
}
HOSTILE_HERE = [
    "delete_workspace",
    "change_folder",
    "lose_folder",
    "close_streams",
    "mask",
    "locale",
    "start_thread",
    "leave_zombie",
    "leave_child",
    "fork",
    "environment",
]
"""What spoils a process, but is no failure; those that serial runs survive, too."""
HOSTILE = [*HOSTILE_HERE, "close_standard_files", "handle_signals", "set_alarm", "path", "trace"]


def write_deeds(stage, deeds, **budget):
    stage.write("doer", factors=[{"name": "deed", "levels": list(deeds)}], run_budget={**budget})


def by_deed(stage):
    deeds = {row["condition_id"]: row["deed"] for row in stage.table("conditions.csv")}
    rows_by_deed = {}
    for row in stage.table():
        rows_by_deed.setdefault(deeds[row["condition_id"]], []).append(row)
    return rows_by_deed


def test_every_way_to_die_costs_one_run(stage):
    for limit_s in (1, 5, 30):  # on a busy machine a flood may need longer
        write_deeds(stage, ENDS, timeout_s=limit_s, retries=1)
        ended = stage.run("--parallel", 3)
        assert ended.code == 5, ended.err
        assert ended.errors == []
        rows = by_deed(stage)
        if [row["failure_kind"] for row in stage.table()].count("timeout") == 2:
            break
        shutil.rmtree(stage.output)
        for mark in stage.folder.glob("died-*"):
            mark.unlink()
    for deed, (status, kind, says, attempt) in ENDS.items():
        (row,) = rows[deed]
        assert (row["status"], row["failure_kind"], row["attempt"]) == (status, kind, attempt), row
        assert says.format(limit_s) in row["error_info"]
        assert 0 <= float(row["latency_s"]) < 600
        assert row["end_time"] >= row["start_time"]
    assert float(rows["hang"][0]["latency_s"]) >= limit_s
    shown = stage.call("status", stage.output, "--json").data
    assert shown["counts"] == {"success": 4, "failed": 9, "broken": 2}
    assert shown["failures"]["timeout"] == 2
    wait_until(lambda: all(map(is_gone, stage.witnesses())), "workers to end")


@pytest.fixture
def results(stage):
    def results():
        with open_results(stage.output) as opened:
            return {row.run_spec.condition_id: row for row in opened}, {
                row["deed"]: row["condition_id"] for row in opened.condition_table
            }

    return results


def test_what_a_run_left_before_it_died_is_kept(stage, results):
    """Events, what was printed, and the traceback."""
    write_deeds(stage, ["segfault", "leave", "raise", "flood_stdout", "flood_events"])
    assert stage.run("--parallel", 2).code == 5
    by_condition, conditions = results()
    results_by_deed = {deed: by_condition[condition] for deed, condition in conditions.items()}
    for deed, result in results_by_deed.items():
        assert result.observations[0]["text"] == f"now {deed}"
        assert result.stdout.startswith(f"about to {deed}\n")
    assert "_do_raise" in results_by_deed["raise"].traceback
    assert "LookupError" in results_by_deed["raise"].traceback
    assert "Segmentation fault" in results_by_deed["segfault"].stderr
    assert len(results_by_deed["flood_stdout"].stdout) < 100_000
    assert "more bytes" in results_by_deed["flood_stdout"].stdout
    assert len(results_by_deed["flood_events"].observations) == 10_001
    assert results_by_deed["flood_events"].observations[-1]["meta"]["dropped"] == 5_001


def test_a_worker_that_is_killed_from_outside_costs_an_attempt(stage):
    stage.write("held", run_budget={"replicates": 2})
    command = stage.start_run("--parallel", 2)
    wait_until(lambda: len(stage.witnessed()) == 4, "two runs that are done, and two that wait")
    assert len(stage.witnesses()) == 2
    wait_until(lambda: stage.status()["live"], "a run that is said to be under way")
    os.kill(max(stage.witnesses()), signal.SIGKILL)
    wait_until(lambda: len(stage.witnesses()) == 3, "a new worker")
    stage.message("go")
    ended = command.wait()
    assert ended.code == 0, ended.err
    attempts = sorted(row["attempt"] for row in stage.table())
    assert attempts == ["1"] * 5 + ["2"]
    ((status, kind),) = stage.query("SELECT status, failure_kind FROM attempts")
    assert (status, kind) == ("broken", "killed")
    assert sorted(stage.calls().values()) == [1] * 5 + [2]


def run_hostile(stage, deeds, *options, **faults):
    """Each deed twice, one run after the other, among runs that need a sound process."""
    write_deeds(stage, [*deeds, "use_workspace"], replicates=2)
    (stage.folder / "relative").mkdir()
    words = ("run", "study.yaml", "--output", "out", *options)
    ended = stage.start(*words, faults=faults).wait()
    assert "Traceback" not in ended.err, ended.err
    wrong = {
        (deed, row["status"], row["error_info"])
        for deed, rows in by_deed(stage).items()
        for row in rows
        if row["status"] != "success"
    }
    assert wrong == set()
    assert ended.code == 0, ended.err
    assert sorted(stage.calls().values()) == [1] * 2 * (len(deeds) + 1)
    assert len(stage.table()) == 2 * (len(deeds) + 1)
    assert (stage.folder / "relative" / "seen").exists()
    assert not (stage.folder / "seen").exists()  # no run was in a folder that wasn't its own


def test_an_agent_that_spoils_its_process_spoils_no_other_run(stage):
    run_hostile(stage, HOSTILE, "--executor", "processes")


def test_an_agent_can_spoil_little_where_it_runs_in_our_own_process(stage):
    run_hostile(stage, HOSTILE_HERE, "--executor", "serial", grace_s=0.1)


def test_stray_files_in_the_output_directory_are_no_runs_and_no_trouble(stage):
    stage.write()
    stage.output.mkdir()
    for name in ("control", "checkpoints", ".tables-1234", "x.part"):
        (stage.output / name).mkdir()
    for name in ("run-000000000000.json", "notes.txt", "ledger.sqlite.new", "owner.lock"):
        (stage.output / name).write_text("{}")
    ended = stage.run("--parallel", 2)
    assert ended.code == 0, ended.err
    assert len(stage.table()) == 6
    assert (stage.output / "notes.txt").read_text() == "{}"
    (stage.output / "runs.csv.bak").write_text("run_id\nrun-1\n")
    assert stage.run("--resume").code == 0
    assert len(stage.table()) == 6
