"""What came of a study, in short: how runs ended, what they cost, what the conditions gave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from fairtrial.core import StudyError
from fairtrial.study.design.build import build_design
from fairtrial.study.design.runs import AGENT_FACTORS
from fairtrial.study.ledger.summary import spell_cost
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import RunResult, RunStatus
from fairtrial.study.model.study import Study
from fairtrial.study.report.deviations import amendment_lines, standing_text
from fairtrial.study.report.findings import render_verdicts
from fairtrial.study.report.hypotheses import judge_table
from fairtrial.study.report.hypothesis import HypothesisTest
from fairtrial.study.report.text import bullets, code, count, figure, plain_text, table
from fairtrial.study.report.values import RunTable, collect
from fairtrial.study.tables.primary_outcome import PRIMARY

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Levels = tuple[str | None, ...]
MOST_ROWS = 40
"""The table of conditions is about as long as this at most."""
MOST_OUTCOMES = 4
BESIDE = "for attempts that none of these results tells of"
"""Cut off, cancelled, or replaced by another; or of runs that are no longer in the plan."""


def render_markdown_summary(
    study: Study,
    run_results: Iterable[RunResult],
    conditions: Sequence[Condition] | None = None,
) -> str:
    """The summary of a study; conditions are made anew where none are given."""
    remark = ""
    if conditions is None:
        try:
            conditions = build_design(study)
        except StudyError as error:
            conditions, remark = (), f"The conditions can't be made again: {plain_text(error)}"
    data = collect(study, conditions, run_results)
    tests = judge_table(data) if conditions else []
    parts = [f"# {plain_text(study.title)}", summary_text(data, tests)]
    return "\n\n".join([*parts, *([remark] if remark else [])]) + "\n"


def summary_text(data: RunTable, tests: Sequence[HypothesisTest]) -> str:
    """Verdicts, runs, conditions; without a title."""
    parts = [_lead(data)]
    if data.study.hypotheses:
        is_interim = data.pending > 0 and len(data) > 0
        told = render_verdicts(tests, is_interim=is_interim) or "Nothing was tested."
        parts += [*([_interim(data)] if is_interim else []), "## Verdicts", told]
        parts += filter(None, [standing_text(data, tests)])
    parts += ["## Runs", bullets(_run_lines(data))]
    if data.conditions and len(data):
        parts += ["## Conditions", condition_text(data)]
    return "\n\n".join(parts)


def _lead(data: RunTable) -> str:
    study, tally = data.study, data.tally
    of = f" of {tally.planned:,} planned" if tally.planned is not None else ""
    facts = [code(study.study_id), f"{len(data):,}{of} runs done"]
    if failed := tally.statuses[str(RunStatus.FAILED)]:
        facts.append(f"{failed:,} failed")
    if cost_usd := (data.spent or tally.spent).cost_usd:
        facts.append(spell_cost(cost_usd))
    return " · ".join(facts)


def _interim(data: RunTable) -> str:
    done = f"{len(data):,} of {data.tally.planned:,} runs"
    return (
        f"**An interim look**, at {done}. Don't decide by it whether to go on: who stops once a "
        "claim looks supported finds differences that aren't there more often than p says. "
        "The verdicts to keep are those of all planned runs."
    )


def _run_lines(data: RunTable) -> Iterator[str]:
    tally = data.tally
    statuses = ", ".join(f"{number:,} {status}" for status, number in tally.statuses.most_common())
    yield f"results: {tally.total:,}" + (f" ({statuses})" if statuses else "")
    if tally.planned is not None and tally.planned > tally.total:
        yield f"planned and not there yet: {tally.planned - tally.total:,}"
    if tally.failures:
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in tally.failures.most_common())
        yield f"why runs did not succeed: {kinds}"
    if tally.retried:
        yield f"runs that took more than one attempt: {tally.retried:,}"
    for notes in data.notes:
        yield from notes.result_lines()
    if tally.homeless:
        yield f"results of no condition of the study, left out below: {tally.homeless:,}"
    yield from amendment_lines(data)
    yield from _cost_lines(data)


def _cost_lines(data: RunTable) -> Iterator[str]:
    import numpy as np

    tally = data.tally
    spent = data.spent or tally.spent
    more = spent.beside(tally.spent)
    cost = f"cost: {spell_cost(spent.cost_usd)}" if spent.cost_usd else "cost: none recorded"
    yield f"{cost}, of which {spell_cost(more.cost_usd)} {BESIDE}" if more.cost_usd else cost
    tokens = []
    if tally.input_tokens or tally.output_tokens:
        tokens = [f"{tally.input_tokens:,.0f} in", f"{tally.output_tokens:,.0f} out"]
    if more.tokens:
        tokens.append(f"{more.tokens:,} {BESIDE}")
    if tokens:
        yield f"tokens: {', '.join(tokens)}"
    if len(data):
        middle, late, longest = np.quantile(data.latencies, (0.5, 0.95, 1.0))
        shown = f"median {figure(middle)}, 95% within {figure(late)}, longest {figure(longest)}"
        yield f"latency in seconds: {shown}"


def condition_text(data: RunTable) -> str:
    """Outcomes' means under each condition, and for each agent where there are several."""
    import numpy as np

    names = _outcomes_shown(data)
    varied, agents = list(_varied(data)), _agents_shown(data)
    place, failed = data.column("condition"), data.failed
    columns = [*map(code, varied), *(["agent"] if agents else []), "n", "failed"]
    columns += [f"{code(name)} mean (sd)" for name in names]
    met = np.unique(place)
    rows, shown = [], max(1, MOST_ROWS // max(1, len(agents)))
    for levels, agent, inside in _cells(data, met[:shown].tolist(), varied, agents):
        counts = [int((inside & ~failed).sum()), int((inside & failed).sum())]
        means = [_mean(data.values(name)[inside]) for name in names]
        who = [plain_text(agent)] if agents else []
        shown_levels = [plain_text(level or "–") for level in levels]
        rows.append([*shown_levels, *who, *(f"{number:,}" for number in counts), *means])
    width = len(columns) - len(names) - 2
    text = table(columns, rows, right=range(width, len(columns)))
    left = len(met) - shown
    idle = sum(condition.admissible for condition in data.conditions) - len(met)
    notes = [f"{count(left, 'more condition')} not shown"] if left > 0 else []
    notes += [f"{count(idle, 'condition')} without a run that ended"] if idle > 0 else []
    remarks = [f"{'; '.join(notes)}."] if notes else []
    return "\n\n".join([text, *remarks, *data.remarks()])


def _cells(
    data: RunTable, met: Sequence[int], varied: Sequence[str], agents: Mapping[str, int]
) -> Iterator[tuple[Levels, str, NDArray[np.bool_]]]:
    """The runs of each condition and agent; of conditions that differ only in options that the
    agent doesn't have, all at once.
    """
    import numpy as np

    place, number_of, names = data.column("condition"), data.column("agent"), list(data.agents)
    variables = [data.variable(name)[0] for name in varied]
    cells: dict[tuple[Levels, str, int], list[int]] = {}
    for index in met:
        # Where agents are not told apart, a condition has only one.
        shown = agents or {"": int(number_of[place == index][0])}
        for agent, number in shown.items():
            own = [each.agents is None or names[number] in each.agents for each in variables]
            levels = tuple(
                variable.assigned(data.conditions[index]) if is_own else None
                for variable, is_own in zip(variables, own, strict=True)
            )
            cells.setdefault((levels, agent, index if all(own) else -1), []).append(index)
    for (levels, agent, _), places in cells.items():
        inside = np.isin(place, places)
        inside &= (number_of == agents[agent]) if agents else True
        if inside.any():
            yield levels, agent, inside


def _outcomes_shown(data: RunTable) -> list[str]:
    """The primary outcomes, all that a hypothesis names, and others while there is room."""
    study = data.study
    primary = study.primary_outcomes[:MOST_OUTCOMES]
    named = [name for claim in study.hypotheses for name in claim.dependent_vars]
    asked = dict.fromkeys([*primary, *named])
    others = [name for name in study.secondary_outcomes if name not in asked]
    names = [*asked, *others[: max(0, MOST_OUTCOMES - len(asked))]]
    return names or [PRIMARY]


def _agents_shown(data: RunTable) -> dict[str, int]:
    """The agents by name, where a table tells several of them apart."""
    is_varied = any(factor.name in AGENT_FACTORS for factor in data.study.factors)
    if is_varied or len(data.agents) < 2:
        return {}
    return {agent or "–": number for agent, number in data.agents.items()}


def _varied(data: RunTable) -> Iterator[str]:
    study = data.study
    for name in (*(b.name for b in study.blocks), *(f.name for f in study.factors)):
        variable, codes = data.variable(name)
        if variable.agents is not None:  # no level of its own to runs of others
            codes = codes[codes >= 0]
        if len(codes) and codes.min() != codes.max():
            yield name


def _mean(values: object) -> str:
    import numpy as np

    numbers = np.asarray(values, dtype=float)
    numbers = numbers[~np.isnan(numbers)]
    if not len(numbers):
        return "–"
    if len(numbers) < 2:
        return figure(float(numbers[0]))
    return f"{figure(float(numbers.mean()))} ({figure(float(numbers.std(ddof=1)))})"
