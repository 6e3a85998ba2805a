"""Running a study from Python: every argument of `run_study` does what it says."""

import dataclasses
import inspect
import json
import os
import random
import sqlite3
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import run_kit
from run_kit import PACKET, add, make_study, read_table, run

from fairtrial import (
    AgentBinding,
    Broken,
    Condition,
    Factor,
    Hypothesis,
    LedgerError,
    ProblemPacket,
    RunBudget,
    RunOutput,
    RunStatus,
    Study,
    StudyError,
    build_design,
    dry_run_validate,
    open_results,
    plan_runs,
    resume_study,
    run_study,
)
from fairtrial.study.ledger import LedgerReader
from fairtrial.study.ledger.writer import Ledger
from fairtrial.study.runner import RunSettings, run_loop
from fairtrial.study.runner.executors.processes import Processes
from fairtrial.study.runner.executors.serial import Serial
from fairtrial.study.tables.integrity import validate_artifacts

FILES = {
    "study.yaml",
    "manifest.json",
    "conditions.csv",
    "runs.csv",
    "events.csv",
    "evaluations.csv",
    "outputs.csv",
    "hypotheses.json",
    "analysis_plan.json",
    "ledger.sqlite",
}


OTHERS = {"owner.lock", "ledger.sqlite-shm", "ledger.sqlite-wal"}
"""What may lie about while somebody reads."""


def names_in(folder):
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")} - OTHERS


# -- what comes back, and what is written --


def test_a_study_is_run_in_full_and_comes_back_in_plan_order(tmp_path):
    study = make_study(tmp_path)
    results = run(study)
    specs = list(plan_runs(study, build_design(study)))
    assert [result.run_id for result in results] == [spec.run_id for spec in specs]
    assert [result.run_spec.seed for result in results] == [spec.seed for spec in specs]
    assert [result.outputs["x"] for result in results] == [11, 11, 12, 12, 13, 13]
    assert [result.metrics["primary_outcome"] for result in results] == [11, 11, 12, 12, 13, 13]
    assert {result.status for result in results} == {RunStatus.SUCCESS}
    assert results.stopped is None
    assert names_in(tmp_path) == FILES
    assert validate_artifacts(tmp_path) == []


def test_results_are_a_lazy_sequence(tmp_path, monkeypatch):
    results = run(make_study(tmp_path))
    read = []
    unpatched = LedgerReader.result
    monkeypatch.setattr(
        LedgerReader,
        "result",
        lambda self, plan_index: read.append(plan_index) or unpatched(self, plan_index),
    )
    assert len(results) == 6
    assert read == []
    assert results[0].outputs["x"] == 11
    assert results[-1].outputs["x"] == 13
    assert [result.outputs["x"] for result in results[1:5:2]] == [11, 12]
    assert read == [0, 5, 1, 3]
    assert list(results) == list(results)
    assert results[2] in results
    with pytest.raises(IndexError, match="there are 6 results"):
        results[6]


def test_results_stay_open_while_they_are_read(tmp_path):
    assert [result.outputs["x"] for result in run(make_study(tmp_path))] == [11, 11, 12, 12, 13, 13]
    assert [row["status"] for row in open_results(tmp_path).runs] == ["success"] * 6


def test_open_results_reads_the_same(tmp_path):
    results = run(make_study(tmp_path))
    again = open_results(tmp_path)
    assert list(again) == list(results)
    assert again.study == results.study
    assert again.runs.columns("run_id", "status", "primary_outcome") == {
        "run_id": [result.run_id for result in results],
        "status": ["success"] * 6,
        "primary_outcome": [11, 11, 12, 12, 13, 13],
    }
    assert [row["metric_value"] for row in again.evaluations] == [11, 11, 12, 12, 13, 13]


# -- the arguments --


def test_conditions_take_the_place_of_the_design(tmp_path):
    study = make_study(tmp_path)
    conditions = build_design(study)[1:]
    results = run(study, conditions=conditions)
    assert [result.outputs["x"] for result in results] == [12, 12, 13, 13]
    assert {row["condition_id"] for row in read_table(tmp_path, "conditions.csv")} == {
        condition.condition_id for condition in conditions
    }
    made_up = Condition("cond-1", {"x": 7})
    results = run(replace(study, output_dir=tmp_path / "other"), conditions=[made_up])
    assert [result.outputs["x"] for result in results] == [17, 17]


def test_an_inadmissible_condition_is_written_down_and_never_run(tmp_path):
    conditions = [
        Condition("cond-1", {"x": 1}),
        Condition("cond-2", {"x": 2}, admissible=False, constraint_messages=("no",)),
    ]
    results = run(make_study(tmp_path, replicates=1), conditions=conditions)
    assert [result.outputs["x"] for result in results] == [11]
    table = read_table(tmp_path, "conditions.csv")
    assert [row["admissible"] for row in table] == ["True", "False"]


def test_what_is_no_list_of_conditions_is_refused(tmp_path):
    with pytest.raises(StudyError, match="conditions: must be a list of Condition"):
        run(make_study(tmp_path), conditions=[{"x": 1}])


def test_agents_and_problems_are_bound_by_name(tmp_path):
    study = make_study(tmp_path, agent_specs=("plus", "minus"), problem_ids=("p", "q"))
    results = run_study(
        study,
        agent_bindings={
            "plus": add,
            "minus": lambda task: {"x": task.factors["x"] - task.problem.payload["term"]},
        },
        problem_registry={"p": PACKET, "q": replace(PACKET, payload={"term": 100})},
    )
    files = {
        (result.run_spec.agent_spec_ref, result.run_spec.problem_id): result.outputs["x"]
        for result in results
        if result.run_spec.replicate == 1 and result.outputs["x"] % 10 in (1, 9)
    }
    assert files == {
        ("plus", "p"): 11,
        ("plus", "q"): 101,
        ("minus", "p"): -9,
        ("minus", "q"): -99,
    }


def test_agents_may_be_levels_of_a_factor(tmp_path):
    study = make_study(
        tmp_path, factors=(Factor("agent", levels=("one", "two")),), agent_specs=(), replicates=1
    )
    results = run_study(
        study,
        agent_bindings={"one": lambda task: {"x": 1}, "two": lambda task: {"x": 2}},
        problem_registry={"p": PACKET},
    )
    assert [result.outputs["x"] for result in results] == [1, 2]
    assert [row["agent_id"] for row in read_table(tmp_path, "runs.csv")] == ["one", "two"]


def test_an_agent_is_made_once_however_often_it_is_looked_at(tmp_path):
    made = []

    class Counting:
        def __init__(self):
            made.append(self)

        def __call__(self, task):
            return {"x": 0}

    run(make_study(tmp_path), Counting)
    assert len(made) == 1


def runner(run_spec, condition):
    return RunOutput(
        {"x": condition.factor_assignments["x"] * 2}, {"replicate": run_spec.replicate}
    )


def test_a_condition_runner_runs_conditions_without_agent_and_problem(tmp_path):
    study = make_study(tmp_path, agent_specs=(), problem_ids=())
    results = run_study(study, condition_runner=runner)
    assert [result.outputs["x"] for result in results] == [2, 2, 4, 4, 6, 6]
    assert [result.metrics["replicate"] for result in results] == [1, 2] * 3
    assert {result.run_spec.agent_spec_ref for result in results} == {None}
    assert {row["problem_id"] for row in read_table(tmp_path, "runs.csv")} == {""}
    assert results.study.condition_runner == f"{__name__}:runner"


def test_a_condition_runner_named_by_the_study_is_looked_up_beside_it(tmp_path):
    (tmp_path / "my_runner.py").write_text("def double(spec, condition):\n    return {'x': 2}\n")
    path = tmp_path / "study.yaml"
    path.write_text(
        "study_id: s\ntitle: t\nfactors: [{name: x, levels: [1, 2]}]\n"
        f"condition_runner: my_runner:double\noutput_dir: {tmp_path / 'out'}\n"
    )
    assert [result.outputs for result in run_study(Study.from_yaml(path))] == [{"x": 2}] * 2


def test_a_condition_runner_may_be_given_by_reference(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    results = run_study(make_study(tmp_path), condition_runner=f"{__name__}:runner", limit=1)
    assert results.study.condition_runner == f"{__name__}:runner"


def test_parallelism_is_the_studys_unless_said_otherwise(tmp_path):
    def tell(task):
        return {"x": os.getpid()}

    budget = {"parallelism": 2}
    results = run(make_study(tmp_path / "a", budget=budget), tell)
    assert os.getpid() not in {result.outputs["x"] for result in results}
    assert {result.executor for result in results} == {"processes"}
    results = run(make_study(tmp_path / "b", budget=budget), tell, parallelism=1)
    assert {result.outputs["x"] for result in results} == {os.getpid()}
    assert {result.executor for result in results} == {"serial"}


@pytest.mark.parametrize("given", [Serial(), "serial"])
def test_with_a_time_limit_serial_runs_happen_in_one_worker(tmp_path, given):
    study = make_study(tmp_path, budget={"timeout_s": 60.0})
    results = run(study, lambda task: {"x": os.getpid()}, executor=given, parallelism=3)
    pids = {result.outputs["x"] for result in results}
    assert len(pids) == 1
    assert os.getpid() not in pids


def test_an_executor_may_be_given_as_an_object(tmp_path):
    results = run(make_study(tmp_path), executor=Processes(start_method="fork"), parallelism=2)
    assert len(results) == 6


def test_what_cant_reach_a_fresh_worker_is_said_before_anything_is_made(tmp_path):
    study = make_study(tmp_path / "out")
    spawning = Processes(start_method="spawn")
    with pytest.raises(StudyError, match=r"can't reach a worker process.*--executor serial"):
        run(study, lambda task: {"x": 1}, executor=spawning)
    assert not (tmp_path / "out").exists()
    report = dry_run_validate(
        study,
        agent_bindings={"a": lambda task: {}},
        problem_registry={"p": ProblemPacket("p")},
        executor=spawning,
    )
    assert len(report.errors) == 1


def test_resume_on_an_empty_directory_simply_starts(tmp_path):
    bindings = {"agent_bindings": {"a": add}, "problem_registry": {"p": PACKET}}
    assert len(resume_study(make_study(tmp_path / "a"), **bindings)) == 6
    assert len(run(make_study(tmp_path / "b"), resume=True)) == 6


def test_results_that_are_there_are_not_touched_without_resume(tmp_path):
    run(make_study(tmp_path))
    before = run_kit.stable_tables(tmp_path)
    with pytest.raises(LedgerError, match=r"holds results of this study already.*--resume"):
        run(make_study(tmp_path), lambda task: {"x": 0})
    assert run_kit.stable_tables(tmp_path) == before


def test_without_checkpoint_the_ledger_is_in_memory_and_all_else_is_as_usual(tmp_path):
    random.seed(1)
    np.random.seed(1)
    state, numpy_state = random.getstate(), np.random.get_state()[1].tolist()
    results = run(make_study(tmp_path), run_kit.draw, checkpoint=False)
    assert random.getstate() == state
    assert np.random.get_state()[1].tolist() == numpy_state
    assert names_in(tmp_path) == FILES - {"ledger.sqlite"}
    assert validate_artifacts(tmp_path) == []
    assert len(results) == 6
    assert results[0].run_id == next(iter(results)).run_id
    assert len(results.runs.columns()["run_id"]) == 6
    # The directory is free again, and the results stay what they are.
    again = run(make_study(tmp_path), run_kit.draw, checkpoint=False)
    assert [result.outputs for result in again] == [result.outputs for result in results]


def test_a_study_without_checkpoint_leaves_the_tables_of_one_with_a_ledger_alone(tmp_path):
    run(make_study(tmp_path))
    with pytest.raises(LedgerError, match=r"holds a ledger.*choose another output directory"):
        run(make_study(tmp_path), checkpoint=False)


def test_further_forms_of_the_tables_are_written_on_request(tmp_path):
    run(make_study(tmp_path), include_sqlite=True, include_parquet=True)
    assert {"study.sqlite", "runs.parquet", "events.parquet"} <= names_in(tmp_path)
    connection = sqlite3.connect(tmp_path / "study.sqlite")
    assert connection.execute("SELECT count(*) FROM runs").fetchone() == (6,)
    connection.close()
    assert validate_artifacts(tmp_path) == []


@pytest.mark.parametrize(
    ("shown", "expected"), [(True, "6/6 runs\n"), (False, ""), (None, "")], ids=str
)
def test_progress_is_lines_in_a_log_or_nothing(tmp_path, capsys, shown, expected):
    run(make_study(tmp_path), show_progress=shown)
    assert capsys.readouterr() == ("", expected)


@pytest.mark.parametrize("executor", ["serial", "processes", "threads"])
def test_on_result_comes_once_for_each_run_and_only_after_its_commit(tmp_path, executor):
    seen = []

    def check(result):
        reader = LedgerReader.open(tmp_path)
        connection = sqlite3.connect(f"file:{tmp_path}/ledger.sqlite?mode=ro", uri=True)
        query = "SELECT status FROM results WHERE run_id = ?"
        assert connection.execute(query, (result.run_id,)).fetchone() == ("success",)
        assert reader.summary().done > len(seen)
        connection.close()
        reader.close()
        seen.append(result)

    def slowly(task):  # so that there is time to look in between
        time.sleep(0.015)
        return add(task)

    results = run(make_study(tmp_path), slowly, executor=executor, parallelism=2, on_result=check)
    assert sorted(seen, key=lambda result: result.run_id) == sorted(
        results, key=lambda result: result.run_id
    )


def test_what_on_result_raises_ends_the_study_and_loses_nothing(tmp_path):
    def stumble(result):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run(make_study(tmp_path), on_result=stumble)
    with open_results(tmp_path) as kept:
        assert len(kept) >= 1
        (session,) = kept.reader.sessions.values()
    assert session["ended_how"] == "error"
    assert len(run(make_study(tmp_path), resume=True)) == 6


def test_runs_are_committed_and_reported_during_a_long_run(tmp_path):
    """In this process, too: the run before is safe while the next one goes on."""
    seen = []

    def look(task):
        until = time.monotonic() + 60
        while time.monotonic() < until:
            reader = LedgerReader.open(tmp_path)
            summary = reader.summary()
            reader.close()
            if not seen and summary.live and summary.live["running"] == 1:
                assert summary.live["runs"][0]["run_id"] == task.run_spec.run_id
                seen.append("told")
                return {"x": 0}
            if seen and summary.done == 1:
                seen.append("committed")
                return {"x": 0}
            time.sleep(0.005)
        return {"x": 0}

    run(make_study(tmp_path, levels=(1,)), look, executor="serial")
    assert seen == ["told", "committed"]


def test_an_older_live_state_does_not_replace_a_newer_one(tmp_path, monkeypatch):
    """Two threads tell what goes on; the slower one doesn't have the last word."""
    monkeypatch.setattr(run_loop, "LIVE_S", 0.0)
    is_writing, has_written, written = threading.Event(), threading.Event(), []
    set_live = Ledger.set_live

    def tell(ledger, live):
        is_main = threading.current_thread() is threading.main_thread()
        if not is_main and not is_writing.is_set():  # that a run is under way
            is_writing.set()
            has_written.wait(0.2)
        set_live(ledger, live)
        if is_main:
            written.append(live)
            if len(written) == 2:  # that it is over, and that it counts
                has_written.set()

    def agent(task):
        is_writing.wait(60)
        return {"x": 0}

    monkeypatch.setattr(Ledger, "set_live", tell)
    results = run(make_study(tmp_path, levels=(1,), replicates=1), agent, executor="serial")
    assert is_writing.is_set()
    assert results.reader.summary().live["running"] == 0


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_an_agent_that_changes_its_directory_affects_no_other_run(tmp_path, monkeypatch, executor):
    monkeypatch.chdir(tmp_path)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    def wander(task):
        os.chdir(elsewhere)
        return {"x": 1}

    results = run(make_study(Path("out")), wander, executor=executor)
    assert Path.cwd() == tmp_path
    assert len(results) == 6
    assert validate_artifacts(tmp_path / "out") == []
    assert list(elsewhere.iterdir()) == []


# -- dry runs --


def faulty(folder):
    return make_study(
        folder,
        agent_specs=("nobody",),
        problem_ids=("nothing",),
        hypotheses=(Hypothesis("h", "l", "s", independent_vars=("y",)),),
    )


def test_a_dry_run_raises_all_mistakes_at_once_and_makes_nothing(tmp_path):
    study = faulty(tmp_path / "out")
    for dry_run in (True, False):
        with pytest.raises(StudyError) as error:
            run_study(
                study,
                dry_run=dry_run,
                executor="thread",
                parallelism=0,
                limit=0,
                only="z",
                retry="all",
            )
        text = str(error.value)
        for part in [
            "unknown factor 'y'",
            "nothing is bound to the agent 'nobody'",
            "nothing is bound to the problem 'nothing'",
            "executor: there is no executor 'thread'; did you mean 'threads'?",
            "parallelism: must be 1 or more, got 0",
            "limit: must be 1 or more, got 0",
            "only: there is no 'z'",
            "retry: expected 'broken' or 'failed', got 'all'",
        ]:
            assert part in text
        assert len(error.value.mistakes) == 8
    assert not (tmp_path / "out").exists()


def test_a_dry_run_of_a_good_study_runs_nothing(tmp_path):
    def never(task):
        raise AssertionError

    assert list(run(make_study(tmp_path / "out"), never, dry_run=True)) == []
    assert not (tmp_path / "out").exists()


def test_dry_run_validate_lists_every_error_and_the_number_of_runs(tmp_path):
    study = make_study(tmp_path / "out")
    good = dry_run_validate(study, agent_bindings={"a": add}, problem_registry={"p": PACKET})
    assert (good.errors, good.planned_runs) == ([], 6)
    bad = dry_run_validate(study)
    assert len(bad.errors) == 2
    assert bad.planned_runs == 6
    assert "agent_bindings={'a': ...}" in bad.errors[0]
    assert "problem_registry={'p': ...}" in bad.errors[1]
    runner_only = dry_run_validate(study, condition_runner=runner)
    assert (runner_only.errors, runner_only.planned_runs) == ([], 6)
    some = dry_run_validate(study, conditions=build_design(study)[:1], condition_runner=runner)
    assert some.planned_runs == 2
    assert len(dry_run_validate(faulty(tmp_path)).errors) == 3
    assert not (tmp_path / "out").exists()


# -- max_runs --


def test_a_plan_over_max_runs_is_refused_together_with_what_else_is_wrong(tmp_path):
    study = make_study(tmp_path / "out", budget={"max_runs": 4})
    report = dry_run_validate(study)
    assert len(report.errors) == 3
    assert "the plan has 6 runs, max_runs allows 4" in report.errors[0]
    with pytest.raises(StudyError, match="max_runs_policy: balanced"):
        run(study)


def test_a_balanced_cut_runs_evenly_and_the_tables_say_what_was_skipped(tmp_path):
    budget = {"max_runs": 4, "max_runs_policy": "balanced"}
    study = make_study(tmp_path, budget=budget)
    assert dry_run_validate(study, condition_runner=runner).planned_runs == 4
    results = run(study)
    assert [result.outputs["x"] for result in results] == [11, 11, 12, 13]
    rows = read_table(tmp_path, "runs.csv")
    assert [row["status"] for row in rows] == [
        *["success"] * 3,
        "skipped",
        "success",
        "skipped",
    ]
    manifest = json.loads((tmp_path / "manifest.json").read_text("utf-8"))
    assert manifest["status_counts"] == {"skipped": 2, "success": 4}
    summary = results.reader.summary()
    assert (summary.planned, summary.skipped, summary.done, summary.pending) == (4, 2, 4, 0)
    # More may be allowed later on; what is done is kept.
    more = run(replace(study, run_budget=RunBudget(replicates=2)), resume=True)
    assert [result.outputs["x"] for result in more] == [11, 11, 12, 12, 13, 13]


# -- what an agent prints --


@pytest.mark.parametrize("executor", ["serial", "processes", "threads"])
def test_what_agents_print_is_kept_with_their_runs_and_not_shown(tmp_path, capfd, executor):
    def speak(task):
        print("hear", task.factors["x"])
        return {"x": 0}

    results = run(make_study(tmp_path), speak, executor=executor, parallelism=2)
    assert [result.stdout for result in results] == [f"hear {x}\n" for x in (1, 1, 2, 2, 3, 3)]
    assert capfd.readouterr() == ("", "")


# -- known traps, end to end --


def test_what_agents_measure_reaches_the_tables(tmp_path):
    def measure(task):
        return {
            "output": {"x": 1},
            "metrics": {"cost_usd": 0.25, "input_tokens": 3, "depth": task.factors["x"]},
            "metadata": {"model_name": "m"},
        }

    results = run(make_study(tmp_path), measure)
    rows = read_table(tmp_path, "runs.csv")
    assert [row["depth"] for row in rows] == ["1", "1", "2", "2", "3", "3"]
    assert {row["cost_usd"] for row in rows} == {"0.25"}
    assert {row["model_name"] for row in rows} == {"m"}
    assert results.reader.summary().cost_usd == 1.5
    assert results.reader.summary().tokens == 18


def test_an_answer_that_is_no_text_is_kept_and_judged(tmp_path):  # known traps
    judged = []

    def judge(answer):
        judged.append(answer)
        return np.float64(0.73)

    packet = ProblemPacket("p", "f", "b", {}, {}, judge)
    results = run(make_study(tmp_path, levels=(1,)), lambda task: {"answer": 42}, packet)
    assert [result.outputs for result in results] == [{"answer": 42}] * 2
    assert judged == [42, 42]
    assert [row["metric_value"] for row in read_table(tmp_path, "evaluations.csv")] == ["0.73"] * 2


def test_an_agent_fails_by_its_own_doing_once_and_with_its_traceback(tmp_path):  # known traps
    calls = []

    async def agent(task):
        calls.append(task.run_spec.run_id)
        if task.factors["x"] == 1:
            raise TypeError("mine")
        if task.factors["x"] == 2:
            raise SystemExit(3)
        return {"success": False, "error": "no idea", "output": {"x": 0}}

    results = run(make_study(tmp_path, replicates=1), agent)
    assert len(calls) == len(set(calls)) == 3
    assert [result.status for result in results] == [RunStatus.FAILED] * 3
    assert [result.failure_kind for result in results] == ["exception", "exit", "reported"]
    assert [result.error_info for result in results] == [
        "TypeError: mine",
        "SystemExit: 3",
        "no idea",
    ]
    assert 'raise TypeError("mine")' in results[0].traceback
    rows = read_table(tmp_path, "runs.csv")
    assert [row["failure_kind"] for row in rows] == ["exception", "exit", "reported"]
    assert results.stopped is None


@pytest.mark.parametrize("name", ["order", "select", "group", "index"])
def test_factors_may_be_named_like_words_of_sql(tmp_path, name):
    study = make_study(tmp_path, factors=(Factor(name, levels=(1, 2)),))
    run(study, lambda task: {"x": task.factors[name]}, include_sqlite=True)
    connection = sqlite3.connect(tmp_path / "study.sqlite")
    assert connection.execute(f'SELECT "{name}" FROM conditions').fetchall() == [(1,), (2,)]
    connection.close()


@pytest.mark.parametrize("name", ["condition_id", "run_id"])
def test_a_factor_that_would_overwrite_a_key_column_is_refused_before_anything_runs(tmp_path, name):
    study = make_study(tmp_path / "out", factors=(Factor(name, levels=(1, 2)),))
    with pytest.raises(StudyError, match=name):
        run(study)
    assert not (tmp_path / "out").exists()


def test_two_runs_with_one_id_are_refused_before_anything_runs(tmp_path):  # known trap, spec 13
    twins = [Condition("cond-1", {"x": 1}), Condition("cond-1", {"x": 2})]
    with pytest.raises(StudyError, match="cond-1"):
        run(make_study(tmp_path / "out"), conditions=twins)
    assert not (tmp_path / "out").exists()


def test_a_broken_run_is_no_failure_of_the_agent(tmp_path):
    def offline(task):
        raise Broken("no network")

    results = run(make_study(tmp_path, budget={"retries": 0, "fail_fast": True}), offline)
    assert {result.status for result in results} == {RunStatus.BROKEN}
    assert len(results) == 6
    assert results.stopped is None


def test_limits_stand_beside_agents_that_the_study_binds(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "kits"))
    study = make_study(tmp_path, agents={"a": AgentBinding("run_kit:add", max_parallel=1)})
    results = run_study(study, problem_registry={"p": PACKET})
    assert [result.outputs["x"] for result in results] == [11, 11, 12, 12, 13, 13]


def test_slow_runs_in_this_thread_are_counted_before_the_next_begins(tmp_path, monkeypatch):
    """A bar that says 3 while `status` says 4 looks like a hang."""
    monkeypatch.setattr(run_loop, "SLOW_S", 0.0)
    done = []

    def agent(task):
        known.append(len(done))
        return {"x": 1}

    known = []
    study = make_study(tmp_path, levels=(1,), replicates=4)
    run(study, agent, executor="serial", on_result=done.append)
    assert known == [0, 1, 2, 3]


@pytest.mark.parametrize("function", [run_study, dry_run_validate])
def test_arguments_are_the_settings_of_the_same_names_and_defaults(function):
    settings = {field.name: field.default for field in dataclasses.fields(RunSettings)}
    parameters = inspect.signature(function).parameters
    shared = {
        name: parameter.default
        for name, parameter in parameters.items()
        if name not in ("study", "dry_run", "show_progress")
    }
    assert shared == {name: settings[name] for name in shared}
