"""Progress events about candidates that are judged, and about an A/A test."""

from __future__ import annotations

from dataclasses import dataclass

from fairtrial.arena.model.judgements import Judgement
from fairtrial.arena.model.timings import Estimate
from fairtrial.core import events


@dataclass(frozen=True, slots=True)
class CheckStarted(events.Event):
    """A candidate's checks begin.

    candidate_id: the candidate's name, which is unique in an evaluation, or its id in the tree of
        an optimization
    """

    candidate_id: str


@dataclass(frozen=True, slots=True)
class TimingProgress(events.Event):
    """A candidate is being timed; emitted between sessions.

    candidate_id: the candidate, as in `CheckStarted`
    sessions: how many sessions it has had; 0 when timing begins
    estimate: its speed relative to the base so far, if that is known
    """

    candidate_id: str
    sessions: int
    estimate: Estimate | None = None

    @property
    def text(self) -> str:
        """`10 sessions, 1.04x [0.99, 1.09]`, as far as it is known; empty when timing begins."""
        return _describe(self.sessions, self.estimate)


@dataclass(frozen=True, slots=True)
class CandidateJudged(events.Event):
    """A candidate has a judgement: after its checks, or again after its timing.

    candidate_id: the candidate, as in `CheckStarted`
    judgement: the judgement
    """

    candidate_id: str
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class SelfComparisonDone(events.Event):
    """The base was compared with itself once more, in an A/A test.

    number: which comparison it was, from 1
    total: how many there are to be
    sessions: how many sessions of each benchmark it had
    estimate: the speed of one copy relative to the other, if that is known
    """

    number: int
    total: int
    sessions: int
    estimate: Estimate | None = None

    @property
    def text(self) -> str:
        """`3 of 20: 6 sessions, 1.01x [0.99, 1.02]`."""
        return f"{self.number} of {self.total}: {_describe(self.sessions, self.estimate)}"


def _describe(sessions: int, estimate: Estimate | None) -> str:
    parts = [f"{sessions:,} session{'' if sessions == 1 else 's'}"] if sessions else []
    parts += [estimate.text()] if estimate else []
    return ", ".join(parts)
