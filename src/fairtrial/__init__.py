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
    "fairtrial.core.errors": (
        "Broken FairtrialError LabError LedgerError Mistake PluginError StudyError"
    ),
    "fairtrial.arena.model.candidates": "Candidate FileState",
    "fairtrial.study.model.hypotheses": (
        "AnalysisPlan Contrast Hypothesis HypothesisDirection HypothesisKind Mediator Moderator "
        "OutcomeSpec"
    ),
    "fairtrial.arena.model.problem": "Benchmark Check CodeProblem",
    "fairtrial.sandbox.commands": "Command Completed Limits Mount View",
    "fairtrial.study.model.conditions": "Condition DesignRow DesignTable",
    "fairtrial.study.model.factors": (
        "Block Constraint ConstraintSeverity DesignKind DesignSpec Factor FactorKind Level"
    ),
    "fairtrial.study.model.identity": "canonical_json",
    "fairtrial.arena.model.judgements": "Judgement",
    "fairtrial.optimize.proposals": "Brief Reply Request RequestKind Tried Usage",
    "fairtrial.study.model.runs": (
        "Assignment Emitted FailureKind Finished Noted RunOutput RunResult RunSpec RunStatus"
    ),
    "fairtrial.study.model.study": "AgentBinding ProblemBinding RunBudget SeedPolicy Study",
    "fairtrial.arena.model.timings": "Estimate Measurement Sample Session Timing",
    "fairtrial.arena.model.verdicts": "Basis Difference Failure Reason Rejection Verdict",
    "fairtrial.study.protocols": "Agent ConditionRunner Design Executor Problem Proposer Sandbox",
    "fairtrial.study.design.balance": "balance_report",
    "fairtrial.study.design.build": "build_design materialize_conditions",
    "fairtrial.study.design.doe": "generate_doe",
    "fairtrial.study.design.runs": "count_runs execution_order plan_runs",
    "fairtrial.study.design.rows": "number_rows",
    "fairtrial.study.power": "HypothesisPower hypothesis_power",
    "fairtrial.study.validation": "validate_study",
    "fairtrial.study.files": "StudyWarning load_study problem_schema study_schema",
    "fairtrial.arena.problem_files": "load_problem",
    "fairtrial.sandbox.process": "run_command",
    "fairtrial.study.tables.bundle": "bundle_results",
    "fairtrial.study.tables.export": "export_analysis_tables",
    "fairtrial.study.tables.results": "Results open_results",
    "fairtrial.arena.timing.samples_table": "recompute",
    "fairtrial.arena.arena": "Arena",
    "fairtrial.arena.checks.recorded_calls": "record_call write_calls",
    "fairtrial.arena.candidates.folders": "read_candidate",
    "fairtrial.arena.timing_phase": "time_candidate",
    "fairtrial.arena.comparison": "Comparison SelfTest check_clock compare_candidates",
    "fairtrial.arena.evaluation": "Evaluation evaluate_candidates judge_candidates",
    "fairtrial.arena.opening": "open_arena",
    "fairtrial.arena.settings": "ArenaSettings",
    "fairtrial.arena.slots.pool": "WorktreePool WorktreeSlot",
    "fairtrial.optimize.optimizer": "Optimise",
    "fairtrial.study.agents.call_forms": "for_condition",
    "fairtrial.study.agents.output": "AgentOutput agent_result",
    "fairtrial.study.agents.task": "Task",
    "fairtrial.study.problems.packet": "ProblemPacket resolve_problem",
    "fairtrial.study.runner.preparation": "DryRunReport dry_run_validate",
    "fairtrial.study.runner.rescoring": "rescore_study",
    "fairtrial.study.runner.run": "resume_study run_study",
    "fairtrial.study.runner.seeding": "reproducible_seed",
    "fairtrial.study.report.codebook": "render_codebook",
    "fairtrial.study.report.findings": "render_significance_brief",
    "fairtrial.study.report.hypotheses": "judge_hypotheses",
    "fairtrial.study.report.hypothesis": "HypothesisTest",
    "fairtrial.study.report.markdown": "full_report write_markdown_report",
    "fairtrial.study.report.methods": "render_methods_scaffold",
    "fairtrial.study.report.summary": "render_markdown_summary",
    "fairtrial.compat.recipes": (
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
