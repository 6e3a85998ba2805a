"""The optimise loop as a state machine: what to ask for next, and what is the best so far.

Pure: no clock, no I/O. It is told replies and verdicts in whatever order they come; what it decides
is a function of its rules, the replies and the verdicts alone. Each line of descent decides by
itself, and budgets are reserved by line number, so that arrival order and the number of slots
change nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairtrial.model.proposals import Kind, Request, Tried


@dataclass(frozen=True, slots=True)
class LoopRules:
    """What an optimisation may do.

    lines: how many first proposals there are
    max_candidates: how many candidates there are in all, duplicates not counted
    repairs: how often a failed candidate is repaired
    refinements: how often a line is refined
    batch: how many neighbouring lines are refined in one request; 1 for each by itself
    patience: after how many steps without a gain a line ends
    min_effect: what counts as a gain
    seed: what seeds of requests are derived from
    kinds: what the proposer can do
    """

    lines: int = 4
    max_candidates: int = 16
    repairs: int = 2
    refinements: int = 2
    batch: int = 1
    patience: int = 1
    min_effect: float = 0.02
    seed: int = 0
    kinds: frozenset[Kind] = frozenset(Kind)


@dataclass(frozen=True, slots=True)
class Entry:
    """A candidate in the tree.

    id: its own, derived from its place: ``2.1`` is the second candidate of line 2
    parent: the id of the one it came of
    kind: what was asked for when it came
    line, step: where in the tree
    tried: what is known of it; None until it is judged
    duplicate_of: the id of an earlier one, or "base", that it equals
    """

    id: str
    parent: str | None
    kind: Kind
    line: int
    step: int
    tried: Tried | None = None
    duplicate_of: str | None = None


class Loop:
    """Asked what to do; told what came of it."""

    def __init__(self, rules: LoopRules) -> None:
        self.rules = rules
        raise NotImplementedError

    def ask(self) -> list[Request]:
        """Requests that can be made now and have not been given out yet, in a fixed order."""
        raise NotImplementedError

    def reply(self, request: Request, digests: Sequence[str | None]) -> list[Entry]:
        """A reply came: the digest of each candidate (None: there is none); "" equals the base.

        Returns what was entered; those without `duplicate_of` have to be judged.
        """
        raise NotImplementedError

    def judge(self, id: str, tried: Tried) -> None:
        """A candidate's verdict; for one that is timed, after its timing."""
        raise NotImplementedError

    def stop(self, why: str) -> None:
        """No more requests: time, tokens or money ran out, or somebody said so."""
        raise NotImplementedError

    @property
    def is_over(self) -> bool:
        """Whether nothing is asked for, awaited or to be judged any more."""
        raise NotImplementedError
