"""Files that a command is to write: none may be one that it reads, or writes already."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from fairtrial.core import Mistake, StudyError


def refuse_overwriting(targets: Mapping[str, Path | None], sources: Iterable[Path | None]) -> None:
    """Refuse an option that names a file which would be lost: a source, or another's target."""
    read = {os.path.realpath(path) for path in sources if path is not None}
    written: dict[str, str] = {}
    for option, path in targets.items():
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in read:
            message = f"{path} is what is read here, and would be lost"
            raise StudyError(Mistake((option,), message, "name another file"))
        if place in written:
            message = f"{path} is the file of {written[place]} too"
            raise StudyError(Mistake((option,), message, "name another file"))
        written[place] = option
