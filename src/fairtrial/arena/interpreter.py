"""The Python that a problem's checks run with: where it is, and what it needs to be seen."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Interpreter:
    """What a probe of it told.

    executable: as it is called; a link into a virtual environment stays one
    version: (3, 11, 7)
    folders: all that must be readable for it to run: prefixes, standard library, site-packages
        and whatever else is on its path, except the project itself
    has_pytest: whether it can import pytest
    """

    executable: Path
    version: tuple[int, int, int]
    folders: tuple[Path, ...]
    has_pytest: bool
