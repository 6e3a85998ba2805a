"""The names of `fairtrial.study`; `_facade.attach` reads them from here."""

from fairtrial.study import (
    agents as agents,
    design as design,
    evaluators as evaluators,
    executors as executors,
    extensions as extensions,
    files as files,
    ledger as ledger,
    page as page,
    problems as problems,
    report as report,
    runner as runner,
    tables as tables,
)
from fairtrial.study.agents.call_forms import (
    for_condition as for_condition,
)
from fairtrial.study.agents.output import (
    AgentOutput as AgentOutput,
    agent_result as agent_result,
)
from fairtrial.study.agents.task import (
    Task as Task,
)
from fairtrial.study.design.balance import (
    BalanceReport as BalanceReport,
    balance_report as balance_report,
)
from fairtrial.study.design.build import (
    build_design as build_design,
    materialize_conditions as materialize_conditions,
)
from fairtrial.study.design.doe import (
    generate_doe as generate_doe,
)
from fairtrial.study.design.execution_order import (
    execution_order as execution_order,
)
from fairtrial.study.design.runs import (
    plan_runs as plan_runs,
)
from fairtrial.study.files.reading import (
    load_study as load_study,
)
from fairtrial.study.ledger.ledger_summary import (
    spell_cost as spell_cost,
)
from fairtrial.study.model.conditions import (
    Condition as Condition,
    DesignRow as DesignRow,
    DesignTable as DesignTable,
)
from fairtrial.study.model.factors import (
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
from fairtrial.study.model.problems import (
    Dataset as Dataset,
    ProblemBinding as ProblemBinding,
)
from fairtrial.study.model.runs import (
    RunOutput as RunOutput,
    RunResult as RunResult,
    RunSpec as RunSpec,
    RunStatus as RunStatus,
)
from fairtrial.study.model.study import (
    AgentBinding as AgentBinding,
    RunBudget as RunBudget,
    SeedPolicy as SeedPolicy,
    Study as Study,
)
from fairtrial.study.power import (
    HypothesisPower as HypothesisPower,
    hypothesis_power as hypothesis_power,
)
from fairtrial.study.problems.packet import (
    ProblemPacket as ProblemPacket,
    resolve_problem as resolve_problem,
)
from fairtrial.study.protocols import (
    ConditionRunner as ConditionRunner,
)
from fairtrial.study.report.codebook import (
    render_codebook as render_codebook,
)
from fairtrial.study.report.hypothesis_sections import (
    render_significance_brief as render_significance_brief,
)
from fairtrial.study.report.hypothesis_test import (
    HypothesisTest as HypothesisTest,
)
from fairtrial.study.report.hypothesis_testing import (
    judge_hypotheses as judge_hypotheses,
)
from fairtrial.study.report.methods_section import (
    render_methods_scaffold as render_methods_scaffold,
)
from fairtrial.study.report.report_document import (
    full_report as full_report,
    write_markdown_report as write_markdown_report,
)
from fairtrial.study.report.summary_section import (
    render_markdown_summary as render_markdown_summary,
)
from fairtrial.study.runner.locking import (
    lock_study as lock_study,
)
from fairtrial.study.runner.preparation import (
    DryRunReport as DryRunReport,
    dry_run_validate as dry_run_validate,
)
from fairtrial.study.runner.rescoring import (
    rescore_study as rescore_study,
)
from fairtrial.study.runner.run import (
    resume_study as resume_study,
    run_study as run_study,
)
from fairtrial.study.runner.seeding import (
    reproducible_seed as reproducible_seed,
)
from fairtrial.study.stopping.look_events import (
    LookFinished as LookFinished,
)
from fairtrial.study.tables.bundle import (
    bundle_results as bundle_results,
)
from fairtrial.study.tables.export import (
    export_analysis_tables as export_analysis_tables,
)
from fairtrial.study.tables.results import (
    Results as Results,
    open_results as open_results,
)
from fairtrial.study.validation import (
    validate_study as validate_study,
)
