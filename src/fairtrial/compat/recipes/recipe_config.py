"""Configs: the parts of a ready-made study that can be replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtrial import (
    AnalysisPlan,
    Block,
    Constraint,
    DesignSpec,
    Factor,
    Hypothesis,
    OutcomeSpec,
    RunBudget,
    SeedPolicy,
)
from fairtrial.compat.recipes.bundles import BenchmarkBundle
from fairtrial.core import Record


@dataclass(frozen=True, slots=True)
class RecipeStudyConfig(Record):
    """The parts of a recipe's study to replace; None keeps the recipe's own.

    The fields are those of `Study`. Hypotheses and analysis plans that are not given are adapted to
    the given factors and outcomes, and the output folder to the study_id.

    bundle: problems and agents in place of the recipe's; `problem_ids` and `agent_specs` take
        precedence over it
    """

    study_id: str | None = None
    title: str | None = None
    description: str | None = None
    authors: tuple[str, ...] | None = None
    rationale: str | None = None
    tags: tuple[str, ...] | None = None
    hypotheses: tuple[Hypothesis, ...] | None = None
    factors: tuple[Factor, ...] | None = None
    blocks: tuple[Block, ...] | None = None
    constraints: tuple[Constraint, ...] | None = None
    design_spec: DesignSpec | None = None
    outcomes: tuple[OutcomeSpec, ...] | None = None
    analysis_plans: tuple[AnalysisPlan, ...] | None = None
    run_budget: RunBudget | None = None
    seed_policy: SeedPolicy | None = None
    output_dir: Path | None = None
    provenance_metadata: Mapping[str, Any] | None = None
    notes: str | None = None
    problem_ids: tuple[str, ...] | None = None
    agent_specs: tuple[str, ...] | None = None
    bundle: BenchmarkBundle | None = None


@dataclass(frozen=True, slots=True)
class ComparisonStudyConfig(RecipeStudyConfig):
    """The parts of a comparison recipe's study to replace; None keeps the recipe's own.

    comparison_factor: the factor that is compared, in place of the recipe's first factor
    secondary_factor: a second factor, in place of the recipe's second one or in addition
    """

    comparison_factor: Factor | None = None
    secondary_factor: Factor | None = None


# All recipes can be changed in the same ways, so they share one class, and comparisons another.
# design-research-experiments has a class for each recipe; the names keep code for it working.
UnivariateComparisonConfig = ComparisonStudyConfig
BivariateComparisonConfig = ComparisonStudyConfig
StrategyComparisonConfig = ComparisonStudyConfig
AgentArchitectureComparisonConfig = RecipeStudyConfig
PromptFramingConfig = RecipeStudyConfig
GrammarScaffoldConfig = RecipeStudyConfig
HumanVsAgentProcessConfig = RecipeStudyConfig
DiversityAndExplorationConfig = RecipeStudyConfig
OptimizationBenchmarkConfig = RecipeStudyConfig
