"""Which tests count, and how a run that differs from the base's is described (19, 20)."""

import json
import signal

import pytest
from hypothesis import given, strategies as st

from fairtrial.arena import Reason
from fairtrial.arena.checks import pytest_reports as tests_read
from fairtrial.arena.checks.pytest_judging import MAX_FAILURES, build_baseline, judge_run
from fairtrial.arena.checks.pytest_reports import PytestOutcome, PytestResult, read_run
from fairtrial.sandbox import Captured, Command, Completed, Ending

COMMAND = Command(("pytest",), cwd=None, timeout_s=5)
OUTCOMES = [outcome.value for outcome in PytestOutcome]


def completed(channel=b"", ending=Ending.EXITED, exit_code=0, **more):
    if ending != Ending.EXITED:
        exit_code = None
    return Completed(
        **{
            "ending": ending,
            "exit_code": exit_code,
            "signal": None,
            "stdout": Captured(),
            "stderr": Captured(),
            "channel": channel,
            "channel_overflowed": False,
            "wall_s": 1.0,
            "cpu_s": 1.0,
            "peak_rss_mb": 1.0,
            **more,
        }
    )


def lines(*reports):
    return b"".join(json.dumps(report).encode() + b"\n" for report in reports)


def make_run(outcomes, exit_code=None, closed=True, started=(), **more):
    """A run in which these tests were reported, and those started besides."""
    if exit_code is None:
        exit_code = int(any(outcome in ("failed", "error") for outcome in outcomes.values()))
    reports = [{"opened": "9", "overrode": []}, {"collected": list(outcomes)}]
    for name, outcome in outcomes.items():
        reports += [{"started": name}, {"finished": name, "outcome": outcome, "message": "why"}]
    reports += [{"started": name} for name in started]
    if closed:
        reports.append({"closed": exit_code})
    return read_run(completed(lines(*reports), exit_code=exit_code, **more))


def judge(base, run, base_runs=3):
    return judge_run("check[0]", build_baseline([make_run(base)] * base_runs), run, COMMAND)


NAMES = st.sampled_from([f"t.py::test_{letter}" for letter in "abcdef"])
TABLES = st.dictionaries(NAMES, st.sampled_from(OUTCOMES))


@given(st.lists(TABLES, min_size=3, max_size=3), TABLES)
def test_a_candidate_passes_if_and_only_if_every_counted_test_passes(base, candidate):
    """20: counted are those that pass in all runs of the base; nothing else matters."""
    counted = [name for name in base[0] if all(table.get(name) == "passed" for table in base)]
    baseline = build_baseline([make_run(table) for table in base])
    assert list(baseline.counted) == counted
    rejection = judge_run("check[0]", baseline, make_run(candidate), COMMAND)
    wrong = [name for name in counted if candidate.get(name) != "passed"]
    assert (rejection is None) == (not wrong)
    if rejection:
        assert {failure.what for failure in rejection.failures} == set(wrong)
        reported = any(name in candidate for name in wrong)
        assert rejection.reason == (Reason.TESTS if reported else Reason.MISSING)


@given(st.lists(TABLES, min_size=3, max_size=3))
def test_every_test_of_the_base_that_passes_somewhere_is_counted_or_unstable(base):
    baseline = build_baseline([make_run(table) for table in base])
    passing = {name for table in base for name, outcome in table.items() if outcome == "passed"}
    assert {*baseline.counted, *baseline.unstable} == passing
    assert not set(baseline.counted) & set(baseline.unstable)
    assert not passing & set(baseline.failing)


@pytest.mark.parametrize("outcome", [one for one in OUTCOMES if one != "passed"])
def test_a_test_that_no_longer_passes_is_a_failure_whatever_became_of_it(outcome):
    rejection = judge({"a": "passed", "b": "passed"}, make_run({"a": "passed", "b": outcome}))
    assert rejection.reason == Reason.TESTS
    assert [(one.check, one.what) for one in rejection.failures] == [("check[0]", "b")]
    assert "why" in rejection.failures[0].message


def test_a_test_that_is_not_reported_is_a_failure_and_not_a_smaller_sum():
    rejection = judge({"a": "passed", "b": "passed"}, make_run({"a": "passed"}))
    assert rejection.reason == Reason.MISSING
    assert [failure.what for failure in rejection.failures] == ["b"]
    assert "1 of the 2" in rejection.message


def test_an_id_that_two_tests_share_must_be_reported_twice():
    twice = lines(*[{"finished": "a", "outcome": "passed"}] * 2, {"closed": 0})
    once = lines({"finished": "a", "outcome": "passed"}, {"closed": 0})
    baseline = build_baseline([read_run(completed(twice))] * 3)
    assert judge_run("check[0]", baseline, read_run(completed(twice)), COMMAND) is None
    rejection = judge_run("check[0]", baseline, read_run(completed(once)), COMMAND)
    assert rejection.reason == Reason.MISSING
    assert "less often" in rejection.failures[0].message


def test_tests_that_a_candidate_adds_count_neither_for_nor_against_it():
    assert judge({"a": "passed"}, make_run({"a": "passed", "new": "failed"})) is None


def test_a_process_that_leaves_before_pytest_is_done_has_crashed_where_it_was():
    base = {"a": "passed", "b": "passed", "c": "passed"}
    rejection = judge(base, make_run({"a": "passed"}, closed=False, started=["b"]))
    assert rejection.reason == Reason.CRASH
    assert rejection.failures[0].what == "b"
    assert "exited with 0 before it had finished" in rejection.failures[0].message
    assert rejection.message.endswith("in b")
    assert rejection.more == 1  # c


@pytest.mark.parametrize(
    ("ending", "reason", "words"),
    [
        (Ending.TIMEOUT, Reason.TIMEOUT, "longer than 5 s"),
        (Ending.MEMORY, Reason.MEMORY, "2048 MB"),
        (Ending.PROCESSES, Reason.PROCESSES, "64 processes"),
        (Ending.SIGNALLED, Reason.CRASH, "SIGSEGV"),
    ],
)
def test_what_ended_a_run_is_the_reason_and_the_test_that_ran_is_named(ending, reason, words):
    number = signal.SIGSEGV if ending == Ending.SIGNALLED else None
    base = {"a": "passed", "b": "passed", "c": "passed"}
    run = make_run({"a": "failed"}, closed=False, started=["b"], ending=ending, signal=number)
    rejection = judge(base, run)
    assert rejection.reason == reason
    assert words in rejection.message
    assert [failure.what for failure in rejection.failures] == ["b", "a"]
    # It may also happen after all reports: at the interpreter's end.
    late = make_run(base, ending=ending, signal=number)
    assert judge(base, late).reason == reason
    assert "after the tests" in judge(base, late).message


def test_an_exit_code_that_the_base_never_gives_is_a_crash_although_all_tests_pass():
    run = make_run({"a": "passed"}, exit_code=7)
    assert judge({"a": "passed"}, run).reason == Reason.CRASH
    baseline = build_baseline([make_run({"a": "passed"}, exit_code=7)] * 3)
    assert judge_run("check[0]", baseline, run, COMMAND) is None


def test_a_file_that_cannot_be_collected_is_reported_first_and_its_tests_are_only_counted():
    base = {f"t.py::test_{number}": "passed" for number in range(30)}
    reports = lines(
        {"opened": "9", "overrode": []},
        {"uncollected": "t.py", "outcome": "failed", "message": "E   SyntaxError: oh"},
        {"closed": 2},
    )
    rejection = judge(base, read_run(completed(reports, exit_code=2)))
    assert rejection.reason == Reason.TESTS
    assert [failure.what for failure in rejection.failures] == ["t.py"]
    assert "SyntaxError: oh" in rejection.failures[0].message
    assert rejection.more == 30


def test_a_module_that_is_skipped_says_why_its_tests_are_missing():
    reports = lines(
        {"uncollected": "t.py", "outcome": "skipped", "message": "Skipped: no numpy"}, {"closed": 5}
    )
    rejection = judge({"t.py::test_a": "passed"}, read_run(completed(reports, exit_code=5)))
    assert rejection.reason == Reason.MISSING
    assert "no numpy" in rejection.failures[0].message


@given(st.integers(1, 60))
def test_failures_are_listed_in_order_up_to_a_limit_and_the_rest_is_counted(count):
    base = {f"test_{number}": "passed" for number in range(count)}
    rejection = judge(base, make_run(dict.fromkeys(reversed(base), "failed")))
    shown = [failure.what for failure in rejection.failures]
    assert shown == list(base)[:MAX_FAILURES]
    assert len(shown) + rejection.more == count


def test_both_sides_of_a_comparison_become_a_difference():
    report = {"finished": "a", "outcome": "failed", "left": "[1, 2]", "right": "[2, 1]"}
    run = read_run(completed(lines(report, {"closed": 1}), exit_code=1))
    [difference] = judge({"a": "passed"}, run).failures[0].differences
    assert (difference.expected, difference.actual) == ("[2, 1]", "[1, 2]")


@pytest.mark.parametrize("first", OUTCOMES)
@pytest.mark.parametrize("second", OUTCOMES)
def test_of_two_reports_on_a_test_the_worse_counts(first, second):
    run = read_run(completed(lines(*({"finished": "a", "outcome": o} for o in (first, second)))))
    assert run.tests["a"].outcome == max(first, second, key=OUTCOMES.index)
    assert run.tests["a"].times == 2


KEYS = ["opened", "overrode", "collected", "uncollected", "outcome", "message", "started"]
KEYS += ["finished", "seconds", "left", "right", "loaded", "closed"]
VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
VALUES |= st.sampled_from(OUTCOMES) | st.lists(st.text(max_size=5) | st.none(), max_size=3)
FORGED = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=4).map(
    lambda report: json.dumps(report).encode()
)
GARBAGE = st.lists(st.binary(max_size=10) | FORGED, max_size=8).map(b"\n".join)


@given(GARBAGE, GARBAGE)
def test_garbage_around_the_reports_never_raises_and_never_makes_a_failure_a_pass(before, after):
    reports = lines({"finished": "t", "outcome": "failed"}, {"closed": 1})
    run = read_run(completed(before + b"\n" + reports + after, exit_code=1))
    rejection = judge({"t": "passed"}, run)
    assert rejection is not None
    json.dumps([failure.message for failure in rejection.failures]).encode()
    rejection.message.encode()


@pytest.mark.parametrize(
    "line",
    [
        b'{"a":' + b"[" * 100_000,
        b'{"a":' + b"1" * 100_000 + b"}",
        b'{"finished": "\\ud800", "outcome": "failed"}',
        b"\xff",
    ],
)
def test_lines_made_to_break_a_reader_are_harmless(line):
    run = read_run(completed(line + b"\n" + lines({"finished": "a", "outcome": "passed"})))
    assert run.tests["a"] == PytestResult(PytestOutcome.PASSED)
    for name in run.tests:
        name.encode()


def test_a_flood_of_lines_is_read_up_to_a_limit(monkeypatch):
    monkeypatch.setattr(tests_read, "MAX_LINES", 100)
    report = lines({"finished": "a", "outcome": "passed"})
    assert read_run(completed(b"\n" * 99 + report)).tests
    assert not read_run(completed(b"\n" * 100 + report)).tests


def test_the_last_line_counts_only_if_it_is_whole():
    report = lines({"finished": "a", "outcome": "passed"})
    assert read_run(completed(report[:-1])).tests == {}


def test_reports_cut_off_at_the_limit_are_missing_results_and_no_crash():
    run = make_run({"a": "passed"}, closed=False, channel_overflowed=True)
    rejection = judge({"a": "passed", "b": "passed"}, run)
    assert rejection.reason == Reason.MISSING
    assert "more than can be read" in rejection.message
    assert judge({"a": "passed"}, run).reason == Reason.MISSING
