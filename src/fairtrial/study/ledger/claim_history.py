"""The history of a study's claims: which are confirmatory, which exploratory, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from fairtrial.study.ledger.amendments import StudyVersion, read_versions
from fairtrial.study.ledger.claim_changes import (
    ClaimKey,
    ClaimRole,
    Departure,
    collect_claims,
    describe_claim_changes,
    find_departures,
    hypothesis_plan_pairs,
)
from fairtrial.study.ledger.data_changes import (
    DataChange,
    find_data_changes,
    is_planned,
    touches,
)
from fairtrial.study.ledger.earlier_folders import EarlierFolder, read_earlier_folders
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.model.hypotheses import AnalysisPlan, Hypothesis, HypothesisKind
from fairtrial.study.model.study import Study


@dataclass(frozen=True, slots=True)
class ClaimStanding:
    """How a claim is to be read: as confirmatory or exploratory.

    standing: the role of the claim
    why: how it departs from its first version; None if it doesn't
    known: how many results were known when it departed
    data: the changes of data that concern it
    folders: other output directories with earlier results of the same runs, or of more problems
    """

    standing: ClaimRole
    why: Departure | None = None
    known: int = 0
    data: tuple[DataChange, ...] = ()
    folders: tuple[EarlierFolder, ...] = ()


@dataclass(frozen=True, slots=True)
class ClaimHistory:
    """The versions of a study's claims.

    first: the study before the first result (`runs_done` is 0), or at the first time that a version
        was stored; None if none was
    later: the versions that were stored after results were known, or after the study was locked on
        request, the earliest first
    data: the changes of data after results were known
    folders: other output directories with earlier results of the same study
    """

    first: StudyVersion | None = None
    later: tuple[StudyVersion, ...] = ()
    data: tuple[DataChange, ...] = ()
    folders: tuple[EarlierFolder, ...] = ()

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
                standing = departed.get(key, ClaimStanding(unchanged))
                standings[key] = self._add_data(standing, claim, plan)
        return standings

    def _add_data(
        self, standing: ClaimStanding, claim: Hypothesis, plan: AnalysisPlan
    ) -> ClaimStanding:
        """Return the standing of a claim, exploratory if its data were changed or known before."""
        data = tuple(
            change
            for change in self.data
            if not is_planned(change, plan) and touches(change, claim, plan)
        )
        folders = tuple(folder for folder in self.folders if folder.may_be_picked)
        if not data and not folders:
            return standing
        return replace(standing, standing="exploratory", data=data, folders=folders)

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
            "data_changes": [
                {"change": change.what, "results_known": change.known} for change in self.data
            ],
            "earlier_folders": [folder.to_dict() for folder in self.folders],
        }


def read_claim_history(reader: LedgerReader) -> ClaimHistory:
    """Return the history of a study's claims, empty for an old ledger; `LedgerError` if damaged."""
    first, later = read_versions(reader)
    data = find_data_changes(reader, first, later) if reader.study.hypotheses else ()
    return ClaimHistory(first, later, data, read_earlier_folders(reader))
