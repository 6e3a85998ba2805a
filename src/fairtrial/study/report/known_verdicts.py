"""Verdicts as last reported, kept in a file by the ledger, so that lists of studies are quick."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from fairtrial.core import StudyError, atomic_write
from fairtrial.study.report.hypothesis_test import HypothesisTest

KNOWN_VERDICTS_NAME = "verdicts.json"


@dataclass(frozen=True, slots=True)
class KnownVerdict:
    """The verdict on one claim.

    hypothesis_id: the claim
    outcome: the outcome that it was tested on
    verdict: the verdict
    """

    hypothesis_id: str
    outcome: str
    verdict: str


def list_verdicts(tests: Iterable[HypothesisTest]) -> tuple[KnownVerdict, ...]:
    """Return the verdicts of the deciding tests."""
    return tuple(
        KnownVerdict(test.hypothesis_id, test.outcome, str(test.verdict))
        for test in tests
        if test.decides
    )


def keep_verdicts(folder: Path, results: int, verdicts: Iterable[KnownVerdict]) -> None:
    """Keep verdicts in a folder; if the file can't be written, nothing is raised.

    results: how many runs had results
    """
    data = {"results": results, "verdicts": [asdict(verdict) for verdict in verdicts]}
    with (
        suppress(OSError, StudyError),
        atomic_write(folder / KNOWN_VERDICTS_NAME) as file,
    ):
        file.write(json.dumps(data, indent=2) + "\n")


def read_verdicts(folder: Path, results: int) -> tuple[KnownVerdict, ...] | None:
    """Return the verdicts that were kept; None if there are none of this number of results."""
    try:
        data = json.loads((folder / KNOWN_VERDICTS_NAME).read_text("utf-8"))
        if data["results"] != results:
            return None
        return tuple(KnownVerdict(**verdict) for verdict in data["verdicts"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
