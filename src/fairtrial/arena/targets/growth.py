"""Larger arguments for recorded calls, or arguments from type hints, that the base accepts."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from fairtrial.arena.checks.encoded_values import find_unplain, get_kind
from fairtrial.arena.checks.function_check import (
    CHANNEL_BYTES,
    call_command,
    make_inputs,
    write_job,
)
from fairtrial.arena.checks.prepared_check import Stages
from fairtrial.arena.checks.recorded_calls import Call
from fairtrial.arena.checks.worker_reports import (
    compare_outcomes,
    make_rules,
    read_line,
    read_report,
)
from fairtrial.arena.model.problem import BESIDE, Check
from fairtrial.arena.resources import ArenaResources
from fairtrial.arena.stage import Stage
from fairtrial.arena.targets.lookup import Target
from fairtrial.arena.targets.replay import CallSample
from fairtrial.core import StudyError
from fairtrial.sandbox import Ending, wire

VARIED = "varied"
"""The maker of arguments that are no larger than recorded ones."""
FACTORS = (100, 30, 10, 3)
HINTED_SIZES = (200, 20, 5)
MOST_CALL_S = 0.1
"""CPU time of a call that a benchmark can still repeat often enough."""
LEAST_GROWTH, LEAST_CALL_S = 2.0, 1e-5
"""How many times as long as with recorded ones calls with larger inputs must take; and how long."""
_CASES, _TIMEOUT_S = 6, 20.0
_GROWABLE = {"list", "tuple", "set", "frozenset", "dict", "str", "bytes", "ndarray"}
_NUMBERS = {"int"}
_MOST_PLACES = 4
_TOO_LONG = f"a call takes more than {MOST_CALL_S:g} s with larger inputs"


@dataclass(frozen=True, slots=True)
class Growth:
    """How inputs of a benchmark are made.

    maker: the name of the function that makes them
    factor: how many times as large arguments become; with `hints`, the size of collections
    places: positions or names of the arguments that grow
    hints: the type hints that values are made for
    sizes: a few words on what they are
    """

    maker: str
    factor: int
    places: tuple[int | str, ...] = ()
    hints: tuple[str, ...] = ()
    sizes: str = ""

    @property
    def text(self) -> str:
        """A sentence about the inputs."""
        if self.hints:
            return f"inputs made from type hints ({', '.join(self.hints)}): no call was recorded"
        kind = "new" if self.maker == VARIED else "larger"
        return f"{kind} inputs, made from recorded calls: {self.sizes}"


WriteFiles = Callable[[Growth], Mapping[str, str]]
"""Drafts the files with which a growth is tried."""


async def find_growth(
    resources: ArenaResources, target: Target, sample: CallSample, draft: WriteFiles
) -> tuple[Growth | None, str]:
    """Return how arguments can be made larger such that the base accepts them.

    From one recorded call, others of the same size are made if larger ones can't be. Returns None
    and the reason if none can.
    """
    plan = _list_places(sample)
    if not plan:
        return None, "no argument can be made larger"
    whys: dict[str, str] = {}
    trials = _Trials(resources, target, draft)
    _, recorded_s = await trials.run(Growth("larger", 1))
    for places, is_number in plan:
        names = ", ".join(_name_place(target, place) for place in places)
        for factor in FACTORS:
            what = "times as large" if is_number else "times as many items"
            growth = Growth("larger", factor, places, sizes=f"{names}, {factor} {what}")
            why, seconds = await trials.run(growth)
            if not why and seconds < max(LEAST_GROWTH * recorded_s, LEAST_CALL_S):
                why = "calls take no longer with larger inputs"
            if not why:
                return growth, ""
            whys[names] = why
    if len(sample.calls) == 1:
        for places, is_number in plan:
            names = ", ".join(_name_place(target, place) for place in places)
            growth = Growth(VARIED, 1, places, sizes=f"{names}, of the same size")
            if not is_number and not (await trials.run(growth))[0]:
                return growth, ""
    return None, "; ".join(f"{names}: {why}" for names, why in [*whys.items()][:3])


async def find_hinted(
    resources: ArenaResources, target: Target, draft: WriteFiles
) -> tuple[Growth | None, str]:
    """Return inputs from type hints that the base accepts, or None and the reason."""
    hints = tuple(hint for _, hint in target.function.parameters)
    why = "it has no parameters with type hints"
    if not target.function.has_hints or target.function.kind == "method":
        return None, why
    trials = _Trials(resources, target, draft)
    for size in HINTED_SIZES:
        growth = Growth("hinted", size, hints=hints, sizes=f"values of {', '.join(hints)}")
        why, _ = await trials.run(growth)
        if not why:
            return growth, ""
    return None, why


def _list_places(sample: CallSample) -> list[tuple[tuple[int | str, ...], bool]]:
    """Return which arguments may grow: the largest collections together, each alone, or numbers."""
    sizes: dict[int | str, list[int]] = {}
    numbers: Counter[int | str] = Counter()
    for call in sample.calls:
        if "raised" in call.outcome:
            continue
        args, kwargs = call.case["args"], call.case["kwargs"]
        named: list[tuple[int | str, Any]] = [*enumerate(args)]
        named += kwargs.items() if "$" not in kwargs else ()
        for place, value in named:
            kind = get_kind(value)
            if kind in _GROWABLE and value not in ([], "", {}):
                sizes.setdefault(place, []).append(len(wire.dump_encoded(value)))
            elif kind in _NUMBERS:
                numbers[place] += 1
    largest = {place: max(grown) for place, grown in sizes.items()}
    most = sorted(largest, key=lambda place: (-largest[place], str(place)))[:_MOST_PLACES]
    alike = tuple(place for place in most if 2 * largest[place] >= largest[most[0]])
    plan: list[tuple[tuple[int | str, ...], bool]] = [(alike, False)] if len(alike) > 1 else []
    plan += [((place,), False) for place in most]
    if not most:
        plan += [((place,), True) for place, _ in numbers.most_common(2)]
    return plan


def _name_place(target: Target, place: int | str) -> str:
    """Return the name of a parameter; of those of `*args` the number."""
    if isinstance(place, str):
        return f"`{place}`"
    names = target.function.positions
    return f"`{names[place]}`" if place < len(names) else f"argument {place + 1}"


@dataclass(frozen=True, slots=True)
class _Trials:
    """Runs of the base with drafted inputs.

    draft: drafts the files of a growth
    """

    resources: ArenaResources
    target: Target
    draft: WriteFiles

    async def run(self, growth: Growth) -> tuple[str, float]:
        """Return why the base doesn't accept such inputs, each time alike, and a call's time.

        The reason is empty if it does; the time is the mean of the calls.
        """
        inputs = str(PurePosixPath(self.target.cwd, BESIDE, "makers.py")) + f":{growth.maker}"
        function = self.target.reference
        check = Check(function=function, inputs=inputs, cases=_CASES, timeout_s=_TIMEOUT_S)
        try:
            stages = _with_files(self.resources, self.target, self.draft(growth))
            calls = await make_inputs("inputs", check, stages, "draft")
        except StudyError as error:
            return str(error.mistakes[0].message)[:300], 0.0
        if growth.maker == VARIED and len({wire.dump_encoded(dict(c.case)) for c in calls}) < 2:
            return "it makes the same arguments every time", 0.0
        job = write_job(check, calls, clocked=True)
        reports: list[list[dict[str, Any]]] = []
        seconds: list[list[float]] = []
        for seed in ("0", "1"):
            async with self.resources() as stage:
                command = call_command(stage, check, job, CHANNEL_BYTES, {"PYTHONHASHSEED": seed})
                done = await stage.run(command)
            report = read_report(done.channel, len(calls))
            if done.ending == Ending.TIMEOUT:
                return _TOO_LONG, 0.0
            if not report.is_complete or done.ending != Ending.EXITED or done.channel_overflowed:
                return "the base's process fails with larger inputs", 0.0
            reports.append([dict(read_line(line)) for line in report.lines])
            seconds.append([line.pop("seconds", 0.0) for line in reports[-1]])
            # On a busy machine wall time is far longer, and CPU time may come in ticks of 10 ms.
            if statistics.fmean(line.pop("cpu_s", 0.0) for line in reports[-1]) > MOST_CALL_S:
                return _TOO_LONG, 0.0
        why = _compare_runs(function, calls, reports, is_hinted=bool(growth.hints))
        # Interruptions lengthen a call in one of the two runs.
        return why, statistics.fmean(map(min, *seconds))


def _compare_runs(
    function: str, calls: Sequence[Call], reports: Sequence[Any], *, is_hinted: bool
) -> str:
    """Return why calls can't be part of a check; empty if they can."""
    rules = make_rules(Check(function=function, calls="x", dict_order="any"))
    raised, trouble = 0, ""
    for call, one, other in zip(calls, *reports, strict=True):
        if "unusable" in one:
            return str(one["unusable"])[:300]
        if "raised" in one:
            raised += 1
            trouble = f"the base raises {one['raised'].get('type')} for larger inputs"
        elif find_unplain(one.get("result")) is not None:
            return "results for larger inputs can't be compared"
        if compare_outcomes(one, other, call.case, rules).count:
            return "the base gives something else each time for larger inputs"
    return trouble if raised > (len(calls) // 2 if is_hinted else 0) else ""


def _with_files(resources: ArenaResources, target: Target, files: Mapping[str, str]) -> Stages:
    """Return stages on the base with drafted files in them."""

    @asynccontextmanager
    async def open_stage(*, sandboxed: bool = True, trusted: bool = False) -> AsyncIterator[Stage]:
        async with resources(sandboxed=sandboxed, trusted=trusted) as stage:
            folder = stage.slot / target.cwd / BESIDE
            folder.mkdir(parents=True, exist_ok=True)
            for name, content in files.items():
                (folder / name).write_text(content, "utf-8")
            yield stage

    return open_stage
