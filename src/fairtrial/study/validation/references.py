"""References of hypotheses and analysis plans to things that the study doesn't have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fairtrial.core import FieldPath, Mistake, did_you_mean, is_scalar, scalar_text
from fairtrial.study.model.factors import Factor
from fairtrial.study.model.hypotheses import Hypothesis
from fairtrial.study.model.study import Study
from fairtrial.study.validation.used_names import NAME_SOURCES, find_used_names

SECTIONS = {"agent_id": "agents", "problem_id": "problems"}
"""Columns of the table of runs that hypotheses may name although they are no factors, each with the
field of the study that binds the names in it."""


def find_dangling_references(study: Study) -> Iterator[Mistake]:
    """Yield a mistake for each unknown variable, level, outcome and hypothesis that is named."""
    factors = {factor.name: factor for factor in study.factors}
    variables = [*factors, *(block.name for block in study.blocks), *SECTIONS]
    outcomes = [outcome.name for outcome in study.outcomes]
    hypothesis_ids = [hypothesis.hypothesis_id for hypothesis in study.hypotheses]
    for i, hypothesis in enumerate(study.hypotheses):
        at = ("hypotheses", i)
        referrer = f"hypothesis '{hypothesis.hypothesis_id}'"
        yield from _find_unknown(
            (*at, "independent_vars"), hypothesis.independent_vars, variables, referrer, "factor"
        )
        yield from _find_unknown(
            (*at, "dependent_vars"), hypothesis.dependent_vars, outcomes, referrer, "outcome"
        )
        moderators = [moderator.name for moderator in hypothesis.moderators]
        yield from _find_unknown(
            (*at, "moderators"), moderators, variables, referrer, "factor or block"
        )
        yield from _find_unknown_levels(study, hypothesis, at, referrer)
    for i, plan in enumerate(study.analysis_plans):
        referrer = f"analysis plan '{plan.analysis_plan_id}'"
        at = ("analysis_plans", i)
        yield from _find_unknown(
            (*at, "hypothesis_ids"), plan.hypothesis_ids, hypothesis_ids, referrer, "hypothesis"
        )
        yield from _find_unknown((*at, "outcomes"), plan.outcomes, outcomes, referrer, "outcome")


def _find_unknown(
    path: FieldPath, names: Sequence[str], known: Sequence[str], referrer: str, kind: str
) -> Iterator[Mistake]:
    for index, name in enumerate(names):
        if name not in known:
            yield Mistake(
                (*path, index),
                f"{referrer} refers to an unknown {kind} '{name}'",
                did_you_mean(name, known),
            )


def _find_unknown_levels(
    study: Study, hypothesis: Hypothesis, at: FieldPath, referrer: str
) -> Iterator[Mistake]:
    """Yield a mistake for each side of a contrast that is no level of the compared variables."""
    if hypothesis.contrast is None:
        return
    variables = _list_levels(study, hypothesis.independent_vars)
    levels = [text for texts in variables.values() for text in texts]
    for side in ("left", "right"):
        text = getattr(hypothesis.contrast, side)
        if variables and text not in levels:
            yield Mistake(
                (*at, "contrast", side),
                f"{referrer}: '{text}' is no level of {', '.join(variables)}",
                _explain_unused(study, text, variables) or did_you_mean(text, levels),
            )


def _list_levels(study: Study, variables: Sequence[str]) -> dict[str, list[str]]:
    """Return the names and values of each variable's levels, which a contrast may refer to."""
    levels: dict[str, list[str]] = {}
    for name in variables:
        for factor in study.factors:
            if factor.name == name:
                levels[name] = _level_texts(factor)
        for block in study.blocks:
            if block.name == name:
                levels[name] = [scalar_text(level) for level in block.levels if is_scalar(level)]
        if name in SECTIONS and name not in levels and study.condition_runner is None:
            used = [used_name for used_name, _ in find_used_names(study, SECTIONS[name])]
            levels |= {name: used} if used else {}
    return levels


def _explain_unused(study: Study, text: str, variables: Mapping[str, Sequence[str]]) -> str:
    """Return a hint if a text is a bound agent or problem that the study's list leaves out."""
    for variable, section in SECTIONS.items():
        if variable in variables and text in getattr(study, section):
            list_name = NAME_SOURCES[section][1]
            return f"it is bound, but not used: {list_name} names {', '.join(variables[variable])}"
    return ""


def _level_texts(factor: Factor) -> list[str]:
    return [text for level in factor.levels for text in (level.name, scalar_text(level.value))]
