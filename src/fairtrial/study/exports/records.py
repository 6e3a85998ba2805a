"""What the exports to other tools have in common: a run with its factors and its transcript."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fairtrial.core import LabError, plain_number
from fairtrial.study.agents.transcript import TranscriptRecord, read_transcript
from fairtrial.study.design.agent_options import select_assignments
from fairtrial.study.model.runs import RunResult, RunSpec
from fairtrial.study.tables.results import Results


@dataclass(frozen=True, slots=True)
class ExportedRun:
    """One run as exports see it.

    result: its result
    spec: its ids and seed
    factors: the factors that apply to it
    transcript: its messages, tool calls and model calls
    scores: its evaluations and metrics that are numbers
    """

    result: RunResult
    spec: RunSpec
    factors: Mapping[str, Any]
    transcript: tuple[TranscriptRecord, ...]
    scores: Mapping[str, float]

    @property
    def model(self) -> str:
        """The model's name, as the agent gives it; else that of its first model call."""
        named = self.spec.execution_metadata.get("model_name")
        calls = (item.text for item in self.transcript if item.kind == "model_call")
        return str(named or next(calls, ""))

    @property
    def agent(self) -> str:
        """The agent's name."""
        return str(self.spec.agent_spec_ref or "agent")


def read_runs(results: Results) -> Iterator[ExportedRun]:
    """Yield the runs that are done, in plan order."""
    conditions = {item.condition_id: item.factor_assignments for item in results.conditions}
    for result in results:
        spec = result.run_spec
        assert spec is not None
        assigned = conditions.get(spec.condition_id, {})
        yield ExportedRun(
            result,
            spec,
            select_assignments(results.study, spec.agent_spec_ref, assigned),
            tuple(read_transcript(result.observations)),
            _scores(result),
        )


def _scores(result: RunResult) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for row in result.evaluator_outputs:
        _add_number(numbers, str(row.get("metric_name", "score")), row.get("metric_value"))
    for name, value in result.metrics.items():
        if name not in numbers:
            _add_number(numbers, str(name), value)
    return numbers


def _add_number(numbers: dict[str, float], name: str, value: Any) -> None:
    number = plain_number(value)
    if number is not None and not isinstance(number, complex) and math.isfinite(number):
        with suppress(OverflowError):
            numbers[name] = float(number)


def read_time(text: str | None) -> datetime | None:
    """Return a time in UTC; None if it isn't known, or an agent gave it in another form."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def nanoseconds(text: str | None, default: int = 0) -> int:
    """Return a time as nanoseconds since 1970."""
    moment = read_time(text)
    return default if moment is None else round(moment.timestamp() * 1e6) * 1000


def write_lines(path: Path, lines: Iterator[str]) -> int:
    """Write lines of a file that replaces an earlier one when it is complete; returns how many."""
    part = path.with_name(f".{path.name}.{time.monotonic_ns():x}.part")
    count = 0
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("w", encoding="utf-8", errors="backslashreplace") as file:
                for line in lines:
                    file.write(f"{line}\n")
                    count += 1
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise LabError(f"{path}: can't be written: {error.strerror or error}") from error
    return count
