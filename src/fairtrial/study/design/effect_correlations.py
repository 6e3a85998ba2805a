"""Correlations between effects in a set of runs: which effects can't be told apart.

Unlike the alias structure of a regular fraction (`aliases.py`) they are computed from the runs or
conditions that there are, so that constraints and missing cells count.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairtrial.core import dump_record
from fairtrial.study.design.association import CONFOUNDED
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.factors import DesignKind
from fairtrial.study.model.study import Study

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

TWO_LEVEL_DESIGNS = (DesignKind.FRACTIONAL_FACTORIAL_2LEVEL, DesignKind.PLACKETT_BURMAN)
WEAK = 0.1
"""Correlations below this are not worth a line."""
MAX_LISTED = 8
MAX_TWO_FACTOR = 500
"""The most two-factor interactions that are compared with each other."""


def indicator_columns(codes: NDArray[np.intp]) -> Matrix:
    """Return a column of 0 and 1 for each level that occurs."""
    import numpy as np

    columns: Matrix = (codes[:, None] == np.unique(codes)[None, :]).astype(float)
    return columns


def interaction_columns(first: Matrix, second: Matrix, weights: Matrix) -> Matrix:
    """Return the columns of an interaction without the parts that the two main effects explain.

    weights: the number of runs in each row
    """
    import numpy as np

    product = (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)
    root = np.sqrt(weights)[:, None]
    mains = np.hstack([np.ones((len(first), 1)), first, second]) * root
    fitted, *_ = np.linalg.lstsq(mains, product * root, rcond=None)
    rest: Matrix = product - (mains / root) @ fitted
    return rest


def orthonormal_basis(columns: Matrix, weights: Matrix) -> Matrix:
    """Return a basis of centered columns, in rows times the root of their weights.

    weights: the number of runs in each row
    """
    import numpy as np

    root = np.sqrt(weights)[:, None]
    centered = (columns - np.average(columns, axis=0, weights=weights)) * root
    left, sizes, _ = np.linalg.svd(centered, full_matrices=False)
    scale = float(np.sqrt(weights.sum()) * np.abs(columns).max(initial=0.0))
    basis: Matrix = left[:, sizes > 1e-9 * max(scale, 1e-300)]
    return basis


def correlate_numbers(basis: Matrix, numbers: Matrix, weights: Matrix) -> float:
    """Return the largest correlation of an effect with a numeric variable.

    basis: the effect, from `orthonormal_basis`
    numbers, weights: the variable's value in each row, and the number of runs
    """
    import numpy as np

    other = orthonormal_basis(numbers[:, None], weights)
    if not (basis.shape[1] and other.shape[1]):
        return 0.0
    return float(min(1.0, np.linalg.svd(basis.T @ other, compute_uv=False)[0]))


def correlate_levels(basis: Matrix, codes: NDArray[np.intp], weights: Matrix) -> float:
    """Return the largest canonical correlation of an effect with the levels of a variable.

    It is 1 if the variable determines (a part of) the effect.

    basis: the effect, from `orthonormal_basis`
    codes, weights: the variable's level in each row, and the number of runs
    """
    return _largest_root(_explain_by_levels(basis, codes, weights))


def correlate_interaction(
    basis: Matrix, first: NDArray[np.intp], second: NDArray[np.intp], weights: Matrix
) -> float:
    """Return the largest canonical correlation of an effect with an interaction of two variables.

    Only the part of the interaction counts that the two main effects don't explain.

    basis: the effect, from `orthonormal_basis`
    first, second, weights: the levels of both variables in each row, and the number of runs
    """
    import numpy as np

    joint = first * (int(second.max()) + 1) + second
    root = np.sqrt(weights)[:, None]
    mains = np.hstack([indicator_columns(first), indicator_columns(second)]) * root
    fitted, *_ = np.linalg.lstsq(mains, basis, rcond=None)
    additive = basis.T @ (mains @ fitted)
    return _largest_root(_explain_by_levels(basis, joint, weights) - additive)


def _explain_by_levels(basis: Matrix, codes: NDArray[np.intp], weights: Matrix) -> Matrix:
    """Return the sums of squares and products of a basis that lie between levels."""
    import numpy as np

    _, compact = np.unique(codes, return_inverse=True)
    sizes = np.bincount(compact, weights)
    root = np.sqrt(weights)
    sums = np.stack([np.bincount(compact, column * root) for column in basis.T], axis=1)
    between: Matrix = sums.T @ (sums / sizes[:, None])
    return between


def _largest_root(squares: Matrix) -> float:
    import numpy as np

    if not squares.size:
        return 0.0
    largest = float(np.linalg.eigvalsh((squares + squares.T) / 2)[-1])
    return math.sqrt(min(1.0, max(0.0, largest)))


@dataclass(frozen=True, slots=True)
class ConditionAliasing:
    """How effects are correlated in the conditions of a two-level design that can run.

    rows: number of conditions that can run
    excluded: number of conditions that constraints exclude
    resolution: by effects that are aliased completely: II if two main effects are, III if a main
        effect and a two-factor interaction are, IV if two such interactions are, V if none are
    among_mains, with_interactions, among_interactions: the largest correlations of these kinds
    aliases: pairs of effects with their correlation, the strongest of the lowest kind first
    can_estimate_mains: whether all main effects can be estimated together
    """

    rows: int
    excluded: int
    resolution: str
    among_mains: float
    with_interactions: float
    among_interactions: float
    aliases: tuple[str, ...]
    can_estimate_mains: bool

    @property
    def text(self) -> str:
        """The real resolution and the strongest aliases, in one line."""
        sizes = {
            "II": self.among_mains,
            "III": self.with_interactions,
            "IV": self.among_interactions,
        }
        # Effects of the kinds below the resolution are aliased in part, if at all.
        lower = itertools.takewhile(lambda name: name != self.resolution, sizes)
        partly = [f"partly {name}" for name in lower if sizes[name] >= WEAK]
        after = f" in the {self.rows:,} conditions that constraints leave" if self.excluded else ""
        text = f"resolution {', '.join([self.resolution, *partly])}{after}"
        if not self.can_estimate_mains:
            text += "; the main effects can't all be estimated"
        if self.aliases:
            text += f"; can't be told apart (1) or only in part: {'; '.join(self.aliases)}"
        return text

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data."""
        data: dict[str, Any] = dump_record(self)
        return data


def condition_aliasing(study: Study, conditions: Sequence[Condition]) -> ConditionAliasing | None:
    """Return how effects are correlated in the conditions that can run.

    None for designs that are no two-level fraction or screening design, and without conditions.
    """
    import numpy as np

    admissible = [condition for condition in conditions if condition.admissible]
    if study.design_spec.kind not in TWO_LEVEL_DESIGNS or len(admissible) < 2:
        return None
    columns = {}
    for factor in study.factors:
        if factor.tied_to is None and len(factor.levels) == 2:
            low, high = (level.value for level in factor.levels)
            values = [c.factor_assignments.get(factor.name) for c in admissible]
            columns[factor.name] = np.asarray(
                [-1.0 if value == low else 1.0 if value == high else 0.0 for value in values]
            )
    return _measure_aliasing(columns, len(conditions) - len(admissible))


def _measure_aliasing(columns: dict[str, Matrix], excluded: int) -> ConditionAliasing:
    import numpy as np

    mains = list(columns)
    matrix = np.column_stack(list(columns.values()))
    pairs = list(itertools.combinations(range(len(mains)), 2))[:MAX_TWO_FACTOR]
    products = np.column_stack([matrix[:, a] * matrix[:, b] for a, b in pairs])
    correlations = _correlation_matrix(np.hstack([matrix, products]))
    count = len(mains)
    effects: list[tuple[int, ...]] = [*((i,) for i in range(count)), *pairs]
    kinds: list[list[tuple[float, str]]] = [[], [], []]
    rows, others = np.nonzero(np.triu(correlations, 1) >= WEAK)
    for first, second in zip(rows.tolist(), others.tolist(), strict=True):
        if set(effects[first]) & set(effects[second]):
            continue
        names = [" × ".join(mains[i] for i in effects[index]) for index in (first, second)]
        size = float(correlations[first, second])
        kind = (first >= count) + (second >= count)
        kinds[kind].append((size, f"{names[0]} = {names[1]} ({size:.2g})"))
    largest = [max((size for size, _ in kind), default=0.0) for kind in kinds]
    numerals = zip(("II", "III", "IV"), largest, strict=True)
    full = (name for name, size in numerals if size >= CONFOUNDED)
    listed = [text for kind in kinds for _, text in sorted(kind, key=lambda item: -item[0])]
    rank = int(np.linalg.matrix_rank(np.hstack([np.ones((len(matrix), 1)), matrix])))
    return ConditionAliasing(
        rows=len(matrix),
        excluded=excluded,
        resolution=next(full, "V or more"),
        among_mains=largest[0],
        with_interactions=largest[1],
        among_interactions=largest[2],
        aliases=tuple(listed[:MAX_LISTED]),
        can_estimate_mains=rank == count + 1,
    )


def _correlation_matrix(matrix: Matrix) -> Matrix:
    """Return absolute correlations of columns; 0 for columns that don't vary."""
    import numpy as np

    centered = matrix - matrix.mean(axis=0)
    sizes = np.sqrt((centered**2).sum(axis=0))
    varies = sizes > 1e-9
    scaled = np.where(varies, centered / np.where(varies, sizes, 1.0), 0.0)
    correlations: Matrix = np.abs(scaled.T @ scaled)
    return correlations
