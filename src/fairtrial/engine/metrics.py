"""The metrics of a run: the agent's own, and those of its process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairtrial.agents.events import EventStream
from fairtrial.model.claims import OutcomeSpec
from fairtrial.tables.outcome import PRIMARY, primary_outcome


def compose_metrics(
    own: Mapping[str, Any],
    evaluations: Sequence[Mapping[str, Any]],
    events: EventStream,
    latency_s: float,
    outcomes: Sequence[OutcomeSpec],
    *,
    has_output: bool = True,
) -> dict[str, Any]:
    """All metrics of a run."""
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


def count_tokens(metrics: Mapping[str, Any]) -> int:
    """What a run used of the study's tokens."""
    return int(
        metrics["input_tokens"] + metrics["output_tokens"] or metrics.get("total_tokens") or 0
    )
