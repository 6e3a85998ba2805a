"""Looks at results before all of them were there: a file beside the ledger.

Not in the ledger: only who runs the study writes to that, and a look may come while it runs.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

INTERIM_LOOKS_NAME = "looks.jsonl"


@dataclass(frozen=True, slots=True)
class InterimLook:
    """Verdicts that somebody was shown.

    results: how many runs had succeeded or failed by then
    planned: of how many
    """

    at: str
    results: int
    planned: int


def record_interim_look(folder: Path, results: int, planned: int) -> None:
    """Write down that somebody looks now, unless the last one saw as much.

    Where nothing can be written the look is not counted, and not refused either.
    """
    if [each.results for each in read_interim_looks(folder)[-1:]] == [results]:
        return
    look = InterimLook(datetime.now(UTC).isoformat(timespec="seconds"), results, planned)
    with suppress(OSError), (folder / INTERIM_LOOKS_NAME).open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(look)) + "\n")


def read_interim_looks(folder: Path) -> tuple[InterimLook, ...]:
    """The looks that were written down, the earliest first; what is no look is passed over."""
    looks = []
    with suppress(OSError, UnicodeDecodeError):
        for line in (folder / INTERIM_LOOKS_NAME).read_text("utf-8").splitlines():
            with suppress(ValueError, TypeError, KeyError):
                told = json.loads(line)
                looks.append(
                    InterimLook(str(told["at"]), int(told["results"]), int(told["planned"]))
                )
    return tuple(looks)
