"""The Markdown section on the sensitivity of verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.study.report.markdown_text import (
    escape_markdown,
    format_code,
    format_confidence,
    format_interval,
    format_p,
    format_signed,
    format_table,
)
from fairtrial.study.report.sensitivity import SensitivityRow, SensitivityTable

GUIDE = (
    "Each claim by other tests and choices, beside the planned one, which decides. A verdict that "
    "depends on a choice is weaker than one that doesn't. p is that after the plan's adjustment "
    "for several tests and looks, to be compared with 0.05."
)
COLUMNS = ("analysis", "test", "estimate", "CI", "p", "verdict")


def render_sensitivity(tables: Sequence[SensitivityTable]) -> str:
    """Return the section, with one table for each claim; empty if there is none."""
    if not tables:
        return ""
    parts = ["## Sensitivity", GUIDE]
    for table in tables:
        by = " × ".join(format_code(name) for name in table.variables)
        hypothesis = f"{format_code(table.hypothesis_id)} {escape_markdown(table.label)}"
        parts.append(f"### {hypothesis}: {format_code(table.outcome)} by {by}")
        rows = [_format_row(row) for row in table.rows]
        level = f"{format_confidence(table.confidence)} CI"
        columns = [level if column == "CI" else column for column in COLUMNS]
        parts.append(format_table(columns, rows, right=(2, 4)))
        parts.append(escape_markdown(table.conclusion, 1_000))
    return "\n\n".join(parts)


def _format_row(row: SensitivityRow) -> list[str]:
    remark = f" ({row.remark})" if row.remark else ""
    return [
        escape_markdown(row.choice + remark),
        escape_markdown(row.method),
        "–" if row.estimate is None else format_signed(row.estimate),
        format_interval(row.interval) or "–",
        "–" if row.p_adjusted is None else format_p(row.p_adjusted).removeprefix("= "),
        str(row.verdict),
    ]
