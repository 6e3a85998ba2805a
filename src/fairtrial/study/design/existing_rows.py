"""Read existing rows of a design from a CSV file, so that the design can be extended."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from fairtrial.core import Mistake, StudyError, did_you_mean
from fairtrial.study.design.constraints import ConstraintChecker
from fairtrial.study.design.matrix_cells import MatrixColumn
from fairtrial.study.design.rows import Assignment, block_assignments
from fairtrial.study.design.terms import Model
from fairtrial.study.model.study import Study

PATH = ("design_spec", "options", "start_from")


def read_existing_rows(study: Study, file: str, model: Model) -> list[Assignment]:
    """Return the rows of a CSV file with a column for each factor; other columns are ignored.

    A conditions.csv has each row once for each combination of blocks (`block_...` columns); only
    the rows of the first combination are read. Raises one `StudyError` with all mistakes.
    """
    lines = list(_read_lines(study, file))
    check, blocks = ConstraintChecker(study.constraints, study.folder), block_assignments(study)
    columns = [MatrixColumn.from_factor(factor) for factor in study.factors]
    codings = {coding.name: coding for coding in model.codings}
    rows: list[Assignment] = []
    mistakes: list[Mistake] = []
    for line, cells in lines:
        row: Assignment = {}
        for column in columns:
            try:
                value = column.read_text(cells[column.name])
                if column.name in codings and not codings[column.name].has_value(value):
                    raise ValueError("is empty")
                row[column.name] = value
            except ValueError as error:
                mistakes.append(Mistake(PATH, f"{file} line {line}, '{column.name}': {error}"))
        if len(row) < len(columns):
            continue
        rows.append(row)
        for admissible, messages in (check(row, block) for block in blocks):
            if not admissible:
                message = f"{file} line {line} would never run: it breaks {'; '.join(messages)}"
                mistakes.append(Mistake(PATH, message, "leave the line out"))
                break
    if mistakes:
        raise StudyError(mistakes)
    return rows


def _read_lines(study: Study, file: str) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield line number and cells of each row of the first combination of blocks.

    The file is searched in the study's folder, then in the working directory.
    """
    path = Path(file)
    if study.folder is not None and (study.folder / file).is_file():
        path = study.folder / file
    try:
        with path.open(encoding="utf-8-sig", newline="") as text:
            reader = csv.DictReader(text, strict=True, restval="")
            names = list(reader.fieldnames or ())
            lines = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise StudyError(Mistake(PATH, f"'{file}' can't be read: {error}")) from error
    missing = [factor.name for factor in study.factors if factor.name not in names]
    if missing:
        raise StudyError(
            [
                Mistake(PATH, f"{file} has no column '{name}'", did_you_mean(name, names))
                for name in missing
            ]
        )
    blocks = {f"block_{block.name}" for block in study.blocks} & set(names)
    for line, row in lines:
        if all(row[block] == lines[0][1][block] for block in blocks):
            yield line, row
