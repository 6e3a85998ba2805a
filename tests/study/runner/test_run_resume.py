"""Resuming a study: pilots, retries, changes; no run is done twice."""

import json
import sqlite3
import time
import tracemalloc
from dataclasses import replace

import pytest
from run_kit import PACKET, add, make_study, read_table, run, stable_tables

from fairtrial import (
    AgentBinding,
    Block,
    Broken,
    Factor,
    LedgerError,
    RunBudget,
    RunStatus,
    SeedPolicy,
    StudyError,
    open_results,
)
from fairtrial.study.ledger import LedgerReader
from fairtrial.study.runner import RunSettings, execute_study, run as running_module, run_loop
from fairtrial.study.runner.control import request
from fairtrial.study.runner.progress import Progress


class Witness:
    """An agent that notes, outside of the product, which runs it was called for."""

    def __init__(self, agent=add):
        self.agent = agent
        self.called = []

    def __call__(self, task):
        self.called.append(task.run_spec.run_id)
        return self.agent(task)


# -- what is done is skipped --


def test_a_moved_study_is_resumed_where_it_is_now(tmp_path):
    study = make_study(tmp_path / "out")
    for place in ("here", "there"):
        object.__setattr__(study, "folder", tmp_path / place)
        run(study, resume=True)
        assert open_results(tmp_path / "out").study.folder == tmp_path / place


def test_a_finished_study_runs_nothing_again(tmp_path):
    witness = Witness()
    first = list(run(make_study(tmp_path), witness))
    assert list(run(make_study(tmp_path), witness, resume=True)) == first
    assert len(witness.called) == 6


def test_pilots_by_limit_are_continued_by_the_full_study(tmp_path):
    witness = Witness()
    study = make_study(tmp_path)
    results = run(study, witness, limit=2)
    assert len(results) == len(witness.called) == 2
    assert len(read_table(tmp_path, "runs.csv")) == 2
    assert results.stopped is None
    assert len(run(study, witness, limit=3, resume=True)) == 5
    assert len(run(study, witness, resume=True)) == 6
    assert len(witness.called) == len(set(witness.called)) == 6


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ("x == 1", 8),
        ("x != 1 and replicate == 2", 8),
        ("agent_id == 'b' and day == 'mon'", 6),
        ("factors['x'] in [1, 3] and agent_id == 'a'", 8),
    ],
)
def test_a_pilot_by_expression_does_what_it_says(tmp_path, only, expected):
    study = make_study(
        tmp_path, agent_specs=("a", "b"), blocks=(Block("day", levels=("mon", "tue")),)
    )
    results = run(study, only=only)  # of 3 levels × 2 days × 2 replicates × 2 agents
    assert len(results) == expected
    assert len(run(study, resume=True)) == 24


@pytest.mark.parametrize("only", ["y == 1", "x ==", "x.__class__", "open('f')", "x > 9"])
def test_an_expression_that_makes_no_sense_is_refused_before_anything_is_made(tmp_path, only):
    with pytest.raises(StudyError, match="only"):
        run(make_study(tmp_path / "out"), only=only)
    assert not (tmp_path / "out").exists()


def test_values_keep_their_types_through_a_resume(tmp_path):
    def agent(task):
        x = task.factors["x"]
        assert type(x) is {"1": str, 2: int, 2.5: float, True: bool}[x]
        return {
            "output": {"x": x, "deep": [1, 1.0, "1", None, True]},
            "metrics": {"count": 3, "share": 3.0},
        }

    def types(result):
        parts = (result.outputs, result.metrics, result.run_spec, result.evaluator_outputs)
        return json.dumps(parts, default=str)

    study = make_study(tmp_path / "a", levels=("1", 2, 2.5, True), replicates=1)
    problem = replace(PACKET, evaluator=lambda x: {"score": 1, "share": 1.0})
    whole = run(study, agent, problem)
    pieces = replace(study, output_dir=tmp_path / "b")
    for _ in range(4):
        run(pieces, agent, problem, resume=True, limit=1)
    resumed = open_results(tmp_path / "b")
    assert [type(result.outputs["x"]) for result in resumed] == [str, int, float, bool]
    volatile = ("latency_s",)
    for mine, theirs in zip(whole, resumed, strict=True):
        stable = [
            replace(result, metrics={k: v for k, v in result.metrics.items() if k not in volatile})
            for result in (mine, theirs)
        ]
        assert types(stable[0]) == types(stable[1])
    assert stable_tables(tmp_path / "a") == stable_tables(tmp_path / "b")


# -- what is run again --


class Flaky:
    """Fails for certain levels until told otherwise."""

    def __init__(self, failing, error=ValueError):
        self.failing, self.error = set(failing), error

    def __call__(self, task):
        if task.factors["x"] in self.failing:
            raise self.error("not today")
        return add(task)


def test_failed_runs_are_kept_unless_they_are_to_be_retried(tmp_path):
    witness = Witness(Flaky({2}))
    study = make_study(tmp_path)
    assert [result.status.value for result in run(study, witness)].count("failed") == 2
    run(study, witness, resume=True)
    assert len(witness.called) == 6
    witness.agent.failing.clear()
    results = run(study, witness, resume=True, retry="failed")
    assert {result.status for result in results} == {RunStatus.SUCCESS}
    assert len(witness.called) == 8
    assert [result.attempt for result in results] == [1, 1, 2, 2, 1, 1]
    reader = results.reader
    for place in (2, 3):
        (attempt,) = reader.attempts(reader.execution_indexes[place])
        assert (attempt.attempt, attempt.status, attempt.failure_kind) == (1, "failed", "exception")
        assert attempt.details["error_info"] == "ValueError: not today"
    assert [row["attempt"] for row in read_table(tmp_path, "runs.csv")] == list("112211")


def test_broken_runs_are_run_again_on_resume(tmp_path):
    flaky = Flaky({2}, Broken)
    study = make_study(tmp_path, budget={"retries": 0})
    results = run(study, flaky)
    assert [result.status.value for result in results].count("broken") == 2
    flaky.failing.clear()
    results = run(study, flaky, resume=True)
    assert {result.status for result in results} == {RunStatus.SUCCESS}
    assert [result.attempt for result in results] == [1, 1, 2, 2, 1, 1]


@pytest.mark.parametrize(
    ("narrowed", "again"), [({"only": "x == 2"}, 2), ({"limit": 1}, 1), ({}, 4)], ids=str
)
def test_retrying_some_failed_runs_leaves_the_others_as_they_are(tmp_path, narrowed, again):
    witness = Witness(Flaky({1, 2}))
    study = make_study(tmp_path)
    run(study, witness)
    results = run(study, witness, resume=True, retry="failed", **narrowed)
    assert len(results) == 6
    assert len(witness.called) == 6 + again
    assert [result.attempt for result in results].count(2) == again
    assert len(read_table(tmp_path, "runs.csv")) == 6


def test_only_what_a_limit_leaves_room_for_is_said_to_be_run_again(tmp_path, monkeypatch):
    flaky, said = Flaky({1, 2, 3}, Broken), []
    study = make_study(tmp_path, budget={"retries": 0})
    run(study, flaky, only="replicate == 1")
    flaky.failing.clear()

    def note(mode, counts):
        said.append((counts.done, counts.reruns.total()))
        return Progress(mode, counts)

    monkeypatch.setattr(running_module, "Progress", note)
    for _ in range(3):  # in the order of the plan, in which not all that is broken comes first
        run(study, flaky, resume=True, limit=2)
    assert said == [(1, 2), (3, 0), (4, 1)]
    assert {result.status for result in open_results(tmp_path)} == {RunStatus.SUCCESS}


def test_a_retry_alone_leaves_for_later_what_was_not_run_yet(tmp_path):
    witness = Witness(Flaky({1, 2, 3}))
    study = make_study(tmp_path)
    run(study, witness, limit=2)
    bound = {"agent_bindings": {"a": witness}, "problem_registry": {"p": PACKET}}
    reruns = RunSettings(**bound, resume=True, retry="failed", only_reruns=True)
    assert len(execute_study(study, reruns)) == 2
    assert len(witness.called) == 4
    assert len(execute_study(study, replace(reruns, limit=1))) == 2
    assert len(witness.called) == 5


# -- a study that has changed --


CHANGES = {
    "levels": ({"factors": (Factor("x", levels=(1, 2, 4)),)}, "factors[x].levels"),
    "seed": ({"seed_policy": SeedPolicy(base_seed=1)}, "seed_policy.base_seed: 0 -> 1"),
    "agents": ({"agent_specs": ("a", "b")}, "agent_specs"),
    "options": ({"agents": {"a": AgentBinding("m:f")}}, "agents.a: added"),
    "study_id": ({"study_id": "z"}, 'study_id: "s" -> "z"'),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_study_is_refused_with_what_has_changed(tmp_path, change):
    fields, says = CHANGES[change]
    run(make_study(tmp_path))
    before = stable_tables(tmp_path)
    changed = replace(make_study(tmp_path), **fields)
    for settings in ({"resume": True}, {}, {"accept_changes": True}):
        with pytest.raises(LedgerError) as error:
            run(changed, lambda task: {"x": 0}, **settings)
        assert "holds results of a different study" in str(error.value)
        assert says in str(error.value)
        assert "--accept-changes" in str(error.value)
    assert stable_tables(tmp_path) == before


def test_accepted_changes_keep_what_is_still_in_the_plan_and_count_the_rest(tmp_path):
    witness = Witness()
    run(make_study(tmp_path), witness)
    changed = make_study(tmp_path, levels=(2, 3, 4))
    results = run(changed, witness, resume=True, accept_changes=True)
    assert [result.outputs["x"] for result in results] == [12, 12, 13, 13, 14, 14]
    assert len(witness.called) == 8
    assert results.reader.summary().left_out == 2
    known = {row["condition_id"] for row in read_table(tmp_path, "conditions.csv")}
    assert {row["condition_id"] for row in read_table(tmp_path, "runs.csv")} == known
    manifest = json.loads((tmp_path / "manifest.json").read_text("utf-8"))
    assert manifest["left_out"]["not_in_plan"] == 2
    # What left the plan comes back with it, and is not run again.
    results = run(make_study(tmp_path), witness, resume=True, accept_changes=True)
    assert [result.outputs["x"] for result in results] == [11, 11, 12, 12, 13, 13]
    assert len(witness.called) == 8
    assert results.reader.summary().left_out == 2


def test_another_seed_makes_other_runs_though_their_ids_are_the_same(tmp_path):
    witness = Witness()
    first = [result.run_spec.seed for result in run(make_study(tmp_path), witness)]
    changed = make_study(tmp_path, seed_policy=SeedPolicy(base_seed=1))
    results = run(changed, witness, resume=True, accept_changes=True)
    assert len(witness.called) == 12
    assert not set(first) & {result.run_spec.seed for result in results}


def test_budgets_notes_and_parallelism_are_no_change(tmp_path):
    witness = Witness()
    run(make_study(tmp_path), witness)
    budget = RunBudget(replicates=3, parallelism=2, timeout_s=60.0, max_cost_usd=9.0, retries=5)
    study = make_study(tmp_path, run_budget=budget, notes="n", description="d")
    results = run(study, witness, resume=True, parallelism=1, executor="threads")
    assert len(results) == 9
    assert len(witness.called) == 9
    assert {row["replicate"] for row in read_table(tmp_path, "runs.csv")} == {"1", "2", "3"}
    # Fewer replicates: the others are left out, not lost.
    results = run(make_study(tmp_path, replicates=1), witness, resume=True)
    assert len(results) == 3
    assert results.reader.summary().left_out == 6


def test_a_study_that_came_to_no_result_may_be_changed_freely(tmp_path):
    """But what was cancelled keeps its attempts, and they stay with their own runs."""
    study = make_study(tmp_path)

    def leave(task):
        task.emit("begun")
        request(tmp_path, "cancel")
        while True:
            time.sleep(60)

    results = run(study, leave)
    assert (len(results), results.stopped) == (0, "cancelled")
    (cut_off,) = [
        execution_index for execution_index in range(6) if results.reader.attempts(execution_index)
    ]
    run_id = results.reader.plan.spec(results.reader.order[cut_off]).run_id
    changed = make_study(tmp_path, levels=(1, 2, 3, 4))
    results = run(changed)
    assert len(results) == 8
    assert {result.run_id for result in results if result.attempt == 2} == {run_id}


# -- at any size --


def test_other_readers_see_whole_groups_while_it_runs(tmp_path):
    counts = []

    def look(result):
        connection = sqlite3.connect(f"file:{tmp_path}/ledger.sqlite?mode=ro", uri=True)
        bodies = connection.execute("SELECT count(*) FROM bodies").fetchone()[0]
        results = connection.execute("SELECT count(*) FROM results").fetchone()[0]
        connection.close()
        assert results >= bodies
        counts.append(results)

    run(make_study(tmp_path, levels=range(50), replicates=10), on_result=look)
    assert len(counts) == 500
    assert counts == sorted(counts)
    assert counts[0] >= 1
    assert len(set(counts)) < 250  # in groups, not one by one


def test_memory_does_not_grow_with_the_number_of_runs(tmp_path):
    def peak(replicates):
        study = make_study(tmp_path / str(replicates), levels=range(10), replicates=replicates)
        bound = {"agent_bindings": {"a": add}, "problem_registry": {"p": PACKET}}
        tracemalloc.start()
        results = execute_study(study, RunSettings(**bound, tables=False))
        assert sum(1 for _ in results) == 10 * replicates
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(10)
    # A result takes a kilobyte: 600 of them in memory would be 0.6 MB.
    assert peak(100) - peak(40) < 200_000


def test_done_lookups_go_to_the_database(tmp_path):
    """A ledger in which one result is missing somewhere is completed by that one run."""
    study = make_study(tmp_path, levels=range(20), replicates=5)
    witness = Witness()
    run(study, witness)
    reader = LedgerReader.open(tmp_path)
    execution_index = 57
    missing = reader.plan.spec(reader.order[execution_index]).run_id
    reader.close()
    connection = sqlite3.connect(tmp_path / "ledger.sqlite")
    connection.execute("DELETE FROM results WHERE turn = ?", (execution_index,))
    connection.execute("DELETE FROM bodies WHERE turn = ?", (execution_index,))
    connection.commit()
    connection.close()
    witness.called.clear()
    assert len(run(study, witness, resume=True)) == 100
    assert witness.called == [missing]


# -- how far it is --


def test_how_far_it_is_counts_what_is_run_again_and_what_is_under_way(tmp_path, monkeypatch):
    seen = []

    class Spy(Progress):
        def __init__(self, mode, counts, *more):
            seen.append(counts)
            super().__init__(mode, counts, *more)

    progress_seen = []

    def agent(task):
        counts = seen[-1]
        progress_seen.append((counts.done, dict(counts.reruns), len(counts.under_way())))
        if len(seen) == 1 and task.factors["x"] == 2:
            raise ValueError("not yet")
        return add(task)

    monkeypatch.setattr(running_module, "Progress", Spy)
    monkeypatch.setattr(run_loop, "SLOW_S", 0.0)  # each is counted before the next begins
    study = make_study(tmp_path / "out")
    run(study, agent, executor="serial")
    assert progress_seen == [(done, {}, 1) for done in range(6)]
    assert (seen[0].done, seen[0].failed, seen[0]._timed_runs) == (6, 2, 6)
    progress_seen.clear()
    run(study, agent, executor="serial", resume=True, retry="failed")
    assert progress_seen == [(4, {"failed": 2}, 1), (5, {"failed": 1}, 1)]
    assert (seen[1].done, seen[1].failed, seen[1]._timed_runs) == (6, 0, 2)
