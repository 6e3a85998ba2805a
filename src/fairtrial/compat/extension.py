"""The extension that supports studies and agents written for *design-research-experiments*."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairtrial import AgentBinding, ProblemBinding
from fairtrial.compat import siblings
from fairtrial.compat.keyword_arguments import KEYWORD_ARGUMENTS
from fairtrial.compat.legacy_keys import modernize_study
from fairtrial.core import FieldPath, Mistake
from fairtrial.study import extensions


@dataclass(frozen=True, slots=True)
class CompatExtension(extensions.StudyExtension):
    """Supports older keys of study files, agents that take keyword arguments, and the names of
    agents and problems of the sibling libraries."""

    def find_agent(self, name: str) -> AgentBinding | None:
        """Return the binding of an agent of *design-research-agents*."""
        return siblings.find_agent(name)

    def find_problem(self, name: str) -> ProblemBinding | None:
        """Return the binding of a problem of *design-research-problems*."""
        return siblings.find_problem(name)

    def modernize(
        self, data: dict[str, Any], path: FieldPath, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        """Return the data of a study with its legacy keys replaced."""
        return modernize_study(data, path, mistakes)

    def keyword_arguments(self) -> Mapping[str, extensions.KeywordArgument]:
        """Return the keyword arguments of agents, each with a function that gives its value."""
        return KEYWORD_ARGUMENTS
