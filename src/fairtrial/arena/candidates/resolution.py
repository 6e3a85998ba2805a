"""Candidates: what they come to against the base."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType

from fairtrial.arena.candidates.base_files import BaseFiles, Entry, Scratch, list_base, scratch
from fairtrial.arena.candidates.diff_application import MOST_FAILURES, apply_diff
from fairtrial.arena.candidates.digest import normalised_digest
from fairtrial.arena.candidates.folders import LARGEST_MB, MB
from fairtrial.arena.candidates.paths import Change, PathRules, leads_out, spell, unsafe_path
from fairtrial.arena.model.candidates import Candidate, Changes, FileState
from fairtrial.arena.model.verdicts import Failure, Reason, Rejection
from fairtrial.arena.snapshot.snapshot import Snapshot

_SUBMODULE = "160000"
Files = Mapping[str, FileState | None]


async def resolve(
    candidate: Candidate, snapshot: Snapshot, rules: PathRules
) -> Changes | Rejection:
    """What a candidate comes to against the base, or why it can't be used.

    Files that equal the base are left out. Never raises for what a candidate is.
    """
    from anyio import to_thread

    size = len(candidate.diff or b"") + sum(len(each.content) for each in candidate.files.values())
    if size > LARGEST_MB * MB:
        return Rejection(Reason.UNUSABLE, f"it is larger than {LARGEST_MB} MB ({size / MB:.1f} MB)")
    if candidate.diff is not None and candidate.files:
        return Rejection(Reason.UNUSABLE, "it has both a diff and files: give one of them")
    base = await list_base(snapshot)
    with scratch(snapshot, base) as area:
        if candidate.diff is not None:
            entries = await apply_diff(candidate.diff, area, base, rules.cwd)
            found = entries if isinstance(entries, Rejection) else await _load(entries, area)
        else:
            found = _overlay(_from_top(candidate.files, rules.cwd), base)
        if isinstance(found, Rejection):
            return found
        before = await _load_base(found, area, base)
    files = {path: state for path, state in sorted(found.items()) if state != before.get(path)}
    rejection = _refuse_links(files, base) or _refuse_paths(files, base, rules)
    if rejection is not None:
        return rejection
    digest = await to_thread.run_sync(normalised_digest, files, before.get)
    return Changes(MappingProxyType(files), digest)


async def editable_files(snapshot: Snapshot, rules: PathRules) -> dict[str, FileState]:
    """The files of the base that candidates may change."""
    base = await list_base(snapshot)
    entries = {
        path: entry
        for path, entry in base.entries.items()
        if rules.mistake(path, Change.CHANGED) is None and entry.mode != _SUBMODULE
    }
    with scratch(snapshot, base) as area:
        contents = await area.contents(entry.blob for entry in entries.values())
    return {path: entry.state(contents[entry.blob]) for path, entry in entries.items()}


async def editable_texts(snapshot: Snapshot, rules: PathRules) -> tuple[dict[str, str], list[str]]:
    """Those of them that are texts; and the paths of texts that are no UTF-8."""
    texts, unread = {}, []
    for path, state in (await editable_files(snapshot, rules)).items():
        if state.is_link or b"\0" in state.content:
            continue
        try:
            texts[path] = state.content.decode("utf-8")
        except UnicodeDecodeError:
            unread.append(path)
    return texts, sorted(unread)


async def _load(entries: Mapping[str, Entry | None], area: Scratch) -> Files | Rejection:
    """The contents of what a diff came to, if they aren't too large."""
    for path, entry in entries.items():
        if entry and entry.mode == _SUBMODULE:
            message = f"the path {spell(path)} would be a repository of its own"
            return Rejection(Reason.UNUSABLE, message)
    blobs = [entry.blob for entry in entries.values() if entry]
    sizes = await area.sizes(blobs)
    size = sum(sizes[blob] for blob in blobs)
    if size > LARGEST_MB * MB:
        message = (
            f"the files that it changes come to more than {LARGEST_MB} MB ({size / MB:.1f} MB)"
        )
        return Rejection(Reason.UNUSABLE, message)
    contents = await area.contents(blobs)
    return {
        path: entry.state(contents[entry.blob]) if entry else None
        for path, entry in entries.items()
    }


async def _load_base(paths: Files, area: Scratch, base: BaseFiles) -> dict[str, FileState]:
    entries = {path: base.entries[path] for path in paths if path in base.entries}
    contents = await area.contents(entry.blob for entry in entries.values())
    return {path: entry.state(contents[entry.blob]) for path, entry in entries.items()}


def _from_top(files: Mapping[str, FileState], cwd: str) -> Mapping[str, FileState]:
    """The same by paths from the top; files that were written for the project's folder lie there.

    What is editable lies below that folder, so that the two can't be confused.
    """
    prefix = "" if cwd in (".", "") else f"{cwd}/"
    if any(path.startswith(prefix) for path in files):
        return files
    return {prefix + path: state for path, state in files.items()}


def _overlay(files: Mapping[str, FileState], base: BaseFiles) -> Files | Rejection:
    """Whole files over the base: what the candidate leaves open is what the base has."""
    overlaid: dict[str, FileState | None] = {}
    for path, state in files.items():
        wrong = unsafe_path(path) or _obstacle(path, files, base)
        if wrong:
            return Rejection(Reason.UNUSABLE, f"the path {spell(path)} {wrong}")
        entry = base.entries.get(path)
        executable = state.executable
        if executable is None:
            executable = entry is not None and entry.state(b"").executable is True
        is_executable = executable and not state.is_link
        overlaid[path] = FileState(state.content, is_executable, state.is_link)
    return overlaid


def _obstacle(path: str, files: Mapping[str, FileState], base: BaseFiles) -> str | None:
    """A file or link where a folder has to be, or the other way round."""
    if path in base.places and path not in base.entries:
        return "is a folder in the base: to replace it takes a diff"
    parent = path.rpartition("/")[0]
    while parent:
        there = files.get(parent)
        entry = base.entries.get(parent)
        if there is not None or entry is not None:
            is_link = there.is_link if there else entry is not None and entry.state(b"").is_link
            kind = "a symbolic link" if is_link else "a file"
            return f"leads through {spell(parent)}, which is {kind}"
        parent = parent.rpartition("/")[0]
    return None


def _refuse_links(files: Files, base: BaseFiles) -> Rejection | None:
    """Links that lead out of the tree, by themselves or by way of others."""
    links = {path: state for path, state in files.items() if state and state.is_link}
    if not links:
        return None

    def link_at(path: str) -> str | None:
        if path in files:
            state = links.get(path)
            return os.fsdecode(state.content) if state else None
        return base.links.get(path)

    for path, state in links.items():
        wrong = leads_out(path, os.fsdecode(state.content), link_at)
        if wrong:
            return Rejection(Reason.UNUSABLE, f"the symbolic link {spell(path)} {wrong}")
    return None


def _refuse_paths(files: Files, base: BaseFiles, rules: PathRules) -> Rejection | None:
    """Files that candidates may not change, all of them."""
    failures = []
    for path, state in files.items():
        there = path in base.entries
        change = Change.REMOVED if state is None else Change.CHANGED if there else Change.ADDED
        mistake = rules.mistake(path, change, base.places)
        if mistake:
            failures.append(Failure("paths", path, f"{change.value}: {mistake}"))
    if not failures:
        return None
    first = failures[0].message.partition(": ")[2]
    others = f", and {len(failures) - 1} more" if len(failures) > 1 else ""
    return Rejection(
        Reason.OUTSIDE,
        f"{first}{others}",
        tuple(failures[:MOST_FAILURES]),
        max(len(failures) - MOST_FAILURES, 0),
    )
