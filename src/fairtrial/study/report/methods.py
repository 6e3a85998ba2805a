"""How a study was made, for the methods section of a paper."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairtrial.study.design.agent_options import agent_names, find_affected_agents
from fairtrial.study.design.runs import count_replicates, count_runs, get_agents, get_problems
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.factors import DesignKind
from fairtrial.study.model.hypotheses import AnalysisPlan, Hypothesis
from fairtrial.study.model.study import Study
from fairtrial.study.report.text import bullets, code, count, plain_text, table
from fairtrial.study.report.values import RunTable
from fairtrial.study.stats.test_names import find_test

MOST_NAMES = 12
UNKNOWN_DESIGN = "a design of a plug-in"
_DESIGNS = {
    DesignKind.FULL_FACTORIAL: "all combinations of levels",
    DesignKind.CONSTRAINED_FACTORIAL: "all combinations of levels that the constraints allow",
    DesignKind.RANDOMIZED_BLOCK: "all combinations of levels in every block, each in random order",
    DesignKind.REPEATED_MEASURES: "every subject meets all combinations, in balanced sequences",
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
    """What a methods section says of the study as it was planned."""
    return methods_text(study, conditions) + "\n"


def methods_text(study: Study, conditions: Sequence[Condition] | None = None) -> str:
    """Design, factors, order, seeds, claims and plans."""
    parts = ["## Methods"]
    parts += [plain_text(text, 4_000) for text in (study.description, study.rationale) if text]
    parts += ["### Design", bullets(_design_lines(study, conditions))]
    if study.factors or study.blocks:
        parts += ["### Factors and blocks", _factor_table(study)]
    if study.constraints:
        parts += ["### Constraints", bullets(_constraint_lines(study))]
    if study.hypotheses:
        parts += ["### Hypotheses", bullets(map(_claim_line, study.hypotheses))]
    if study.analysis_plans:
        parts += ["### Analysis plans", bullets(map(_plan_line, study.analysis_plans))]
    return "\n\n".join(parts)


def _design_lines(study: Study, conditions: Sequence[Condition] | None) -> Iterator[str]:
    spec = study.design_spec
    kind = spec.kind
    meaning = _DESIGNS.get(kind, UNKNOWN_DESIGN) if isinstance(kind, DesignKind) else UNKNOWN_DESIGN
    yield f"design: {code(kind)}, {meaning}"
    replicates = count_replicates(study)
    if conditions:
        admissible = [condition for condition in conditions if condition.admissible]
        excluded = len(conditions) - len(admissible)
        left_out = f" ({excluded:,} more excluded by constraints)" if excluded else ""
        yield (
            f"{count(len(admissible), 'condition')}{left_out}, {count(replicates, 'replicate')}, "
            f"{count(count_runs(study, conditions), 'planned run')}"
        )
        yield from _who(study, admissible)
    else:
        yield f"{count(replicates, 'replicate')} of each run"
    repeated = kind == DesignKind.REPEATED_MEASURES
    order = "a seeded random order" + (", block by block" if study.blocks else "")
    order = "each subject's treatments in a balanced sequence" if repeated else order
    yield f"order of execution: {order}"
    seeds = study.seed_policy
    yield (
        f"seeds: {code(seeds.strategy)} from base seed {seeds.base_seed} "
        f"(offset {seeds.per_run_offset}), one for each run"
    )
    yield from _budget_lines(study)


def _who(study: Study, conditions: Sequence[Condition]) -> Iterator[str]:
    for what, find in (("agents", get_agents), ("problems", get_problems)):
        names = dict.fromkeys(name for each in conditions for name in find(study, each) if name)
        if names:
            shown = ", ".join(code(name) for name in list(names)[:MOST_NAMES])
            more = len(names) - MOST_NAMES
            yield f"{what}: {shown}" + (f" and {more:,} more" if more > 0 else "")
    if study.condition_runner:
        yield f"run by {code(study.condition_runner)}, without agents and problems"


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
        levels = ", ".join(plain_text(level.name) for level in factor.levels[:MOST_NAMES])
        more = len(factor.levels) - MOST_NAMES
        levels += f" and {more:,} more" if more > 0 else ""
        remarks = [plain_text(factor.description)] if factor.description else []
        remarks += [f"tied to {code(factor.tied_to)}"] if factor.tied_to else []
        remarks += [f"only where {code(factor.when)}"] if factor.when else []
        touched = find_affected_agents(study, factor.name)
        if touched is not None and set(agent_names(study)) - touched:
            whose = " and ".join(map(code, sorted(touched)))
            remarks.append(f"an option of {whose}: runs of other agents don't have it")
        rows.append([code(factor.name), str(factor.kind), levels, "; ".join(remarks)])
    for block in study.blocks:
        levels = ", ".join(plain_text(level) for level in block.levels[:MOST_NAMES])
        rows.append([code(block.name), "block", levels, ""])
    return table(["name", "kind", "levels", "what it is"], rows)


def _constraint_lines(study: Study) -> Iterator[str]:
    for rule in study.constraints:
        text = rule.expression or rule.callable_ref or ""
        told = f": {plain_text(rule.description)}" if rule.description else ""
        yield f"{code(rule.constraint_id)} ({rule.severity}): {code(text)}{told}"


def _claim_line(claim: Hypothesis) -> str:
    facts = [f"{claim.kind}", f"direction {claim.direction}"]
    if claim.contrast is not None:
        facts.append(f"{plain_text(claim.contrast.left)} − {plain_text(claim.contrast.right)}")
    if claim.minimum_effect_of_interest is not None:
        facts.append(f"smallest effect of interest {claim.minimum_effect_of_interest:g}")
    return f"{code(claim.hypothesis_id)}: {plain_text(claim.statement, 2_000)} ({', '.join(facts)})"


def _plan_line(plan: AnalysisPlan) -> str:
    parts = [f"hypotheses {', '.join(map(code, plan.hypothesis_ids))}"]
    policy = plan.multiple_comparison_policy.strip().lower() or "none"
    parts.append(f"several tests at once: {code(policy)}")
    if plan.covariates:
        parts.append(f"covariates {', '.join(map(code, plan.covariates))}")
    if plan.random_effects:
        parts.append(f"random effects {', '.join(map(code, plan.random_effects))}")
    if plan.filters:
        shown = ", ".join(
            f"{code(key)} = {plain_text(value)}" for key, value in plan.filters.items()
        )
        parts.append(f"only runs with {shown}")
    tests = "".join(f"\n  - {_spell_test(word)}" for word in plan.tests)
    told = f"{code(plan.analysis_plan_id)}: {'; '.join(parts)}"
    return f"{told}; tests, of which the first decides:{tests}"


def _spell_test(word: str) -> str:
    entry = find_test(word)
    return code(word) if entry is None else f"{code(word)}: {entry.meaning}"


def setting_lines(data: RunTable) -> Iterator[str]:
    """Where and when the runs happened."""
    tally = data.tally
    for what, names in (
        ("executor", tally.executors),
        ("host", tally.hosts),
        ("model", tally.models),
    ):
        if names:
            shown = ", ".join(f"{code(name)} ({n:,} runs)" for name, n in names.most_common(8))
            yield f"{what}: {shown}"
    if tally.first_start and tally.last_end:
        began, ended = plain_text(tally.first_start), plain_text(tally.last_end)
        yield f"the first run began {began}, the last one ended {ended}"
