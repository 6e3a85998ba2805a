"""Changes of the plan and the claims after results were known, which p values don't allow for."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairtrial.core import dump_record
from fairtrial.study.design.runs import count_replicates
from fairtrial.study.ledger.claim_changes import (
    ClaimKey,
    ClaimRole,
    Departure,
    collect_claims,
    describe_claim_changes,
    find_departures,
    hypothesis_plan_pairs,
)
from fairtrial.study.ledger.fingerprint import differences
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.sqlite_errors import damaged, explained
from fairtrial.study.model.hypotheses import HypothesisKind
from fairtrial.study.model.runs import RunStatus
from fairtrial.study.model.study import Study

AMENDMENTS_FACT = "amendments"
FIRST_STUDY_FACT = "first study"
CHANGES_FACT = "changes"
_WITH_RESULT = (RunStatus.SUCCESS.value, RunStatus.FAILED.value)
_COUNT_KNOWN = (
    "SELECT count(*) FROM (SELECT turn FROM results WHERE status IN (?, ?) "
    "UNION SELECT turn FROM attempts WHERE status IN (?, ?))"
)
LIMIT_FIELDS = ("max_runs", "max_runs_policy", "timeout_s")
"""The fields of a budget that decide which runs there are and when one has failed."""


@dataclass(frozen=True, slots=True)
class Amendment:
    """A change of the number of replicates after results were known.

    before: the replicates of each run before the change
    after: the replicates of each run after it
    runs_done: how many runs had succeeded or failed by then
    at: when the new plan was stored
    """

    before: int
    after: int
    runs_done: int
    at: str


@dataclass(frozen=True, slots=True)
class StudyVersion:
    """One version of a study.

    study: the study
    runs_done: how many runs had succeeded or failed by then, those that left the plan included
    at: when it was stored; None for a version that was only passed to a report
    accepted: other changes that came with it: agents, factors, limits
    """

    study: Study
    runs_done: int
    at: str | None
    accepted: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimStanding:
    """How a claim is to be read: as confirmatory or exploratory.

    standing: the role of the claim
    why: how it departs from its first version; None if it doesn't
    known: how many results were known when it departed
    """

    standing: ClaimRole
    why: Departure | None = None
    known: int = 0


@dataclass(frozen=True, slots=True)
class ClaimHistory:
    """The versions of a study's claims.

    first: the study before the first result (`runs_done` is 0), or at the first time that a version
        was stored; None if none was
    later: the versions that were stored after results were known, the earliest first
    """

    first: StudyVersion | None = None
    later: tuple[StudyVersion, ...] = ()

    def changes(self) -> list[tuple[StudyVersion, list[str]]]:
        """Return each later version with how its claims differ from those of the one before."""
        if self.first is None:
            return []
        versions = [self.first, *self.later]
        return [
            (new, describe_claim_changes(old.study, new.study))
            for old, new in zip(versions, self.later, strict=False)
        ]

    def standings(self, study: Study) -> dict[ClaimKey, ClaimStanding]:
        """Return the standing of each claim of a study, under each plan that tests it."""
        departed = self._departed_claims(study)
        unchanged: ClaimRole = "confirmatory"
        if self.first is None or self.first.runs_done:
            unchanged = "unknown"
        standings: dict[ClaimKey, ClaimStanding] = {}
        for claim, plan in hypothesis_plan_pairs(study):
            key = (claim.hypothesis_id, plan.analysis_plan_id if plan else None)
            if plan is None or claim.kind is HypothesisKind.EXPLORATORY:
                standings[key] = ClaimStanding("exploratory")
            else:
                standings[key] = departed.get(key, ClaimStanding(unchanged))
        return standings

    def _departed_claims(self, study: Study) -> dict[ClaimKey, ClaimStanding]:
        """Return the claims that differ from the first version, with the results known then."""
        if self.first is None:
            return {}
        first = collect_claims(self.first.study)
        known: dict[ClaimKey, int] = {}
        for version in self.later:
            for key in find_departures(first, collect_claims(version.study)):
                known.setdefault(key, version.runs_done)
        departures = find_departures(first, collect_claims(study))
        return {
            key: ClaimStanding("exploratory", departure, known.get(key, 0))
            for key, departure in departures.items()
        }

    def to_dict(self, study: Study) -> dict[str, Any]:
        """Return the history as plain data, with the standing of each claim of a study."""
        return {
            "laid_down_at": self.first and self.first.at,
            "results_known": self.first and self.first.runs_done,
            "standing": [
                {"hypothesis_id": claim, "analysis_plan_id": plan, "standing": stands.standing}
                for (claim, plan), stands in self.standings(study).items()
            ],
            "changes": [
                {"at": version.at, "results_known": version.runs_done, "changes": changes}
                for version, claim_changes in self.changes()
                if (changes := [*claim_changes, *version.accepted])
            ],
        }


def read_amendments(reader: LedgerReader) -> tuple[Amendment, ...]:
    """Return the amendments of a study, the earliest first; raises `LedgerError` if damaged."""
    text = reader.fact(AMENDMENTS_FACT)
    try:
        return tuple(Amendment(**fields) for fields in json.loads(text or "[]"))
    except (ValueError, TypeError) as error:
        raise damaged(reader.path, f"'{AMENDMENTS_FACT}' can't be read: {error}") from error


def read_claim_history(reader: LedgerReader) -> ClaimHistory:
    """Return the history of a study's claims, empty for an old ledger; `LedgerError` if damaged."""
    first, later = reader.fact(FIRST_STUDY_FACT), reader.fact(CHANGES_FACT)
    try:
        return ClaimHistory(
            None if first is None else _read_version(json.loads(first)),
            tuple(map(_read_version, json.loads(later or "[]"))),
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise damaged(reader.path, f"the history of the claims can't be read: {error}") from error


def _read_version(data: dict[str, Any]) -> StudyVersion:
    study = Study.from_dict(data["study"])
    return StudyVersion(study, int(data["runs_done"]), data["at"], tuple(data.get("accepted", ())))


def count_known_results(reader: LedgerReader) -> int:
    """Return how many runs have had a result that can have been seen.

    Includes runs that left the plan, and those whose result was replaced by another attempt's.
    """
    with explained(reader.path):
        return int(
            reader.connection.execute(_COUNT_KNOWN, (*_WITH_RESULT, *_WITH_RESULT)).fetchone()[0]
        )


def first_version_facts(study: Study, at: str) -> dict[str, str]:
    """Return the facts to store with a study that has no results yet."""
    return {FIRST_STUDY_FACT: _dump_version(StudyVersion(study, 0, at))}


def amendment_facts(
    reader: LedgerReader, study: Study, at: str, accepted: Sequence[str] = ()
) -> dict[str, str]:
    """Return the facts to store with a study that replaces the one in the ledger.

    accepted: its differences other than in its claims
    """
    known = count_known_results(reader)
    if not known:
        return first_version_facts(study, at)
    facts = _amended_replicates(reader, study, at)
    history, old = read_claim_history(reader), reader.study
    if history.first is None:  # earlier versions are unknown
        facts[FIRST_STUDY_FACT] = _dump_version(StudyVersion(old, known, at))
    accepted = (*accepted, *_limit_changes(old, study))
    if accepted or describe_claim_changes(old, study):
        later = [*history.later, StudyVersion(study, known, at, accepted)]
        facts[CHANGES_FACT] = f"[{', '.join(map(_dump_version, later))}]"
    return facts


def _dump_version(version: StudyVersion) -> str:
    data = {"at": version.at, "runs_done": version.runs_done, "accepted": list(version.accepted)}
    return json.dumps({**data, "study": version.study.to_dict()})


def _limit_changes(old: Study, new: Study) -> list[str]:
    before, after = (
        {name: getattr(study.run_budget, name) for name in LIMIT_FIELDS} for study in (old, new)
    )
    return [f"run_budget.{difference}" for difference in differences(before, after)]


def _amended_replicates(reader: LedgerReader, study: Study, at: str) -> dict[str, str]:
    """Return the fact with a new amendment; empty if replicates are the same or no run is done."""
    before, after = count_replicates(reader.study), count_replicates(study)
    counts = reader.summary().counts
    done = sum(counts.get(status.value, 0) for status in (RunStatus.SUCCESS, RunStatus.FAILED))
    if before == after or not done:
        return {}
    amendments = [*read_amendments(reader), Amendment(before, after, done, at)]
    return {AMENDMENTS_FACT: json.dumps([dump_record(amendment) for amendment in amendments])}
