"""Rows that exist already: read back so that a design can be added to."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

from fairtrial.core import Mistake, StudyError, did_you_mean
from fairtrial.study.design.constraints import Judge
from fairtrial.study.design.matrix_cells import Column
from fairtrial.study.design.rows import Assignment, block_assignments
from fairtrial.study.design.terms import Model
from fairtrial.study.model.study import Study

HERE = ("design_spec", "options", "start_from")


def read_earlier(study: Study, file: str, model: Model) -> list[Assignment]:
    """The rows of a CSV file with a column for each factor; other columns are ignored.

    A conditions.csv lists each row once for each combination of blocks (`block_...` columns): only
    those of the first one are read. Raises one error with all that is wrong.
    """
    cells = list(_read_lines(study, file))
    judge, blocks = Judge(study.constraints, study.folder), block_assignments(study)
    columns = [Column.of_factor(factor) for factor in study.factors]
    codings = {coding.name: coding for coding in model.codings}
    rows: list[Assignment] = []
    mistakes: list[Mistake] = []
    for line, texts in cells:
        row: Assignment = {}
        for column in columns:
            try:
                value = column.read_text(texts[column.name])
                if column.name in codings and not codings[column.name].knows(value):
                    raise ValueError("is empty")
                row[column.name] = value
            except ValueError as error:
                mistakes.append(Mistake(HERE, f"{file} line {line}, '{column.name}': {error}"))
        if len(row) < len(columns):
            continue
        rows.append(row)
        for admissible, broken in (judge(row, block) for block in blocks):
            if not admissible:
                message = f"{file} line {line} would never run: it breaks {'; '.join(broken)}"
                mistakes.append(Mistake(HERE, message, "leave the line out"))
                break
    if mistakes:
        raise StudyError(mistakes)
    return rows


def _read_lines(study: Study, file: str) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Line number and cells of each row of the first block.

    The file is looked for in the study's own folder first, then in the working directory.
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
        raise StudyError(Mistake(HERE, f"'{file}' can't be read: {error}")) from error
    absent = [factor.name for factor in study.factors if factor.name not in names]
    if absent:
        raise StudyError(
            [
                Mistake(HERE, f"{file} has no column '{name}'", did_you_mean(name, names))
                for name in absent
            ]
        )
    blocks = {f"block_{block.name}" for block in study.blocks} & set(names)
    for line, row in lines:
        if all(row[block] == lines[0][1][block] for block in blocks):
            yield line, row
