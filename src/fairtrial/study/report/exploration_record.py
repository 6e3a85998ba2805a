"""The record of exploratory comparisons, and its text in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairtrial.study.model.study import Study
from fairtrial.study.report.hypothesis_sections import render_tests, render_verdicts
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.markdown_text import (
    escape_markdown,
    format_code,
    format_interval,
    format_list,
    format_number,
    format_p,
    format_signed,
    format_table,
)
from fairtrial.study.report.verdicts import TestVerdict

FAMILY = "family"
"""Groups problems by their family."""
MAX_ROWS = 100
WARNING = (
    "**Exploratory**: no plan declared these comparisons, so they decide nothing. Whoever looks at "
    "many of them finds some by chance; declare a hypothesis and test it on new runs."
)


@dataclass(frozen=True, slots=True)
class Exploration:
    """Comparisons that no plan declared.

    study: the study
    variables: the compared factors, blocks or options, or `agent_id`
    outcomes: the outcomes that they are compared on
    by: what the groups are: problems, families of problems, or levels of a variable; empty for none
    tests: a test of each variable on each outcome; never confirmatory
    parts: the same tests within each group
    notes: what a reader should know of all of them
    """

    study: Study
    variables: tuple[str, ...]
    outcomes: tuple[str, ...]
    tests: tuple[HypothesisTest, ...]
    by: str = ""
    parts: dict[str, tuple[HypothesisTest, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the comparisons as plain data."""
        return {
            "study_id": self.study.study_id,
            "exploratory": True,
            "variables": list(self.variables),
            "outcomes": list(self.outcomes),
            "notes": list(self.notes),
            "tests": [test.to_dict() for test in self.tests],
            "by": self.by or None,
            "parts": {
                group: [test.to_dict() for test in tests] for group, tests in self.parts.items()
            },
        }

    def to_markdown(self) -> str:
        """Return the comparisons as a report in Markdown."""
        title = ", ".join(map(format_code, self.variables))
        parts = [f"# {title} in {format_code(self.study.study_id)}", WARNING]
        if self.notes:
            parts.append(format_list(map(escape_markdown, self.notes)))
        parts += ["## Comparisons", render_verdicts(self.tests), *_group_sections(self)]
        return "\n\n".join([*parts, "## Tests", render_tests(self.tests)]) + "\n"


def _group_sections(exploration: Exploration) -> Iterator[str]:
    """Yield a heading and a table for each variable and outcome."""
    for index, test in enumerate(exploration.tests):
        rows = [(group, tests[index]) for group, tests in exploration.parts.items()]
        if rows:
            kind = "family of problems" if exploration.by == FAMILY else exploration.by
            by = " × ".join(format_code(name) for name in test.variables)
            yield f"## {format_code(test.outcome)} by {by}, for each {escape_markdown(kind)}"
            yield _group_table(rows)


def _group_table(rows: Sequence[tuple[str, HypothesisTest]]) -> str:
    levels = list(dict.fromkeys(group.name for _, test in rows for group in test.groups))
    difference = next((test.difference for _, test in rows if test.difference), "")
    is_estimate = any(test.estimate is not None for _, test in rows)
    columns = ["group", *(f"{escape_markdown(level)}: mean (n)" for level in levels)]
    columns += [escape_markdown(difference) or "difference", "95% CI"] if is_estimate else []
    columns.append("p")
    cells = [
        [escape_markdown(group), *_group_cells(test, levels, is_estimate)]
        for group, test in rows[:MAX_ROWS]
    ]
    parts = [format_table(columns, cells, right=range(1, len(columns)))]
    more = len(rows) - len(cells)
    parts += [f"… and {more:,} more groups; `--json` has them all"] if more else []
    tested = [test for _, test in rows if test.verdict is not TestVerdict.NOT_TESTED]
    if tested and tested[0].family > 1:
        policy, family = tested[0].policy, tested[0].family
        unit = "; ".join(dict.fromkeys(_unit_kind(test) for test in tested))
        text = f"p adjusted by {policy} over these {family} tests; unit: {unit}."
        parts.append(text)
    untested = {test.why for _, test in rows if test.verdict is TestVerdict.NOT_TESTED and test.why}
    parts += [f"Not tested: {escape_markdown(why)}." for why in sorted(untested)[:3]]
    return "\n\n".join(parts)


def _unit_kind(test: HypothesisTest) -> str:
    """Return what the unit of a test is, without numbers."""
    return "problems" if "problem" in test.unit else "runs"


def _group_cells(test: HypothesisTest, levels: Sequence[str], is_estimate: bool) -> Iterator[str]:
    """Yield the means of each level, then the difference with its interval, and p."""
    groups = {group.name: group for group in test.groups}
    for level in levels:
        group = groups.get(level)
        empty = group is None or group.mean is None
        yield "–" if empty or group is None else f"{format_number(group.mean)} ({group.n:,})"
    if is_estimate:
        yield format_signed(test.estimate) if test.estimate is not None else _difference(test)
        yield format_interval(test.interval) or "–"
    yield "–" if test.p_adjusted is None else format_p(test.p_adjusted).removeprefix("= ")


def _difference(test: HypothesisTest) -> str:
    """Return the difference of two means that were not tested; a dash if there is none."""
    means = [group.mean for group in test.groups]
    if len(means) != 2 or means[0] is None or means[1] is None:
        return "–"
    return format_signed(means[0] - means[1])
