"""The tables that have rows of runs, written in plan order from results in any order.

Runs are executed in a random order, and reading a ledger in another order than it was written in
is slow. So the lines of each run are formatted as they come and spooled into one file; at the end
they are copied to the tables in plan order. The columns of metrics, too, are known only then: they
are in the order in which the runs of the plan first have them.
"""

from __future__ import annotations

import csv
import itertools
import os
import struct
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from fairtrial.core import table_files
from fairtrial.study.extensions import extra_tables
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import RunResult
from fairtrial.study.model.study import Study
from fairtrial.study.tables.canonical import EVALUATION_COLUMNS, EVENT_COLUMNS
from fairtrial.study.tables.columns import ColumnTypes
from fairtrial.study.tables.csv_lines import format_lines
from fairtrial.study.tables.csv_tables import CsvFile
from fairtrial.study.tables.rows import MetricColumns, Row, RunRows, evaluation_rows, event_rows

CHUNK_RUNS = 256
CHUNK_BYTES = 8 << 20
"""How many runs are copied at once, and their size at most, but for the last of them."""
SPOOL_FILE = "rows.part"
PlannedResult = tuple[int, RunResult]
"""A result with its position in the table of runs."""


class RunTables:
    """Writes the tables of runs, events and evaluations and the extra tables.

    folder: where the files are written
    rows: number of rows of each table so far
    files: the files of the tables that have rows or are always written; known after `finish`
    """

    def __init__(
        self,
        study: Study,
        conditions: Sequence[Condition],
        folder: Path,
        types: ColumnTypes | None = None,
    ) -> None:
        self._study, self._folder, self._types = study, folder, types
        self._extra = extra_tables()
        self._names = ("runs", "events", "evaluations", *self._extra)
        self.rows = dict.fromkeys(self._names, 0)
        self.files: dict[str, CsvFile] = {}
        self._run_rows = RunRows(study, conditions)
        self._shapes: dict[tuple[str, ...], int] = {}
        self._first_places: list[int] = []
        self._first_left_out: dict[str, tuple[int, int]] = {}
        self._places, self._ends = array("I"), array("Q", [0])
        # The number of the shape, and the size of each table's lines.
        self._header = struct.Struct(f"<{1 + len(self._names)}I")
        self._path = folder / SPOOL_FILE
        self._spool = self._path.open("xb")
        self._end = 0

    def add(self, batch: Sequence[PlannedResult]) -> None:
        """Add some results, each with its position; all of them need different positions."""
        lines = [self._run_lines(batch)]
        results = [result for _, result in batch]
        lines.append(self._lines("events", [event_rows(self._study, r) for r in results]))
        lines.append(self._lines("evaluations", [evaluation_rows(r) for r in results]))
        for name, table in self._extra.items():
            lines.append(self._lines(name, [list(table.rows(result)) for result in results]))
        shapes = self._batch_shapes
        pack, write = self._header.pack, []
        for shape, *texts in zip(shapes, *lines, strict=True):
            parts = [text.encode() for text in texts]
            sizes = list(map(len, parts))
            self._end += self._header.size + sum(sizes)
            self._ends.append(self._end)
            write.append(pack(shape, *sizes))
            write.extend(parts)
        self._places.extend([place for place, _ in batch])
        self._spool.write(b"".join(write))

    def _run_lines(self, batch: Sequence[PlannedResult]) -> list[str]:
        """Return the lines of the table of runs; each has the columns of its own metrics only."""
        self.rows["runs"] += len(batch)
        groups: dict[int, tuple[list[int], list[Row]]] = {}
        self._batch_shapes = []
        for number, (place, result) in enumerate(batch):
            names, cells = self._split_metrics(place, result)
            shape = self._shapes.setdefault(names, len(self._shapes))
            if shape == len(self._first_places):
                self._first_places.append(place)
            elif place < self._first_places[shape]:
                self._first_places[shape] = place
            self._batch_shapes.append(shape)
            numbers, rows = groups.setdefault(shape, ([], []))
            numbers.append(number)
            rows.append(self._run_rows.fixed_cells(result) + cells)
        lines = [""] * len(batch)
        for shape, (numbers, rows) in groups.items():
            if self._types is not None:
                self._types.observe(f"runs/{shape}", rows)
            for number, line in zip(numbers, format_lines(rows), strict=True):
                lines[number] = line
        return lines

    def _split_metrics(self, place: int, result: RunResult) -> tuple[tuple[str, ...], Row]:
        metrics = self._run_rows.metrics
        names, cells, others = metrics.split(result.metrics)
        for number, name in enumerate(others):
            metrics.left_out[name] = metrics.left_out.get(name, 0) + 1
            first = self._first_left_out.setdefault(name, (place, number))
            self._first_left_out[name] = min(first, (place, number))
        return names, cells

    def _lines(self, table: str, rows: Sequence[Sequence[Row]]) -> list[str]:
        """Return the lines of each run's rows, as one text."""
        flat = list(itertools.chain.from_iterable(rows))
        self.rows[table] += len(flat)
        if self._types is not None:
            self._types.observe(table, flat)
        lines = format_lines(flat)
        if len(flat) == len(rows) and all(map(len, rows)):
            return lines
        remaining = iter(lines)
        return ["".join(itertools.islice(remaining, len(own))) for own in rows]

    def finish(self) -> None:
        """Write the tables, in the order of the positions."""
        self._spool.close()
        metrics = self._run_rows.metrics
        shapes = list(self._shapes)
        for _, shape in sorted(zip(self._first_places, range(len(shapes)), strict=True)):
            metrics.add(shapes[shape])
        columns = self.columns
        indices = [self._column_indices(metrics, names) for names in shapes]
        if self._types is not None:
            for shape, places in enumerate(indices):
                self._types.merge("runs", f"runs/{shape}", places)
        is_full = [places == list(range(len(columns))) for places in indices]
        with ExitStack() as stack:
            for name, names in self._table_columns().items():
                self.files[name] = CsvFile(self._folder / f"{name}.csv", names)
                stack.callback(self.files[name].close)
            for chunk in self._chunks():
                for position, name in enumerate(self._names):
                    if name not in self.files:
                        continue
                    parts = [parts[position] for _, parts in chunk]
                    if position == 0:
                        for number, (shape, _) in enumerate(chunk):
                            if not is_full[shape]:
                                parts[number] = _spread(parts[number], indices[shape], len(columns))
                    self.files[name].add_lines(b"".join(parts), 0)
        for name, file in self.files.items():
            file.rows = self.rows[name]
        self._path.unlink()

    def close(self) -> None:
        """Close the spool file."""
        self._spool.close()

    @property
    def columns(self) -> list[str]:
        """The columns of the table of runs; complete after `finish`."""
        return self._run_rows.columns

    @property
    def metrics_left_out(self) -> dict[str, int]:
        """The number of values of each metric without a column, in the order of the runs."""
        counts = self._run_rows.metrics.left_out
        return {name: counts[name] for name in sorted(counts, key=self._first_left_out.__getitem__)}

    def _table_columns(self) -> dict[str, Sequence[str]]:
        """Return the columns of each table that is written."""
        return {
            "runs": self.columns,
            "events": EVENT_COLUMNS,
            "evaluations": EVALUATION_COLUMNS,
            **{name: tuple(t.columns) for name, t in self._extra.items() if self.rows[name]},
        }

    def _column_indices(self, metrics: MetricColumns, names: Sequence[str]) -> list[int]:
        fixed = len(self._run_rows.fixed)
        return [*range(fixed), *(fixed + index for index in metrics.add(names))]

    def _chunks(self) -> Iterator[list[tuple[int, list[bytes]]]]:
        """Yield the spooled lines in order: for each run its shape, and its lines in each table."""
        import numpy as np

        places = np.frombuffer(self._places, dtype=np.uint32)
        ends = np.frombuffer(self._ends, dtype=np.uint64)
        # Sorted by putting each number in its place: `argsort` takes four times the memory.
        count = np.uint32(len(places))
        order = np.full(int(places.max(initial=0)) + 1, count, dtype=np.uint32)
        order[places] = np.arange(count, dtype=np.uint32)
        if len(order) > count:
            order = order[order < count]
        descriptor = os.open(self._path, os.O_RDONLY)
        try:
            for start in range(0, len(order), CHUNK_RUNS):
                numbers = order[start : start + CHUNK_RUNS]
                firsts, lasts = ends[numbers].tolist(), ends[numbers + 1].tolist()
                chunk, size = [], 0
                for first, last in zip(firsts, lasts, strict=True):
                    data = os.pread(descriptor, last - first, first)
                    chunk.append(self._split(data))
                    size += len(data)
                    if size > CHUNK_BYTES:
                        yield chunk
                        chunk, size = [], 0
                yield chunk
        finally:
            os.close(descriptor)

    def _split(self, data: bytes) -> tuple[int, list[bytes]]:
        """Return the shape and the lines of a spooled run."""
        shape, *sizes = self._header.unpack_from(data)
        parts, begin = [], self._header.size
        for size in sizes:
            parts.append(data[begin : begin + size])
            begin += size
        return shape, parts


def _spread(line: bytes, indices: Sequence[int], width: int) -> bytes:
    """Return a line of CSV with its cells moved to other columns; the rest are empty."""
    with table_files.unlimited_csv_fields():
        (row,) = csv.reader([line.decode("utf-8")])
    cells = [""] * width
    for index, cell in zip(indices, row, strict=True):
        cells[index] = cell
    return table_files.format_csv([cells]).encode("utf-8")
