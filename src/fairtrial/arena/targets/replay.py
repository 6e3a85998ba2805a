"""Make recorded calls again on the base, and choose a bounded, diverse sample of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fairtrial.arena.checks.encoded_values import find_unplain
from fairtrial.arena.checks.exit_text import tell_ending
from fairtrial.arena.checks.function_check import CHANNEL_BYTES, call_command, write_job
from fairtrial.arena.checks.recorded_calls import Call, name_pickle
from fairtrial.arena.checks.value_text import render
from fairtrial.arena.checks.worker_reports import (
    CallOutcome,
    compare_outcomes,
    describe_import_failure,
    make_rules,
    read_line,
    read_report,
)
from fairtrial.arena.model.problem import Check
from fairtrial.arena.resources import ArenaResources
from fairtrial.arena.stage import Stage
from fairtrial.arena.targets.recording import RecordedCall, Recording
from fairtrial.core import Mistake, StudyError
from fairtrial.sandbox import Ending, wire

MOST_TRIED, MOST_KEPT = 300, 60
"""How many calls are made again, and how many are kept."""
MOST_BYTES = 4 * 2**20
"""About how large the file of kept calls may become."""
EXACT = 1e-13
"""Relative tolerance between two runs of the base: a clock's seconds since 1970 aren't equal."""
_TIMEOUT_S = 60.0
_MOST_CRASHES = 5


@dataclass(frozen=True, slots=True)
class KeptCall:
    """A call that the base reproduces.

    case: its encoded arguments
    outcome: the outcome on the base, as a worker reports it
    key: the kind of its arguments
    seconds: how long it took
    weight_s: the time of all calls of its kind that it stands for
    """

    case: Mapping[str, Any]
    outcome: CallOutcome
    key: str
    seconds: float
    weight_s: float = 0.0

    @property
    def size(self) -> int:
        """How long its encoded arguments are."""
        return len(wire.dump_encoded(dict(self.case)))

    def as_dict(self, function: str) -> dict[str, Any]:
        """Return the call of a function as files of recorded calls hold it."""
        entry = name_pickle(self.case, function)
        if "raised" in self.outcome:
            raised = self.outcome["raised"]
            entry["raises"] = {"type": raised["type"], "args": raised["args"]}
        else:
            entry["result"] = self.outcome["result"]
        return {**entry, "seconds": float(f"{self.weight_s:.3g}")}


@dataclass(frozen=True, slots=True)
class CallSample:
    """The calls that are kept, and why others are not.

    calls: the kept calls
    distinct: how many distinct calls the base reproduces
    left_out: how many calls were left out, by reason
    """

    calls: tuple[KeptCall, ...]
    distinct: int
    left_out: Mapping[str, int]


async def choose_calls(
    resources: ArenaResources, function: str, recording: Recording
) -> CallSample:
    """Make recorded calls again, twice, in fresh processes; choose a sample of those that agree.

    function: `module:function`

    Raises `StudyError` if the function can't be imported.
    """
    left_out = Counter(recording.left_out)
    tried = _spread(_deduplicate(recording.calls), MOST_TRIED)
    kept: list[KeptCall] = []
    if tried:
        rounds = [await _replay(resources, function, tried, left_out, seed) for seed in ("0", "1")]
        rules = make_rules(
            Check(
                function=function,
                calls="recorded",
                dict_order="any",
                array_layout="any",
                rel_tol=EXACT,
            )
        )
        for index, call in enumerate(tried):
            outcomes = [outcomes[index] for outcomes in rounds if index in outcomes]
            if len(outcomes) < 2:
                continue
            why = _find_doubt(call, outcomes, rules)
            if why:
                left_out[why] += 1
            else:
                kept.append(KeptCall(call.case, outcomes[0], call.key, call.seconds))
    chosen = _choose(kept)
    return CallSample(_weigh(chosen, recording), len(kept), dict(left_out))


def _deduplicate(calls: Sequence[RecordedCall]) -> list[RecordedCall]:
    """Return distinct calls; of equal ones the slowest, since the first may be one of a cache."""
    by_text: dict[str, RecordedCall] = {}
    for call in calls:
        text = wire.dump_encoded(dict(call.case))
        other = by_text.get(text)
        if other is None or call.seconds > other.seconds:
            by_text[text] = call
    return list(by_text.values())


def _spread(calls: Sequence[RecordedCall], most: int) -> list[RecordedCall]:
    """Return calls of all kinds in turn, of each kind the slowest first."""
    groups: dict[tuple[str, str], list[RecordedCall]] = {}
    for call in calls:
        groups.setdefault((call.key, _name_outcome(call.outcome)), []).append(call)
    for group in groups.values():
        group.sort(key=lambda call: -call.seconds)
    chosen: list[RecordedCall] = []
    depth = 0
    while len(chosen) < most and any(len(group) > depth for group in groups.values()):
        chosen += [group[depth] for group in groups.values() if len(group) > depth]
        depth += 1
    return chosen[:most]


def _name_outcome(outcome: Mapping[str, Any]) -> str:
    raised = outcome.get("raises") or outcome.get("raised")
    if isinstance(raised, dict):
        return str(raised.get("type"))
    result = outcome.get("result")
    kind = result.get("$", "dict") if isinstance(result, dict) else type(result).__name__
    return f"{kind} {result}" if isinstance(result, bool) or result is None else str(kind)


async def _replay(
    resources: ArenaResources,
    function: str,
    calls: Sequence[RecordedCall],
    left_out: Counter[str],
    hash_seed: str,
) -> dict[int, CallOutcome]:
    """Make calls in a fresh process; return their outcomes by index, as far as it goes."""
    check = Check(function=function, calls="recorded", timeout_s=_TIMEOUT_S)
    outcomes: dict[int, CallOutcome] = {}
    pending = list(range(len(calls)))
    for _ in range(_MOST_CRASHES):
        if not pending:
            break
        job = write_job(check, [Call(calls[index].case) for index in pending])
        async with resources() as stage:
            command = call_command(stage, check, job, CHANNEL_BYTES, {"PYTHONHASHSEED": hash_seed})
            done = await stage.run(command)
        report = read_report(done.channel, len(pending))
        _refuse_unimportable(function, report.failed, stage)
        for index, line in zip(pending, report.lines, strict=False):
            outcomes[index] = read_line(line)
        if report.is_complete and done.ending == Ending.EXITED:
            return outcomes
        at = len(report.lines)
        left_out[f"the process {tell_ending(done, command)} in it"] += 1
        pending = pending[at + 1 :]
    return outcomes


def _refuse_unimportable(function: str, failed: Any, stage: Stage) -> None:
    if failed:
        roots = ", ".join(stage.import_roots) or "."
        message = f"{function} can't be imported: {describe_import_failure(failed)}"
        raise StudyError(Mistake((), message, f"imports start from {roots}"))


def _find_doubt(call: RecordedCall, outcomes: Sequence[CallOutcome], rules: Any) -> str:
    """Return why a call can't be part of a check; empty if it can."""
    first, second = outcomes
    if "unusable" in first:
        return str(first["unusable"])[:200]
    for part, what in (
        ("result", "its result"),
        ("raised", "its exception"),
        ("after", "after it"),
    ):
        unplain = find_unplain(first.get(part))
        if unplain is not None:
            return f"{what} holds {render(unplain)}, which can't be compared"
    if compare_outcomes(first, second, call.case, rules).count:
        return "the base gives something else each time"
    if "result" in call.outcome and find_unplain(call.outcome["result"]) is None:
        expected = {**first, "result": call.outcome["result"]}
        if "raised" in first or compare_outcomes(expected, first, call.case, rules).count:
            return "the base gives something else in a fresh process"
    if "raises" in call.outcome and "raised" not in first:
        return "the base gives something else in a fresh process"
    return ""


def _choose(calls: Sequence[KeptCall]) -> list[KeptCall]:
    """Return at most `MOST_KEPT` calls: of all kinds and outcomes in turn, and the slowest."""
    recorded = [RecordedCall(call.key, call.case, call.outcome, call.seconds) for call in calls]
    order = {id(item): call for item, call in zip(recorded, calls, strict=True)}
    chosen: list[KeptCall] = []
    size = 0
    for item in _spread(recorded, MOST_KEPT):
        call = order[id(item)]
        size += call.size
        if chosen and size > MOST_BYTES:
            break
        chosen.append(call)
    return chosen


def _weigh(calls: Sequence[KeptCall], recording: Recording) -> tuple[KeptCall, ...]:
    """Share the time of all calls of a kind among the kept calls of that kind."""
    counts = Counter(call.key for call in calls)
    weighed = []
    for call in calls:
        seconds = recording.keys.get(call.key, (1, call.seconds))[1]
        weighed.append(replace(call, weight_s=max(seconds / counts[call.key], 1e-9)))
    return tuple(weighed)
