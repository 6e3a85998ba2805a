"""Cells of a matrix file: which level, or which value, a cell stands for."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from fairtrial.core import StudyError, canonical_json, describe, scalar_text
from fairtrial.study.design.rows import is_number
from fairtrial.study.model.factors import Block, Factor

SHOWN_LEVELS = 12
EXPECTED = {"str": "text", "int": "a whole number", "float": "a number", "bool": "true or false"}
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class Column:
    """What the cells of a column may be; what doesn't fit raises `ValueError` with the reason.

    role: factor or block
    name: the factor's or the block's name
    levels: (name, value) of each level; where there are none any value of the dtype will do
    dtype: the type of its values, where there are no levels
    default: what an empty cell of a factor stands for; a block's cells are never empty
    """

    role: str
    name: str
    levels: tuple[tuple[str, Any], ...]
    dtype: str | None = None
    default: Any = None

    @classmethod
    def of_factor(cls, factor: Factor) -> Column:
        """The column of a factor."""
        levels = tuple((level.name, level.value) for level in factor.levels)
        return cls("factor", factor.name, levels, factor.dtype, factor.default)

    @classmethod
    def of_block(cls, block: Block) -> Column:
        """The column of a block."""
        return cls(
            "block", block.name, tuple((scalar_text(level), level) for level in block.levels)
        )

    def read_text(self, cell: str) -> Any:
        """The value that a cell of text stands for."""
        text = cell.strip()
        number = _number(text)
        found = self._by_value.get(cell) or self._by_value.get(text) or self._by_name.get(text)
        if not found and number is not None:
            found = self._by_number.get(number)
        if found:
            if len(found) > 1:
                raise ValueError(f"{describe(cell)} fits two levels; write the name of one")
            return found[0]
        if self.role == "factor" and (not text or text in _spellings(self.default)):
            return self.default
        if self.levels:
            raise self._no_level(cell)
        if self.dtype is None or self.dtype == "str":
            return cell
        read = _truth(text) if self.dtype == "bool" else number
        if self.dtype == "float" and number is not None:
            read = float(number)
        return self._typed(cell, read)

    def check_value(self, value: Any) -> Any:
        """A value that needs no reading, as it is, if it may stand in this column."""
        try:
            text = canonical_json(value)
        except StudyError as error:
            raise ValueError(str(error)) from None
        if self.role == "factor" and text == canonical_json(self.default):
            return value
        if not self.levels:
            return self._typed(value, value)
        if text in self._by_json or (is_number(value) and value in self._by_number):
            return value
        raise self._no_level(value)

    @cached_property
    def _by_value(self) -> dict[str, list[Any]]:
        return _gather((text, value) for _, value in self.levels for text in _spellings(value))

    @cached_property
    def _by_name(self) -> dict[str, list[Any]]:
        return _gather(self.levels)

    @cached_property
    def _by_number(self) -> dict[int | float, list[Any]]:
        return _gather((value, value) for _, value in self.levels if is_number(value))

    @cached_property
    def _by_json(self) -> frozenset[str]:
        return frozenset(canonical_json(value) for _, value in self.levels)

    def _typed(self, given: Any, read: Any) -> Any:
        """`read`, if it is of the column's dtype; else an error that shows what was given."""
        fits = {
            None: True,
            "str": isinstance(read, str),
            "int": is_number(read) and isinstance(read, int),
            "float": is_number(read),
            "bool": isinstance(read, bool),
        }
        if not fits[self.dtype]:
            assert self.dtype is not None
            raise ValueError(f"expected {EXPECTED[self.dtype]}, got {describe(given)}")
        return read

    def _no_level(self, given: Any) -> ValueError:
        names = [name for name, _ in self.levels[:SHOWN_LEVELS]]
        if len(self.levels) > SHOWN_LEVELS:
            names.append("...")
        return ValueError(f"{describe(given)} is not a level; there are {', '.join(names)}")


def _gather(pairs: Iterable[tuple[K, Any]]) -> dict[K, list[Any]]:
    found: dict[K, list[Any]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def _spellings(value: Any) -> set[str]:
    """The ways in which a value may be written; spreadsheets write TRUE, Python True."""
    if isinstance(value, bool):
        return {"true", "True", "TRUE"} if value else {"false", "False", "FALSE"}
    return {str(value), scalar_text(value)}


def _number(text: str) -> int | float | None:
    if "_" in text:  # 1_000 is a number in Python, and only there
        return None
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if math.isfinite(number) else None
    return None


def _truth(text: str) -> bool | None:
    return {"true": True, "1": True, "false": False, "0": False}.get(text.lower())
