"""Export of all tables of a study as one consistent set of files.

A set is written completely into a hidden folder, checked, and then published in one step
(`generation`). The same ledger gives the same bytes, except for the time in the manifest.
"""

from __future__ import annotations

import gc
import itertools
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from fairtrial.core import Mistake, StudyError, dump_record, table_files
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
from fairtrial.study.tables.csv_tables import CsvFile
from fairtrial.study.tables.generation import new_generation, refuse_foreign_files
from fairtrial.study.tables.integrity import EXPECTED, check_set
from fairtrial.study.tables.manifest import ManifestTotals, build_manifest
from fairtrial.study.tables.parquet import ParquetMirror
from fairtrial.study.tables.results import Results
from fairtrial.study.tables.rows import Row, RunRows, as_cell, evaluation_rows, event_rows
from fairtrial.study.tables.run_tables import RunTables
from fairtrial.study.tables.source import (
    TableSource,
    ledger_source,
    object_source,
    only_complete_cases,
)
from fairtrial.study.tables.sqlite_mirror import SqliteMirror
from fairtrial.study.tables.write_errors import explain_write_errors

COMPLETE_CASES_FOLDER = "complete-cases"
BATCH_RUNS = 256
RARELY = 100_000
"""How many objects are made between two collections of garbage; those of a few batches of runs."""
Rows = dict[str, list[Row]]


def export_tables(
    origin: LedgerReader | Results,
    folder: str | Path,
    *,
    sqlite: bool = False,
    parquet: bool = False,
    complete_cases: bool = False,
) -> dict[str, Path]:
    """Write all tables of a study; returns the path of each file.

    sqlite: also write one SQLite file
    parquet: also write Parquet files
    complete_cases: also write the tables without failed, broken and skipped runs into a subfolder,
        for readers that can't handle missing values; its manifest has the number left out

    Formats that the folder already has are written again, so that no file becomes stale.
    """
    reader = origin.reader if isinstance(origin, Results) else origin
    target = Path(folder)
    sqlite = sqlite or (target / SQLITE_FILE).exists()
    parquet = parquet or ((target / f"{TABLES[0]}.parquet").exists() and table_files.has_pyarrow())
    complete_cases = complete_cases or (target / COMPLETE_CASES_FOLDER).is_dir()
    with reader.snapshot():
        source = ledger_source(reader)
        paths = write_set(source, target, sqlite=sqlite, parquet=parquet)
        if complete_cases:
            subfolder = target / COMPLETE_CASES_FOLDER
            write_set(only_complete_cases(source), subfolder, sqlite=sqlite, parquet=parquet)
            paths[COMPLETE_CASES_FOLDER] = subfolder
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
    """Write the tables of results given as Python objects; returns the path of each file.

    validate_with_analysis_package: also validate the events with *design-research-analysis*
    """
    source = object_source(study, conditions, list(run_results))
    folder = Path(output_dir or study.output_dir or Path("artifacts") / study.study_id)
    paths = write_set(source, folder, sqlite=include_sqlite)
    if validate_with_analysis_package:
        _validate_with_analysis_package(paths["events.csv"])
    return paths


def check_target(folder: str | Path, *, parquet: bool = False) -> None:
    """Raise `StudyError` if tables can't be written into a folder because of foreign files.

    Called before the first run, so that the error does not come after the last one.
    """
    if parquet:
        table_files.require_pyarrow()
    refuse_foreign_files(Path(folder), file_names(sqlite=True, parquet=True))


def file_names(*, sqlite: bool, parquet: bool) -> list[str]:
    """Return the names of the files of a set."""
    names = [*EXPECTED, MANIFEST_FILE]
    if sqlite:
        names.append(SQLITE_FILE)
    return names + ([f"{table}.parquet" for table in TABLES] if parquet else [])


def write_set(
    source: TableSource, folder: Path, *, sqlite: bool = False, parquet: bool = False
) -> dict[str, Path]:
    """Write and publish one set of tables; returns the path of each file."""
    if parquet:
        table_files.require_pyarrow()
    _refuse_column_clashes(source)
    names = file_names(sqlite=sqlite, parquet=parquet)
    with explain_write_errors(folder):
        if folder.exists():
            refuse_foreign_files(folder, names)
        with new_generation(folder) as generation_folder:
            written = _write(source, generation_folder, sqlite=sqlite, parquet=parquet)
    return {name: folder / name for name in dict.fromkeys([*names, *written])}


def _write(source: TableSource, folder: Path, *, sqlite: bool, parquet: bool) -> list[str]:
    """Write and check all files of a set; returns their names."""
    study, totals = source.study, ManifestTotals()
    types = ColumnTypes() if sqlite or parquet else None
    write_study(study, folder / STUDY_FILE, "yaml")
    _write_json(folder / HYPOTHESES_FILE, dump_record(study.hypotheses))
    _write_json(folder / PLANS_FILE, dump_record(study.analysis_plans))
    tables = _write_csv(source, folder, totals, types)
    if types is not None:
        _write_mirrors(source, folder, types, sqlite=sqlite, parquet=parquet)
    manifest = build_manifest(source, totals, folder, tables)
    _write_json(folder / MANIFEST_FILE, manifest)
    # The rows of extra tables come from plug-ins, other rows without a plan from callers.
    with_rows = not source.is_planned or any(
        f"{name}.csv" in tables and not table.is_sound for name, table in extra_tables().items()
    )
    paths = {name: folder / name for name in manifest["files"]}
    problems = check_set(manifest, paths, with_rows=with_rows)
    if problems:
        raise StudyError(
            [Mistake((), f"the tables are inconsistent: {problem}") for problem in problems]
        )
    return list(manifest["files"])


def _write_csv(
    source: TableSource, folder: Path, totals: ManifestTotals, types: ColumnTypes | None
) -> dict[str, CsvFile]:
    """Write the CSV files in one pass; returns them by their names."""
    columns = condition_columns(source.study, source.conditions)
    with ExitStack() as stack:
        conditions = CsvFile(folder / "conditions.csv", columns)
        stack.callback(conditions.close)
        for rows in _condition_batches(source, columns):
            conditions.add(rows)
            if types is not None:
                types.observe("conditions", rows)
        tables = RunTables(source.study, source.conditions, folder, types)
        stack.callback(tables.close)
        stack.enter_context(rare_collections())
        for batch in source.batches():
            totals.add(batch)
            tables.add(batch)
        tables.finish()
    totals.metrics_left_out = tables.metrics_left_out
    if types is not None:
        types.columns = {
            "conditions": columns,
            "runs": tables.columns,
            "events": list(EVENT_COLUMNS),
            "evaluations": list(EVALUATION_COLUMNS),
            **{
                name: list(table.columns)
                for name, table in extra_tables().items()
                if name in tables.files
            },
        }
    files = {"conditions": conditions, **tables.files}
    return {f"{table}.csv": file for table, file in files.items()}


@contextmanager
def rare_collections() -> Iterator[None]:
    """Let the garbage collector look at new objects rarely: rows have no cycles."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], RARELY) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _condition_batches(source: TableSource, columns: Sequence[str]) -> Iterator[list[Row]]:
    """Yield rows of the table of conditions."""
    named_rows = condition_rows(source.study, source.conditions)
    while chunk := list(itertools.islice(named_rows, BATCH_RUNS)):
        yield [[as_cell(row.get(name)) for name in columns] for row in chunk]


def _write_mirrors(
    source: TableSource, folder: Path, types: ColumnTypes, *, sqlite: bool, parquet: bool
) -> None:
    """Write the SQLite and Parquet files in a second pass, when all column types are known."""
    runs = RunRows(source.study, source.conditions)
    with ExitStack() as stack:
        mirrors: list[SqliteMirror | ParquetMirror] = []
        if sqlite:
            mirrors.append(stack.enter_context(SqliteMirror(folder / SQLITE_FILE, types)))
        if parquet:
            mirrors.append(stack.enter_context(ParquetMirror(folder, types)))
        for batch in _batches(source, runs, types.columns["conditions"]):
            for table, rows in batch.items():
                for mirror in mirrors if rows else ():
                    mirror.add(table, rows)


def _batches(source: TableSource, runs: RunRows, conditions: Sequence[str]) -> Iterator[Rows]:
    """Yield the rows of all tables in plan order, in batches of runs."""
    for rows in _condition_batches(source, conditions):
        yield {"conditions": rows}
    study, extra = source.study, extra_tables()
    results = source.results()
    while chunk := list(itertools.islice(results, BATCH_RUNS)):
        yield {
            "runs": [runs.row(result) for result in chunk],
            "events": [row for result in chunk for row in event_rows(study, result)],
            "evaluations": [row for result in chunk for row in evaluation_rows(result)],
            **{
                name: [row for result in chunk for row in table.rows(result)]
                for name, table in extra.items()
            },
        }


def _refuse_column_clashes(source: TableSource) -> None:
    """Raise `StudyError` for factors named like a key column or, ignoring case, like another."""
    columns = condition_columns(source.study, source.conditions)[len(CONDITION_COLUMNS) :]
    assigned = {name for condition in source.conditions for name in condition.factor_assignments}
    declared = {factor.name for factor in source.study.factors}
    clashing = sorted((assigned | declared) & set(CONDITION_COLUMNS))
    counts = Counter(name.lower() for name in columns)
    duplicates = sorted(name for name in columns if counts[name.lower()] > 1)
    mistakes = [
        Mistake(("factors",), f"'{name}' is a key column of the tables", "use another name")
        for name in clashing
    ] + [
        Mistake(("factors",), f"'{name}' would share a column with another") for name in duplicates
    ]
    if mistakes:
        raise StudyError(mistakes)


def _write_json(path: Path, data: Any) -> None:
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    path.write_bytes(text.encode("utf-8"))


def _validate_with_analysis_package(events: Path) -> None:
    try:
        import design_research_analysis as analysis  # type: ignore[import-not-found]
    except ImportError:
        hint = "pip install design-research-analysis, or leave out validate_with_analysis_package"
        raise StudyError(Mistake((), "design-research-analysis is not installed", hint)) from None
    report = analysis.validate_experiment_events(events)
    if not report.is_valid:
        raise StudyError([Mistake((), f"{events}: {error}") for error in report.errors])
