"""Summaries of sessions: verdicts, estimates, vetoes and notes."""

import math
import random
from dataclasses import replace
from statistics import fmean

import pytest
from clock_kit import make_replicates, make_session
from hypothesis import given, strategies as st

from fairtrial.arena import Pair, Session, Verdict
from fairtrial.arena.timing.stats.autocorrelation import session_look
from fairtrial.arena.timing.stats.ratio_text import estimate_text, ratio_text
from fairtrial.arena.timing.stats.sequential import adopt
from fairtrial.arena.timing.summary import replicate_statistics, summarize

RULES = {"alpha": 0.05, "min_effect": 0.02}


def draw(speed, count=10, spread=0.005, seed=1):
    """Logarithms of candidate/base of so many sessions."""
    rng = random.Random(f"{speed}/{seed}")
    return [rng.gauss(-math.log(speed), spread) for _ in range(count)]


def sum_up(speed=1.5, count=10, spread=0.005, **more):
    return summarize(make_replicates(draw(speed, count, spread), **more), **RULES)


def several(*speeds, count=10, **more):
    """Replicates of several benchmarks."""
    drawn = [draw(speed, count, seed=place) for place, speed in enumerate(speeds)]
    return [
        tuple(
            make_session(math.exp(log), benchmark=f"b{place}", number=number, **more)
            for place, log in enumerate(logs)
        )
        for number, logs in enumerate(zip(*drawn, strict=True))
    ]


def test_the_statistic_of_a_session_is_its_kept_rounds_median():
    logs = draw(1.3)
    assert replicate_statistics(make_replicates(logs)) == pytest.approx(logs)


@pytest.mark.parametrize(
    ("speed", "spread", "verdict", "is_adopted"),
    [
        (1.5, 0.005, Verdict.FASTER, True),
        (0.7, 0.005, Verdict.SLOWER, False),
        (1.0, 0.002, Verdict.EQUIVALENT, False),
        (1.01, 0.001, Verdict.EQUIVALENT, False),  # certainly faster, and by too little: bench 8
        (1.0, 0.3, Verdict.INCONCLUSIVE, False),
        (0.995, 0.001, Verdict.EQUIVALENT, False),
    ],
)
def test_verdicts(speed, spread, verdict, is_adopted):
    found = sum_up(speed, spread=spread)
    assert (found.verdict, found.adopt, found.vetoes) == (verdict, is_adopted, ())
    assert found.estimate.low < found.estimate.ratio < found.estimate.high
    assert found.estimate.low < speed < found.estimate.high
    assert (found.estimate.sessions, found.estimate.confidence) == (10, 0.95)


def test_a_tiny_gain_is_equivalent_although_its_interval_excludes_none():
    found = sum_up(1.01, spread=0.001)
    assert 1 < found.estimate.low < found.estimate.high < 1.02


def test_fewer_than_six_sessions_say_nothing():
    found = sum_up(9.0, count=5)
    assert (found.verdict, found.estimate, found.adopt) == (Verdict.INCONCLUSIVE, None, False)
    assert found.timings[0].estimate is None
    assert len(found.sessions) == 5


def test_faster_by_less_than_matters_as_far_as_one_knows_is_not_adopted():
    logs = [-0.015 + sign * 0.008 for sign in (-1, 1)] * 5
    found = summarize(make_replicates(logs), **RULES)
    assert found.verdict == Verdict.FASTER
    assert not found.adopt
    assert summarize(make_replicates(logs), alpha=0.05, min_effect=0.01).adopt


def test_several_benchmarks_come_to_their_geometric_mean():
    replicates = several(2.0, 1.5, 1.2)
    found = summarize(replicates, **RULES)
    ratios = [timing.estimate.ratio for timing in found.timings]
    assert found.estimate.ratio == pytest.approx(math.prod(ratios) ** (1 / 3))
    assert found.estimate.ratio == pytest.approx((2.0 * 1.5 * 1.2) ** (1 / 3), rel=0.01)
    assert [timing.benchmark for timing in found.timings] == ["b0", "b1", "b2"]
    assert found.estimate.sessions == 10  # replicates, not sessions times benchmarks
    assert len(found.sessions) == 30
    assert found.adopt


def test_one_that_got_slower_vetoes_although_the_mean_is_faster():
    found = summarize(several(4.0, 0.8), **RULES)
    assert found.verdict == Verdict.FASTER
    assert not found.adopt
    (veto,) = found.vetoes
    told = estimate_text(found.timings[1].estimate)  # with the digits that it has in tables
    assert told.startswith("0.800x [")
    assert veto == f"b1 got slower: {told.partition(' ')[0]}"
    assert [timing.verdict for timing in found.timings] == [Verdict.FASTER, Verdict.SLOWER]


def test_one_alone_that_got_slower_needs_no_veto():
    assert sum_up(0.8).vetoes == ()


@pytest.mark.parametrize(("growth", "is_vetoed"), [(0.5, False), (1.19, False), (1.21, True)])
def test_a_slower_start_vetoes(growth, is_vetoed):
    found = sum_up(startup_s=Pair(0.2, 0.2 * growth))
    assert found.verdict == Verdict.FASTER
    assert (bool(found.vetoes), found.adopt) == (is_vetoed, not is_vetoed)
    assert found.timings[0].startup == pytest.approx(growth)
    assert all("1.21 times as long as the base to start" in veto for veto in found.vetoes)


def test_a_start_that_is_slow_now_and_then_vetoes_nothing():
    replicates = make_replicates(draw(1.5), startup_s=Pair(0.2, 0.2))
    for place in (1, 4, 5, 8):
        replicates[place] = (replace(replicates[place][0], startup_s=Pair(0.2, 4.0)),)
    assert summarize(replicates, **RULES).vetoes == ()


BASE_SAMPLE_S = 1.3 * 2e-3 + 1e-4  # the median round's


@pytest.mark.parametrize(("share", "is_vetoed"), [(-0.5, False), (0.09, False), (0.11, True)])
def test_work_outside_of_samples_vetoes(share, is_vetoed):
    found = sum_up(outside_s=Pair(1e-4, 1.1e-4 + share * BASE_SAMPLE_S))
    assert (bool(found.vetoes), found.adopt) == (is_vetoed, not is_vetoed)
    assert found.timings[0].outside == pytest.approx(max(share, 0.0))
    assert all("11% of the base's time" in veto for veto in found.vetoes)


def test_where_reading_takes_long_a_tenth_more_of_it_is_a_doubt_and_no_accusation():
    """Another use of memory and caches changes that much, and a call is short beside it."""
    found = sum_up(outside_s=Pair(0.03, 0.033))
    assert found.timings[0].outside == 0.0
    (doubt,) = found.vetoes
    assert "nothing is held against the candidate" in doubt


@pytest.mark.parametrize(
    ("others", "is_vetoed"),
    [(Pair(0.0, 0.2), False), (Pair(0.0, 0.3), True), (Pair(0.8, 1.1), False), (None, False)],
)
def test_work_of_other_processes_is_a_veto_unless_the_base_does_so_too(others, is_vetoed):
    scaled = others and Pair(others.base * BASE_SAMPLE_S, others.candidate * BASE_SAMPLE_S)
    found = sum_up(others_s=scaled)
    assert found.adopt == (not is_vetoed)
    assert all("is left to other processes" in veto for veto in found.vetoes)


def test_work_outside_counts_as_far_as_sessions_agree_on_it():
    replicates = make_replicates(draw(1.5), outside_s=Pair(1e-3, 1e-3))
    replicates[3] = (replace(replicates[3][0], outside_s=Pair(1e-3, 1e-3 + 3 * BASE_SAMPLE_S)),)
    found = summarize(replicates, **RULES)
    assert (found.vetoes, found.timings[0].outside) == ((), 0.0)


@pytest.mark.parametrize(("count", "share"), [(1, 0.0), (3, 0.0), (4, 1.0)])
def test_few_sessions_say_nothing_of_work_outside(count, share):
    """On a busy machine each of them may seem to do more than a sample's work elsewhere."""
    assert sum_up(count=count, outside_s=Pair(0.0, 9.0)).timings[0].outside == share


def test_unknown_figures_are_none():
    (timing,) = sum_up().timings
    assert timing.startup is timing.outside is timing.peak_rss_mb is None
    assert timing.notes == ()


@pytest.mark.parametrize(
    ("speed", "cpu", "words"),
    [
        (2.0, 2.0, None),
        (2.0, 2.05, None),
        (2.0, 1.0, "it works more than it saves"),
        (1.0, 2.0, "it works less"),
    ],
)
def test_contradicting_wall_and_cpu_times_get_a_note(speed, cpu, words):
    logs = draw(speed, spread=0.002)
    replicates = [
        (make_session(math.exp(log), number=at, cpu_ratio=math.exp(log) * speed / cpu),)
        for at, log in enumerate(logs)
    ]
    found = summarize(replicates, **RULES)
    (timing,) = found.timings
    assert timing.cpu_ratio == pytest.approx(cpu, rel=0.02)
    assert len(timing.notes) == (words is not None)
    clock, cpu_time = estimate_text(timing.estimate).partition(" ")[0], ratio_text(timing.cpu_ratio)
    for note in timing.notes:
        assert note.startswith(f"the clock says {clock}, CPU time {cpu_time}: {words}")
    # CPU time is told beside; what decides is the clock on the wall.
    assert found.verdict == (Verdict.FASTER if speed == 2.0 else Verdict.EQUIVALENT)


def test_where_the_base_does_not_compute_all_the_time_one_thing_is_said():
    def disturbed(session):
        shares = {"base": 0.49, "candidate": 0.49 * 1.44 / 1.26}
        samples = (
            replace(sample, cpu_s=sample.cpu_s * shares[sample.arm]) for sample in session.samples
        )
        return replace(session, samples=tuple(samples))

    replicates = [(disturbed(each),) for (each,) in make_replicates(draw(1.44))]
    (timing,) = summarize(replicates, **RULES).timings
    (note,) = timing.notes
    assert note.startswith("only 49% of the base's time was spent computing")
    assert timing.cpu_ratio == pytest.approx(1.26, rel=0.02)
    clock = estimate_text(timing.estimate).partition(" ")[0]
    assert f"by CPU time alone it is {timing.cpu_ratio:.2f}x, by the clock {clock};" in note
    assert not any(claim in note for claim in ("smaller", "waits less", "works more"))


def test_two_stories_take_more_than_noise():
    rng = random.Random(3)
    replicates = [
        (make_session(0.5, number=at, cpu_ratio=0.5 * math.exp(rng.gauss(0.06, 0.5))),)
        for at in range(10)
    ]
    assert summarize(replicates, **RULES).timings[0].notes == ()


def test_cpu_time_known_for_some_sessions_only_is_not_reported():
    replicates = make_replicates(draw(1.5))
    (session,) = replicates[2]
    blind = tuple(replace(sample, cpu_s=None) for sample in session.samples)
    replicates[2] = (replace(session, samples=blind),)
    assert summarize(replicates, **RULES).timings[0].cpu_ratio is None


@pytest.mark.parametrize(("share", "count"), [(0.09, 0), (0.5, 1)])
def test_much_going_through_results_is_said(share, count):
    found = sum_up(materializing=Pair(0.0, share))
    assert len(found.timings[0].notes) == count
    assert found.adopt
    assert all("50% of the time went into going through" in n for n in found.timings[0].notes)


def test_memory_is_the_most_of_all_sessions():
    replicates = make_replicates(draw(1.5, count=2))
    replicates[0] = (replace(replicates[0][0], peak_rss_mb=Pair(30.0, 90.0)),)
    replicates[1] = (replace(replicates[1][0], peak_rss_mb=Pair(40.0, 20.0)),)
    assert summarize(replicates, **RULES).timings[0].peak_rss_mb == Pair(40.0, 90.0)


def test_the_time_of_a_call_excludes_requests_and_replies():
    (timing,) = sum_up().timings
    assert timing.base_s == pytest.approx(1.3 * 2e-3 / 4)
    assert timing.calls == 4


def test_a_session_without_a_whole_round_is_no_replicate():
    session = make_session(1.0)
    alone = [sample for sample in session.samples if sample.arm == "base"]
    with pytest.raises(ValueError, match="b: session 0 has no whole round"):
        summarize([(replace(session, samples=tuple(alone)),)], **RULES)


def strip(session):
    """What is left if only samples are kept."""
    return Session(session.benchmark, session.number, session.samples, 0.0)


logs = st.lists(st.floats(-2, 2), min_size=1, max_size=46)


@given(st.lists(st.tuples(st.floats(-2, 2), st.floats(-1, 1)), min_size=1, max_size=46))
def test_samples_alone_give_the_same_verdict_again(pairs):
    replicates = [
        tuple(
            make_session(math.exp(log), benchmark=f"b{at}", number=n) for at, log in enumerate(each)
        )
        for n, each in enumerate(pairs)
    ]
    found = summarize(replicates, **RULES)
    rng = random.Random(1)
    table = [strip(session) for session in found.sessions]
    rng.shuffle(table)  # a table has no order
    table.sort(key=lambda session: (session.number, session.benchmark))
    again = summarize(list(zip(table[::2], table[1::2], strict=True)), **RULES)
    assert (again.verdict, again.estimate) == (found.verdict, found.estimate)
    assert (again.adopt, again.vetoes) == (found.adopt, found.vetoes)
    # Only how long sessions took isn't in the table.
    assert again.timings == tuple(replace(timing, timed_share=None) for timing in found.timings)


@given(logs)
def test_a_measurement_says_what_the_statistics_say(drawn):
    found = summarize(make_replicates(drawn), **RULES)
    seen = session_look(replicate_statistics(make_replicates(drawn)), **RULES)
    assert found.verdict.value == seen.claim.value
    assert found.adopt == adopt(seen, RULES["min_effect"])
    assert not found.adopt or found.verdict == Verdict.FASTER
    if found.estimate is not None:
        assert found.estimate.ratio == pytest.approx(math.exp(-fmean(drawn)), rel=1e-6)


def test_notes_and_times_are_passed_on():
    found = summarize(
        make_replicates(draw(1.5)), **RULES, seconds=3.0, waited_s=1.0, notes=["a", "b"]
    )
    assert (found.seconds, found.waited_s, found.notes) == (3.0, 1.0, ("a", "b"))
    assert not found.is_confirmed
