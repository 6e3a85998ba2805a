"""What plug-ins for studies implement: designs, problems, agents, executors.

A plug-in is a frozen dataclass. Its fields are the options that a study may set; they are checked
when the study is loaded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Protocol

from fairtrial.core import Mistake, events
from fairtrial.study.model.conditions import Condition, DesignTable
from fairtrial.study.model.resources import NO_NEEDS, WorkNeeds
from fairtrial.study.model.runs import Assignment, Outcome, Report, RunSpec
from fairtrial.study.model.study import Study


class Design(Protocol):
    """Generates the rows of a design; a function of the study and its seed alone."""

    def table(self, study: Study) -> DesignTable:
        """Return the design's table for a study.

        The number of rows is known before they are generated, so that a design that is too large
        is refused at once. Raises `StudyError` if the study's factors don't fit the design.
        """
        ...


class Problem(Protocol):
    """A task for an agent, and the evaluation of its output."""

    @property
    def problem_id(self) -> str: ...
    @property
    def family(self) -> str: ...
    @property
    def brief(self) -> str: ...

    def evaluate(self, output: Mapping[str, Any]) -> Any:
        """Return the score of an output.

        The score is a number, a mapping of numbers, a list of rows, or an object with fields; None
        if there is no score.
        """


class Agent(Protocol):
    """A function that takes a `fairtrial.Task` and returns a mapping or an `AgentOutput`.

    It may be a coroutine function.
    """

    def __call__(self, task: Any, /) -> Any: ...


class ConditionRunner(Protocol):
    """A function that runs a condition without agent and problem, and returns a `RunOutput`."""

    def __call__(self, run_spec: RunSpec, condition: Condition, /) -> Any: ...


Send = Callable[[bytes], None]
InThread = Callable[..., Awaitable[Any]]


class Work(ABC):
    """What a worker does with an assignment; raises nothing but KeyboardInterrupt.

    Created once, before the first worker starts, with agents and problems bound and modules
    imported. A worker that is not forked receives it pickled.

    needs: what runs need of their machines; not known in worker processes
    place: where runs execute at the moment, in words, for the progress; executors may set it
    """

    needs: WorkNeeds = NO_NEEDS
    place: str = ""

    def emit_progress(self, event: events.Event, /) -> None:  # noqa: B027 - may do nothing
        """Take a progress event; by default it goes nowhere."""

    @abstractmethod
    def attempt(self, assignment: Assignment, emit: Send, note: Send | None = None) -> Outcome:
        """Make one attempt at a run and return its outcome.

        `emit` is called with each packed event without delay. `note` is called with packed journal
        entries and returns when they are durable; inline executors pass None, as the runner writes
        the journal itself.
        """

    @abstractmethod
    def fail(self, assignment: Assignment, kind: str, message: str, latency_s: float) -> Outcome:
        """Return the outcome of an attempt whose worker died before it could report one."""


class AsyncWork(Work):
    """A `Work` that can also be done in an event loop, beside thousands of others."""

    @abstractmethod
    async def attempt_async(
        self, assignment: Assignment, emit: Send, note: Send, in_thread: InThread
    ) -> Outcome:
        """Make one attempt at a run, as `attempt`; a cancellation is passed on.

        in_thread: awaits a function that may block, called in another thread
        """


Feed = Callable[[], "Assignment | float | None"]
"""Returns the next assignment, the seconds until there may be one, or None if there are no more."""


class Executor(ABC):
    """Base class of executors: they execute assignments, up to `slots` at once.

    Only `execute` and the first three properties have to be defined; class attributes will do.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """The executor's name."""

    @property
    @abstractmethod
    def is_reproducible(self) -> bool:
        """Whether `random` and `numpy.random` are seeded for each run and used by no other run at
        the same time."""

    @property
    @abstractmethod
    def is_isolated(self) -> bool:
        """Whether a crash, a hang or a flood of output affects one run only."""

    @property
    def is_inline(self) -> bool:
        """Whether runs are executed in the thread that calls `execute`."""
        return False

    @property
    def is_forking(self) -> bool:
        """Whether workers are threads or copies of this process; others import the agents, which
        is checked before anything runs."""
        return True

    @property
    def is_distributed(self) -> bool:
        """Whether it runs on other machines, too, and sees to it that runs have the resources that
        they need."""
        return False

    @property
    def default_slots(self) -> int | None:
        """How many slots a study has that doesn't say; None for the number that others have."""
        return None

    def find_mistakes(self) -> list[Mistake]:
        """Return why the executor can't work here; called before anything runs."""
        return []

    def find_study_mistakes(self, needs: WorkNeeds, /) -> list[Mistake]:
        """Return why the runs of a study can't go to other machines; if `is_distributed`."""
        return []

    @abstractmethod
    def execute(self, work: Work, feed: Feed, slots: int) -> Iterator[Report | None]:
        """Execute assignments from `feed` until it returns None, and yield reports about them.

        `feed` is called only when a slot is free. The end of each attempt is reported once, after
        all its events. A journal entry (`Noted`, or several as `NotedTogether`) is durable when the
        caller asks for the next report; the run waits for that. Yields None when there is nothing
        to report, at least every 50 ms if possible, so that the caller can do other work. Closing
        the iterator ends running attempts at once, without reports.
        """
