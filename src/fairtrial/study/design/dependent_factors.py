"""Factors that depend on others (`tied_to`, `when`): on which, and in which designs they can."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fairtrial.core import Mistake, Place, StudyError, did_you_mean
from fairtrial.study.design.constraints import Expression
from fairtrial.study.model.factors import DesignKind, Factor
from fairtrial.study.model.study import Study

BY_COMBINATION = (
    DesignKind.FULL_FACTORIAL,
    DesignKind.CONSTRAINED_FACTORIAL,
    DesignKind.RANDOMIZED_BLOCK,
    DesignKind.REPEATED_MEASURES,
    DesignKind.D_OPTIMAL,
)
"""Designs that choose among combinations of levels, which may be any."""
BY_LEVEL = (
    DesignKind.FRACTIONAL_FACTORIAL_2LEVEL,
    DesignKind.PLACKETT_BURMAN,
    DesignKind.LATIN_SQUARE,
)
"""Designs that set factors to levels, not to numbers: tied factors can follow."""


def dependence_mistakes(study: Study) -> Iterator[Mistake]:
    """What is wrong with the study's `tied_to` and `when`; a plug-in says itself what it takes."""
    kind = study.design_spec.kind
    is_ours = isinstance(kind, DesignKind)
    earlier: dict[str, Factor] = {}
    for index, factor in enumerate(study.factors):
        for path, text in iter_conditions(factor, ("factors", index)):
            yield from expression_mistakes(path, text, list(earlier), "a factor listed earlier")
            if is_ours and kind not in BY_COMBINATION:
                message = f"a {kind} design can't follow `when`"
                yield Mistake(path, message, "use a factorial design or d_optimal")
        if factor.tied_to is not None:
            path = ("factors", index, "tied_to")
            yield from _tie_mistakes(path, factor, factor.tied_to, earlier)
            if is_ours and kind not in (*BY_COMBINATION, *BY_LEVEL):
                message = f"a {kind} design can't follow ties"
                yield Mistake(path, message, "use a factorial design or d_optimal")
        earlier[factor.name] = factor


def iter_conditions(factor: Factor, at: Place) -> Iterator[tuple[Place, str]]:
    """The `when` of a factor, and those of its levels, with their places."""
    if factor.when is not None:
        yield (*at, "when"), factor.when
    for index, level in enumerate(factor.levels):
        if level.when is not None:
            yield (*at, "levels", index, "when"), level.when


def _tie_mistakes(
    path: Place, factor: Factor, name: str, earlier: Mapping[str, Factor]
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


def expression_mistakes(
    path: Place, text: str, known: Sequence[str], what: str
) -> Iterator[Mistake]:
    """What is wrong with an expression over the `known` names, each of which is `what`."""
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
