"""Phase two for candidates that passed: who is timed, and what that makes of their judgements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from fairtrial.arena.arena import Arena
from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.model.judgements import Judgement
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.arena.model.timings import Estimate, Measurement
from fairtrial.arena.model.verdicts import Reason, Rejection, Verdict
from fairtrial.arena.slots.threads import NoRoomError
from fairtrial.arena.timing.decision import Rules, Timer, measure, race, untimed
from fairtrial.arena.timing.stats.alpha_spending import share

Judged = Callable[[int, Judgement], None]
Timed = Callable[[int, int, Estimate | None], None]


@dataclass(frozen=True, slots=True)
class Contest:
    """Times candidates that passed.

    problem: what decides
    timer: what takes sessions
    timing: `race` looks for the best, `each` times every one to its end
    """

    problem: CodeProblem
    timer: Timer
    timing: Literal["race", "each", "none"] = "race"

    async def settle(
        self,
        judgements: Sequence[Judgement],
        resolved: Sequence[Changes | Rejection],
        judged: Judged | None = None,
        timed: Timed | None = None,
    ) -> tuple[Judgement, ...]:
        """The judgements, with what the clock says; equal candidates are timed once."""
        labels = _label(judgements)
        entries: dict[str, Changes] = {}
        places: dict[str, int] = {}
        for place, (judgement, changes) in enumerate(zip(judgements, resolved, strict=True)):
            is_first = judgement.duplicate_of is None and judgement.verdict == Verdict.PASSED
            if is_first and isinstance(changes, Changes):
                entries[labels[place]], places[labels[place]] = changes, place

        def watch(label: str, sessions: int, estimate: Estimate | None) -> None:
            if timed is not None:
                timed(places[label], sessions, estimate)

        found = await self._time(entries, watch)
        found = {label: _with_unloaded(each, entries[label]) for label, each in found.items()}
        by_digest = {entries[label].digest: result for label, result in found.items()}
        settled = []
        for place, judgement in enumerate(judgements):
            result = by_digest.get(judgement.digest)
            if judgement.verdict == Verdict.PASSED and result is not None:
                judgement = with_timing(judgement, result)
                if judged is not None:
                    judged(place, judgement)
            settled.append(judgement)
        return tuple(settled)

    async def _time(
        self, entries: dict[str, Changes], watch: Callable[[str, int, Estimate | None], None]
    ) -> dict[str, Measurement | Rejection]:
        rules = rules_of(self.problem)
        if self.timing == "race":
            return await race(self.timer, entries, rules, watcher=watch)
        alone = replace(rules, alpha=share(rules.alpha, max(len(entries), 1)))
        found: dict[str, Measurement | Rejection] = {}
        for label, changes in entries.items():
            try:
                found[label] = await measure(self.timer, label, changes, alone, watcher=watch)
            except NoRoomError as error:  # what is known of the others is told
                found[label] = untimed(error)
        return found


async def time_candidate(
    arena: Arena,
    timer: Timer,
    name: str,
    changes: Changes,
    *,
    label: str = "",
    watcher: Callable[[str, int, Estimate | None], None] | None = None,
) -> Measurement | Rejection:
    """Time one candidate that passed its checks, until something can be said or `budget_s` is over.

    Raises `NoRoomError` if the disk is full: whoever goes on would time nothing else.

    timer: what `arena.bench()` gives
    label: another one gives other inputs: the best of several is measured again with fresh ones
    watcher: is told its name, how many sessions it has had, and how it stands
    """
    rules = rules_of(arena.problem)
    found = await measure(timer, name, changes, rules, label=label, watcher=watcher)
    return _with_unloaded(found, changes)


def rules_of(problem: CodeProblem) -> Rules:
    """What decides, as the problem has it; the budget is each benchmark's."""
    benchmarks = max(len(problem.bench), 1)
    return Rules(problem.alpha, problem.min_effect, problem.budget_s * benchmarks)


def with_timing(judgement: Judgement, result: Measurement | Rejection) -> Judgement:
    """A candidate that passed, with what the clock says, or why it is out after all."""
    if isinstance(result, Measurement):
        return replace(judgement, verdict=result.verdict, measurement=result)
    ours = result.reason == Reason.EVALUATOR
    verdict = Verdict.INCONCLUSIVE if ours else Verdict.REJECTED
    return replace(judgement, verdict=verdict, rejection=result.cleaned())


def _with_unloaded(result: Measurement | Rejection, changes: Changes) -> Measurement | Rejection:
    """The same, with a note on changed files that no timed worker imported."""
    if isinstance(result, Rejection):
        return result
    loaded = {file for session in result.sessions for file in session.loaded}
    changed = sorted(path for path, state in changes.files.items() if state is not None)
    unloaded = [
        path
        for path in changed
        if path.endswith(".py") and not any(file.endswith(f"/{path}") for file in loaded)
    ]
    if not loaded or not unloaded:
        return result
    shown = ", ".join(unloaded[:3]) + (f" and {len(unloaded) - 3} more" if unloaded[3:] else "")
    return replace(result, notes=(*result.notes, f"changed, but not used while timed: {shown}"))


def _label(judgements: Sequence[Judgement]) -> list[str]:
    """A name for each that no other has."""
    counts = Counter(judgement.name for judgement in judgements)
    return [
        each.name if counts[each.name] == 1 else f"{each.name} ({place})"
        for place, each in enumerate(judgements, 1)
    ]
