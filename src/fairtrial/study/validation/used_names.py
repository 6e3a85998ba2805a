"""The agents and problems that a study uses, and those of them that it doesn't bind."""

from __future__ import annotations

from collections.abc import Iterator

from fairtrial.core import FieldPath, Mistake, did_you_mean
from fairtrial.study.design.runs import AGENT_FACTORS, PROBLEM_FACTORS
from fairtrial.study.model.study import Study

NAME_SOURCES = {
    "agents": (AGENT_FACTORS, "agent_specs"),
    "problems": (PROBLEM_FACTORS, "problem_ids"),
}
"""For agents and problems: the factors that name them, and the list used without such a factor."""


def find_used_names(study: Study, section: str) -> list[tuple[str, FieldPath]]:
    """Return the names of the agents or problems that a study uses, and where it names them.

    section: `agents` or `problems`
    """
    factor_names, list_name = NAME_SOURCES[section]
    names: list[tuple[str, FieldPath]] = []
    for i, factor in enumerate(study.factors):
        if factor.name in factor_names:
            levels = enumerate(factor.levels)
            names += [(str(level.value), ("factors", i, "levels", j)) for j, level in levels]
            if factor.when is None:
                return names
    listed = [(name, (list_name, i)) for i, name in enumerate(getattr(study, list_name))]
    return names + (listed or [(name, (section, name)) for name in getattr(study, section)])


def find_unbound_names(study: Study) -> Iterator[Mistake]:
    """Yield a warning for each agent and problem that is not bound in a study that binds others.

    Python code may bind it (`run_study(agent_bindings=...)`), so it is not a mistake yet.
    """
    if study.condition_runner is not None:
        return
    for section, argument in (("agents", "agent_bindings"), ("problems", "problem_registry")):
        bound = getattr(study, section)
        for name, path in find_used_names(study, section) if bound else ():
            if name not in bound:
                noun = section.removesuffix("s")
                yield Mistake(
                    path,
                    f"nothing is bound to the {noun} '{name}', so only Python can run this study, "
                    f"with {argument}={{'{name}': ...}}",
                    did_you_mean(name, bound),
                )
