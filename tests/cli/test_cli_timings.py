"""What the clock said, as people see it: the table, what stands below it, and the live view."""

import itertools
import re
import threading
from dataclasses import replace

import anyio
import pytest

from fairtrial.arena import (
    Basis,
    Comparison,
    Estimate,
    Evaluation,
    Judgement,
    Measurement,
    Pair,
    Reason,
    Rejection,
    Session,
    Timing,
    Verdict,
    events as arena_events,
    machine_survey,
)
from fairtrial.arena.model.figures import percent_text, seconds_text
from fairtrial.arena.model.timings import TimingTopic
from fairtrial.arena.timing.stats.ratio_text import estimate_text, ratio_text
from fairtrial.cli import (
    compare,
    doctor,
    evaluate_progress as judging,
    live_display as live,
    timing_text as timings,
    verdict_rows,
    verdict_text as verdicts,
)
from fairtrial.cli.table import cell_width
from fairtrial.core import LabError
from fairtrial.core.events import HostWaitEnded, HostWaitStarted, Phase, PhaseStarted
from fairtrial.sandbox import capabilities

FASTER, SLOWER = Verdict.FASTER, Verdict.SLOWER
EQUIVALENT, INCONCLUSIVE = Verdict.EQUIVALENT, Verdict.INCONCLUSIVE


def estimate(ratio=1.42, low=1.38, high=1.46, sessions=6, confidence=0.95):
    return Estimate(ratio, low, high, sessions, confidence)


def timing(name="1k-nodes", verdict=FASTER, found=None, **others):
    return Timing(name, verdict, found or estimate(), base_s=4.1e-4, **others)


def measured(verdict=FASTER, found=None, **others):
    found = estimate() if found is None else found
    others = {"timings": (timing(verdict=verdict, found=found),), "seconds": 3.4} | others
    return Measurement(verdict, found or None, **others)


def judged(name="deque.diff", measurement=None, **others):
    given = {"basis": Basis.COMPARED, "check_s": 0.4, "peak_rss_mb": 38.2} | others
    verdict = measurement.verdict if measurement else Verdict.PASSED
    return Judgement(name, "d" * 32, verdict, measurement=measurement, **given)


def rejected(name="wrong.diff", message="1 of 2 tests don't pass: tests/test_a.py::test_b"):
    rejection = Rejection(Reason.TESTS, message)
    return Judgement(name, "d" * 32, Verdict.REJECTED, rejection=rejection, check_s=1.5)


def told(measurement):
    """What is said below the table, on one line."""
    return " ".join(" ".join(timings.measurement_lines(measurement)).split())


@pytest.fixture
def show(capsys, monkeypatch):
    """What is printed of judgements, `columns` wide; None for a file."""

    def show(*judgements, columns=80):
        monkeypatch.delenv("COLUMNS", raising=False)
        if columns:
            monkeypatch.setenv("COLUMNS", str(columns))
        verdicts.print_evaluation(Evaluation("twice", "b" * 40, "plain", judgements, ()))
        return capsys.readouterr().out

    return show


# -- ratios --


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (estimate(), "1.42x [1.38, 1.46]"),
        (estimate(1.0061, 1.0019, 1.0103), "1.006x [1.002, 1.010]"),
        (estimate(1.0162, 1.0004, 1.0321), "1.0162x [1.0004, 1.0321]"),  # not [1.00, ...
        (estimate(0.9997, 0.9912, 1.0083), "1.000x [0.991, 1.008]"),
        (estimate(12.34, 11.8, 12.91), "12.3x [11.8, 12.9]"),
        (estimate(143.2, 139.9, 147.0), "143x [140, 147]"),
        (estimate(0.0712, 0.0701, 0.0723), "0.0712x [0.0701, 0.0723]"),
        (estimate(0.00123, 0.00121, 0.00125), "0.00123x [0.00121, 0.00125]"),
        (estimate(1.2, 0.0, float("inf")), "1.20x [0.00, inf]"),
        (estimate(1.5, 1.5, 1.5), "1.5000x [1.5000, 1.5000]"),
        (None, ""),
    ],
)
def test_an_interval_has_its_significant_digits(found, text):
    assert estimate_text(found) == text


def test_a_ratio_alone_says_on_which_side_of_1_it_is():
    assert [ratio_text(each) for each in (1.424, 0.95, 143.2)] == ["1.42x", "0.95x", "143x"]


def test_times_and_shares_are_short():
    texts = [seconds_text(seconds) for seconds in (12, 0.123, 4.1e-4, 3e-8)]
    assert texts == ["12 s", "123 ms", "410 µs", "30 ns"]
    shares = [percent_text(share) for share in (0.02, 0.0134, 0.25)]
    assert shares == ["2 %", "1.3 %", "25 %"]


# -- the table --


def test_a_wide_table_has_a_column_for_each_figure(show):
    rows = [judged(measurement=measured()), rejected(), judged("plain.diff")]
    header, rule, faster, wrong, passed = show(*rows, columns=160).split("\n\n")[0].splitlines()
    columns = ["candidate", "verdict", "speed", "sessions", "checks", "timing", "memory", "why"]
    assert header.split() == columns
    assert set(rule) == {"─"}
    assert re.split(r"\s{2,}", faster) == [
        "deque.diff", "faster", "1.42x [1.38, 1.46]", "6", "0.4 s", "3.4 s", "38 MB",
        "basis: compared results",
    ]  # fmt: skip
    assert re.split(r"\s{2,}", wrong)[:3] == ["wrong.diff", "rejected", "1.5 s"]
    assert re.split(r"\s{2,}", passed)[:4] == ["plain.diff", "passed", "0.4 s", "38 MB"]
    assert header.index("why") == faster.index("basis") == wrong.index("tests:")


def test_a_narrow_table_keeps_names_and_puts_the_rest_below(show):
    name = "a-name-that-is-rather-long-0017.diff"
    table = show(judged(name, measured()), rejected()).split("\n\n")[0].splitlines()
    assert table[0].split() == ["candidate", "verdict", "speed", "memory"]
    assert re.split(r"\s{2,}", table[2]) == [name, "faster", "1.42x [1.38, 1.46]", "38 MB"]
    assert table[3] == "  6 sessions; checks 0.4 s; timing 3.4 s; basis: compared results"
    assert table[4].split() == ["wrong.diff", "rejected"]
    assert table[5].startswith("  checks 1.5 s; tests: 1 of 2")


def test_into_a_file_each_candidate_is_one_line(show):
    rows = [judged("n" * 60, measured()), rejected(message="m" * 200)]
    table = show(*rows, columns=None).split("\n\n")[0].splitlines()
    assert len(table) == 4
    assert "basis: compared results" in table[2]
    assert "m" * 200 in table[3]


@pytest.mark.parametrize("columns", [40, 60, 80, 117, 140, 200])
def test_no_line_of_a_table_is_too_long(show, columns):
    tiny = measured(EQUIVALENT, estimate(1.0162, 1.0004, 1.0321, 46))
    rows = [
        judged("a" * 90, measured()),
        judged("漢字" * 15, tiny, not_exercised=("src/some/folder/deep/in/the/tree.py",)),
        judged("open", measured(INCONCLUSIVE)),
        rejected(message="x" * 300),
    ]
    table = show(*rows, columns=columns).split("\n\n")[0].splitlines()
    assert max(map(cell_width, table)) <= columns
    whole = "".join(table).replace(" ", "")
    assert "1.0162x[1.0004,1.0321]" in whole
    assert "46" in whole


def test_in_a_pipe_the_rule_is_as_wide_as_the_table(show):
    rows = [verdicts.make_row(each) for each in (judged(), rejected(message="x" * 150))]
    header, rule, *lines = ["".join(line[:3]) for line in verdict_rows.lay_out(rows, None)]
    widest = max(map(cell_width, lines))
    assert widest > 150
    assert len(rule) == widest
    assert cell_width(header.rstrip()) <= widest


def test_without_anything_timed_the_table_is_as_before(show):
    assert show(judged()).splitlines()[0].split() == ["candidate", "verdict", "why", "time"]


def test_only_the_verdict_has_its_colour(monkeypatch):
    rows = [verdicts.make_row(judged(measurement=measured(SLOWER, estimate(0.9, 0.8, 0.95))))]
    for width in (80, 200):
        before, verdict, after, color = list(verdict_rows.lay_out(rows, width))[2]
        assert (verdict.strip(), color) == ("slower", "red")
        assert "0.90x" in after
        assert before.startswith("deque.diff")
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in "".join(timings.measurement_lines(measured(adopt=True)))
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b[32m" in "".join(timings.measurement_lines(measured(adopt=True)))


def test_the_most_memory_counts_and_one_that_inherits_has_no_time_of_its_own():
    found = measured(timings=(timing(peak_rss_mb=Pair(30, 90)),))
    row = verdicts.make_row(judged(measurement=found).inherited_by("twin.diff"))
    assert (row.memory, row.timing, row.time, row.sessions) == ("90 MB", "", "", "6")


# -- what stands below it --


@pytest.fixture(autouse=True)
def no_colour(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")


def test_a_winner_is_to_be_adopted_and_was_measured_again():
    text = told(measured(adopt=True, is_confirmed=True))
    assert text == "adopt: faster, 1.42x [1.38, 1.46], measured again in fresh sessions"


def test_vetoes_say_why_not():
    text = told(measured(vetoes=("cli got slower: 0.95x", "cli: it takes 1.50 times to start")))
    assert text.startswith("don't adopt: faster, 1.42x [1.38, 1.46], but: cli got slower: 0.95x; ")
    assert text.endswith("to start")


@pytest.mark.parametrize(
    ("verdict", "found", "text"),
    [
        (EQUIVALENT, (1.006, 1.002, 1.010), "equivalent (tiny gain, 1.006x [1.002, 1.010])"),
        (EQUIVALENT, (0.994, 0.990, 0.998), "equivalent (tiny loss, 0.994x [0.990, 0.998])"),
        (
            EQUIVALENT,
            (1.0, 0.991, 1.008),
            "equivalent (a difference is below 0.9 %, 1.000x [0.991, 1.008])",
        ),
        (SLOWER, (0.9, 0.85, 0.95), "slower, 0.90x [0.85, 0.95]"),
        (
            FASTER,
            (1.016, 1.002, 1.032),
            "faster, 1.016x [1.002, 1.032]: less than the smallest effect of interest",
        ),
    ],
)
def test_what_is_not_adopted_is_worded_with_its_interval(verdict, found, text):
    assert told(measured(verdict, estimate(*found))) == f"don't adopt: {text}"


def test_nothing_is_ever_called_no_difference(show):
    for verdict in (FASTER, SLOWER, EQUIVALENT, INCONCLUSIVE):
        for found in (estimate(1.0, 0.99, 1.01), False):
            assert "no difference" not in show(judged(measurement=measured(verdict, found)))


def test_an_open_one_says_what_more_time_would_show():
    open_one = measured(INCONCLUSIVE, estimate(1.0, 0.96, 1.0416, sessions=16), seconds=20)
    assert told(open_one) == (
        "not decided: inconclusive, 1.00x [0.96, 1.04]: after 16 sessions a change below about "
        "4.2 % can't be told from noise; with 46 sessions, about 58 s (budget_s), one of about "
        "2.5 % could be seen"
    )
    used_up = measured(INCONCLUSIVE, estimate(1.0, 0.96, 1.0416, sessions=46))
    assert "and more are not run; `fairtrial aa` says" in told(used_up)
    assert "budget_s" not in told(used_up)


def test_too_few_sessions_say_how_long_enough_would_take():
    sessions = tuple(Session("1k-nodes", number, (), 7.0) for number in range(3))
    few = measured(INCONCLUSIVE, False, seconds=21, sessions=sessions, timings=())
    assert told(few) == (
        "not decided: inconclusive: 3 sessions, and an interval takes 6: about 42 s (budget_s)"
    )
    none = measured(INCONCLUSIVE, False, seconds=0, timings=())
    assert "0 sessions, and an interval takes 6" in told(none)


def test_one_that_lost_a_race_gets_no_advice_to_raise_the_budget():
    note = "out of the race after 6 sessions: beaten (deque.diff)"
    lost = measured(INCONCLUSIVE, estimate(1.0, 0.96, 1.04), notes=(note,), is_eliminated=True)
    text = told(lost)
    assert "budget_s" not in text
    assert f"note: {note}" in text


def test_several_benchmarks_have_a_line_each(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    several = (timing(), timing("cli" * 30, SLOWER, estimate(0.95, 0.93, 0.98)))
    several += (Timing("new", INCONCLUSIVE, None),)
    lines = list(timings.measurement_lines(measured(timings=several)))[1:]
    cells = [re.split(r"\s{2,}", line.strip()) for line in lines]
    assert cells[0] == ["1k-nodes", "faster", "1.42x [1.38, 1.46]", "base 410 µs"]
    assert cells[1][1:] == ["slower", "0.95x [0.93, 0.98]", "base 410 µs"]
    assert cells[2] == ["new", "inconclusive", "too few sessions"]
    assert max(map(cell_width, lines)) <= 80
    assert len(list(timings.measurement_lines(measured(timings=several[:1])))) == 1


def test_a_comparison_names_what_its_times_are_of(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    both = measured(timings=(timing(), timing("cli")))
    compare.print_comparison(Comparison("twice", judged("old.diff"), judged("new.diff"), both))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "new.diff against old.diff: faster, 1.42x [1.38, 1.46]"
    assert [line.split("  ")[-1] for line in lines[1:3]] == ["old.diff 410 µs"] * 2


def test_a_comparison_without_times_says_who_was_rejected(capsys):
    compare.print_comparison(Comparison("twice", judged("old.diff"), rejected(), None))
    assert "\nNot timed: wrong.diff was rejected.\n" in capsys.readouterr().out
    compare.print_comparison(Comparison("twice", rejected("old.diff"), rejected(), None))
    assert "Not timed: old.diff and wrong.diff were rejected." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("cpu", "text"),
    [
        (1.41, None),
        (1.37, None),  # outside of the interval, but about the same
        (None, None),
        (1.0, "by CPU time it is 1.00x, by the clock on the wall 1.42x: several cores"),
        (2.0, "by CPU time it is 2.00x, by the clock on the wall 1.42x: waiting, or other"),
    ],
)
def test_cpu_time_is_shown_where_it_disagrees_with_wall_time(cpu, text):
    found = told(measured(timings=(timing(cpu_ratio=cpu),)))
    assert ("by CPU time" in found) == (text is not None)
    assert text is None or text in found


def test_what_vetoes_and_notes_have_said_is_not_said_again():
    mentioned = (TimingTopic.CPU_TIME,)
    slow_start = timing(cpu_ratio=1.0, startup=1.5, outside=0.3, mentioned=mentioned)
    text = told(measured(timings=(slow_start,)))
    assert "start-up takes 1.50 times" in text
    assert "not being timed: 30 %" in text
    assert "by CPU time" not in text
    vetoes = ("1k-nodes: 1.5 times as long to start", "1k-nodes: while the clock doesn't run")
    mentioned += (TimingTopic.STARTUP, TimingTopic.OUTSIDE_WORK)
    vetoed = replace(slow_start, mentioned=mentioned)
    text = told(measured(timings=(vetoed,), vetoes=vetoes))
    assert "start-up" not in text
    assert "not being timed" not in text


def test_memory_is_shown_where_it_grew_or_shrank():
    def text(base, candidate):
        return told(measured(timings=(timing(peak_rss_mb=Pair(base, candidate)),)))

    assert "memory: 90 MB while timed, 3.00 times the base's 30 MB" in text(30, 90)
    assert "0.33 times" in text(90, 30)
    assert "memory" not in text(30, 31)


def test_notes_can_not_steer_the_terminal(show):
    evil = "\x1b[2J"
    found = measured(
        notes=(evil,),
        vetoes=(evil,),
        timings=(timing(evil, notes=(evil,)), timing(f"{evil}2", startup=1.5)),
    )
    assert "\x1b" not in show(judged(evil, found))


def test_one_figure_has_the_same_digits_wherever_it_stands(show):
    found = estimate(76.27, 4.2, 1607.4)
    odd = timing(found=found, cpu_ratio=2.0)
    text = show(judged("c", measured(found=found, adopt=True, timings=(odd,))))
    assert "76x [4, 1607]" in text
    assert "To be adopted: c (76x)." in text
    assert "by the clock on the wall 76x" in " ".join(text.split())
    assert "76." not in text


def test_the_end_says_whom_to_adopt_how_sure_and_how_long_the_host_was_idle(show):
    rows = [
        judged("second", measured(adopt=True, found=estimate(1.9, 1.8, 2.0, confidence=0.975))),
        judged("first", measured(adopt=True, is_confirmed=True, waited_s=1.25)),
        judged("third", measured(SLOWER)),
    ]
    text = show(*rows)
    assert "\nTo be adopted: first (1.42x).\nAlone, these would be adopted, too: second" in text
    (row,) = re.findall(r"^first .*\n.*", text, re.M)
    assert "the best, measured again" in row
    assert text.count("the best, measured again") == 1
    alone = show(*[replace(row, measurement=measured(adopt=True)) for row in rows[:2]])
    assert "\nTo be adopted, each alone: second (1.42x), first (1.42x); together they" in alone
    assert "measured again" not in alone
    assert "Intervals are of 95 % and 97.5 %; the higher is of a race" in " ".join(text.split())
    assert "stood idle for 1.2 s" in text
    text = show(judged(measurement=measured(SLOWER)))
    assert "\n1 candidate timed, none to be adopted.\nIntervals are of 95 %.\n" in text
    assert "idle" not in text
    assert "adopt" not in show(judged())


def test_one_that_was_timed_after_tests_alone_is_labelled_as_such(show):
    first = judged("first", measured())
    weak = judged("weak", measured(), basis=Basis.TESTS)
    assert "A pass that rests on tests only" in show(first, weak)
    assert "A pass that rests on" not in show(first)


def test_of_one_that_inherits_nothing_is_said_twice(show):
    first = judged(measurement=measured(adopt=True))
    assert show(first, first.inherited_by("twin")).count("adopt: faster") == 1


# -- while it runs --


@pytest.fixture
def table(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "12")
    return judging.LiveTable([f"c{number}" for number in range(30)])


def lines_of(table):
    return table._render(table.canvas).plain.splitlines()


def test_the_live_table_shows_who_is_timed_and_how_it_stands(table):
    for place in range(20):
        table.receive(arena_events.CheckStarted(f"c{place}"))
        if place > 2:
            table.receive(arena_events.CandidateJudged(f"c{place}", judged(f"c{place}")))
    table.receive(arena_events.TimingProgress("c1", 0, None))
    assert lines_of(table)[-1].startswith("timing c1; 17 of 30 judged: 17 passed ...")
    table.receive(arena_events.TimingProgress("c0", 6, estimate()))
    shown = lines_of(table)
    assert shown[0].split() == ["candidate", "verdict", "speed", "sessions"]
    assert shown[2].split() == ["c0", "timing", "1.42x", "[1.38,", "1.46]", "6"]
    assert shown[3].split() == ["c1", "timing", "0"]
    assert shown[4].split() == ["c2", "checking"]
    assert shown[-1].startswith("timing c0: 6 sessions, 1.42x [1.38, 1.46] (1 more in the race)")
    assert max(map(cell_width, shown[:-1])) <= 80  # the last one is cut when it is drawn
    table.receive(arena_events.CandidateJudged("c0", judged("c0", measured())))
    table.receive(arena_events.CandidateJudged("c1", judged("c1", measured())))
    assert lines_of(table)[-1].startswith("19 of 30 judged")


class Clock:
    def __init__(self):
        self.now = 100.0

    def monotonic(self):
        return self.now


def test_a_step_that_had_to_wait_has_its_name_again_when_it_continues(table, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(live, "time", clock)
    monkeypatch.setattr(judging, "time", clock)
    clock.now = 100.0
    table.receive(PhaseStarted(Phase.BASE_TIMING))
    clock.now = 105.0
    table.receive(HostWaitStarted(7))
    assert lines_of(table)[-1].startswith("waiting: another fairtrial")
    clock.now = 110.0
    table.receive(HostWaitEnded())
    assert lines_of(table)[-1].startswith("timing the unchanged base ... 10 s")


@pytest.fixture
def drawn(table, monkeypatch):
    """When the table was drawn, by a clock that stands still until it is set."""
    clock, times = Clock(), []
    monkeypatch.setattr(live, "time", clock)
    monkeypatch.setattr(table.canvas._live, "refresh", lambda: times.append(clock.now))
    return clock, times


def test_while_timing_the_table_is_drawn_once_a_second_at_most(table, drawn):
    clock, times = drawn
    for step in range(40):  # a look every 0.1 s
        clock.now = 100 + step / 10
        table.receive(arena_events.TimingProgress("c0", step, None))
    assert times == [100.0, 101.0, 102.0, 103.0]


class Ticks:
    """Stands in for the event that ends the drawing thread; notes how long it would have waited."""

    def __init__(self, clock, count):
        self._clock, self._left, self.waits = clock, count, []

    def wait(self, seconds):
        self.waits.append(seconds)
        self._clock.now += seconds
        self._left -= 1
        return self._left < 0


def test_while_timing_nothing_is_drawn_unasked_but_a_sign_of_life(table, drawn):
    clock, times = drawn
    table.canvas._ended = Ticks(clock, 8)
    table.canvas._keep_drawing()
    assert len(times) == 8  # a second's worth
    table.receive(arena_events.TimingProgress("c0", 6, None))
    times.clear()
    table.canvas._ended = Ticks(clock, 25)
    table.canvas._keep_drawing()
    assert set(table.canvas._ended.waits) == {live.TIMED_REFRESH_S}
    assert [round(b - a) for a, b in itertools.pairwise(times)] == [live.QUIET_S]
    table.receive(arena_events.CandidateJudged("c0", judged("c0", measured())))
    table.canvas._ended = Ticks(clock, 3)
    table.canvas._keep_drawing()
    assert table.canvas._ended.waits == [1 / live.REFRESH_PER_S] * 4


def test_a_live_table_leaves_no_thread_behind(table, monkeypatch):
    ours, started, start = threading.get_ident(), [], threading.Thread.start

    def note_and_start(thread):
        if threading.get_ident() == ours:  # others may have threads, which come and go
            started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", note_and_start)
    with table:
        assert [thread.is_alive() for thread in started] == [True]
    assert [thread.is_alive() for thread in started] == [False]


def test_a_log_has_few_lines_of_timing(monkeypatch, capsys):
    clock = Clock()
    monkeypatch.setattr(judging, "time", clock)
    lines = judging.EvaluationLog(["a", "b"])
    for step in range(30):
        clock.now = 100 + step
        lines.receive(
            arena_events.TimingProgress("ab"[step % 2], step, estimate() if step >= 6 else None)
        )
    assert capsys.readouterr().err.splitlines() == [
        "timing a ...",
        "timing a: 10 sessions, 1.42x [1.38, 1.46] (1 more in the race) ...",
        "timing a: 20 sessions, 1.42x [1.38, 1.46] (1 more in the race) ...",
    ]


# -- doctor --


def test_doctor_has_a_section_for_the_clock(capsys, monkeypatch):
    facts = (capabilities.HostFact("turbo", "partly", "on", "To turn it off:\n$ echo 1"),)
    survey = capabilities.HostSurvey(
        (capabilities.HostFact("git", "yes", "2.39"),), "bubblewrap", True, ()
    )
    visible = capabilities.HostFact("visible", "yes", "2 % in 5 s")
    facts += (capabilities.HostFact("counts", "no", "none"),)
    monkeypatch.setattr(machine_survey, "survey_machine", lambda: (survey, facts))

    async def measure(seconds):
        return visible

    monkeypatch.setattr(machine_survey, "survey_detectable_effect", measure)
    assert doctor.command.callback(as_json=False, quick=False) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == ["For candidates that run", "yes     git      2.39"]
    assert shown[3:5] == ["For candidates that are timed", "partly  turbo    on"]
    assert shown[6].strip() == "$ echo 1"
    assert shown[7] == "no      counts   none"
    assert shown[8] == "yes     visible  2 % in 5 s"
    survey = replace(survey, is_full=False)
    assert doctor.command.callback(as_json=True, quick=True) == 4
    told = capsys.readouterr().out
    assert '"clock": [' in told
    assert "visible" not in told


def test_doctor_says_when_nothing_can_be_timed(monkeypatch):
    def refuse(*names):
        raise LabError("git can't make a repository: full")

    monkeypatch.setattr(machine_survey, "builtin_problem", refuse)
    fact = anyio.run(machine_survey.survey_detectable_effect, 5.0)
    assert fact.status == "no"
    assert fact.detail == "nothing could be timed: git can't make a repository: full"
