"""Validation of a set of tables: checksums, columns, row counts and references between tables."""

from __future__ import annotations

import itertools
import json
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairtrial.study.extensions import ExtraTable, extra_tables
from fairtrial.study.model.study import SCHEMA_VERSION
from fairtrial.study.tables.canonical import (
    CONDITION_COLUMNS,
    EVALUATION_COLUMNS,
    EVENT_COLUMNS,
    HYPOTHESES_FILE,
    MANIFEST_FILE,
    PLANS_FILE,
    RUN_COLUMNS,
    STUDY_FILE,
)
from fairtrial.study.tables.csv_tables import CsvTable
from fairtrial.study.tables.generation import file_sha256, locate_file

COLUMNS = {
    "conditions.csv": CONDITION_COLUMNS,
    "runs.csv": RUN_COLUMNS,
    "events.csv": EVENT_COLUMNS,
    "evaluations.csv": EVALUATION_COLUMNS,
}
EXPECTED = (STUDY_FILE, *COLUMNS, HYPOTHESES_FILE, PLANS_FILE)
MANIFEST_KEYS = (
    "schema_version",
    "study_id",
    "generated_at",
    "status_counts",
    "model_ids",
    "run_count",
    "provenance",
    "files",
)
MAX_SHOWN = 5
CHUNK_ROWS = 10_000
RowCheck = Callable[[str, Iterator[list[str]]], Iterator[str]]
"""Takes the name of a table and its rows; yields problems."""


def validate_artifacts(folder: str | Path) -> list[str]:
    """Return the problems of the tables in a folder; an empty list if they are valid.

    Every file is read completely and compared with its checksum in the manifest; columns, row
    counts and ids must be consistent. Safe while the folder is being exported to.
    """
    base = Path(folder)
    manifest_path = locate_file(base, MANIFEST_FILE)
    try:
        manifest = json.loads(manifest_path.read_text("utf-8"))
    except OSError as error:
        return [f"{MANIFEST_FILE}: {error.strerror or error}"]
    except ValueError as error:
        return [f"{MANIFEST_FILE}: is not JSON: {error}"]
    if not isinstance(manifest, dict):
        return [f"{MANIFEST_FILE}: expected a mapping"]
    missing = [name for name in MANIFEST_KEYS if name not in manifest]
    if missing:
        return [f"{MANIFEST_FILE}: lacks {', '.join(missing)}"]
    # Files of the same generation as the manifest; a newer one may be published meanwhile.
    paths = {
        name: _same_generation(base, manifest_path, name)
        for name in {*EXPECTED, *manifest["files"]}
    }
    return check_set(manifest, paths)


def _same_generation(folder: Path, manifest_path: Path, name: str) -> Path:
    path = folder / name
    return manifest_path.parent / name if path.is_symlink() else path


def check_set(
    manifest: Mapping[str, Any], paths: Mapping[str, Path], *, with_rows: bool = True
) -> list[str]:
    """Return the problems of a set of files; an empty list if they are valid.

    manifest: the manifest of the set
    paths: the path of each file, by its name in the manifest
    with_rows: whether to read the tables; False for tables that were just written from a plan,
        whose ids are known to be valid: then only their sizes are compared
    """
    problems = []
    version = manifest["schema_version"]
    if version != SCHEMA_VERSION:
        problems.append(f"{MANIFEST_FILE}: expected schema {SCHEMA_VERSION}, found {version}")
    present = {}
    for name in sorted(paths):
        if name not in manifest["files"]:
            problems.append(f"{name}: the manifest doesn't list it")
        elif not paths[name].is_file():
            problems.append(f"{name}: is missing")
        else:
            present[name] = paths[name]
    extra = {f"{name}.csv": table for name, table in extra_tables().items()}
    table_names = {*COLUMNS, *extra}
    for name, path in present.items():
        if name not in table_names and file_sha256(path) != manifest["files"][name]["sha256"]:
            problems.append(f"{name}: differs from its checksum")
    tables = {name: present[name] for name in (*COLUMNS, *extra) if name in present}
    if not with_rows:
        for name, path in tables.items():
            if path.stat().st_size != manifest["files"][name]["bytes"]:
                problems.append(f"{name}: was not written completely")
    elif tables.keys() >= COLUMNS.keys():
        problems.extend(_TableChecker(manifest, tables, extra).problems())
    return problems


class _TableChecker:
    """Checks all tables, reading each once; run ids are kept as 8-byte hashes."""

    def __init__(
        self,
        manifest: Mapping[str, Any],
        paths: Mapping[str, Path],
        extra: Mapping[str, ExtraTable],
    ) -> None:
        self._manifest = manifest
        self._paths = paths
        self._extra = extra
        self._condition_ids: set[str] = set()
        self._run_hashes = array("q")

    def _columns(self, name: str) -> Sequence[str]:
        return COLUMNS[name] if name in COLUMNS else tuple(self._extra[name].columns)

    def problems(self) -> Iterator[str]:
        """Yield all problems, but not more than some for each table."""
        checks: dict[str, RowCheck] = {
            "conditions.csv": self._check_conditions,
            "runs.csv": self._check_runs,
            "events.csv": self._check_references,
            "evaluations.csv": self._check_references,
            **dict.fromkeys(self._extra, self._check_extra),
        }
        for name in self._paths:
            table = CsvTable(self._paths[name])
            try:
                problems = list(self._check_table(name, table, checks[name]))
            except (ValueError, OSError) as error:  # invalid UTF-8 or CSV
                problems = [f"{name}: can't be read: {error}"]
            yield from problems[:MAX_SHOWN]
            if len(problems) > MAX_SHOWN:
                yield f"{name}: and {len(problems) - MAX_SHOWN:,} more"

    def _check_table(self, name: str, table: CsvTable, check_rows: RowCheck) -> Iterator[str]:
        rows = table.read()
        header = next(rows, [])
        columns = self._columns(name)
        if tuple(header[: len(columns)]) != columns or (
            name in self._extra and header[len(columns) :]
        ):
            yield f"{name}: expected the columns {', '.join(columns)}"
        elif len(set(header)) < len(header):
            yield f"{name}: a column occurs twice"
        else:
            yield from check_rows(name, _check_width(rows, len(header)))
        for _ in rows:  # to the end, for the checksum
            pass
        facts = self._manifest["files"][name]
        if (table.sha256, table.size) != (facts["sha256"], facts["bytes"]):
            yield f"{name}: differs from its checksum"
        if table.rows != facts["rows"]:
            yield f"{name}: has {table.rows:,} rows, the manifest says {facts['rows']:,}"

    def _check_conditions(self, name: str, rows: Iterator[list[str]]) -> Iterator[str]:
        for row in rows:
            condition_id = row[1]
            if condition_id in self._condition_ids:
                yield f"{name}: {condition_id} occurs twice"
            self._condition_ids.add(condition_id)

    def _check_runs(self, name: str, rows: Iterator[list[str]]) -> Iterator[str]:
        for row in rows:
            condition_id, run_id = row[1:3]
            self._run_hashes.append(hash(run_id))
            if condition_id not in self._condition_ids:
                yield (
                    f"{name}: {run_id} has the condition {condition_id}, which is not in "
                    "conditions.csv"
                )
        repeated = _sort(self._run_hashes)
        if repeated:
            yield from self._find_duplicates(name, repeated)
        if len(self._run_hashes) != self._manifest["run_count"]:
            yield f"{name}: the manifest counts {self._manifest['run_count']} runs"

    def _find_duplicates(self, name: str, suspects: set[int]) -> Iterator[str]:
        """Yield the runs that occur twice; different ids with the same hash are not reported."""
        seen: set[str] = set()
        for row in CsvTable(self._paths[name]).read():
            if len(row) > 2 and hash(row[2]) in suspects:
                if row[2] in seen:
                    yield f"{name}: {row[2]} occurs twice"
                seen.add(row[2])

    def _check_references(self, name: str, rows: Iterator[list[str]]) -> Iterator[str]:
        column = self._columns(name).index("run_id")
        run_ids = (run_id for run_id, _ in itertools.groupby(row[column] for row in rows))
        unknown = 0
        while chunk := list(itertools.islice(run_ids, CHUNK_ROWS)):
            unknown += _count_missing(chunk, self._run_hashes)
        if unknown:
            yield f"{name}: refers {unknown:,} times to a run that is not in runs.csv"

    def _check_extra(self, name: str, rows: Iterator[list[str]]) -> Iterator[str]:
        seen: set[str] = set()
        problems: list[str] = []
        table = self._extra[name]
        item = table.name.removesuffix("s")

        def check_items() -> Iterator[list[str]]:
            run_id = None
            for row in rows:
                if row[0] != run_id:
                    run_id = row[0]
                    seen.clear()
                if row[1] in seen:
                    problems.append(f"{name}: {row[0]} has the {item} {row[1]} twice")
                seen.add(row[1])
                if column := find_invalid_column(table, row):
                    problems.append(f"{name}: {column} of {row[0]}, {item} {row[1]}, is not valid")
                yield row

        yield from self._check_references(name, check_items())
        yield from problems


def find_invalid_column(table: ExtraTable, row: list[str]) -> str | None:
    """Return the first column of a row whose text doesn't have the column's type, or None."""
    for (name, column), cell in zip(table.columns.items(), row, strict=True):
        if column.type is bool and cell not in ("", "True", "False"):
            return name
        if column.type in (int, float) and cell:
            try:
                column.type(cell)
            except ValueError:
                return name
    return None


def _check_width(rows: Iterator[list[str]], width: int) -> Iterator[list[str]]:
    """Yield rows unchanged; raises `ValueError` for one of another width."""
    for number, row in enumerate(rows, start=1):
        if len(row) != width:
            raise ValueError(f"row {number:,} has {len(row)} cells instead of {width}")
        yield row


def _sort(values: array[int]) -> set[int]:
    """Sort numbers in place; returns those that occur more than once."""
    import numpy as np

    ordered = np.frombuffer(values, dtype=np.int64)
    ordered.sort()
    return set(ordered[1:][ordered[1:] == ordered[:-1]].tolist())


def _count_missing(names: Sequence[str], sorted_hashes: array[int]) -> int:
    """Return the number of names whose hash is not among the sorted hashes."""
    import numpy as np

    ordered = np.frombuffer(sorted_hashes, dtype=np.int64)
    hashes = np.array([hash(name) for name in names], dtype=np.int64)
    positions = np.searchsorted(ordered, hashes)
    is_present = positions < len(ordered)
    is_present[is_present] = ordered[positions[is_present]] == hashes[is_present]
    return int((~is_present).sum())
