"""The names of `fairtrial.study`; `_facade.attach` reads them from here."""

from fairtrial.study.agents.call_forms import (
    for_condition as for_condition,
)
from fairtrial.study.agents.hooks import (
    AgentHooks as AgentHooks,
)
from fairtrial.study.agents.journal import (
    JournalEntry as JournalEntry,
)
from fairtrial.study.agents.output import (
    AgentOutput as AgentOutput,
    agent_result as agent_result,
)
from fairtrial.study.agents.task import (
    Task as Task,
)
from fairtrial.study.design.agent_options import (
    select_assignments as select_assignments,
)
from fairtrial.study.design.balance import (
    BalanceReport as BalanceReport,
    balance_report as balance_report,
)
from fairtrial.study.design.build import (
    build_design as build_design,
    design_table as design_table,
    materialize_conditions as materialize_conditions,
)
from fairtrial.study.design.doe import (
    generate_doe as generate_doe,
)
from fairtrial.study.design.execution_order import (
    execution_order as execution_order,
)
from fairtrial.study.design.runs import (
    AGENT_FACTORS as AGENT_FACTORS,
    PROBLEM_FACTORS as PROBLEM_FACTORS,
    count_runs as count_runs,
    plan_runs as plan_runs,
)
from fairtrial.study.extensions import (
    ExtraTable as ExtraTable,
    KeywordArgument as KeywordArgument,
    ReportNotes as ReportNotes,
    StudyExtension as StudyExtension,
    TableColumn as TableColumn,
)
from fairtrial.study.files.json_schema import (
    study_schema as study_schema,
)
from fairtrial.study.files.overrides import (
    override as override,
)
from fairtrial.study.files.reading import (
    LoadedStudy as LoadedStudy,
    load_study as load_study,
    read_study as read_study,
)
from fairtrial.study.files.writing import (
    write_study as write_study,
)
from fairtrial.study.ledger.fingerprint import (
    differences as differences,
    study_fingerprint as study_fingerprint,
)
from fairtrial.study.ledger.interim_looks import (
    record_interim_look as record_interim_look,
)
from fairtrial.study.ledger.ledger_summary import (
    Attempt as Attempt,
    Summary as Summary,
    spell_cost as spell_cost,
)
from fairtrial.study.ledger.packing import (
    EventData as EventData,
    pack as pack,
    unpack as unpack,
)
from fairtrial.study.ledger.reader import (
    LedgerReader as LedgerReader,
)
from fairtrial.study.ledger.schema import (
    LEDGER_NAME as LEDGER_NAME,
)
from fairtrial.study.ledger.study_lock import (
    StudyLock as StudyLock,
    describe_lock as describe_lock,
    read_lock as read_lock,
    shorten_digest as shorten_digest,
)
from fairtrial.study.model.conditions import (
    Condition as Condition,
    DesignRow as DesignRow,
    DesignTable as DesignTable,
)
from fairtrial.study.model.expenses import (
    NO_EXPENSE as NO_EXPENSE,
    Expense as Expense,
)
from fairtrial.study.model.factors import (
    DESIGN_ALIASES as DESIGN_ALIASES,
    Block as Block,
    Constraint as Constraint,
    ConstraintSeverity as ConstraintSeverity,
    DesignKind as DesignKind,
    DesignSpec as DesignSpec,
    Factor as Factor,
    FactorKind as FactorKind,
    Level as Level,
)
from fairtrial.study.model.hypotheses import (
    AnalysisPlan as AnalysisPlan,
    Contrast as Contrast,
    Hypothesis as Hypothesis,
    HypothesisDirection as HypothesisDirection,
    HypothesisKind as HypothesisKind,
    Mediator as Mediator,
    Moderator as Moderator,
    OutcomeSpec as OutcomeSpec,
    Stopping as Stopping,
)
from fairtrial.study.model.runs import (
    Assignment as Assignment,
    Emitted as Emitted,
    FailureKind as FailureKind,
    Finished as Finished,
    Noted as Noted,
    Outcome as Outcome,
    Report as Report,
    RunOutput as RunOutput,
    RunResult as RunResult,
    RunSpec as RunSpec,
    RunStatus as RunStatus,
)
from fairtrial.study.model.study import (
    AgentBinding as AgentBinding,
    ProblemBinding as ProblemBinding,
    RunBudget as RunBudget,
    SeedPolicy as SeedPolicy,
    Study as Study,
)
from fairtrial.study.power import (
    HypothesisPower as HypothesisPower,
    hypothesis_power as hypothesis_power,
)
from fairtrial.study.problems.hooks import (
    ProblemHooks as ProblemHooks,
    ProblemReference as ProblemReference,
)
from fairtrial.study.problems.packet import (
    ProblemPacket as ProblemPacket,
    resolve_problem as resolve_problem,
)
from fairtrial.study.protocols import (
    Agent as Agent,
    ConditionRunner as ConditionRunner,
    Design as Design,
    Executor as Executor,
    Problem as Problem,
    Send as Send,
    Work as Work,
)
from fairtrial.study.report.codebook import (
    render_codebook as render_codebook,
)
from fairtrial.study.report.hypothesis_test import (
    HypothesisTest as HypothesisTest,
)
from fairtrial.study.report.hypothesis_testing import (
    judge_hypotheses as judge_hypotheses,
)
from fairtrial.study.report.markdown_text import (
    format_code as format_code,
    format_count as format_count,
)
from fairtrial.study.report.methods_section import (
    render_methods_scaffold as render_methods_scaffold,
)
from fairtrial.study.report.outcome_monitor import (
    OutcomeMonitor as OutcomeMonitor,
)
from fairtrial.study.report.pilot_variances import (
    PilotVariances as PilotVariances,
    apply_pilot as apply_pilot,
    estimate_variances as estimate_variances,
)
from fairtrial.study.report.plan_line import (
    PlanLine as PlanLine,
)
from fairtrial.study.report.plan_summary import (
    PlanSummary as PlanSummary,
    summarize_plan as summarize_plan,
)
from fairtrial.study.report.plan_text import (
    format_plan as format_plan,
    format_plan_changes as format_plan_changes,
)
from fairtrial.study.report.power_text import (
    format_power_curves as format_power_curves,
)
from fairtrial.study.report.report_document import (
    full_report as full_report,
    report_facts as report_facts,
    write_markdown_report as write_markdown_report,
)
from fairtrial.study.report.stale_files import (
    find_stale_files as find_stale_files,
)
from fairtrial.study.report.summary_section import (
    render_markdown_summary as render_markdown_summary,
)
from fairtrial.study.report.test_sections import (
    render_significance_brief as render_significance_brief,
)
from fairtrial.study.runner.bindings import (
    find_plugin_mistakes as find_plugin_mistakes,
)
from fairtrial.study.runner.control import (
    control_study as control_study,
)
from fairtrial.study.runner.locking import (
    lock_study as lock_study,
)
from fairtrial.study.runner.preparation import (
    DryRunReport as DryRunReport,
    dry_run_validate as dry_run_validate,
    prepare as prepare,
)
from fairtrial.study.runner.progress import (
    spell_rate as spell_rate,
    spell_time as spell_time,
)
from fairtrial.study.runner.rescoring import (
    rescore_study as rescore_study,
)
from fairtrial.study.runner.run import (
    execute_study as execute_study,
    resume_study as resume_study,
    run_study as run_study,
)
from fairtrial.study.runner.run_settings import (
    RunSettings as RunSettings,
)
from fairtrial.study.runner.seeding import (
    reproducible_seed as reproducible_seed,
)
from fairtrial.study.runner.session_settings import (
    restore_settings as restore_settings,
)
from fairtrial.study.runner.study_status import (
    StudyStatus as StudyStatus,
    read_status as read_status,
)
from fairtrial.study.stopping.look_events import (
    LookFinished as LookFinished,
)
from fairtrial.study.tables.bundle import (
    bundle_results as bundle_results,
    verify_bundle as verify_bundle,
)
from fairtrial.study.tables.export import (
    COMPLETE_CASES_FOLDER as COMPLETE_CASES_FOLDER,
    export_analysis_tables as export_analysis_tables,
    export_tables as export_tables,
)
from fairtrial.study.tables.results import (
    Results as Results,
    open_results as open_results,
)
from fairtrial.study.tables.rows import (
    Row as Row,
    as_cell as as_cell,
    as_json as as_json,
)
from fairtrial.study.validation import (
    validate_study as validate_study,
)
