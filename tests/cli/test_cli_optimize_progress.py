"""What `fairtrial optimize` shows while it works: in a log, in a terminal, with --json."""

import io
import sys
import threading
from contextlib import nullcontext
from pathlib import Path

import pytest

from fairtrial.arena import (
    Basis,
    Benchmark,
    Candidate,
    Check,
    CodeProblem,
    Estimate,
    Judgement,
    Measurement,
    Reason,
    Rejection,
    Verdict,
)
from fairtrial.cli import live_display as live, optimize, optimize_progress as optimizing
from fairtrial.cli.optimize_errors import explain
from fairtrial.optimize import Entry, Reply, Request, RequestKind, Spent, Usage, Watcher
from fairtrial.sandbox import host_lock as quiet
from fairtrial.study import spell_cost

PRICED = Usage("m", 1_000, 234, 0.03, 1.5)


def request(line=0, kind=RequestKind.INITIAL):
    return Request(kind, line, 0)


def entry(id="0.0", **known):
    line, step = map(int, id.split("."))
    return Entry(id, None, RequestKind.INITIAL, line, step, digest=f"d{id}", **known)


def rejected(name="0.0"):
    return Judgement(
        name, "d", Verdict.REJECTED, Basis.TESTS, rejection=Rejection(Reason.TESTS, "1 of 2 fails")
    )


def faster(ratio=2.0):
    estimate = Estimate(ratio, ratio - 0.1, ratio + 0.1, 6, 0.95)
    measured = Measurement(Verdict.FASTER, estimate, adopt=True)
    return Judgement("c", "d", Verdict.FASTER, Basis.TESTS, measurement=measured)


# -- a log --


@pytest.fixture
def log(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    return optimizing.Lines()


def told(log):
    """What was told, without the clock."""
    return [line[10:] for line in log.stream.getvalue().splitlines()]


def test_a_log_has_a_line_for_each_step_and_what_it_has_cost(log):
    log.say("asking for candidates")
    log.say("up to 4 answers: about $1.20 in all.")
    log.replied(request(), Reply(usage=PRICED))
    log.entered(entry(), Candidate("c", files={}, note="first\nsecond"))
    log.entered(entry("1.0", duplicate_of="0.0"), Candidate("d", files={}))
    log.replied(request(2), Reply(usage=PRICED, refusal="no idea"))
    log.timing(entry(), 0, None)
    log.timing(entry(), 6, Estimate(2.0, 1.9, 2.1, 6, 0.95))
    log.judged(entry(), faster(), "")
    log.judged(entry("2.0"), rejected(), "")
    assert told(log) == [
        "asking for candidates ...",
        "up to 4 answers: about $1.20 in all.",
        "line 0, initial: answered in 1.5 s; so far 1,234 tokens, $0.03",
        "0.0  proposed (initial): c (first; second)",
        "1.0  proposed (initial): same as 0.0",
        "line 2, initial: answered in 1.5 s; so far 2,468 tokens, $0.06; no idea",
        "0.0  timed: 6 sessions, 2.00x [1.90, 2.10]",
        "0.0  faster, 2.00x [1.90, 2.10]",
        "best so far: 0.0, 2.00x [1.90, 2.10]",
        "2.0  rejected: tests: 1 of 2 fails",
    ]


def test_quick_answers_that_cost_nothing_are_not_told_of(log):
    log.replied(request(), Reply(usage=Usage("codemod", seconds=0.4)))
    log.replied(request(), Reply(usage=Usage("script", cost_usd=None, seconds=0.4)))
    assert told(log) == []
    log.replied(request(), Reply(usage=Usage("claude", cost_usd=None, seconds=64.0)))
    assert told(log) == ["line 0, initial: answered in 64.0 s; so far cost unknown"]


def test_what_to_expect_is_told_only_if_something_is_done(log):
    log.intro = "up to 4 candidates"
    assert log.stream.getvalue() == ""
    log.say("asking")
    log.say("waiting")
    assert log.stream.getvalue().splitlines()[0] == "up to 4 candidates"
    assert log.stream.getvalue().count("up to 4") == 1


def test_who_had_too_few_sessions_is_told_so(log):
    log.timing(entry(), 1, None)
    few = Measurement(Verdict.INCONCLUSIVE, None, notes=("only 1 sessions fit into 2 s",))
    log.judged(entry(), Judgement("c", "d", Verdict.INCONCLUSIVE, measurement=few), "")
    assert told(log) == [
        "0.0  timed: 1 session",
        "0.0  inconclusive: only 1 sessions fit into 2 s",
    ]


def test_only_a_better_one_is_the_best_so_far(log):
    for id, ratio in (("0.0", 2.0), ("1.0", 1.5), ("2.0", 3.0)):
        log.judged(entry(id), faster(ratio), "")
    best = [line for line in told(log) if line.startswith("best")]
    assert [line.split(",")[0] for line in best] == ["best so far: 0.0", "best so far: 2.0"]


@pytest.mark.parametrize(
    ("usages", "text"),
    [
        ([], ""),
        ([Usage("m", 900, 100, 0.0)], "1,000 tokens"),
        ([Usage("m", 900, 100, None), PRICED], "2,234 tokens, cost unknown"),
        ([Usage("claude", cost_usd=0.5)], "$0.50"),
    ],
)
def test_what_was_spent_is_told_as_far_as_it_is_known(usages, text):
    spent = Spent()
    for usage in usages:
        spent.add(usage)
    assert optimizing.spent_text(spent) == text


@pytest.mark.parametrize(
    ("cost", "text"), [(0, "$0"), (1e-5, "$0.00001"), (0.0028, "$0.0028"), (12.3, "$12.30")]
)
def test_small_sums_are_written_out(cost, text):
    assert spell_cost(cost) == text


@pytest.mark.parametrize(
    ("candidates", "benchmarks", "told"),
    [
        (1, 1, "one candidate; timing it twice takes 40 s at most"),
        (2, 1, "up to 2 candidates; timing them, and the best again, takes 80 s at most"),
        (6, 2, "up to 6 candidates; timing them, and the best again, takes 6 min at most"),
    ],
)
def test_what_timing_takes_at_most_holds_the_best_ones_second_time(candidates, benchmarks, told):
    bench = tuple(Benchmark(f"b{at}", "m:f", "i.py:g") for at in range(benchmarks))
    problem = CodeProblem("p", check=(Check(command=("true",)),), bench=bench, budget_s=20.0)
    assert optimize._estimate(problem, candidates) == f"{told}, and mostly far less"


# -- a terminal --


@pytest.fixture
def view(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    return optimizing.Live()


def state(view):
    return [line[10:] for line in view.render(view.canvas).plain.splitlines()]


def test_the_state_of_things_follows_each_candidate_on_its_way(view):  # issue: a live view
    assert state(view) == ["starting ...", "0 proposed, 0 rejected; none is faster yet"]
    view.say("timing the unchanged base")
    assert state(view)[0] == "timing the unchanged base ..."
    for line in range(3):
        view.asked(request(line))
    assert state(view)[0] == "3 answers awaited ..."
    for line in range(3):
        view.replied(request(line), Reply(usage=PRICED))
        view.entered(entry(f"{line}.0"), Candidate("c", files={}))
        view.checking(entry(f"{line}.0"))
    assert state(view)[0] == "checking 0.0, 1.0, 2.0 ..."
    view.judged(entry("2.0"), rejected(), "")
    view.passed(entry("1.0"))
    view.passed(entry("0.0"))
    assert state(view) == [
        "1.0, 0.0 passed, to be timed ...",
        "3 proposed, 1 rejected; $0.09; none is faster yet; 3,702 tokens",
    ]
    view.timing(entry("1.0"), 0, None)
    assert state(view)[0] == "0.0 passed, to be timed; timing 1.0 ..."
    view.timing(entry("1.0"), 6, Estimate(2.0, 1.9, 2.1, 6, 0.95))
    assert state(view)[0].endswith("timing 1.0: 6 sessions, 2.00x [1.90, 2.10] ...")
    view.judged(entry("1.0"), faster(), "")
    view.entered(entry("3.0", duplicate_of="1.0"), Candidate("d", files={}))
    assert state(view) == [
        "0.0 passed, to be timed ...",
        "4 proposed, 1 rejected; $0.09; best: 1.0, 2.00x [1.90, 2.10]; "
        "1 the same as others; 3,702 tokens",
    ]


def test_who_waits_for_anothers_timing_says_so_until_it_goes_on(view):
    waiting = quiet.WAITING.format(7)
    view.asked(request())
    view.say(waiting)
    assert state(view)[0].startswith(f"{waiting}; 1 answer awaited")
    view.say(quiet.GOING_ON)
    assert state(view)[0] == "1 answer awaited ..."


def test_a_step_that_had_to_wait_has_its_name_again_when_it_goes_on(view):
    view.say("timing the unchanged base")
    for _ in range(2):  # it is said again and again
        view.say(quiet.WAITING.format(7))
    view.say(quiet.GOING_ON)
    assert state(view)[0] == "timing the unchanged base ..."
    view.say(quiet.WAITING.format(7))
    view.say("looking at where the time goes")  # somebody else didn't have to wait
    view.say(quiet.GOING_ON)
    assert state(view)[0] == "looking at where the time goes ..."


def test_the_state_below_a_line_is_as_of_that_line(view, monkeypatch):
    drawn = []
    monkeypatch.setattr(view.canvas._live, "refresh", lambda: drawn.append(state(view)[0]))
    view.say("timing the unchanged base")
    assert drawn == ["timing the unchanged base ..."]


def test_who_could_not_be_judged_is_not_among_the_rejected(view):
    lost = Rejection(Reason.EVALUATOR, "no room")
    view.entered(entry("0.0"), Candidate("c", files={}))
    view.judged(entry("0.0"), Judgement("0.0", "d", Verdict.INCONCLUSIVE, rejection=lost), "")
    assert state(view)[1] == ("1 proposed, 0 rejected; 1 could not be judged; none is faster yet")


def test_many_at_once_are_counted_not_listed(view):
    for line in range(9):
        view.checking(entry(f"{line}.0"))
    assert state(view)[0] == "checking 0.0, 1.0, 2.0, 3.0 and 5 more ..."


def test_what_happened_scrolls_by_cut_to_the_terminal(view):
    view.entered(entry(), Candidate("c", files={}, note="long " * 50))
    (line,) = view.canvas._console.file.getvalue().splitlines()
    assert len(line) < 60
    assert line.endswith("...")


def test_it_is_drawn_when_timing_begins_and_seldom_afterwards(view, monkeypatch):  # bench 5
    drawn = []
    monkeypatch.setattr(view.canvas._live, "refresh", lambda: drawn.append(view.timed))
    monkeypatch.setattr(live.time, "monotonic", lambda: 100.0)
    view.timing(entry(), 0, None)
    for sessions in range(1, 7):
        view.timing(entry(), sessions, None)
    assert drawn == ["0.0"]


def test_it_is_drawn_where_people_look_not_into_the_run(monkeypatch):
    """A run's own standard error is kept with the run."""
    people = io.StringIO()
    monkeypatch.setattr(sys, "stderr", people)
    view = optimizing.Live()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    view.say("asking")
    assert "asking ..." in people.getvalue()


def test_what_to_expect_stands_above_the_state_of_things(view):
    """Not printed past it, into the middle of what is drawn."""
    view.intro, view.stream = "up to 4 candidates", io.StringIO()
    view.say("asking")
    shown = view.canvas._console.file.getvalue().splitlines()
    assert shown[0] == "up to 4 candidates"
    assert (len(shown), view.stream.getvalue()) == (2, "")


# -- which of them --


def test_the_view_fits_where_it_is_shown(monkeypatch):
    assert optimizing.watch("", is_silent=True)[0].__class__ is Watcher
    monkeypatch.setattr(optimizing, "can_draw", lambda: False)
    shown, within = optimizing.watch("", is_silent=False)
    assert (type(shown), type(within)) == (optimizing.Lines, nullcontext)
    monkeypatch.setattr(optimizing, "can_draw", lambda: True)
    shown, within = optimizing.watch("", is_silent=False)
    assert isinstance(shown, optimizing.Live)
    before = set(threading.enumerate())
    with within:
        (drawing,) = set(threading.enumerate()) - before
    assert not drawing.is_alive()


@pytest.mark.parametrize(
    ("told", "code", "said"),
    [
        ("StudyError: bench: a\ncheck: b", 2, "p.yaml: bench: a\np.yaml: check: b"),
        ("MisfitError: bench.b: too long", 2, "p.yaml: bench.b: too long"),
        ("LabError: no room", 4, "no room; the same command goes on where it was"),
        ("ValueError: odd", 4, "ValueError: odd; the same command goes on where it was"),
    ],
)
def test_a_run_that_came_to_nothing_is_told_as_what_it_was(told, code, said):
    error = explain(told, Path("p.yaml"), "chat")
    assert (error.exit_code, str(error)) == (code, said)
