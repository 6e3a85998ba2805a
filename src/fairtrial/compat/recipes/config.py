"""What a user may change about a ready-made study."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtrial.compat.recipes.bundles import BenchmarkBundle
from fairtrial.core import Record
from fairtrial.study import (
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


@dataclass(frozen=True, slots=True)
class RecipeStudyConfig(Record):
    """The parts of a recipe's study to replace; None keeps the recipe's own.

    Fields have the names and meanings of the fields of `Study`. Hypotheses, analysis plans and the
    output folder that are not given follow the parts that are: factors, outcomes, study_id.

    bundle: problems and agents to use in place of the recipe's; `problem_ids` and `agent_specs`
        come before it
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

    comparison_factor: what is compared, in place of the recipe's first factor
    secondary_factor: a second thing to compare, in place of the recipe's second factor or beside
        the only one
    """

    comparison_factor: Factor | None = None
    secondary_factor: Factor | None = None


# Every recipe can be changed in the same ways, so one class (and one more for comparisons) serves
# them all. The names exist so that code written for design-research-experiments, which has a class
# for each recipe, moves over by its import alone.
UnivariateComparisonConfig = ComparisonStudyConfig
BivariateComparisonConfig = ComparisonStudyConfig
StrategyComparisonConfig = ComparisonStudyConfig
AgentArchitectureComparisonConfig = RecipeStudyConfig
PromptFramingConfig = RecipeStudyConfig
GrammarScaffoldConfig = RecipeStudyConfig
HumanVsAgentProcessConfig = RecipeStudyConfig
DiversityAndExplorationConfig = RecipeStudyConfig
OptimizationBenchmarkConfig = RecipeStudyConfig
