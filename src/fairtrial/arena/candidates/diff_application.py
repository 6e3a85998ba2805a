"""Apply a diff to the base, by git on a scratch index; repair line ends where necessary."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fairtrial.arena.candidates.base_files import BaseFiles, GitEntry, ScratchIndex
from fairtrial.arena.candidates.diff_parser import read_diff
from fairtrial.arena.candidates.diff_repair import explain_misfits, repair_line_ends
from fairtrial.arena.candidates.diff_targets import resolve_diff_paths
from fairtrial.arena.candidates.diffs import FileDiff, UnreadableDiff
from fairtrial.arena.candidates.paths import show_path
from fairtrial.arena.model.verdicts import Failure, Reason, Rejection
from fairtrial.arena.snapshot.git import GitError
from fairtrial.core import on_one_line

MAX_FAILURES = 20
_TIMEOUT_S = 60.0
MAX_ALLOCATION_MB = 256
"""Limit of git's single allocations: a small binary patch can unpack to any size."""
# Failures that are not the candidate's fault: the disk is full, the private repository is missing.
_SYSTEM_FAILURE = re.compile(
    r": (?:No space left on device|Read-only file system|Input/output error|Disk quota exceeded)$"
    r"|^(?:fatal|error): (?:not a git repository|unable to (?:write|create)|Out of memory)",
    re.MULTILINE,
)


async def apply_diff(
    text: bytes, scratch: ScratchIndex, base: BaseFiles, cwd: str
) -> Mapping[str, GitEntry | None] | Rejection:
    """Return the entries that a diff changes in the scratch index, or why it doesn't apply.

    Raises `LabError` if git fails for reasons other than the diff.

    cwd: the project's folder, which the diff's paths may be relative to
    """
    from anyio import to_thread

    try:
        # In a thread, since a long diff takes time in which other candidates should proceed.
        diffs = await to_thread.run_sync(lambda: resolve_diff_paths(_read(text), base, cwd))
    except UnreadableDiff as error:
        return Rejection(Reason.UNUSABLE, f"the diff can't be used: {error}")
    failures = _find_path_conflicts(diffs, base)
    if failures:
        return _refuse(failures, len(failures))
    if not diffs:
        return {}
    message = await _apply(diffs, scratch)
    if message is not None:
        contents = await _read_contents(diffs, scratch, base)
        repaired = await to_thread.run_sync(_repair, diffs, contents)
        if repaired != diffs:
            message = await _apply(repaired, scratch)
        if message is not None:
            return await to_thread.run_sync(_explain, repaired, contents, message)
    return await scratch.changed()


def _repair(diffs: Sequence[FileDiff], contents: Mapping[str, bytes]) -> list[FileDiff]:
    return [repair_line_ends(diff, contents.get(diff.old or "", b"")) for diff in diffs]


def _explain(diffs: Sequence[FileDiff], contents: Mapping[str, bytes], message: str) -> Rejection:
    failures: list[Failure] = []
    count = 0
    for diff in diffs:
        if diff.old is not None and diff.old in contents:
            limit = MAX_FAILURES - len(failures)
            misfits, misfit_count = explain_misfits(diff, contents[diff.old], limit)
            failures += misfits
            count += misfit_count
    return _refuse(failures, count, message)


def _read(text: bytes) -> list[FileDiff]:
    diffs = read_diff(text)
    if not diffs and text.strip():
        raise UnreadableDiff(
            "there is no diff in it: expected '--- a/file', '+++ b/file', '@@ ...'"
        )
    return diffs


async def _apply(diffs: Sequence[FileDiff], scratch: ScratchIndex) -> str | None:
    """Apply diffs to the index; return git's message if it refuses them, None on success."""
    import anyio

    text = b"".join(diff.write() for diff in diffs)
    # By default git refuses hunks without context.
    command = ("apply", "--cached", "--unidiff-zero", "--whitespace=nowarn", "-p1", "-")
    with anyio.move_on_after(_TIMEOUT_S) as scope:
        try:
            await scratch.git(*command, stdin=text, GIT_ALLOC_LIMIT=f"{MAX_ALLOCATION_MB}m")
        except GitError as error:
            if error.status < 0 or _SYSTEM_FAILURE.search(error.stderr):
                raise
            if "attempting to allocate" in error.stderr:
                return f"it unpacks to more than {MAX_ALLOCATION_MB} MB"
            return error.stderr
    return f"applying it takes longer than {_TIMEOUT_S:.0f} s" if scope.cancelled_caught else None


def _find_path_conflicts(diffs: Sequence[FileDiff], base: BaseFiles) -> list[Failure]:
    """Return failures about changed files that don't exist, and new files that do."""
    failures = []
    existing = set(base.entries)
    for diff in diffs:
        what = show_path(diff.name)
        if diff.old is not None and diff.old not in existing:
            message = f"{show_path(diff.old)} is not in the base{_suggest(diff.old, base)}"
            failures.append(Failure("diff", what, message))
        elif diff.old is None and diff.new in existing:
            message = "it is in the base already: the diff has to change it, not to create it"
            failures.append(Failure("diff", what, message))
        if diff.old and diff.old != diff.new and diff.moved != "copy":
            existing.discard(diff.old)
        if diff.new:
            existing.add(diff.new)
    return failures


def _suggest(path: str, base: BaseFiles) -> str:
    """Return a hint at the only file of the base with the same name; empty if there is none."""
    tail = "/" + path.rpartition("/")[2]
    matches = [entry for entry in base.entries if f"/{entry}".endswith(tail)]
    return f"; did you mean {show_path(matches[0])}?" if len(matches) == 1 else ""


async def _read_contents(
    diffs: Sequence[FileDiff], scratch: ScratchIndex, base: BaseFiles
) -> dict[str, bytes]:
    """Return the contents of the base's files that have hunks in a diff, by path."""
    paths = {diff.old for diff in diffs if diff.hunks and diff.old is not None}
    entries = {path: base.entries[path] for path in paths if path in base.entries}
    contents = await scratch.contents(entry.blob for entry in entries.values())
    return {path: contents[entry.blob] for path, entry in entries.items()}


def _refuse(failures: Sequence[Failure], count: int, message: str = "") -> Rejection:
    if failures:
        first = failures[0]
        what = f"{first.what}: {first.message.partition('; the file now')[0]}"
    else:
        lines = (line.removeprefix("error: ") for line in message.splitlines())
        what = "; ".join(line for line in lines if line.strip())
    return Rejection(
        Reason.UNUSABLE,
        on_one_line(f"the diff doesn't apply: {what}", 1000),
        tuple(failures[:MAX_FAILURES]),
        max(count - MAX_FAILURES, 0),
    )
