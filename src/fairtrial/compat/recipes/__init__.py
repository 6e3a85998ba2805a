"""Ready-made studies: functions that return an ordinary `Study`, to use or to start from.

Modules::

    bundles.py             named sets of problems and agents
    recipe_config.py       the parts of a recipe that can be replaced
    recipe.py              what all recipes have in common
    comparison_recipes.py  comparisons of treatments, or of agents, with a baseline
    agent_recipes.py       studies of agents, prompts and teams
"""

from fairtrial.compat.recipes.agent_recipes import (
    build_agent_architecture_comparison_study,
    build_diversity_and_exploration_study,
    build_grammar_scaffold_study,
    build_human_vs_agent_process_study,
    build_optimization_benchmark_study,
    build_prompt_framing_study,
)
from fairtrial.compat.recipes.bundles import (
    BenchmarkBundle,
    grammar_problem_bundle,
    human_vs_agent_bundle,
    ideation_bundle,
    optimization_bundle,
)
from fairtrial.compat.recipes.comparison_recipes import (
    build_bivariate_comparison_study,
    build_strategy_comparison_study,
    build_univariate_comparison_study,
)
from fairtrial.compat.recipes.recipe_config import (
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
