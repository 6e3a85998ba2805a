"""Compose the metrics of a run from those of the agent, its process and its journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairtrial.study.agents.events import EventStream
from fairtrial.study.agents.journal import Journal
from fairtrial.study.evaluators.case import JUDGE_ENTRY
from fairtrial.study.model.expenses import NO_EXPENSE, Expense
from fairtrial.study.model.hypotheses import OutcomeSpec
from fairtrial.study.tables.primary_outcome import PRIMARY, primary_outcome

TOKENS = ("input_tokens", "output_tokens", "total_tokens")


def compose_metrics(
    own: Mapping[str, Any],
    evaluations: Sequence[Mapping[str, Any]],
    events: EventStream,
    latency_s: float,
    outcomes: Sequence[OutcomeSpec],
    *,
    has_output: bool = True,
    paid: Expense = NO_EXPENSE,
) -> dict[str, Any]:
    """Return all metrics of a run.

    own: the metrics that the agent returned
    evaluations: the rows of the evaluator
    events: the events that the run emitted
    latency_s: how long it took
    outcomes: the outcomes of the study; the first primary one is shown as `primary_outcome`
    has_output: whether the agent returned an output
    paid: the costs in its journal, used where the agent reports none
    """
    if paid is not NO_EXPENSE and any(paid):
        own = _add_costs(own, paid)
    # The tables show the output of a run without events as one event of the agent.
    is_silent = has_output and not events.actors
    metrics = {
        **own,
        "latency_s": latency_s,
        "cost_usd": own.get("cost_usd") or 0.0,
        "input_tokens": own.get("input_tokens") or 0,
        "output_tokens": own.get("output_tokens") or 0,
        "tool_call_count": events.tool_calls,
        "step_event_count": 1 if is_silent else events.steps,
        "unique_actor_count": 1 if is_silent else len(events.actors),
    }
    primary = primary_outcome(metrics, evaluations, outcomes)
    if primary is not None:
        metrics[PRIMARY] = primary
    return metrics


def _add_costs(own: Mapping[str, Any], paid: Expense) -> Mapping[str, Any]:
    """Return metrics with the costs of a journal where the agent reports none."""
    filled = dict(own)
    if own.get("cost_usd") is None:
        filled["cost_usd"] = paid.cost_usd
    if all(own.get(name) is None for name in TOKENS):
        filled |= {"input_tokens": paid.input_tokens, "output_tokens": paid.output_tokens}
    return filled


def add_judge_costs(
    metrics: dict[str, Any], own: Mapping[str, Any], journal: Journal
) -> dict[str, Any]:
    """Return metrics with what the run's judges cost, which is in its journal.

    own: the metrics that the agent returned: costs among them don't include those of judges
    """
    if not any(map(any, journal.paid())):
        return metrics
    paid = NO_EXPENSE
    for entry in journal.entries():
        if entry.kind == JUDGE_ENTRY:
            paid = paid.plus(entry.paid)
    if paid is NO_EXPENSE:
        return metrics
    metrics["judge_cost_usd"] = paid.cost_usd
    if own.get("cost_usd") is not None:
        metrics["cost_usd"] += paid.cost_usd
    if own.get("input_tokens") is not None or own.get("output_tokens") is not None:
        metrics["input_tokens"] += paid.input_tokens
        metrics["output_tokens"] += paid.output_tokens
    if own.get("total_tokens") is not None:
        metrics["total_tokens"] += paid.tokens
    return metrics
