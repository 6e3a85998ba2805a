"""What type checkers see of the lazy public API; kept equal to `_HOMES` by a test."""

from fairtrial.agents.forms import (
    for_condition as for_condition,
)
from fairtrial.agents.optimise.agent import (
    Optimise as Optimise,
)
from fairtrial.agents.output import (
    AgentOutput as AgentOutput,
)
from fairtrial.agents.output import (
    agent_result as agent_result,
)
from fairtrial.agents.task import (
    Task as Task,
)
from fairtrial.arena.arena import (
    Arena as Arena,
)
from fairtrial.arena.checks.calls import (
    record_call as record_call,
)
from fairtrial.arena.checks.calls import (
    write_calls as write_calls,
)
from fairtrial.arena.contest import (
    time_candidate as time_candidate,
)
from fairtrial.arena.duels import (
    Comparison as Comparison,
)
from fairtrial.arena.duels import (
    SelfTest as SelfTest,
)
from fairtrial.arena.duels import (
    check_clock as check_clock,
)
from fairtrial.arena.duels import (
    compare_candidates as compare_candidates,
)
from fairtrial.arena.evaluation import (
    Evaluation as Evaluation,
)
from fairtrial.arena.evaluation import (
    evaluate_candidates as evaluate_candidates,
)
from fairtrial.arena.evaluation import (
    judge_candidates as judge_candidates,
)
from fairtrial.arena.opening import (
    open_arena as open_arena,
)
from fairtrial.arena.proposals.folders import (
    read_candidate as read_candidate,
)
from fairtrial.arena.settings import (
    ArenaSettings as ArenaSettings,
)
from fairtrial.arena.slots.worktrees import (
    WorktreePool as WorktreePool,
)
from fairtrial.arena.slots.worktrees import (
    WorktreeSlot as WorktreeSlot,
)
from fairtrial.design.balance import (
    balance_report as balance_report,
)
from fairtrial.design.build import (
    build_design as build_design,
)
from fairtrial.design.build import (
    materialize_conditions as materialize_conditions,
)
from fairtrial.design.doe import (
    generate_doe as generate_doe,
)
from fairtrial.design.schedule import (
    count_runs as count_runs,
)
from fairtrial.design.schedule import (
    execution_order as execution_order,
)
from fairtrial.design.schedule import (
    plan_runs as plan_runs,
)
from fairtrial.design.table import (
    number_rows as number_rows,
)
from fairtrial.engine.preparing import (
    DryRunReport as DryRunReport,
)
from fairtrial.engine.preparing import (
    dry_run_validate as dry_run_validate,
)
from fairtrial.engine.rescoring import (
    rescore_study as rescore_study,
)
from fairtrial.engine.run import (
    resume_study as resume_study,
)
from fairtrial.engine.run import (
    run_study as run_study,
)
from fairtrial.engine.seeding import (
    reproducible_seed as reproducible_seed,
)
from fairtrial.errors import (
    Broken as Broken,
)
from fairtrial.errors import (
    FairtrialError as FairtrialError,
)
from fairtrial.errors import (
    LabError as LabError,
)
from fairtrial.errors import (
    LedgerError as LedgerError,
)
from fairtrial.errors import (
    Mistake as Mistake,
)
from fairtrial.errors import (
    PluginError as PluginError,
)
from fairtrial.errors import (
    StudyError as StudyError,
)
from fairtrial.loading import (
    StudyWarning as StudyWarning,
)
from fairtrial.loading import (
    load_study as load_study,
)
from fairtrial.loading import (
    problem_schema as problem_schema,
)
from fairtrial.loading import (
    study_schema as study_schema,
)
from fairtrial.loading.problems import (
    load_problem as load_problem,
)
from fairtrial.model.candidates import (
    Candidate as Candidate,
)
from fairtrial.model.candidates import (
    FileState as FileState,
)
from fairtrial.model.claims import (
    AnalysisPlan as AnalysisPlan,
)
from fairtrial.model.claims import (
    Contrast as Contrast,
)
from fairtrial.model.claims import (
    Hypothesis as Hypothesis,
)
from fairtrial.model.claims import (
    HypothesisDirection as HypothesisDirection,
)
from fairtrial.model.claims import (
    HypothesisKind as HypothesisKind,
)
from fairtrial.model.claims import (
    Mediator as Mediator,
)
from fairtrial.model.claims import (
    Moderator as Moderator,
)
from fairtrial.model.claims import (
    OutcomeSpec as OutcomeSpec,
)
from fairtrial.model.code import (
    Benchmark as Benchmark,
)
from fairtrial.model.code import (
    Check as Check,
)
from fairtrial.model.code import (
    CodeProblem as CodeProblem,
)
from fairtrial.model.commands import (
    Command as Command,
)
from fairtrial.model.commands import (
    Completed as Completed,
)
from fairtrial.model.commands import (
    Limits as Limits,
)
from fairtrial.model.commands import (
    Mount as Mount,
)
from fairtrial.model.commands import (
    View as View,
)
from fairtrial.model.conditions import (
    Condition as Condition,
)
from fairtrial.model.conditions import (
    DesignRow as DesignRow,
)
from fairtrial.model.conditions import (
    DesignTable as DesignTable,
)
from fairtrial.model.factors import (
    Block as Block,
)
from fairtrial.model.factors import (
    Constraint as Constraint,
)
from fairtrial.model.factors import (
    ConstraintSeverity as ConstraintSeverity,
)
from fairtrial.model.factors import (
    DesignKind as DesignKind,
)
from fairtrial.model.factors import (
    DesignSpec as DesignSpec,
)
from fairtrial.model.factors import (
    Factor as Factor,
)
from fairtrial.model.factors import (
    FactorKind as FactorKind,
)
from fairtrial.model.factors import (
    Level as Level,
)
from fairtrial.model.identity import (
    canonical_json as canonical_json,
)
from fairtrial.model.judgements import (
    Judgement as Judgement,
)
from fairtrial.model.proposals import (
    Brief as Brief,
)
from fairtrial.model.proposals import (
    Reply as Reply,
)
from fairtrial.model.proposals import (
    Request as Request,
)
from fairtrial.model.proposals import (
    RequestKind as RequestKind,
)
from fairtrial.model.proposals import (
    Tried as Tried,
)
from fairtrial.model.proposals import (
    Usage as Usage,
)
from fairtrial.model.runs import (
    Assignment as Assignment,
)
from fairtrial.model.runs import (
    Emitted as Emitted,
)
from fairtrial.model.runs import (
    FailureKind as FailureKind,
)
from fairtrial.model.runs import (
    Finished as Finished,
)
from fairtrial.model.runs import (
    Noted as Noted,
)
from fairtrial.model.runs import (
    RunOutput as RunOutput,
)
from fairtrial.model.runs import (
    RunResult as RunResult,
)
from fairtrial.model.runs import (
    RunSpec as RunSpec,
)
from fairtrial.model.runs import (
    RunStatus as RunStatus,
)
from fairtrial.model.study import (
    AgentBinding as AgentBinding,
)
from fairtrial.model.study import (
    ProblemBinding as ProblemBinding,
)
from fairtrial.model.study import (
    RunBudget as RunBudget,
)
from fairtrial.model.study import (
    SeedPolicy as SeedPolicy,
)
from fairtrial.model.study import (
    Study as Study,
)
from fairtrial.model.timings import (
    Estimate as Estimate,
)
from fairtrial.model.timings import (
    Measurement as Measurement,
)
from fairtrial.model.timings import (
    Sample as Sample,
)
from fairtrial.model.timings import (
    Session as Session,
)
from fairtrial.model.timings import (
    Timing as Timing,
)
from fairtrial.model.verdicts import (
    Basis as Basis,
)
from fairtrial.model.verdicts import (
    Difference as Difference,
)
from fairtrial.model.verdicts import (
    Failure as Failure,
)
from fairtrial.model.verdicts import (
    Reason as Reason,
)
from fairtrial.model.verdicts import (
    Rejection as Rejection,
)
from fairtrial.model.verdicts import (
    Verdict as Verdict,
)
from fairtrial.problems.packet import (
    ProblemPacket as ProblemPacket,
)
from fairtrial.problems.packet import (
    resolve_problem as resolve_problem,
)
from fairtrial.prospect import (
    HypothesisPower as HypothesisPower,
)
from fairtrial.prospect import (
    hypothesis_power as hypothesis_power,
)
from fairtrial.protocols import (
    Agent as Agent,
)
from fairtrial.protocols import (
    ConditionRunner as ConditionRunner,
)
from fairtrial.protocols import (
    Design as Design,
)
from fairtrial.protocols import (
    Executor as Executor,
)
from fairtrial.protocols import (
    Problem as Problem,
)
from fairtrial.protocols import (
    Proposer as Proposer,
)
from fairtrial.protocols import (
    Sandbox as Sandbox,
)
from fairtrial.recipes import (
    AgentArchitectureComparisonConfig as AgentArchitectureComparisonConfig,
)
from fairtrial.recipes import (
    BenchmarkBundle as BenchmarkBundle,
)
from fairtrial.recipes import (
    BivariateComparisonConfig as BivariateComparisonConfig,
)
from fairtrial.recipes import (
    ComparisonStudyConfig as ComparisonStudyConfig,
)
from fairtrial.recipes import (
    DiversityAndExplorationConfig as DiversityAndExplorationConfig,
)
from fairtrial.recipes import (
    GrammarScaffoldConfig as GrammarScaffoldConfig,
)
from fairtrial.recipes import (
    HumanVsAgentProcessConfig as HumanVsAgentProcessConfig,
)
from fairtrial.recipes import (
    OptimizationBenchmarkConfig as OptimizationBenchmarkConfig,
)
from fairtrial.recipes import (
    PromptFramingConfig as PromptFramingConfig,
)
from fairtrial.recipes import (
    RecipeStudyConfig as RecipeStudyConfig,
)
from fairtrial.recipes import (
    StrategyComparisonConfig as StrategyComparisonConfig,
)
from fairtrial.recipes import (
    UnivariateComparisonConfig as UnivariateComparisonConfig,
)
from fairtrial.recipes import (
    build_agent_architecture_comparison_study as build_agent_architecture_comparison_study,
)
from fairtrial.recipes import (
    build_bivariate_comparison_study as build_bivariate_comparison_study,
)
from fairtrial.recipes import (
    build_diversity_and_exploration_study as build_diversity_and_exploration_study,
)
from fairtrial.recipes import (
    build_grammar_scaffold_study as build_grammar_scaffold_study,
)
from fairtrial.recipes import (
    build_human_vs_agent_process_study as build_human_vs_agent_process_study,
)
from fairtrial.recipes import (
    build_optimization_benchmark_study as build_optimization_benchmark_study,
)
from fairtrial.recipes import (
    build_prompt_framing_study as build_prompt_framing_study,
)
from fairtrial.recipes import (
    build_strategy_comparison_study as build_strategy_comparison_study,
)
from fairtrial.recipes import (
    build_univariate_comparison_study as build_univariate_comparison_study,
)
from fairtrial.recipes import (
    grammar_problem_bundle as grammar_problem_bundle,
)
from fairtrial.recipes import (
    human_vs_agent_bundle as human_vs_agent_bundle,
)
from fairtrial.recipes import (
    ideation_bundle as ideation_bundle,
)
from fairtrial.recipes import (
    optimization_bundle as optimization_bundle,
)
from fairtrial.report.codebook import (
    render_codebook as render_codebook,
)
from fairtrial.report.findings import (
    render_significance_brief as render_significance_brief,
)
from fairtrial.report.hypotheses import (
    judge_hypotheses as judge_hypotheses,
)
from fairtrial.report.hypothesis import (
    HypothesisTest as HypothesisTest,
)
from fairtrial.report.markdown import (
    full_report as full_report,
)
from fairtrial.report.markdown import (
    write_markdown_report as write_markdown_report,
)
from fairtrial.report.methods import (
    render_methods_scaffold as render_methods_scaffold,
)
from fairtrial.report.summary import (
    render_markdown_summary as render_markdown_summary,
)
from fairtrial.sandbox.process import (
    run_command as run_command,
)
from fairtrial.tables.bundle import (
    bundle_results as bundle_results,
)
from fairtrial.tables.export import (
    export_analysis_tables as export_analysis_tables,
)
from fairtrial.tables.results import (
    Results as Results,
)
from fairtrial.tables.results import (
    open_results as open_results,
)
from fairtrial.tables.samples import (
    recompute as recompute,
)
from fairtrial.validation import (
    validate_study as validate_study,
)

__version__: str
