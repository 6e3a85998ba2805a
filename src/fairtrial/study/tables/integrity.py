"""A set of tables against itself: is it whole, and does it hold together?"""

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
from fairtrial.study.tables.generation import locate, sha256_of

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
MOST_SHOWN = 5
CHUNK_ROWS = 10_000


def validate_artifacts(folder: str | Path) -> list[str]:
    """What is wrong with the tables in a folder: nothing, if the list is empty.

    Every file is read in full and compared with its checksum in the manifest; rows, columns and
    ids must agree. Works on a folder that is being exported to.
    """
    base = Path(folder)
    manifest_path = locate(base, MANIFEST_FILE)
    try:
        manifest = json.loads(manifest_path.read_text("utf-8"))
    except OSError as error:
        return [f"{MANIFEST_FILE}: {error.strerror or error}"]
    except ValueError as error:
        return [f"{MANIFEST_FILE}: is no JSON: {error}"]
    if not isinstance(manifest, dict):
        return [f"{MANIFEST_FILE}: expected a mapping"]
    missing = [name for name in MANIFEST_KEYS if name not in manifest]
    if missing:
        return [f"{MANIFEST_FILE}: lacks {', '.join(missing)}"]
    # Beside the manifest that was read, wherever a newer set may be by now.
    places = {name: _beside(base, manifest_path, name) for name in {*EXPECTED, *manifest["files"]}}
    return check_set(manifest, places)


def _beside(folder: Path, manifest_path: Path, name: str) -> Path:
    path = folder / name
    return manifest_path.parent / name if path.is_symlink() else path


def check_set(manifest: Mapping[str, Any], places: Mapping[str, Path]) -> list[str]:
    """What is wrong with the files at these places, by their manifest and among each other."""
    problems = []
    if manifest["schema_version"] != SCHEMA_VERSION:
        found = manifest["schema_version"]
        problems.append(f"{MANIFEST_FILE}: expected schema {SCHEMA_VERSION}, found {found}")
    present = {}
    for name in sorted(places):
        if name not in manifest["files"]:
            problems.append(f"{name}: the manifest doesn't list it")
        elif not places[name].is_file():
            problems.append(f"{name}: is missing")
        else:
            present[name] = places[name]
    extra = {f"{name}.csv": table for name, table in extra_tables().items()}
    known = {*COLUMNS, *extra}
    for name, path in present.items():
        if name not in known and sha256_of(path) != manifest["files"][name]["sha256"]:
            problems.append(f"{name}: differs from its checksum")
    tables = {name: present[name] for name in (*COLUMNS, *extra) if name in present}
    if tables.keys() >= COLUMNS.keys():
        problems.extend(_Tables(manifest, tables, extra).problems())
    return problems


class _Tables:
    """The tables, read once each; what must agree is kept in numbers of 8 bytes."""

    def __init__(
        self,
        manifest: Mapping[str, Any],
        paths: Mapping[str, Path],
        extra: Mapping[str, ExtraTable],
    ) -> None:
        self._manifest = manifest
        self._paths = paths
        self._extra = extra
        self._conditions: set[str] = set()
        self._runs = array("q")

    def _columns(self, name: str) -> Sequence[str]:
        return COLUMNS[name] if name in COLUMNS else tuple(self._extra[name].columns)

    def problems(self) -> Iterator[str]:
        judges: dict[str, Callable[[str, Iterator[list[str]]], Iterator[str]]] = {
            "conditions.csv": self._judge_conditions,
            "runs.csv": self._judge_runs,
            "events.csv": self._judge_references,
            "evaluations.csv": self._judge_references,
            **dict.fromkeys(self._extra, self._judge_extra),
        }
        for name in self._paths:
            judge = judges[name]
            table = CsvTable(self._paths[name])
            try:
                found = list(self._judge(name, table, judge))
            except (ValueError, OSError) as error:  # no UTF-8, or no CSV
                found = [f"{name}: can't be read: {error}"]
            yield from found[:MOST_SHOWN]
            if len(found) > MOST_SHOWN:
                yield f"{name}: and {len(found) - MOST_SHOWN:,} more"

    def _judge(
        self,
        name: str,
        table: CsvTable,
        judge: Callable[[str, Iterator[list[str]]], Iterator[str]],
    ) -> Iterator[str]:
        rows = table.read()
        header = next(rows, [])
        columns = self._columns(name)
        if tuple(header[: len(columns)]) != columns or (
            name in self._extra and header[len(columns) :]
        ):
            yield f"{name}: expected the columns {', '.join(columns)}"
        elif len(set(header)) < len(header):
            yield f"{name}: a column stands there twice"
        else:
            yield from judge(name, _of_width(rows, len(header)))
        for _ in rows:
            pass
        told = self._manifest["files"][name]
        if (table.sha256, table.size) != (told["sha256"], told["bytes"]):
            yield f"{name}: differs from its checksum"
        if table.rows != told["rows"]:
            yield f"{name}: has {table.rows:,} rows, the manifest says {told['rows']:,}"

    def _judge_conditions(self, name: str, rows: Iterator[list[str]]) -> Iterator[str]:
        for row in rows:
            if row[1] in self._conditions:
                yield f"{name}: {row[1]} stands there twice"
            self._conditions.add(row[1])

    def _judge_runs(self, name: str, rows: Iterator[list[str]]) -> Iterator[str]:
        for row in rows:
            self._runs.append(hash(row[2]))
            if row[1] not in self._conditions:
                yield f"{name}: {row[2]} has the condition {row[1]}, which is not in conditions.csv"
        repeated = _sort(self._runs)
        if repeated:
            yield from self._name_twins(name, repeated)
        if len(self._runs) != self._manifest["run_count"]:
            yield f"{name}: the manifest counts {self._manifest['run_count']} runs"

    def _name_twins(self, name: str, suspects: set[int]) -> Iterator[str]:
        """Which runs stand there twice; two that only hash alike are none."""
        seen: set[str] = set()
        for row in CsvTable(self._paths[name]).read():
            if len(row) > 2 and hash(row[2]) in suspects:
                if row[2] in seen:
                    yield f"{name}: {row[2]} stands there twice"
                seen.add(row[2])

    def _judge_references(self, name: str, rows: Iterator[list[str]]) -> Iterator[str]:
        column = self._columns(name).index("run_id")
        runs = (run for run, _ in itertools.groupby(row[column] for row in rows))
        strangers = 0
        while named := list(itertools.islice(runs, CHUNK_ROWS)):
            strangers += _count_missing(named, self._runs)
        if strangers:
            yield f"{name}: {strangers:,} times names a run that is not in runs.csv"

    def _judge_extra(self, name: str, rows: Iterator[list[str]]) -> Iterator[str]:
        seen: set[str] = set()
        said: list[str] = []
        table = self._extra[name]
        item = table.name.removesuffix("s")

        def looked_at() -> Iterator[list[str]]:
            run_id = None
            for row in rows:
                if row[0] != run_id:
                    run_id = row[0]
                    seen.clear()
                if row[1] in seen:
                    said.append(f"{name}: {row[0]} has the {item} {row[1]} twice")
                seen.add(row[1])
                if column := misfit(table, row):
                    said.append(f"{name}: {column} of {row[0]}, {item} {row[1]}, makes no sense")
                yield row

        yield from self._judge_references(name, looked_at())
        yield from said


def misfit(table: ExtraTable, row: list[str]) -> str | None:
    """Return the first column of a row whose text isn't of the column's type; None if all are."""
    for (name, column), cell in zip(table.columns.items(), row, strict=True):
        kind = column.type
        if kind is bool and cell not in ("", "True", "False"):
            return name
        if kind in (int, float) and cell:
            try:
                kind(cell)
            except ValueError:
                return name
    return None


def _of_width(rows: Iterator[list[str]], width: int) -> Iterator[list[str]]:
    for number, row in enumerate(rows, start=1):
        if len(row) != width:
            raise ValueError(f"row {number:,} has {len(row)} cells instead of {width}")
        yield row


def _sort(values: array[int]) -> set[int]:
    """Sort numbers where they are; returns those that are there twice."""
    import numpy as np

    ordered = np.frombuffer(values, dtype=np.int64)
    ordered.sort()
    return set(ordered[1:][ordered[1:] == ordered[:-1]].tolist())


def _count_missing(names: Sequence[str], among: array[int]) -> int:
    """How many names are not among those with these hashes, which are sorted."""
    import numpy as np

    ordered = np.frombuffer(among, dtype=np.int64)
    hashes = np.array([hash(name) for name in names], dtype=np.int64)
    places = np.searchsorted(ordered, hashes)
    found = places < len(ordered)
    found[found] = ordered[places[found]] == hashes[found]
    return int((~found).sum())
