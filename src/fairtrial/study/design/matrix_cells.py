"""Convert the cells of a matrix file to levels or values."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from fairtrial.core import StudyError, canonical_json, describe_value, scalar_text
from fairtrial.study.design.rows import is_number
from fairtrial.study.model.factors import Block, Factor

SHOWN_LEVELS = 12
EXPECTED = {"str": "text", "int": "a whole number", "float": "a number", "bool": "true or false"}
K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True)
class MatrixColumn:
    """The values that the cells of a column may have.

    role: factor or block
    name: the name of the factor or block
    levels: (name, value) of each level; without levels any value of the dtype is accepted
    dtype: the type of the values, if there are no levels
    default: the value of an empty cell of a factor; the cells of a block are never empty
    """

    role: str
    name: str
    levels: tuple[tuple[str, Any], ...]
    dtype: str | None = None
    default: Any = None

    @classmethod
    def from_factor(cls, factor: Factor) -> MatrixColumn:
        """Return the column of a factor."""
        levels = tuple((level.name, level.value) for level in factor.levels)
        return cls("factor", factor.name, levels, factor.dtype, factor.default)

    @classmethod
    def from_block(cls, block: Block) -> MatrixColumn:
        """Return the column of a block."""
        return cls(
            "block", block.name, tuple((scalar_text(level), level) for level in block.levels)
        )

    def read_text(self, cell: str) -> Any:
        """Return the value of a cell of text; raises `ValueError` if it has none."""
        text = cell.strip()
        number = _parse_number(text)
        levels = self._by_value.get(cell) or self._by_value.get(text) or self._by_name.get(text)
        if not levels and number is not None:
            levels = self._by_number.get(number)
        if levels:
            if len(levels) > 1:
                raise ValueError(f"{describe_value(cell)} fits two levels; write the name of one")
            return levels[0]
        if self.role == "factor" and (not text or text in _spellings(self.default)):
            return self.default
        if self.levels:
            raise self._unknown_level(cell)
        if self.dtype is None or self.dtype == "str":
            return cell
        value = _parse_bool(text) if self.dtype == "bool" else number
        if self.dtype == "float" and number is not None:
            value = float(number)
        return self._check_type(cell, value)

    def check_value(self, value: Any) -> Any:
        """Return a value unchanged; raises `ValueError` if the column can't have it."""
        try:
            text = canonical_json(value)
        except StudyError as error:
            raise ValueError(str(error)) from None
        if self.role == "factor" and text == canonical_json(self.default):
            return value
        if not self.levels:
            return self._check_type(value, value)
        if text in self._by_json or (is_number(value) and value in self._by_number):
            return value
        raise self._unknown_level(value)

    @cached_property
    def _by_value(self) -> dict[str, list[Any]]:
        return _group((text, value) for _, value in self.levels for text in _spellings(value))

    @cached_property
    def _by_name(self) -> dict[str, list[Any]]:
        return _group(self.levels)

    @cached_property
    def _by_number(self) -> dict[int | float, list[Any]]:
        return _group((value, value) for _, value in self.levels if is_number(value))

    @cached_property
    def _by_json(self) -> frozenset[str]:
        return frozenset(canonical_json(value) for _, value in self.levels)

    def _check_type(self, cell: Any, value: Any) -> Any:
        """Return a value of the column's dtype; raises `ValueError` with the cell for another."""
        fits = {
            None: True,
            "str": isinstance(value, str),
            "int": is_number(value) and isinstance(value, int),
            "float": is_number(value),
            "bool": isinstance(value, bool),
        }
        if not fits[self.dtype]:
            assert self.dtype is not None
            raise ValueError(f"expected {EXPECTED[self.dtype]}, got {describe_value(cell)}")
        return value

    def _unknown_level(self, cell: Any) -> ValueError:
        names = [name for name, _ in self.levels[:SHOWN_LEVELS]]
        if len(self.levels) > SHOWN_LEVELS:
            names.append("...")
        return ValueError(f"{describe_value(cell)} is not a level; there are {', '.join(names)}")


def _group(pairs: Iterable[tuple[K, Any]]) -> dict[K, list[Any]]:
    groups: dict[K, list[Any]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


def _spellings(value: Any) -> set[str]:
    """Return the texts that a value may be written as; spreadsheets write TRUE, Python True."""
    if isinstance(value, bool):
        return {"true", "True", "TRUE"} if value else {"false", "False", "FALSE"}
    return {str(value), scalar_text(value)}


def _parse_number(text: str) -> int | float | None:
    if "_" in text:  # 1_000 is a number only in Python
        return None
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if math.isfinite(number) else None
    return None


def _parse_bool(text: str) -> bool | None:
    return {"true": True, "1": True, "false": False, "0": False}.get(text.lower())
