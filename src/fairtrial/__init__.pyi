"""What type checkers see of the lazy public API; kept equal to `_HOMES` by a test."""

from fairtrial.arena.arena import (
    Arena as Arena,
)
from fairtrial.arena.candidates.folders import (
    read_candidate as read_candidate,
)
from fairtrial.arena.checks.recorded_calls import (
    record_call as record_call,
)
from fairtrial.arena.checks.recorded_calls import (
    write_calls as write_calls,
)
from fairtrial.arena.comparison import (
    Comparison as Comparison,
)
from fairtrial.arena.comparison import (
    SelfTest as SelfTest,
)
from fairtrial.arena.comparison import (
    check_clock as check_clock,
)
from fairtrial.arena.comparison import (
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
from fairtrial.arena.model.candidates import (
    Candidate as Candidate,
)
from fairtrial.arena.model.candidates import (
    FileState as FileState,
)
from fairtrial.arena.model.judgements import (
    Judgement as Judgement,
)
from fairtrial.arena.model.problem import (
    Benchmark as Benchmark,
)
from fairtrial.arena.model.problem import (
    Check as Check,
)
from fairtrial.arena.model.problem import (
    CodeProblem as CodeProblem,
)
from fairtrial.arena.model.timings import (
    Estimate as Estimate,
)
from fairtrial.arena.model.timings import (
    Measurement as Measurement,
)
from fairtrial.arena.model.timings import (
    Sample as Sample,
)
from fairtrial.arena.model.timings import (
    Session as Session,
)
from fairtrial.arena.model.timings import (
    Timing as Timing,
)
from fairtrial.arena.model.verdicts import (
    Basis as Basis,
)
from fairtrial.arena.model.verdicts import (
    Difference as Difference,
)
from fairtrial.arena.model.verdicts import (
    Failure as Failure,
)
from fairtrial.arena.model.verdicts import (
    Reason as Reason,
)
from fairtrial.arena.model.verdicts import (
    Rejection as Rejection,
)
from fairtrial.arena.model.verdicts import (
    Verdict as Verdict,
)
from fairtrial.arena.opening import (
    open_arena as open_arena,
)
from fairtrial.arena.problem_files import (
    load_problem as load_problem,
)
from fairtrial.arena.settings import (
    ArenaSettings as ArenaSettings,
)
from fairtrial.arena.slots.pool import (
    WorktreePool as WorktreePool,
)
from fairtrial.arena.slots.pool import (
    WorktreeSlot as WorktreeSlot,
)
from fairtrial.arena.timing.samples_table import (
    recompute as recompute,
)
from fairtrial.arena.timing_phase import (
    time_candidate as time_candidate,
)
from fairtrial.compat.recipes import (
    AgentArchitectureComparisonConfig as AgentArchitectureComparisonConfig,
)
from fairtrial.compat.recipes import (
    BenchmarkBundle as BenchmarkBundle,
)
from fairtrial.compat.recipes import (
    BivariateComparisonConfig as BivariateComparisonConfig,
)
from fairtrial.compat.recipes import (
    ComparisonStudyConfig as ComparisonStudyConfig,
)
from fairtrial.compat.recipes import (
    DiversityAndExplorationConfig as DiversityAndExplorationConfig,
)
from fairtrial.compat.recipes import (
    GrammarScaffoldConfig as GrammarScaffoldConfig,
)
from fairtrial.compat.recipes import (
    HumanVsAgentProcessConfig as HumanVsAgentProcessConfig,
)
from fairtrial.compat.recipes import (
    OptimizationBenchmarkConfig as OptimizationBenchmarkConfig,
)
from fairtrial.compat.recipes import (
    PromptFramingConfig as PromptFramingConfig,
)
from fairtrial.compat.recipes import (
    RecipeStudyConfig as RecipeStudyConfig,
)
from fairtrial.compat.recipes import (
    StrategyComparisonConfig as StrategyComparisonConfig,
)
from fairtrial.compat.recipes import (
    UnivariateComparisonConfig as UnivariateComparisonConfig,
)
from fairtrial.compat.recipes import (
    build_agent_architecture_comparison_study as build_agent_architecture_comparison_study,
)
from fairtrial.compat.recipes import (
    build_bivariate_comparison_study as build_bivariate_comparison_study,
)
from fairtrial.compat.recipes import (
    build_diversity_and_exploration_study as build_diversity_and_exploration_study,
)
from fairtrial.compat.recipes import (
    build_grammar_scaffold_study as build_grammar_scaffold_study,
)
from fairtrial.compat.recipes import (
    build_human_vs_agent_process_study as build_human_vs_agent_process_study,
)
from fairtrial.compat.recipes import (
    build_optimization_benchmark_study as build_optimization_benchmark_study,
)
from fairtrial.compat.recipes import (
    build_prompt_framing_study as build_prompt_framing_study,
)
from fairtrial.compat.recipes import (
    build_strategy_comparison_study as build_strategy_comparison_study,
)
from fairtrial.compat.recipes import (
    build_univariate_comparison_study as build_univariate_comparison_study,
)
from fairtrial.compat.recipes import (
    grammar_problem_bundle as grammar_problem_bundle,
)
from fairtrial.compat.recipes import (
    human_vs_agent_bundle as human_vs_agent_bundle,
)
from fairtrial.compat.recipes import (
    ideation_bundle as ideation_bundle,
)
from fairtrial.compat.recipes import (
    optimization_bundle as optimization_bundle,
)
from fairtrial.core.errors import (
    Broken as Broken,
)
from fairtrial.core.errors import (
    FairtrialError as FairtrialError,
)
from fairtrial.core.errors import (
    LabError as LabError,
)
from fairtrial.core.errors import (
    LedgerError as LedgerError,
)
from fairtrial.core.errors import (
    Mistake as Mistake,
)
from fairtrial.core.errors import (
    PluginError as PluginError,
)
from fairtrial.core.errors import (
    StudyError as StudyError,
)
from fairtrial.optimize.optimizer import (
    Optimise as Optimise,
)
from fairtrial.optimize.proposals import (
    Brief as Brief,
)
from fairtrial.optimize.proposals import (
    Reply as Reply,
)
from fairtrial.optimize.proposals import (
    Request as Request,
)
from fairtrial.optimize.proposals import (
    RequestKind as RequestKind,
)
from fairtrial.optimize.proposals import (
    Tried as Tried,
)
from fairtrial.optimize.proposals import (
    Usage as Usage,
)
from fairtrial.sandbox.commands import (
    Command as Command,
)
from fairtrial.sandbox.commands import (
    Completed as Completed,
)
from fairtrial.sandbox.commands import (
    Limits as Limits,
)
from fairtrial.sandbox.commands import (
    Mount as Mount,
)
from fairtrial.sandbox.commands import (
    View as View,
)
from fairtrial.sandbox.process import (
    run_command as run_command,
)
from fairtrial.study.agents.call_forms import (
    for_condition as for_condition,
)
from fairtrial.study.agents.output import (
    AgentOutput as AgentOutput,
)
from fairtrial.study.agents.output import (
    agent_result as agent_result,
)
from fairtrial.study.agents.task import (
    Task as Task,
)
from fairtrial.study.design.balance import (
    balance_report as balance_report,
)
from fairtrial.study.design.build import (
    build_design as build_design,
)
from fairtrial.study.design.build import (
    materialize_conditions as materialize_conditions,
)
from fairtrial.study.design.doe import (
    generate_doe as generate_doe,
)
from fairtrial.study.design.rows import (
    number_rows as number_rows,
)
from fairtrial.study.design.runs import (
    count_runs as count_runs,
)
from fairtrial.study.design.runs import (
    execution_order as execution_order,
)
from fairtrial.study.design.runs import (
    plan_runs as plan_runs,
)
from fairtrial.study.files import (
    StudyWarning as StudyWarning,
)
from fairtrial.study.files import (
    load_study as load_study,
)
from fairtrial.study.files import (
    problem_schema as problem_schema,
)
from fairtrial.study.files import (
    study_schema as study_schema,
)
from fairtrial.study.model.conditions import (
    Condition as Condition,
)
from fairtrial.study.model.conditions import (
    DesignRow as DesignRow,
)
from fairtrial.study.model.conditions import (
    DesignTable as DesignTable,
)
from fairtrial.study.model.factors import (
    Block as Block,
)
from fairtrial.study.model.factors import (
    Constraint as Constraint,
)
from fairtrial.study.model.factors import (
    ConstraintSeverity as ConstraintSeverity,
)
from fairtrial.study.model.factors import (
    DesignKind as DesignKind,
)
from fairtrial.study.model.factors import (
    DesignSpec as DesignSpec,
)
from fairtrial.study.model.factors import (
    Factor as Factor,
)
from fairtrial.study.model.factors import (
    FactorKind as FactorKind,
)
from fairtrial.study.model.factors import (
    Level as Level,
)
from fairtrial.study.model.hypotheses import (
    AnalysisPlan as AnalysisPlan,
)
from fairtrial.study.model.hypotheses import (
    Contrast as Contrast,
)
from fairtrial.study.model.hypotheses import (
    Hypothesis as Hypothesis,
)
from fairtrial.study.model.hypotheses import (
    HypothesisDirection as HypothesisDirection,
)
from fairtrial.study.model.hypotheses import (
    HypothesisKind as HypothesisKind,
)
from fairtrial.study.model.hypotheses import (
    Mediator as Mediator,
)
from fairtrial.study.model.hypotheses import (
    Moderator as Moderator,
)
from fairtrial.study.model.hypotheses import (
    OutcomeSpec as OutcomeSpec,
)
from fairtrial.study.model.identity import (
    canonical_json as canonical_json,
)
from fairtrial.study.model.runs import (
    Assignment as Assignment,
)
from fairtrial.study.model.runs import (
    Emitted as Emitted,
)
from fairtrial.study.model.runs import (
    FailureKind as FailureKind,
)
from fairtrial.study.model.runs import (
    Finished as Finished,
)
from fairtrial.study.model.runs import (
    Noted as Noted,
)
from fairtrial.study.model.runs import (
    RunOutput as RunOutput,
)
from fairtrial.study.model.runs import (
    RunResult as RunResult,
)
from fairtrial.study.model.runs import (
    RunSpec as RunSpec,
)
from fairtrial.study.model.runs import (
    RunStatus as RunStatus,
)
from fairtrial.study.model.study import (
    AgentBinding as AgentBinding,
)
from fairtrial.study.model.study import (
    ProblemBinding as ProblemBinding,
)
from fairtrial.study.model.study import (
    RunBudget as RunBudget,
)
from fairtrial.study.model.study import (
    SeedPolicy as SeedPolicy,
)
from fairtrial.study.model.study import (
    Study as Study,
)
from fairtrial.study.power import (
    HypothesisPower as HypothesisPower,
)
from fairtrial.study.power import (
    hypothesis_power as hypothesis_power,
)
from fairtrial.study.problems.packet import (
    ProblemPacket as ProblemPacket,
)
from fairtrial.study.problems.packet import (
    resolve_problem as resolve_problem,
)
from fairtrial.study.protocols import (
    Agent as Agent,
)
from fairtrial.study.protocols import (
    ConditionRunner as ConditionRunner,
)
from fairtrial.study.protocols import (
    Design as Design,
)
from fairtrial.study.protocols import (
    Executor as Executor,
)
from fairtrial.study.protocols import (
    Problem as Problem,
)
from fairtrial.study.protocols import (
    Proposer as Proposer,
)
from fairtrial.study.protocols import (
    Sandbox as Sandbox,
)
from fairtrial.study.report.codebook import (
    render_codebook as render_codebook,
)
from fairtrial.study.report.findings import (
    render_significance_brief as render_significance_brief,
)
from fairtrial.study.report.hypotheses import (
    judge_hypotheses as judge_hypotheses,
)
from fairtrial.study.report.hypothesis import (
    HypothesisTest as HypothesisTest,
)
from fairtrial.study.report.markdown import (
    full_report as full_report,
)
from fairtrial.study.report.markdown import (
    write_markdown_report as write_markdown_report,
)
from fairtrial.study.report.methods import (
    render_methods_scaffold as render_methods_scaffold,
)
from fairtrial.study.report.summary import (
    render_markdown_summary as render_markdown_summary,
)
from fairtrial.study.runner.preparation import (
    DryRunReport as DryRunReport,
)
from fairtrial.study.runner.preparation import (
    dry_run_validate as dry_run_validate,
)
from fairtrial.study.runner.rescoring import (
    rescore_study as rescore_study,
)
from fairtrial.study.runner.run import (
    resume_study as resume_study,
)
from fairtrial.study.runner.run import (
    run_study as run_study,
)
from fairtrial.study.runner.seeding import (
    reproducible_seed as reproducible_seed,
)
from fairtrial.study.tables.bundle import (
    bundle_results as bundle_results,
)
from fairtrial.study.tables.export import (
    export_analysis_tables as export_analysis_tables,
)
from fairtrial.study.tables.results import (
    Results as Results,
)
from fairtrial.study.tables.results import (
    open_results as open_results,
)
from fairtrial.study.validation import (
    validate_study as validate_study,
)

__version__: str
