"""Hypotheses and analysis plans that refer to something which isn't there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fairtrial.core import Mistake, Place, did_you_mean, is_scalar, scalar_text
from fairtrial.study.model.factors import Factor
from fairtrial.study.model.study import Study
from fairtrial.study.validation.names import NAMED_BY, tried_names

SECTIONS = {"agent_id": "agents", "problem_id": "problems"}
"""Columns of the table of runs that a hypothesis may name though they are no factors, and where
what stands there is bound."""


def dangling_claims(study: Study) -> Iterator[Mistake]:
    """Names of variables, levels, outcomes and hypotheses that claims refer to in vain."""
    factors = {factor.name: factor for factor in study.factors}
    variables = [*factors, *(block.name for block in study.blocks), *SECTIONS]
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
            compared = _compared(study, claim.independent_vars)
            levels = [text for texts in compared.values() for text in texts]
            for side in ("left", "right"):
                text = getattr(claim.contrast, side)
                if compared and text not in levels:
                    yield Mistake(
                        (*at, "contrast", side),
                        f"{who}: '{text}' is no level of {', '.join(compared)}",
                        _why_not_tried(study, text, compared) or did_you_mean(text, levels),
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


def _compared(study: Study, variables: Sequence[str]) -> dict[str, list[str]]:
    """What a contrast may name: for each variable its levels, by name or by value."""
    found: dict[str, list[str]] = {}
    for name in variables:
        for factor in study.factors:
            if factor.name == name:
                found[name] = _level_texts(factor)
        for block in study.blocks:
            if block.name == name:
                found[name] = [scalar_text(level) for level in block.levels if is_scalar(level)]
        if name in SECTIONS and name not in found and study.condition_runner is None:
            tried = [each for each, _ in tried_names(study, SECTIONS[name])]
            found |= {name: tried} if tried else {}
    return found


def _why_not_tried(study: Study, text: str, compared: Mapping[str, Sequence[str]]) -> str:
    """That a list leaves out what is bound; the slip may be in the list."""
    for variable, section in SECTIONS.items():
        if variable in compared and text in getattr(study, section):
            listed = NAMED_BY[section][1]
            return f"it is bound, but not tried: {listed} names {', '.join(compared[variable])}"
    return ""


def _level_texts(factor: Factor) -> list[str]:
    return [text for level in factor.levels for text in (level.name, scalar_text(level.value))]
