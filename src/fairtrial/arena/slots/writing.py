"""What is written into a slot: a file, a diff, a candidate or resolved changes."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import Any

from fairtrial.arena.candidates.resolution import resolve_diff
from fairtrial.arena.model.candidates import Candidate, Changes, FileState
from fairtrial.arena.model.verdicts import Rejection
from fairtrial.arena.snapshot.snapshot import Snapshot
from fairtrial.core import Mistake, StudyError, describe_value

DIFF_MARKS = (b"diff --git ", b"--- ", b"@@ ", b"+++ ", b"Index: ")


async def read_changes(snapshot: Snapshot, candidate: Any, code: str | bytes | None) -> Changes:
    """Return what a candidate changes; see `WorktreeSlot.write_candidate`."""
    if isinstance(candidate, Changes) and code is None:
        return candidate
    if code is not None:
        if not isinstance(candidate, (str, Path)):
            given = describe_value(candidate)
            raise StudyError(Mistake(("candidate",), f"expected a path beside code, got {given}"))
        files = {Path(candidate).as_posix(): FileState(code)}
        return Changes(MappingProxyType(files))
    if isinstance(candidate, Candidate):
        if candidate.revision:
            hint = "`evaluate_candidates` takes them"
            raise StudyError(Mistake(("candidate",), "a slot takes no revision", hint))
        if candidate.diff is None:
            return Changes(MappingProxyType(dict(candidate.files)))
        return await _read_diff(snapshot, candidate.diff)
    if isinstance(candidate, (str, bytes)):
        diff = Candidate("diff", diff=candidate).diff or b""
        if not any(line.startswith(DIFF_MARKS) for line in diff.splitlines()):
            hint = "write_candidate(path, code) writes a file"
            raise StudyError(Mistake(("candidate",), "is no diff", hint))
        return await _read_diff(snapshot, diff)
    expected = "expected a path with code, a diff, Changes, or a Candidate"
    raise StudyError(Mistake(("candidate",), f"{expected}, got {describe_value(candidate)}"))


async def _read_diff(snapshot: Snapshot, diff: bytes) -> Changes:
    """Return the changes of a diff; raises `StudyError` if it doesn't apply or changes nothing."""
    changes = await resolve_diff(diff, snapshot)
    if isinstance(changes, Rejection):
        raise StudyError(Mistake(("candidate",), changes.message))
    if not changes.files:
        raise StudyError(Mistake(("candidate",), "the diff changes nothing"))
    return changes
