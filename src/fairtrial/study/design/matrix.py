"""Designs that the user wrote down: the rows of a CSV or JSON file."""

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

from fairtrial.core import Mistake, StudyError, describe, did_you_mean
from fairtrial.study.design.matrix_cells import Column
from fairtrial.study.model.conditions import DesignRow, DesignTable
from fairtrial.study.model.study import Study

MAX_BYTES = 100_000_000
MAX_MISTAKES = 50
HERE = ("design_spec", "matrix_path")


@dataclass(frozen=True)
class CustomMatrix:
    """The rows of the file `design_spec.matrix_path`, in its order: CSV or JSON.

    The file has a column for each factor and each block of the study; others are ignored. JSON is a
    list of objects, whose values are taken as they are. A CSV cell is the level whose value or name
    it spells; for a factor without levels it is read by the factor's dtype, else it is text. An
    empty CSV cell is the factor's default. Ids are of the cells as the file has them.

    The file is looked for in the study's own folder first, then in the working directory.
    """

    def table(self, study: Study) -> DesignTable:
        path = _find(study)
        limit = study.design_spec.max_conditions
        mistakes: list[str] = []
        sheet = _read(path, limit, mistakes)
        if len(sheet.rows) > limit:
            # Too long to be used: whoever asked refuses it by its size.
            return DesignTable(size=len(sheet.rows), rows=(), settled=True)
        columns = [Column.of_factor(factor) for factor in study.factors]
        columns += [Column.of_block(block) for block in study.blocks]
        rows = _rows(study, columns, sheet, mistakes)
        if not rows and not mistakes:
            mistakes.append("there are no rows")
        if mistakes:
            raise StudyError(_shorten(path.name, mistakes))
        facts = {
            "file": study.design_spec.matrix_path,
            "ignored_columns": _others(columns, sheet),
        }
        return DesignTable(size=len(rows), rows=rows, facts=facts, settled=True)


@dataclass(frozen=True)
class Sheet:
    """A matrix file, read but not yet understood.

    columns: the names of its columns
    rows: where each row stands ("line 2") and its cells
    is_text: whether the cells are spelled-out values, as in CSV
    """

    columns: Sequence[str]
    rows: Sequence[tuple[str, Mapping[str, Any]]]
    is_text: bool


def _find(study: Study) -> Path:
    given = study.design_spec.matrix_path
    if not given:
        raise StudyError(
            Mistake(HERE, "custom_matrix needs a file of rows", "name a .csv or .json file here")
        )
    if Path(given).suffix.lower() not in (".csv", ".json"):
        raise StudyError(Mistake(HERE, f"'{given}' is neither a .csv nor a .json file"))
    folders = [Path() if study.folder is None else study.folder, Path()]
    files: list[str] = []
    with contextlib.suppress(OSError, ValueError):  # what can't be a file's name
        for folder in folders:
            if (folder / given).is_file():
                return folder / given
        near = [path for path in (folders[0] / given).parent.glob("*") if path.is_file()]
        files = sorted(path.name for path in near if path.suffix.lower() in (".csv", ".json"))
    places = "the working directory"
    if study.folder is not None:
        places = f"{study.folder} or in {places}"
    raise StudyError(
        Mistake(
            HERE,
            f"there is no file '{given}' in {places}",
            did_you_mean(Path(given).name, files) if files else "",
        )
    )


def _read(path: Path, limit: int, mistakes: list[str]) -> Sheet:
    """The file's rows, no more than one past `limit`; what is wrong is appended to `mistakes`."""
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise StudyError(
            Mistake(HERE, f"{path.name} has {size:,} bytes; a matrix may have {MAX_BYTES:,}")
        )
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise StudyError(Mistake(HERE, f"{path.name} can't be read: {error}")) from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise StudyError(
            Mistake(HERE, f"{path.name} line {line} is not UTF-8 text", "save the file as UTF-8")
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
            where, start = f"line {start}", reader.line_num + 1
            if not cells:
                continue
            if not columns:
                columns = [cell.strip() for cell in cells]
            elif len(cells) == len(columns):
                rows.append((where, dict(zip(columns, cells, strict=True))))
            else:
                mistakes.append(f"{where}: {len(cells)} cells, but {len(columns)} columns")
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
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            times = Counter(name for name, _ in pairs)
            repeated = sorted(name for name, count in times.items() if count > 1)
            mistakes.extend(f"the key '{name}' stands twice in a row" for name in repeated)
        return found

    try:
        payload = json.loads(text, object_pairs_hook=unique)
        json.dumps(payload, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        mistakes.append("a text holds half of a surrogate pair, which is no character")
        payload = []
    except (ValueError, RecursionError) as error:
        mistakes.append(f"this is not JSON: {error}")
        payload = []
    if not isinstance(payload, list):
        mistakes.append(f"expected a list of rows, got {describe(payload)}")
        payload = []
    rows = []
    for number, row in enumerate(payload[: limit + 1], start=1):
        if isinstance(row, dict):
            rows.append((f"row {number}", row))
        else:
            mistakes.append(f"row {number}: expected an object, got {describe(row)}")
    return Sheet(list(dict.fromkeys(key for _, row in rows for key in row)), rows, is_text=False)


def _others(columns: Sequence[Column], sheet: Sheet) -> list[str]:
    """The file's columns that the study has no use for."""
    known = {column.name for column in columns}
    return [name for name in sheet.columns if name and name not in known]


def _rows(
    study: Study, columns: Sequence[Column], sheet: Sheet, mistakes: list[str]
) -> list[DesignRow]:
    present = [column for column in columns if column.name in sheet.columns]
    if sheet.columns:
        mistakes.extend(_absences(columns, sheet))
    made = []
    for index, (where, cells) in enumerate(sheet.rows):
        values = _values(present, where, cells, sheet.is_text, mistakes)
        keyed = {"design_kind": str(study.design_spec.kind), "matrix_row": index}
        made.append(
            DesignRow(
                factors={factor.name: values.get(factor.name) for factor in study.factors},
                blocks={block.name: values.get(block.name) for block in study.blocks},
                keyed=keyed,
                metadata=keyed,
                written=cells if sheet.is_text else None,
            )
        )
    return made


def _absences(columns: Sequence[Column], sheet: Sheet) -> Iterator[str]:
    others = _others(columns, sheet)
    for column in columns:
        if column.name in sheet.columns:
            continue
        hint = did_you_mean(column.name, others) if others else "add it"
        for mark, called in ((";", "semicolons"), ("\t", "tabs")):
            if len(sheet.columns) == 1 and mark in sheet.columns[0]:
                hint = f"separate the columns by commas, not by {called}"
        yield f"there is no column for the {column.role} '{column.name}'; {hint}"


def _values(
    columns: Sequence[Column],
    where: str,
    cells: Mapping[str, Any],
    is_text: bool,
    mistakes: list[str],
) -> dict[str, Any]:
    """What one row's cells stand for."""
    if is_text and columns and not any(cells[column.name].strip() for column in columns):
        mistakes.append(f"{where}: the row is empty; leave it out")
        return {}
    values = {}
    for column in columns:
        try:
            if column.name not in cells:
                raise ValueError("is missing")
            read = column.read_text if is_text else column.check_value
            values[column.name] = read(cells[column.name])
        except ValueError as error:
            mistakes.append(f"{where}, column '{column.name}': {error}")
    return values


def _shorten(file: str, mistakes: Sequence[str]) -> list[Mistake]:
    """The mistakes as one report, the first of very many."""
    shown = [Mistake(HERE, f"{file}: {text}") for text in mistakes[:MAX_MISTAKES]]
    if len(mistakes) > MAX_MISTAKES:
        shown.append(Mistake(HERE, f"{file}: and {len(mistakes) - MAX_MISTAKES:,} more mistakes"))
    return shown
