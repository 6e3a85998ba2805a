"""How an arena is to work: what is done, not what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fairtrial.core import (
    Emit,
    Mistake,
    StudyError,
    convert,
    describe,
    field_types,
    ignore_event,
)


@dataclass(frozen=True, slots=True)
class ArenaSettings:
    """How an arena is to work.

    unsandboxed: whether candidates may run without a sandbox, where there is none
    warm: whether checks may start from a process that has imported third-party packages already
    keep_slots: whether the slots stay on disk afterwards, for somebody to look at
    lock_folder: where the host-wide lock is, if not in its usual place
    timing: what is done with candidates that passed: `race` looks for the best of them, `each`
        times every one until something can be said of it, `none` leaves it at the checks
    instructions: whether the instructions of candidates that were timed are counted, too
    emit: takes progress events: the phases of the work, and whether it waits for the machine
    """

    unsandboxed: bool = False
    warm: bool = True
    keep_slots: bool = False
    lock_folder: Path | None = None
    timing: Literal["race", "each", "none"] = "race"
    instructions: bool = False
    emit: Emit = ignore_event

    def __post_init__(self) -> None:
        mistakes: list[Mistake] = []
        for name, hint in field_types(type(self)).items():
            if name != "emit":
                value = convert(getattr(self, name), hint, (name,), mistakes)
                object.__setattr__(self, name, value)
        if not callable(self.emit):
            mistakes.append(Mistake(("emit",), f"expected a function, got {describe(self.emit)}"))
        if mistakes:
            raise StudyError(mistakes, source=type(self).__name__)
