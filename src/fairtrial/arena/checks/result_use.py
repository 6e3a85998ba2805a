"""Results used like callers do: kept, changed, and looked at again after later calls.

A sample of a check's calls is made in a second process, in another order
(`fairtrial.sandbox.harness.caller_worker`). The base goes through the same steps: where its own
results aren't independent of each other, nothing is asked of a candidate's.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from fairtrial.arena.checks.comparison_rules import ComparisonRules
from fairtrial.arena.checks.value_comparison import Differences
from fairtrial.arena.checks.value_text import render
from fairtrial.arena.checks.worker_reports import CallOutcome, compare_outcomes, is_same_text
from fairtrial.arena.model.problem import Check
from fairtrial.arena.model.verdicts import Difference

MOST_USED = 5
"""How many calls of a check are repeated in a second process."""
_SHARE = 5
HINT = "`aliasing: any` in this check allows results that share objects"


@dataclass(frozen=True, slots=True)
class UseExpectation:
    """The calls that are repeated in a second process, and the base's report on them.

    numbers: the numbers of the check's cases, in the order of the calls
    job: the input of a worker, in JSON
    lines: the base's report, one line per step
    uses: whether results are used, or the calls only repeated
    hash_seed: the hash seed of the second process: not the one of the first, so that results that
        depend on the order of a set show
    """

    numbers: tuple[int, ...]
    job: bytes = field(repr=False)
    lines: tuple[bytes, ...] = field(repr=False)
    uses: bool = True
    hash_seed: int = 1


def choose_calls(outcomes: Sequence[CallOutcome], seed: str) -> tuple[int, ...]:
    """Choose calls to repeat, in random order; those that return something are preferred."""
    rng = Random(f"{seed}/use")
    count = min(len(outcomes), MOST_USED, max(2, math.ceil(len(outcomes) / _SHARE)))
    order = rng.sample(range(len(outcomes)), len(outcomes))
    order.sort(key=lambda number: "result" not in outcomes[number])
    return tuple(rng.sample(order[:count], count))


def count_steps(use: UseExpectation) -> int:
    """Return the number of lines of a complete report."""
    return len(use.numbers) * (3 if use.uses else 1)


@dataclass(frozen=True, slots=True)
class CallUse:
    """The reports on one call and the use of its result.

    first: the outcome of the call
    used: what became of the result and the arguments
    again: the outcome of the second call
    """

    first: CallOutcome
    used: Mapping[str, Any]
    again: CallOutcome


def group_steps(use: UseExpectation, reports: Sequence[CallOutcome]) -> list[CallUse]:
    """Return the steps of each call, in the order of the calls."""
    count = len(use.numbers)
    if not use.uses:
        return [CallUse(report, {}, {}) for report in reports]
    first, used, again = reports[:count], reports[count : 2 * count], reports[2 * count :]
    return [CallUse(*steps) for steps in zip(first, used, reversed(again), strict=True)]


def compare_use(
    base: CallUse, actual: CallUse, case: Mapping[str, Any], rules: ComparisonRules
) -> Differences:
    """Return how a candidate's results differ from the base's in the hands of a caller."""
    differences = compare_outcomes(base.first, actual.first, case, rules)
    if differences.count:
        return differences
    shared = list(_find_shared(base, actual))
    if shared:
        return Differences(tuple(shared), len(shared))
    if not base.again or not is_repeatable(base, case, rules):
        return differences
    differences = compare_outcomes(base.again, actual.again, case, rules)
    first = (
        Difference(f"called again, after its first result was changed: {part.where}", *shown)
        for part in differences.first
        for shown in [(part.expected, part.actual)]
    )
    return Differences(tuple(first), differences.count)


def is_repeatable(base: CallUse, case: Mapping[str, Any], rules: ComparisonRules) -> bool:
    """Return whether the base's second call has the same outcome as the first one."""
    parts = ("result", "raised", "output", "after")
    first, again = ({part: use.get(part) for part in parts} for use in (base.first, base.again))
    if is_same_text(first, again):
        return True
    return compare_outcomes(base.first, base.again, case, rules).count == 0


def _find_shared(base: CallUse, actual: CallUse) -> Iterator[Difference]:
    """Yield which objects of a result are shared, if the base's aren't."""
    names = [_name_arguments(use.first.get("shares")) for use in (base, actual)]
    if names[0] != names[1]:
        yield Difference("what the result shares with the arguments", *names)
    if base.first.get("aliased") == 0 != actual.first.get("aliased"):
        shown = ("different objects", "the same object more than once")
        yield Difference("parts of the result", *shown)
    changes = (
        (base.used, actual.used, "kept", "the result, after later calls"),
        (base.used, actual.used, "after", "arguments, after the result was changed"),
        (
            base.again,
            actual.again,
            "still",
            "the result as its caller changed it, after more calls",
        ),
    )
    for expected, other, key, where in changes:
        if key in expected and expected[key] is None and other.get(key, "missing") is not None:
            yield Difference(where, "unchanged", render(other.get(key)))


def _name_arguments(names: object) -> str:
    return ", ".join(map(str, names)) or "nothing" if isinstance(names, list) else "not reported"


def describe_base(
    check: Check,
    use: UseExpectation,
    reports: Sequence[CallOutcome],
    cases: Sequence[Any],
    rules: ComparisonRules,
) -> list[str]:
    """Return a note if the base's own results aren't independent of later calls."""
    calls = group_steps(use, reports)
    is_shared = any(call.used.get("kept") is not None for call in calls) or any(
        call.again.get("still") is not None for call in calls
    )
    pairs = zip(calls, cases, strict=True)
    if not use.uses or not (
        is_shared or any(not is_repeatable(call, case, rules) for call, case in pairs)
    ):
        return []
    return [
        f"results of {check.function} on the base depend on what callers do with earlier ones: "
        "candidates' results may do so as well"
    ]
