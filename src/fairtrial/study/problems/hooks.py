"""Hooks of a problem beyond `evaluate`: a base class whose defaults do nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from fairtrial.study.model.runs import RunResult


class ProblemHooks(ABC):
    """What a problem may tell the study besides its evaluations.

    needs_own_folder: results must not lie in a folder that the problem itself looks at
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
        """Return a function that says why the machine can't go on right now, or is empty."""
        return None
