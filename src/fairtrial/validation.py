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
from fairtrial.design.constraints import Expression, Judge
from fairtrial.design.schedule import agents_of, problems_of, replicates_of
from fairtrial.errors import Mistake, Path, StudyError, did_you_mean
from fairtrial.model.conditions import Condition
from fairtrial.model.factors import DesignKind, Factor, scalar_text
from fairtrial.model.study import Study

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
IMPLICIT_VARIABLES = ("agent_id", "problem_id")
"""Columns of the table of runs that a hypothesis may name though they are no factors."""

_FACTORIAL = (
    DesignKind.FULL_FACTORIAL,
    DesignKind.CONSTRAINED_FACTORIAL,
    DesignKind.RANDOMIZED_BLOCK,
    DesignKind.REPEATED_MEASURES,
    DesignKind.D_OPTIMAL,
)
_BY_LEVEL = (
    DesignKind.FRACTIONAL_FACTORIAL_2LEVEL,
    DesignKind.PLACKETT_BURMAN,
    DesignKind.LATIN_SQUARE,
)
"""Designs that set factors to levels, not to numbers: tied factors can follow."""


def validate_study(study: Study) -> list[str]:
    """What is wrong with the study as a whole, one text for each mistake; empty if nothing is."""
    return [str(mistake) for mistake in study_mistakes(study)]


def study_mistakes(study: Study, *, plan: bool = True) -> list[Mistake]:
    """What is wrong with the study as a whole, with the place of each mistake.

    Without `plan` the design is not tried out: that of a provisional study would be guesswork.
    """
    checks: list[Callable[[Study], Iterable[Mistake]]] = [
        _clashing_names,
        _dangling_claims,
        _conditional_factors,
        _constraints,
        _repeated_bindings,
    ]
    found = list(itertools.chain.from_iterable(check(study) for check in checks))
    make_design(study.design_spec, found)
    return found if found or not plan else list(_plan(study))


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
        for index, name in enumerate(names):
            if name and name in names[:index]:
                yield Mistake((field, index, key), f"duplicate: '{name}' is used twice")
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
    path: Path, names: Sequence[str], known: Sequence[str], who: str, what: str
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


def _conditional_factors(study: Study) -> Iterator[Mistake]:
    """`tied_to` and `when`: what they may refer to, and which designs can follow them."""
    kind = study.design_spec.kind
    built_in = isinstance(kind, DesignKind)
    earlier: dict[str, Factor] = {}
    for i, factor in enumerate(study.factors):
        at = ("factors", i)
        conditions: list[tuple[Path, str | None]] = [((*at, "when"), factor.when)]
        conditions += [((*at, "levels", j, "when"), lv.when) for j, lv in enumerate(factor.levels)]
        for path, text in conditions:
            if text is None:
                continue
            yield from _bad_expression(path, text, list(earlier), "a factor listed earlier")
            if built_in and kind not in _FACTORIAL:
                yield Mistake(
                    path, f"a {kind} design can't follow `when`", "use a factorial design"
                )
        if factor.tied_to is not None:
            yield from _bad_tie((*at, "tied_to"), factor, earlier)
            if built_in and kind not in (*_FACTORIAL, *_BY_LEVEL):
                yield Mistake((*at, "tied_to"), f"a {kind} design can't follow ties")
        earlier[factor.name] = factor


def _bad_tie(path: Path, factor: Factor, earlier: dict[str, Factor]) -> Iterator[Mistake]:
    leader = earlier.get(factor.tied_to or "")
    if leader is None:
        yield Mistake(
            path,
            f"'{factor.tied_to}' is not a factor listed earlier",
            did_you_mean(factor.tied_to or "", earlier),
        )
    elif leader.tied_to is not None:
        yield Mistake(path, f"'{leader.name}' is tied itself", f"tie to '{leader.tied_to}'")
    elif len(leader.levels) != len(factor.levels):
        yield Mistake(
            path,
            f"'{factor.name}' has {len(factor.levels)} levels, '{leader.name}' has "
            f"{len(leader.levels)}: tied factors move level by level",
        )


def _constraints(study: Study) -> Iterator[Mistake]:
    known = [factor.name for factor in study.factors] + [block.name for block in study.blocks]
    for i, rule in enumerate(study.constraints):
        if rule.expression is not None:
            path = ("constraints", i, "expression")
            yield from _bad_expression(path, rule.expression, known, "a factor or block")
        if rule.callable_ref is not None:
            try:
                plugins.load_reference(rule.callable_ref, study.folder)
            except StudyError as error:
                yield from (m.under(("constraints", i, "callable_ref")) for m in error.mistakes)


def _bad_expression(path: Path, text: str, known: Sequence[str], what: str) -> Iterator[Mistake]:
    try:
        names = Expression(text).names
    except StudyError as error:
        yield from (mistake.under(path) for mistake in error.mistakes)
        return
    for name in sorted(names - set(known)):
        yield Mistake(path, f"'{name}' is not {what}", did_you_mean(name, known))


def _repeated_bindings(study: Study) -> Iterator[Mistake]:
    for field in ("agent_specs", "problem_ids"):
        names = getattr(study, field)
        for index, name in enumerate(names):
            if name in names[:index]:
                yield Mistake((field, index), f"'{name}' is listed twice: its runs would share ids")


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
                if limit is None:
                    break
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
    elif limit is not None and runs > limit:
        yield Mistake(
            ("run_budget", "max_runs"),
            f"the plan has {runs:,} runs, max_runs allows {limit:,}",
            "raise max_runs, or ask for fewer replicates or conditions",
        )
