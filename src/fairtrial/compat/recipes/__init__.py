"""Ready-made studies: functions that return an ordinary `Study`, to use or to start from.

General layout::

    bundles.py      problems and agents that go together
    config.py       what a user may change about a recipe
    recipe.py       the piece that all recipes are made of
    comparison.py   one, two or many things against a baseline
    studies.py      studies of agents at work
"""

from fairtrial.compat.recipes.bundles import (
    BenchmarkBundle,
    grammar_problem_bundle,
    human_vs_agent_bundle,
    ideation_bundle,
    optimization_bundle,
)
from fairtrial.compat.recipes.comparisons import (
    build_bivariate_comparison_study,
    build_strategy_comparison_study,
    build_univariate_comparison_study,
)
from fairtrial.compat.recipes.config import (
    AgentArchitectureComparisonConfig,
    BivariateComparisonConfig,
    ComparisonStudyConfig,
    DiversityAndExplorationConfig,
    GrammarScaffoldConfig,
    HumanVsAgentProcessConfig,
    OptimizationBenchmarkConfig,
    PromptFramingConfig,
    RecipeStudyConfig,
    StrategyComparisonConfig,
    UnivariateComparisonConfig,
)
from fairtrial.compat.recipes.studies import (
    build_agent_architecture_comparison_study,
    build_diversity_and_exploration_study,
    build_grammar_scaffold_study,
    build_human_vs_agent_process_study,
    build_optimization_benchmark_study,
    build_prompt_framing_study,
)

__all__ = [
    "AgentArchitectureComparisonConfig",
    "BenchmarkBundle",
    "BivariateComparisonConfig",
    "ComparisonStudyConfig",
    "DiversityAndExplorationConfig",
    "GrammarScaffoldConfig",
    "HumanVsAgentProcessConfig",
    "OptimizationBenchmarkConfig",
    "PromptFramingConfig",
    "RecipeStudyConfig",
    "StrategyComparisonConfig",
    "UnivariateComparisonConfig",
    "build_agent_architecture_comparison_study",
    "build_bivariate_comparison_study",
    "build_diversity_and_exploration_study",
    "build_grammar_scaffold_study",
    "build_human_vs_agent_process_study",
    "build_optimization_benchmark_study",
    "build_prompt_framing_study",
    "build_strategy_comparison_study",
    "build_univariate_comparison_study",
    "grammar_problem_bundle",
    "human_vs_agent_bundle",
    "ideation_bundle",
    "optimization_bundle",
]
