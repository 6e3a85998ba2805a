"""Optional hooks of a problem: base classes whose defaults do nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fairtrial.study.model.runs import RunResult
from fairtrial.study.protocols import Problem


class ProblemHooks(ABC):
    """Base class of problems that do more for a study than evaluate outputs.

    needs_own_folder: results must not lie in a folder that the problem itself reads
    """

    needs_own_folder = False

    @abstractmethod
    def evaluate(self, output: Mapping[str, Any]) -> Any:
        """Return the evaluations of an output; see `fairtrial.study.Problem`."""

    def fingerprint(self) -> Mapping[str, Any] | None:
        """Return what results depend on beyond the study file; None if nothing."""
        return None

    def rescore(self, result: RunResult) -> Any:
        """Return the evaluations of a stored output; by default `evaluate` of it."""
        return self.evaluate(result.outputs)

    def progress_remark(self) -> Callable[[], str] | None:
        """Return a function that says why work can't continue on this machine right now, or None.

        The function returns an empty text while nothing is in the way.
        """
        return None


class ProblemReference(ABC):
    """Base class of plug-ins that stand for a problem, such as a file in the study's folder."""

    @abstractmethod
    def bind(self, name: str, folder: Path | None) -> Problem:
        """Return the problem itself; raises `StudyError` if it can't be read.

        name: the problem's name in the study
        folder: the study's folder; None if it has none
        """
