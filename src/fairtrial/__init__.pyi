"""What type checkers see of the lazy public API; kept equal to `_HOMES` by a test."""

from fairtrial.errors import (
    FairtrialError as FairtrialError,
    Mistake as Mistake,
    PluginError as PluginError,
    StudyError as StudyError,
)
from fairtrial.model.claims import (
    AnalysisPlan as AnalysisPlan,
    Contrast as Contrast,
    Hypothesis as Hypothesis,
    HypothesisDirection as HypothesisDirection,
    HypothesisKind as HypothesisKind,
    Mediator as Mediator,
    Moderator as Moderator,
    OutcomeSpec as OutcomeSpec,
)
from fairtrial.model.conditions import (
    Condition as Condition,
    DesignRow as DesignRow,
    DesignTable as DesignTable,
)
from fairtrial.model.factors import (
    Block as Block,
    Constraint as Constraint,
    ConstraintSeverity as ConstraintSeverity,
    DesignKind as DesignKind,
    DesignSpec as DesignSpec,
    Factor as Factor,
    FactorKind as FactorKind,
    Level as Level,
)
from fairtrial.model.identity import (
    canonical_json as canonical_json,
)
from fairtrial.model.runs import (
    RunResult as RunResult,
    RunSpec as RunSpec,
    RunStatus as RunStatus,
)
from fairtrial.model.study import (
    AgentBinding as AgentBinding,
    ProblemBinding as ProblemBinding,
    RunBudget as RunBudget,
    SeedPolicy as SeedPolicy,
    Study as Study,
)
from fairtrial.protocols import (
    Design as Design,
)
from fairtrial.design.build import (
    build_design as build_design,
    materialize_conditions as materialize_conditions,
)
from fairtrial.design.doe import (
    generate_doe as generate_doe,
)
from fairtrial.design.schedule import (
    count_runs as count_runs,
    execution_order as execution_order,
    plan_runs as plan_runs,
)
from fairtrial.validation import (
    validate_study as validate_study,
)
from fairtrial.loading import (
    StudyWarning as StudyWarning,
    load_study as load_study,
    study_schema as study_schema,
)
from fairtrial.recipes import (
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

__version__: str
