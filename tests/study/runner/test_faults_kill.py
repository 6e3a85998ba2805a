"""kill -9 of the study at any instant: nothing reported is lost, nothing done twice.

The instants are steps, not times: a rehearsal counts what a study does from its start to its end,
and each case is killed at one of these steps.
"""

import json
import random
import shutil
import sys
from collections import Counter

import pytest
from fault_stage_kit import Stage, is_gone, wait_until

from fairtrial.study.tables.integrity import validate_artifacts

pytest_plugins = ("fault_fixtures",)
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

RUNS, PILOT_RUNS, SLOTS = 24, 7, 2
GROUP = 3
PILOT = ("--limit", PILOT_RUNS)
FAULTS = {"group_runs": GROUP, "group_s": 1e9, "live_s": 1e9}
"""Commits of three results instead of 256, so that there are some in a short study; and none only
because time has passed: a step that a slow rehearsal took would never come in a quick run."""
EXECUTORS = {"serial": ("--executor", "serial"), "processes": ("--parallel", SLOTS)}
PHASES = {
    "start": (0.0, 0.2, 0.4, 0.7, 0.99),
    "run": (0.0, 0.2, 0.4, 0.6, 0.9),
    "commit": (0.0, 0.15, 0.3, 0.45, 0.6),
    "export": (0.0, 0.4, 0.99),
}
PUBLISH = {"serial": (0.0, 0.2, 0.4, 0.6, 0.8), "processes": (0.1, 0.3, 0.5, 0.7, 0.9)}
INSTANTS = [
    (executor, phase, fraction, after_s)
    for executor in EXECUTORS
    for phase, fractions in {**PHASES, "publish": PUBLISH[executor]}.items()
    for fraction, after_s in [(part, None) for part in fractions]
    + ([(0.25, 0.0001), (0.5, 0.0004)] if phase == "commit" else [])
]
assert len(INSTANTS) == 50
# Two of five in every phase are enough for every day: the others are just as near to each other.
CASES = [
    pytest.param(*instant, marks=() if index % 5 in (0, 3) else pytest.mark.slow)
    for index, instant in enumerate(INSTANTS)
]


def write_study(stage):
    stage.write(options={"wait_s": 0.002}, run_budget={"replicates": RUNS // 3})


@pytest.fixture(scope="module")
def rehearsals(zygote, tmp_path_factory):
    """For each executor, made when first asked for: tables, steps by phase, and a pilot's output.

    A pilot is a study that has tables of some of its runs already.
    """
    made = {}

    def rehearse(executor):
        if executor not in made:
            stage = Stage(tmp_path_factory.mktemp("rehearsal"), zygote)
            write_study(stage)
            count = stage.folder / "count"
            counting = {**FAULTS, "count_to": str(count)}
            assert stage.run("--resume", *PILOT, *EXECUTORS[executor], faults=counting).code == 0
            from_nothing = json.loads(count.read_text())
            shutil.copytree(stage.output, stage.folder / "pilot", symlinks=True)
            ended = stage.run("--resume", *EXECUTORS[executor], faults=counting)
            assert ended.code == 0, ended.err
            assert len(stage.table()) == RUNS
            steps = {**json.loads(count.read_text()), "start": from_nothing["start"]}
            made[executor] = stage.tables(), steps, stage.folder / "pilot"
        return made[executor]

    return rehearse


def assert_sound(stage, reported):
    """What must hold right after the kill."""
    done = stage.done()
    assert len(done) == len(set(done))
    assert set(reported) <= set(done)
    assert stage.query("PRAGMA integrity_check") in ([], [("ok",)])
    bodies = stage.query("SELECT count(*) FROM results JOIN bodies USING (turn)")
    assert bodies in ([], [(len(done),)])
    if (stage.output / "manifest.json").exists():
        assert validate_artifacts(stage.output) == []
    wait_until(lambda: all(map(is_gone, stage.witnesses())), "workers to end")
    return done


def assert_completes(stage, executor, tables, done, *, called=None):
    """Going on does what wasn't done, and only that; it all comes out the same."""
    before = stage.calls() if called is None else called
    ended = stage.run("--resume", *EXECUTORS[executor])
    assert ended.code == 0, ended.err
    again = stage.calls() - before
    assert set(again) == set(again) - set(done)
    assert set(again.values()) <= {1}
    assert len(again) == RUNS - len(done)
    assert stage.tables() == tables
    assert len(stage.done()) == len(set(stage.done())) == RUNS
    left = [path.name for path in stage.output.iterdir() if path.name.endswith((".part", ".new"))]
    assert left == []
    assert len(list(stage.output.glob(".tables-*"))) <= 2


@pytest.mark.parametrize(("executor", "phase", "fraction", "after_s"), CASES)
def test_a_killed_study_continues_with_the_same_results(
    stage, rehearsals, executor, phase, fraction, after_s
):
    tables, steps, pilot = rehearsals(executor)
    write_study(stage)
    has_pilot = phase != "start"
    if has_pilot:
        shutil.copytree(pilot, stage.output, symlinks=True)
    earlier = stage.done()
    step = int(fraction * (steps[phase] - 1))
    report = stage.folder / "reported"
    faults = {
        **FAULTS,
        "kill_at": {"phase": phase, "step": step, "after_s": after_s},
        "report_to": str(report),
    }
    words = ("--resume", *(() if has_pilot else PILOT), *EXECUTORS[executor])  # as rehearsed
    ended = stage.run(*words, faults=faults)
    assert ended.code == -9, f"{phase} never came to step {step}: {ended}"
    reported = report.read_text().split() if report.exists() else []
    done = assert_sound(stage, earlier + reported)
    called = stage.calls()
    assert set(called.values()) <= {1}
    assert len(set(called) - set(done)) <= GROUP + SLOTS  # not committed, or under way
    if phase in ("export", "publish"):
        assert len(done) == RUNS
        assert len(stage.table()) in (PILOT_RUNS, RUNS)  # the old set or the new one
    assert_completes(stage, executor, tables, done)


def test_the_instants_lie_in_every_phase(rehearsals):
    for executor in EXECUTORS:
        _, steps, _ = rehearsals(executor)
        assert min(steps[phase] for phase in PHASES) > 20, steps
        assert steps["publish"] > 5, steps


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("when", [1, 2])
def test_a_study_killed_by_another_process_can_be_resumed(stage, rehearsals, executor, when):
    """At a moment that nobody chose; what `status` said stays true."""
    tables, _, _ = rehearsals(executor)
    write_study(stage)
    command = stage.start_run(*EXECUTORS[executor], cold=when == 1)  # by its own command line
    witnessed = random.Random(when).randrange(1, RUNS)
    wait_until(lambda: len(stage.witnessed()) >= witnessed, "the agent to be called", every_s=0.001)
    counted = stage.status()["done"]
    command.kill()
    assert command.wait().code in (-9, 0)  # it may have been done by now
    done = assert_sound(stage, [])
    assert len(done) >= counted
    assert_completes(stage, executor, tables, done)


def test_the_backlog_of_slow_runs_is_small(stage):
    """Runs that take a while are not done again by the hundred."""
    stage.write(options={"wait_s": 0.05}, run_budget={"replicates": 40})
    command = stage.start_run("--parallel", SLOTS)
    wait_until(lambda: len(stage.witnessed()) >= 20, "some runs")
    command.kill()
    command.wait()
    backlog = stage.calls() - Counter(stage.done())
    # Two slots do four runs in the tenth of a second that a commit may wait; and two are under way.
    assert len(backlog) <= 12
    assert stage.call("status", stage.output, "--json").data["is_running"] is False
