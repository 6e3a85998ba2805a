"""The section of a report on planned looks: when they were, what they saw, what was decided."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fairtrial.core import dump_record
from fairtrial.study.design.look_schedule import LookSchedule, schedule_looks
from fairtrial.study.ledger.planned_looks import ClaimLook, PlannedLook
from fairtrial.study.report.markdown_text import (
    escape_markdown,
    format_code,
    format_interval,
    format_number,
    format_p,
    format_signed,
    format_table,
)
from fairtrial.study.report.run_table import RunTable

SPENDING = {
    "obrien_fleming": "alpha spent by O'Brien and Fleming's function",
    "pocock": "alpha spent by Pocock's function",
    "anytime": "confidence sequences, which hold at any number of looks",
}


def looks_text(table: RunTable) -> str:
    """Return the section without its heading; empty for a study without planned looks."""
    schedule = schedule_looks(table.study, table.conditions)
    if schedule is None:
        return ""
    parts = [_describe_schedule(schedule)]
    log = table.look_log
    if log is None:
        parts.append("The looks are not recorded: these results come without a ledger.")
    elif not log.looks:
        parts.append("No look was made yet.")
    else:
        rows = [row for look in log.looks for row in _look_rows(look)]
        columns = ["look", "when", "saw", "claim", "estimate", "interval", "p", "bound", "decision"]
        parts.append(format_table(columns, rows, right=(4, 6, 7)))
        parts.append(_describe_end(table, schedule))
    return "\n\n".join(parts)


def looks_facts(table: RunTable) -> dict[str, Any] | None:
    """Return the planned looks, and those that were made, as plain data; None without any."""
    schedule = schedule_looks(table.study, table.conditions)
    if schedule is None:
        return None
    log = table.look_log
    return {
        "planned": schedule.looks,
        "unit": schedule.unit,
        "units": list(schedule.units),
        "is_void": log is not None and log.is_void,
        "not_needed": table.decided_early,
        "made": [] if log is None else [dump_record(look) for look in log.looks],
    }


def _describe_schedule(schedule: LookSchedule) -> str:
    units = ", ".join(f"{units:,}" for units in schedule.units)
    futility = ""
    if schedule.stopping.futility and schedule.stopping.spending != "anytime":
        futility = (
            " A claim also stopped if it could hardly be shown any more (a chance below 10% at the "
            "last look); the bounds don't count on that."
        )
    return (
        f"Planned before the first result: {schedule.looks} looks, after {units} "
        f"{schedule.unit}; {SPENDING[schedule.stopping.spending]}. Each confirmatory "
        "claim has an equal share of alpha, unless its plan's policy is none. A claim is decided "
        "if p is below the bound of its look. Intervals are repeated confidence intervals."
        f"{futility}"
    )


def _look_rows(look: PlannedLook) -> Iterator[list[str]]:
    for claim in look.claims:
        yield [
            f"{look.number}",
            escape_markdown(look.at),
            f"{look.units:,} ({look.runs:,} runs)",
            f"{format_code(claim.hypothesis_id)} on {format_code(claim.outcome)}",
            format_signed(claim.estimate) if claim.estimate is not None else "–",
            format_interval(claim.interval) or "–",
            "–" if claim.p is None else format_p(claim.p).removeprefix("= "),
            "–" if claim.level is None else format_number(claim.level),
            _describe_decision(claim),
        ]


def _describe_decision(claim: ClaimLook) -> str:
    chance = "" if claim.chance is None else f" (chance at the last look: {claim.chance:.0%})"
    return f"{escape_markdown(claim.decision)}{chance}"


def _describe_end(table: RunTable, schedule: LookSchedule) -> str:
    log = table.look_log
    assert log is not None
    number = log.looks[-1].number
    if log.is_void:
        return (
            "The plan was changed after a look, so that the looks don't hold for it: its claims "
            "are exploratory, and no further look is made."
        )
    if table.decided_early and not table.pending:
        return (
            f"The study stopped at look {number} of {schedule.looks}: every claim was decided, and "
            f"{table.decided_early:,} planned runs were not needed."
        )
    if number == schedule.looks:
        return "All planned looks were made."
    return f"The next is look {number + 1} of {schedule.looks}."
