"""Problems on which the same agent passes and fails under the same condition."""

from __future__ import annotations

from fairtrial.study.hypotheses.outcome_types import BINARY_TYPES
from fairtrial.study.report.markdown_text import format_code, format_table
from fairtrial.study.report.run_table import RunTable

MOST_SHOWN = 20


def flaky_text(data: RunTable) -> str:
    """Return a section about problems whose replicates differ in passing; empty if none do.

    It looks at primary outcomes with values 0 and 1 only.
    """
    parts = []
    for outcome in data.study.outcomes:
        if not outcome.primary:
            continue
        rows, pairs = _count_flaky(data, outcome.name, outcome.expected_type in BINARY_TYPES)
        if rows:
            parts.append(_render(outcome.name, rows, pairs))
    return "\n\n".join(parts)


def _count_flaky(
    data: RunTable, name: str, is_binary: bool
) -> tuple[list[tuple[str, int, int, int]], int]:
    """Return problem, mixed cells, passed runs and runs of each flaky one; and repeated cells."""
    values = data.values(name)
    known = values[values == values]
    if not is_binary and not set(known.tolist()) <= {0.0, 1.0}:
        return [], 0
    flaky: dict[str, list[int]] = {}
    repeated = 0
    for (_, _, problem), rows in data.cells_with_rows().items():
        own = [float(values[row]) for row in rows if values[row] == values[row]]
        repeated += len(own) > 1
        if len(set(own)) > 1:
            counts = flaky.setdefault(problem or "–", [0, 0, 0])
            counts[0] += 1
            counts[1] += int(sum(own))
            counts[2] += len(own)
    ranked = sorted(flaky.items(), key=lambda item: (-item[1][0], item[0]))
    return [(name, *counts) for name, counts in ranked], repeated  # type: ignore[misc]


def _render(name: str, rows: list[tuple[str, int, int, int]], repeated: int) -> str:
    mixed = sum(row[1] for row in rows)
    more = f" The first {MOST_SHOWN} of {len(rows):,}:" if len(rows) > MOST_SHOWN else ""
    lead = (
        f"In {mixed:,} of {repeated:,} cases with replicates, the same agent under the same "
        f"condition both passed and failed by {format_code(name)}.{more}"
    )
    cells = [
        [format_code(problem), f"{count:,}", f"{passed:,} of {runs:,}"]
        for problem, count, passed, runs in rows[:MOST_SHOWN]
    ]
    return f"{lead}\n\n{format_table(['problem', 'cases', 'runs passed'], cells)}"
