"""The names of `fairtrial.compat`; `_facade.attach` reads them from here."""

from fairtrial.compat import (
    recipes as recipes,
)
from fairtrial.compat.recipes import (
    AgentArchitectureComparisonConfig as AgentArchitectureComparisonConfig,
    BenchmarkBundle as BenchmarkBundle,
    BivariateComparisonConfig as BivariateComparisonConfig,
    ComparisonStudyConfig as ComparisonStudyConfig,
    DiversityAndExplorationConfig as DiversityAndExplorationConfig,
    GrammarScaffoldConfig as GrammarScaffoldConfig,
    HumanVsAgentProcessConfig as HumanVsAgentProcessConfig,
    OptimizationBenchmarkConfig as OptimizationBenchmarkConfig,
    PromptFramingConfig as PromptFramingConfig,
    RecipeStudyConfig as RecipeStudyConfig,
    StrategyComparisonConfig as StrategyComparisonConfig,
    UnivariateComparisonConfig as UnivariateComparisonConfig,
    build_agent_architecture_comparison_study as build_agent_architecture_comparison_study,
    build_bivariate_comparison_study as build_bivariate_comparison_study,
    build_diversity_and_exploration_study as build_diversity_and_exploration_study,
    build_grammar_scaffold_study as build_grammar_scaffold_study,
    build_human_vs_agent_process_study as build_human_vs_agent_process_study,
    build_optimization_benchmark_study as build_optimization_benchmark_study,
    build_prompt_framing_study as build_prompt_framing_study,
    build_strategy_comparison_study as build_strategy_comparison_study,
    build_univariate_comparison_study as build_univariate_comparison_study,
    grammar_problem_bundle as grammar_problem_bundle,
    human_vs_agent_bundle as human_vs_agent_bundle,
    ideation_bundle as ideation_bundle,
    optimization_bundle as optimization_bundle,
)
