"""What proposers are asked for, and what they answer.

A *line* is a first proposal and all that comes of it: repaired, refined, adapted, step by step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from fairtrial.arena import Candidate, Estimate, Failure, Verdict


class RequestKind(StrEnum):
    """What is asked for."""

    INITIAL = "initial"
    """something new"""
    REPAIR = "repair"
    """a candidate that failed, with what it did wrong"""
    REFINE = "refine"
    """a candidate that passed, to be made better still"""
    ADAPT = "adapt"
    """the same for one whose ancestor was refined: with the history of its line"""


@dataclass(frozen=True, slots=True)
class Tried:
    """A candidate that was judged, as proposers are told of it.

    name: what it is called
    digest: what it is, normalised
    diff: its change against the base, as a unified diff
    verdict: what it is
    why: why it was rejected, or what speaks against it; in a line or more
    failures: what failed, with expected and actual values
    estimate: how fast it is compared with the base, if it was timed
    """

    name: str
    digest: str
    diff: str
    verdict: Verdict
    why: str = ""
    failures: tuple[Failure, ...] = ()
    estimate: Estimate | None = None


def worth_of(tried: Tried) -> float:
    """How many times as fast as the base; no faster than it if something speaks against it."""
    ratio = tried.estimate.ratio if tried.estimate else 1.0
    return min(ratio, 1.0) if tried.why else ratio


def step_gains(history: Sequence[Tried]) -> tuple[float | None, ...]:
    """What each step of a line gained, as a ratio to the best before it; of the first, to the base.

    None for those that weren't timed. Later rounds go on from the best, so that this is what the
    step itself did.
    """
    best: float | None = None
    gains: list[float | None] = []
    for tried in history:
        if tried.estimate is None or tried.verdict == Verdict.REJECTED:
            gains.append(None)
            continue
        gains.append(tried.estimate.ratio / (best or 1.0))
        best = max(best or 0.0, worth_of(tried))
    return tuple(gains)


@dataclass(frozen=True, slots=True)
class Brief:
    """What all requests of one optimisation share.

    problem_id: the problem's
    task: what is asked, in words
    files: the editable files of the base that are texts, by path
    checks: what must hold, one line each
    benchmarks: what is timed, one line each
    min_effect: the smallest gain that is worth anything
    """

    problem_id: str
    task: str
    files: Mapping[str, str]
    checks: tuple[str, ...] = ()
    benchmarks: tuple[str, ...] = ()
    min_effect: float = 0.02


@dataclass(frozen=True, slots=True)
class Request:
    """One thing that a proposer is asked for.

    kind: what is asked for
    line: which line it is about; the first of them, if it is about several
    step: how many requests that line has had before
    replicate: which of several equal requests it is
    seed: for whatever is drawn
    about: those it is about: none for something new, one to repair, one or more to refine
    history: what its line has tried so far, the oldest first
    wanted: how many candidates are asked for: one for each of `about`, or one
    """

    kind: RequestKind
    line: int
    step: int
    replicate: int = 0
    seed: int = 0
    about: tuple[Tried, ...] = ()
    history: tuple[Tried, ...] = ()
    wanted: int = 1

    @property
    def key(self) -> str:
        """What a recorded answer is found by: not the prompt, which holds measured figures."""
        parents = ",".join(tried.digest for tried in self.about) or f"line {self.line}"
        return f"{self.kind.value}/{parents}/{self.step}/{self.replicate}"


@dataclass(frozen=True, slots=True)
class Usage:
    """What an answer took.

    model: who answered
    prompt_tokens, completion_tokens: as told by whoever counts them
    cost_usd: what it cost; None if that isn't known
    seconds: how long it took
    """

    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = 0.0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.prompt_tokens + self.completion_tokens

    def shared_by(self, count: int) -> Usage:
        """The part of one of so many; tokens are whole, so that parts may not add up exactly."""
        if count == 1:
            return self
        cost_usd = None if self.cost_usd is None else self.cost_usd / count
        prompt, completion = self.prompt_tokens // count, self.completion_tokens // count
        return Usage(self.model, prompt, completion, cost_usd, self.seconds / count)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a proposer answers.

    candidates: as many as wanted, or fewer; for several `about`, in their order, None where there
        is none for that one
    usage: what it took, all attempts together
    refusal: why there is no candidate at all
    exchange: what was sent and received, for the record; plain data, without secrets
    """

    candidates: tuple[Candidate | None, ...] = ()
    usage: Usage = Usage()
    refusal: str = ""
    exchange: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
