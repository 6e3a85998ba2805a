"""Markdown tables with the flow of runs, of a whole study and of the groups of a test."""

from __future__ import annotations

from collections.abc import Sequence

from fairtrial.study.report.flow import RunFlow
from fairtrial.study.report.markdown_text import escape_markdown, format_code, format_table
from fairtrial.study.report.samples import GroupSummary

FLOW_COLUMNS = ("planned", "finished", "failed", "broken", "not done")


def study_flow_table(flows: Sequence[RunFlow], outcomes: Sequence[str]) -> str:
    """Return the flow of all runs and of each agent's runs.

    outcomes: the outcomes whose values are counted
    """
    columns = ["runs", *FLOW_COLUMNS]
    for name in outcomes:
        columns += [f"no {format_code(name)}", f"used for {format_code(name)}"]
    rows = []
    for flow in flows:
        counts = [flow.planned, flow.finished, flow.failed, flow.broken, flow.pending]
        for name in outcomes:
            counts += [flow.no_value[name], flow.used[name]]
        rows.append([escape_markdown(flow.name), *(f"{count:,}" for count in counts)])
    return format_table(columns, rows, right=range(1, len(columns)))


def group_flow_table(groups: Sequence[GroupSummary]) -> str:
    """Return the flow of the runs of each group of a test."""
    rows = []
    for group in groups:
        counts = (
            group.planned,
            group.runs,
            group.failed,
            group.broken,
            group.pending,
            group.missing,
            group.n,
        )
        rows.append([escape_markdown(group.name), *(f"{count:,}" for count in counts)])
    columns = ["group", *FLOW_COLUMNS, "no value", "used"]
    return format_table(columns, rows, right=range(1, len(columns)))
