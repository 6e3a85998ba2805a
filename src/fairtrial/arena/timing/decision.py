"""Deciding which version is faster: one candidate until it is decided, or several in a race.

The bench runs sessions, `stats` decides; this module connects them.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, TypeVar

from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.model.memory import MemoryVerdict
from fairtrial.arena.model.timings import Estimate, Measurement
from fairtrial.arena.model.verdicts import Reason, Rejection, Verdict
from fairtrial.arena.slots.threads import NoRoomError, as_lab_error
from fairtrial.arena.timing.bench import SessionBatch
from fairtrial.arena.timing.contradictions import Contradiction, find_contradictions
from fairtrial.arena.timing.early_timer import EarlyTimer, IsEnough
from fairtrial.arena.timing.outside_work import find_doubts
from fairtrial.arena.timing.stats.autocorrelation import EARLY_LOOK, session_look
from fairtrial.arena.timing.stats.race import Race
from fairtrial.arena.timing.stats.race_field import RunnerState, Standing
from fairtrial.arena.timing.stats.ratio_text import estimate_text
from fairtrial.arena.timing.stats.sequential import LOOKS, Claim, SessionLook, next_look
from fairtrial.arena.timing.summary import Replicate, replicate_statistics, summarize
from fairtrial.arena.timing.total_checks import (
    TotalBatch,
    TotalTimer,
    add_checks,
    are_confirmed,
    find_claims,
    limit_checks,
)
from fairtrial.core import FairtrialError

Watcher = Callable[[str, int, Estimate | None], None]
"""Called with a candidate's name, its number of sessions, and its current estimate."""
OnTotals = Callable[[str], None]
"""Called with a candidate's name when its whole processes begin."""
B = TypeVar("B", SessionBatch, TotalBatch)


class Timer(Protocol):
    """Runs sessions: a `Bench`, or a simulated one."""

    async def run(
        self, changes: Changes | None, label: str, first: int, count: int, budget_s: float
    ) -> SessionBatch:
        """Run `count` sessions, numbered from `first`, or as many as the budget allows."""
        ...


@dataclass(frozen=True, slots=True)
class DecisionRules:
    """When a comparison ends, and what is concluded.

    alpha: the rate of claimed differences where there is none
    min_effect: the smallest effect of interest
    budget_s: how long one candidate may be timed
    startup_limits: how many times as long as the base it may take to start, by benchmark
    max_regression: if above 0, timing goes on until it is decided, too, whether the candidate takes
        longer than the base by more than this share
    """

    alpha: float
    min_effect: float
    budget_s: float
    startup_limits: Mapping[str, float] = field(default_factory=dict)
    max_regression: float = 0.0

    def is_decided(self, look: SessionLook) -> bool:
        """Return whether nothing is left to decide after a look at the sessions."""
        limit = math.log1p(self.max_regression)
        return look.is_decided and (limit == 0 or not look.low <= limit <= look.high)


@dataclass(slots=True)
class _TimedCandidate:
    """A candidate's sessions so far.

    replicates: one session of each benchmark, each
    seconds: how long they took
    charged_s: the part of the budget that was used
    waited_s: how long the host lock was waited for
    rejection: set if the candidate failed, or could not be timed
    vetoes: reasons against adopting it
    """

    replicates: list[Replicate] = field(default_factory=list)
    seconds: float = 0.0
    charged_s: float = 0.0
    waited_s: float = 0.0
    rejection: Rejection | None = None
    vetoes: tuple[str, ...] = ()

    def add(self, batch: SessionBatch) -> None:
        self.replicates += batch.replicates
        self.seconds += batch.seconds
        self.charged_s += batch.charged_s
        self.waited_s += batch.waited_s
        self.rejection = batch.rejection

    def give_up(self, rules: DecisionRules, alpha: float, when: str = "before that") -> Rejection:
        """Return the rejection; if the arena is to blame, with the result of earlier sessions."""
        assert self.rejection is not None
        measured = self.summarize(rules, alpha)
        if self.rejection.reason != Reason.EVALUATOR or measured is None:
            return self.rejection
        result = estimate_text(measured.estimate) or "too few to say anything"
        count = len(self.replicates)
        sessions = f"its {count} session{'s' if count > 1 else ''} {when}"
        return replace(self.rejection, message=f"{self.rejection.message}; {sessions}: {result}")

    def summarize(
        self, rules: DecisionRules, alpha: float, *notes: str, counts_doubts: bool = True
    ) -> Measurement | None:
        if not self.replicates:
            return None
        return summarize(
            self.replicates,
            alpha=alpha,
            min_effect=rules.min_effect,
            startup_limits=rules.startup_limits,
            seconds=self.seconds,
            waited_s=self.waited_s,
            notes=notes,
            counts_doubts=counts_doubts,
        )


async def measure(
    timer: Timer,
    name: str,
    changes: Changes | None,
    rules: DecisionRules,
    *,
    label: str = "",
    is_final: bool = True,
    watcher: Watcher | None = None,
    on_totals: OnTotals | None = None,
) -> Measurement | Rejection:
    """Time one candidate against the base until it is decided, or the budget ends.

    One that is to be adopted is also run in whole processes, whose total must show the gain.

    A gain by the median that total time or slowest samples contradict goes on, too: a few disturbed
    samples can look like slow inputs, and slow inputs are rare.

    changes: the candidate; None for the base itself
    label: determines the inputs, so that another measurement of the candidate gets others
    is_final: whether nothing confirms the result later; if something does, no whole process is run

    Returns a rejection if the candidate failed. Raises `NoRoomError` if the disk is full: no other
    candidate could be timed either.
    """
    record = _TimedCandidate()
    while (goal := next_look(len(record.replicates))) is not None:
        done = len(record.replicates)
        left_s = rules.budget_s - record.charged_s
        # The early look is within the first batch: another one would be staged anew.
        early = None if done else partial(_is_decided_early, rules)
        run = _run(timer, changes, f"{label}/{name}", done, goal - done, left_s, early)
        record.add(await run)
        if record.rejection is not None:
            return record.give_up(rules, rules.alpha)
        so_far = _report(watcher, name, record, rules)
        state = session_look(
            replicate_statistics(record.replicates), alpha=rules.alpha, min_effect=rules.min_effect
        )
        is_spent = len(record.replicates) < goal or record.charged_s >= rules.budget_s
        is_open = _find_contradictions(so_far) or not _is_memory_decided(so_far)
        if is_spent or (rules.is_decided(state) and not is_open):
            break
    measured = record.summarize(rules, rules.alpha, *_budget_notes(record, rules))
    assert measured is not None
    if changes is None or not is_final or not isinstance(timer, TotalTimer):
        return measured
    began = None if on_totals is None else partial(on_totals, name)
    return await _check_total(timer, f"{label}/{name}/total", changes, record, rules, began)


async def _check_total(
    timer: TotalTimer,
    label: str,
    changes: Changes,
    record: _TimedCandidate,
    rules: DecisionRules,
    on_start: Callable[[], None] | None,
) -> Measurement | Rejection:
    """Return the measurement of a candidate, with whole processes if it is to be adopted.

    They decide, too, where sessions alone leave doubts.
    """
    notes = _budget_notes(record, rules)
    measured = record.summarize(rules, rules.alpha, *notes)
    undoubted = record.summarize(rules, rules.alpha, *notes, counts_doubts=False)
    assert measured is not None
    assert undoubted is not None
    claims = find_claims(undoubted)
    if not undoubted.adopt or not claims:
        return measured
    if on_start is not None:
        on_start()
    checking = timer.check_totals(changes, label, claims, limit_checks(undoubted))
    batch = await _explain_errors(checking, TotalBatch)
    if batch.rejection is not None:
        record.rejection = batch.rejection
        return record.give_up(rules, rules.alpha)
    return add_checks(undoubted if are_confirmed(batch) else measured, batch)


async def race(
    timer: Timer,
    candidates: Mapping[str, Changes],
    rules: DecisionRules,
    *,
    watcher: Watcher | None = None,
    on_totals: OnTotals | None = None,
) -> dict[str, Measurement | Rejection]:
    """Time several candidates until the best is known, then confirm that one.

    The winner's result comes from fresh sessions alone, since it was selected for doing well. The
    results of the others come from the race, and hold for all of them simultaneously. If the disk
    is full, only the candidates that can't be staged any more stay without a verdict.
    """
    names = list(candidates)
    records = {name: _TimedCandidate() for name in names}
    runners = Race(len(names), alpha=rules.alpha, min_effect=rules.min_effect)
    while (heat := runners.next_heat()) is not None:
        name = names[heat.runner]
        record = records[name]
        done = len(record.replicates)
        left_s = max(rules.budget_s - record.charged_s, 0.0)
        try:
            batch = await _run(timer, candidates[name], f"race/{name}", done, heat.sessions, left_s)
        except NoRoomError as error:
            batch = SessionBatch(rejection=untimed(error))
        record.add(batch)
        if record.rejection is not None:
            runners.withdraw(heat.runner)
            continue
        so_far = _report(watcher, name, record, rules)
        lasting = () if so_far is None else _lasting_vetoes(so_far)
        if so_far is not None and lasting:  # it can't be adopted, so it must not win
            record.vetoes = lasting
            runners.withdraw(heat.runner)
            continue
        runners.record(heat.runner, replicate_statistics(batch.replicates))
        if len(batch.replicates) < heat.sessions:  # its budget ended
            runners.stop()
    results: dict[str, Measurement | Rejection] = {}
    for name, standing in zip(names, runners.standings, strict=True):
        results[name] = _conclude(records[name], standing, names, rules)
    if runners.winner is not None:
        best = names[runners.winner]
        try:
            fresh = await measure(
                timer,
                best,
                candidates[best],
                rules,
                label="final",
                watcher=watcher,
                on_totals=on_totals,
            )
        except NoRoomError as error:
            fresh = untimed(error)
        results[best] = _confirm(records[best], fresh, rules, rules.alpha / len(names))
    return results


def _confirm(
    raced: _TimedCandidate, fresh: Measurement | Rejection, rules: DecisionRules, alpha: float
) -> Measurement | Rejection:
    """Return the winner's result from fresh sessions; a rejection if there are none."""
    if isinstance(fresh, Measurement):
        return replace(
            fresh,
            is_confirmed=bool(raced.replicates),
            seconds=fresh.seconds + raced.seconds,
            waited_s=fresh.waited_s + raced.waited_s,
        )
    raced.rejection = fresh
    return raced.give_up(rules, alpha, "in the race")


async def _run(
    timer: Timer,
    changes: Changes | None,
    label: str,
    first: int,
    count: int,
    budget_s: float,
    is_enough: IsEnough | None = None,
) -> SessionBatch:
    """Run sessions; an error of the arena becomes a rejection of this candidate alone."""
    if is_enough is not None and isinstance(timer, EarlyTimer):
        run = timer.run_until(changes, label, first, count, budget_s, is_enough)
    else:
        run = timer.run(changes, label, first, count, budget_s)
    return await _explain_errors(run, SessionBatch)


def _is_decided_early(rules: DecisionRules, replicates: Sequence[Replicate]) -> bool:
    """Return whether the first sessions show that a candidate is clearly slower."""
    if len(replicates) != EARLY_LOOK:
        return False
    statistics = replicate_statistics(replicates)
    look = session_look(statistics, alpha=rules.alpha, min_effect=rules.min_effect)
    return look.claim == Claim.SLOWER and rules.is_decided(look)


async def _explain_errors(work: Awaitable[B], make: type[B]) -> B:
    """Return the result of work with a timer; an error of the arena becomes a rejection.

    Raises `NoRoomError` if the disk is full.
    """
    try:
        return await work
    except NoRoomError:
        raise
    except FairtrialError as error:
        return make(rejection=untimed(error))
    except OSError as error:
        explained = as_lab_error(error)
        if isinstance(explained, NoRoomError):
            raise explained from error
        return make(rejection=untimed(error))


def untimed(error: Exception) -> Rejection:
    """Return a rejection for a candidate that the arena could not time."""
    return Rejection(Reason.EVALUATOR, f"it could not be timed: {error}")


def _conclude(
    record: _TimedCandidate, standing: Standing, names: Sequence[str], rules: DecisionRules
) -> Measurement | Rejection:
    """Return the result of one candidate's sessions in the race."""
    alpha = rules.alpha / len(names)
    if record.rejection is not None:
        return record.give_up(rules, alpha)
    rival = "" if standing.rival is None else f" ({names[standing.rival]})"
    raced = f"out of the race after {len(record.replicates)} sessions: {standing.state}{rival}"
    is_eliminated = standing.state not in (RunnerState.RUNNING, RunnerState.WITHDRAWN)
    measured = record.summarize(rules, alpha, *((raced,) if is_eliminated else ()))
    if measured is None:
        nothing = ("it had no session",)
        return Measurement(verdict=Verdict.INCONCLUSIVE, estimate=None, notes=nothing)
    measured = replace(measured, is_eliminated=is_eliminated)
    if record.vetoes:  # they kept it from winning, so they stay, even if wider bounds dropped them
        return replace(measured, adopt=False, vetoes=record.vetoes)
    return measured


def _report(
    watcher: Watcher | None, name: str, record: _TimedCandidate, rules: DecisionRules
) -> Measurement | None:
    """Call the watcher with the current estimate; return the current measurement."""
    measured = record.summarize(rules, rules.alpha)
    if watcher is not None and measured is not None:
        watcher(name, len(record.replicates), measured.estimate)
    return measured


def _find_contradictions(measured: Measurement | None) -> list[Contradiction]:
    """Return what contradicts a claimed gain, over all benchmarks."""
    if measured is None:
        return []
    return [
        contradiction
        for timing in measured.timings
        for contradiction in find_contradictions(timing, measured.verdict)
    ]


def _is_memory_decided(measured: Measurement | None) -> bool:
    """Return whether nothing is left to decide about the memory of benchmarks that measure it."""
    timings = measured.timings if measured is not None else ()
    results = [timing.memory for timing in timings if timing.memory is not None]
    return all(result.verdict != MemoryVerdict.INCONCLUSIVE for result in results)


def _lasting_vetoes(measured: Measurement) -> tuple[str, ...]:
    """Return the vetoes that more sessions are not likely to lift."""
    contradictions = _find_contradictions(measured)
    passing = {item.text for item in contradictions if not item.is_shown}
    passing.update(find_doubts(measured))
    return tuple(veto for veto in measured.vetoes if veto not in passing)


def _budget_notes(record: _TimedCandidate, rules: DecisionRules) -> list[str]:
    if len(record.replicates) >= LOOKS[0] or _is_decided_early(rules, record.replicates):
        return []
    return [
        f"only {len(record.replicates)} sessions fit into {rules.budget_s:g} s, and of fewer than "
        f"{LOOKS[0]} nothing can be said: raise budget_s"
    ]
