"""Options of an arena."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fairtrial.core import Mistake, StudyError, convert_value, describe_value, events, fields


@dataclass(frozen=True, slots=True)
class ArenaSettings:
    """Options of an arena: how candidates are evaluated.

    unsandboxed: whether candidates may run without a sandbox, where there is none
    warm: whether checks may start from a process that has imported third-party packages already
    cache: whether runs of an unchanged base's checks are taken from an earlier arena
    keep_slots: whether the slots stay on disk afterwards, for inspection
    lock_folder: the folder of the host lock, if not the usual one
    timing: what is done with candidates that passed: `race` looks for the best of them, `each`
        times every one until it is decided, `none` only checks them
    audit: whether the checks are audited before candidates are judged
    instructions: whether the instructions of candidates that were timed are counted, too
    strict_paths: whether a revision that changes files outside of `editable` is rejected, as a diff
        is; otherwise such files are left out
    max_regression: if above 0, candidates are timed until it is decided, too, whether they take
        longer than the base by more than this share; not in a race
    emit: called with each progress event: phases of the work, waits for the host lock, candidates
    """

    unsandboxed: bool = False
    warm: bool = True
    cache: bool = True
    keep_slots: bool = False
    lock_folder: Path | None = None
    timing: Literal["race", "each", "none"] = "race"
    audit: bool = True
    instructions: bool = False
    strict_paths: bool = False
    max_regression: float = 0.0
    emit: events.Emit = events.ignore_event

    def __post_init__(self) -> None:
        mistakes: list[Mistake] = []
        for name, hint in fields.field_types(type(self)).items():
            if name != "emit":
                value = convert_value(getattr(self, name), hint, (name,), mistakes)
                object.__setattr__(self, name, value)
        if not callable(self.emit):
            mistakes.append(
                Mistake(("emit",), f"expected a function, got {describe_value(self.emit)}")
            )
        if mistakes:
            raise StudyError(mistakes, source=type(self).__name__)
