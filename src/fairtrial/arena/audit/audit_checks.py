"""The checks that an audit uses: those of the problem, with short time limits.

What a mutant breaks often never ends, so each check may take a few times as long as on the base.
Tests that the base fails on purpose are left out: they would reject everything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fairtrial.arena.checks.base_expectations import keep_all_that_base_passes
from fairtrial.arena.checks.command_check import PreparedCommandCheck
from fairtrial.arena.checks.function_check import PreparedFunctionCheck, prepare_calls
from fairtrial.arena.checks.prepared_check import PreparedCheck
from fairtrial.arena.checks.pytest_check import PreparedPytestCheck
from fairtrial.arena.model.problem import Check, CodeProblem
from fairtrial.arena.resources import ArenaResources
from fairtrial.core import StudyError

SPARE_S, FACTOR = 1.0, 5.0
"""A check may take `SPARE_S` longer than `FACTOR` times as long as it takes on the base."""
BENCH_CASES = 20
"""How many inputs of a benchmark are compared, as its results are while it is timed."""


def limit_checks(checks: Sequence[PreparedCheck]) -> list[PreparedCheck]:
    """Return checks with short time limits, the fastest first.

    What fails on the base on purpose is left out.
    """
    limited = [_limit(check) for check in keep_all_that_base_passes(checks)]
    return sorted(limited, key=lambda check: check.base_s)


def _limit(prepared: PreparedCheck) -> PreparedCheck:
    match prepared:
        case PreparedFunctionCheck(expectation=expectation):
            check = _shorten(expectation.check, prepared.base_s)
            return replace(prepared, expectation=replace(expectation, check=check))
        case PreparedPytestCheck(check=check):
            return replace(prepared, check=_shorten(check, prepared.base_s))
        case PreparedCommandCheck(check=check):
            return replace(prepared, check=_shorten(check, prepared.base_s))
    return prepared


def _shorten(check: Check, base_s: float) -> Check:
    return replace(check, timeout_s=min(check.timeout_s, SPARE_S + FACTOR * base_s))


def find_audited_functions(problem: CodeProblem) -> tuple[str, ...]:
    """Return the functions that the problem times or checks, each once."""
    timed = [benchmark.call for benchmark in problem.bench]
    checked = [check.function for check in problem.check]
    return tuple(dict.fromkeys(name for name in (*timed, *checked) if name))


async def prepare_timed_comparisons(
    resources: ArenaResources, checks: Sequence[PreparedCheck]
) -> list[PreparedCheck]:
    """Return a check for each benchmark of a function that no check of the problem calls.

    Results are compared while candidates are timed, so these reject candidates, too. A benchmark
    whose results can't be compared has none.
    """
    checked = {
        check.expectation.check.function
        for check in checks
        if isinstance(check, PreparedFunctionCheck)
    }
    prepared: list[PreparedCheck] = []
    for benchmark in resources.problem.bench:
        if not benchmark.call or benchmark.call in checked:
            continue
        check = Check(function=benchmark.call, inputs=benchmark.inputs, cases=BENCH_CASES)
        try:
            label = f"bench[{benchmark.name}]"
            prepared.append(await prepare_calls(label, check, resources))
        except StudyError:  # then nothing is compared while it is timed either
            continue
        checked.add(benchmark.call)
    return prepared
