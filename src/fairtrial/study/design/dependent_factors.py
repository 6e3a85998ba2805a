"""Checks of factors that depend on others by `tied_to` or `when`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fairtrial.core import FieldPath, Mistake, StudyError, did_you_mean
from fairtrial.study.design.expressions import Expression
from fairtrial.study.model.factors import DesignKind, Factor
from fairtrial.study.model.study import Study

BY_COMBINATION = (
    DesignKind.FULL_FACTORIAL,
    DesignKind.CONSTRAINED_FACTORIAL,
    DesignKind.RANDOMIZED_BLOCK,
    DesignKind.REPEATED_MEASURES,
    DesignKind.D_OPTIMAL,
)
"""Designs that select combinations of levels; they support `tied_to` and `when`."""
BY_LEVEL = (
    DesignKind.FRACTIONAL_FACTORIAL_2LEVEL,
    DesignKind.PLACKETT_BURMAN,
    DesignKind.LATIN_SQUARE,
)
"""Designs that set each factor to one of its levels; they support `tied_to`."""


def find_dependency_mistakes(study: Study) -> Iterator[Mistake]:
    """Yield the mistakes in `tied_to` and `when`; designs of plug-ins check for themselves."""
    kind = study.design_spec.kind
    is_builtin = isinstance(kind, DesignKind)
    earlier: dict[str, Factor] = {}
    for index, factor in enumerate(study.factors):
        for path, text in iter_conditions(factor, ("factors", index)):
            yield from find_expression_mistakes(
                path, text, list(earlier), "a factor listed earlier"
            )
            if is_builtin and kind not in BY_COMBINATION:
                message = f"a {kind} design can't follow `when`"
                yield Mistake(path, message, "use a factorial design or d_optimal")
        if factor.tied_to is not None:
            path = ("factors", index, "tied_to")
            yield from _find_tie_mistakes(path, factor, factor.tied_to, earlier)
            if is_builtin and kind not in (*BY_COMBINATION, *BY_LEVEL):
                message = f"a {kind} design can't follow ties"
                yield Mistake(path, message, "use a factorial design or d_optimal")
        earlier[factor.name] = factor


def iter_conditions(factor: Factor, at: FieldPath) -> Iterator[tuple[FieldPath, str]]:
    """Yield the `when` of a factor and of its levels, each with its path."""
    if factor.when is not None:
        yield (*at, "when"), factor.when
    for index, level in enumerate(factor.levels):
        if level.when is not None:
            yield (*at, "levels", index, "when"), level.when


def _find_tie_mistakes(
    path: FieldPath, factor: Factor, name: str, earlier: Mapping[str, Factor]
) -> Iterator[Mistake]:
    leader = earlier.get(name)
    if leader is None:
        message = f"'{name}' is not a factor listed earlier"
        yield Mistake(path, message, did_you_mean(name, earlier))
    elif leader.tied_to is not None:
        yield Mistake(path, f"'{leader.name}' is tied itself", f"tie to '{leader.tied_to}'")
    elif len(leader.levels) != len(factor.levels):
        yield Mistake(
            path,
            f"'{factor.name}' has {len(factor.levels)} levels, '{leader.name}' has "
            f"{len(leader.levels)}: tied factors move level by level",
        )


def find_expression_mistakes(
    path: FieldPath, text: str, known: Sequence[str], what: str
) -> Iterator[Mistake]:
    """Yield the mistakes in an expression over the `known` names.

    what: what a known name is, for messages: "a factor listed earlier"
    """
    try:
        names = Expression(text).names
    except StudyError as error:
        yield from (mistake.under(path) for mistake in error.mistakes)
        return
    for name in sorted(names - set(known)):
        advice = did_you_mean(name, known)
        if advice.startswith("known"):
            advice += f'; a text needs quotes: "{name}"'
        yield Mistake(path, f"'{name}' is not {what}", advice)
