"""Interim looks: records of who saw verdicts before all runs were done, in a file by the ledger.

Not in the ledger itself: only the process that runs the study writes to that, and a look may come
while it runs.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from fairtrial.study.ledger.ledger_summary import Summary
from fairtrial.study.model.runs import RunStatus
from fairtrial.study.model.study import Study

INTERIM_LOOKS_NAME = "looks.jsonl"
TESTED_STATUSES = (RunStatus.SUCCESS, RunStatus.FAILED)


@dataclass(frozen=True, slots=True)
class InterimLook:
    """One time that verdicts on partial results were shown.

    at: when
    results: how many runs had succeeded or failed by then
    planned: how many runs were planned
    """

    at: str
    results: int
    planned: int


def record_interim_look(folder: Path, study: Study, summary: Summary) -> None:
    """Record that verdicts are shown, if some but not all planned runs have results.

    Looks that see the same number of results as the last one are not recorded.

    If the file can't be written, the look isn't recorded, and nothing is raised.
    """
    results = sum(summary.counts.get(status.value, 0) for status in TESTED_STATUSES)
    if not study.hypotheses or not results or not summary.pending:
        return
    if [look.results for look in read_interim_looks(folder)[-1:]] == [results]:
        return
    look = InterimLook(datetime.now(UTC).isoformat(timespec="seconds"), results, summary.planned)
    with suppress(OSError), (folder / INTERIM_LOOKS_NAME).open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(look)) + "\n")


def read_interim_looks(folder: Path) -> tuple[InterimLook, ...]:
    """Return the recorded looks, the earliest first; lines that can't be read are skipped."""
    looks = []
    with suppress(OSError, UnicodeDecodeError):
        for line in (folder / INTERIM_LOOKS_NAME).read_text("utf-8").splitlines():
            with suppress(ValueError, TypeError, KeyError):
                fields = json.loads(line)
                at, results, planned = fields["at"], fields["results"], fields["planned"]
                looks.append(InterimLook(str(at), int(results), int(planned)))
    return tuple(looks)
