"""Checks of the paths that a command writes to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from fairtrial.core import Mistake, StudyError


def refuse_overwriting(targets: Mapping[str, Path | None], sources: Iterable[Path | None]) -> None:
    """Raise `StudyError` if a target is one of the sources, or the target of another option.

    targets: paths to write to, by option
    sources: paths that the command reads
    """
    read = {os.path.realpath(path) for path in sources if path is not None}
    written: dict[str, str] = {}
    for option, path in targets.items():
        if path is None:
            continue
        real_path = os.path.realpath(path)
        if real_path in read:
            message = f"{path} is an input of this command and would be overwritten"
            raise StudyError(Mistake((option,), message, "name another file"))
        if real_path in written:
            message = f"{path} is also the file of {written[real_path]}"
            raise StudyError(Mistake((option,), message, "name another file"))
        written[real_path] = option
