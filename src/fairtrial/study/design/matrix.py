"""Designs whose rows are read from a CSV or JSON file."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtrial.core import Mistake, StudyError, describe_value, did_you_mean
from fairtrial.study.design.matrix_cells import MatrixColumn
from fairtrial.study.model.conditions import DesignRow, DesignTable
from fairtrial.study.model.study import Study

MAX_BYTES = 100_000_000
MAX_MISTAKES = 50
PATH = ("design_spec", "matrix_path")


@dataclass(frozen=True)
class CustomMatrix:
    """The rows of the CSV or JSON file `design_spec.matrix_path`, in its order.

    The file has a column for each factor and each block of the study; others are ignored. JSON is a
    list of objects, whose values are not converted. A CSV cell is the value or the name of a level;
    for a factor without levels it is converted to the factor's dtype, or is text without one. An
    empty CSV cell is the factor's default. Ids are hashes of the cells as the file has them.

    The file is searched in the study's folder, then in the working directory.
    """

    def table(self, study: Study) -> DesignTable:
        """Return the table of the file's rows; raises `StudyError` with all mistakes in it."""
        path = _find_file(study)
        limit = study.design_spec.max_conditions
        mistakes: list[str] = []
        sheet = _read_sheet(path, limit, mistakes)
        if len(sheet.rows) > limit:
            # Not converted: the caller refuses the table by its size.
            return DesignTable(size=len(sheet.rows), rows=(), settled=True)
        columns = [MatrixColumn.from_factor(factor) for factor in study.factors]
        columns += [MatrixColumn.from_block(block) for block in study.blocks]
        rows = _make_rows(study, columns, sheet, mistakes)
        if not rows and not mistakes:
            mistakes.append("there are no rows")
        if mistakes:
            raise StudyError(_limit_mistakes(path.name, mistakes))
        facts = {
            "file": study.design_spec.matrix_path,
            "ignored_columns": _find_ignored_columns(columns, sheet),
        }
        return DesignTable(size=len(rows), rows=rows, facts=facts, settled=True)


@dataclass(frozen=True)
class Sheet:
    """The cells of a matrix file.

    columns: the names of the columns
    rows: the location of each row ("line 2") and its cells
    is_text: whether the cells are text that has to be converted, as in CSV
    """

    columns: Sequence[str]
    rows: Sequence[tuple[str, Mapping[str, Any]]]
    is_text: bool


def _find_file(study: Study) -> Path:
    """Return the path of the matrix file; raises `StudyError` if there is none."""
    name = study.design_spec.matrix_path
    if not name:
        raise StudyError(
            Mistake(PATH, "custom_matrix needs a file of rows", "name a .csv or .json file here")
        )
    if Path(name).suffix.lower() not in (".csv", ".json"):
        raise StudyError(Mistake(PATH, f"'{name}' is neither a .csv nor a .json file"))
    folders = [Path() if study.folder is None else study.folder, Path()]
    similar_files: list[str] = []
    with contextlib.suppress(OSError, ValueError):  # the name is no valid path
        for folder in folders:
            if (folder / name).is_file():
                return folder / name
        files = [path for path in (folders[0] / name).parent.glob("*") if path.is_file()]
        similar_files = sorted(
            path.name for path in files if path.suffix.lower() in (".csv", ".json")
        )
    searched = "the working directory"
    if study.folder is not None:
        searched = f"{study.folder} or in {searched}"
    raise StudyError(
        Mistake(
            PATH,
            f"there is no file '{name}' in {searched}",
            did_you_mean(Path(name).name, similar_files) if similar_files else "",
        )
    )


def _read_sheet(path: Path, limit: int, mistakes: list[str]) -> Sheet:
    """Return the cells of a file, at most `limit` + 1 rows, and append mistakes in it."""
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise StudyError(
            Mistake(PATH, f"{path.name} has {size:,} bytes; a matrix may have {MAX_BYTES:,}")
        )
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise StudyError(Mistake(PATH, f"{path.name} can't be read: {error}")) from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise StudyError(
            Mistake(PATH, f"{path.name} line {line} is not UTF-8 text", "save the file as UTF-8")
        ) from error
    if path.suffix.lower() == ".csv":
        return _read_csv(text, limit, mistakes)
    return _read_json(text, limit, mistakes)


def _read_csv(text: str, limit: int, mistakes: list[str]) -> Sheet:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns: list[str] = []
    rows: list[tuple[str, dict[str, str]]] = []
    start = 1
    try:
        for cells in reader:
            location, start = f"line {start}", reader.line_num + 1
            if not cells:
                continue
            if not columns:
                columns = [cell.strip() for cell in cells]
            elif len(cells) == len(columns):
                rows.append((location, dict(zip(columns, cells, strict=True))))
            else:
                mistakes.append(f"{location}: {len(cells)} cells, but {len(columns)} columns")
            if len(rows) > limit or len(mistakes) > limit:
                break
    except csv.Error as error:
        mistakes.append(f"line {reader.line_num}: this is not CSV: {error}")
    if not columns:
        mistakes.append("the file is empty; its first line must name the columns")
    named = [name for name in columns if name]
    repeated = [name for index, name in enumerate(named) if name in named[:index]]
    mistakes.extend(f"line 1: two columns are named '{name}'" for name in dict.fromkeys(repeated))
    return Sheet(columns, rows, is_text=True)


def _read_json(text: str, limit: int, mistakes: list[str]) -> Sheet:
    def make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            repeated = sorted(name for name, count in counts.items() if count > 1)
            mistakes.extend(f"the key '{name}' stands twice in a row" for name in repeated)
        return result

    try:
        payload = json.loads(text, object_pairs_hook=make_object)
        json.dumps(payload, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        mistakes.append("a text holds half of a surrogate pair, which is no character")
        payload = []
    except (ValueError, RecursionError) as error:
        mistakes.append(f"this is not JSON: {error}")
        payload = []
    if not isinstance(payload, list):
        mistakes.append(f"expected a list of rows, got {describe_value(payload)}")
        payload = []
    rows = []
    for number, row in enumerate(payload[: limit + 1], start=1):
        if isinstance(row, dict):
            rows.append((f"row {number}", row))
        else:
            mistakes.append(f"row {number}: expected an object, got {describe_value(row)}")
    return Sheet(list(dict.fromkeys(key for _, row in rows for key in row)), rows, is_text=False)


def _find_ignored_columns(columns: Sequence[MatrixColumn], sheet: Sheet) -> list[str]:
    """Return the file's columns that are neither factors nor blocks."""
    used = {column.name for column in columns}
    return [name for name in sheet.columns if name and name not in used]


def _make_rows(
    study: Study, columns: Sequence[MatrixColumn], sheet: Sheet, mistakes: list[str]
) -> list[DesignRow]:
    present = [column for column in columns if column.name in sheet.columns]
    if sheet.columns:
        mistakes.extend(_find_missing_columns(columns, sheet))
    rows = []
    for index, (location, cells) in enumerate(sheet.rows):
        values = _convert_cells(present, location, cells, sheet.is_text, mistakes)
        id_metadata = {"design_kind": str(study.design_spec.kind), "matrix_row": index}
        rows.append(
            DesignRow(
                factors={factor.name: values.get(factor.name) for factor in study.factors},
                blocks={block.name: values.get(block.name) for block in study.blocks},
                id_metadata=id_metadata,
                metadata=id_metadata,
                raw_cells=cells if sheet.is_text else None,
            )
        )
    return rows


def _find_missing_columns(columns: Sequence[MatrixColumn], sheet: Sheet) -> Iterator[str]:
    ignored = _find_ignored_columns(columns, sheet)
    for column in columns:
        if column.name in sheet.columns:
            continue
        hint = did_you_mean(column.name, ignored) if ignored else "add it"
        for separator, noun in ((";", "semicolons"), ("\t", "tabs")):
            if len(sheet.columns) == 1 and separator in sheet.columns[0]:
                hint = f"separate the columns by commas, not by {noun}"
        yield f"there is no column for the {column.role} '{column.name}'; {hint}"


def _convert_cells(
    columns: Sequence[MatrixColumn],
    location: str,
    cells: Mapping[str, Any],
    is_text: bool,
    mistakes: list[str],
) -> dict[str, Any]:
    """Return the values of one row's cells, and append mistakes in them."""
    if is_text and columns and not any(cells[column.name].strip() for column in columns):
        mistakes.append(f"{location}: the row is empty; leave it out")
        return {}
    values = {}
    for column in columns:
        try:
            if column.name not in cells:
                raise ValueError("is missing")
            convert = column.read_text if is_text else column.check_value
            values[column.name] = convert(cells[column.name])
        except ValueError as error:
            mistakes.append(f"{location}, column '{column.name}': {error}")
    return values


def _limit_mistakes(file: str, messages: Sequence[str]) -> list[Mistake]:
    """Return the first `MAX_MISTAKES` mistakes, and how many more there are."""
    shown = [Mistake(PATH, f"{file}: {text}") for text in messages[:MAX_MISTAKES]]
    if len(messages) > MAX_MISTAKES:
        shown.append(Mistake(PATH, f"{file}: and {len(messages) - MAX_MISTAKES:,} more mistakes"))
    return shown
