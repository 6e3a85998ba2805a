"""Who is to blame for a candidate that has no verdict: it, or we."""

from __future__ import annotations

from fairtrial.arena.model.candidates import Candidate, Changes
from fairtrial.arena.model.judgements import Judgement
from fairtrial.arena.model.verdicts import Reason, Rejection, Verdict
from fairtrial.core import FairtrialError


def rejected(candidate: Candidate, digest: str, rejection: Rejection) -> Judgement:
    """A candidate that this is said of: rejected, or not judged if the reason is ours."""
    verdict = Verdict.INCONCLUSIVE if is_our_fault(rejection) else Verdict.REJECTED
    return Judgement(candidate.name, digest, verdict, rejection=rejection.cleaned())


def is_our_fault(found: Changes | Rejection) -> bool:
    """Whether it couldn't be read, and not through its own fault."""
    return isinstance(found, Rejection) and found.reason == Reason.EVALUATOR


def unjudged(candidate: Candidate, error: Exception, changes: Changes | Rejection) -> Judgement:
    """A candidate that could not be judged, and not through its own fault."""
    digest = changes.digest if isinstance(changes, Changes) else ""
    return rejected(candidate, digest, blame_us(error))


def blame_us(error: BaseException) -> Rejection:
    """What to say of a candidate when something failed that is ours."""
    text = str(error) if isinstance(error, FairtrialError) else f"{type(error).__name__}: {error}"
    return Rejection(Reason.EVALUATOR, f"it could not be judged: {text}")
