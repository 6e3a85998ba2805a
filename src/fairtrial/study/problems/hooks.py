"""Hooks of a problem beyond `evaluate`: a base class whose defaults do nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fairtrial.study.model.runs import RunResult


class ProblemHooks:
    """What a problem may tell the study besides its evaluations.

    needs_own_folder: results must not lie in a folder that the problem itself looks at
    """

    needs_own_folder = False

    def fingerprint(self) -> Mapping[str, Any] | None:
        """Return what results depend on beyond the study file; None if nothing."""
        return None

    def stored_output(self, result: RunResult) -> Mapping[str, Any]:
        """Return a stored output in the form that `evaluate` takes when a study is rescored."""
        return result.outputs

    def progress_remark(self) -> Callable[[], str] | None:
        """Return a function that says why the machine can't go on right now, or is empty."""
        return None
