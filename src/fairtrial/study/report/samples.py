"""The numbers behind a question: which runs count, in which group, and which are missing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairtrial.core import canonical_json, did_you_mean, is_scalar, scalar_text
from fairtrial.study.power.hypothesis_power import ALPHA
from fairtrial.study.report.test_questions import Question
from fairtrial.study.report.values import REPLICATE, RunTable
from fairtrial.study.stats.finding import UntestableError, finite, spread
from fairtrial.study.stats.test_names import MISSING_DATA_POLICIES, missing_data_policy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairtrial.study.stats.finding import Codes, Values


@dataclass(frozen=True, slots=True)
class Group:
    """The runs of one level, or of one combination of levels.

    n: the runs that count
    mean, sd, median: of their values
    failed: runs that failed, and have no value of their own
    missing: runs that succeeded, and have none all the same
    runs: all runs of the group that ended
    """

    name: str
    n: int
    runs: int = 0
    mean: float | None = None
    sd: float | None = None
    median: float | None = None
    failed: int = 0
    missing: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """The runs that a question is about.

    names: the groups; the first minus the second is the difference, where there are two
    rows: for each run that counts, its row in the table
    y: its value
    group: its group
    parts: for each variable its level, numbered in the order of the question's levels
    groups: the same in figures
    notes: what happened to runs without a value
    """

    question: Question
    names: tuple[str, ...]
    rows: Codes
    y: Values
    group: Codes
    parts: tuple[Codes, ...]
    groups: tuple[Group, ...]
    notes: tuple[str, ...]

    def of(self, group: int) -> Values:
        """The values of a group."""
        values: Values = self.y[self.group == group]
        return values

    @property
    def values(self) -> list[Values]:
        """The values of all groups."""
        return [self.of(group) for group in range(len(self.names))]


def take_sample(question: Question) -> Sample:
    """The runs of the question's groups; raises `UntestableError` where they can't be had."""
    import numpy as np

    if question.reason:
        raise UntestableError(question.reason)
    table = question.table
    reader = table.readers[question.outcome.name]
    if reader.reason:
        raise UntestableError(reader.reason)
    names, parts = _grouping(question)
    member = np.all(np.stack(parts) >= 0, axis=0) & _filtered(question)
    sizes = [len(question.comparison.levels[i]) for i in range(len(parts))]
    group = np.zeros(len(table), dtype=np.intp)
    if question.comparison.shape != "slope":
        for part, size in zip(parts, sizes, strict=True):
            group = group * size + part
    values = table.values(question.outcome.name).copy()
    empty = np.isnan(values) & member
    lost = (empty & table.failed, empty & ~table.failed)
    notes = _fill(question, values, empty, lost)
    counted = member & ~np.isnan(values)
    if not counted.any():
        raise UntestableError(_why_nothing(question, int(member.sum())))
    rows = np.flatnonzero(counted)
    groups = []
    for index, name in enumerate(names):
        inside = member & (group == index)
        losses = [int((each & inside).sum()) for each in lost]
        groups.append(_describe(name, int(inside.sum()), values[counted & inside], losses))
    kept = tuple(part[rows] for part in parts)
    return Sample(question, names, rows, values[rows], group[rows], kept, tuple(groups), notes)


def _grouping(question: Question) -> tuple[tuple[str, ...], list[Codes]]:
    """The groups' names, and for each variable the number of each run's level (-1: none)."""
    import numpy as np

    parts, spelled = [], []
    for position, name in enumerate(question.comparison.variables):
        variable, codes = question.table.variable(name)
        levels = question.levels(position)
        ranks = {level: rank for rank, level in enumerate(levels)}
        # One more at the end, for runs that the variable doesn't apply to (-1).
        numbers = [ranks.get(level, -1) for level in variable.values] + [-1]
        parts.append(np.asarray(numbers, dtype=np.intp)[codes])
        spelled.append(levels)
    if question.comparison.shape == "slope":
        return ("all",), parts
    if len(parts) == 1:
        return spelled[0], parts
    pairs = itertools.product(*spelled)
    return tuple(" × ".join(levels) for levels in pairs), parts


def _describe(name: str, runs: int, values: Values, lost: Sequence[int]) -> Group:
    import numpy as np

    failed, missing = lost
    if not len(values):
        return Group(name, 0, runs, failed=failed, missing=missing)
    sd = spread(values) if len(values) > 1 else None
    mean, median = finite(math.fsum(values / len(values))), finite(np.median(values))
    return Group(name, len(values), runs, mean, finite(sd), median, failed, missing)


def failure_note(groups: Sequence[Group]) -> str:
    """A remark if some group's runs fail more often than others': then what is left differs too.

    By Fisher's exact test of two groups; of several, of the worst against the others, with p times
    their number.
    """
    from scipy import stats

    if (
        len(groups) < 2
        or not any(group.failed for group in groups)
        or not min(group.runs for group in groups)
        # Runs that count as 0 are not left out.
        or all(group.n == group.runs for group in groups)
    ):
        return ""
    worst = max(groups, key=lambda group: group.failed / group.runs)
    others = [group for group in groups if group is not worst]
    failed, runs = sum(each.failed for each in others), sum(each.runs for each in others)
    table = [[worst.failed, worst.runs - worst.failed], [failed, runs - failed]]
    p = float(stats.fisher_exact(table).pvalue) * (1 if len(groups) == 2 else len(groups))
    if p >= ALPHA:
        return ""
    against = others[0].name if len(others) == 1 else "the others"
    return (
        f"failures differ: {worst.failed:,} of {worst.runs:,} runs failed for {worst.name}, "
        f"{failed:,} of {runs:,} for {against} (Fisher's exact test, p = {p:.2g}); a comparison of "
        "the runs that are left may be unfair"
    )


def _fill(
    question: Question,
    values: Values,
    empty: NDArray[np.bool_],
    lost: Sequence[NDArray[np.bool_]],
) -> tuple[str, ...]:
    """Do with missing values what the outcome's policy says; gives what to tell of it."""
    failed, missing = (int(each.sum()) for each in lost)
    if not failed + missing:
        return ()
    what = " and ".join(
        text
        for count, text in (
            (failed, f"{failed:,} that failed"),
            (missing, f"{missing:,} without a value"),
        )
        if count
    )
    word = question.outcome.missing_data_policy
    policy = missing_data_policy(word)
    if policy is None:
        hint = did_you_mean(word, MISSING_DATA_POLICIES)
        raise UntestableError(f"runs are missing ({what}) and policy '{word}' is unknown; {hint}")
    if policy == "fail":
        raise UntestableError(f"runs are missing ({what}), and the outcome's policy is to stop")
    if policy == "zero":
        values[empty] = 0.0
        return (f"runs that count as 0: {what}",)
    return (f"runs left out: {what}",)


def _why_nothing(question: Question, runs: int) -> str:
    table, name = question.table, question.outcome.name
    if not len(table):
        return "no run has ended yet"
    if not runs:
        return "no run belongs to the groups that are compared"
    reader = table.readers[name]
    if table.failed.all() and not reader.unreadable:
        return "every run failed"
    return reader.why_nothing()


def _filtered(question: Question) -> NDArray[np.bool_]:
    """Which runs the plan's filters let through: ``{column: value}`` or ``{column: [values]}``."""
    import numpy as np

    keep = np.ones(len(question.table), dtype=bool)
    filters: Mapping[str, Any] = question.plan.filters if question.plan else {}
    for column, wanted in filters.items():
        listed = list(wanted) if isinstance(wanted, (list, tuple, set, frozenset)) else [wanted]
        if not all(map(is_scalar, listed)):
            raise UntestableError(
                f"filter '{column}' is neither a value nor a list of values: {wanted!r}"
            )
        keep &= _matches(question.table, column, listed)
    return keep


def _matches(table: RunTable, column: str, wanted: Sequence[Any]) -> NDArray[np.bool_]:
    import numpy as np

    if column == "status":
        wants = {str(value).lower() for value in wanted}
        return np.where(table.failed, "failed" in wants, "success" in wants)
    if column == REPLICATE:
        return np.isin(table.column(REPLICATE), [v for v in wanted if isinstance(v, int)])
    # What the tables say: a filter by an agent's option keeps as many runs of the others.
    variable, codes = table.assigned(column)
    if not variable.source:
        study = table.study
        known = [factor.name for factor in study.factors] + [block.name for block in study.blocks]
        hint = did_you_mean(column, [*known, "agent_id", "problem_id", REPLICATE, "status"])
        raise UntestableError(f"the plan filters by '{column}', which is no column here; {hint}")
    ranks = {level: rank for rank, level in enumerate(variable.values)}
    found = []
    for value in wanted:
        text = scalar_text(value) if is_scalar(value) else canonical_json(value)
        level = variable.find_level(text)
        if level is None:
            hint = did_you_mean(text, variable.values)
            raise UntestableError(f"the plan's filter: '{text}' is no level of {column}; {hint}")
        found.append(ranks[level])
    return np.isin(codes, found)
