"""From results to files: all tables of a study, as one set.

A set is written in full where nobody looks, checked, and then put in place in one step
(`generation`). It is made of a ledger alone, and the same ledger gives the same bytes, but for the
time of writing in the manifest.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from fairtrial.core import Mistake, StudyError, dump, has_pyarrow, require_pyarrow
from fairtrial.study.extensions import extra_tables
from fairtrial.study.files.writing import write_study
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import RunResult
from fairtrial.study.model.study import Study
from fairtrial.study.tables.canonical import (
    CONDITION_COLUMNS,
    EVALUATION_COLUMNS,
    EVENT_COLUMNS,
    HYPOTHESES_FILE,
    MANIFEST_FILE,
    PLANS_FILE,
    SQLITE_FILE,
    STUDY_FILE,
    TABLES,
    condition_columns,
    condition_rows,
)
from fairtrial.study.tables.columns import ColumnTypes
from fairtrial.study.tables.csv_tables import CsvFile, GrowingCsvFile, OptionalCsvFile
from fairtrial.study.tables.generation import new_generation, refuse_foreign
from fairtrial.study.tables.integrity import EXPECTED, check_set
from fairtrial.study.tables.manifest import Tally, make_manifest
from fairtrial.study.tables.parquet import ParquetMirror
from fairtrial.study.tables.results import Results
from fairtrial.study.tables.rows import Row, RunRows, as_cell, evaluation_rows, event_rows
from fairtrial.study.tables.source import (
    Source,
    ledger_source,
    object_source,
    only_complete,
)
from fairtrial.study.tables.sqlite_mirror import SqliteMirror
from fairtrial.study.tables.write_errors import explained

COMPLETE_CASES_FOLDER = "complete-cases"
BATCH_RUNS = 256
Rows = dict[str, list[Row]]


def export_tables(
    origin: LedgerReader | Results,
    folder: str | Path,
    *,
    sqlite: bool = False,
    parquet: bool = False,
    complete_cases: bool = False,
) -> dict[str, Path]:
    """Write all tables of a study; returns where each file is.

    sqlite: also as one SQLite file
    parquet: also as Parquet files
    complete_cases: also, in a folder below, without failed, broken and skipped runs, for readers
        that can't take gaps; its manifest says how many were left out

    The forms that are there are written anew, too: nothing goes, and nothing goes stale.
    """
    reader = origin.reader if isinstance(origin, Results) else origin
    target = Path(folder)
    sqlite = sqlite or (target / SQLITE_FILE).exists()
    parquet = parquet or ((target / f"{TABLES[0]}.parquet").exists() and has_pyarrow())
    complete_cases = complete_cases or (target / COMPLETE_CASES_FOLDER).is_dir()
    with reader.as_of_now():
        source = ledger_source(reader)
        paths = write_set(source, target, sqlite=sqlite, parquet=parquet)
        if complete_cases:
            below = target / COMPLETE_CASES_FOLDER
            write_set(only_complete(source), below, sqlite=sqlite, parquet=parquet)
            paths[COMPLETE_CASES_FOLDER] = below
    return paths


def export_analysis_tables(
    study: Study,
    *,
    conditions: Sequence[Condition],
    run_results: Sequence[RunResult],
    output_dir: str | Path | None = None,
    include_sqlite: bool = False,
    validate_with_analysis_package: bool = False,
) -> dict[str, Path]:
    """Write the tables of results that Python code has at hand; returns where each file is.

    validate_with_analysis_package: also have *design-research-analysis* look at the events
    """
    source = object_source(study, conditions, list(run_results))
    folder = Path(output_dir or study.output_dir or Path("artifacts") / study.study_id)
    paths = write_set(source, folder, sqlite=include_sqlite)
    if validate_with_analysis_package:
        _ask_analysis_package(paths["events.csv"])
    return paths


def check_target(folder: str | Path, *, parquet: bool = False) -> None:
    """Refuse now, rather than after the last run, a folder that holds somebody else's files."""
    if parquet:
        require_pyarrow()
    refuse_foreign(Path(folder), file_names(sqlite=True, parquet=True))


def file_names(*, sqlite: bool, parquet: bool) -> list[str]:
    """The files that a set consists of."""
    names = [*EXPECTED, MANIFEST_FILE]
    if sqlite:
        names.append(SQLITE_FILE)
    return names + ([f"{table}.parquet" for table in TABLES] if parquet else [])


def write_set(
    source: Source, folder: Path, *, sqlite: bool = False, parquet: bool = False
) -> dict[str, Path]:
    """Write one set of tables and put it in place."""
    if parquet:
        require_pyarrow()
    _refuse_clashes(source)
    names = file_names(sqlite=sqlite, parquet=parquet)
    with explained(folder):
        if folder.exists():
            refuse_foreign(folder, names)
        with new_generation(folder) as place:
            written = _write(source, place, sqlite=sqlite, parquet=parquet)
    return {name: folder / name for name in dict.fromkeys([*names, *written])}


def _write(source: Source, place: Path, *, sqlite: bool, parquet: bool) -> list[str]:
    study, tally = source.study, Tally()
    types = ColumnTypes() if sqlite or parquet else None
    write_study(study, place / STUDY_FILE, "yaml")
    _write_json(place / HYPOTHESES_FILE, dump(study.hypotheses))
    _write_json(place / PLANS_FILE, dump(study.analysis_plans))
    rows = _write_csv(source, place, tally, types)
    if types is not None:
        _write_mirrors(source, place, types, sqlite=sqlite, parquet=parquet)
    manifest = make_manifest(source, tally, place, rows)
    _write_json(place / MANIFEST_FILE, manifest)
    problems = check_set(manifest, {name: place / name for name in manifest["files"]})
    if problems:
        raise StudyError(
            [Mistake((), f"the tables don't hold together: {each}") for each in problems]
        )
    return list(manifest["files"])


def _write_csv(
    source: Source, place: Path, tally: Tally, types: ColumnTypes | None
) -> dict[str, int]:
    """Write the CSV files in one pass; returns how many rows each has."""
    conditions = condition_columns(source.study, source.conditions)
    runs = RunRows(source.study)
    extra = extra_tables()
    with ExitStack() as stack:
        growing = GrowingCsvFile(place / "runs.csv")
        files: dict[str, CsvFile | GrowingCsvFile | OptionalCsvFile] = {
            "conditions": CsvFile(place / "conditions.csv", conditions),
            "runs": growing,
            "events": CsvFile(place / "events.csv", EVENT_COLUMNS),
            "evaluations": CsvFile(place / "evaluations.csv", EVALUATION_COLUMNS),
            **{
                name: OptionalCsvFile(place / f"{name}.csv", tuple(table.columns))
                for name, table in extra.items()
            },
        }
        for file in files.values():
            stack.callback(file.close)
        for batch in _batches(source, runs, conditions, tally):
            for table, rows in batch.items():
                files[table].add(rows)
                if types is not None:
                    types.note(table, rows)
        growing.finish(runs.columns)
    tally.metrics_left_out = runs.metrics.left_out
    if types is not None:
        types.columns = {
            "conditions": conditions,
            "runs": runs.columns,
            "events": list(EVENT_COLUMNS),
            "evaluations": list(EVALUATION_COLUMNS),
            **{name: list(table.columns) for name, table in extra.items() if files[name].rows},
        }
    return {f"{table}.csv": file.rows for table, file in files.items()}


def _write_mirrors(
    source: Source, place: Path, types: ColumnTypes, *, sqlite: bool, parquet: bool
) -> None:
    """A second pass, now that every column and its type is known."""
    runs = RunRows(source.study)
    with ExitStack() as stack:
        mirrors: list[SqliteMirror | ParquetMirror] = []
        if sqlite:
            mirrors.append(stack.enter_context(SqliteMirror(place / SQLITE_FILE, types)))
        if parquet:
            mirrors.append(stack.enter_context(ParquetMirror(place, types)))
        for batch in _batches(source, runs, types.columns["conditions"], Tally()):
            for table, rows in batch.items():
                for mirror in mirrors if rows else ():
                    mirror.add(table, rows)


def _batches(
    source: Source, runs: RunRows, conditions: Sequence[str], tally: Tally
) -> Iterator[Rows]:
    """The rows of all tables, some hundred runs at a time."""
    study = source.study
    told = condition_rows(study, source.conditions)
    yield {"conditions": [[as_cell(row.get(name)) for name in conditions] for row in told]}
    extra = extra_tables()
    results = source.results()
    while chunk := list(itertools.islice(results, BATCH_RUNS)):
        tally.add(chunk)
        yield {
            "runs": [runs.row(result) for result in chunk],
            "events": [row for result in chunk for row in event_rows(study, result)],
            "evaluations": [row for result in chunk for row in evaluation_rows(result)],
            **{
                name: [row for result in chunk for row in table.rows(result)]
                for name, table in extra.items()
            },
        }


def _refuse_clashes(source: Source) -> None:
    """A factor named like a key column would take its place."""
    own = condition_columns(source.study, source.conditions)[len(CONDITION_COLUMNS) :]
    assigned = {name for each in source.conditions for name in each.factor_assignments}
    declared = {factor.name for factor in source.study.factors}
    clashing = sorted((assigned | declared) & set(CONDITION_COLUMNS))
    counts = Counter(name.lower() for name in own)
    twins = sorted(name for name in own if counts[name.lower()] > 1)
    mistakes = [
        Mistake(("factors",), f"'{name}' is a key column of the tables", "use another name")
        for name in clashing
    ] + [Mistake(("factors",), f"'{name}' would share a column with another") for name in twins]
    if mistakes:
        raise StudyError(mistakes)


def _write_json(path: Path, data: Any) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    path.write_bytes(text.encode("utf-8"))


def _ask_analysis_package(events: Path) -> None:
    try:
        import design_research_analysis as analysis  # type: ignore[import-not-found]
    except ImportError:
        hint = "pip install design-research-analysis, or leave out validate_with_analysis_package"
        raise StudyError(Mistake((), "design-research-analysis is not installed", hint)) from None
    report = analysis.validate_experiment_events(events)
    if not report.is_valid:
        raise StudyError([Mistake((), f"{events}: {error}") for error in report.errors])
