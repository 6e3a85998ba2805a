"""The main loop of executors with several workers: assignments out, reports in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from fairtrial.study.model.runs import Finished, Report
from fairtrial.study.runner.executors.assignment_source import AssignmentSource


class Dispatcher(ABC):
    """Base class of worker pools: hands assignments to workers and yields their reports."""

    def __init__(self, source: AssignmentSource) -> None:
        self._source = source

    @property
    @abstractmethod
    def is_busy(self) -> bool:
        """Whether any assignment is under way."""

    @abstractmethod
    def _assign(self) -> None:
        """Give assignments to free workers."""

    @abstractmethod
    def _reports(self) -> Iterator[Report]:
        """Yield new reports of the workers; wait briefly if there are none."""

    def run(self) -> Iterator[Report | None]:
        """Yield reports until all assignments are done; see `protocols.Executor.execute`."""
        while True:
            self._assign()
            if not self.is_busy and self._source.is_exhausted:
                return
            is_silent = True
            for report in self._reports():
                is_silent = False
                yield report
                self._source.poll_again()
                if isinstance(report, Finished):
                    self._assign()
            if is_silent:
                yield None
