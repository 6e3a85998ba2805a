"""Results as pytest-benchmark's JSON: written, read, and compared without a verdict."""

from __future__ import annotations

import json
import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, median, quantiles, stdev
from typing import Any

from fairtrial.arena.model.figures import seconds_text
from fairtrial.arena.model.timings import Measurement, Session
from fairtrial.arena.timing.stats.ratio_text import ratio_text
from fairtrial.arena.timing.stats.session_ratio import net_rounds
from fairtrial.core import StudyError, atomic_write

FORMAT_VERSION = "5.1.0"
"""The version of pytest-benchmark whose format is written."""
NO_VERDICT = (
    "these figures come from different sessions, maybe of different days or machines: they say "
    "nothing about which version is faster, so there is no verdict"
)


def write_pytest_json(path: Path, measurements: Mapping[str, Measurement]) -> int:
    """Write the figures of timed candidates as pytest-benchmark's JSON; return how many there are.

    Each benchmark has the median time of a call in each session as its data, and what was decided
    in `extra_info`.

    measurements: by what was timed, for people
    """
    entries = [
        _make_entry(name, measured, timing.benchmark)
        for name, measured in measurements.items()
        for timing in measured.timings
    ]
    document = {
        "machine_info": {
            "node": platform.node(),
            "machine": platform.machine(),
            "system": platform.system(),
            "release": platform.release(),
            "python_implementation": platform.python_implementation(),
            "python_version": platform.python_version(),
        },
        "commit_info": {},
        "benchmarks": entries,
        "datetime": datetime.now(UTC).isoformat(),
        "version": FORMAT_VERSION,
    }
    with atomic_write(path) as file:
        file.write(json.dumps(document, indent=4) + "\n")
    return len(entries)


def _make_entry(candidate: str, measured: Measurement, benchmark: str) -> dict[str, Any]:
    sessions = [session for session in measured.sessions if session.benchmark == benchmark]
    timing = next(item for item in measured.timings if item.benchmark == benchmark)
    data = [seconds for session in sessions for seconds in _seconds(session)]
    estimate = timing.estimate
    return {
        "group": None,
        "name": benchmark.rpartition("::")[2] or benchmark,
        "fullname": benchmark,
        "params": None,
        "param": None,
        "extra_info": {
            "fairtrial": {
                "candidate": candidate,
                "verdict": timing.verdict.value,
                "speed_up": estimate.as_dict() if estimate else None,
                "base_median": timing.base_s,
                "memory": timing.memory and timing.memory.as_dict(),
            }
        },
        "options": {
            "disable_gc": False,
            "timer": "perf_counter",
            "min_rounds": 1,
            "max_time": 0.0,
            "min_time": 0.0,
            "warmup": True,
        },
        "stats": _make_stats(data, timing.calls),
    }


def _seconds(session: Session) -> list[float]:
    """Return how long a call of the candidate took in each kept round."""
    calls = {sample.round: sample.calls for sample in session.samples if sample.arm == "candidate"}
    rounds = net_rounds(session.samples, lambda sample: sample.wall_s)
    return [times[1] / calls[number] for number, times in rounds.items()]


def _make_stats(data: Sequence[float], iterations: int) -> dict[str, Any]:
    """Return the statistics that pytest-benchmark computes."""
    ordered = sorted(data)
    low, _, high = quantiles(ordered, n=4) if len(ordered) > 1 else (ordered[0],) * 3
    spread, mean = (stdev(ordered) if len(ordered) > 1 else 0.0), fmean(ordered)
    iqr = high - low
    inside = [value for value in ordered if low - 1.5 * iqr <= value <= high + 1.5 * iqr]
    beyond = sum(abs(value - mean) > spread for value in ordered)
    return {
        "min": ordered[0],
        "max": ordered[-1],
        "mean": mean,
        "stddev": spread,
        "rounds": len(ordered),
        "median": median(ordered),
        "iqr": iqr,
        "q1": low,
        "q3": high,
        "iqr_outliers": len(ordered) - len(inside),
        "stddev_outliers": beyond,
        "outliers": f"{beyond};{len(ordered) - len(inside)}",
        "ld15iqr": inside[0],
        "hd15iqr": inside[-1],
        "ops": 1 / mean if mean else 0.0,
        "total": math.fsum(ordered),
        "iterations": iterations,
        "data": list(data),
    }


def is_pytest_json(path: Path) -> bool:
    """Return whether a file holds results of pytest-benchmark."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and isinstance(document.get("benchmarks"), list)


@dataclass(frozen=True, slots=True)
class FileComparison:
    """The figures of two files of pytest-benchmark, side by side; there is no verdict.

    rows: for each benchmark in both, its name and the medians in the first and the second file
    only_first, only_second: benchmarks that one file has
    notes: remarks for people
    """

    rows: tuple[tuple[str, float, float], ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    notes: tuple[str, ...]

    def lines(self) -> list[str]:
        """Return the figures as lines of text."""
        lines = [
            f"{name}: {seconds_text(first)}, then {seconds_text(second)} "
            f"({ratio_text(first / second)} by the medians)"
            for name, first, second in self.rows
        ]
        for which, names in (("first", self.only_first), ("second", self.only_second)):
            if names:
                lines.append(f"only in the {which}: {', '.join(names)}")
        return lines

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as ``--json`` prints it."""
        return {
            "verdict": None,
            "benchmarks": [
                {"name": name, "first_s": first, "second_s": second, "ratio": first / second}
                for name, first, second in self.rows
            ],
            "only_first": list(self.only_first),
            "only_second": list(self.only_second),
            "notes": list(self.notes),
        }


def compare_files(first: Path, second: Path) -> FileComparison:
    """Put the medians of two files of pytest-benchmark side by side.

    Raises `StudyError` if one can't be read.
    """
    (one, machine), (two, other) = _read(first), _read(second)
    notes = [NO_VERDICT]
    if machine != other:
        notes.append(f"the machines differ: {machine}, then {other}")
    return FileComparison(
        tuple((name, one[name], two[name]) for name in one if name in two),
        tuple(name for name in one if name not in two),
        tuple(name for name in two if name not in one),
        tuple(notes),
    )


def _read(path: Path) -> tuple[dict[str, float], str]:
    """Return the median of each benchmark in a file, and a description of its machine."""
    try:
        document = json.loads(path.read_text("utf-8"))
        medians = {
            str(entry.get("fullname") or entry["name"]): float(entry["stats"]["median"])
            for entry in document["benchmarks"]
        }
        machine = document.get("machine_info") or {}
        words = [str(machine.get(name, "?")) for name in ("node", "machine", "python_version")]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"is no file of pytest-benchmark's results: {type(error).__name__}: {error}"
        raise StudyError(message, source=str(path)) from None
    if not all(0 < value < math.inf for value in medians.values()):
        raise StudyError("holds a median that is no time", source=str(path))
    return medians, " ".join(words)
