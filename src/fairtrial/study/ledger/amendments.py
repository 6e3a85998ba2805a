"""What became of the plan and the claims after results were there: p values don't allow for it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairtrial.core import dump
from fairtrial.study.design.runs import replicates_of
from fairtrial.study.ledger.claim_changes import (
    Departure,
    Pair,
    Standing,
    claim_changes,
    claims_of,
    departures,
    pairs_of,
)
from fairtrial.study.ledger.fingerprint import differences
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.sqlite_errors import damaged, explained
from fairtrial.study.model.hypotheses import HypothesisKind
from fairtrial.study.model.runs import RunStatus
from fairtrial.study.model.study import Study

FACT = "amendments"
FIRST = "first study"
CHANGES = "changes"
_TOLD = (RunStatus.SUCCESS.value, RunStatus.FAILED.value)
_KNOWN = (
    "SELECT count(*) FROM (SELECT turn FROM results WHERE status IN (?, ?) "
    "UNION SELECT turn FROM attempts WHERE status IN (?, ?))"
)
LIMITS = ("max_runs", "max_runs_policy", "timeout_s")
"""What a budget says of which runs there are, and of when one has failed."""


@dataclass(frozen=True, slots=True)
class Amendment:
    """A change of the number of replicates that came after results.

    before, after: the replicates of each run, then and from then on
    runs_done: how many runs had succeeded or failed by then
    at: when the plan was laid down again
    """

    before: int
    after: int
    runs_done: int
    at: str


@dataclass(frozen=True, slots=True)
class Laid:
    """A study as it was laid down.

    runs_done: how many runs had succeeded or failed by then, those that left the plan included
    at: when; None for one that was only handed to a report
    accepted: what else was changed with it: agents, factors, limits
    """

    study: Study
    runs_done: int
    at: str | None
    accepted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stands:
    """How a claim stands.

    why: in what it is not as it was laid down; None if it is, or never was a claim
    known: how many results were known when it became so
    """

    standing: Standing
    why: Departure | None = None
    known: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """How the claims of a study came to be what they are.

    first: the study as it was before the first result (`runs_done` is 0), or as it was when that
        was first noted; None if nobody did
    later: each change that came after results, the earliest first
    """

    first: Laid | None = None
    later: tuple[Laid, ...] = ()

    def changes(self) -> list[tuple[Laid, list[str]]]:
        """Each later study, and in what its claims differ from those before it."""
        if self.first is None:
            return []
        before = [self.first, *self.later]
        return [
            (new, claim_changes(old.study, new.study))
            for old, new in zip(before, self.later, strict=False)
        ]

    def standings(self, study: Study) -> dict[Pair, Stands]:
        """How each claim of a study stands, under each plan that tests it."""
        late = self._late(study)
        plain: Standing = "confirmatory"
        if self.first is None or self.first.runs_done:
            plain = "unknown"
        found: dict[Pair, Stands] = {}
        for claim, plan in pairs_of(study):
            pair = (claim.hypothesis_id, plan.analysis_plan_id if plan else None)
            if plan is None or claim.kind is HypothesisKind.EXPLORATORY:
                found[pair] = Stands("exploratory")
            else:
                found[pair] = late.get(pair, Stands(plain))
        return found

    def _late(self, study: Study) -> dict[Pair, Stands]:
        """The claims that are not as they were laid down at first, and since when."""
        if self.first is None:
            return {}
        first = claims_of(self.first.study)
        known: dict[Pair, int] = {}
        for laid in self.later:
            for pair in departures(first, claims_of(laid.study)):
                known.setdefault(pair, laid.runs_done)
        now = departures(first, claims_of(study))
        return {pair: Stands("exploratory", why, known.get(pair, 0)) for pair, why in now.items()}

    def to_dict(self, study: Study) -> dict[str, Any]:
        """The same as plain data, with the standing of each claim of a study."""
        return {
            "laid_down_at": self.first and self.first.at,
            "results_known": self.first and self.first.runs_done,
            "standing": [
                {"hypothesis_id": claim, "analysis_plan_id": plan, "standing": stands.standing}
                for (claim, plan), stands in self.standings(study).items()
            ],
            "changes": [
                {"at": laid.at, "results_known": laid.runs_done, "changes": told}
                for laid, lines in self.changes()
                if (told := [*lines, *laid.accepted])
            ],
        }


def read_amendments(reader: LedgerReader) -> tuple[Amendment, ...]:
    """The amendments of a study, the earliest first; none in a ledger that knows of none."""
    text = reader.fact(FACT)
    try:
        return tuple(Amendment(**each) for each in json.loads(text or "[]"))
    except (ValueError, TypeError) as error:
        raise damaged(reader.path, f"'{FACT}' can't be read: {error}") from error


def read_record(reader: LedgerReader) -> Record:
    """How the claims came to be what they are; an older ledger doesn't know."""
    first, later = reader.fact(FIRST), reader.fact(CHANGES)
    try:
        return Record(
            None if first is None else _read_laid(json.loads(first)),
            tuple(map(_read_laid, json.loads(later or "[]"))),
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise damaged(reader.path, f"the claims as laid down can't be read: {error}") from error


def _read_laid(data: dict[str, Any]) -> Laid:
    study = Study.from_dict(data["study"])
    return Laid(study, int(data["runs_done"]), data["at"], tuple(data.get("accepted", ())))


def results_known(reader: LedgerReader) -> int:
    """How many runs had a result that anybody can have seen.

    Those that left the plan are included, and those whose result gave way to another attempt's.
    """
    with explained(reader.path):
        return int(reader.connection.execute(_KNOWN, (*_TOLD, *_TOLD)).fetchone()[0])


def first_laid(study: Study, at: str) -> dict[str, str]:
    """The fact to lay down with a study that nobody can have seen a result of."""
    return {FIRST: _laid(Laid(study, 0, at))}


def amended(
    reader: LedgerReader, study: Study, at: str, accepted: Sequence[str] = ()
) -> dict[str, str]:
    """The facts to lay down with a study that takes the place of the one in the ledger.

    accepted: in what it differs otherwise than by its claims
    """
    known = results_known(reader)
    if not known:
        return first_laid(study, at)
    facts = _amended_replicates(reader, study, at)
    record, old = read_record(reader), reader.study
    if record.first is None:  # what the study was before can't be told any more
        facts[FIRST] = _laid(Laid(old, known, at))
    accepted = (*accepted, *_limit_changes(old, study))
    if accepted or claim_changes(old, study):
        later = [*record.later, Laid(study, known, at, accepted)]
        facts[CHANGES] = f"[{', '.join(map(_laid, later))}]"
    return facts


def _laid(laid: Laid) -> str:
    data = {"at": laid.at, "runs_done": laid.runs_done, "accepted": list(laid.accepted)}
    return json.dumps({**data, "study": laid.study.to_dict()})


def _limit_changes(old: Study, new: Study) -> list[str]:
    before, after = (
        {name: getattr(each.run_budget, name) for name in LIMITS} for each in (old, new)
    )
    return [f"run_budget.{line}" for line in differences(before, after)]


def _amended_replicates(reader: LedgerReader, study: Study, at: str) -> dict[str, str]:
    """Empty if the replicates are the same, or no result of the plan is there."""
    before, after = replicates_of(reader.study), replicates_of(study)
    counts = reader.summary().counts
    done = sum(counts.get(status.value, 0) for status in (RunStatus.SUCCESS, RunStatus.FAILED))
    if before == after or not done:
        return {}
    told = [*read_amendments(reader), Amendment(before, after, done, at)]
    return {FACT: json.dumps([dump(each) for each in told])}
