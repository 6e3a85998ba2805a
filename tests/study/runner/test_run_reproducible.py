"""The same seeds give the same outputs and tables, however a study is run (spec 17-19)."""

import json
import random
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from run_kit import PACKET, draw, make_study, run, stable_tables

from fairtrial import Block, build_design, open_results, plan_runs
from fairtrial.study import execution_order
from fairtrial.study.runner.control import request
from fairtrial.study.runner.executors.processes import Processes
from fairtrial.study.tables import export_tables
from fairtrial.study.tables.integrity import validate_artifacts

PROMISING = [
    ("serial", 1),
    ("processes", 1),
    ("processes", 2),
    ("processes", 5),
    (Processes(start_method="spawn"), 2),
]


def judge(x):
    """An evaluator that draws, too."""
    return {"score": x, "luck": random.random() + np.random.random()}


DRAWING = replace(PACKET, evaluator=judge)


def drawing_study(folder):
    return make_study(
        folder,
        levels=(1, 2, 3, 4),
        replicates=3,
        agent_specs=("a", "b"),
        blocks=(Block("day", levels=("mon", "tue")),),
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The tables of a study that was run in one go, in this process."""
    folder = tmp_path_factory.mktemp("undisturbed")
    results = run(drawing_study(folder), draw, DRAWING, executor="serial")
    assert {result.status.value for result in results} == {"success", "failed"}
    return stable_tables(folder)


@pytest.mark.parametrize(("executor", "slots"), PROMISING)
def test_outputs_and_tables_are_the_same_under_every_executor_that_promises_it(
    tmp_path, undisturbed, executor, slots
):
    study = drawing_study(tmp_path)
    run(study, draw, DRAWING, executor=executor, parallelism=slots)
    assert stable_tables(tmp_path) == undisturbed
    assert validate_artifacts(tmp_path) == []


def test_another_seed_gives_other_numbers(tmp_path, undisturbed):
    study = drawing_study(tmp_path)
    other = replace(study, seed_policy=replace(study.seed_policy, base_seed=1))
    run(other, draw, DRAWING)
    columns = undisturbed["runs.csv"][0]
    column = columns.index("primary_outcome")
    ours = {row[column] for row in undisturbed["runs.csv"][1:]} - {""}
    theirs = {row[column] for row in stable_tables(tmp_path)["runs.csv"][1:]} - {""}
    assert not ours & theirs


PIECES = st.lists(
    st.tuples(st.integers(1, 20), st.sampled_from(["serial", "processes"]), st.integers(1, 3)),
    max_size=4,
)


@settings(max_examples=4)
@given(PIECES)
@example([(5, "serial", 1), (9, "processes", 2), (14, "processes", 3), (1, "serial", 2)])
def test_a_study_run_in_pieces_gives_the_same_tables(undisturbed, pieces):
    with tempfile.TemporaryDirectory() as folder:
        study = drawing_study(Path(folder))
        for limit, executor, slots in pieces:
            how = {"executor": executor, "parallelism": slots}
            run(study, draw, DRAWING, resume=True, limit=limit, **how)
        run(study, draw, DRAWING, resume=True)
        assert stable_tables(folder) == undisturbed


def test_a_study_run_in_pieces_by_expressions_gives_the_same_tables(tmp_path, undisturbed):
    study = drawing_study(tmp_path)
    for only in ("day == 'tue'", "replicate == 3", "agent_id == 'b' and x > 2"):
        run(study, draw, DRAWING, resume=True, only=only)
    run(study, draw, DRAWING, resume=True, parallelism=2)
    assert stable_tables(tmp_path) == undisturbed


def test_a_study_that_was_cancelled_again_and_again_gives_the_same_tables(tmp_path, undisturbed):
    study, done = drawing_study(tmp_path), 0
    while done < 48:
        results = run(
            study,
            draw,
            DRAWING,
            resume=True,
            parallelism=2,
            limit=15,
            on_result=lambda result: request(tmp_path, "cancel"),
        )
        assert len(results) > done
        done = len(results)
    run(study, draw, DRAWING, resume=True)
    assert without_attempts(stable_tables(tmp_path)) == without_attempts(undisturbed)


def without_attempts(tables):
    """Runs that were cut off come to a second attempt."""
    column = tables["runs.csv"][0].index("attempt")
    return {**tables, "runs.csv": [row[:column] + row[column + 1 :] for row in tables["runs.csv"]]}


@pytest.mark.parametrize(("executor", "slots"), [*PROMISING[:3], ("threads", 3)])
def test_rows_stand_in_plan_order_though_runs_are_executed_in_another(tmp_path, executor, slots):
    study = drawing_study(tmp_path)
    started = []
    run(
        study,
        draw,
        executor=executor,
        parallelism=slots,
        on_result=lambda result: started.append((result.started_at, result.run_id)),
    )
    conditions = build_design(study)
    planned = [spec.run_id for spec in plan_runs(study, conditions)]
    rows = stable_tables(tmp_path)["runs.csv"]
    column = rows[0].index("run_id")
    assert [row[column] for row in rows[1:]] == planned
    if slots == 1:
        order = execution_order(study, conditions)
        assert [run_id for _, run_id in started] == [planned[index] for index in order]
        assert list(order) != sorted(order)


def test_threads_give_the_same_numbers_by_task_rng(tmp_path):
    meet = threading.Barrier(3)

    def alone(task):
        return {"x": task.rng.random() + task.rng.gauss(0, 1)}

    def together(task):
        first = task.rng.random()
        meet.wait(60)  # three at once, for certain
        return {"x": first + task.rng.gauss(0, 1)}

    serial = run(make_study(tmp_path / "a"), alone)
    threads = run(make_study(tmp_path / "b"), together, executor="threads", parallelism=3)
    assert [result.outputs for result in threads] == [result.outputs for result in serial]


@pytest.mark.parametrize("executor", ["serial", "processes", "threads"])
def test_the_callers_random_numbers_continue_as_before(tmp_path, executor):
    random.seed(3)
    np.random.seed(3)
    expected = [random.random(), np.random.random()]
    random.seed(3)
    np.random.seed(3)
    run(make_study(tmp_path), draw, executor=executor, parallelism=2)
    assert [random.random(), np.random.random()] == expected


def test_the_callers_random_numbers_continue_as_before_after_an_error(tmp_path):
    def stumble(result):
        raise ZeroDivisionError

    state = random.getstate()
    with pytest.raises(ZeroDivisionError):
        run(make_study(tmp_path), draw, on_result=stumble)
    assert random.getstate() == state


def test_what_is_written_can_be_written_again_byte_by_byte(tmp_path):
    run(make_study(tmp_path), draw, DRAWING, include_sqlite=True)
    assert validate_artifacts(tmp_path) == []

    def files():
        manifest = json.loads((tmp_path / "manifest.json").read_text("utf-8"))
        del manifest["generated_at"]
        names = [name for name in manifest["files"] if not name.endswith(".sqlite")]
        return manifest, {name: (tmp_path / name).read_bytes() for name in names}

    before = files()
    with open_results(tmp_path) as results:
        read = list(results)
        export_tables(results, tmp_path, sqlite=True)
    assert files() == before
    assert list(open_results(tmp_path)) == read
