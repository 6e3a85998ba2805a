"""Optional hooks of an agent: a base class whose defaults do nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairtrial.study.model.study import RunBudget
from fairtrial.study.protocols import Problem


class AgentHooks:
    """Base class of agents that check their settings and problems before anything runs."""

    def check_start(self, budget: RunBudget) -> None:
        """Raise `StudyError` for what would keep every run from starting, such as a missing key.

        budget: the limits of the whole study
        """

    def in_folder(self, folder: Path | None) -> Any:
        """Return the agent for a study in a folder, to which its paths are relative."""
        return self

    def check_task(self, problem: Problem, factors: Mapping[str, Any]) -> None:
        """Raise `StudyError` if this agent can't work on a problem under a condition.

        factors: the values of the factors; called once for the same problem and names of factors
        """

    def check_problem(self, problem: Problem, *, imports: bool) -> None:
        """Raise `StudyError` if this agent can't work on a problem.

        imports: whether functions of the user may be imported to see whether they exist
        """
