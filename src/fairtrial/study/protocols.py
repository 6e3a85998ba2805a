"""The seams: what a plug-in has to be.

A plug-in is a frozen dataclass. Its fields are the options that a study may set; they are checked
when the study is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from fairtrial.study.model.conditions import Condition, DesignTable
from fairtrial.study.model.runs import Assignment, Outcome, Report, RunSpec
from fairtrial.study.model.study import Study


class Design(Protocol):
    """Factors in, rows out: a function of the study and its seed alone."""

    def table(self, study: Study) -> DesignTable:
        """The design's rows for this study.

        Says how many there are without making them, so that a plan of a billion is refused at
        once. Raises `StudyError` where the study's factors don't fit the design.
        """
        ...


class Problem(Protocol):
    """What an agent is asked to do, and what judges its output."""

    @property
    def problem_id(self) -> str: ...
    @property
    def family(self) -> str: ...
    @property
    def brief(self) -> str: ...

    def evaluate(self, output: Mapping[str, Any]) -> Any:
        """A number, a mapping of numbers, rows, or an object with fields; None for no verdict."""


class Agent(Protocol):
    """Who proposes: takes one `fairtrial.Task`, returns a mapping or an `AgentOutput`.

    Sync or async.
    """

    def __call__(self, task: Any, /) -> Any: ...


class ConditionRunner(Protocol):
    """Runs a condition without agent and problem; returns a `RunOutput`."""

    def __call__(self, run_spec: RunSpec, condition: Condition, /) -> Any: ...


Send = Callable[[bytes], None]


class Work(Protocol):
    """What a worker does with an assignment; never raises anything but KeyboardInterrupt.

    Made once, before the first worker starts: agents and problems are bound, modules imported. A
    worker that is not forked gets it pickled.
    """

    def attempt(self, assignment: Assignment, emit: Send, note: Send | None = None) -> Outcome:
        """Do one run; `emit` takes each event, packed, as it happens.

        `note` takes entries of the run's journal, and returns when they are durable. Executors
        whose runs happen inline pass none: whoever gave them the work has one of its own.
        """
        ...

    def fail(self, assignment: Assignment, kind: str, message: str, latency_s: float) -> Outcome:
        """The outcome of an attempt that its worker didn't live to tell."""
        ...


Feed = Callable[[], "Assignment | float | None"]
"""What to do next: an assignment; or for how many seconds there is nothing; or None: no more."""


class Executor(Protocol):
    """Runs assignments somewhere, up to `slots` at once.

    Says whether `random` and `numpy.random` are seeded for each run, which alone uses them
    (`is_reproducible`); whether a crash, a hang or a flood of output costs one run and no more
    (`is_isolated`). One that runs them in the very thread that calls `execute` says so, too:
    ``is_inline = True``.
    """

    @property
    def name(self) -> str: ...
    @property
    def is_reproducible(self) -> bool: ...
    @property
    def is_isolated(self) -> bool: ...

    def execute(self, work: Work, feed: Feed, slots: int) -> Iterator[Report | None]:
        """Take assignments while there are any and a slot is free; report what comes of each.

        Lazy: asks `feed` only when a slot is free, and reports each attempt once, after all its
        events. An entry of a journal (`Noted`) is durable when the caller asks for the next report,
        and only then its run may go on. Yields None when there is nothing to report, at least every
        50 ms if it can, so that the caller gets to do its own work. Closing the iterator ends what
        still runs, at once, and without a report.
        """
        ...
