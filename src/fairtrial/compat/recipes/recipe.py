"""The record of a recipe, from which a ready-made study is made."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from fairtrial import (
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
from fairtrial.compat.recipes.recipe_config import RecipeStudyConfig

OUTCOMES = (
    OutcomeSpec(
        name="primary_outcome",
        primary=True,
        description="The score of the problem's evaluator; the study's primary outcome.",
    ),
    OutcomeSpec(name="latency_s", description="The duration of a run, in seconds."),
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
    """A complete study, of which users may replace parts.

    The fields are those of `Study`, except for these:

    hypothesis: the hypothesis without its variables, which are the study's factors and outcomes
    plan: the analysis plan without its outcomes, which are those of the study
    base_seed: the seed of the seed policy
    replicates: the replicates of the run budget
    """

    study_id: str
    title: str
    description: str
    rationale: str
    tags: tuple[str, ...]
    hypothesis: Hypothesis
    factors: tuple[Factor, ...]
    design_spec: DesignSpec
    base_seed: int
    blocks: tuple[Block, ...] = ()
    replicates: int = 2
    problem_ids: tuple[str, ...] = ()
    agent_specs: tuple[str, ...] = ()
    plan: AnalysisPlan = PLAN

    def study(self, config: RecipeStudyConfig | None = None) -> Study:
        """Return the study, with the parts of `config` in place of the recipe's own."""
        replaced = _collect_parts(config or RecipeStudyConfig())
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
            **replaced,
        }
        parts.setdefault("hypotheses", self._make_hypotheses(parts))
        parts.setdefault("analysis_plans", self._make_plans(parts))
        return Study(**parts)

    def _make_hypotheses(self, parts: dict[str, Any]) -> tuple[Hypothesis, ...]:
        """Return the hypothesis about the study's factors and outcomes."""
        return (
            replace(
                self.hypothesis,
                independent_vars=tuple(factor.name for factor in parts["factors"]),
                dependent_vars=_select_outcomes(parts["outcomes"]),
            ),
        )

    def _make_plans(self, parts: dict[str, Any]) -> tuple[AnalysisPlan, ...]:
        """Return the plan for the study's hypotheses, outcomes and blocks."""
        if not parts["hypotheses"]:
            return ()
        blocks = {block.name for block in parts["blocks"]}
        return (
            replace(
                self.plan,
                hypothesis_ids=tuple(h.hypothesis_id for h in parts["hypotheses"]),
                outcomes=_select_outcomes(parts["outcomes"]),
                random_effects=tuple(name for name in self.plan.random_effects if name in blocks),
            ),
        )


def _collect_parts(config: RecipeStudyConfig) -> dict[str, Any]:
    """Return the parts of the study that a config gives, by the study's field names."""
    study_fields = {field.name for field in fields(Study)}
    parts = {
        field.name: getattr(config, field.name)
        for field in fields(config)
        if field.name in study_fields and getattr(config, field.name) is not None
    }
    if config.bundle is not None:
        parts.setdefault("problem_ids", config.bundle.problem_ids)
        parts.setdefault("agent_specs", config.bundle.agent_specs)
    return parts


def _select_outcomes(outcomes: tuple[OutcomeSpec, ...]) -> tuple[str, ...]:
    """Return the names of the primary outcomes, or of all outcomes if none is primary."""
    primary = tuple(outcome.name for outcome in outcomes if outcome.primary)
    return primary or tuple(outcome.name for outcome in outcomes)


def make_factor(name: str, description: str, **levels: str) -> Factor:
    """Return a factor with text levels, given as name=value."""
    return Factor(
        name=name,
        description=description,
        levels=tuple(Level(name=level, value=value) for level, value in levels.items()),
    )
