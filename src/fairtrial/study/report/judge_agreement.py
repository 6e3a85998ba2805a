"""How well judges agree with people who scored the same answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairtrial.core import plain_number
from fairtrial.study.evaluators.judge import LABEL
from fairtrial.study.model.runs import RunResult
from fairtrial.study.report.markdown_text import (
    format_code,
    format_interval,
    format_number,
    format_table,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairtrial.study.stats.finding import Values

RESAMPLES = 2_000
MIN_PROBLEMS = 5
"""The fewest problems for an interval."""
MOST_CATEGORIES = 20


class JudgeAgreement:
    """Collects the scores of judges beside the labels of people."""

    def __init__(self) -> None:
        self._pairs: dict[str, list[tuple[str, float, float]]] = {}

    def add(self, result: RunResult) -> None:
        """Add the scores of one run that have a label."""
        for row in result.evaluator_outputs:
            notes = row.get("notes_json")
            if not isinstance(notes, dict) or LABEL not in notes:
                continue
            label, score = _number(notes[LABEL]), _number(row.get("metric_value"))
            if label is not None and score is not None:
                problem = result.run_spec.problem_id if result.run_spec else ""
                pair = (problem, score, label)
                self._pairs.setdefault(str(row["metric_name"]), []).append(pair)

    def text(self) -> str:
        """Return a table of the agreement of each metric; empty if there are no labels."""
        if not self._pairs:
            return ""
        columns = ["metric", "labeled", "correlation", "weighted kappa"]
        rows = [
            [
                format_code(metric),
                f"{len(pairs):,} of {len({pair[0] for pair in pairs}):,} problems",
                _describe(pairs, _correlation),
                _describe(pairs, _kappa),
            ]
            for metric, pairs in self._pairs.items()
        ]
        lead = (
            "Agreement of judges with people: Pearson's correlation, and Cohen's kappa with "
            "quadratic weights of scores rounded to whole numbers (1 is perfect, 0 is chance). 95% "
            "intervals by resampling of problems."
        )
        return f"{lead}\n\n{format_table(columns, rows)}"


def _number(value: Any) -> float | None:
    number = plain_number(value)
    if number is None and isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            return None
    return None if number is None or number != number else float(number)


def _describe(
    pairs: list[tuple[str, float, float]], measure: Callable[[Values, Values], float]
) -> str:
    """Return a measure with its bootstrap interval; a dash where it can't be computed."""
    import numpy as np

    scores = np.asarray([pair[1] for pair in pairs])
    labels = np.asarray([pair[2] for pair in pairs])
    names = list(dict.fromkeys(pair[0] for pair in pairs))
    codes = np.asarray([names.index(pair[0]) for pair in pairs])
    value = measure(scores, labels)
    if value != value:
        return "–"
    if len(names) < MIN_PROBLEMS:
        return f"{format_number(value)} (too few problems for an interval)"
    groups: list[NDArray[Any]] = [np.flatnonzero(codes == code) for code in range(len(names))]
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(RESAMPLES):
        chosen = np.concatenate([groups[i] for i in rng.integers(len(groups), size=len(groups))])
        draws.append(measure(scores[chosen], labels[chosen]))
    low, high = (
        np.nanquantile(draws, [0.025, 0.975]) if not np.all(np.isnan(draws)) else (value,) * 2
    )
    return f"{format_number(value)} {format_interval((float(low), float(high)))}"


def _correlation(scores: Values, labels: Values) -> float:
    import numpy as np

    if len(scores) < 2 or np.ptp(scores) == 0 or np.ptp(labels) == 0:
        return float("nan")
    return float(np.corrcoef(scores, labels)[0, 1])


def _kappa(scores: Values, labels: Values) -> float:
    """Return Cohen's kappa with quadratic weights; NaN where it isn't defined."""
    import numpy as np

    one, two = np.rint(scores), np.rint(labels)
    low, high = min(one.min(), two.min()), max(one.max(), two.max())
    if high == low or high - low >= MOST_CATEGORIES:
        return float("nan")
    # Quadratic weights need no table: the expected difference is that of independent draws.
    observed = float(np.mean((one - two) ** 2))
    expected = float(np.var(one) + np.var(two) + (one.mean() - two.mean()) ** 2)
    return 1 - observed / expected if expected else float("nan")
