"""Bundles: named sets of problems and agents for recipes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairtrial.core import Mistake, Record


@dataclass(frozen=True, slots=True)
class BenchmarkBundle(Record):
    """A named set of problems and agents.

    bundle_id: a short name
    name: the name in reports
    description: the purpose of the bundle
    problem_ids: the problems
    agent_specs: the agents
    metadata: any further data
    """

    bundle_id: str
    name: str
    description: str
    problem_ids: tuple[str, ...]
    agent_specs: tuple[str, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def _mistakes(self) -> Iterator[Mistake]:
        return self._blank_mistakes("bundle_id", "name")


def ideation_bundle() -> BenchmarkBundle:
    """Return three ideation briefs, and three agents."""
    return BenchmarkBundle(
        bundle_id="ideation",
        name="Ideation",
        description="Open briefs that have many good answers.",
        problem_ids=("ideation-brief-a", "ideation-brief-b", "ideation-brief-c"),
        agent_specs=("baseline-agent", "creative-agent", "structured-agent"),
        metadata={"domain": "ideation"},
    )


def optimization_bundle() -> BenchmarkBundle:
    """Return optimization problems of three sizes, for a learning agent and a fixed one."""
    return BenchmarkBundle(
        bundle_id="optimization",
        name="Optimization",
        description="One kind of search problem in three sizes, to test generalization.",
        problem_ids=("optimization-small", "optimization-medium", "optimization-large"),
        agent_specs=("deterministic-baseline", "self-learning-agent"),
        metadata={"domain": "optimization"},
    )


def grammar_problem_bundle() -> BenchmarkBundle:
    """Return design tasks without rules, with a grammar, and with a tool that enforces it."""
    return BenchmarkBundle(
        bundle_id="grammar",
        name="Grammar",
        description="The same kind of design task with more and more rules for its answers.",
        problem_ids=("grammar-unconstrained", "grammar-guided", "grammar-tool-guided"),
        agent_specs=("direct-llm", "workflow-agent"),
        metadata={"domain": "grammar"},
    )


def human_vs_agent_bundle() -> BenchmarkBundle:
    """Return two team sessions, for people, for people with an assistant, and for a mixed team."""
    return BenchmarkBundle(
        bundle_id="human-vs-agent",
        name="People and agents",
        description="Sessions that a team can work with or without agents in it.",
        problem_ids=("teaming-session-a", "teaming-session-b"),
        agent_specs=("human-only", "ai-assisted", "hybrid-team"),
        metadata={"domain": "teaming"},
    )
