"""What an optimisation writes into its journal, and what a later attempt knows from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fairtrial.model.judgements import Judgement
from fairtrial.model.proposals import Tried
from fairtrial.model.verdicts import Verdict

REPLY, VERDICT = "reply", "verdict"


@dataclass(frozen=True, slots=True)
class Known:
    """What earlier attempts at the same run have paid for: not to be paid for again.

    replies: recorded answers, by the key of their request
    verdicts: finished judgements, by digest
    """

    replies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    verdicts: Mapping[str, Judgement] = field(default_factory=dict)


def read_known(entries: Iterable[tuple[str, Mapping[str, Any]]]) -> Known:
    """What a journal's entries, each a kind and its data, come to."""
    replies: dict[str, Mapping[str, Any]] = {}
    verdicts: dict[str, Judgement] = {}
    for kind, data in entries:
        if kind == REPLY:
            replies.setdefault(str(data["key"]), data)
        elif kind == VERDICT:
            judgement = judgement_of(data)
            verdicts.setdefault(judgement.digest, judgement)
    return Known(replies, verdicts)


def judgement_record(judgement: Judgement) -> dict[str, Any]:
    """A judgement as plain data; the samples of its timing are left out."""
    import msgspec

    measured = judgement.measurement
    kept = judgement if measured is None else _without_sessions(judgement)
    record: dict[str, Any] = msgspec.to_builtins(kept)
    return record


def _without_sessions(judgement: Judgement) -> Judgement:
    assert judgement.measurement is not None
    return replace(judgement, measurement=replace(judgement.measurement, sessions=()))


def judgement_of(record: Mapping[str, Any]) -> Judgement:
    """The judgement that was recorded."""
    import msgspec

    return msgspec.convert(record, Judgement)


def tried_of(judgement: Judgement, diff: str) -> Tried:
    """A judged candidate as proposers are told of it."""
    measured, rejection = judgement.measurement, judgement.rejection
    if rejection is not None:
        why = f"{rejection.reason.value}: {rejection.message}"
    else:
        why = "; ".join(measured.vetoes) if measured else ""
    return Tried(
        name=judgement.name,
        digest=judgement.digest,
        diff=diff,
        verdict=judgement.verdict,
        why=why,
        failures=rejection.failures if rejection else (),
        estimate=measured.estimate if measured else None,
    )


def is_final(judgement: Judgement) -> bool:
    """Whether it is worth keeping: not one that failed for a reason of ours."""
    is_ours = judgement.verdict == Verdict.INCONCLUSIVE and judgement.rejection is not None
    return bool(judgement.digest) and not is_ours
