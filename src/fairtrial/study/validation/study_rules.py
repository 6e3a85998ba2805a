"""Rules for a study as a whole: unique names, valid references, a plan within its limits.

Records check their own fields when they are created; these are the rules that concern several
records. Each check reports all mistakes that it finds, with their paths, and also works on a
provisional study (one that was read from a file with other mistakes in it).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from fairtrial.core import Mistake, StudyError, plugins
from fairtrial.study.design.build import design_table, make_design, paused_gc
from fairtrial.study.design.constraints import ConstraintChecker
from fairtrial.study.design.dependent_factors import (
    find_dependency_mistakes,
    find_expression_mistakes,
)
from fairtrial.study.design.runs import (
    MAX_RUNS,
    count_pairs,
    count_replicates,
    find_repeated_names,
)
from fairtrial.study.model.large_counts import format_large_count
from fairtrial.study.model.study import Study
from fairtrial.study.validation.references import find_dangling_references
from fairtrial.study.validation.stopping_rules import find_stopping_mistakes

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
_FIELDS_OUTSIDE_PLAN = frozenset(
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
"""Fields that neither the conditions nor the number of runs depend on."""


def validate_study(study: Study) -> list[str]:
    """Return a message for each mistake in the study as a whole; empty if it is valid."""
    return [str(mistake) for mistake in find_study_mistakes(study)]


def find_study_mistakes(
    study: Study, known: Iterable[Mistake] = (), *, with_plan: bool = True
) -> list[Mistake]:
    """Return the mistakes in the study as a whole, each with its path.

    known: mistakes that have been found already
    with_plan: whether to generate the design and count the runs, which is done only if none of the
        known and found mistakes concerns the plan; False if the caller generates it anyway
    """
    checks: list[Callable[[Study], Iterable[Mistake]]] = [
        _find_dataset_mistakes,
        _find_replicate_mistakes,
        _find_name_clashes,
        find_dangling_references,
        find_dependency_mistakes,
        _find_constraint_mistakes,
        find_repeated_names,
        find_stopping_mistakes,
    ]
    mistakes = list(itertools.chain.from_iterable(check(study) for check in checks))
    make_design(study.design_spec, mistakes)
    if with_plan and not any(map(concerns_plan, (*known, *mistakes))):
        mistakes.extend(_find_plan_mistakes(study))
    return mistakes


def concerns_plan(mistake: Mistake) -> bool:
    """Return whether conditions or the number of runs may depend on the field with a mistake."""
    # A mistake without a path is a missing study_id or title.
    return bool(mistake.path) and mistake.path[0] not in _FIELDS_OUTSIDE_PLAN


def _find_replicate_mistakes(study: Study) -> Iterator[Mistake]:
    replicates = count_replicates(study)
    for index, outcome in enumerate(study.outcomes):
        if outcome.needed_replicates > replicates:
            message = f"{outcome.over_replicates} takes {outcome.needed_replicates} replicates"
            hint = "raise run_budget.replicates"
            path = ("outcomes", index, "over_replicates")
            yield Mistake(path, f"{message}; the study has {replicates}", hint)


def _find_dataset_mistakes(study: Study) -> Iterator[Mistake]:
    if study.dataset is not None:
        yield from study.dataset.table.mistakes


def _find_name_clashes(study: Study) -> Iterator[Mistake]:
    lists: list[tuple[str, str, Sequence[str]]] = [
        ("factors", "name", [factor.name for factor in study.factors]),
        ("blocks", "name", [block.name for block in study.blocks]),
        ("outcomes", "name", [outcome.name for outcome in study.outcomes]),
        ("hypotheses", "hypothesis_id", [h.hypothesis_id for h in study.hypotheses]),
        ("analysis_plans", "analysis_plan_id", [p.analysis_plan_id for p in study.analysis_plans]),
        ("constraints", "constraint_id", [c.constraint_id for c in study.constraints]),
    ]
    for field, key, names in lists:
        seen: set[str] = set()
        for index, name in enumerate(names):
            if name and name in seen:
                yield Mistake((field, index, key), f"duplicate: '{name}' is used twice")
            seen.add(name)
    yield from _find_column_clashes(study)


def _find_column_clashes(study: Study) -> Iterator[Mistake]:
    """Yield a mistake for each factor and block whose column in the tables has a name in use."""
    block_names = {block.name for block in study.blocks}
    columns: dict[str, str] = {}
    variables = [(("factors", i, "name"), f.name, f.name) for i, f in enumerate(study.factors)]
    variables += [
        (("blocks", i, "name"), b.name, f"block_{b.name}") for i, b in enumerate(study.blocks)
    ]
    for path, name, column in variables:
        if path[0] == "factors" and column.lower() in RESERVED_COLUMNS:
            yield Mistake(path, f"'{name}' is a key column of the tables", "use another name")
        elif path[0] == "factors" and name in block_names:
            yield Mistake(path, f"'{name}' is also the name of a block", "use another name")
        elif columns.get(column.lower(), name) != name:
            other = columns[column.lower()]
            yield Mistake(path, f"'{name}' and '{other}' would share a column ('{column}')")
        columns.setdefault(column.lower(), name)


def _find_constraint_mistakes(study: Study) -> Iterator[Mistake]:
    known = [factor.name for factor in study.factors] + [block.name for block in study.blocks]
    for i, constraint in enumerate(study.constraints):
        if constraint.expression is not None:
            path = ("constraints", i, "expression")
            yield from find_expression_mistakes(
                path, constraint.expression, known, "a factor or block"
            )
        if constraint.callable_ref is not None:
            try:
                plugins.load_reference(constraint.callable_ref, study.folder)
            except StudyError as error:
                yield from (m.under(("constraints", i, "callable_ref")) for m in error.mistakes)


def _find_plan_mistakes(study: Study) -> Iterator[Mistake]:
    """Generate the design, and yield a mistake if it has no runs or more than the budget allows."""
    try:
        table = design_table(study)
        check = ConstraintChecker(study.constraints, study.folder)
        replicates = count_replicates(study)
        runs = 0
        with paused_gc():
            for row, admissible, _ in check.check_rows(table.rows):
                if admissible:
                    runs += count_pairs(study, row.factors) * replicates
    except StudyError as error:
        yield from error.mistakes
        return
    limit = study.run_budget.max_runs
    if not runs and study.constraints:
        ids = ", ".join(constraint.constraint_id for constraint in study.constraints)
        yield Mistake(
            ("constraints",),
            f"no condition is left to run: the constraints ({ids}) exclude all {table.size:,}",
        )
    elif not runs:
        yield Mistake(("factors",), "the design has no conditions", "add a factor with levels")
    elif limit is not None and runs > limit and not study.run_budget.is_balanced:
        yield Mistake(
            ("run_budget", "max_runs"),
            f"the plan has {format_large_count(runs)} runs, max_runs allows {limit:,}",
            "raise max_runs, ask for fewer replicates or conditions, or let "
            "max_runs_policy: balanced leave runs out evenly",
        )
    elif runs > MAX_RUNS:
        yield Mistake(
            ("run_budget", "replicates"),
            f"the plan has {format_large_count(runs)} runs; a study can tell {MAX_RUNS:,} apart by "
            "their ids",
            "ask for fewer replicates or conditions, or make several studies of it",
        )
