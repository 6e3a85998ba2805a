"""The columns of a linear model for rows of factor values.

A numeric factor has one column, with its values scaled to -1 ... +1. Another factor of k levels has
k - 1 columns: orthogonal contrasts of the same length as a column of ±1, so that a design with
balanced and independent factors has X'X = n times the identity for any numbers of levels. They span
the same space as effect coding, so the same designs are optimal.
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
# Eigenvalues below this share of the largest one count as zero.
SINGULAR = 1e-10


@dataclass(frozen=True)
class Coding:
    """The columns of one factor in a model.

    name: the factor
    columns: the entries of its columns, by the key of the factor's value
    width: the number of its columns
    curved: whether a quadratic model has its square: a numeric factor of three values or more
    """

    name: str
    columns: Mapping[Any, tuple[float, ...]]
    width: int
    curved: bool

    @classmethod
    def from_factor(cls, factor: Factor) -> Coding:
        """Return the coding of a factor of two levels or more."""
        values = list(factor.iter_values())
        is_numeric = factor.dtype != "str" and all(map(is_number, values)) and len(set(values)) > 1
        contrasts = [] if is_numeric else _make_contrasts(len(values))
        if factor.when is not None and _make_key(factor.default) not in map(_make_key, values):
            values.append(factor.default)
        coded = _scale(values) if is_numeric else contrasts
        # A factor that doesn't apply, and has no level there, is coded as its average.
        width = len(coded[0])
        coded += [(0.0,) * width] * (len(values) - len(coded))
        columns = dict(zip(map(_make_key, values), coded, strict=True))
        return cls(factor.name, columns, width, curved=is_numeric and len(set(coded)) > 2)

    def has_value(self, value: Any) -> bool:
        """Return whether the factor can have a value."""
        return _make_key(value) in self.columns

    def encode(self, values: Sequence[Any]) -> Floats:
        """Return the factor's columns for these values."""
        import numpy as np

        coded = [self.columns[_make_key(value)] for value in values]
        return np.array(coded, dtype=float).reshape(len(coded), self.width)


def _make_key(value: Any) -> Any:
    """Return a hashable key that distinguishes 1, 1.0, True and "1"; a list has a key too."""
    return (type(value), value) if is_scalar(value) else canonical_json(value)


def _scale(values: Sequence[Any]) -> list[tuple[float, ...]]:
    numbers = [value for value in values if is_number(value)]
    low, high = min(numbers), max(numbers)
    return [
        (2 * (value - low) / (high - low) - 1 if is_number(value) else 0.0,) for value in values
    ]


def _make_contrasts(count: int) -> list[tuple[float, ...]]:
    """Return Helmert contrasts, each level against the mean of earlier ones, of mean square 1."""
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
    """A linear model of an outcome.

    codings: the factors of the model
    name: `main` effects only, with two-factor `interactions`, or also with squares (`quadratic`)
    """

    codings: tuple[Coding, ...]
    name: ModelName

    @property
    def parameters(self) -> int:
        """The number of the model's columns, the intercept included."""
        widths = [coding.width for coding in self.codings]
        count = 1 + sum(widths)
        if self.name != "main":
            count += sum(one * two for one, two in itertools.combinations(widths, 2))
        if self.name == "quadratic":
            count += sum(coding.curved for coding in self.codings)
        return count

    def make_matrix(self, rows: Sequence[Mapping[str, Any]]) -> tuple[Floats, list[str]]:
        """Return the model's matrix for these rows, and the name of each column's term."""
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


def find_confounded_terms(points: Floats, terms: Sequence[str]) -> list[str]:
    """Return the terms that no design of these points can estimate separately."""
    null = _null_space(points)
    confounded = [term for term, row in zip(terms, null, strict=True) if (abs(row) > 1e-6).any()]
    return [term for term in dict.fromkeys(confounded) if term != INTERCEPT]


def compute_rank(points: Floats) -> int:
    """Return the number of parameters that these rows can estimate."""
    return int(points.shape[1] - _null_space(points).shape[1])


def _null_space(points: Floats) -> Floats:
    """Return a basis of the column combinations that are zero in every row, as columns."""
    import numpy as np

    eigenvalues, vectors = np.linalg.eigh(points.T @ points)
    null: Floats = vectors[:, eigenvalues <= SINGULAR * eigenvalues[-1]]
    return null
