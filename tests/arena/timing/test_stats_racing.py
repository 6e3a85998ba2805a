"""Races on seeded noise, and their invariants."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from fairtrial.arena.timing.stats.race import Heat, Race, RaceEnd
from fairtrial.arena.timing.stats.race_field import Field, RunnerState
from fairtrial.arena.timing.stats.sequential import LOOKS, Claim, interim_look

ALPHA, MIN_EFFECT = 0.05, 0.02
MARGIN = math.log1p(MIN_EFFECT)
SPREAD = 0.015
FULL = 16 * LOOKS[-1]

Noise = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


def normal(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return rng.standard_normal(shape)


def heavy(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return rng.standard_t(3, shape) / math.sqrt(3)


def uneven(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Runners whose spreads differ fourfold."""
    return rng.standard_normal(shape) * np.geomspace(0.5, 2, shape[0])[:, None]


def make_tapes(
    means: Sequence[float], rng: np.random.Generator, noise: Noise = normal, spread: float = SPREAD
) -> list[list[float]]:
    """All the sessions that each runner could ever have."""
    drawn = np.asarray(means)[:, None] + spread * noise(rng, (len(means), LOOKS[-1]))
    return drawn.tolist()


def run(tapes: Sequence[Sequence[float]], race: Race | None = None, **options: float) -> Race:
    """A race over what the tapes hold, heat by heat as it asks."""
    settings = {"alpha": ALPHA, "min_effect": MIN_EFFECT} | options
    race = race or Race(len(tapes), **settings)
    while heat := race.next_heat():
        give(race, heat, tapes)
    return race


def give(race: Race, heat: Heat, tapes: Sequence[Sequence[float]]) -> None:
    start = race._field.count(heat.runner)  # what standings say, without all their intervals
    race.record(heat.runner, tapes[heat.runner][start : start + heat.sessions])


def states(race: Race) -> list[RunnerState]:
    return [standing.state for standing in race.standings]


def count_sessions(race: Race) -> list[int]:
    return [standing.sessions for standing in race.standings]


def flat(*means: float) -> list[list[float]]:
    """Tapes of runners whose sessions are nearly noiseless, and all of equal spread."""
    wobble = [0.001 * (-1) ** session for session in range(LOOKS[-1])]
    return [[mean + item for item in wobble] for mean in means]


# Simulated races


def test_16_candidates_take_a_third_of_the_sessions_and_the_same_winner() -> None:
    # Figures to reach: picking the best of 16 in 1/3 of the time of timing each in full.
    rng = np.random.default_rng(5)
    sessions, one_by_one, wrong, same_as_full, same_or_close = 0, 0, 0, 0, 0
    races = 200
    for _ in range(races):
        means = -np.log(rng.permutation(np.linspace(0.9, 1.15, 16)))
        tapes = make_tapes(means, rng)
        race = run(tapes)
        assert race.winner is not None
        sessions += race.sessions
        one_by_one += sum(map(decide_alone, tapes))
        wrong += means[race.winner] - means.min() > MARGIN
        in_full = int(np.argmin(np.mean(tapes, axis=1)))
        same_as_full += race.winner == in_full
        same_or_close += abs(means[race.winner] - means[in_full]) <= MARGIN
    assert wrong <= ALPHA * races
    assert same_as_full >= 0.95 * races
    assert same_or_close == races
    assert sessions / races <= FULL / 3
    assert sessions <= 0.8 * one_by_one  # and fewer than the sequential test of each by itself


def decide_alone(tape: Sequence[float]) -> int:
    """After how many sessions the sequential test of one candidate among 16 is decided."""
    for at in LOOKS:
        if interim_look(tape[:at], alpha=ALPHA / 16, min_effect=MIN_EFFECT).is_decided:
            return at
    return LOOKS[-1]


@pytest.mark.parametrize("noise", [normal, heavy, uneven])
def test_the_best_is_hardly_ever_lost(noise: Noise) -> None:
    # The worst case: all others are just too slow to be as good as the best. Many share alpha by
    # Bonferroni's inequality and don't use it up; a large one leaves less slack.
    alpha, races, rng = 0.4, 150, np.random.default_rng(7)
    means = [-0.05, *[-0.05 + MARGIN + 0.0005] * 7]
    lost, dropped = 0, 0
    for _ in range(races):
        race = run(make_tapes(means, rng, noise, 3 * SPREAD), alpha=alpha)
        lost += race.winner != 0
        dropped += states(race)[0] in {
            RunnerState.SLOWER,
            RunnerState.EQUIVALENT,
            RunnerState.NO_FASTER,
        }
    assert dropped <= lost <= alpha * races


def test_one_of_two_equals_is_dropped_as_often_as_alpha_allows_and_not_more_often() -> None:
    # Each is the best, and may be dropped with a chance of alpha / 2 because of the other: nothing
    # is left to slack here. With levels twice as high about 110 would be dropped.
    alpha, races, rng = 0.1, 600, np.random.default_rng(11)
    dropped = 0
    for _ in range(races):
        race = run(make_tapes([-0.1] * 2, rng), alpha=alpha, min_effect=0.0)
        dropped += states(race).count(RunnerState.SLOWER)
        assert race.ending in {RaceEnd.SPENT, RaceEnd.ONE_LEFT}
    assert 30 <= dropped <= alpha * races + 3 * math.sqrt(alpha * races)


def test_all_equal_and_fast_ends_close_and_early() -> None:
    rng = np.random.default_rng(1)
    races = [run(make_tapes([-0.1] * 16, rng)) for _ in range(30)]
    assert {race.ending for race in races} == {RaceEnd.CLOSE}
    assert len({race.winner for race in races}) > 5
    assert sum(race.sessions for race in races) / 30 <= FULL / 3
    for race in races:
        assert set(states(race)) <= {RunnerState.RUNNING, RunnerState.CLOSE}


def test_all_equal_to_the_base_has_no_winner_or_one_that_confirmation_will_turn_down() -> None:
    rng = np.random.default_rng(2)
    endings: Counter[RaceEnd | None] = Counter()
    for _ in range(40):
        race = run(make_tapes([0.0] * 16, rng))
        endings[race.ending] += 1
        assert all(standing.look.claim != Claim.FASTER for standing in race.standings)
        assert race.sessions <= FULL / 2
    assert set(endings) <= {RaceEnd.CLOSE, RaceEnd.ONE_LEFT, RaceEnd.NONE_FASTER}


def test_slower_than_the_base_only_has_no_winner() -> None:
    rng = np.random.default_rng(3)
    for _ in range(30):
        race = run(make_tapes(-np.log(rng.uniform(0.8, 0.97, 16)), rng))
        assert race.winner is None
        assert race.ending == RaceEnd.NONE_FASTER
        assert set(states(race)) == {RunnerState.NO_FASTER}
        assert race.sessions <= FULL / 3


def test_a_small_gain_among_many_that_gain_nothing_is_found() -> None:
    rng = np.random.default_rng(4)
    races = [run(make_tapes([0.0] * 15 + [-0.05], rng)) for _ in range(40)]
    assert sum(race.winner == 15 for race in races) >= 38


# Decisions


def test_alone_one_wins_without_a_session() -> None:
    race = Race(1, alpha=ALPHA, min_effect=MIN_EFFECT)
    assert race.is_over
    assert race.next_heat() is None
    assert (race.winner, race.ending, race.sessions) == (0, RaceEnd.ONE_LEFT, 0)


def test_a_race_without_runners_is_over() -> None:
    race = Race(0, alpha=ALPHA, min_effect=MIN_EFFECT)
    assert (race.is_over, race.winner, race.ending) == (True, None, RaceEnd.NONE_LEFT)
    assert race.standings == ()


def test_all_get_the_first_look_before_any_gets_a_second() -> None:
    race = Race(3, alpha=ALPHA, min_effect=MIN_EFFECT)
    tapes = make_tapes([-0.05, -0.05, -0.05], np.random.default_rng(0), spread=0.1)
    asked = []
    for _ in range(6):
        heat = race.next_heat()
        assert heat is not None
        asked.append(heat)
        give(race, heat, tapes)
    assert asked == [Heat(r, 6) for r in range(3)] + [Heat(r, 4) for r in range(3)]


def test_reasons_for_being_dropped() -> None:
    race = run(flat(-0.1, -0.05, -0.095, 0.0, 0.01, 0.05))
    assert states(race) == [
        RunnerState.RUNNING,
        RunnerState.SLOWER,
        # Certainly slower comes before too close: it explains more.
        RunnerState.SLOWER,
        RunnerState.EQUIVALENT,
        RunnerState.EQUIVALENT,
        RunnerState.NO_FASTER,
    ]
    assert [standing.rival for standing in race.standings] == [None, 0, 0, None, None, None]
    assert (race.winner, race.ending) == (0, RaceEnd.ONE_LEFT)
    assert count_sessions(race) == [6] * 6


def test_a_gain_too_small_to_matter_is_no_gain() -> None:
    race = run(flat(-0.01, -0.012))
    assert states(race) == [RunnerState.EQUIVALENT] * 2
    assert (race.winner, race.ending) == (None, RaceEnd.NONE_FASTER)


def test_ties_go_to_the_first() -> None:
    race = run(flat(-0.1, -0.1, -0.1))
    assert (race.winner, race.ending) == (0, RaceEnd.CLOSE)
    assert states(race) == [RunnerState.RUNNING, RunnerState.CLOSE, RunnerState.CLOSE]
    assert race.sessions == 18


def test_sessions_without_any_spread_are_no_proof_of_anything_small() -> None:
    race = run([[-0.1] * 46, [-0.10005] * 46])
    assert (race.winner, race.ending) == (1, RaceEnd.CLOSE)


def test_out_of_sessions_the_best_estimate_wins() -> None:
    tapes = make_tapes([-0.1, -0.1], np.random.default_rng(0), spread=0.2)
    race = run(tapes, most_sessions=16)
    assert race.ending == RaceEnd.SPENT
    assert race.winner == int(np.argmin(np.mean(np.array(tapes)[:, :16], axis=1)))
    assert count_sessions(race) == [16, 16]


def test_out_of_sessions_with_no_estimate_below_the_base_there_is_no_winner() -> None:
    tapes = [[0.3 * (-1) ** session + 0.01 for session in range(46)]] * 2
    race = run(tapes)
    assert (race.ending, race.winner) == (RaceEnd.SPENT, None)


def test_one_that_is_left_behind_the_base_runs_until_it_is_clear() -> None:
    wide = [0.05 * (-1) ** session + 0.01 for session in range(46)]
    race = run([wide, *flat(0.1)])
    assert states(race) == [RunnerState.NO_FASTER] * 2
    assert race.winner is None
    assert count_sessions(race)[0] > 6
    assert count_sessions(race)[1] == 6


def test_most_sessions_may_lie_between_looks() -> None:
    race = run(make_tapes([-0.1, -0.1], np.random.default_rng(0), spread=0.3), most_sessions=20)
    assert count_sessions(race) == [20, 20]


# Withdrawing, stopping


def test_all_withdrawn() -> None:
    race = Race(3, alpha=ALPHA, min_effect=MIN_EFFECT)
    for runner in range(3):
        race.withdraw(runner)
    assert (race.is_over, race.winner, race.ending) == (True, None, RaceEnd.NONE_LEFT)
    assert race.next_heat() is None


def test_the_last_that_is_not_withdrawn_wins() -> None:
    race = Race(3, alpha=ALPHA, min_effect=MIN_EFFECT)
    race.withdraw(0)
    assert [heat.runner for heat in race.heats] == [1, 2]
    race.withdraw(2)
    assert (race.winner, race.ending, race.heats) == (1, RaceEnd.ONE_LEFT, ())


def test_a_runner_that_lost_to_a_cheat_returns_when_the_cheat_is_withdrawn() -> None:
    tapes = flat(-2.0, -0.1, -0.05)
    race = run(tapes)
    assert race.winner == 0
    race.withdraw(0)
    assert states(race) == [RunnerState.WITHDRAWN, RunnerState.RUNNING, RunnerState.SLOWER]
    assert (race.winner, race.standings[2].rival) == (1, 1)


def test_a_race_goes_on_if_its_winner_is_withdrawn_and_the_others_are_undecided() -> None:
    tapes = flat(-2.0) + make_tapes([-0.1, -0.1], np.random.default_rng(0), spread=0.1)
    race = run(tapes)
    assert (race.winner, race.is_over) == (0, True)
    race.withdraw(0)
    assert (race.winner, race.is_over) == (None, False)
    assert race.heats == (Heat(1, 4), Heat(2, 4))


def test_withdrawing_the_winner_of_a_stopped_race_leaves_the_next_best() -> None:
    race = run(flat(-2.0, -0.1, -0.2))
    race.stop()
    assert (race.winner, race.ending) == (0, RaceEnd.ONE_LEFT)
    race.withdraw(0)
    assert race.winner == 2
    assert race.next_heat() is None


def test_stopping_gives_the_best_so_far() -> None:
    race = Race(3, alpha=ALPHA, min_effect=MIN_EFFECT)
    tapes = flat(-0.05, -0.1, -0.2)
    give(race, Heat(0, 6), tapes)
    give(race, Heat(1, 6), tapes)
    give(race, Heat(2, 5), tapes)
    race.stop()
    assert race.is_over
    assert (race.winner, race.ending, race.next_heat()) == (1, RaceEnd.STOPPED, None)


def test_stopping_before_any_look_has_no_winner() -> None:
    race = Race(2, alpha=ALPHA, min_effect=MIN_EFFECT)
    race.record(0, [-0.1] * 5)
    race.stop()
    assert (race.is_over, race.winner, race.ending) == (True, None, RaceEnd.STOPPED)


def test_stopping_with_no_runner_ahead_of_the_base_has_no_winner() -> None:
    race = Race(2, alpha=ALPHA, min_effect=MIN_EFFECT)
    race.record(0, [0.1, -0.08] * 3)
    race.stop()
    assert (race.winner, race.ending) == (None, RaceEnd.STOPPED)


def test_a_heat_cut_short_is_asked_for_again() -> None:
    race = Race(2, alpha=ALPHA, min_effect=MIN_EFFECT)
    race.record(0, [-0.1, -0.1])
    assert race.next_heat() == Heat(0, 4)
    assert not race.is_over


def test_there_is_no_peeking_between_looks() -> None:
    # Told session by session, a runner's interval stays that of its latest look.
    tapes = make_tapes([-0.1, -0.1], np.random.default_rng(0), spread=0.1)
    race = Race(2, alpha=ALPHA, min_effect=MIN_EFFECT)
    for _ in range(2):
        give(race, race.heats[0], tapes)
    give(race, Heat(0, 3), tapes)
    at_look = race.standings[0]
    assert (at_look.sessions, at_look.look.sessions) == (9, 6)
    assert at_look.look == interim_look(tapes[0][:6], alpha=ALPHA / 2, min_effect=MIN_EFFECT)
    race.stop()  # Now nothing more will come, and all there is counts.
    assert race.standings[0].look == interim_look(
        tapes[0][:9], alpha=ALPHA / 2, min_effect=MIN_EFFECT
    )


def test_a_withdrawal_in_the_middle_of_a_heat_is_no_occasion_to_peek() -> None:
    # Runner 0 is alone against the base, and its sessions since the look would rule it out.
    wide = [0.05 * (-1) ** session + 0.005 for session in range(6)] + [0.05] * 40
    tapes = [wide, *flat(0.1)]
    race = Race(2, alpha=ALPHA, min_effect=MIN_EFFECT)
    for _ in range(2):
        give(race, race.heats[0], tapes)
    assert race.heats == (Heat(0, 4),)
    give(race, Heat(0, 3), tapes)
    race.withdraw(1)
    assert race.heats == (Heat(0, 1),)


def test_losing_to_a_rival_with_a_smaller_share_takes_more() -> None:
    # The rival's share counts, so that the errors against all rivals add up to alpha.
    field = Field(LOOKS, MIN_EFFECT)
    large, small = field.add(0.02), field.add(0.0001)
    for runner in (large, small):
        field.record(runner, flat(-0.1)[0][:6])
    assert field.least_lag(large, small) < field.least_lag(small, large) < 0


def test_shares_of_alpha_never_add_up_to_more_than_alpha() -> None:
    race = Race(5, alpha=ALPHA, min_effect=0.02)
    assert 0 < sum(race._field._alphas) <= ALPHA * (1 + 1e-12)


# Bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"count": -1}, "0 or more"),
        ({"alpha": 0.0}, "alpha must be"),
        ({"alpha": 1.0}, "alpha must be"),
        ({"min_effect": -0.1}, "min_effect must be"),
        ({"min_effect": math.nan}, "min_effect must be"),
        ({"most_sessions": 5}, "most_sessions must be from 6"),
        ({"most_sessions": 47}, "to 46; got 47"),
    ],
)
def test_options_that_make_no_race(options: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Race(**({"count": 2, "alpha": ALPHA, "min_effect": MIN_EFFECT} | options))


def test_mistakes_of_the_caller() -> None:
    race = Race(3, alpha=ALPHA, min_effect=MIN_EFFECT)
    with pytest.raises(ValueError, match="no runner 3"):
        race.record(3, [0.0])
    with pytest.raises(ValueError, match="no runner -1"):
        race.withdraw(-1)
    with pytest.raises(ValueError, match="asked for 6 sessions, not 7"):
        race.record(0, [0.0] * 7)
    with pytest.raises(ValueError, match="isn't finite"):
        race.record(0, [0.0, math.nan])
    race.withdraw(0)
    with pytest.raises(ValueError, match="wasn't asked"):
        race.record(0, [0.0])
    assert race.sessions == 0


def test_no_runner_runs_after_the_stop() -> None:
    race = Race(2, alpha=ALPHA, min_effect=MIN_EFFECT)
    race.stop()
    with pytest.raises(ValueError, match="wasn't asked"):
        race.record(0, [0.0])


# What always holds

fields = st.lists(st.floats(-0.3, 0.3), min_size=0, max_size=6)
spreads = st.sampled_from([0.0, 0.001, 0.015, 0.1])
seeds = st.integers(0, 2**32 - 1)
most = st.integers(LOOKS[0], LOOKS[-1])


@settings(max_examples=60, deadline=None)
@given(fields, spreads, seeds, most, st.data())
def test_a_race_asks_only_for_runners_that_are_in_it_and_ends(
    means: list[float], spread: float, seed: int, most_sessions: int, data: st.DataObject
) -> None:
    tapes = make_tapes(means or [0.0], np.random.default_rng(seed), spread=spread)
    race = Race(len(means), alpha=ALPHA, min_effect=MIN_EFFECT, most_sessions=most_sessions)
    for _ in range(8 * len(LOOKS) * 3):
        heat = race.next_heat()
        assert race.is_over == (heat is None)
        if heat is None:
            break
        assert race.winner is None
        assert states(race)[heat.runner] == RunnerState.RUNNING
        assert heat.sessions > 0
        assert race.standings[heat.runner].sessions + heat.sessions <= most_sessions
        deed = data.draw(st.sampled_from(["give"] * 12 + ["part", "withdraw", "stop"]))
        if deed == "withdraw":
            race.withdraw(data.draw(st.integers(0, len(states(race)) - 1)))
        elif deed == "stop":
            race.stop()
        else:
            give(race, Heat(heat.runner, 1) if deed == "part" else heat, tapes)
    else:
        pytest.fail("the race doesn't end")
    check_the_end(race, most_sessions)


def check_the_end(race: Race, most_sessions: int) -> None:
    assert race.heats == ()
    assert race.ending is not None
    assert max(count_sessions(race), default=0) <= most_sessions
    if race.winner is not None:
        assert states(race)[race.winner] == RunnerState.RUNNING
        winning = race.standings[race.winner]
        assert winning.sessions < LOOKS[0] or race._field.mean(race.winner) < 0
    for standing in race.standings:
        if standing.state == RunnerState.SLOWER:
            assert standing.rival is not None
            rival = race.standings[standing.rival]
            assert rival.state != RunnerState.WITHDRAWN


@settings(max_examples=40, deadline=None)
@given(fields, spreads, seeds, st.randoms(use_true_random=False))
def test_the_order_of_recording_changes_nothing(
    means: list[float], spread: float, seed: int, random: np.random.Generator
) -> None:
    tapes = make_tapes(means, np.random.default_rng(seed), spread=spread)
    first = run(tapes)
    second = Race(len(means), alpha=ALPHA, min_effect=MIN_EFFECT)
    while second.heats:
        # A session here, a session there.
        heat = random.choice(second.heats)
        give(second, Heat(heat.runner, random.randint(1, heat.sessions)), tapes)
    assert repr(second.standings) == repr(first.standings)  # not a number is none, whoever asks
    assert (second.winner, second.ending) == (first.winner, first.ending)


@settings(max_examples=30, deadline=None)
@given(fields, spreads, seeds, st.randoms(use_true_random=False))
def test_the_winner_does_not_depend_on_the_runners_numbers(
    means: list[float], spread: float, seed: int, random: np.random.Generator
) -> None:
    tapes = make_tapes(means, np.random.default_rng(seed), spread=spread)
    order = list(range(len(tapes)))
    random.shuffle(order)
    first, second = run(tapes), run([tapes[runner] for runner in order])
    assert sorted(count_sessions(first)) == sorted(count_sessions(second))
    assert first.ending == second.ending
    assert (first.winner is None) == (second.winner is None)
    if first.winner is not None and second.winner is not None:
        # Of equals the first wins, which may be another one; it has done the same.
        assert tapes[first.winner] == tapes[order[second.winner]]


@settings(max_examples=30, deadline=None)
@given(fields, spreads, seeds, st.integers(0, 40))
def test_asking_changes_nothing(means: list[float], spread: float, seed: int, heats: int) -> None:
    tapes = make_tapes(means, np.random.default_rng(seed), spread=spread)
    quiet, asked = (Race(len(means), alpha=ALPHA, min_effect=MIN_EFFECT) for _ in range(2))
    for _ in range(heats):
        heat = quiet.next_heat()
        if heat is None:
            break
        give(quiet, heat, tapes)
        assert asked.next_heat() == asked.next_heat() == heat
        assert repr(asked.standings) == repr(asked.standings)
        give(asked, heat, tapes)
    assert repr(quiet.standings) == repr(asked.standings)
