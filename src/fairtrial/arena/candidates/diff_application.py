"""Applying a diff to the base: git does it, on an index of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from fairtrial.arena.candidates.base_files import BaseFiles, Entry, Scratch
from fairtrial.arena.candidates.diff_parser import read_diff
from fairtrial.arena.candidates.diff_repair import explain, mend
from fairtrial.arena.candidates.diff_targets import place_diffs
from fairtrial.arena.candidates.diffs import FileDiff, UnreadableDiff
from fairtrial.arena.candidates.paths import spell
from fairtrial.arena.model.verdicts import Failure, Reason, Rejection
from fairtrial.arena.snapshot.git import GitError
from fairtrial.core import on_one_line

MOST_FAILURES = 20
_TIMEOUT_S = 60.0
LARGEST_PIECE_MB = 256
"""What git may take at once: a small patch can say that it unpacks to any size."""
# Not the candidate's doing: the disk is full, the private repository is gone.
_OURS = re.compile(
    r": (?:No space left on device|Read-only file system|Input/output error|Disk quota exceeded)$"
    r"|^(?:fatal|error): (?:not a git repository|unable to (?:write|create)|Out of memory)",
    re.MULTILINE,
)


async def apply_diff(
    text: bytes, area: Scratch, base: BaseFiles, cwd: str
) -> Mapping[str, Entry | None] | Rejection:
    """What a diff changes, as entries of the scratch index; or why it doesn't apply."""
    from anyio import to_thread

    try:
        # In a thread, as all that takes longer for a longer diff: others are waiting.
        diffs = await to_thread.run_sync(lambda: place_diffs(_read(text), base, cwd))
    except UnreadableDiff as error:
        return Rejection(Reason.UNUSABLE, f"the diff can't be used: {error}")
    failures = _misplaced(diffs, base)
    if failures:
        return _refuse(failures, len(failures))
    if not diffs:
        return {}
    complaint = await _apply(diffs, area)
    if complaint is not None:
        contents = await _contents(diffs, area, base)
        mended = await to_thread.run_sync(_mend, diffs, contents)
        if mended != diffs:
            complaint = await _apply(mended, area)
        if complaint is not None:
            return await to_thread.run_sync(_explain, mended, contents, complaint)
    return await area.changed()


def _mend(diffs: Sequence[FileDiff], contents: Mapping[str, bytes]) -> list[FileDiff]:
    return [mend(diff, contents.get(diff.old or "", b"")) for diff in diffs]


def _explain(diffs: Sequence[FileDiff], contents: Mapping[str, bytes], complaint: str) -> Rejection:
    failures: list[Failure] = []
    count = 0
    for diff in diffs:
        if diff.old is not None and diff.old in contents:
            found, more = explain(diff, contents[diff.old], MOST_FAILURES - len(failures))
            failures += found
            count += more
    return _refuse(failures, count, complaint)


def _read(text: bytes) -> list[FileDiff]:
    diffs = read_diff(text)
    if not diffs and text.strip():
        raise UnreadableDiff(
            "there is no diff in it: expected '--- a/file', '+++ b/file', '@@ ...'"
        )
    return diffs


async def _apply(diffs: Sequence[FileDiff], area: Scratch) -> str | None:
    """What git says against it; None if it has applied it."""
    import anyio

    text = b"".join(diff.write() for diff in diffs)
    # A hunk without lines around it is taken at its word; git refuses it otherwise.
    command = ("apply", "--cached", "--unidiff-zero", "--whitespace=nowarn", "-p1", "-")
    with anyio.move_on_after(_TIMEOUT_S) as scope:
        try:
            await area.git(*command, stdin=text, GIT_ALLOC_LIMIT=f"{LARGEST_PIECE_MB}m")
        except GitError as error:
            if error.status < 0 or _OURS.search(error.stderr):
                raise
            if "attempting to allocate" in error.stderr:
                return f"it unpacks to more than {LARGEST_PIECE_MB} MB"
            return error.stderr
    return f"applying it takes longer than {_TIMEOUT_S:.0f} s" if scope.cancelled_caught else None


def _misplaced(diffs: Sequence[FileDiff], base: BaseFiles) -> list[Failure]:
    """Files that must be in the base and aren't, or the other way round."""
    failures = []
    there = set(base.entries)
    for diff in diffs:
        what = spell(diff.name)
        if diff.old is not None and diff.old not in there:
            message = f"{spell(diff.old)} is not in the base{_suggest(diff.old, base)}"
            failures.append(Failure("diff", what, message))
        elif diff.old is None and diff.new in there:
            message = "it is in the base already: the diff has to change it, not to make it"
            failures.append(Failure("diff", what, message))
        if diff.old and diff.old != diff.new and diff.moved != "copy":
            there.discard(diff.old)
        if diff.new:
            there.add(diff.new)
    return failures


def _suggest(path: str, base: BaseFiles) -> str:
    """Where a file of that name is."""
    tail = "/" + path.rpartition("/")[2]
    found = [each for each in base.entries if f"/{each}".endswith(tail)]
    return f"; did you mean {spell(found[0])}?" if len(found) == 1 else ""


async def _contents(diffs: Sequence[FileDiff], area: Scratch, base: BaseFiles) -> dict[str, bytes]:
    """The files of the base that a diff has hunks for."""
    paths = {diff.old for diff in diffs if diff.hunks and diff.old is not None}
    entries = {path: base.entries[path] for path in paths if path in base.entries}
    contents = await area.contents(entry.blob for entry in entries.values())
    return {path: contents[entry.blob] for path, entry in entries.items()}


def _refuse(failures: Sequence[Failure], count: int, complaint: str = "") -> Rejection:
    if failures:
        first = failures[0]
        what = f"{first.what}: {first.message.partition('; what stands')[0]}"
    else:
        lines = (line.removeprefix("error: ") for line in complaint.splitlines())
        what = "; ".join(line for line in lines if line.strip())
    return Rejection(
        Reason.UNUSABLE,
        on_one_line(f"the diff doesn't apply: {what}", 1000),
        tuple(failures[:MOST_FAILURES]),
        max(count - MOST_FAILURES, 0),
    )
