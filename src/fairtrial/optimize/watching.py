"""Those who are told what happens in an optimisation, as it happens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from fairtrial.arena import Candidate, Estimate, Judgement
from fairtrial.optimize.lineage import Entry
from fairtrial.optimize.proposals import Reply, Request


class Watcher:
    """Is told what happens; whoever wants to know of something says what to do then."""

    __slots__ = ()

    def say(self, text: str) -> None:
        """What is going on, in words."""

    def asked(self, request: Request) -> None:
        """Something is asked for."""

    def replied(self, request: Request, reply: Reply) -> None:
        """There is an answer."""

    def withdrawn(self, request: Request) -> None:
        """It isn't asked for after all, and nobody was paid."""

    def entered(self, entry: Entry, candidate: Candidate) -> None:
        """A candidate came; one that equals another is not judged again."""

    def checking(self, entry: Entry) -> None:
        """A candidate has a slot."""

    def passed(self, entry: Entry) -> None:
        """A candidate has passed its checks, and waits for the clock."""

    def timing(self, entry: Entry, sessions: int, estimate: Estimate | None) -> None:
        """A candidate is being timed, and how it stands; with no sessions when it begins."""

    def judged(self, entry: Entry, judgement: Judgement, diff: str) -> None:
        """A candidate has its verdict."""


@dataclass(frozen=True, slots=True)
class Watchers(Watcher):
    """Several of them."""

    all: Sequence[Watcher]

    def say(self, text: str) -> None:
        for each in self.all:
            each.say(text)

    def asked(self, request: Request) -> None:
        for each in self.all:
            each.asked(request)

    def replied(self, request: Request, reply: Reply) -> None:
        for each in self.all:
            each.replied(request, reply)

    def withdrawn(self, request: Request) -> None:
        for each in self.all:
            each.withdrawn(request)

    def entered(self, entry: Entry, candidate: Candidate) -> None:
        for each in self.all:
            each.entered(entry, candidate)

    def checking(self, entry: Entry) -> None:
        for each in self.all:
            each.checking(entry)

    def passed(self, entry: Entry) -> None:
        for each in self.all:
            each.passed(entry)

    def timing(self, entry: Entry, sessions: int, estimate: Estimate | None) -> None:
        for each in self.all:
            each.timing(entry, sessions, estimate)

    def judged(self, entry: Entry, judgement: Judgement, diff: str) -> None:
        for each in self.all:
            each.judged(entry, judgement, diff)


_here: ContextVar[Watcher | None] = ContextVar("_here", default=None)


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Optimisations that run in this very thread, in this block, tell this one, too."""
    token = _here.set(watcher)
    try:
        yield
    finally:
        _here.reset(token)


def with_watcher(own: Watcher) -> Watcher:
    """A run's own watcher, and whoever watches from here."""
    other = _here.get()
    return own if other is None else Watchers((own, other))
