"""Requests to proposers, and their replies.

A *lineage* is a first proposal and all candidates that descend from it: repaired, refined, adapted,
step by step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from fairtrial.arena import Candidate, Estimate, Failure, Verdict


class RequestKind(StrEnum):
    """The kind of a request."""

    INITIAL = "initial"
    """a first proposal"""
    REPAIR = "repair"
    """to correct a candidate that failed its checks"""
    REFINE = "refine"
    """to make a candidate that passed faster still"""
    ADAPT = "adapt"
    """to refine a candidate again, given the history of its lineage"""


@dataclass(frozen=True, slots=True)
class Tried:
    """A judged candidate, as proposers see it.

    name: its name
    digest: the digest of its normalized change
    diff: its change against the base, as a unified diff
    verdict: its verdict
    why: why it was rejected, or what speaks against adopting it
    failures: the checks that failed, with expected and actual values
    estimate: its speed relative to the base, if it was timed
    """

    name: str
    digest: str
    diff: str
    verdict: Verdict
    why: str = ""
    failures: tuple[Failure, ...] = ()
    estimate: Estimate | None = None


def get_worth(tried: Tried) -> float:
    """Return the speed relative to the base; at most 1 if something speaks against adopting it."""
    ratio = tried.estimate.ratio if tried.estimate else 1.0
    return min(ratio, 1.0) if tried.why else ratio


def step_gains(history: Sequence[Tried]) -> tuple[float | None, ...]:
    """Return the gain of each step of a lineage: its speed relative to the best step before it.

    The first step is compared with the base. Steps that weren't timed have None. Later steps
    continue from the best candidate, so that this is the gain of the step itself.
    """
    best: float | None = None
    gains: list[float | None] = []
    for tried in history:
        if tried.estimate is None or tried.verdict == Verdict.REJECTED:
            gains.append(None)
            continue
        gains.append(tried.estimate.ratio / (best or 1.0))
        best = max(best or 0.0, get_worth(tried))
    return tuple(gains)


@dataclass(frozen=True, slots=True)
class Brief:
    """What all requests of one optimization have in common.

    problem_id: the problem's id
    task: the task, in words
    files: the editable text files of the base, by path
    checks: what must hold, one line each
    benchmarks: what is timed, one line each
    min_effect: the smallest gain that counts
    """

    problem_id: str
    task: str
    files: Mapping[str, str]
    checks: tuple[str, ...] = ()
    benchmarks: tuple[str, ...] = ()
    min_effect: float = 0.02


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a proposer.

    kind: its kind
    lineage: the number of its lineage; of the first one, if it is about several
    step: how many candidates that lineage has already
    replicate: tells requests apart that are equal otherwise
    seed: the seed of random choices
    about: the candidates to change: none for a first proposal, one to repair, one or more to refine
    history: the candidates of its lineage so far, the oldest first
    wanted: how many candidates are wanted: one for each of `about`, or one
    """

    kind: RequestKind
    lineage: int
    step: int
    replicate: int = 0
    seed: int = 0
    about: tuple[Tried, ...] = ()
    history: tuple[Tried, ...] = ()
    wanted: int = 1

    @property
    def key(self) -> str:
        """The key of recorded replies; independent of the prompt, which holds measured figures."""
        # Journals and records of earlier versions are found by this text: "line" must stay.
        parents = ",".join(tried.digest for tried in self.about) or f"line {self.lineage}"
        return f"{self.kind.value}/{parents}/{self.step}/{self.replicate}"


@dataclass(frozen=True, slots=True)
class Usage:
    """What a reply took.

    model: the model or program that replied
    prompt_tokens, completion_tokens: the tokens as the endpoint counts them
    cost_usd: its cost; None if that isn't known
    seconds: its duration
    """

    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = 0.0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """All tokens."""
        return self.prompt_tokens + self.completion_tokens

    def divided_by(self, count: int) -> Usage:
        """Return an equal share; tokens are rounded down, so that shares may not add up exactly."""
        if count == 1:
            return self
        cost_usd = None if self.cost_usd is None else self.cost_usd / count
        prompt, completion = self.prompt_tokens // count, self.completion_tokens // count
        return Usage(self.model, prompt, completion, cost_usd, self.seconds / count)


@dataclass(frozen=True, slots=True)
class Reply:
    """A proposer's reply to a request.

    candidates: as many as wanted, or fewer; for several `about`, in their order, None where there
        is no candidate
    usage: what it took, all attempts together
    refusal: why there is no candidate at all
    exchange: what was sent and received, for the record; plain data, without secrets
    """

    candidates: tuple[Candidate | None, ...] = ()
    usage: Usage = Usage()
    refusal: str = ""
    exchange: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)
