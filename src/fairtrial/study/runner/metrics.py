"""Compose the metrics of a run from those of the agent, its process and its journal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairtrial.study.agents.events import EventStream
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
