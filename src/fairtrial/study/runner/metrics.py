"""The metrics of a run: the agent's own, and those of its process."""

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
    """All metrics of a run.

    paid: what its journal says; it counts where the agent itself tells nothing
    """
    if any(paid):
        own = _fill_in(own, paid)
    # Tables show the output of a run that emits nothing as its one event, by the agent.
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
    found = primary_outcome(metrics, evaluations, outcomes)
    if found is not None:
        metrics[PRIMARY] = found
    return metrics


def _fill_in(own: Mapping[str, Any], paid: Expense) -> Mapping[str, Any]:
    filled = dict(own)
    if own.get("cost_usd") is None:
        filled["cost_usd"] = paid.cost_usd
    if all(own.get(name) is None for name in TOKENS):
        filled |= {"input_tokens": paid.input_tokens, "output_tokens": paid.output_tokens}
    return filled
