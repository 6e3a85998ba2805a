"""Every sample that was timed, as a table: what the verdicts can be computed from again."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fairtrial.arena.model.timings import Measurement, Sample
from fairtrial.arena.timing.stats.sequential import Look, look
from fairtrial.arena.timing.stats.session_ratio import mean_ratio, session_cpu_ratio, session_ratio
from fairtrial.core import (
    Mistake,
    StudyError,
    any_field_size,
    cell,
    replacing,
    require_pyarrow,
    spell_rows,
)

COLUMNS = (
    "candidate", "benchmark", "session", "round", "position", "arm", "calls", "wall_s", "cpu_s",
    "is_kept",
)  # fmt: skip
FORMATS = (".csv", ".parquet")
FLAGS = {"True": True, "False": False}
CHUNK_ROWS = 1_000


@dataclass(frozen=True, slots=True)
class SampleRow:
    """A sample, and whose it is.

    candidate: the candidate's name
    benchmark: what was timed
    session: the number of the session
    sample: what was measured
    """

    candidate: str
    benchmark: str
    session: int
    sample: Sample


@dataclass(frozen=True, slots=True)
class Recomputed:
    """What the samples of a candidate say.

    overall: of all its benchmarks: the means of their statistics, session by session
    benchmarks: of each alone
    """

    overall: Look
    benchmarks: Mapping[str, Look]


def check_samples_path(path: Path) -> None:
    """Refuse a file that samples can't be written to, before any work is done for it."""
    if path.suffix not in FORMATS:
        message = f"{path}: samples can't be written in the format '{path.suffix}'"
        raise StudyError(Mistake((), message, f"end the name in {' or '.join(FORMATS)}"))
    if path.is_dir():
        raise StudyError(Mistake((), f"{path} is a directory", "name a file in it"))
    if path.suffix == ".parquet":
        require_pyarrow()


def write_samples(path: Path, measurements: Mapping[str, Measurement]) -> int:
    """Write all samples of all candidates, complete or not at all; returns how many there are.

    measurements: by the name of the candidate
    """
    check_samples_path(path)
    rows = list(_rows(measurements))
    with replacing(path) as file:
        if path.suffix == ".parquet":
            file.buffer.write(_parquet(rows))
        else:
            file.write(spell_rows([COLUMNS]))
            for start in range(0, len(rows), CHUNK_ROWS):
                chunk = rows[start : start + CHUNK_ROWS]
                file.write(spell_rows([[cell(value) for value in row] for row in chunk]))
    return len(rows)


def _rows(measurements: Mapping[str, Measurement]) -> Iterator[tuple[Any, ...]]:
    for name, measurement in measurements.items():
        candidate = _storable(name)
        for session in measurement.sessions:
            benchmark = _storable(session.benchmark)
            for each in session.samples:
                yield (
                    candidate, benchmark, session.number, each.round, each.position, each.arm,
                    each.calls, each.wall_s, each.cpu_s, each.is_kept,
                )  # fmt: skip


def _storable(name: str) -> str:
    """A name that any table can hold: names of files may hold what is no text."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def _parquet(rows: Sequence[Sequence[Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    text, whole, number = pa.string(), pa.int64(), pa.float64()
    types = (text, text, whole, whole, whole, text, whole, number, number, pa.bool_())
    columns = list(zip(*rows, strict=True)) or [()] * len(COLUMNS)
    arrays = [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)]
    written = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, names=list(COLUMNS)), written)
    return written.getvalue()


def read_samples(path: Path) -> list[SampleRow]:
    """The samples of a table that `write_samples` wrote."""
    if path.suffix == ".parquet":
        require_pyarrow()
    try:
        read = list(_read_parquet(path) if path.suffix == ".parquet" else _read_csv(path))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise StudyError(f"can't be read: {reason}", source=str(path)) from error
    return read


def _read_csv(path: Path) -> Iterator[SampleRow]:
    with path.open(encoding="utf-8", newline="") as file, any_field_size():
        lines = csv.reader(file)
        header = next(lines, [])
        places = _find_columns(path, header)
        for line in lines:
            try:
                if len(line) != len(header):
                    raise ValueError(f"it has {len(line)} cells, the header {len(header)}")
                yield _sample_row([line[place] for place in places])
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
    columns = [table.column(name).to_pylist() for name in COLUMNS]
    for number, values in enumerate(zip(*columns, strict=True), 1):
        try:
            yield _sample_row(["" if value is None else str(value) for value in values])
        except ValueError as error:
            message = f"row {number} is no sample: {error}"
            raise StudyError(message, source=str(path)) from None


def _find_columns(path: Path, header: Sequence[str]) -> list[int]:
    """Where the columns are; they may stand in any order, with others between them."""
    missing = [name for name in COLUMNS if name not in header]
    if missing:
        message = f"is no table of samples: it has no column {', '.join(missing)}"
        raise StudyError(message, source=str(path))
    return [header.index(name) for name in COLUMNS]


def _sample_row(cells: Sequence[str]) -> SampleRow:
    candidate, benchmark, session, in_round, position, arm, calls, wall_s, cpu_s, is_kept = cells
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
    return SampleRow(candidate, benchmark, int(session), sample)


Statistics = dict[str, dict[str, dict[int, float]]]
"""By candidate, benchmark and number of the session."""


def session_statistics(
    rows: Iterable[SampleRow], clock: Literal["wall", "cpu"] = "wall"
) -> Statistics:
    """The statistic of every session; without those that were broken off before their first round.

    clock: the clock on the wall, which decides, or CPU time, where it is known
    """
    samples: dict[tuple[str, str, int], list[Sample]] = {}
    for row in rows:
        samples.setdefault((row.candidate, row.benchmark, row.session), []).append(row.sample)
    found: Statistics = {}
    for (candidate, benchmark, number), taken in samples.items():
        told = found.setdefault(candidate, {}).setdefault(benchmark, {})
        statistic = session_ratio(taken) if clock == "wall" else session_cpu_ratio(taken)
        if statistic is not None:
            told[number] = statistic
    return found


def recompute(
    path: Path, *, alpha: float | Mapping[str, float], min_effect: float
) -> dict[str, Recomputed]:
    """What may be said of every candidate, from the table alone.

    alpha: the problem's; or each candidate's by name, since those that raced share it
    min_effect: the problem's
    """
    found = {}
    for candidate, benchmarks in session_statistics(read_samples(path)).items():
        level = alpha[candidate] if isinstance(alpha, Mapping) else alpha
        numbers = sorted(set.intersection(*map(set, benchmarks.values())))
        means = [mean_ratio([each[number] for each in benchmarks.values()]) for number in numbers]
        found[candidate] = Recomputed(
            overall=look(means, alpha=level, min_effect=min_effect),
            benchmarks={
                name: look([each[n] for n in sorted(each)], alpha=level, min_effect=min_effect)
                for name, each in benchmarks.items()
            },
        )
    return found
