"""A study against itself: names that clash, references that point at nothing, plans that don't fit.

What a single record can know is checked where the record is made; this is what only the whole study
can tell. Every check reports all that it finds, with the place, and works on a provisional study
too (one that was read from a file with other mistakes in it).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from fairtrial import plugins
from fairtrial.design.build import design_table, make_design
from fairtrial.design.constraints import Judge
from fairtrial.design.dependence import dependence_mistakes, expression_mistakes
from fairtrial.design.schedule import (
    MOST_RUNS,
    REPLICATED_BY_RUNS,
    agents_of,
    problems_of,
    repeated_names,
    replicates_of,
)
from fairtrial.errors import Mistake, Place, StudyError, did_you_mean, spell_count
from fairtrial.model.claims import AGGREGATIONS, COMPARISON_POLICIES, SOURCE_TABLES
from fairtrial.model.conditions import Condition
from fairtrial.model.factors import DesignKind, Factor, scalar_text
from fairtrial.model.study import Study
from fairtrial.stats.multiplicity import is_policy
from fairtrial.stats.words import (
    MISSING_DATA_POLICIES,
    find_test,
    known_tests,
    missing_data_policy,
)

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
SAMPLED = (
    DesignKind.LATIN_HYPERCUBE,
    DesignKind.SOBOL,
    DesignKind.HALTON,
    DesignKind.D_OPTIMAL,
)
"""Designs of as many rows as they are asked for."""
IMPLICIT_VARIABLES = ("agent_id", "problem_id")
"""Columns of the table of runs that a hypothesis may name though they are no factors."""

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
        _dangling_claims,
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


def _dangling_claims(study: Study) -> Iterator[Mistake]:
    factors = {factor.name: factor for factor in study.factors}
    variables = [*factors, *(block.name for block in study.blocks), *IMPLICIT_VARIABLES]
    outcomes = [outcome.name for outcome in study.outcomes]
    claims = [claim.hypothesis_id for claim in study.hypotheses]
    for i, claim in enumerate(study.hypotheses):
        at = ("hypotheses", i)
        who = f"hypothesis '{claim.hypothesis_id}'"
        yield from _unknown(
            (*at, "independent_vars"), claim.independent_vars, variables, who, "factor"
        )
        yield from _unknown((*at, "dependent_vars"), claim.dependent_vars, outcomes, who, "outcome")
        moderators = [moderator.name for moderator in claim.moderators]
        yield from _unknown((*at, "moderators"), moderators, variables, who, "factor or block")
        if claim.contrast is not None:
            compared = [factors[name] for name in claim.independent_vars if name in factors]
            levels = [text for factor in compared for text in _level_texts(factor)]
            for side in ("left", "right"):
                text = getattr(claim.contrast, side)
                if compared and text not in levels:
                    yield Mistake(
                        (*at, "contrast", side),
                        f"{who}: '{text}' is no level of {', '.join(f.name for f in compared)}",
                        did_you_mean(text, levels),
                    )
    for i, plan in enumerate(study.analysis_plans):
        who = f"analysis plan '{plan.analysis_plan_id}'"
        at = ("analysis_plans", i)
        yield from _unknown((*at, "hypothesis_ids"), plan.hypothesis_ids, claims, who, "hypothesis")
        yield from _unknown((*at, "outcomes"), plan.outcomes, outcomes, who, "outcome")


def _unknown(
    path: Place, names: Sequence[str], known: Sequence[str], who: str, what: str
) -> Iterator[Mistake]:
    for index, name in enumerate(names):
        if name not in known:
            yield Mistake(
                (*path, index),
                f"{who} refers to an unknown {what} '{name}'",
                did_you_mean(name, known),
            )


def _level_texts(factor: Factor) -> list[str]:
    return [text for level in factor.levels for text in (level.name, scalar_text(level.value))]


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


def word_doubts(study: Study) -> Iterator[Mistake]:
    """A remark for each word that the analysis will read and doesn't know."""
    for i, outcome in enumerate(study.outcomes):
        at = ("outcomes", i)
        if outcome.source_table.strip().lower() not in SOURCE_TABLES:
            yield _unheard_of((*at, "source_table"), outcome.source_table, SOURCE_TABLES)
        if outcome.aggregation.strip().lower() not in AGGREGATIONS:
            yield _unheard_of((*at, "aggregation"), outcome.aggregation, AGGREGATIONS)
        policy = outcome.missing_data_policy
        if missing_data_policy(policy) is None:
            yield _unheard_of((*at, "missing_data_policy"), policy, MISSING_DATA_POLICIES)
    for i, plan in enumerate(study.analysis_plans):
        at = ("analysis_plans", i)
        for j, test in enumerate(plan.tests):
            if find_test(test) is None:
                yield _unheard_of((*at, "tests", j), test, known_tests())
        policy = plan.multiple_comparison_policy
        if not is_policy(policy):
            yield _unheard_of((*at, "multiple_comparison_policy"), policy, COMPARISON_POLICIES)


def setting_doubts(study: Study) -> Iterator[Mistake]:
    """A remark for each setting of the design that a design of this kind has no use for."""
    spec = study.design_spec
    if not isinstance(spec.kind, DesignKind):
        return
    has_own_rows = spec.kind not in REPLICATED_BY_RUNS
    useful = {
        "n_samples": spec.kind in SAMPLED,
        "center_points": has_own_rows,
        "matrix_path": spec.kind is DesignKind.CUSTOM_MATRIX,
        "block_randomization_key": has_own_rows and spec.randomize,
    }
    for name, is_used in useful.items():
        if getattr(spec, name) and not is_used:
            without = " without randomize" if name == "block_randomization_key" else ""
            yield Mistake(("design_spec", name), f"a {spec.kind} design{without} has no use for it")


def _unheard_of(path: Place, word: str, known: Sequence[str]) -> Mistake:
    return Mistake(path, f"'{word}' is not a word that fairtrial knows", did_you_mean(word, known))
