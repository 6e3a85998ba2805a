"""Who is faster: one candidate until that can be said, or many in a race.

The bench measures, the statistics decide; this is what goes between them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.model.timings import Estimate, Measurement
from fairtrial.arena.model.verdicts import Reason, Rejection, Verdict
from fairtrial.arena.slots.threads import NoRoomError, explain
from fairtrial.arena.timing.bench import Heat
from fairtrial.arena.timing.stats.race import Race
from fairtrial.arena.timing.stats.race_field import Standing, State
from fairtrial.arena.timing.stats.ratio_text import estimate_text
from fairtrial.arena.timing.stats.sequential import LOOKS, look, next_look
from fairtrial.arena.timing.summary import Replicate, statistics_of, summarise
from fairtrial.core import FairtrialError

Watcher = Callable[[str, int, Estimate | None], None]
"""Is told a candidate's name, how many sessions it has, and how it stands."""


class Timer(Protocol):
    """What takes sessions: a `Bench`, or a simulated one."""

    async def run(
        self, changes: Changes | None, label: str, first: int, count: int, budget_s: float
    ) -> Heat:
        """Sessions number `first` and on, `count` of them or as many as the budget holds."""
        ...


@dataclass(frozen=True, slots=True)
class Rules:
    """What decides.

    alpha: how often a difference may be claimed where there is none
    min_effect: the smallest change that is worth anything
    budget_s: how long one candidate may take
    """

    alpha: float
    min_effect: float
    budget_s: float


@dataclass(slots=True)
class _Record:
    """One candidate's sessions so far."""

    replicates: list[Replicate] = field(default_factory=list)
    seconds: float = 0.0
    charged_s: float = 0.0
    waited_s: float = 0.0
    rejection: Rejection | None = None
    vetoes: tuple[str, ...] = ()

    def add(self, heat: Heat) -> None:
        self.replicates += heat.replicates
        self.seconds += heat.seconds
        self.charged_s += heat.charged_s
        self.waited_s += heat.waited_s
        self.rejection = heat.rejection

    def give_up(self, rules: Rules, alpha: float, when: str = "before that") -> Rejection:
        """Why it is out; if that is no fault of its own, with what its sessions said before."""
        assert self.rejection is not None
        known = self.summarise(rules, alpha)
        if self.rejection.reason != Reason.EVALUATOR or known is None:
            return self.rejection
        told = estimate_text(known.estimate) or "too few to say anything"
        count = len(self.replicates)
        sessions = f"its {count} session{'s' if count > 1 else ''} {when}"
        return replace(self.rejection, message=f"{self.rejection.message}; {sessions}: {told}")

    def summarise(self, rules: Rules, alpha: float, *notes: str) -> Measurement | None:
        if not self.replicates:
            return None
        return summarise(
            self.replicates,
            alpha=alpha,
            min_effect=rules.min_effect,
            seconds=self.seconds,
            waited_s=self.waited_s,
            notes=notes,
        )


async def measure(
    timer: Timer,
    name: str,
    changes: Changes | None,
    rules: Rules,
    *,
    label: str = "",
    watcher: Watcher | None = None,
) -> Measurement | Rejection:
    """Time one candidate against the base until something can be said, or the budget ends.

    Raises `NoRoomError` if the disk is full: whoever goes on would time nothing else.

    label: keeps its inputs apart from those of other measurements of the same candidate
    """
    record = _Record()
    while (goal := next_look(len(record.replicates))) is not None:
        done = len(record.replicates)
        left_s = rules.budget_s - record.charged_s
        record.add(await _run(timer, changes, f"{label}/{name}", done, goal - done, left_s))
        if record.rejection is not None:
            return record.give_up(rules, rules.alpha)
        _tell(watcher, name, record, rules)
        found = look(
            statistics_of(record.replicates), alpha=rules.alpha, min_effect=rules.min_effect
        )
        is_spent = len(record.replicates) < goal or record.charged_s >= rules.budget_s
        if found.is_decided or is_spent:
            break
    measured = record.summarise(rules, rules.alpha, *_tell_budget(record, rules))
    assert measured is not None
    return measured


async def race(
    timer: Timer,
    candidates: Mapping[str, Changes],
    rules: Rules,
    *,
    watcher: Watcher | None = None,
) -> dict[str, Measurement | Rejection]:
    """Time many candidates until it is clear which is the best; that one is measured again.

    What is said of the winner comes of fresh sessions alone, since it was picked for doing well;
    what is said of the others, of their part in the race, and holds for all of them at once. A full
    disk costs those their verdict who can't be put in place any more, and nobody else.
    """
    names = list(candidates)
    records = {name: _Record() for name in names}
    runners = Race(len(names), alpha=rules.alpha, min_effect=rules.min_effect)
    while (heat := runners.next_heat()) is not None:
        name = names[heat.runner]
        record = records[name]
        done = len(record.replicates)
        left_s = max(rules.budget_s - record.charged_s, 0.0)
        try:
            found = await _run(timer, candidates[name], f"race/{name}", done, heat.sessions, left_s)
        except NoRoomError as error:
            found = Heat(rejection=untimed(error))
        record.add(found)
        if record.rejection is not None:
            runners.withdraw(heat.runner)
            continue
        so_far = _tell(watcher, name, record, rules)
        if so_far is not None and so_far.vetoes:  # it can't be adopted, so it must not win
            record.vetoes = so_far.vetoes
            runners.withdraw(heat.runner)
            continue
        runners.tell(heat.runner, statistics_of(found.replicates))
        if len(found.replicates) < heat.sessions:  # its budget ended
            runners.stop()
    results: dict[str, Measurement | Rejection] = {}
    for name, standing in zip(names, runners.standings, strict=True):
        results[name] = _settle(records[name], standing, names, rules)
    if runners.winner is not None:
        best = names[runners.winner]
        try:
            again = await measure(
                timer, best, candidates[best], rules, label="final", watcher=watcher
            )
        except NoRoomError as error:
            again = untimed(error)
        results[best] = _confirm(records[best], again, rules, rules.alpha / len(names))
    return results


def _confirm(
    raced: _Record, again: Measurement | Rejection, rules: Rules, alpha: float
) -> Measurement | Rejection:
    """The winner, by its fresh sessions; where we couldn't take them, what it led the race with."""
    if isinstance(again, Measurement):
        return replace(
            again,
            is_confirmed=bool(raced.replicates),
            seconds=again.seconds + raced.seconds,
            waited_s=again.waited_s + raced.waited_s,
        )
    raced.rejection = again
    return raced.give_up(rules, alpha, "in the race")


async def _run(
    timer: Timer, changes: Changes | None, label: str, first: int, count: int, budget_s: float
) -> Heat:
    """Sessions; what is our own fault costs this candidate its verdict, and nobody else theirs."""
    try:
        return await timer.run(changes, label, first, count, budget_s)
    except NoRoomError:
        raise
    except FairtrialError as error:
        return Heat(rejection=untimed(error))
    except OSError as error:
        found = explain(error)
        if isinstance(found, NoRoomError):
            raise found from error
        return Heat(rejection=untimed(error))


def untimed(error: Exception) -> Rejection:
    """What to say of a candidate that could not be timed, and not through its own fault."""
    return Rejection(Reason.EVALUATOR, f"it could not be timed: {error}")


def _settle(
    record: _Record, standing: Standing, names: Sequence[str], rules: Rules
) -> Measurement | Rejection:
    alpha = rules.alpha / len(names)
    if record.rejection is not None:
        return record.give_up(rules, alpha)
    rival = "" if standing.rival is None else f" ({names[standing.rival]})"
    raced = f"out of the race after {len(record.replicates)} sessions: {standing.state}{rival}"
    notes = () if standing.state in (State.RUNNING, State.WITHDRAWN) else (raced,)
    measured = record.summarise(rules, alpha, *notes)
    if measured is None:
        nothing = ("it had no session",)
        return Measurement(verdict=Verdict.INCONCLUSIVE, estimate=None, notes=nothing)
    if record.vetoes:  # what kept it from winning still speaks against it, by wider bounds or not
        return replace(measured, adopt=False, vetoes=record.vetoes)
    return measured


def _tell(watcher: Watcher | None, name: str, record: _Record, rules: Rules) -> Measurement | None:
    """How it stands, for whoever watches."""
    measured = record.summarise(rules, rules.alpha)
    if watcher is not None and measured is not None:
        watcher(name, len(record.replicates), measured.estimate)
    return measured


def _tell_budget(record: _Record, rules: Rules) -> list[str]:
    if len(record.replicates) >= LOOKS[0]:
        return []
    return [
        f"only {len(record.replicates)} sessions fit into {rules.budget_s:g} s, and of fewer than "
        f"{LOOKS[0]} nothing can be said: raise budget_s"
    ]
