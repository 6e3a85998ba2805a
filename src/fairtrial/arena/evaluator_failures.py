"""Judgements of candidates that were rejected, or not judged because the evaluator failed."""

from __future__ import annotations

from fairtrial.arena.model.candidates import Candidate, Changes
from fairtrial.arena.model.judgements import Judgement
from fairtrial.arena.model.verdicts import Reason, Rejection, Verdict
from fairtrial.core import FairtrialError


def rejected(candidate: Candidate, digest: str, rejection: Rejection) -> Judgement:
    """Return a judgement with this rejection; inconclusive if the evaluator failed."""
    verdict = Verdict.INCONCLUSIVE if is_evaluator_failure(rejection) else Verdict.REJECTED
    return Judgement(candidate.name, digest, verdict, rejection=rejection.cleaned())


def is_evaluator_failure(resolved: Changes | Rejection) -> bool:
    """Return whether a candidate could not be read because the arena failed."""
    return isinstance(resolved, Rejection) and resolved.reason == Reason.EVALUATOR


def unjudged(candidate: Candidate, error: Exception, changes: Changes | Rejection) -> Judgement:
    """Return an inconclusive judgement of a candidate whose evaluation failed with `error`."""
    digest = changes.digest if isinstance(changes, Changes) else ""
    return rejected(candidate, digest, make_evaluator_rejection(error))


def make_evaluator_rejection(error: BaseException) -> Rejection:
    """Return a rejection for the reason `EVALUATOR`, with the error's text."""
    text = str(error) if isinstance(error, FairtrialError) else f"{type(error).__name__}: {error}"
    return Rejection(Reason.EVALUATOR, f"it could not be judged: {text}")
