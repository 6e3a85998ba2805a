"""The timing phase: candidates that passed their checks are timed, and judgements completed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from fairtrial.arena.arena import Arena
from fairtrial.arena.events import CandidateJudged, TimingProgress
from fairtrial.arena.model.candidates import Changes
from fairtrial.arena.model.judgements import Judgement
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.arena.model.timings import Estimate, Measurement
from fairtrial.arena.model.verdicts import Rejection, Verdict
from fairtrial.arena.slots.threads import NoRoomError
from fairtrial.arena.timing.bench import Bench
from fairtrial.arena.timing.decision import (
    DecisionRules,
    OnTotals,
    Timer,
    Watcher,
    measure,
    race,
    untimed,
)
from fairtrial.core import events, sequential


@dataclass(frozen=True, slots=True)
class TimingPhase:
    """Times the candidates that passed their checks.

    problem: the code problem, with its decision rules
    timer: runs sessions
    timing: `race` looks for the best one, `each` times every one until it is decided
    vetoes: reasons against adopting any candidate
    max_regression: with `each`, the regression that must be decided, too
    """

    problem: CodeProblem
    timer: Timer
    timing: Literal["race", "each", "none"] = "race"
    vetoes: tuple[str, ...] = ()
    max_regression: float = 0.0

    async def run(
        self,
        judgements: Sequence[Judgement],
        resolved: Sequence[Changes | Rejection],
        emit: events.Emit = events.ignore_event,
    ) -> tuple[Judgement, ...]:
        """Time candidates, equal ones once; return their judgements with measurements.

        resolved: the changes of each candidate
        emit: gets `TimingProgress` between sessions and `CandidateJudged` at the end, with the
            candidate's name
        """
        labels = _label(judgements)
        entries: dict[str, Changes] = {}
        names: dict[str, str] = {}
        for label, judgement, changes in zip(labels, judgements, resolved, strict=True):
            is_first = judgement.duplicate_of is None and judgement.verdict == Verdict.PASSED
            if is_first and isinstance(changes, Changes):
                entries[label], names[label] = changes, judgement.name
        watcher, on_totals = report_timing(emit, names), report_totals(emit, names)
        results = await self._time(entries, watcher, on_totals)
        by_digest = {
            entries[label].digest: with_vetoes(_with_unloaded(result, entries[label]), self.vetoes)
            for label, result in results.items()
        }
        completed = []
        for judgement in judgements:
            result = by_digest.get(judgement.digest)
            if judgement.verdict == Verdict.PASSED and result is not None:
                judgement = judgement.with_timing(result)
                emit(CandidateJudged(judgement.name, judgement))
            completed.append(judgement)
        return tuple(completed)

    async def _time(
        self, entries: Mapping[str, Changes], watcher: Watcher, on_totals: OnTotals
    ) -> dict[str, Measurement | Rejection]:
        rules = timing_rules(self.problem, self.max_regression, self.timer)
        if self.timing == "race":
            return await race(self.timer, entries, rules, watcher=watcher, on_totals=on_totals)
        alone = replace(rules, alpha=sequential.alpha_share(rules.alpha, max(len(entries), 1)))
        results: dict[str, Measurement | Rejection] = {}
        for label, changes in entries.items():
            try:
                results[label] = await measure(
                    self.timer, label, changes, alone, watcher=watcher, on_totals=on_totals
                )
            except NoRoomError as error:  # the other candidates' results are kept
                results[label] = untimed(error)
        return results


def report_timing(emit: events.Emit, names: Mapping[str, str] = MappingProxyType({})) -> Watcher:
    """Return a function that emits `TimingProgress` for each report of a measurement.

    names: the names of candidates by the labels that they are timed under, where these differ
    """

    def watch(label: str, sessions: int, estimate: Estimate | None) -> None:
        emit(TimingProgress(names.get(label, label), sessions, estimate))

    return watch


def report_totals(emit: events.Emit, names: Mapping[str, str] = MappingProxyType({})) -> OnTotals:
    """Return a function that emits `PhaseStarted` when a candidate's whole processes begin.

    names: as for `report_timing`
    """

    def begin(label: str) -> None:
        emit(events.PhaseStarted(events.Phase.WHOLE_PROCESSES, names.get(label, label)))

    return begin


async def time_candidate(
    arena: Arena,
    timer: Timer,
    name: str,
    changes: Changes,
    *,
    label: str = "",
    is_final: bool = True,
    emit: events.Emit = events.ignore_event,
) -> Measurement | Rejection:
    """Time one candidate that passed its checks, until it is decided or `budget_s` is used up.

    timer: what `arena.bench()` yields
    label: determines the inputs, so that another label confirms a result with fresh inputs
    is_final: whether nothing confirms the result later; then a candidate that is to be adopted also
        has to show its gain in the total of whole processes
    emit: gets `TimingProgress` between sessions, with `name` as the candidate's id

    Returns a rejection if the candidate failed while it was timed. Raises `NoRoomError` if the disk
    is full: no other candidate could be timed either.
    """
    rules = timing_rules(arena.problem, timer=timer)
    result = await measure(
        timer,
        name,
        changes,
        rules,
        label=label,
        is_final=is_final,
        watcher=report_timing(emit),
        on_totals=report_totals(emit),
    )
    return with_vetoes(_with_unloaded(result, changes), arena.vetoes)


def with_vetoes(
    result: Measurement | Rejection, vetoes: tuple[str, ...]
) -> Measurement | Rejection:
    """Return a measurement with further reasons against adoption."""
    if isinstance(result, Rejection) or not vetoes:
        return result
    return replace(result, adopt=False, vetoes=(*vetoes, *result.vetoes))


def timing_rules(
    problem: CodeProblem, max_regression: float = 0.0, timer: Timer | None = None
) -> DecisionRules:
    """Return a problem's decision rules; the budget is `budget_s` for each benchmark.

    timer: a bench knows how many benchmarks there are, those of suites counted one by one
    """
    count = len(timer.benchmarks) if isinstance(timer, Bench) else 0
    return DecisionRules(
        problem.alpha,
        problem.min_effect,
        max(problem.timing_budget_s, count * problem.budget_s),
        {benchmark.name: benchmark.max_startup_ratio for benchmark in problem.bench},
        max_regression,
    )


def _with_unloaded(result: Measurement | Rejection, changes: Changes) -> Measurement | Rejection:
    """Add a note on changed files that no timed process imported."""
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
    """Return a unique label for each candidate: its name, with its number if it is ambiguous."""
    counts = Counter(judgement.name for judgement in judgements)
    return [
        judgement.name if counts[judgement.name] == 1 else f"{judgement.name} ({number})"
        for number, judgement in enumerate(judgements, 1)
    ]
