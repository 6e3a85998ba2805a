"""Compare two studies: the runs that both made, paired by problem, and what else differs."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairtrial.core import Mistake, StudyError, canonical_json
from fairtrial.study.design.run_plan import PlanCell
from fairtrial.study.design.runs import AGENT_FACTORS, PROBLEM_FACTORS, count_replicates
from fairtrial.study.hypotheses.planned_tests import DEFAULT_OUTCOME
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.factors import DesignSpec, Factor, Level
from fairtrial.study.model.runs import RunResult
from fairtrial.study.model.study import Study
from fairtrial.study.report.exploration import explore
from fairtrial.study.report.exploration_record import Exploration
from fairtrial.study.report.hypothesis_test import HypothesisTest
from fairtrial.study.report.markdown_text import (
    escape_markdown,
    format_code,
    format_count,
    format_list,
)
from fairtrial.study.report.run_table import ReportTotals
from fairtrial.study.report.study_differences import StudyDifference, find_differences
from fairtrial.study.tables.results import Results, open_results

STUDY = "study"
NAMED = (*AGENT_FACTORS, *PROBLEM_FACTORS)
_Cell = tuple[str | None, str]
"""An agent, and the levels of the factors that both studies have, as canonical JSON."""


@dataclass(frozen=True, slots=True)
class StudyComparison:
    """Two studies, compared on the runs that both made.

    labels: the names of the first and of the second study
    exploration: the tests, of the second study minus the first; always exploratory
    pairing: `paired` by problem, or `unpaired` if the studies have no problem in common
    basis: which runs are compared, and why, in sentences
    differences: what else differs between the studies
    """

    labels: tuple[str, str]
    exploration: Exploration
    pairing: str
    basis: tuple[str, ...]
    differences: tuple[StudyDifference, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        return {
            **self.exploration.to_dict(),
            "studies": list(self.labels),
            "pairing": self.pairing,
            "basis": list(self.basis),
            "differences": [
                {"what": item.what, "first": item.first, "second": item.second}
                for item in self.differences
            ],
        }

    def to_markdown(self) -> str:
        """Return the comparison as a report in Markdown."""
        text = self.exploration.to_markdown()
        _, _, rest = text.partition("\n")
        title = f"# {format_code(self.labels[1])} against {format_code(self.labels[0])}"
        others = [escape_markdown(item.text()) for item in self.differences]
        parts = [
            "## What is compared",
            format_list(map(escape_markdown, self.basis)),
            "## What else differs",
            format_list(others) if others else "Nothing that was recorded.",
        ]
        head, mark, tests = rest.partition("## Comparisons")
        middle = "\n\n".join(parts)
        return f"{title}\n{head}{middle}\n\n{mark}{tests}"


class _Side:
    """One of the two studies: its results, and the runs of its plan that are compared."""

    def __init__(self, label: str, results: Results) -> None:
        self.label, self.results, self.study = label, results, results.study
        self.totals = ReportTotals()
        self.cells = list(results.reader.plan.cells())
        self.problems = dict.fromkeys(cell.problem for cell in self.cells)

    def key(self, cell: PlanCell, factors: Sequence[str]) -> _Cell:
        """Return the agent of a cell and the levels of some factors."""
        given = self.results.conditions[cell.condition].factor_assignments
        return cell.agent, canonical_json({name: given.get(name) for name in factors})


def compare_studies(
    first: Results | str | Path,
    second: Results | str | Path,
    *,
    outcomes: Sequence[str] | str = (),
    by: str | None = None,
) -> StudyComparison:
    """Compare two studies on the problems, agents and conditions that both have.

    With problems in common they are paired by problem, and the others are left out; without, they
    are compared unpaired. The result is exploratory: the studies may differ in anything else.

    Raises `StudyError` if there is nothing to compare, `LedgerError` if results can't be read.

    first, second: results, or the folders of the studies; the difference is second minus first
    outcomes: outcomes, or names of metrics or evaluations; by default the primary outcomes of both
    by: also compare within each `problem`, `family` of problems, or level of a factor
    """
    opened = [_open(item) for item in (first, second)]
    if opened[0].folder.resolve() == opened[1].folder.resolve():
        raise StudyError("both are the same study: name two folders")
    for results in opened:
        if results.study.condition_runner is not None:
            raise StudyError(
                f"{results.folder}: a study with a condition runner has no problems to pair by"
            )
    labels = _label(opened)
    sides = [_Side(label, results) for label, results in zip(labels, opened, strict=True)]
    factor = _name_factor(sides)
    kept, pairing, basis = _select(sides)
    study, conditions = _merge(sides, kept, factor)
    names = [outcomes] if isinstance(outcomes, str) else list(outcomes)
    exploration = explore(
        study,
        conditions,
        itertools.chain.from_iterable(
            _relabel(side, cells) for side, cells in zip(sides, kept, strict=True)
        ),
        [factor],
        outcomes=names or _common_outcomes(sides),
        by=by,
    )
    exploration = _correct_flow(exploration, sides)
    totals = sides[0].totals, sides[1].totals
    differences = tuple(find_differences(opened[0], opened[1], totals))
    return StudyComparison(labels, exploration, pairing, tuple(basis), differences)


def _open(item: Results | str | Path) -> Results:
    return item if isinstance(item, Results) else open_results(item)


def _label(opened: Sequence[Results]) -> tuple[str, str]:
    """Return a short name for each study that tells it from the other."""
    folders = [results.folder.resolve() for results in opened]
    for parts in (1, 2, 3):
        names = ["/".join(folder.parts[-parts:]) for folder in folders]
        if names[0] != names[1]:
            return names[0], names[1]
    return str(folders[0]), str(folders[1])


def _name_factor(sides: Sequence[_Side]) -> str:
    """Return a name for the factor that tells the studies apart."""
    taken = {
        name
        for side in sides
        for name in (
            *(factor.name for factor in side.study.factors),
            *(block.name for block in side.study.blocks),
        )
    }
    return STUDY if STUDY not in taken else "which_study"


def _select(sides: Sequence[_Side]) -> tuple[list[list[PlanCell]], str, list[str]]:
    """Return the cells of each study to compare, how they are paired, and what was left out."""
    shared = [problem for problem in sides[0].problems if problem in sides[1].problems]
    kept = [[cell for cell in side.cells if not shared or cell.problem in shared] for side in sides]
    basis = []
    if shared:
        basis.append(f"paired by problem: {format_count(len(shared), 'problem')} that both have")
        changed = sum(_define(sides[0], name) != _define(sides[1], name) for name in shared)
        if changed:
            basis.append(f"of these, {changed:,} are defined differently in the two studies")
        for side in sides:
            if more := len(side.problems) - len(shared):
                only = format_count(more, "problem")
                basis.append(f"left out: {only} that only {side.label} has")
    else:
        counts = " and ".join(f"{len(side.problems):,}" for side in sides)
        basis.append(
            f"unpaired: the studies have no problem in common ({counts} problems); a difference "
            "may be one of the problems"
        )
    factors = [
        factor.name
        for factor in sides[0].study.factors
        if factor.name not in NAMED
        and any(factor.name == other.name for other in sides[1].study.factors)
    ]
    keys = [
        {side.key(cell, factors) for cell in cells} for side, cells in zip(sides, kept, strict=True)
    ]
    common = keys[0] & keys[1]
    if not common:
        basis.append(
            "all runs: no agent under the same levels is in both, so that the difference is one of "
            "agents or levels, too"
        )
    elif common != keys[0] or common != keys[1]:
        basis.append(
            f"only runs of agents under levels that both have ({len(common):,} of "
            f"{len(keys[0]):,} and {len(keys[1]):,})"
        )
        kept = [
            [cell for cell in cells if side.key(cell, factors) in common]
            for side, cells in zip(sides, kept, strict=True)
        ]
    return kept, "paired" if shared else "unpaired", basis


def _define(side: _Side, problem: str | None) -> object:
    """Return the definition of a problem in the file of a study; None if it isn't there."""
    binding = side.study.problems.get(problem or "")
    return None if binding is None else replace(binding, resources=None)


def _merge(
    sides: Sequence[_Side], kept: Sequence[Sequence[PlanCell]], factor: str
) -> tuple[Study, list[Condition]]:
    """Return a study of the runs of both, with a factor that tells them apart."""
    first, second = (side.study for side in sides)
    conditions = [
        _merge_condition(side, cell, factor)
        for side, cells in zip(sides, kept, strict=True)
        for cell in cells
    ]
    labels = tuple(Level(side.label, side.label) for side in sides)
    outcomes = {outcome.name: outcome for outcome in (*second.outcomes, *first.outcomes)}
    agents = dict.fromkeys(cell.agent for cells in kept for cell in cells if cell.agent)
    problems = dict.fromkeys(cell.problem for cells in kept for cell in cells if cell.problem)
    return Study(
        f"{sides[1].label} and {sides[0].label}",
        "Two studies",
        factors=(Factor(factor, levels=labels), *_merge_factors(sides)),
        design_spec=DesignSpec(),
        outcomes=tuple(outcomes.values()),
        run_budget=replace(
            first.run_budget,
            replicates=max(count_replicates(first), count_replicates(second)),
            max_runs=None,
        ),
        agent_specs=tuple(agents),
        problem_ids=tuple(problems),
        agents={**second.agents, **first.agents},
        analysis_plans=(*first.analysis_plans, *second.analysis_plans),
    ), conditions


def _merge_factors(sides: Sequence[_Side]) -> Iterator[Factor]:
    """Yield the factors of both studies, with the levels of both."""
    levels: dict[str, dict[str, Level]] = {}
    for side in sides:
        for factor in side.study.factors:
            known = levels.setdefault(factor.name, {})
            for level in factor.levels:
                known.setdefault(level.name, replace(level, when=None))
    for name, known in levels.items():
        yield Factor(name, levels=tuple(known.values()))


def _merge_condition(side: _Side, cell: PlanCell, factor: str) -> Condition:
    """Return a condition of both studies together: one agent on one problem of one of them."""
    condition = side.results.conditions[cell.condition]
    named = {AGENT_FACTORS[0]: cell.agent, PROBLEM_FACTORS[0]: cell.problem}
    given = {
        name: value for name, value in condition.factor_assignments.items() if name not in NAMED
    }
    return Condition(
        _condition_id(side.label, condition.condition_id, cell.agent, cell.problem),
        {factor: side.label, **given, **named},
    )


def _condition_id(label: str, condition_id: str, agent: str | None, problem: str | None) -> str:
    return canonical_json([label, condition_id, agent, problem])


def _relabel(side: _Side, cells: Iterable[PlanCell]) -> Iterator[RunResult]:
    """Yield the results of the cells of a study as those of the merged one."""
    conditions = side.results.conditions
    kept = {(conditions[cell.condition].condition_id, cell.agent, cell.problem) for cell in cells}
    for result in side.results:
        spec = result.run_spec
        if spec is None:
            continue
        key = spec.condition_id, spec.agent_spec_ref, spec.problem_spec_ref
        if key in kept:
            side.totals.add(result)
            spec = replace(spec, condition_id=_condition_id(side.label, *key))
            yield replace(result, run_spec=spec)


def _common_outcomes(sides: Sequence[_Side]) -> list[str]:
    """Return the primary outcomes of the first study that the second one has, too."""
    known = {outcome.name for outcome in sides[1].study.outcomes}
    declared = [outcome.name for outcome in sides[0].study.outcomes if outcome.name in known]
    primary = [name for name in sides[0].study.primary_outcomes if name in known]
    if not declared and sides[0].study.outcomes and sides[1].study.outcomes:
        raise StudyError(
            Mistake(("outcome",), "the studies declare no outcome in common", "name one")
        )
    return primary or declared or [DEFAULT_OUTCOME]


def _correct_flow(exploration: Exploration, sides: Sequence[_Side]) -> Exploration:
    """Return the tests with the planned runs of each study rather than those of the larger one."""
    planned = {
        side.label: side.results.reader.plan.runnable - sum(_count_done(side).values())
        for side in sides
    }
    notes = tuple(
        f"an interim look: {left:,} planned runs of {label} are not done yet"
        for label, left in planned.items()
        if left > 0
    )

    def correct(test: HypothesisTest) -> HypothesisTest:
        groups = (
            replace(group, planned=group.runs + group.broken, pending=0) for group in test.groups
        )
        return replace(test, groups=tuple(groups))

    return replace(
        exploration,
        tests=tuple(map(correct, exploration.tests)),
        parts={group: tuple(map(correct, tests)) for group, tests in exploration.parts.items()},
        notes=(*(note for note in exploration.notes if "interim" not in note), *notes),
    )


def _count_done(side: _Side) -> Mapping[str, int]:
    return Counter(dict(side.results.reader.summary().counts))
