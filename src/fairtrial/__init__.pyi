"""What type checkers see of the lazy public API; kept equal to `_HOMES` by a test."""

from fairtrial.errors import (
    Broken as Broken,
    FairtrialError as FairtrialError,
    LabError as LabError,
    LedgerError as LedgerError,
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
    FailureKind as FailureKind,
    RunOutput as RunOutput,
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
    Agent as Agent,
    ConditionRunner as ConditionRunner,
    Design as Design,
    Executor as Executor,
    Problem as Problem,
)
from fairtrial.design.balance import (
    balance_report as balance_report,
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
from fairtrial.prospect import (
    HypothesisPower as HypothesisPower,
    hypothesis_power as hypothesis_power,
)
from fairtrial.validation import (
    validate_study as validate_study,
)
from fairtrial.loading import (
    StudyWarning as StudyWarning,
    load_study as load_study,
    study_schema as study_schema,
)
from fairtrial.tables.bundle import (
    bundle_results as bundle_results,
)
from fairtrial.tables.export import (
    export_analysis_tables as export_analysis_tables,
)
from fairtrial.tables.results import (
    Results as Results,
    open_results as open_results,
)
from fairtrial.agents.forms import (
    for_condition as for_condition,
)
from fairtrial.agents.output import (
    AgentOutput as AgentOutput,
    agent_result as agent_result,
)
from fairtrial.agents.task import (
    Task as Task,
)
from fairtrial.problems.packet import (
    ProblemPacket as ProblemPacket,
    resolve_problem as resolve_problem,
)
from fairtrial.engine.preparing import (
    DryRunReport as DryRunReport,
    dry_run_validate as dry_run_validate,
)
from fairtrial.engine.run import (
    resume_study as resume_study,
    run_study as run_study,
)
from fairtrial.engine.seeding import (
    reproducible_seed as reproducible_seed,
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
