"""fairtrial: every candidate gets a fair trial.

General layout::

    fairtrial
    ├ errors        what can go wrong
    ├ model         frozen records: Study, Factor, Hypothesis, ...; ids and seeds
    ├ protocols     the seams that plug-ins fill
    ├ plugins       names to objects
    ├ files         files that are complete or not there
    ├ guest         what runs where candidates run
    ├ sandbox       processes that nobody has to trust
    ├ design        from a study to conditions and runs
    ├ stats         power and tests: pure functions
    ├ prospect      what a plan can be expected to find
    ├ validation    a study against itself
    ├ ledger        what happened, durably
    ├ recipes       ready-made studies
    ├ loading       YAML and JSON files in and out, and their schema
    ├ tables        results as canonical tables, bundles, Python objects
    ├ arena         code candidates: slots, checks, verdicts
    ├ agents        who proposes
    ├ problems      what judges
    ├ engine        from a study to its results
    ├ report        from results to verdicts and text
    ├ testing       suites for third-party executors and sandboxes
    └ cli           the `fairtrial` command

Names below are imported when they are first used: `import fairtrial` costs next to nothing.
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "fairtrial.errors": (
        "Broken FairtrialError LabError LedgerError Mistake PluginError StudyError"
    ),
    "fairtrial.model.candidates": "Candidate FileState",
    "fairtrial.model.claims": (
        "AnalysisPlan Contrast Hypothesis HypothesisDirection HypothesisKind Mediator Moderator "
        "OutcomeSpec"
    ),
    "fairtrial.model.code": "Benchmark Check CodeProblem",
    "fairtrial.model.commands": "Command Completed Limits Mount View",
    "fairtrial.model.conditions": "Condition DesignRow DesignTable",
    "fairtrial.model.factors": (
        "Block Constraint ConstraintSeverity DesignKind DesignSpec Factor FactorKind Level"
    ),
    "fairtrial.model.identity": "canonical_json",
    "fairtrial.model.judgements": "Judgement",
    "fairtrial.model.proposals": "Brief Reply Request RequestKind Tried Usage",
    "fairtrial.model.runs": (
        "Assignment Emitted FailureKind Finished Noted RunOutput RunResult RunSpec RunStatus"
    ),
    "fairtrial.model.study": "AgentBinding ProblemBinding RunBudget SeedPolicy Study",
    "fairtrial.model.timings": "Estimate Measurement Sample Session Timing",
    "fairtrial.model.verdicts": "Basis Difference Failure Reason Rejection Verdict",
    "fairtrial.protocols": "Agent ConditionRunner Design Executor Problem Proposer Sandbox",
    "fairtrial.design.balance": "balance_report",
    "fairtrial.design.build": "build_design materialize_conditions",
    "fairtrial.design.doe": "generate_doe",
    "fairtrial.design.schedule": "count_runs execution_order plan_runs",
    "fairtrial.design.table": "number_rows",
    "fairtrial.prospect": "HypothesisPower hypothesis_power",
    "fairtrial.validation": "validate_study",
    "fairtrial.loading": "StudyWarning load_study problem_schema study_schema",
    "fairtrial.loading.problems": "load_problem",
    "fairtrial.sandbox.process": "run_command",
    "fairtrial.tables.bundle": "bundle_results",
    "fairtrial.tables.export": "export_analysis_tables",
    "fairtrial.tables.results": "Results open_results",
    "fairtrial.tables.samples": "recompute",
    "fairtrial.arena.arena": "Arena",
    "fairtrial.arena.checks.calls": "record_call write_calls",
    "fairtrial.arena.proposals.folders": "read_candidate",
    "fairtrial.arena.contest": "time_candidate",
    "fairtrial.arena.duels": "Comparison SelfTest check_clock compare_candidates",
    "fairtrial.arena.evaluation": "Evaluation evaluate_candidates judge_candidates",
    "fairtrial.arena.opening": "open_arena",
    "fairtrial.arena.settings": "ArenaSettings",
    "fairtrial.arena.slots.worktrees": "WorktreePool WorktreeSlot",
    "fairtrial.agents.optimise.agent": "Optimise",
    "fairtrial.agents.forms": "for_condition",
    "fairtrial.agents.output": "AgentOutput agent_result",
    "fairtrial.agents.task": "Task",
    "fairtrial.problems.packet": "ProblemPacket resolve_problem",
    "fairtrial.engine.preparing": "DryRunReport dry_run_validate",
    "fairtrial.engine.rescoring": "rescore_study",
    "fairtrial.engine.run": "resume_study run_study",
    "fairtrial.engine.seeding": "reproducible_seed",
    "fairtrial.report.codebook": "render_codebook",
    "fairtrial.report.findings": "render_significance_brief",
    "fairtrial.report.hypotheses": "judge_hypotheses",
    "fairtrial.report.hypothesis": "HypothesisTest",
    "fairtrial.report.markdown": "full_report write_markdown_report",
    "fairtrial.report.methods": "render_methods_scaffold",
    "fairtrial.report.summary": "render_markdown_summary",
    "fairtrial.recipes": (
        "AgentArchitectureComparisonConfig BenchmarkBundle BivariateComparisonConfig "
        "ComparisonStudyConfig DiversityAndExplorationConfig GrammarScaffoldConfig "
        "HumanVsAgentProcessConfig OptimizationBenchmarkConfig PromptFramingConfig "
        "RecipeStudyConfig StrategyComparisonConfig UnivariateComparisonConfig "
        "build_agent_architecture_comparison_study build_bivariate_comparison_study "
        "build_diversity_and_exploration_study build_grammar_scaffold_study "
        "build_human_vs_agent_process_study build_optimization_benchmark_study "
        "build_prompt_framing_study build_strategy_comparison_study "
        "build_univariate_comparison_study grammar_problem_bundle human_vs_agent_bundle "
        "ideation_bundle optimization_bundle"
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = ["__version__", *_HOME_OF]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'fairtrial' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
