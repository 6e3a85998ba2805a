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
    Check,
    CodeProblem,
    Estimate,
    Judgement,
    Measurement,
    Reason,
    Rejection,
    Verdict,
    events as arena_events,
)
from fairtrial.cli import live_display as live, optimize_progress as optimizing
from fairtrial.cli.optimize_errors import explain_failure
from fairtrial.core.events import (
    HostWaitEnded,
    HostWaitStarted,
    Phase,
    PhaseStarted,
    Remark,
    ignore_event,
)
from fairtrial.optimize import Optimizer, RequestKind, Usage, UsageTotal, events as optimize_events
from fairtrial.study import spell_cost

PRICED = Usage("m", 1_000, 234, 0.03, 1.5)


ASKING = PhaseStarted(Phase.PROPOSALS)
BASE_TIMING = PhaseStarted(Phase.BASE_TIMING)


def requested(lineage=0):
    return optimize_events.ProposalRequested(f"initial/{lineage}", RequestKind.INITIAL, lineage)


def received(usage, lineage=0, refusal=""):
    return optimize_events.ProposalReceived(
        f"initial/{lineage}", RequestKind.INITIAL, lineage, usage, refusal
    )


def entered(id="0.0", name="c", **known):
    return optimize_events.CandidateEntered(id, None, RequestKind.INITIAL, name, **known)


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
    return optimizing.ProgressLog()


def told(log):
    """What was told, without the clock."""
    return [line[10:] for line in log.stream.getvalue().splitlines()]


def test_a_log_has_a_line_for_each_step_and_what_it_has_cost(log):
    for event in (
        ASKING,
        Remark("up to 4 answers: about $1.20 in all."),
        received(PRICED),
        entered(note="first\nsecond"),
        entered("1.0", "d", duplicate_of="0.0"),
        received(PRICED, 2, "no idea"),
        arena_events.TimingProgress("0.0", 0),
        arena_events.TimingProgress("0.0", 6, Estimate(2.0, 1.9, 2.1, 6, 0.95)),
        arena_events.CandidateJudged("0.0", faster()),
        arena_events.CandidateJudged("2.0", rejected()),
        PhaseStarted(Phase.CONFIRMATION, "0.0"),
        optimize_events.CandidateDropped("0.0", "it crashed"),
    ):
        log.receive(event)
    assert told(log) == [
        "asking for candidates ...",
        "up to 4 answers: about $1.20 in all.",
        "lineage 0, initial: answered in 1.5 s; so far 1,234 tokens, $0.03",
        "0.0  proposed (initial): c (first; second)",
        "1.0  proposed (initial): same as 0.0",
        "lineage 2, initial: answered in 1.5 s; so far 2,468 tokens, $0.06; no idea",
        "0.0  timed: 6 sessions, 2.00x [1.90, 2.10]",
        "0.0  faster, 2.00x [1.90, 2.10]",
        "best so far: 0.0, 2.00x [1.90, 2.10]",
        "2.0  rejected: tests: 1 of 2 fails",
        "measuring 0.0 again ...",
        "0.0 is out: it crashed.",
    ]


def test_quick_free_replies_get_no_line(log):
    log.receive(received(Usage("codemod", seconds=0.4)))
    log.receive(received(Usage("script", cost_usd=None, seconds=0.4)))
    assert told(log) == []
    log.receive(received(Usage("claude", cost_usd=None, seconds=64.0)))
    assert told(log) == ["lineage 0, initial: answered in 64.0 s; so far cost unknown"]


def test_the_introduction_is_printed_only_if_there_is_work(log):
    log.intro = "up to 4 candidates"
    assert log.stream.getvalue() == ""
    log.receive(ASKING)
    log.receive(BASE_TIMING)
    assert log.stream.getvalue().splitlines()[0] == "up to 4 candidates"
    assert log.stream.getvalue().count("up to 4") == 1


def test_a_candidate_with_too_few_sessions_is_reported(log):
    log.receive(arena_events.TimingProgress("0.0", 1))
    few = Measurement(Verdict.INCONCLUSIVE, None, notes=("only 1 sessions fit into 2 s",))
    log.receive(
        arena_events.CandidateJudged(
            "0.0", Judgement("c", "d", Verdict.INCONCLUSIVE, measurement=few)
        )
    )
    assert told(log) == [
        "0.0  timed: 1 session",
        "0.0  inconclusive: only 1 sessions fit into 2 s",
    ]


def test_only_a_better_one_is_the_best_so_far(log):
    for id, ratio in (("0.0", 2.0), ("1.0", 1.5), ("2.0", 3.0)):
        log.receive(arena_events.CandidateJudged(id, faster(ratio)))
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
def test_the_known_part_of_the_usage_is_shown(usages, text):
    spent = UsageTotal()
    for usage in usages:
        spent.add(usage)
    assert optimizing.describe_usage(spent) == text


@pytest.mark.parametrize(
    ("cost", "text"), [(0, "$0"), (1e-5, "$0.00001"), (0.0028, "$0.0028"), (12.3, "$12.30")]
)
def test_small_sums_are_written_out(cost, text):
    assert spell_cost(cost) == text


@pytest.mark.parametrize(
    ("candidates", "benchmarks", "text"),
    [
        (1, 1, "one candidate; timing it twice takes 40 s at most"),
        (2, 1, "up to 2 candidates; timing them, and the best again, takes 80 s at most"),
        (6, 2, "up to 6 candidates; timing them, and the best again, takes 6 min at most"),
    ],
)
def test_what_timing_takes_at_most_holds_the_best_ones_second_time(candidates, benchmarks, text):
    bench = tuple(Benchmark(f"b{at}", "m:f", "i.py:g") for at in range(benchmarks))
    problem = CodeProblem("p", check=(Check(command=("true",)),), bench=bench, budget_s=20.0)
    optimizer = Optimizer(max_candidates=candidates, minimize=False)
    assert optimizer.describe_duration(problem) == f"{text}, and mostly far less"


def test_what_timing_takes_at_most_holds_the_parts_of_the_best_one():
    bench = (Benchmark("b", "m:f", "i.py:g"),)
    problem = CodeProblem("p", check=(Check(command=("true",)),), bench=bench, budget_s=20.0)
    whole = Optimizer(max_candidates=1, minimize=False).describe_duration(problem)
    parts = Optimizer(max_candidates=1).describe_duration(problem)
    assert " 40 s at most" in whole
    assert " 2 min at most" in parts


# -- a terminal --


@pytest.fixture
def view(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    return optimizing.LiveProgress()


def state(view):
    return [line[10:] for line in view.render(view.canvas).plain.splitlines()]


def test_the_state_of_things_follows_each_candidate_on_its_way(view):
    assert state(view) == ["starting ...", "0 proposed, 0 rejected; none is faster yet"]
    view.receive(BASE_TIMING)
    assert state(view)[0] == "timing the unchanged base ..."
    for lineage in range(3):
        view.receive(requested(lineage))
    assert state(view)[0] == "3 answers awaited ..."
    for lineage in range(3):
        view.receive(received(PRICED, lineage))
        view.receive(entered(f"{lineage}.0"))
        view.receive(arena_events.CheckStarted(f"{lineage}.0"))
    assert state(view)[0] == "checking 0.0, 1.0, 2.0 ..."
    view.receive(arena_events.CandidateJudged("2.0", rejected()))
    view.receive(optimize_events.CandidatePassed("1.0"))
    view.receive(optimize_events.CandidatePassed("0.0"))
    assert state(view) == [
        "1.0, 0.0 passed, to be timed ...",
        "3 proposed, 1 rejected; $0.09; none is faster yet; 3,702 tokens",
    ]
    view.receive(arena_events.TimingProgress("1.0", 0))
    assert state(view)[0] == "0.0 passed, to be timed; timing 1.0 ..."
    view.receive(arena_events.TimingProgress("1.0", 6, Estimate(2.0, 1.9, 2.1, 6, 0.95)))
    assert state(view)[0].endswith("timing 1.0: 6 sessions, 2.00x [1.90, 2.10] ...")
    view.receive(arena_events.CandidateJudged("1.0", faster()))
    view.receive(entered("3.0", "d", duplicate_of="1.0"))
    assert state(view) == [
        "0.0 passed, to be timed ...",
        "4 proposed, 1 rejected; $0.09; best: 1.0, 2.00x [1.90, 2.10]; "
        "1 the same as others; 3,702 tokens",
    ]


def test_a_wait_for_another_process_is_shown_until_it_ends(view):
    waiting = HostWaitStarted(7).text
    view.receive(requested())
    view.receive(HostWaitStarted(7))
    assert state(view)[0].startswith(f"{waiting}; 1 answer awaited")
    view.receive(HostWaitEnded())
    assert state(view)[0] == "1 answer awaited ..."


def test_a_step_that_had_to_wait_has_its_name_again_when_it_continues(view):
    view.receive(BASE_TIMING)
    for _ in range(2):  # it is said again and again
        view.receive(HostWaitStarted(7))
    view.receive(HostWaitEnded())
    assert state(view)[0] == "timing the unchanged base ..."
    view.receive(HostWaitStarted(7))
    view.receive(PhaseStarted(Phase.PROFILE, "0.0"))  # somebody else didn't have to wait
    view.receive(HostWaitEnded())
    assert state(view)[0] == "looking at where the time goes ..."


def test_the_state_below_a_line_is_as_of_that_line(view, monkeypatch):
    drawn = []
    monkeypatch.setattr(view.canvas._live, "refresh", lambda: drawn.append(state(view)[0]))
    view.receive(BASE_TIMING)
    assert drawn == ["timing the unchanged base ..."]


def test_who_could_not_be_judged_is_not_among_the_rejected(view):
    lost = Rejection(Reason.EVALUATOR, "no room")
    view.receive(entered())
    view.receive(
        arena_events.CandidateJudged(
            "0.0", Judgement("0.0", "d", Verdict.INCONCLUSIVE, rejection=lost)
        )
    )
    assert state(view)[1] == ("1 proposed, 0 rejected; 1 could not be judged; none is faster yet")


def test_many_at_once_are_counted_not_listed(view):
    for lineage in range(9):
        view.receive(arena_events.CheckStarted(f"{lineage}.0"))
    assert state(view)[0] == "checking 0.0, 1.0, 2.0, 3.0 and 5 more ..."


def test_lines_of_events_are_cut_to_the_width_of_the_terminal(view):
    view.receive(entered(note="long " * 50))
    (line,) = view.canvas._console.file.getvalue().splitlines()
    assert len(line) < 60
    assert line.endswith("...")


def test_it_is_drawn_when_timing_begins_and_seldom_afterwards(view, monkeypatch):
    drawn = []
    monkeypatch.setattr(view.canvas._live, "refresh", lambda: drawn.append(view.timed))
    monkeypatch.setattr(live.time, "monotonic", lambda: 100.0)
    view.receive(arena_events.TimingProgress("0.0", 0))
    for sessions in range(1, 7):
        view.receive(arena_events.TimingProgress("0.0", sessions))
    assert drawn == ["0.0"]


def test_it_is_drawn_where_people_look_not_into_the_run(monkeypatch):
    """A run's own standard error is kept with the run."""
    people = io.StringIO()
    monkeypatch.setattr(sys, "stderr", people)
    view = optimizing.LiveProgress()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    view.receive(ASKING)
    assert "asking for candidates ..." in people.getvalue()


def test_what_to_expect_stands_above_the_state_of_things(view):
    """Not printed past it, into the middle of what is drawn."""
    view.intro, view.stream = "up to 4 candidates", io.StringIO()
    view.receive(ASKING)
    shown = view.canvas._console.file.getvalue().splitlines()
    assert shown[0] == "up to 4 candidates"
    assert (len(shown), view.stream.getvalue()) == (2, "")


# -- which of them --


def test_the_view_fits_where_it_is_shown(monkeypatch):
    assert optimizing.make_display("", is_silent=True)[0] is ignore_event
    monkeypatch.setattr(optimizing, "can_draw", lambda: False)
    emit, within = optimizing.make_display("", is_silent=False)
    assert (type(emit.__self__), type(within)) == (optimizing.ProgressLog, nullcontext)
    monkeypatch.setattr(optimizing, "can_draw", lambda: True)
    emit, within = optimizing.make_display("", is_silent=False)
    assert isinstance(emit.__self__, optimizing.LiveProgress)
    before = set(threading.enumerate())
    with within:
        (drawing,) = set(threading.enumerate()) - before
    assert not drawing.is_alive()


def test_a_request_that_is_withdrawn_is_not_awaited_any_more(view):
    view.receive(requested())
    view.receive(optimize_events.RequestWithdrawn("initial/0", RequestKind.INITIAL, 0))
    assert state(view)[0] == "starting ..."


@pytest.mark.parametrize(
    ("told", "code", "said"),
    [
        ("StudyError: bench: a\ncheck: b", 2, "p.yaml: bench: a\np.yaml: check: b"),
        ("MisfitError: bench.b: too long", 2, "p.yaml: bench.b: too long"),
        ("LabError: no room", 4, "no room; the same command continues where it stopped"),
        ("ValueError: odd", 4, "ValueError: odd; the same command continues where it stopped"),
    ],
)
def test_a_failed_run_is_reported_with_its_kind_of_error(told, code, said):
    error = explain_failure(told, Path("p.yaml"), "chat")
    assert (error.exit_code, str(error)) == (code, said)
