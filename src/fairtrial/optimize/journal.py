"""What an optimisation writes into its journal, and what a later attempt knows from it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from fairtrial.arena import CodeProblem, Judgement
from fairtrial.core import canonical_json, dump
from fairtrial.optimize.proposals import Tried
from fairtrial.study import JournalEntry

REPLY, STEP, VERDICT, SETTING = "reply", "step", "verdict", "setting"


@dataclass(frozen=True, slots=True)
class Known:
    """What earlier attempts at the same run have paid for: not to be paid for again.

    replies: recorded answers, by the key of their request
    steps: the same of what was paid for on the way to answers that nobody lived to see
    verdicts: finished judgements, by digest
    seconds: how long it has been asked for
    """

    replies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    steps: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    verdicts: Mapping[str, Judgement] = field(default_factory=dict)
    seconds: float = 0.0


class Journal(Protocol):
    """What survives us: see `Task.journal`."""

    def append(
        self,
        kind: str,
        data: Mapping[str, Any],
        /,
        *,
        cost_usd: float | None = None,
        input_tokens: int = 0,
        output_tokens: int = 0,
    ) -> None:
        """Returns when it is durable, with what was paid for it."""
        ...

    def entries(self) -> Iterable[JournalEntry]:
        """What earlier attempts have committed, and this one."""
        ...


def open_journal(journal: Journal, setting: Mapping[str, Any]) -> Known:
    """What a journal knows that still holds; the setting is written down for later attempts.

    setting: what answers and verdicts depend on: who proposes, and on which base. What was
        committed under another one doesn't count.
    """
    replies: dict[str, Mapping[str, Any]] = {}
    steps: dict[str, Mapping[str, Any]] = {}
    verdicts: dict[str, Judgement] = {}
    seconds: dict[str, float] = {}
    own = fingerprint(setting)
    holds = False
    for entry in journal.entries():
        if entry.kind == SETTING:
            holds = entry.data["fingerprint"] == own
        elif holds and entry.kind == REPLY:
            replies.setdefault(str(entry.data["key"]), entry.data)
        elif holds and entry.kind == STEP:
            steps[str(entry.data["key"])] = entry.data  # the last holds all that came before
        elif holds and entry.kind == VERDICT:
            judgement = judgement_of(entry.data)
            if judgement is not None:
                verdicts.setdefault(judgement.digest, judgement)
        if holds and "at_s" in entry.data:  # the last of each attempt says how long it took
            seconds[entry.data["attempt"]] = entry.data["at_s"]
    if not holds:
        journal.append(SETTING, {"fingerprint": own})
    return Known(replies, steps, verdicts, sum(seconds.values()))


def problem_print(problem: CodeProblem) -> str:
    """The same for a problem that asks for the same, wherever its file is."""
    return fingerprint(dump(problem))


def fingerprint(setting: Mapping[str, Any]) -> str:
    """The same for the same setting."""
    return hashlib.sha256(canonical_json(setting).encode("utf-8")).hexdigest()


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


def judgement_of(record: Mapping[str, Any]) -> Judgement | None:
    """The judgement that was recorded; None if another version of ours wrote it differently."""
    import msgspec

    try:
        return msgspec.convert(record, Judgement)
    except msgspec.ValidationError:
        return None


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
    return bool(judgement.digest) and not judgement.is_unjudged
