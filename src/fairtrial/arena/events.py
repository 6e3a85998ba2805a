"""Progress events about a candidate that is being judged."""

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


@dataclass(frozen=True, slots=True)
class CandidateJudged(events.Event):
    """A candidate has a judgement: after its checks, or again after its timing.

    candidate_id: the candidate, as in `CheckStarted`
    judgement: the judgement
    """

    candidate_id: str
    judgement: Judgement
