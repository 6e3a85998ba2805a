"""The interface of a proposer."""

from __future__ import annotations

from typing import Protocol

from fairtrial.optimize.proposals import Brief, Reply, Request, RequestKind


class Proposer(Protocol):
    """Makes candidates: an LLM, a command-line agent, a codemod, a folder of patches.

    Says how many requests it can work on at once, whether one request may be about several
    candidates, and to which kinds of request it has anything to say. What else it may have stands
    in `agents/optimise/proposing.py`."""

    @property
    def name(self) -> str: ...
    @property
    def most_at_once(self) -> int: ...
    @property
    def can_batch(self) -> bool: ...
    def can(self, kind: RequestKind) -> bool: ...

    async def propose(self, brief: Brief, request: Request) -> Reply:
        """Answer; what it can't do is a refusal. A `LabError` is the network's or the machine's."""
