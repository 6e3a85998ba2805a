"""A study against itself: names that clash, references that point at nothing, plans that don't fit.

What a single record can know is checked where the record is made; this is what only the whole study
can tell. Every check reports all that it finds, with the place, and works on a provisional study
too (one that was read from a file with other mistakes in it).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from fairtrial.core import Mistake, StudyError, plugins, spell_count
from fairtrial.study.design.build import design_table, make_design
from fairtrial.study.design.constraints import Judge
from fairtrial.study.design.dependent_factors import dependence_mistakes, expression_mistakes
from fairtrial.study.design.runs import (
    MOST_RUNS,
    agents_of,
    problems_of,
    repeated_names,
    replicates_of,
)
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.study import Study
from fairtrial.study.validation.references import dangling_claims

RESERVED_COLUMNS = frozenset(
    {
        "study_id",
        "condition_id",
        "run_id",
        "admissible",
        "constraint_messages",
        "assignment_meta_json",
    }
)
_BESIDE_THE_PLAN = frozenset(
    {
        "study_id",
        "title",
        "description",
        "authors",
        "rationale",
        "tags",
        "hypotheses",
        "outcomes",
        "analysis_plans",
        "output_dir",
        "provenance_metadata",
        "notes",
    }
)
"""Fields that conditions and the number of runs don't depend on."""


def validate_study(study: Study) -> list[str]:
    """What is wrong with the study as a whole, one text for each mistake; empty if nothing is."""
    return [str(mistake) for mistake in study_mistakes(study)]


def study_mistakes(
    study: Study, known: Iterable[Mistake] = (), *, with_plan: bool = True
) -> list[Mistake]:
    """What is wrong with the study as a whole, with the place of each mistake.

    The design is tried out unless one of these mistakes, or of those `known` already, concerns it;
    or unless the caller is about to make it anyway (`with_plan`).
    """
    checks: list[Callable[[Study], Iterable[Mistake]]] = [
        _clashing_names,
        dangling_claims,
        dependence_mistakes,
        _constraints,
        repeated_names,
    ]
    found = list(itertools.chain.from_iterable(check(study) for check in checks))
    make_design(study.design_spec, found)
    if with_plan and not any(map(concerns_plan, (*known, *found))):
        found.extend(_plan(study))
    return found


def concerns_plan(mistake: Mistake) -> bool:
    """Whether conditions or the number of runs may depend on what is wrong."""
    # Without a path it is a field that is missing: the study's id or its title.
    return bool(mistake.path) and mistake.path[0] not in _BESIDE_THE_PLAN


def _clashing_names(study: Study) -> Iterator[Mistake]:
    lists: list[tuple[str, str, Sequence[str]]] = [
        ("factors", "name", [factor.name for factor in study.factors]),
        ("blocks", "name", [block.name for block in study.blocks]),
        ("outcomes", "name", [outcome.name for outcome in study.outcomes]),
        ("hypotheses", "hypothesis_id", [claim.hypothesis_id for claim in study.hypotheses]),
        ("analysis_plans", "analysis_plan_id", [p.analysis_plan_id for p in study.analysis_plans]),
        ("constraints", "constraint_id", [rule.constraint_id for rule in study.constraints]),
    ]
    for field, key, names in lists:
        seen: set[str] = set()
        for index, name in enumerate(names):
            if name and name in seen:
                yield Mistake((field, index, key), f"duplicate: '{name}' is used twice")
            seen.add(name)
    yield from _clashing_columns(study)


def _clashing_columns(study: Study) -> Iterator[Mistake]:
    """Factors and blocks become columns of one table, next to its key columns."""
    block_names = {block.name for block in study.blocks}
    columns: dict[str, str] = {}
    named = [(("factors", i, "name"), f.name, f.name) for i, f in enumerate(study.factors)]
    named += [
        (("blocks", i, "name"), b.name, f"block_{b.name}") for i, b in enumerate(study.blocks)
    ]
    for path, name, column in named:
        if path[0] == "factors" and column.lower() in RESERVED_COLUMNS:
            yield Mistake(path, f"'{name}' is a key column of the tables", "use another name")
        elif path[0] == "factors" and name in block_names:
            yield Mistake(path, f"'{name}' is also the name of a block", "use another name")
        elif columns.get(column.lower(), name) != name:
            other = columns[column.lower()]
            yield Mistake(path, f"'{name}' and '{other}' would share a column ('{column}')")
        columns.setdefault(column.lower(), name)


def _constraints(study: Study) -> Iterator[Mistake]:
    known = [factor.name for factor in study.factors] + [block.name for block in study.blocks]
    for i, rule in enumerate(study.constraints):
        if rule.expression is not None:
            path = ("constraints", i, "expression")
            yield from expression_mistakes(path, rule.expression, known, "a factor or block")
        if rule.callable_ref is not None:
            try:
                plugins.load_reference(rule.callable_ref, study.folder)
            except StudyError as error:
                yield from (m.under(("constraints", i, "callable_ref")) for m in error.mistakes)


def _plan(study: Study) -> Iterator[Mistake]:
    """Whether the design can be made, leaves anything to run, and fits the budget."""
    try:
        table = design_table(study)
        judge = Judge(study.constraints, study.folder)
        replicates = replicates_of(study)
        runs = 0
        limit = study.run_budget.max_runs
        for row in table.rows:
            if judge(row.factors, row.blocks)[0]:
                condition = Condition("", row.factors, row.blocks)
                pairs = len(agents_of(study, condition)) * len(problems_of(study, condition))
                runs += pairs * replicates
    except StudyError as error:
        yield from error.mistakes
        return
    if not runs and study.constraints:
        rules = ", ".join(rule.constraint_id for rule in study.constraints)
        yield Mistake(
            ("constraints",),
            f"no condition is left to run: the constraints ({rules}) exclude all {table.size:,}",
        )
    elif not runs:
        yield Mistake(("factors",), "the design has no conditions", "add a factor with levels")
    elif limit is not None and runs > limit and not study.run_budget.is_balanced:
        yield Mistake(
            ("run_budget", "max_runs"),
            f"the plan has {spell_count(runs)} runs, max_runs allows {limit:,}",
            "raise max_runs, ask for fewer replicates or conditions, or let "
            "max_runs_policy: balanced leave runs out evenly",
        )
    elif runs > MOST_RUNS:
        yield Mistake(
            ("run_budget", "replicates"),
            f"the plan has {spell_count(runs)} runs; a study can tell {MOST_RUNS:,} apart by "
            "their ids",
            "ask for fewer replicates or conditions, or make several studies of it",
        )
