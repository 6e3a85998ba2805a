"""Latin squares: three factors of n levels each in n² conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from fairtrial.core import Mistake, StudyError, did_you_mean
from fairtrial.study.design.rows import follow_ties, free_factors
from fairtrial.study.model.conditions import DesignRow, DesignTable
from fairtrial.study.model.factors import Factor
from fairtrial.study.model.study import Study

OPTIONS = ("row_factor", "column_factor", "treatment_factor")


@dataclass(frozen=True)
class LatinSquare:
    """Each treatment once in each row and once in each column: the treatment of row i and column j
    is number (i + j) mod n.

    A study of exactly three factors may leave all options out: they are row, column and treatment
    in the order in which they are listed. The conditions always stand in the order of the square.

    row_factor: the factor whose levels are the rows
    column_factor: the factor whose levels are the columns
    treatment_factor: the factor that each row and each column meets every level of
    """

    row_factor: str = ""
    column_factor: str = ""
    treatment_factor: str = ""

    def table(self, study: Study) -> DesignTable:
        factors = self._factors(study)
        size = len(factors[0].levels)
        facts: dict[str, Any] = {
            option: factor.name for option, factor in zip(OPTIONS, factors, strict=True)
        }
        if not self.row_factor:
            facts["note"] = "row, column and treatment are the factors in the order listed"
        return DesignTable(size=size * size, rows=_cells(study, factors), facts=facts, settled=True)

    def _factors(self, study: Study) -> list[Factor]:
        """The row, the column and the treatment factor; raises all that is wrong with them."""
        free = free_factors(study)
        given = (self.row_factor, self.column_factor, self.treatment_factor)
        if not any(given) and len(free) == 3:
            given = (free[0].name, free[1].name, free[2].name)
        by_name = {factor.name: factor for factor in free}
        mistakes = list(_name_mistakes(given, by_name))
        chosen = [by_name[name] for name in dict.fromkeys(given) if name in by_name]
        mistakes += _level_mistakes(study, chosen)
        if all(name in by_name for name in given):
            mistakes += _left_over(study, given)
        if study.blocks:
            mistakes.append(
                Mistake(
                    ("blocks",),
                    "a Latin square has no blocks besides its rows and columns",
                    "make the block a factor and name it as row_factor or column_factor",
                )
            )
        if mistakes:
            raise StudyError(mistakes)
        return chosen


def _name_mistakes(given: Sequence[str], by_name: dict[str, Factor]) -> Iterator[Mistake]:
    for index, (option, name) in enumerate(zip(OPTIONS, given, strict=True)):
        path = ("design_spec", "options", option)
        if not name:
            yield Mistake(
                path,
                "is missing: a Latin square needs a row, a column and a treatment factor",
                did_you_mean("", [known for known in by_name if known not in given]),
            )
        elif name not in by_name:
            yield Mistake(path, f"'{name}' is not a free factor", did_you_mean(name, by_name))
        elif name in given[:index]:
            first = OPTIONS[given.index(name)]
            yield Mistake(path, f"'{name}' is the {first} already", "name three different factors")


def _level_mistakes(study: Study, chosen: Sequence[Factor]) -> Iterator[Mistake]:
    for factor in chosen:
        path = ("factors", study.factors.index(factor))
        if len(factor.levels) < 2:
            yield Mistake((*path, "levels"), f"'{factor.name}' needs two levels or more")
    if len({len(factor.levels) for factor in chosen}) > 1:
        counts = ", ".join(f"'{factor.name}' has {len(factor.levels)}" for factor in chosen)
        yield Mistake(
            ("factors",), f"a Latin square needs as many levels in each of its factors: {counts}"
        )


def _left_over(study: Study, given: Sequence[str]) -> Iterator[Mistake]:
    for index, factor in enumerate(study.factors):
        if factor.name not in given and factor.tied_to is None:
            yield Mistake(
                ("factors", index),
                f"'{factor.name}' is neither row, column nor treatment of the Latin square",
                "remove it, or tie it to one of the three (tied_to)",
            )


def _cells(study: Study, factors: Sequence[Factor]) -> Iterator[DesignRow]:
    row_factor, column_factor, treatment_factor = factors
    treatments = treatment_factor.levels
    for row, row_level in enumerate(row_factor.levels):
        for column, column_level in enumerate(column_factor.levels):
            values = {
                row_factor.name: row_level.value,
                column_factor.name: column_level.value,
                treatment_factor.name: treatments[(row + column) % len(treatments)].value,
            }
            keyed = {
                "design_kind": str(study.design_spec.kind),
                "latin_square_row": row,
                "latin_square_col": column,
            }
            yield DesignRow(follow_ties(study, values), keyed=keyed, metadata=keyed)
