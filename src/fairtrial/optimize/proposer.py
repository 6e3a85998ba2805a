"""The base class of proposers: what they must do, and the hooks that they may override."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from fairtrial.arena import Workshop
from fairtrial.core import Mistake, StudyError
from fairtrial.optimize.proposals import Brief, Reply, Request, RequestKind, Usage

KeepPart = Callable[[Reply], None]
"""Stores a partial reply; returns once it is durable."""


@dataclass(frozen=True, slots=True)
class PreflightContext:
    """What a proposer may check before anything starts.

    folder: the folder of the problem's file, where relative paths start; None while no problem is
        known
    project: the folder of the project that is to become faster; None while no problem is known
    max_cost_usd: the ceiling that has to be kept; None if there is none
    may_import: whether modules of the user may be imported to check that they exist
    """

    folder: Path | None = None
    project: Path | None = None
    max_cost_usd: float | None = None
    may_import: bool = True


class Proposer(ABC):
    """Makes candidates: a language model, a command-line agent, a codemod, a folder of patches.

    A proposer is a frozen dataclass that derives from this class; its fields are its options. Only
    `propose` has to be implemented. Proposers that are a `Record`, too, have their options checked
    when a study is loaded. A field that overrides a property of this class needs a default.

    incidental_options: options that change no reply, such as timeouts; replies that were paid for
        under other values of them still count when an optimization is resumed
    """

    __slots__ = ()

    incidental_options: ClassVar[frozenset[str]] = frozenset()

    @property
    def name(self) -> str:
        """The name that messages and replies use."""
        return type(self).__name__

    @property
    def most_at_once(self) -> int:
        """How many requests may be under way at the same time."""
        return 1

    @property
    def can_batch(self) -> bool:
        """Whether one request may be about several candidates."""
        return False

    def can(self, kind: RequestKind) -> bool:
        """Return whether requests of this kind are worth making."""
        return True

    @abstractmethod
    async def propose(self, brief: Brief, request: Request) -> Reply:
        """Answer a request.

        Return a reply with a refusal if there is nothing to propose. Raise a `LabError` for
        failures of the network or the machine: these end the optimization, and the request is made
        again when it is resumed.
        """

    def preflight(self, context: PreflightContext) -> None:  # noqa: B027
        """Check that the proposer can start: keys, programs, files, ceilings.

        Called before any run starts: without a problem when a study is loaded, and once for each
        problem. Raise a `StudyError` whose paths are options of the proposer, or a `LabError` if
        the machine lacks something.
        """

    async def probe(self) -> None:  # noqa: B027
        """See that what the proposer needs can be reached, before an arena is opened.

        Called at the start of an optimization, not when one is continued. Raise a `LabError` if it
        can't, or an `AccessError` if a key is refused.
        """

    async def open(self, workshop: Workshop) -> Proposer:
        """Return the proposer that works in an open arena; by default this one.

        Raise a `StudyError` if something is missing. What is returned is closed by `close`.
        """
        return self

    async def count_first_proposals(self, brief: Brief) -> int | None:
        """Return how many different first proposals there are; None if that isn't known."""
        return None

    def estimate(self, brief: Brief) -> Usage:
        """Return roughly what one reply takes; zeros if that isn't known."""
        return Usage()

    async def propose_in_parts(
        self, brief: Brief, request: Request, earlier: Reply | None, keep: KeepPart
    ) -> Reply:
        """Answer a request that may be paid for in several steps; by default `propose`.

        A proposer that pays more than once for a reply calls `keep(reply)` with what it has before
        it pays again.

        earlier: what an earlier attempt at the same request has kept, to continue from; or None
        """
        return await self.propose(brief, request)

    async def close(self) -> None:  # noqa: B027
        """Release what `open` acquired; called once, however the optimization ends."""


def run_checks(*checks: Callable[[], object]) -> None:
    """Run all checks; raise one `StudyError` with the mistakes of those that failed."""
    mistakes: list[Mistake] = []
    for check in checks:
        try:
            check()
        except StudyError as error:
            mistakes.extend(error.mistakes)
    if mistakes:
        raise StudyError(list(dict.fromkeys(mistakes)))
