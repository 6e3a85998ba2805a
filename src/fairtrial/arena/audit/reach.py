"""Find the lines that the audited functions run on the base."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath

from fairtrial.arena.checks.function_check import PreparedFunctionCheck
from fairtrial.arena.checks.prepared_check import PreparedCheck
from fairtrial.arena.delivery.tracing import TraceRequest, trace
from fairtrial.arena.resources import ArenaResources
from fairtrial.core import LabError, run_all

SPEND_S = 2.0
"""After this long no further call is traced."""
MOST_CASES = 20
"""How many calls of a check are traced."""


@dataclass(frozen=True, slots=True)
class ReachedLines:
    """The lines that were run, by file.

    lines: the lines, by the path of an editable file
    notes: what could not be traced, and why
    """

    lines: Mapping[str, frozenset[int]]
    notes: tuple[str, ...] = field(default=())


async def trace_functions(
    resources: ArenaResources,
    checks: Sequence[PreparedCheck],
    functions: Sequence[str],
    files: Iterable[str],
    limit_s: float,
) -> ReachedLines:
    """Call the functions on the base with the inputs of their checks, and return what they run.

    files: the editable files
    limit_s: how long each function may take
    """
    paths = tuple(sorted(path for path in files if PurePosixPath(path).suffix == ".py"))
    jobs = [_read_job(check) for check in checks if isinstance(check, PreparedFunctionCheck)]
    named = {job["function"] for job in jobs}
    notes = [f"no mutants of {name}: no check has inputs for it" for name in functions]
    notes = [note for note, name in zip(notes, functions, strict=True) if name not in named]
    reached: dict[str, set[int]] = defaultdict(set)

    async def trace_job(job: Mapping[str, object]) -> None:
        # With times, tracing starts after the imports: what they run isn't reached by calls.
        request = TraceRequest(paths, timed=True, limit_s=limit_s, calls=job, spend_s=SPEND_S)
        try:
            line_trace = await trace(resources, None, request)
        except LabError as error:
            notes.append(f"no mutants of {job['function']}: it could not be traced: {error}")
            return
        for path, line in line_trace.lines:
            reached[path].add(line)

    await run_all([partial(trace_job, job) for job in jobs])
    return ReachedLines({path: frozenset(lines) for path, lines in reached.items()}, tuple(notes))


def _read_job(check: PreparedFunctionCheck) -> dict[str, object]:
    """Return the worker's job of a check, with a part of its calls."""
    job: dict[str, object] = json.loads(check.expectation.job)
    cases = job["cases"]
    assert isinstance(cases, list)
    return {**job, "cases": cases[:MOST_CASES]}
