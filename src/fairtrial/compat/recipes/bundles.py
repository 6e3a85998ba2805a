"""Bundles: problems and agents that go together, to set a recipe to work on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from fairtrial.core import Mistake, Record, blank


@dataclass(frozen=True, slots=True)
class BenchmarkBundle(Record):
    """A named choice of problems and agents.

    bundle_id: a short name
    name: what reports call it
    description: what it is meant for
    problem_ids: the problems
    agent_specs: the agents
    metadata: anything else
    """

    bundle_id: str
    name: str
    description: str
    problem_ids: tuple[str, ...]
    agent_specs: tuple[str, ...]
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def _mistakes(self) -> Iterator[Mistake]:
        return blank(bundle_id=self.bundle_id, name=self.name)


def ideation_bundle() -> BenchmarkBundle:
    """Three briefs that ask for ideas, and three agents to answer them."""
    return BenchmarkBundle(
        bundle_id="ideation",
        name="Ideation",
        description="Open briefs that have many good answers.",
        problem_ids=("ideation-brief-a", "ideation-brief-b", "ideation-brief-c"),
        agent_specs=("baseline-agent", "creative-agent", "structured-agent"),
        metadata={"domain": "ideation"},
    )


def optimization_bundle() -> BenchmarkBundle:
    """Optimisation problems of three sizes, for an agent that learns and one that doesn't."""
    return BenchmarkBundle(
        bundle_id="optimization",
        name="Optimisation",
        description="One kind of search problem in three sizes: does skill carry over?",
        problem_ids=("optimization-small", "optimization-medium", "optimization-large"),
        agent_specs=("deterministic-baseline", "self-learning-agent"),
        metadata={"domain": "optimization"},
    )


def grammar_problem_bundle() -> BenchmarkBundle:
    """Design tasks without rules, under a grammar, and under a grammar kept by a tool."""
    return BenchmarkBundle(
        bundle_id="grammar",
        name="Grammar",
        description="The same sort of design task with more and more rules about its answer.",
        problem_ids=("grammar-unconstrained", "grammar-guided", "grammar-tool-guided"),
        agent_specs=("direct-llm", "workflow-agent"),
        metadata={"domain": "grammar"},
    )


def human_vs_agent_bundle() -> BenchmarkBundle:
    """Two team sessions, worked by people, by people with an assistant, and by a mixed team."""
    return BenchmarkBundle(
        bundle_id="human-vs-agent",
        name="People and agents",
        description="Sessions that a team can work with or without agents in it.",
        problem_ids=("teaming-session-a", "teaming-session-b"),
        agent_specs=("human-only", "ai-assisted", "hybrid-team"),
        metadata={"domain": "teaming"},
    )
