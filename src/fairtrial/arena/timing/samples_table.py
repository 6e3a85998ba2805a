"""The table of all timed samples, from which verdicts can be recomputed."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fairtrial.arena.model.timings import Measurement, Sample
from fairtrial.arena.timing.stats.autocorrelation import session_look
from fairtrial.arena.timing.stats.sequential import SessionLook
from fairtrial.arena.timing.stats.session_ratio import mean_ratio, session_cpu_ratio, session_ratio
from fairtrial.core import Mistake, StudyError, atomic_write, table_files

COLUMNS = (
    "candidate", "benchmark", "session", "round", "position", "arm", "calls", "wall_s", "cpu_s",
    "is_kept", "host",
)  # fmt: skip
LATER_COLUMNS = ("host",)
"""Columns that tables of earlier versions don't have."""
FORMATS = (".csv", ".parquet")
FLAGS = {"True": True, "False": False}
CHUNK_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A row of the table.

    candidate: the candidate's name
    benchmark: the benchmark's name
    session: the number of the session
    sample: the measured sample
    host: the machine; empty in tables of earlier versions
    """

    candidate: str
    benchmark: str
    session: int
    sample: Sample
    host: str = ""


@dataclass(frozen=True, slots=True)
class Recomputed:
    """The result of a candidate, recomputed from its samples.

    overall: over all benchmarks, from the mean of their statistics in each session
    benchmarks: of each benchmark alone
    """

    overall: SessionLook
    benchmarks: Mapping[str, SessionLook]


def check_samples_path(path: Path) -> None:
    """Raise `StudyError` if samples can't be written to a file of this name."""
    if path.suffix not in FORMATS:
        message = f"{path}: samples can't be written in the format '{path.suffix}'"
        raise StudyError(Mistake((), message, f"end the name in {' or '.join(FORMATS)}"))
    if path.is_dir():
        raise StudyError(Mistake((), f"{path} is a directory", "name a file in it"))
    if path.suffix == ".parquet":
        table_files.require_pyarrow()


def write_samples(path: Path, measurements: Mapping[str, Measurement]) -> int:
    """Write all samples of all candidates atomically; return their number.

    measurements: by the name of the candidate
    """
    check_samples_path(path)
    rows = list(_rows(measurements))
    with atomic_write(path) as file:
        if path.suffix == ".parquet":
            file.buffer.write(_parquet(rows))
        else:
            file.write(table_files.format_csv([COLUMNS]))
            for start in range(0, len(rows), CHUNK_ROWS):
                chunk = rows[start : start + CHUNK_ROWS]
                file.write(
                    table_files.format_csv(
                        [[table_files.format_cell(value) for value in row] for row in chunk]
                    )
                )
    return len(rows)


def _rows(measurements: Mapping[str, Measurement]) -> Iterator[tuple[Any, ...]]:
    for name, measurement in measurements.items():
        candidate = _storable(name)
        for session in measurement.sessions:
            benchmark = _storable(session.benchmark)
            for sample in session.samples:
                yield (
                    candidate, benchmark, session.number, sample.round, sample.position,
                    sample.arm, sample.calls, sample.wall_s, sample.cpu_s, sample.is_kept,
                    session.host,
                )  # fmt: skip


def _storable(name: str) -> str:
    """Escape the undecodable bytes that names of files may contain."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _parquet(rows: Sequence[Sequence[Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, whole, number = pa.string(), pa.int64(), pa.float64()
    types = (text, text, whole, whole, whole, text, whole, number, number, pa.bool_(), text)
    columns = list(zip(*rows, strict=True)) or [()] * len(COLUMNS)
    arrays = [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)]
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, names=list(COLUMNS)), buffer)
    return buffer.getvalue()


def read_samples(path: Path) -> list[SampleRow]:
    """Read a table that `write_samples` wrote; raises `StudyError` if it can't be read."""
    if path.suffix == ".parquet":
        table_files.require_pyarrow()
    try:
        return list(_read_parquet(path) if path.suffix == ".parquet" else _read_csv(path))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise StudyError(f"can't be read: {reason}", source=str(path)) from error


def _read_csv(path: Path) -> Iterator[SampleRow]:
    with path.open(encoding="utf-8", newline="") as file, table_files.unlimited_csv_fields():
        lines = csv.reader(file)
        header = next(lines, [])
        columns = _find_columns(path, header)
        for line in lines:
            try:
                if len(line) != len(header):
                    raise ValueError(f"it has {len(line)} cells, the header {len(header)}")
                yield _parse_row(["" if column is None else line[column] for column in columns])
            except ValueError as error:
                mistake = Mistake((), f"is no sample: {error}", line=lines.line_num)
                raise StudyError(mistake, source=str(path)) from None


def _read_parquet(path: Path) -> Iterator[SampleRow]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        try:
            table = pq.read_table(file)
        except pa.ArrowInvalid as error:
            raise StudyError(f"is no Parquet file: {error}", source=str(path)) from None
    _find_columns(path, table.column_names)
    missing = [""] * table.num_rows
    columns = [
        table.column(name).to_pylist() if name in table.column_names else missing
        for name in COLUMNS
    ]
    for number, values in enumerate(zip(*columns, strict=True), 1):
        try:
            yield _parse_row(["" if value is None else str(value) for value in values])
        except ValueError as error:
            message = f"row {number} is no sample: {error}"
            raise StudyError(message, source=str(path)) from None


def _find_columns(path: Path, header: Sequence[str]) -> list[int | None]:
    """Return the indices of the columns, which may be in any order, with others between them.

    None for one that tables of earlier versions don't have.
    """
    missing = [name for name in COLUMNS if name not in (*header, *LATER_COLUMNS)]
    if missing:
        message = f"is no table of samples: it has no column {', '.join(missing)}"
        raise StudyError(message, source=str(path))
    return [header.index(name) if name in header else None for name in COLUMNS]


def _parse_row(cells: Sequence[str]) -> SampleRow:
    candidate, benchmark, session, *measured, host = cells
    in_round, position, arm, calls, wall_s, cpu_s, is_kept = measured
    if arm not in ("base", "candidate"):
        raise ValueError(f"arm must be base or candidate, got {arm!r}")
    if is_kept not in FLAGS:
        raise ValueError(f"is_kept must be True or False, got {is_kept!r}")
    if int(calls) < 0:
        raise ValueError(f"calls must be 0 or more, got {calls}")
    for seconds in (wall_s, cpu_s or "0"):
        if not 0 <= float(seconds) < math.inf:
            raise ValueError(f"seconds must be 0 or more, got {seconds}")
    sample = Sample(
        round=int(in_round),
        position=int(position),
        arm="base" if arm == "base" else "candidate",
        calls=int(calls),
        wall_s=float(wall_s),
        cpu_s=float(cpu_s) if cpu_s else None,
        is_kept=FLAGS[is_kept],
    )
    return SampleRow(candidate, benchmark, int(session), sample, host)


Statistics = dict[str, dict[str, dict[int, float]]]
"""By candidate, benchmark and number of the session."""


def session_statistics(
    rows: Iterable[SampleRow], clock: Literal["wall", "cpu"] = "wall"
) -> Statistics:
    """Return the statistic of every session that has a complete round.

    clock: wall time, which decides, or CPU time, where it is known
    """
    samples: dict[tuple[str, str, int], list[Sample]] = {}
    for row in rows:
        samples.setdefault((row.candidate, row.benchmark, row.session), []).append(row.sample)
    statistics: Statistics = {}
    compute = session_ratio if clock == "wall" else session_cpu_ratio
    for (candidate, benchmark, number), session_samples in samples.items():
        by_session = statistics.setdefault(candidate, {}).setdefault(benchmark, {})
        statistic = compute(session_samples)
        if statistic is not None:
            by_session[number] = statistic
    return statistics


def recompute(
    path: Path, *, alpha: float | Mapping[str, float], min_effect: float
) -> dict[str, Recomputed]:
    """Recompute the result of every candidate from the table alone.

    alpha: the problem's; or each candidate's by name, since those that raced share it
    min_effect: the problem's
    """
    results = {}
    rows = read_samples(path)
    hosts: dict[str, set[str]] = {}
    for row in rows:
        hosts.setdefault(row.candidate, set()).add(row.host)
    for candidate, names in hosts.items():
        if len(names) > 1:
            message = f"has times of several machines for {candidate}: {', '.join(sorted(names))}"
            raise StudyError(
                Mistake((), message, "compare those of each machine"), source=str(path)
            )
    for candidate, benchmarks in session_statistics(rows).items():
        level = alpha[candidate] if isinstance(alpha, Mapping) else alpha
        numbers = sorted(set.intersection(*map(set, benchmarks.values())))
        means = [
            mean_ratio([by_session[number] for by_session in benchmarks.values()])
            for number in numbers
        ]
        results[candidate] = Recomputed(
            overall=session_look(means, alpha=level, min_effect=min_effect),
            benchmarks={
                name: session_look(
                    [by_session[number] for number in sorted(by_session)],
                    alpha=level,
                    min_effect=min_effect,
                )
                for name, by_session in benchmarks.items()
            },
        )
    return results
