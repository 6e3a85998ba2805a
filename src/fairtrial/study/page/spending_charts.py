"""Cost, tokens, latency and the time line of runs: numbers for charts."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from fairtrial.study.page.plain_data import clean_number, round_number
from fairtrial.study.page.run_rows import RunRow
from fairtrial.study.report.run_table import RunTable

MOST_BARS = 1_500
BINS = 60
STEPS = 200
QUANTILES = (0.5, 0.9, 0.99, 1.0)


def chart_spending(data: RunTable, rows: Sequence[RunRow]) -> dict[str, Any]:
    """Return what was spent against its ceilings, latencies, and when runs were under way."""
    spent = data.spent or data.totals.spent
    budget = data.study.run_budget
    return {
        "cost": round_number(spent.cost_usd),
        "tokens": spent.tokens,
        "input_tokens": data.totals.input_tokens,
        "output_tokens": data.totals.output_tokens,
        "max_cost": budget.max_cost_usd,
        "max_tokens": clean_number(budget.max_tokens),
        "timeout": budget.timeout_s,
        "parallelism": budget.parallelism,
        "steps": _sum_up(rows),
        "latency": _latencies(rows),
        "timeline": _time_line(rows),
    }


def _sum_up(rows: Sequence[RunRow]) -> list[list[float]]:
    """Return (hours' seconds, cost so far, tokens so far) at some times."""
    ended = sorted((row.end, row.cost, row.tokens) for row in rows if row.end is not None)
    if not ended or not any(cost or tokens for _, cost, tokens in ended):
        return []
    begin, cost, tokens = ended[0][0], 0.0, 0
    steps, every = [], max(1, len(ended) // STEPS)
    for index, (end, one_cost, one_tokens) in enumerate(ended):
        cost, tokens = cost + one_cost, tokens + one_tokens
        if index % every == 0 or index == len(ended) - 1:
            steps.append([round(end - begin, 3), round_number(cost) or 0.0, tokens])
    return steps


def _latencies(rows: Sequence[RunRow]) -> dict[str, Any]:
    """Return a histogram of latencies on a logarithmic axis, and their quantiles."""
    import numpy as np

    seconds = np.asarray([row.latency for row in rows if row.latency > 0])
    if not len(seconds):
        return {"bins": [], "quantiles": []}
    low, high = float(seconds.min()), float(seconds.max())
    high = max(high, low * 1.01)
    edges = np.geomspace(low, high, min(40, max(5, len(seconds) // 4)) + 1)
    edges[0], edges[-1] = low, high
    counts, _ = np.histogram(seconds, edges)
    bins = [
        [round_number(float(a), 4), round_number(float(b), 4), int(n)]
        for a, b, n in zip(edges[:-1], edges[1:], counts, strict=True)
    ]
    quantiles = [round_number(float(q), 3) for q in np.quantile(seconds, QUANTILES)]
    return {"bins": bins, "quantiles": quantiles}


def _time_line(rows: Sequence[RunRow]) -> dict[str, Any]:
    """Return each run as a bar in a lane, or for many runs how many ended in each interval.

    A lane has one run at a time; the ledger doesn't say which worker made which run.
    """
    timed = sorted(
        (row for row in rows if row.start is not None and row.end is not None),
        key=lambda row: (row.start or 0.0, row.plan_index),
    )
    if not timed:
        return {"bars": [], "bins": [], "seconds": 0.0}
    begin = timed[0].start or 0.0
    seconds = max((row.end or begin) - begin for row in timed)
    if len(timed) > MOST_BARS:
        return {"bars": [], "bins": _count_ends(timed, begin, seconds), "seconds": seconds}
    free: list[tuple[float, int]] = []
    lanes, bars = 0, []
    for row in timed:
        start, end = (row.start or begin) - begin, (row.end or begin) - begin
        if free and free[0][0] <= start + 1e-3:
            lane = heapq.heappop(free)[1]
        else:
            lane, lanes = lanes, lanes + 1
        heapq.heappush(free, (end, lane))
        bars.append([lane, round(start, 3), round(end, 3), row.status, row.run_id])
    return {"bars": bars, "bins": [], "seconds": round(seconds, 3)}


def _count_ends(rows: Sequence[RunRow], begin: float, seconds: float) -> list[list[float]]:
    width = max(seconds, 1e-9) / BINS
    counts = [[0, 0] for _ in range(BINS)]
    for row in rows:
        index = min(BINS - 1, int(((row.end or begin) - begin) / width))
        counts[index][row.status != "success"] += 1
    return [[round(i * width, 3), good, bad] for i, (good, bad) in enumerate(counts)]
