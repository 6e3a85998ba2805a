"""Runs of a test arranged by problem: means of each problem at each level, and repeated runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairtrial.study.report.pairing import has_variable, replicate_is_subject
from fairtrial.study.report.samples import ComparisonSample
from fairtrial.study.stats.by_problem import MIN_PROBLEMS
from fairtrial.study.stats.finding import UntestableError, check_variation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairtrial.study.stats.finding import Codes, Values

FEW_PROBLEMS = 12
"""With fewer problems than this, a note says that more of them would help most."""


@dataclass(frozen=True, slots=True)
class ProblemCells:
    """Means of runs by problem and group.

    names: the problems that have runs in the test
    counts: number of runs: a row for each problem, a column for each group
    means: mean of these runs; 0 where there are none
    """

    names: tuple[str, ...]
    counts: Codes
    means: Values

    @property
    def complete(self) -> NDArray[np.bool_]:
        """Which problems have runs in all groups."""
        complete: NDArray[np.bool_] = self.counts.min(axis=1) > 0
        return complete


def problem_codes(sample: ComparisonSample) -> tuple[tuple[str, ...], Codes]:
    """Return the names of the problems in a sample, and the problem of each run."""
    import numpy as np

    table = sample.request.table
    all_names = [name or "no problem" for name in table.problems]
    used, codes = np.unique(table.column("problem")[sample.rows], return_inverse=True)
    return tuple(all_names[code] for code in used), codes.ravel()


def has_several_problems(sample: ComparisonSample) -> bool:
    """Return whether a sample has runs of several problems, and problems are not compared."""
    names, _ = problem_codes(sample)
    is_compared = has_variable(set(sample.request.comparison.variables), "problem_id")
    return len(names) > 1 and not is_compared


def generalizes(sample: ComparisonSample) -> bool:
    """Return whether the claim is about problems like those of the study."""
    plan = sample.request.plan
    return plan is None or plan.generalize == "problems"


def average_cells(sample: ComparisonSample) -> ProblemCells:
    """Return the means of a sample's runs by problem and group."""
    import numpy as np

    names, problem = problem_codes(sample)
    width = len(sample.names)
    cells, size = problem * width + sample.group, len(names) * width
    counts = np.bincount(cells, minlength=size)
    sums = np.bincount(cells, weights=sample.y, minlength=size)
    shape = (len(names), width)
    return ProblemCells(names, counts.reshape(shape), (sums / np.maximum(counts, 1)).reshape(shape))


def average_problems(sample: ComparisonSample) -> ComparisonSample:
    """Return a sample with one value for each problem and level: the mean of its runs."""
    import numpy as np

    _, problem = problem_codes(sample)
    keys = np.stack([problem, *sample.parts])
    _, first, cell = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    cell = cell.ravel()
    means = np.bincount(cell, weights=sample.y) / np.bincount(cell)
    return _take(sample, first, means)


def center_problems(sample: ComparisonSample) -> ComparisonSample:
    """Return a sample with the mean of each problem's runs subtracted from its values."""
    import numpy as np

    _, problem = problem_codes(sample)
    means = np.bincount(problem, weights=sample.y) / np.bincount(problem)
    return replace(sample, y=sample.y - means[problem])


def count_repeats_once(sample: ComparisonSample) -> tuple[ComparisonSample, str]:
    """Return a sample without exact repeats if replicates never differ, and a note about it.

    Replicates of a deterministic agent give the same value each time: they are one observation.
    A sample in which some replicates differ is returned unchanged.

    Raises `UntestableError` if no group has more than one observation left.
    """
    import numpy as np

    table = sample.request.table
    if replicate_is_subject(table.study) or not len(sample.rows):
        return sample, ""
    keys = np.stack([table.column(name)[sample.rows] for name in ("condition", "agent", "problem")])
    _, first, cell = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    cell = cell.ravel()
    if len(first) == len(sample.rows) or not _are_equal(sample.y, sample.y[first][cell]):
        return sample, ""
    repeats = f"{len(sample.rows):,} runs are {len(first):,} observations"
    note = f"replicates of a condition and problem are identical and count once: {repeats}"
    collapsed = _take(sample, first, sample.y[first])
    if max(len(values) for values in collapsed.values) < 2:
        check_variation(sample.values)
        raise UntestableError(
            "all replicates give the same value, so they count once, and nothing else varies "
            "within a level: more replicates can't change that, more problems can"
        )
    return collapsed, note


def _are_equal(values: Values, others: Values) -> bool:
    import numpy as np

    scale = np.maximum(np.abs(values), np.abs(others))
    return bool((np.abs(values - others) <= 1e-12 * scale).all())


def _take(sample: ComparisonSample, runs: Codes, y: Values) -> ComparisonSample:
    """Return the chosen runs of a sample, with new values."""
    return replace(
        sample,
        rows=sample.rows[runs],
        y=y,
        group=sample.group[runs],
        parts=tuple(part[runs] for part in sample.parts),
    )


def describe_unit(cells: ProblemCells, used: NDArray[np.bool_], cell: str = "level") -> str:
    """Return the number of problems and runs, such as `12 problems × 10 runs per level`.

    cell: what the runs of a problem are counted by
    """
    counts = cells.counts[used]
    counts = counts[counts > 0]
    low, high = int(counts.min()), int(counts.max())
    runs = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    noun = "run" if high == 1 else "runs"
    level = f" per {cell}" if cells.counts.shape[1] > 1 else ""
    return f"{int(used.sum()):,} problems × {runs} {noun}{level}"


def problem_notes(problems: int, left_out: int) -> list[str]:
    """Return notes on problems that lack a level, and on few problems.

    problems: number of problems in the test
    left_out: number of problems that lack a level
    """
    notes = []
    if left_out:
        which = "1 problem lacks" if left_out == 1 else f"{left_out:,} problems lack"
        notes.append(f"{which} runs at some of the compared levels: left out")
    if MIN_PROBLEMS <= problems < FEW_PROBLEMS:
        notes.append(
            f"only {problems} problems: adding problems, not replicates, narrows the interval; so "
            "few can't show whether a few problems differ much more than the rest, in which case p "
            "would be too small"
        )
    return notes
