"""The slowest tests of the base as a benchmark, if a problem has none."""

import json
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import dedent

import anyio
import pytest
from suite_kit import PYTHON, Slots

from fairtrial.arena import Check, CodeProblem, Reason
from fairtrial.arena.checks.pytest_check import (
    PreparedPytestCheck,
    prepare_tests,
    pytest_command,
    read_in_thread,
)
from fairtrial.arena.checks.pytest_judging import PytestBaseline
from fairtrial.arena.interpreter import probe_interpreter
from fairtrial.arena.stage import Stage
from fairtrial.arena.timing import command_benchmark as pairs
from fairtrial.arena.timing.prepared_benchmark import TimingSetup
from fairtrial.arena.timing.suite_benchmark import MOST_TESTS, choose_slowest, prepare_slowest
from fairtrial.core import LabError, StudyError
from fairtrial.sandbox import Captured, Completed, Ending, find_sandbox

CHECK = Check(command=("{python}", "-m", "pytest", "-q", "tests"))
PROBLEM = CodeProblem("p", check=(CHECK,), env={"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"})

# -- which tests --


def test_the_slowest_hold_most_of_the_time_and_stay_in_order():
    durations = {"a": 0.1, "quick": 0.001, "b": 3.0, "c": 1.0, "d": 0.05}
    assert choose_slowest(durations) == ("b", "c")
    assert choose_slowest(durations, share=0.98) == ("a", "b", "c")
    assert choose_slowest(durations, share=0.5) == ("b",)
    assert choose_slowest(durations, share=1.0) == tuple(durations)


def test_there_are_never_many():
    durations = {f"t{number}": 0.01 for number in range(500)}
    chosen = choose_slowest(durations)
    assert len(chosen) == MOST_TESTS
    assert list(chosen) == sorted(chosen, key=lambda name: int(name[1:]))


def test_what_takes_too_long_is_left_out_and_others_are_taken():
    durations = {"hours": 5000.0, "a": 0.6, "b": 0.5, "c": 0.3}
    assert choose_slowest(durations, longest_s=1.0) == ("a", "c")
    assert choose_slowest(durations, longest_s=0.2) == ()
    assert choose_slowest(durations, longest_s=-1.0) == ()
    assert choose_slowest({}) == ()


def test_one_slow_test_may_take_more_than_is_enough_but_gets_no_company():
    durations = {"slow": 1.2, "a": 0.5, "b": 0.4}
    assert choose_slowest(durations, longest_s=1.5, enough_s=0.6) == ("slow",)
    assert choose_slowest(durations, longest_s=1.0, enough_s=0.6) == ("a",)


def test_tests_that_take_no_time_at_all_can_be_chosen():
    assert choose_slowest({"a": 0.0, "b": 0.0}) == ("a",)


# -- finding tests that can be timed, with a clock and a pytest of our own --


@dataclass
class FakeSuite:
    """A sandbox where pytest runs what it is told to: each test takes its time."""

    seconds: dict[str, float]
    around_s: float = 0.3
    unfit: set = field(default_factory=set)
    unfit_candidate: set = field(default_factory=set)
    crashing: str = ""
    clock_s: float = 0.0
    commands: list = field(default_factory=list)
    name: str = "fake"
    relocates: bool = True
    shortfalls: tuple = ()

    async def run(self, command):
        self.commands.append(command)
        tests = json.loads(command.stdin)
        is_base = command.view.readable[-1].source.name == "base"
        unfit = self.unfit if is_base else self.unfit_candidate
        lines, wall_s = [{"opened": "9", "overrode": []}, {"collected": tests}], self.around_s
        crashed = self.crashing in tests
        for name in tests:
            lines.append({"started": name})
            if name == self.crashing:
                break
            outcome = "failed" if name in unfit else "passed"
            wall_s += self.seconds[name]
            told = {"finished": name, "outcome": outcome, "seconds": float(self.seconds[name])}
            lines.append({**told, "message": "E   OSError: read-only" if name in unfit else ""})
        if not crashed:
            lines.append({"closed": int(bool(unfit.intersection(tests)))})
        self.clock_s += wall_s
        return Completed(
            ending=Ending.SIGNALLED if crashed else Ending.EXITED,
            exit_code=None if crashed else int(bool(unfit.intersection(tests))),
            signal=11 if crashed else None,
            stdout=Captured(),
            stderr=Captured(),
            channel="".join(json.dumps(line) + "\n" for line in lines).encode(),
            channel_overflowed=False,
            wall_s=wall_s,
            cpu_s=wall_s,
            peak_rss_mb=1.0,
        )

    def monotonic(self):
        return self.clock_s

    def setup(self):
        base, candidate = (
            Stage(PROBLEM, PYTHON, self, Path("/slots", arm), Path("/p"), (".",), (), False)
            for arm in ("base", "candidate")
        )
        return TimingSetup(base, candidate, (0,), "secret")


def trial_of(durations, check=CHECK):
    """A check whose tests took that long when the base was run."""
    standard = PytestBaseline(dict.fromkeys(durations, 1), (), (), frozenset({0, 1}))
    return PreparedPytestCheck("check[0]", check, standard, (), frozenset(), durations=durations)


@pytest.fixture
def suite(monkeypatch):
    def suite(seconds, **more):
        sandbox = FakeSuite(seconds, **more)
        monkeypatch.setattr(pairs, "time", sandbox)
        return sandbox

    return suite


def ready(sandbox, durations=None, *, budget_s=20.0):
    async def work():
        check = trial_of(durations or sandbox.seconds)
        return await prepare_slowest(check, sandbox.setup(), budget_s=budget_s)

    return anyio.run(work)


def tried(sandbox):
    """The sets of tests that were run, one after the other."""
    return list(dict.fromkeys(tuple(json.loads(command.stdin)) for command in sandbox.commands))


def test_a_sample_is_the_checks_own_command_with_the_slowest_tests_only(suite):
    sandbox = suite({"t.py::quick": 0.01, "t.py::slow": 0.5, "t.py::slower": 0.6})
    benchmark = ready(sandbox, budget_s=60.0)
    assert benchmark.name == "slowest tests"
    assert benchmark.session_s == pytest.approx(2 * 1.4)
    session = anyio.run(benchmark.run, sandbox.setup(), 0)
    assert session.rejection is None
    assert tried(sandbox) == [("t.py::slow", "t.py::slower")]
    command = sandbox.commands[-1]
    assert command.argv[1:] == ("-m", "pytest", "-p", "fairtrial_pytest", "-q", "tests")
    assert command.cores == (0,)
    assert command.channel_bytes > 0
    assert len({item.env["PYTHONHASHSEED"] for item in sandbox.commands[:3]}) == 3


def test_notes_say_what_it_rests_on(suite):
    seconds = {f"t.py::t{number}": 0.05 for number in range(20)} | {"t.py::quick": 0.001}
    notes = "\n".join(ready(suite(seconds, around_s=0.9), budget_s=100.0).notes)
    assert "19 of the base's slowest tests" in notes
    assert "95% of the time" in notes
    assert "t.py::t0, t.py::t1" in notes
    assert "and 9 more" in notes
    assert "inputs were fixed" in notes
    assert "the tests themselves are 51% of the base's" in notes
    assert "candidate's own process" in notes
    assert "not timed" not in notes


def test_tests_that_fail_in_a_read_only_slot_give_way_to_others(suite):
    sandbox = suite({"writes": 0.9, "a": 0.5, "b": 0.1}, unfit={"writes"})
    benchmark = ready(sandbox, budget_s=60.0)
    assert tried(sandbox) == [("writes", "a"), ("a", "b")]
    assert (
        "don't pass by themselves in a read-only copy: writes (the first: E OSError"
        in (benchmark.notes[-1])
    )


def test_a_test_that_crashes_pytest_is_left_out_alone(suite):
    sandbox = suite({"a": 0.5, "kills": 0.9, "b": 0.4}, crashing="kills")
    ready(sandbox, budget_s=60.0)
    assert tried(sandbox) == [("a", "kills", "b"), ("a", "b")]


@pytest.mark.parametrize("count", [1, 3, 500])
def test_a_suite_without_a_test_that_can_be_timed_is_refused(suite, count):
    names = {f"t{number}": 0.1 for number in range(count)}
    with pytest.raises(StudyError) as refused:
        ready(suite(names, unfit=set(names)))
    (mistake,) = refused.value.mistakes
    assert mistake.path == ("bench",)
    assert "don't pass by themselves" in mistake.message
    assert "read-only" in mistake.message
    assert "bench:" in mistake.hint


def test_tests_that_prove_longer_than_they_were_are_chosen_again(suite):
    sandbox = suite({"a": 3.0, "b": 0.2, "c": 0.1}, around_s=0.5)
    benchmark = ready(sandbox, {"a": 1.0, "b": 0.2, "c": 0.1}, budget_s=20.0)
    assert tried(sandbox) == [("a",), ("b",)]
    assert 12 * benchmark.session_s / 2 <= 20.0


@pytest.mark.parametrize("slow_s", [3.0, 0.2])
def test_a_budget_too_small_for_any_test_is_refused_with_one_that_is_not(suite, slow_s):
    seconds = {"slow": slow_s, "less slow": slow_s / 2}
    with pytest.raises(StudyError) as refused:
        ready(suite(seconds, around_s=0.4), budget_s=5.0)
    (mistake,) = refused.value.mistakes
    assert mistake.path == ("bench",)
    assert "budget_s (5)" in mistake.message
    # How long pytest takes to start is known only if something was tried.
    assert ("starting pytest takes 0.4 s" in mistake.message) == (slow_s < 1)
    named_s = int(mistake.hint.rpartition(" ")[2])
    sandbox = suite(seconds, around_s=0.4)
    assert ready(sandbox, budget_s=named_s).session_s * 6 <= named_s
    assert "slow" in tried(sandbox)[-1]


def test_tests_that_never_fit_are_not_said_to_fail(suite):
    # Each takes ten times as long as it did: one after the other is tried, and is too slow.
    known = {f"t{number}": 0.5 for number in range(9)}
    with pytest.raises(StudyError, match=r"don't fit into budget_s"):
        ready(suite(dict.fromkeys(known, 5.0)), known, budget_s=20.0)


def test_a_candidate_must_pass_all_chosen_tests_while_it_is_timed(suite):
    sandbox = suite({"a": 0.5, "b": 0.4}, unfit_candidate={"b"})
    benchmark = ready(sandbox, budget_s=60.0)
    session = anyio.run(benchmark.run, sandbox.setup(), 0)
    assert session.rejection.reason == Reason.TESTS
    assert "benchmark slowest tests" in session.rejection.message
    assert [failure.what for failure in session.rejection.failures] == ["b"]


def test_a_base_that_fails_later_is_our_fault(suite):
    sandbox = suite({"a": 0.5})
    benchmark = ready(sandbox, budget_s=60.0)
    sandbox.unfit.add("a")
    with pytest.raises(LabError, match="slowest tests"):
        anyio.run(benchmark.run, sandbox.setup(), 0)


# -- real pytests --

ODD = """
    import pytest

    LONG = [pytest.param("x", id="x" * 3000 + end) for end in "ab"]
    ODD = ["ä", "a\\nb", "::[]", "a b", "]", "'\\"", "-k", *LONG]

    @pytest.mark.parametrize("text", ODD)
    def test_text(text):
        assert text

    class TestTwo:
        def test_method(self):
            pass

        def test_text(self):
            pass

    def test_not_chosen():
        raise AssertionError("nobody asked for it")
"""
OTHER = "def test_other():\n    import os\n    assert not [n for n in os.environ if 'FAIRT' in n]\n"


FILES = {
    "pytest.ini": "[pytest]\n",
    "tests/deep/test_odd.py": ODD,
    "tests/deep/test_other.py": OTHER,
    "tests/deep/test_unasked.py": "def test_unasked():\n    pass\n",
}


def run_only(slots, names, *, words=(), cwd=".", changes=None):
    """What a run of these tests reports; of all if there are none."""
    stage = slots.stage({**slots.files, **(changes or {})}, sandbox=slots.sandbox)
    stage = replace(stage, problem=replace(stage.problem, cwd=cwd))
    check = Check(command=("{python}", "-m", "pytest", "-q", *words))

    async def work():
        return await read_in_thread(await stage.run(pytest_command(stage, check, only=names)))

    return anyio.run(work)


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """The names of tests that pass, as a check of all of them gives them."""
    run = run_only(Slots(tmp_path_factory.mktemp("all"), FILES), ())
    return [name for name, told in run.tests.items() if told.outcome == "passed"]


@pytest.mark.parametrize(
    ("words", "cwd"),
    [
        (("tests/",), "."),
        ((), "tests/deep"),
        (("-p", "xdist", "-n", "2", "tests"), "."),
    ],
)
def test_only_the_named_tests_are_run_whatever_they_are_called(tmp_path, known, words, cwd):
    if "xdist" in words:
        pytest.importorskip("xdist")
    # One test of each kind stays out.
    left_out = ("test_text[a b]", "TestTwo::test_text", "test_unasked")
    names = [name for name in known if not name.endswith(left_out)]
    assert len(names) == 10
    # A file that none of them is in isn't even imported.
    changes = {"tests/deep/test_unasked.py": "raise RuntimeError('imported')"}
    run = run_only(Slots(tmp_path, FILES), names, words=words, cwd=cwd, changes=changes)
    assert set(run.tests) == set(names) == set(run.collected)
    assert {told.outcome for told in run.tests.values()} == {"passed"}
    assert run.uncollected == ()
    assert run.exit_status == run.completed.exit_code == 0


def test_where_files_cannot_be_named_the_same_tests_are_found_among_all(tmp_path):
    files = {"tests/a[b]/test_a.py": "def test_a():\n    pass\ndef test_b():\n    pass\n"}
    name = "tests/a[b]/test_a.py::test_b"
    assert set(run_only(Slots(tmp_path, files), [name]).tests) == {name}


def test_a_list_longer_than_a_variable_can_be_is_no_trouble(tmp_path):
    name = "test_a.py::test_a"
    slots = Slots(tmp_path, {"test_a.py": "def test_a():\n    pass\n"})
    others = [f"test_a.py::test_{'x' * 700}{number}" for number in range(2_000)]
    assert set(run_only(slots, [*others, name]).tests) == {name}


# -- all of it, in the best sandbox that works here --

WORK = """
    def work(n):
        return sum(i * i for i in range(n))
"""
TESTS = """
    from pathlib import Path

    from work import work

    def test_quick():
        assert work(3) == 5

    def test_writes():
        Path("result.txt").write_text(str(work(300_000)))

    def test_slow():
        assert work(200_000) == 2666646666700000
"""


@pytest.fixture
def real_stage(tmp_path):
    sandbox = find_sandbox("auto", unsandboxed=True)
    python = anyio.run(probe_interpreter, PROBLEM, tmp_path)
    given = iter(range(100))

    def stage(work, *, is_writable=False):
        slot = tmp_path / f"slot{next(given)}"
        (slot / "tests").mkdir(parents=True)
        (slot / "work.py").write_text(dedent(work), "utf-8")
        (slot / "tests" / "test_work.py").write_text(dedent(TESTS), "utf-8")
        seen = tmp_path / "project" if sandbox.relocates else slot
        return Stage(PROBLEM, python, sandbox, slot, seen, (".",), is_writable=is_writable)

    return stage


@pytest.mark.slow
def test_real_tests_are_found_timed_and_held_to(real_stage):
    @asynccontextmanager
    async def stages(**_):
        yield real_stage(WORK, is_writable=True)

    slow, writes, quick = (
        f"tests/test_work.py::test_{name}" for name in ("slow", "writes", "quick")
    )

    async def work():
        check = await prepare_tests("check[0]", CHECK, stages)
        # On a busy machine a quick one may have had to wait for longer than the others took.
        steady = replace(check, durations={quick: 0.001, writes: 0.3, slow: 0.2})
        base, broken = real_stage(WORK), real_stage(WORK.replace("i * i", "i"))
        cores = (min(os.sched_getaffinity(0)),)
        benchmark = await prepare_slowest(
            steady, TimingSetup(base, base, cores, "s"), budget_s=600.0
        )
        equal = await benchmark.run(TimingSetup(base, base, cores, "s"), 0)
        return (
            check,
            benchmark,
            equal,
            await benchmark.run(TimingSetup(base, broken, cores, "s"), 1),
        )

    check, benchmark, equal, broken = anyio.run(work)
    assert set(check.durations) == {slow, writes, quick}
    assert min(check.durations[slow], check.durations[writes]) > 0.001  # 200,000 times round
    assert equal.rejection is None
    assert all(0 < sample.wall_s <= equal.seconds for sample in equal.samples)
    assert broken.rejection.reason == Reason.TESTS
    assert slow in broken.rejection.message
    if find_sandbox("auto", unsandboxed=True).relocates:
        assert writes not in benchmark.subject.tests
        assert writes in benchmark.notes[-1]
