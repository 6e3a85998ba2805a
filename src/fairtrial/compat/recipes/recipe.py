"""What all ready-made studies share, and the little in which they differ."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from fairtrial.compat.recipes.config import RecipeStudyConfig
from fairtrial.study import (
    AnalysisPlan,
    Block,
    DesignSpec,
    Factor,
    Hypothesis,
    Level,
    OutcomeSpec,
    RunBudget,
    SeedPolicy,
    Study,
)

OUTCOMES = (
    OutcomeSpec(
        name="primary_outcome",
        primary=True,
        description="What the problem's evaluator scores; the study is decided by it.",
    ),
    OutcomeSpec(name="latency_s", description="How long a run took, in seconds."),
)
PLAN = AnalysisPlan(
    analysis_plan_id="ap1",
    hypothesis_ids=("h1",),
    tests=("difference_in_means", "regression"),
    multiple_comparison_policy="holm",
    plots=("condition_means",),
    export_tables=("summary_by_condition",),
)


@dataclass(frozen=True, slots=True)
class Recipe:
    """A study that is complete but for what its user wants otherwise.

    claim: the hypothesis, without its variables: those are the study's factors and outcomes
    plan: the analysis plan, without its outcomes, for the same reason
    replicates: those of the run budget
    The other fields are those of `Study`.
    """

    study_id: str
    title: str
    description: str
    rationale: str
    tags: tuple[str, ...]
    claim: Hypothesis
    factors: tuple[Factor, ...]
    design_spec: DesignSpec
    base_seed: int
    blocks: tuple[Block, ...] = ()
    replicates: int = 2
    problem_ids: tuple[str, ...] = ()
    agent_specs: tuple[str, ...] = ()
    plan: AnalysisPlan = PLAN

    def study(self, config: RecipeStudyConfig | None = None) -> Study:
        """The study, with what `config` gives in place of the recipe's own."""
        given = _given(config or RecipeStudyConfig())
        parts: dict[str, Any] = {
            "study_id": self.study_id,
            "title": self.title,
            "description": self.description,
            "rationale": self.rationale,
            "tags": self.tags,
            "factors": self.factors,
            "blocks": self.blocks,
            "design_spec": self.design_spec,
            "outcomes": OUTCOMES,
            "run_budget": RunBudget(replicates=self.replicates),
            "seed_policy": SeedPolicy(base_seed=self.base_seed),
            "problem_ids": self.problem_ids,
            "agent_specs": self.agent_specs,
            **given,
        }
        parts.setdefault("hypotheses", self._hypotheses(parts))
        parts.setdefault("analysis_plans", self._analysis_plans(parts))
        return Study(**parts)

    def _hypotheses(self, parts: dict[str, Any]) -> tuple[Hypothesis, ...]:
        """The claim, about the factors and outcomes that the study ends up with."""
        return (
            replace(
                self.claim,
                independent_vars=tuple(factor.name for factor in parts["factors"]),
                dependent_vars=_decisive(parts["outcomes"]),
            ),
        )

    def _analysis_plans(self, parts: dict[str, Any]) -> tuple[AnalysisPlan, ...]:
        """The plan, for the hypotheses, outcomes and blocks that the study ends up with."""
        if not parts["hypotheses"]:
            return ()
        blocks = {block.name for block in parts["blocks"]}
        return (
            replace(
                self.plan,
                hypothesis_ids=tuple(claim.hypothesis_id for claim in parts["hypotheses"]),
                outcomes=_decisive(parts["outcomes"]),
                random_effects=tuple(name for name in self.plan.random_effects if name in blocks),
            ),
        )


def _given(config: RecipeStudyConfig) -> dict[str, Any]:
    """What a config says about the study, under the study's own field names."""
    of_study = {field.name for field in fields(Study)}
    given = {
        field.name: getattr(config, field.name)
        for field in fields(config)
        if field.name in of_study and getattr(config, field.name) is not None
    }
    if config.bundle is not None:
        given.setdefault("problem_ids", config.bundle.problem_ids)
        given.setdefault("agent_specs", config.bundle.agent_specs)
    return given


def _decisive(outcomes: tuple[OutcomeSpec, ...]) -> tuple[str, ...]:
    """The primary outcomes, or all of them where none is marked."""
    primary = tuple(outcome.name for outcome in outcomes if outcome.primary)
    return primary or tuple(outcome.name for outcome in outcomes)


def make_factor(name: str, description: str, **levels: str) -> Factor:
    """A factor of text levels, given as name=value."""
    return Factor(
        name=name,
        description=description,
        levels=tuple(Level(name=level, value=value) for level, value in levels.items()),
    )
