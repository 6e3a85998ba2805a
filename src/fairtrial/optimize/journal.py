"""The journal of an optimization: what is written, and what a later attempt reads back."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from fairtrial.arena import CodeProblem, Judgement, Verdict
from fairtrial.core import canonical_json
from fairtrial.optimize.proposals import Tried
from fairtrial.study import agents

REPLY, PARTIAL, VERDICT, SETTING = "reply", "step", "verdict", "setting"


@dataclass(frozen=True, slots=True)
class JournalState:
    """What earlier attempts at the same run have committed: it isn't paid for or judged again.

    replies: records of replies, by the key of their request
    partial_replies: records of replies, whose attempt ended before the reply was complete
    verdicts: finished judgements, by digest
    seconds: how long earlier attempts have made requests
    """

    replies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    partial_replies: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    verdicts: Mapping[str, Judgement] = field(default_factory=dict)
    seconds: float = 0.0


class OptimizationJournal(Protocol):
    """Entries that survive the process: see `Task.journal`."""

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
        """Append an entry with what was paid for it; return once it is durable."""
        ...

    def entries(self) -> Iterable[agents.JournalEntry]:
        """Return the entries of earlier attempts and of this one."""
        ...


def read_journal(journal: OptimizationJournal, setting: Mapping[str, Any]) -> JournalState:
    """Return what a journal holds for a setting; write the setting down for later attempts.

    setting: what replies and verdicts depend on: the proposer and the base. Entries that were
        committed under another setting don't count.
    """
    replies: dict[str, Mapping[str, Any]] = {}
    partial_replies: dict[str, Mapping[str, Any]] = {}
    verdicts: dict[str, Judgement] = {}
    seconds: dict[str, float] = {}
    own = compute_fingerprint(setting)
    is_valid = False
    for entry in journal.entries():
        if entry.kind == SETTING:
            is_valid = entry.data["fingerprint"] == own
        elif is_valid and entry.kind == REPLY:
            replies.setdefault(str(entry.data["key"]), entry.data)
        elif is_valid and entry.kind == PARTIAL:
            partial_replies[str(entry.data["key"])] = (
                entry.data
            )  # the last holds all that came before
        elif is_valid and entry.kind == VERDICT:
            judgement = read_judgement(entry.data)
            if judgement is not None:
                _add_verdict(verdicts, judgement)
        if is_valid and "at_s" in entry.data:  # the last of each attempt says how long it took
            seconds[entry.data["attempt"]] = entry.data["at_s"]
    if not is_valid:
        journal.append(SETTING, {"fingerprint": own})
    return JournalState(replies, partial_replies, verdicts, sum(seconds.values()))


def _add_verdict(verdicts: dict[str, Judgement], judgement: Judgement) -> None:
    """Add a judgement; one whose times are another machine's has passed, and is timed again here.

    Times of different machines are never compared: an attempt may go on elsewhere in a cluster.
    """
    measured = judgement.measurement
    if measured is not None and measured.host not in ("", socket.gethostname()):
        judgement = replace(judgement, verdict=Verdict.PASSED, measurement=None)
    known = verdicts.get(judgement.digest)
    if known is None or (known.verdict == Verdict.PASSED and judgement.measurement is not None):
        verdicts[judgement.digest] = judgement


def problem_fingerprint(problem: CodeProblem) -> str:
    """Return a digest of a problem's content, independent of where its file is."""
    return compute_fingerprint(problem.identity())


def compute_fingerprint(setting: Mapping[str, Any]) -> str:
    """Return a digest of plain data."""
    return hashlib.sha256(canonical_json(setting).encode("utf-8")).hexdigest()


def make_judgement_record(judgement: Judgement) -> dict[str, Any]:
    """Return a judgement as plain data, without the samples of its timing."""
    import msgspec

    measurement = judgement.measurement
    if measurement is not None:
        judgement = replace(judgement, measurement=replace(measurement, sessions=()))
    record: dict[str, Any] = msgspec.to_builtins(judgement)
    return record


def read_judgement(record: Mapping[str, Any]) -> Judgement | None:
    """Return the judgement that a record holds; None if another version wrote another form."""
    import msgspec

    try:
        return msgspec.convert(record, Judgement)
    except msgspec.ValidationError:
        return None


def make_tried(judgement: Judgement, diff: str) -> Tried:
    """Return a judged candidate as proposers see it."""
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
    """Return whether a judgement is worth keeping: not if the evaluator itself failed."""
    return bool(judgement.digest) and not judgement.is_unjudged
