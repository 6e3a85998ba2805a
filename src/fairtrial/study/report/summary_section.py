"""The summary of a report: verdicts, status and cost of runs, outcomes by condition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from fairtrial.core import StudyError
from fairtrial.study.design.build import build_design
from fairtrial.study.design.look_schedule import schedule_looks
from fairtrial.study.design.runs import AGENT_FACTORS
from fairtrial.study.ledger.ledger_summary import spell_cost
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import RunResult, RunStatus
from fairtrial.study.model.study import Study
from fairtrial.study.report.deviations import amendment_lines, standing_text
from fairtrial.study.report.flow import trace_study
from fairtrial.study.report.flow_section import study_flow_table
from fairtrial.study.report.hypothesis_sections import render_verdicts
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.hypothesis_testing import judge_table
from fairtrial.study.report.markdown_text import (
    escape_markdown,
    format_code,
    format_count,
    format_list,
    format_number,
    format_table,
)
from fairtrial.study.report.run_table import RunTable, collect_run_table
from fairtrial.study.tables.primary_outcome import PRIMARY

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Levels = tuple[str | None, ...]
MAX_ROWS = 40
"""Approximate maximum number of rows in the table of conditions."""
MAX_OUTCOMES = 4
WITHOUT_RESULT = "for attempts without a result here"
"""Killed, cancelled or repeated attempts, and those of runs that are no longer in the plan."""


def render_markdown_summary(
    study: Study,
    run_results: Iterable[RunResult],
    conditions: Sequence[Condition] | None = None,
) -> str:
    """Return the summary of a study.

    conditions: by default those of the study's design, built again
    """
    remark = ""
    if conditions is None:
        try:
            conditions = build_design(study)
        except StudyError as error:
            conditions = ()
            remark = f"The conditions can't be built again: {escape_markdown(error)}"
    data = collect_run_table(study, conditions, run_results)
    tests = judge_table(data) if conditions else []
    parts = [f"# {escape_markdown(study.title)}", summary_text(data, tests)]
    return "\n\n".join([*parts, *([remark] if remark else [])]) + "\n"


def summary_text(data: RunTable, tests: Sequence[HypothesisTest]) -> str:
    """Return verdicts, runs and conditions without a title, as sections of a report."""
    parts = [lead_line(data)]
    if data.study.hypotheses:
        is_interim = data.pending > 0 and len(data) > 0
        verdicts = render_verdicts(tests, is_interim=is_interim) or "Nothing was tested."
        parts += [*([interim_warning(data)] if is_interim else []), "## Verdicts", verdicts]
        parts += filter(None, [standing_text(data, tests)])
    parts += ["## Runs", format_list(_run_lines(data))]
    if data.conditions:
        outcomes = choose_outcomes(data)
        parts.append(study_flow_table(trace_study(data, outcomes), outcomes))
    if data.conditions and len(data):
        parts += ["## Conditions", condition_text(data)]
    return "\n\n".join(parts)


def lead_line(data: RunTable) -> str:
    """Return the study's id, its progress and its cost on one line."""
    study, totals = data.study, data.totals
    planned = f" of {totals.planned:,} planned" if totals.planned is not None else ""
    facts = [format_code(study.study_id), f"{len(data):,}{planned} runs done"]
    if failed := totals.statuses[str(RunStatus.FAILED)]:
        facts.append(f"{failed:,} failed")
    if data.broken:
        facts.append(f"{len(data.broken):,} broken")
    if cost_usd := (data.spent or totals.spent).cost_usd:
        facts.append(spell_cost(cost_usd))
    return " · ".join(facts)


def interim_warning(data: RunTable) -> str:
    """Return what a reader of an unfinished study must know first, in Markdown."""
    if schedule_looks(data.study, data.conditions) is not None:
        return (
            f"**Not finished**: {len(data):,} of {data.totals.planned:,} runs are done. Claims are "
            "decided at the planned looks only; this report is none of them."
        )
    done = f"{len(data):,} of {data.totals.planned:,} runs"
    return (
        f"**An interim look**, at {done}. Don't decide by it whether to continue: stopping as soon "
        "as a claim looks supported finds differences that don't exist more often than p says. "
        "The final verdicts are those of all planned runs."
    )


def _run_lines(data: RunTable) -> Iterator[str]:
    totals = data.totals
    statuses = ", ".join(f"{number:,} {status}" for status, number in totals.statuses.most_common())
    yield f"results: {totals.total:,}" + (f" ({statuses})" if statuses else "")
    if data.pending:
        yield f"planned and not done yet: {data.pending:,}"
    if data.decided_early:
        yield f"planned and not needed, as planned looks had decided: {data.decided_early:,}"
    if totals.failures:
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in totals.failures.most_common())
        yield f"why runs did not succeed: {kinds}"
    if totals.retried:
        yield f"runs that took more than one attempt: {totals.retried:,}"
    for notes in data.notes:
        yield from notes.result_lines()
    if totals.without_condition:
        number = totals.without_condition
        yield f"results whose condition is not in the study, left out below: {number:,}"
    yield from amendment_lines(data)
    yield from _cost_lines(data)


def _cost_lines(data: RunTable) -> Iterator[str]:
    import numpy as np

    totals = data.totals
    spent = data.spent or totals.spent
    extra = spent.minus(totals.spent)
    cost = f"cost: {spell_cost(spent.cost_usd)}" if spent.cost_usd else "cost: none recorded"
    if extra.cost_usd:
        cost += f", of which {spell_cost(extra.cost_usd)} {WITHOUT_RESULT}"
    yield cost
    tokens = []
    if totals.input_tokens or totals.output_tokens:
        tokens = [f"{totals.input_tokens:,.0f} in", f"{totals.output_tokens:,.0f} out"]
    if extra.tokens:
        tokens.append(f"{extra.tokens:,} {WITHOUT_RESULT}")
    if tokens:
        yield f"tokens: {', '.join(tokens)}"
    if len(data):
        quantiles = np.quantile(data.latencies, (0.5, 0.95, 1.0))
        median, late, longest = (format_number(float(seconds)) for seconds in quantiles)
        yield f"latency in seconds: median {median}, 95% within {late}, longest {longest}"


def condition_text(data: RunTable) -> str:
    """Return a table with the mean outcomes of each condition, by agent if there are several."""
    import numpy as np

    names = choose_outcomes(data)
    varied, agents = list(_varied_names(data)), _choose_agents(data)
    condition, failed = data.column("condition"), data.failed
    columns = [*map(format_code, varied), *(["agent"] if agents else []), "n", "failed"]
    columns += [f"{format_code(name)} mean (sd)" for name in names]
    with_runs = np.unique(condition)
    rows, shown = [], max(1, MAX_ROWS // max(1, len(agents)))
    for levels, agent, inside in _cells(data, with_runs[:shown].tolist(), varied, agents):
        counts = [int((inside & ~failed).sum()), int((inside & failed).sum())]
        means = [_format_mean(data.values(name)[inside]) for name in names]
        agent_cell = [escape_markdown(agent)] if agents else []
        level_cells = [escape_markdown(level or "–") for level in levels]
        rows.append([*level_cells, *agent_cell, *(f"{number:,}" for number in counts), *means])
    width = len(columns) - len(names) - 2
    text = format_table(columns, rows, right=range(width, len(columns)))
    hidden = len(with_runs) - shown
    idle = sum(condition.admissible for condition in data.conditions) - len(with_runs)
    notes = [f"{format_count(hidden, 'more condition')} not shown"] if hidden > 0 else []
    notes += [f"{format_count(idle, 'condition')} without a finished run"] if idle > 0 else []
    remarks = [f"{'; '.join(notes)}."] if notes else []
    return "\n\n".join([text, *remarks, *data.remarks()])


def _cells(
    data: RunTable, indices: Sequence[int], varied: Sequence[str], agents: Mapping[str, int]
) -> Iterator[tuple[Levels, str, NDArray[np.bool_]]]:
    """Yield the levels, the agent and the mask of runs of each condition and agent.

    Conditions that differ only in options that the agent doesn't have are combined.

    indices: the conditions
    varied: names of the variables whose levels are shown
    agents: code of each agent; empty if agents are not shown
    """
    import numpy as np

    condition, agent_codes = data.column("condition"), data.column("agent")
    names = list(data.agents)
    variables = [data.variable(name)[0] for name in varied]
    cells: dict[tuple[Levels, str, int], list[int]] = {}
    for index in indices:
        # If agents are not shown, a condition has only one.
        shown = agents or {"": int(agent_codes[condition == index][0])}
        for agent, code in shown.items():
            applies = [
                variable.agents is None or names[code] in variable.agents for variable in variables
            ]
            levels = tuple(
                variable.get_assigned_level(data.conditions[index]) if does_apply else None
                for variable, does_apply in zip(variables, applies, strict=True)
            )
            cells.setdefault((levels, agent, index if all(applies) else -1), []).append(index)
    for (levels, agent, _), combined in cells.items():
        inside = np.isin(condition, combined)
        inside &= (agent_codes == agents[agent]) if agents else True
        if inside.any():
            yield levels, agent, inside


def choose_outcomes(data: RunTable) -> list[str]:
    """Return primary outcomes, those of hypotheses, and others up to the maximum number."""
    study = data.study
    primary = study.primary_outcomes[:MAX_OUTCOMES]
    tested = [name for hypothesis in study.hypotheses for name in hypothesis.dependent_vars]
    required = dict.fromkeys([*primary, *tested])
    optional = [name for name in study.secondary_outcomes if name not in required]
    names = [*required, *optional[: max(0, MAX_OUTCOMES - len(required))]]
    return names or [PRIMARY]


def _choose_agents(data: RunTable) -> dict[str, int]:
    """Return the code of each agent; empty if there is one, or agents are levels of a factor."""
    is_factor = any(factor.name in AGENT_FACTORS for factor in data.study.factors)
    if is_factor or len(data.agents) < 2:
        return {}
    return {agent or "–": code for agent, code in data.agents.items()}


def _varied_names(data: RunTable) -> Iterator[str]:
    """Yield the blocks and factors that have more than one level in the runs."""
    study = data.study
    for name in (*(b.name for b in study.blocks), *(f.name for f in study.factors)):
        variable, codes = data.variable(name)
        if variable.agents is not None:  # -1: runs of agents without this option
            codes = codes[codes >= 0]
        if len(codes) and codes.min() != codes.max():
            yield name


def _format_mean(values: object) -> str:
    import numpy as np

    numbers = np.asarray(values, dtype=float)
    numbers = numbers[~np.isnan(numbers)]
    if not len(numbers):
        return "–"
    if len(numbers) < 2:
        return format_number(float(numbers[0]))
    return f"{format_number(float(numbers.mean()))} ({format_number(float(numbers.std(ddof=1)))})"
