"""Rows of factor values as the columns of a linear model.

A numeric factor is one column, its values scaled to -1 ... +1. Another factor of k levels is k - 1
columns: contrasts that are orthogonal and as long as those of ±1, so that any design with balanced
and independent factors has X'X = n times the identity, whatever the numbers of levels. They span
what effect coding spans, so the same designs are optimal.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fairtrial.core import canonical_json, is_scalar
from fairtrial.study.design.rows import is_number
from fairtrial.study.model.factors import Factor

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

ModelName = Literal["main", "interactions", "quadratic"]
INTERCEPT = "(intercept)"
# Below this share of the largest eigenvalue another one is taken for zero.
SINGULAR = 1e-10


@dataclass(frozen=True)
class Coding:
    """How one factor's values become columns.

    name: the factor
    columns: what stands in its columns for each value, by the value's token
    width: how many columns it has
    curved: whether its square is a column of its own: a numeric factor of three values or more
    """

    name: str
    columns: Mapping[Any, tuple[float, ...]]
    width: int
    curved: bool

    @classmethod
    def of(cls, factor: Factor) -> Coding:
        """The coding of a factor of two levels or more."""
        values = list(factor.iter_values())
        is_numeric = factor.dtype != "str" and all(map(is_number, values)) and len(set(values)) > 1
        contrasts = [] if is_numeric else _contrasts(len(values))
        if factor.when is not None and _token(factor.default) not in map(_token, values):
            values.append(factor.default)
        coded = _scale(values) if is_numeric else contrasts
        # A factor that doesn't apply, and has no level there, counts as its average.
        width = len(coded[0])
        coded += [(0.0,) * width] * (len(values) - len(coded))
        columns = dict(zip(map(_token, values), coded, strict=True))
        return cls(factor.name, columns, width, curved=is_numeric and len(set(coded)) > 2)

    def knows(self, value: Any) -> bool:
        """Whether the factor can have this value."""
        return _token(value) in self.columns

    def encode(self, values: Sequence[Any]) -> Floats:
        """The factor's columns for these values."""
        import numpy as np

        coded = [self.columns[_token(value)] for value in values]
        return np.array(coded, dtype=float).reshape(len(coded), self.width)


def _token(value: Any) -> Any:
    """A value as a key: 1, 1.0, True and "1" are four values, and a list is one too."""
    return (type(value), value) if is_scalar(value) else canonical_json(value)


def _scale(values: Sequence[Any]) -> list[tuple[float, ...]]:
    numbers = [value for value in values if is_number(value)]
    low, high = min(numbers), max(numbers)
    return [
        (2 * (value - low) / (high - low) - 1 if is_number(value) else 0.0,) for value in values
    ]


def _contrasts(count: int) -> list[tuple[float, ...]]:
    """Each level against the mean of those before it (Helmert), to a mean square of 1."""
    rows = [[0.0] * (count - 1) for _ in range(count)]
    for column in range(count - 1):
        before = column + 1
        length = math.sqrt(count / (before * (before + 1)))
        for level in range(before):
            rows[level][column] = length
        rows[before][column] = -before * length
    return [tuple(row) for row in rows]


@dataclass(frozen=True)
class Model:
    """A linear model: what an outcome is thought to be a sum of.

    codings: the factors that vary
    name: main effects only; with interactions of two factors; or with squares too (quadratic)
    """

    codings: tuple[Coding, ...]
    name: ModelName

    @property
    def parameters(self) -> int:
        """How many columns the model has, the intercept among them."""
        widths = [coding.width for coding in self.codings]
        count = 1 + sum(widths)
        if self.name != "main":
            count += sum(one * two for one, two in itertools.combinations(widths, 2))
        if self.name == "quadratic":
            count += sum(coding.curved for coding in self.codings)
        return count

    def matrix(self, rows: Sequence[Mapping[str, Any]]) -> tuple[Floats, list[str]]:
        """The model's columns for these rows, and the term that each column belongs to."""
        import numpy as np

        coded = [coding.encode([row[coding.name] for row in rows]) for coding in self.codings]
        named = list(zip([coding.name for coding in self.codings], coded, strict=True))
        parts = [(INTERCEPT, np.ones((len(rows), 1))), *named]
        if self.name != "main":
            parts += [
                (f"{a}:{b}", np.hstack([column[:, None] * two for column in one.T]))
                for (a, one), (b, two) in itertools.combinations(named, 2)
            ]
        if self.name == "quadratic":
            parts += [
                (f"{coding.name}^2", columns**2)
                for coding, columns in zip(self.codings, coded, strict=True)
                if coding.curved
            ]
        terms = [term for term, columns in parts for _ in range(columns.shape[1])]
        return np.hstack([columns for _, columns in parts]), terms


def confounded(points: Floats, terms: Sequence[str]) -> list[str]:
    """The terms that can't be told apart by any design made of these points."""
    null = _null_space(points)
    named = [term for term, row in zip(terms, null, strict=True) if (abs(row) > 1e-6).any()]
    return [term for term in dict.fromkeys(named) if term != INTERCEPT]


def rank(points: Floats) -> int:
    """How many parameters these rows can estimate."""
    return int(points.shape[1] - _null_space(points).shape[1])


def _null_space(points: Floats) -> Floats:
    """The combinations of columns that are zero in every row, one to a column."""
    import numpy as np

    eigenvalues, vectors = np.linalg.eigh(points.T @ points)
    null: Floats = vectors[:, eigenvalues <= SINGULAR * eigenvalues[-1]]
    return null
