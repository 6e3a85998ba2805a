"""What workers of every sort have in common: assignments out, reports in, to the end."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from fairtrial.study.model.runs import Finished, Report
from fairtrial.study.runner.executors.assignment_source import Source


class Team(ABC):
    """Takes assignments from a source, and reports what comes of them."""

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    @abstractmethod
    def is_busy(self) -> bool:
        """Whether anything is under way."""

    @abstractmethod
    def _hand_out(self) -> None:
        """Give assignments to whoever is free."""

    @abstractmethod
    def _reports(self) -> Iterator[Report]:
        """What the workers say; waits a little if they say nothing."""

    def run(self) -> Iterator[Report | None]:
        """Until there is no more to do; see `protocols.Executor.execute`."""
        while True:
            self._hand_out()
            if not self.is_busy and self._source.is_dry:
                return
            is_silent = True
            for report in self._reports():
                is_silent = False
                yield report
                self._source.ask_again()
                if isinstance(report, Finished):
                    self._hand_out()
            if is_silent:
                yield None
