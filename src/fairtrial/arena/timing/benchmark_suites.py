"""Benchmarks that were written for pytest-benchmark or asv, timed by sessions of ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from fairtrial.arena.checks.encoded_values import find_unplain
from fairtrial.arena.checks.exit_text import in_one_line, tail_of, tell_ending
from fairtrial.arena.checks.value_text import render
from fairtrial.arena.model.problem import Benchmark, Check
from fairtrial.arena.stage import HARNESS, Stage
from fairtrial.arena.timing.calibration import (
    Pace,
    choose_schedule,
    explain_misfit,
    find_pace,
)
from fairtrial.arena.timing.function_benchmark import FunctionBenchmark, measure_base
from fairtrial.arena.timing.inputs import NoInputs
from fairtrial.arena.timing.prepared_benchmark import TimingSetup
from fairtrial.core import MisfitError, Mistake, StudyError
from fairtrial.sandbox import Ending, wire

LISTER = HARNESS / "suite_lister.py"
LISTING_S = 120.0
LISTING_BYTES = 8 * 2**20
MOST_UNITS = 100
MOST_NAMED = 5
SAME_INPUTS = "inputs are the suite's own, the same in every call: they can be known by heart"


@dataclass(frozen=True, slots=True)
class SuiteListing:
    """What a suite holds.

    units: its benchmarks, as the harness describes them
    left_out: what can't be timed, and why
    """

    units: tuple[Mapping[str, Any], ...]
    left_out: tuple[tuple[str, str], ...]

    def describe_left_out(self) -> list[str]:
        """Return notes on what is left out, one for each reason."""
        by_reason: dict[str, list[str]] = {}
        for what, why in self.left_out:
            by_reason.setdefault(why, []).append(what)
        notes = []
        for why, names in by_reason.items():
            more = f" and {len(names) - MOST_NAMED} more" if names[MOST_NAMED:] else ""
            notes.append(f"not timed: {', '.join(names[:MOST_NAMED])}{more}: {why}")
        return notes


async def list_units(benchmark: Benchmark, stage: Stage) -> SuiteListing:
    """Read a suite in a slot.

    Raises `StudyError` if there is nothing in it that can be timed, or too much.
    """
    target = _relative(benchmark.suite, stage)
    command = stage.command(
        ["{python}", str(LISTER), target],
        timeout_s=LISTING_S,
        channel_bytes=LISTING_BYTES,
        path_tail=[HARNESS / "plugin"],
    )
    done = await stage.run(command)
    place = ("bench", benchmark.name, "suite")
    if done.ending != Ending.EXITED or done.exit_code != 0 or not done.channel:
        output = in_one_line(tail_of(done))
        message = f"reading {target} {tell_ending(done, command)}: {output}"
        raise StudyError(Mistake(place, message))
    report = json.loads(done.channel)
    if report.get("missing"):
        message = f"there is no {report['missing']} in the base"
        raise StudyError(Mistake(place, message, "name a file or a folder of the project"))
    listing = SuiteListing(
        tuple(report["units"]), tuple((what, why) for what, why in report["left_out"])
    )
    if not listing.units:
        why = "; ".join(listing.describe_left_out()) or (
            "no test has a benchmark fixture, and nothing is called time_... or peakmem_..."
        )
        raise StudyError(Mistake(place, f"{target} has no benchmark that can be read: {why}"))
    if len(listing.units) > MOST_UNITS:
        message = (
            f"{target} has {len(listing.units):,} benchmarks, and {MOST_UNITS} are timed at most"
        )
        raise StudyError(
            Mistake(place, message, "name some: FILE, FILE::NAME or FILE::Class.method")
        )
    return listing


async def prepare_suite(
    benchmark: Benchmark, setup: TimingSetup, *, budget_s: float
) -> list[FunctionBenchmark]:
    """Time each benchmark of a suite on the base alone; return those that can be timed.

    Raises `StudyError` if none can, `MisfitError` if only the budget of one is too small.
    """
    listing = await list_units(benchmark, setup.base)
    prepared: list[FunctionBenchmark] = []
    left_out: list[tuple[str, str]] = []
    for unit in listing.units:
        own = _make_own(benchmark, unit, is_only=len(listing.units) == 1)
        try:
            prepared.append(await _prepare_unit(own, unit, setup, budget_s))
        except StudyError as error:
            if len(listing.units) == 1:
                raise
            left_out.append((unit["title"], error.mistakes[0].message))
    if not prepared:
        what, why = left_out[0]
        message = f"none of its {len(left_out)} benchmarks can be timed on the base; {what}: {why}"
        raise StudyError(Mistake(("bench", benchmark.name, "suite"), message))
    whole = SuiteListing((), (*listing.left_out, *left_out))
    notes = (*prepared[0].notes, *whole.describe_left_out())
    return [replace(prepared[0], notes=notes), *prepared[1:]]


def _relative(target: str, stage: Stage) -> str:
    """Return a suite's path relative to the folder where commands start."""
    prefix = "" if stage.problem.cwd in ("", ".") else f"{stage.problem.cwd}/"
    return target.removeprefix(prefix)


def _make_own(benchmark: Benchmark, unit: Mapping[str, Any], *, is_only: bool) -> Benchmark:
    """Return the benchmark of one unit."""
    own = replace(benchmark, name=benchmark.name if is_only else unit["title"], suite=unit["title"])
    return replace(own, measure=("time", "peak_memory")) if unit.get("memory") else own


async def _prepare_unit(
    benchmark: Benchmark, unit: Mapping[str, Any], setup: TimingSetup, budget_s: float
) -> FunctionBenchmark:
    """Time one benchmark on the base alone, and choose calls per sample and rounds per session."""
    tail = (HARNESS / "plugin",)
    if unit["kind"] == "pytest" and not setup.base.interpreter.has_pytest:
        python = setup.base.interpreter.executable
        message = f"{benchmark.subject} needs pytest, which {python} doesn't have"
        raise StudyError(Mistake(("bench", benchmark.name, "suite"), message, "install it there"))
    job = _make_job(unit, compares=True)
    timed = partial(measure_base, benchmark, NoInputs(), setup, job, budget_s, path_tail=tail)
    pace = await find_pace(timed, budget_s)
    if "raised" in pace.outcome:
        message = f"{benchmark.subject} raises on the base: {_tell_raised(pace.outcome['raised'])}"
        raise StudyError(Mistake(("bench", benchmark.name, "suite"), message))
    notes = [SAME_INPUTS]
    why = await _find_incomparable(pace, timed)
    if why:
        notes.append(f"{benchmark.name}: {why}, so results were not compared while it was timed")
        job = _make_job(unit, compares=False)
    schedule = choose_schedule(pace, job, budget_s)
    if schedule is None:
        raise MisfitError(Mistake(("bench", benchmark.name), *explain_misfit(pace, budget_s)))
    return FunctionBenchmark(
        benchmark,
        Check(function="suite:benchmark", inputs="suite.py:benchmark"),
        NoInputs(),
        schedule,
        pace,
        compares=not why,
        notes=tuple(notes),
        repeats=True,
    )


def _tell_raised(raised: Mapping[str, Any]) -> str:
    """Return an encoded exception as `TypeError('...')`."""
    arguments = ", ".join(map(render, raised.get("args", ())))
    return f"{str(raised.get('type')).rpartition('.')[2]}({arguments})"


async def _find_incomparable(pace: Pace, timed: Any) -> str:
    """Return why results can't be compared; empty if they can."""
    result = pace.outcome.get("result")
    if find_unplain(result) is not None:
        return "what it gives is not plain data"
    if result is None or wire.dump_encoded(result) == wire.dump_encoded(None):
        return ""
    again = await timed()
    if wire.dump_encoded(again.outcome.get("result")) != wire.dump_encoded(result):
        return "what it gives on the base differs from process to process"
    return ""


def _make_job(unit: Mapping[str, Any], *, compares: bool) -> bytes:
    own = {name: value for name, value in unit.items() if name not in ("title", "memory")}
    job = {"suite": own, "caps": list(wire.Caps()), "compares": compares, "view": ""}
    return wire.dump_encoded(job).encode("ascii")
