"""Optional hooks of a problem: base classes whose defaults do nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fairtrial.study.model.runs import RunResult
from fairtrial.study.protocols import Problem


class Parcel(ABC):
    """Base class of what runs on a problem read of the driver's disk, packed for other machines.

    It is pickled once, and reaches each machine once.
    """

    @property
    @abstractmethod
    def folder(self) -> Path:
        """What was packed, on the driver: an absolute path without links."""

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """How much is sent to each machine."""

    @abstractmethod
    def unpack(self, root: Path) -> None:
        """Write a copy of `folder` below `root`, where it has the same path as on the driver.

        Raises `LabError` if this machine can't have one.
        """


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

    def pack(self) -> Parcel | None:
        """Return what runs on machines with other disks need, beside the study's folder.

        None if nothing. Raises `StudyError` if it can't be packed.
        """
        return None

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
