"""The agents and problems that a study tries, and where it names them."""

from __future__ import annotations

from collections.abc import Iterator

from fairtrial.core import Mistake, Place, did_you_mean
from fairtrial.study.design.runs import AGENT_FACTORS, PROBLEM_FACTORS
from fairtrial.study.model.study import Study

NAMED_BY = {"agents": (AGENT_FACTORS, "agent_specs"), "problems": (PROBLEM_FACTORS, "problem_ids")}
"""The factors, or else the list, that say who is tried."""


def tried_names(study: Study, section: str) -> list[tuple[str, Place]]:
    """The agents (or problems) that the study tries, and where it names them."""
    varied, listed = NAMED_BY[section]
    names: list[tuple[str, Place]] = []
    for i, factor in enumerate(study.factors):
        if factor.name in varied:
            levels = enumerate(factor.levels)
            names += [(str(level.value), ("factors", i, "levels", j)) for j, level in levels]
            if factor.when is None:
                return names
    given = [(name, (listed, i)) for i, name in enumerate(getattr(study, listed))]
    return names + (given or [(name, (section, name)) for name in getattr(study, section)])


def binding_doubts(study: Study) -> Iterator[Mistake]:
    """A remark for each agent and problem that a study which binds others leaves unbound.

    Python may bind it (`run_study(agent_bindings=...)`), so it is no mistake yet.
    """
    if study.condition_runner is not None:
        return
    for section, argument in (("agents", "agent_bindings"), ("problems", "problem_registry")):
        bound = getattr(study, section)
        for name, path in tried_names(study, section) if bound else ():
            if name not in bound:
                what = section.removesuffix("s")
                yield Mistake(
                    path,
                    f"nothing is bound to the {what} '{name}', so only Python can run this study, "
                    f"with {argument}={{'{name}': ...}}",
                    did_you_mean(name, bound),
                )
