"""Outcomes by condition, by condition and problem, and by two factors: numbers for charts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from fairtrial.study.page.plain_data import clean_text, round_number
from fairtrial.study.report.run_table import RunTable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_GROUPS = 40
"""Conditions in a chart; the table of runs has all."""
MOST_PROBLEMS = 80
MOST_PAIRS = 3
MOST_LEVELS = 12
QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


def chart_outcomes(data: RunTable, outcomes: Sequence[str]) -> list[dict[str, Any]]:
    """Return for each outcome its distributions, its heat map and its interactions."""
    return [
        {
            "name": clean_text(name),
            "description": clean_text(data.readers[name].spec.description, 400),
            "is_yes_no": _is_yes_no(data, name),
            "groups": list(_describe_groups(data, name)),
            "cells": list(_describe_cells(data, name)),
            "interactions": list(_describe_interactions(data, name)),
        }
        for name in outcomes
    ]


def _is_yes_no(data: RunTable, name: str) -> bool:
    """Return whether all values of an outcome are 0 or 1: both, unless it is stated to be so."""
    import numpy as np

    values = data.values(name)
    known = set(np.unique(values[~np.isnan(values)])[:3].tolist())
    is_stated = data.readers[name].spec.expected_type == "bool"
    return known == {0.0, 1.0} or (is_stated and known < {0.0, 1.0})


def _describe_groups(data: RunTable, name: str) -> Iterator[dict[str, Any]]:
    """Yield the distribution of an outcome under each condition, by agent."""
    import numpy as np

    values, failed = data.values(name), data.failed
    keys = np.stack([data.column("condition"), data.column("agent")])
    groups, inverse = np.unique(keys, axis=1, return_inverse=True)
    for index, (condition, agent) in enumerate(groups.T.tolist()[:MOST_GROUPS]):
        inside = inverse.ravel() == index
        numbers = values[inside & ~np.isnan(values)]
        yield {
            "condition": condition,
            "agent": agent,
            "n": len(numbers),
            "runs": int(inside.sum()),
            "failed": int((inside & failed).sum()),
            **_describe_numbers(numbers),
        }


def _describe_numbers(numbers: NDArray[np.float64]) -> dict[str, Any]:
    import numpy as np

    if not len(numbers):
        return {"mean": None, "sd": None, "quantiles": None}
    sd = float(numbers.std(ddof=1)) if len(numbers) > 1 else None
    return {
        "mean": round_number(float(numbers.mean())),
        "sd": round_number(sd),
        "quantiles": [round_number(float(q)) for q in np.quantile(numbers, QUANTILES)],
    }


def _describe_cells(data: RunTable, name: str) -> Iterator[dict[str, Any]]:
    """Yield the mean of an outcome for each condition and problem."""
    import numpy as np

    values, failed = data.values(name), data.failed
    keys = np.stack([data.column("condition"), data.column("problem")])
    cells, inverse = np.unique(keys, axis=1, return_inverse=True)
    inverse = inverse.ravel()
    has_value = ~np.isnan(values)
    counts = np.bincount(inverse, weights=has_value, minlength=cells.shape[1])
    sums = np.bincount(inverse, weights=np.nan_to_num(values), minlength=cells.shape[1])
    failures = np.bincount(inverse, weights=failed, minlength=cells.shape[1])
    shown = set(np.unique(cells[0])[:MOST_GROUPS].tolist())
    for (condition, problem), n, total, lost in zip(
        cells.T.tolist(), counts.tolist(), sums.tolist(), failures.tolist(), strict=True
    ):
        if condition in shown and problem < MOST_PROBLEMS:
            mean = round_number(total / n) if n else None
            yield {"c": condition, "p": problem, "n": int(n), "failed": int(lost), "mean": mean}


def _describe_interactions(data: RunTable, name: str) -> Iterator[dict[str, Any]]:
    """Yield the means of an outcome at all combinations of levels of two factors."""
    import numpy as np

    values = data.values(name)
    for first, second in itertools.islice(
        itertools.combinations(varied_names(data), 2), MOST_PAIRS
    ):
        (x, x_codes), (line, line_codes) = data.variable(first), data.variable(second)
        x_levels, line_levels = list(x.values), list(line.values)
        if max(len(x_levels), len(line_levels)) > MOST_LEVELS:
            continue
        points = []
        for i, j in itertools.product(range(len(x_levels)), range(len(line_levels))):
            inside = (x_codes == i) & (line_codes == j) & ~np.isnan(values)
            if inside.any():
                points.append(
                    {
                        "x": clean_text(x_levels[i], 80),
                        "line": clean_text(line_levels[j], 80),
                        "n": int(inside.sum()),
                        "mean": round_number(float(values[inside].mean())),
                    }
                )
        yield {"x": clean_text(first), "line": clean_text(second), "points": points}


def varied_names(data: RunTable) -> list[str]:
    """Return the factors that have more than one level in the runs."""
    names = []
    for factor in data.study.factors:
        _, codes = data.variable(factor.name)
        codes = codes[codes >= 0]
        if len(codes) and codes.min() != codes.max():
            names.append(factor.name)
    return names
