"""Protocols that plug-ins for studies implement: designs, problems, agents, executors.

A plug-in is a frozen dataclass. Its fields are the options that a study may set; they are checked
when the study is loaded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Protocol

from fairtrial.study.model.conditions import Condition, DesignTable
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


class Work(Protocol):
    """What a worker does with an assignment; raises nothing but KeyboardInterrupt.

    Created once, before the first worker starts, with agents and problems bound and modules
    imported. A worker that is not forked receives it pickled.
    """

    def attempt(self, assignment: Assignment, emit: Send, note: Send | None = None) -> Outcome:
        """Make one attempt at a run and return its outcome.

        `emit` is called with each packed event without delay. `note` is called with packed journal
        entries and returns when they are durable; inline executors pass None, as the runner writes
        the journal itself.
        """
        ...

    def fail(self, assignment: Assignment, kind: str, message: str, latency_s: float) -> Outcome:
        """Return the outcome of an attempt whose worker died before it could report one."""
        ...


class AsyncWork(ABC):
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


class Executor(Protocol):
    """Executes assignments, up to `slots` at once.

    name: the executor's name
    is_reproducible: whether `random` and `numpy.random` are seeded for each run and used by no
        other run at the same time
    is_isolated: whether a crash, a hang or a flood of output affects one run only
    is_inline: True, as a class attribute, if runs are executed in the thread that calls `execute`

    An executor may have a method `find_mistakes() -> list[Mistake]`, which says before anything
    runs why it can't work here, and a property `is_distributed`, which is true if it runs on other
    machines, too, and sees to it that runs have the resources that they need. Such an executor may
    have a method `find_study_mistakes(needs) -> list[Mistake]`, called with the `WorkNeeds` of a
    study. An executor may set `work.place` to where runs execute, for the progress.
    """

    @property
    def name(self) -> str: ...
    @property
    def is_reproducible(self) -> bool: ...
    @property
    def is_isolated(self) -> bool: ...

    def execute(self, work: Work, feed: Feed, slots: int) -> Iterator[Report | None]:
        """Execute assignments from `feed` until it returns None, and yield reports about them.

        `feed` is called only when a slot is free. The end of each attempt is reported once, after
        all its events. A journal entry (`Noted`) is durable when the caller asks for the next
        report; the run waits for that. Yields None when there is nothing to report, at least every
        50 ms if possible, so that the caller can do other work. Closing the iterator ends running
        attempts at once, without reports.
        """
        ...
