"""Ready-made comparisons: one thing against another, with one of them marked as the baseline."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from fairtrial.compat.recipes.bundles import BenchmarkBundle, ideation_bundle, optimization_bundle
from fairtrial.compat.recipes.config import (
    BivariateComparisonConfig,
    ComparisonStudyConfig,
    StrategyComparisonConfig,
    UnivariateComparisonConfig,
)
from fairtrial.compat.recipes.recipe import PLAN, Recipe
from fairtrial.core import Mistake, StudyError
from fairtrial.study import (
    AGENT_FACTORS,
    PROBLEM_FACTORS,
    DesignKind,
    DesignSpec,
    Factor,
    Hypothesis,
    HypothesisKind,
    Level,
    Study,
)

DESIGN = DesignSpec(kind=DesignKind.CONSTRAINED_FACTORIAL, randomize=True)


def make_axis(name: str, description: str, values: Sequence[str], baseline: str) -> Factor:
    """A factor whose levels are marked as baseline and treatments, for reports to compare."""
    slugs = [re.sub(r"[^a-z0-9]+", "_", value.lower()).strip("_") for value in values]
    distinct = all(slugs) and len(set(slugs)) == len(slugs)
    levels = [
        Level(
            name=slug if distinct else value,
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


ARM = make_axis(
    "comparison_arm",
    "Which of the two things under comparison a run gets.",
    ("baseline", "treatment"),
    baseline="baseline",
)
REGIME = make_axis(
    "prompt_regime",
    "How the task is put to the agent.",
    ("standard", "structured"),
    baseline="standard",
)
UNIVARIATE = Recipe(
    study_id="univariate-comparison",
    title="Univariate Comparison Study",
    description="Changes one thing and leaves everything else as it was.",
    rationale="The smallest study that can tell whether a change makes a difference.",
    tags=("comparison", "univariate"),
    claim=Hypothesis(
        hypothesis_id="h1",
        label="The change matters",
        statement="Runs with the change score differently from runs without it.",
    ),
    factors=(ARM,),
    design_spec=DESIGN,
    base_seed=37,
)
BIVARIATE = Recipe(
    study_id="bivariate-comparison",
    title="Bivariate Comparison Study",
    description="Changes two things, alone and together.",
    rationale="Two changes can help or hinder each other; only a crossed study shows that.",
    tags=("comparison", "bivariate"),
    claim=Hypothesis(
        hypothesis_id="h1",
        label="The two changes matter",
        statement="Scores depend on the two factors, each by itself or in combination.",
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
    description="Sets the agents of a bundle against each other on the bundle's problems.",
    rationale="Which agent to use is best settled on the same problems with the same seeds.",
    tags=("comparison", "strategy", "benchmark"),
    claim=Hypothesis(
        hypothesis_id="h1",
        label="The agent matters",
        statement="Agents differ in their scores over all problems of the bundle.",
        kind=HypothesisKind.ROBUSTNESS,
    ),
    factors=(),
    design_spec=DESIGN,
    base_seed=37,
)


def build_univariate_comparison_study(config: UnivariateComparisonConfig | None = None) -> Study:
    """One factor, a baseline against a treatment, with the first agent of a bundle."""
    config = config or ComparisonStudyConfig()
    bundle = config.bundle or ideation_bundle()
    return _compare(UNIVARIATE, config, bundle, _first_agent(bundle))


def build_bivariate_comparison_study(config: BivariateComparisonConfig | None = None) -> Study:
    """Two crossed factors, each with a baseline, with the first agent of a bundle."""
    config = config or ComparisonStudyConfig()
    bundle = config.bundle or ideation_bundle()
    return _compare(BIVARIATE, config, bundle, _first_agent(bundle))


def build_strategy_comparison_study(config: StrategyComparisonConfig | None = None) -> Study:
    """The agents of a bundle against each other; the factor is `agent_id`."""
    config = config or ComparisonStudyConfig()
    bundle = config.bundle or optimization_bundle()
    recipe = STRATEGY
    if config.factors is None and config.comparison_factor is None:
        recipe = replace(STRATEGY, factors=(_agent_axis(bundle),))
    return _compare(recipe, config, bundle, bundle.agent_specs)


def _first_agent(bundle: BenchmarkBundle) -> tuple[str, ...]:
    return bundle.agent_specs[:1] or ("default-agent",)


def _agent_axis(bundle: BenchmarkBundle) -> Factor:
    """The bundle's agents as a factor; the baseline is the one that is named so, else the first."""
    agents = bundle.agent_specs
    if not agents:
        raise StudyError(
            Mistake(
                ("bundle", "agent_specs"),
                f"bundle '{bundle.bundle_id}' has no agents to compare",
                "add some, or give a comparison_factor",
            )
        )
    plain = [name for name in agents if re.search("baseline|random", name.lower())]
    return make_axis("agent_id", "Which agent runs.", agents, baseline=(plain or agents)[0])


def _compare(
    recipe: Recipe,
    config: ComparisonStudyConfig,
    bundle: BenchmarkBundle,
    agent_specs: tuple[str, ...],
) -> Study:
    """The recipe's study, where factors that name agents or problems take the lists' place."""
    factors = config.factors
    if factors is None:
        factors = _with_axes(recipe.factors, config)
    names = {factor.name for factor in factors}
    # `or`, not `is None`: a comparison without any problem or agent falls back on the bundle's.
    problem_ids = config.problem_ids or bundle.problem_ids
    agent_specs = config.agent_specs or agent_specs
    filled = replace(
        config,
        factors=factors,
        problem_ids=() if names & set(PROBLEM_FACTORS) else problem_ids,
        agent_specs=() if names & set(AGENT_FACTORS) else agent_specs,
    )
    return recipe.study(filled)


def _with_axes(factors: tuple[Factor, ...], config: ComparisonStudyConfig) -> tuple[Factor, ...]:
    """`factors` with the first and the second replaced, or added, as the config says."""
    first, second = config.comparison_factor, config.secondary_factor
    if first is not None:
        factors = (first, *factors[1:])
    if second is not None:
        factors = (*factors[:1], second, *factors[2:])
    return factors
