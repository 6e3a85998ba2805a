"""Linear mixed models: what is tried is fixed, what it is tried on is a sample from many.

The model has a random intercept for each level of the random effects and, where runs repeat under
one level, a random effect of what is tested within each of them: an effect that differs from
problem to problem is then not mistaken for one that holds for problems at large. Tests are by t
and F with as many degrees of freedom as the levels of the smallest random effect leave, which are
exact in balanced designs; statsmodels' own z is too sure of itself with few levels. Where a level
meets only one of what is tested, the comparison is between levels, and has fewer.

References::

    Laird and Ware (1982), Biometrics 38, 963-974
    Barr, Levy, Scheepers and Tily (2013), J. Mem. Lang. 68, 255-278: why effects must vary too
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairtrial.study.stats.finding import (
    Alternative,
    Finding,
    UntestableError,
    need_statsmodels,
    quiet,
    spread,
)
from fairtrial.study.stats.linear import design_matrix, judge_estimate

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Codes, Values

METHOD = "linear mixed model (REML)"
LEAST_LEVELS = 3
FEW_LEVELS = 6
OPTIMISERS = ["powell", "lbfgs"]
"""Powell's method finds variances of zero, on which those that need a slope go astray."""
HARDLY = 1e-3
"""Runs that differ by less than this share of all runs' spread are as good as the same."""
MOST_CROSSED = 1_500
"""With several random effects the cost grows with the cube of the runs."""


def mixed_model(
    y: Values,
    terms: Sequence[Values],
    cells: Codes | None,
    random: Sequence[Codes],
    alternative: Alternative = "two-sided",
    margin: float = 0.0,
) -> Finding:
    """The test of the first term, given the other terms and the random effects.

    cells: for each run the level (or combination of levels) that is tested, numbered from 0; None
        for a number, whose slope is taken as the same everywhere
    random: for each random effect the level that each run has, numbered from 0
    """
    import numpy as np

    need_statsmodels()
    fewest = min(int(codes.max()) + 1 for codes in random)
    _check_random(fewest, len(random), len(y))
    # In units of their own spread: the search for variances doesn't know whether 1 is much.
    scale = spread(y)
    if scale == 0:
        raise UntestableError(f"every value is {y[0]:g}")
    notes = []
    means, once = _one_of_each(y, terms, random)
    if cells is not None and len(once) < len(y):
        # Zero is a variance that statsmodels can't have, not even for the residual.
        notes.append("runs that repeat give about the same value each time: they count once")
        y, cells = means, cells[once]
        terms, random = [term[once] for term in terms], [codes[once] for codes in random]
    parts, remarks = _random_parts(cells, random)
    notes += remarks
    # Several random effects cross each other: to statsmodels all runs are then one group.
    groups = random[0] if len(random) == 1 else np.zeros(len(y), dtype=np.intp)
    exog = design_matrix(terms)
    if _leaves_nothing((y - y.mean()) / scale, exog, random):
        raise UntestableError("the values don't vary around the model")
    df, is_between = _freedom(exog, terms[0].shape[1], random)
    fixed = _fit((y - y.mean()) / scale, exog, groups, parts)
    if fixed.parts < len(parts):
        notes.append("a variance that can't be told from zero was left out of the model")
    if fewest < FEW_LEVELS:
        notes.append(f"the random effect has only {fewest} levels: its spread is hardly known")
    width = terms[0].shape[1]
    if width == 1:
        error = scale * math.sqrt(fixed.covariance[1, 1])
        estimate = scale * float(fixed.estimates[1])
        found = judge_estimate(estimate, error, df, METHOD, alternative, margin)
    else:
        found = _joint(fixed, width, df if is_between else width * df)
    return found.noting(*notes)


def _check_random(fewest: int, effects: int, runs: int) -> None:
    if fewest < LEAST_LEVELS:
        raise UntestableError(
            f"a random effect of {fewest} levels is no sample; it needs {LEAST_LEVELS} or more"
        )
    if effects > 1 and runs > MOST_CROSSED:
        raise UntestableError(
            f"several random effects over more than {MOST_CROSSED:,} runs are not fitted here"
        )


def _one_of_each(
    y: Values, terms: Sequence[Values], random: Sequence[Codes]
) -> tuple[Values, Codes]:
    """The mean of each kind of run and the first such run, where runs of a kind hardly vary.

    A kind is what the model can't tell apart. Agents without chance repeat themselves, which says
    nothing of how much an effect varies.
    """
    import numpy as np

    table = np.column_stack([*terms, *random])
    _, first, kind = np.unique(table, axis=0, return_index=True, return_inverse=True)
    kind = kind.ravel()
    means = np.bincount(kind, weights=y) / np.bincount(kind)
    if np.max(np.abs(y - means[kind])) > HARDLY * spread(y):
        return y, np.arange(len(y))
    order = np.argsort(first)
    return means[order], first[order]


def _leaves_nothing(y: Values, exog: Values, random: Sequence[Codes]) -> bool:
    """Whether fixed effects and one constant for each random level give all values exactly."""
    import numpy as np

    table = np.column_stack([y, exog])
    for codes in random if len(random) == 1 else ():
        sums = np.zeros((int(codes.max()) + 1, table.shape[1]))
        np.add.at(sums, codes, table)
        table = table - (sums / np.bincount(codes)[:, None])[codes]
    dummies = [np.eye(int(codes.max()) + 1)[codes] for codes in random if len(random) > 1]
    known = np.column_stack([table[:, 1:], *dummies])
    rest = table[:, 0] - known @ np.linalg.lstsq(known, table[:, 0])[0]
    return float(np.max(np.abs(rest))) <= 1e-9


def _freedom(exog: Values, width: int, random: Sequence[Codes]) -> tuple[int, bool]:
    """The degrees of freedom of a column of the first term, and whether it compares levels.

    Within the levels of a random effect they are one fewer than the levels. A term that is the same
    for all runs of a level leaves as many as there are levels beyond all such columns.
    """
    import numpy as np

    found = []
    for codes in random:
        first = np.unique(codes, return_index=True)[1]
        is_same = np.all(exog == exog[first][codes], axis=0)
        is_between = bool(is_same[1 : 1 + width].all())
        taken = int(np.linalg.matrix_rank(exog[first][:, is_same])) if is_between else 1
        found.append((len(first) - taken, is_between))
    df, is_between = min(found)
    if df < 1:
        raise UntestableError("the random effect has too few levels for what is compared")
    return df, is_between


def _random_parts(cells: Codes | None, random: Sequence[Codes]) -> tuple[list[Codes], list[str]]:
    """The random effects, and how what is tested varies with each, where that can be told."""
    if cells is None:
        return list(random), ["the slope is taken as the same for all: if it isn't, p is too small"]
    repeats = [codes for codes in random if _repeats(codes, cells)]
    if not repeats:
        note = "each cell has one run: how the effect varies is part of the residual"
        return list(random), [note]
    return [*random, *(codes * (int(cells.max()) + 1) + cells for codes in repeats)], []


@dataclass(frozen=True, slots=True)
class _Fixed:
    """The fixed effects of a fitted model.

    likelihood: how well the model fits
    parts: how many variances it has besides the residual's
    """

    estimates: Values
    covariance: Values
    likelihood: float
    parts: int


def _fit(y: Values, exog: Values, groups: Codes, parts: Sequence[Codes]) -> _Fixed:
    """The model; without the variances that are zero, since statsmodels can't invert those."""
    import numpy as np

    for size in range(len(parts), 0, -1):
        chosen = itertools.combinations(parts, size)
        fits = [fit for each in chosen if (fit := _try(y, exog, groups, each)) is not None]
        if fits:
            return max(fits, key=lambda fit: fit.likelihood)
    from statsmodels.regression.linear_model import OLS

    plain = OLS(y, exog).fit()
    return _Fixed(np.asarray(plain.params), np.asarray(plain.cov_params()), 0.0, 0)


def _try(y: Values, exog: Values, groups: Codes, parts: Sequence[Codes]) -> _Fixed | None:
    import numpy as np
    from statsmodels.regression.mixed_linear_model import MixedLM, MixedLMParams

    count = exog.shape[1]
    try:
        with quiet():
            model = MixedLM(y, exog, groups, exog_vc=_components(groups, parts))
            begin = MixedLMParams.from_components(
                fe_params=np.zeros(count), cov_re=np.zeros((0, 0)), vcomp=_guess(y, exog, parts)
            )
            result = model.fit(start_params=begin, reml=True, method=OPTIMISERS)
            covariance = np.asarray(result.cov_params())[:count, :count]
    except (np.linalg.LinAlgError, ValueError):
        return None
    is_sound = np.all(np.isfinite(covariance)) and np.all(np.diag(covariance) > 0)
    if not result.converged or not is_sound:
        return None
    return _Fixed(np.asarray(result.fe_params), covariance, float(result.llf), len(parts))


def _guess(y: Values, exog: Values, parts: Sequence[Codes]) -> Values:
    """Rough variances, in units of the residual's, to search from.

    From 1, where statsmodels would begin, the search doesn't reach a variance that is thousands of
    times the residual's, as where runs of one problem hardly differ.
    """
    import numpy as np

    rest = y - exog @ np.linalg.lstsq(exog, y)[0]
    counts = [np.bincount(codes) for codes in parts]
    means = [
        np.bincount(codes, weights=rest) / np.maximum(1, count)
        for codes, count in zip(parts, counts, strict=True)
    ]
    spreads = [np.var(mean[count > 0]) for mean, count in zip(means, counts, strict=True)]
    freedom = len(y) - int((counts[-1] > 0).sum())
    inner = float(np.sum((rest - means[-1][parts[-1]]) ** 2)) / max(1, freedom)
    residual = inner if freedom > 0 and inner > 0 else float(np.var(rest)) / 100
    return np.maximum(1e-3, np.asarray(spreads) / (residual or 1.0))


def _repeats(codes: Codes, cells: Codes) -> bool:
    """Whether any level has more than one run in one cell."""
    import numpy as np

    pairs = codes * (int(cells.max()) + 1) + cells
    return bool(np.bincount(pairs).max() > 1)


def _components(groups: Codes, parts: Sequence[Codes]) -> Any:
    """Variance components as statsmodels takes them: for each, indicator columns in each group."""
    import numpy as np
    from statsmodels.regression.mixed_linear_model import VCSpec

    mats, names = [], []
    for codes in parts:
        columns = [np.unique(codes[groups == group]) for group in np.unique(groups)]
        mats.append(
            [
                (codes[groups == group][:, None] == kinds).astype(float)
                for group, kinds in zip(np.unique(groups), columns, strict=True)
            ]
        )
        names.append([[str(kind) for kind in kinds] for kinds in columns])
    return VCSpec([f"part {number}" for number in range(len(parts))], names, mats)


def _joint(fixed: _Fixed, width: int, df: float) -> Finding:
    """Wald's test that all coefficients of the first term are zero, by F with `df` below."""
    import numpy as np
    from scipy import stats

    estimates = fixed.estimates[1 : 1 + width]
    covariance = fixed.covariance[1 : 1 + width, 1 : 1 + width]
    with quiet():
        f = float(estimates @ np.linalg.solve(covariance, estimates)) / width
        return Finding(
            method=METHOD,
            p=stats.f.sf(f, width, df),
            statistic_name="F",
            statistic=f,
            df=(width, df),
        )
