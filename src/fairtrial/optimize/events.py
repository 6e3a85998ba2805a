"""Progress events of an optimization, besides those of the arena that judges its candidates."""

from __future__ import annotations

from dataclasses import dataclass

from fairtrial.core import events
from fairtrial.optimize.proposals import RequestKind, Usage


@dataclass(frozen=True, slots=True)
class ProposalRequested(events.Event):
    """A request is made to the proposer.

    key: the request's key
    kind: its kind
    lineage: its lineage
    """

    key: str
    kind: RequestKind
    lineage: int


@dataclass(frozen=True, slots=True)
class ProposalReceived(events.Event):
    """A reply has come, from the proposer or from the journal.

    key, kind, lineage: of the request
    usage: what the reply took
    refusal: why it has no candidate, if it has none
    """

    key: str
    kind: RequestKind
    lineage: int
    usage: Usage
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class RequestWithdrawn(events.Event):
    """A request isn't made after all, and nothing is paid for it.

    key, kind, lineage: of the request
    """

    key: str
    kind: RequestKind
    lineage: int


@dataclass(frozen=True, slots=True)
class CandidateEntered(events.Event):
    """A candidate has its place in the tree; one that equals another isn't judged again.

    candidate_id: its id in the tree
    parent_id: the id of the candidate that it was made from, if any
    kind: the kind of the request
    name: the proposer's name for it
    note: the proposer's explanation
    duplicate_of: the id of an equal candidate that came before, or "base"
    """

    candidate_id: str
    parent_id: str | None
    kind: RequestKind
    name: str
    note: str = ""
    duplicate_of: str | None = None


@dataclass(frozen=True, slots=True)
class CandidatePassed(events.Event):
    """A candidate has passed its checks and waits to be timed.

    candidate_id: its id in the tree
    """

    candidate_id: str


@dataclass(frozen=True, slots=True)
class CandidateDropped(events.Event):
    """A candidate that looked best isn't confirmed by fresh sessions or fresh inputs.

    candidate_id: its id in the tree
    why: the reason
    """

    candidate_id: str
    why: str
