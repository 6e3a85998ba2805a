"""The methods section of a report: design, factors, hypotheses, analysis plans, setting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtrial.study.design.agent_options import agent_names, find_affected_agents
from fairtrial.study.design.effect_correlations import condition_aliasing
from fairtrial.study.design.runs import count_replicates, count_runs, get_agents, get_problems
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.factors import DesignKind
from fairtrial.study.model.hypotheses import AnalysisPlan, Hypothesis
from fairtrial.study.model.study import Study
from fairtrial.study.report.markdown_text import (
    escape_markdown,
    format_code,
    format_count,
    format_list,
    format_table,
)
from fairtrial.study.report.run_table import RunTable
from fairtrial.study.stats.named_tests import find_test

MAX_NAMES = 12
PLUGIN_DESIGN = "a design of a plug-in"
_DESIGNS = {
    DesignKind.FULL_FACTORIAL: "all combinations of levels",
    DesignKind.CONSTRAINED_FACTORIAL: "all combinations of levels that the constraints allow",
    DesignKind.RANDOMIZED_BLOCK: "all combinations of levels in every block, each in random order",
    DesignKind.REPEATED_MEASURES: "every subject has all combinations, in balanced sequences",
    DesignKind.LATIN_SQUARE: "a Latin square",
    DesignKind.CUSTOM_MATRIX: "a matrix of conditions written by hand",
    DesignKind.LATIN_HYPERCUBE: "a Latin hypercube sample",
    DesignKind.FRACTIONAL_FACTORIAL_2LEVEL: "a two-level fraction of the factorial",
    DesignKind.SOBOL: "a Sobol sequence",
    DesignKind.HALTON: "a Halton sequence",
    DesignKind.PLACKETT_BURMAN: "a Plackett-Burman screening design",
    DesignKind.CENTRAL_COMPOSITE: "a central composite design",
    DesignKind.BOX_BEHNKEN: "a Box-Behnken design",
    DesignKind.D_OPTIMAL: "a D-optimal choice of conditions",
}


def render_methods_scaffold(study: Study, conditions: Sequence[Condition] | None = None) -> str:
    """Return the methods section of a study as planned."""
    return methods_text(study, conditions) + "\n"


def methods_text(study: Study, conditions: Sequence[Condition] | None = None) -> str:
    """Return the methods section without a final newline, as part of a report."""
    parts = ["## Methods"]
    parts += [escape_markdown(text, 4_000) for text in (study.description, study.rationale) if text]
    parts += ["### Design", format_list(_design_lines(study, conditions))]
    if study.factors or study.blocks:
        parts += ["### Factors and blocks", _factor_table(study)]
    if study.constraints:
        parts += ["### Constraints", format_list(_constraint_lines(study))]
    if study.hypotheses:
        parts += ["### Hypotheses", format_list(map(_hypothesis_line, study.hypotheses))]
    if study.analysis_plans:
        parts += ["### Analysis plans", format_list(map(_plan_line, study.analysis_plans))]
    return "\n\n".join(parts)


def _design_lines(study: Study, conditions: Sequence[Condition] | None) -> Iterator[str]:
    spec = study.design_spec
    kind = spec.kind
    meaning = _DESIGNS.get(kind, PLUGIN_DESIGN) if isinstance(kind, DesignKind) else PLUGIN_DESIGN
    yield f"design: {format_code(kind)}, {meaning}"
    replicates = format_count(count_replicates(study), "replicate")
    if conditions:
        admissible = [condition for condition in conditions if condition.admissible]
        excluded = len(conditions) - len(admissible)
        left_out = f" ({excluded:,} more excluded by constraints)" if excluded else ""
        yield (
            f"{format_count(len(admissible), 'condition')}{left_out}, {replicates}, "
            f"{format_count(count_runs(study, conditions), 'planned run')}"
        )
        aliasing = condition_aliasing(study, conditions)
        if aliasing is not None:
            yield f"aliases: {escape_markdown(aliasing.text, 2_000)}"
        yield from _participant_lines(study, admissible)
    else:
        yield f"{replicates} of each run"
    is_repeated = kind == DesignKind.REPEATED_MEASURES
    order = "a seeded random order" + (", block by block" if study.blocks else "")
    order = "each subject's treatments in a balanced sequence" if is_repeated else order
    yield f"order of execution: {order}"
    seeds = study.seed_policy
    yield (
        f"seeds: {format_code(seeds.strategy)} from base seed {seeds.base_seed} "
        f"(offset {seeds.per_run_offset}), one for each run"
    )
    yield from _budget_lines(study)


def _participant_lines(study: Study, conditions: Sequence[Condition]) -> Iterator[str]:
    """Yield lines that name the agents and problems."""
    for title, find in (("agents", get_agents), ("problems", get_problems)):
        names = dict.fromkeys(
            name for condition in conditions for name in find(study, condition) if name
        )
        if names:
            listed = ", ".join(format_code(name) for name in list(names)[:MAX_NAMES])
            more = len(names) - MAX_NAMES
            yield f"{title}: {listed}" + (f" and {more:,} more" if more > 0 else "")
    if study.condition_runner:
        yield f"run by {format_code(study.condition_runner)}, without agents and problems"


def _budget_lines(study: Study) -> Iterator[str]:
    budget = study.run_budget
    limits = []
    if budget.timeout_s is not None:
        limits.append(f"{budget.timeout_s:g} s for a run")
    if budget.max_runs is not None:
        limits.append(f"{budget.max_runs:,} runs ({budget.max_runs_policy})")
    if budget.max_cost_usd is not None:
        limits.append(f"${budget.max_cost_usd:g}")
    if budget.max_tokens is not None:
        limits.append(f"{budget.max_tokens:,} tokens")
    if limits:
        yield f"limits: {', '.join(limits)}"
    yield f"runs that broke through no fault of the agent were retried up to {budget.retries} times"


def _factor_table(study: Study) -> str:
    rows = []
    for factor in study.factors:
        levels = ", ".join(escape_markdown(level.name) for level in factor.levels[:MAX_NAMES])
        more = len(factor.levels) - MAX_NAMES
        levels += f" and {more:,} more" if more > 0 else ""
        remarks = [escape_markdown(factor.description)] if factor.description else []
        remarks += [f"tied to {format_code(factor.tied_to)}"] if factor.tied_to else []
        remarks += [f"only where {format_code(factor.when)}"] if factor.when else []
        agents = find_affected_agents(study, factor.name)
        if agents is not None and set(agent_names(study)) - agents:
            names = " and ".join(map(format_code, sorted(agents)))
            remarks.append(f"an option of {names}: runs of other agents don't have it")
        rows.append([format_code(factor.name), str(factor.kind), levels, "; ".join(remarks)])
    for block in study.blocks:
        levels = ", ".join(escape_markdown(level) for level in block.levels[:MAX_NAMES])
        rows.append([format_code(block.name), "block", levels, ""])
    return format_table(["name", "kind", "levels", "what it is"], rows)


def _constraint_lines(study: Study) -> Iterator[str]:
    for rule in study.constraints:
        text = rule.expression or rule.callable_ref or ""
        description = f": {escape_markdown(rule.description)}" if rule.description else ""
        rule_id = format_code(rule.constraint_id)
        yield f"{rule_id} ({rule.severity}): {format_code(text)}{description}"


def _hypothesis_line(hypothesis: Hypothesis) -> str:
    facts = [f"{hypothesis.kind}", f"direction {hypothesis.direction}"]
    if (contrast := hypothesis.contrast) is not None:
        facts.append(f"{escape_markdown(contrast.left)} − {escape_markdown(contrast.right)}")
    if hypothesis.minimum_effect_of_interest is not None:
        facts.append(f"smallest effect of interest {hypothesis.minimum_effect_of_interest:g}")
    statement = escape_markdown(hypothesis.statement, 2_000)
    return f"{format_code(hypothesis.hypothesis_id)}: {statement} ({', '.join(facts)})"


def _plan_line(plan: AnalysisPlan) -> str:
    parts = [f"hypotheses {', '.join(map(format_code, plan.hypothesis_ids))}"]
    policy = plan.multiple_comparison_policy.strip().lower() or "none"
    parts.append(f"several tests at once: {format_code(policy)}")
    if plan.covariates:
        parts.append(f"covariates {', '.join(map(format_code, plan.covariates))}")
    if plan.random_effects:
        parts.append(f"random effects {', '.join(map(format_code, plan.random_effects))}")
    if plan.filters:
        shown = ", ".join(
            f"{format_code(key)} = {escape_markdown(value)}" for key, value in plan.filters.items()
        )
        parts.append(f"only runs with {shown}")
    if plan.generalize == "these_problems_only":
        parts.append("claims about exactly the problems of the study")
    else:
        parts.append("claims about problems like those of the study")
    tests = "".join(f"\n  - {_describe_test(name)}" for name in plan.tests)
    description = f"{format_code(plan.analysis_plan_id)}: {'; '.join(parts)}"
    return f"{description}; tests, of which the first decides:{tests}"


def _describe_test(name: str) -> str:
    test = find_test(name)
    return format_code(name) if test is None else f"{format_code(name)}: {test.meaning}"


def setting_lines(data: RunTable) -> Iterator[str]:
    """Yield lines on the study's lock, and on executors, hosts, models and times of the runs."""
    totals = data.totals
    if data.history is not None:
        lock = data.history.lock
        phrases = ["no lock was recorded"] if lock is None else lock.describe()
        yield escape_markdown("; ".join(phrases), 2_000)
    for title, names in (
        ("executor", totals.executors),
        ("host", totals.hosts),
        ("model", totals.models),
    ):
        if names:
            runs = ", ".join(
                f"{format_code(name)} ({n:,} runs)" for name, n in names.most_common(8)
            )
            yield f"{title}: {runs}"
    if totals.first_start and totals.last_end:
        began, ended = escape_markdown(totals.first_start), escape_markdown(totals.last_end)
        yield f"the first run began {began}, the last one ended {ended}"
