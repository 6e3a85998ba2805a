"""Recipes that compare treatments, or agents, with a baseline."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from fairtrial import DesignKind, DesignSpec, Factor, Hypothesis, Level, Study
from fairtrial.compat.recipes.bundles import BenchmarkBundle, ideation_bundle, optimization_bundle
from fairtrial.compat.recipes.recipe import PLAN, Recipe
from fairtrial.compat.recipes.recipe_config import (
    BivariateComparisonConfig,
    ComparisonStudyConfig,
    StrategyComparisonConfig,
    UnivariateComparisonConfig,
)
from fairtrial.core import Mistake, StudyError
from fairtrial.study import HypothesisKind, design

DESIGN = DesignSpec(kind=DesignKind.CONSTRAINED_FACTORIAL, randomize=True)


def make_comparison_factor(
    name: str, description: str, values: Sequence[str], baseline: str
) -> Factor:
    """Return a factor whose levels are marked as baseline and treatments."""
    slugs = [re.sub(r"[^a-z0-9]+", "_", value.lower()).strip("_") for value in values]
    are_distinct = all(slugs) and len(set(slugs)) == len(slugs)
    levels = [
        Level(
            name=slug if are_distinct else value,
            value=value,
            label=re.sub(r"[-_]+", " ", value).strip().capitalize(),
            metadata={
                "role": "baseline" if value == baseline else "treatment",
                "is_baseline": value == baseline,
            },
        )
        for slug, value in zip(slugs, values, strict=True)
    ]
    return Factor(
        name=name,
        description=description,
        levels=tuple(levels),
        metadata={"comparison_axis": True},
    )


ARM = make_comparison_factor(
    "comparison_arm",
    "Whether a run gets the baseline or the treatment.",
    ("baseline", "treatment"),
    baseline="baseline",
)
REGIME = make_comparison_factor(
    "prompt_regime",
    "How the task is given to the agent.",
    ("standard", "structured"),
    baseline="standard",
)
UNIVARIATE = Recipe(
    study_id="univariate-comparison",
    title="Univariate Comparison Study",
    description="Compares one treatment with a baseline, everything else unchanged.",
    rationale="The smallest study that can show whether a change has an effect.",
    tags=("comparison", "univariate"),
    hypothesis=Hypothesis(
        hypothesis_id="h1",
        label="The treatment has an effect",
        statement="Runs with the treatment score differently from runs without it.",
    ),
    factors=(ARM,),
    design_spec=DESIGN,
    base_seed=37,
)
BIVARIATE = Recipe(
    study_id="bivariate-comparison",
    title="Bivariate Comparison Study",
    description="Crosses two factors, each with a baseline and a treatment.",
    rationale="Two changes may interact, which only a crossed design can show.",
    tags=("comparison", "bivariate"),
    hypothesis=Hypothesis(
        hypothesis_id="h1",
        label="The factors have effects",
        statement="Scores depend on the two factors, alone or in combination.",
    ),
    factors=(ARM, REGIME),
    design_spec=DESIGN,
    base_seed=37,
    plan=replace(
        PLAN,
        plots=("condition_means", "interaction_means"),
        export_tables=("summary_by_condition", "summary_by_interaction"),
    ),
)
STRATEGY = Recipe(
    study_id="strategy-comparison",
    title="Strategy Comparison Study",
    description="Compares the agents of a bundle on the bundle's problems.",
    rationale="Agents are best compared on the same problems with the same seeds.",
    tags=("comparison", "strategy", "benchmark"),
    hypothesis=Hypothesis(
        hypothesis_id="h1",
        label="Agents differ",
        statement="The agents' scores differ over all problems of the bundle.",
        kind=HypothesisKind.ROBUSTNESS,
    ),
    factors=(),
    design_spec=DESIGN,
    base_seed=37,
)


def build_univariate_comparison_study(config: UnivariateComparisonConfig | None = None) -> Study:
    """Return a study of one factor, baseline and treatment, with the first agent of a bundle."""
    return _compare_treatments(UNIVARIATE, config or ComparisonStudyConfig())


def build_bivariate_comparison_study(config: BivariateComparisonConfig | None = None) -> Study:
    """Return a study of two crossed factors, each with a baseline, with a bundle's first agent."""
    return _compare_treatments(BIVARIATE, config or ComparisonStudyConfig())


def build_strategy_comparison_study(config: StrategyComparisonConfig | None = None) -> Study:
    """Return a study that compares the agents of a bundle; the factor is `agent_id`."""
    config = config or ComparisonStudyConfig()
    bundle = config.bundle or optimization_bundle()
    recipe = STRATEGY
    if config.factors is None and config.comparison_factor is None:
        recipe = replace(STRATEGY, factors=(_make_agent_factor(bundle),))
    return _compare(recipe, config, bundle, bundle.agent_specs)


def _compare_treatments(recipe: Recipe, config: ComparisonStudyConfig) -> Study:
    """Return the recipe's study with the problems and the first agent of the config's bundle."""
    bundle = config.bundle or ideation_bundle()
    return _compare(recipe, config, bundle, bundle.agent_specs[:1] or ("default-agent",))


def _make_agent_factor(bundle: BenchmarkBundle) -> Factor:
    """Return the bundle's agents as a factor.

    The baseline is the first agent whose name has `baseline` or `random` in it, else the first.
    """
    agents = bundle.agent_specs
    if not agents:
        raise StudyError(
            Mistake(
                ("bundle", "agent_specs"),
                f"bundle '{bundle.bundle_id}' has no agents to compare",
                "add some, or give a comparison_factor",
            )
        )
    baselines = [name for name in agents if re.search("baseline|random", name.lower())]
    return make_comparison_factor(
        "agent_id", "Which agent runs.", agents, baseline=(baselines or agents)[0]
    )


def _compare(
    recipe: Recipe,
    config: ComparisonStudyConfig,
    bundle: BenchmarkBundle,
    agent_specs: tuple[str, ...],
) -> Study:
    """Return the recipe's study; a factor of agents or problems replaces the list of them."""
    factors = config.factors
    if factors is None:
        factors = _replace_factors(recipe.factors, config)
    names = {factor.name for factor in factors}
    # Also an empty list of problems or agents is replaced by that of the bundle.
    problem_ids = config.problem_ids or bundle.problem_ids
    agent_specs = config.agent_specs or agent_specs
    completed = replace(
        config,
        factors=factors,
        problem_ids=() if names & set(design.PROBLEM_FACTORS) else problem_ids,
        agent_specs=() if names & set(design.AGENT_FACTORS) else agent_specs,
    )
    return recipe.study(completed)


def _replace_factors(
    factors: tuple[Factor, ...], config: ComparisonStudyConfig
) -> tuple[Factor, ...]:
    """Return the factors with the first and second replaced, or added, by those of the config."""
    first, second = config.comparison_factor, config.secondary_factor
    if first is not None:
        factors = (first, *factors[1:])
    if second is not None:
        factors = (*factors[:1], second, *factors[2:])
    return factors
