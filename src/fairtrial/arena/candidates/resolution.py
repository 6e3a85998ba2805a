"""Resolve candidates against the base: which files they change, and whether they may."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType

from fairtrial.arena.candidates.base_files import (
    BaseFiles,
    GitEntry,
    ScratchIndex,
    list_base,
    scratch_index,
)
from fairtrial.arena.candidates.diff_application import MAX_FAILURES, apply_diff
from fairtrial.arena.candidates.digest import normalized_digest
from fairtrial.arena.candidates.folders import MAX_CANDIDATE_MB, MB
from fairtrial.arena.candidates.paths import (
    PathChange,
    PathRules,
    find_link_problem,
    find_path_problem,
    show_path,
)
from fairtrial.arena.model.candidates import Candidate, Changes, FileState
from fairtrial.arena.model.problem import BESIDE
from fairtrial.arena.model.verdicts import Failure, Reason, Rejection
from fairtrial.arena.snapshot.repository import find_repository
from fairtrial.arena.snapshot.revisions import THE_TREE, find_commit, find_objects
from fairtrial.arena.snapshot.snapshot import Snapshot, take_snapshot

_SUBMODULE = "160000"
Files = Mapping[str, FileState | None]


async def resolve(
    candidate: Candidate, snapshot: Snapshot, rules: PathRules
) -> Changes | Rejection:
    """Return a candidate's changes to the base, or a rejection if it can't be used.

    Files that equal the base's are left out. Never raises because of a candidate's content.
    """
    from anyio import to_thread

    size = len(candidate.diff or b"") + sum(
        len(state.content) for state in candidate.files.values()
    )
    if size > MAX_CANDIDATE_MB * MB:
        return Rejection(
            Reason.UNUSABLE, f"it is larger than {MAX_CANDIDATE_MB} MB ({size / MB:.1f} MB)"
        )
    if (candidate.diff is not None) + bool(candidate.files) + bool(candidate.revision) > 1:
        message = "it has more than one of a diff, files and a revision: give one of them"
        return Rejection(Reason.UNUSABLE, message)
    left_out: tuple[str, ...] = ()
    base = await list_base(snapshot)
    with scratch_index(snapshot, base) as scratch:
        if candidate.revision or candidate.diff is not None:
            if candidate.revision:
                entries, left_out = await _compare_revision(
                    candidate.revision, scratch, base, rules
                )
            else:
                entries = await apply_diff(candidate.diff or b"", scratch, base, rules.cwd)
            changed = (
                entries if isinstance(entries, Rejection) else await _load_entries(entries, scratch)
            )
        else:
            changed = _overlay(_rebase(candidate.files, rules.cwd), base)
        if isinstance(changed, Rejection):
            return changed
        before = await _load_base(changed, scratch, base)
    files = {path: state for path, state in sorted(changed.items()) if state != before.get(path)}
    rejection = _refuse_links(files, base) or _refuse_paths(files, base, rules)
    if rejection is not None:
        return rejection
    digest = await to_thread.run_sync(normalized_digest, files, before.get)
    return Changes(MappingProxyType(files), digest, left_out)


async def resolve_diff(diff: bytes, snapshot: Snapshot) -> Changes | Rejection:
    """Return the changes of a diff to a base, whatever candidates may change; or a rejection."""
    base = await list_base(snapshot)
    with scratch_index(snapshot, base) as scratch:
        entries = await apply_diff(diff, scratch, base, ".")
        if isinstance(entries, Rejection):
            return entries
        changed = await _load_entries(entries, scratch)
    if isinstance(changed, Rejection):
        return changed
    return _refuse_links(changed, base) or Changes(MappingProxyType(dict(sorted(changed.items()))))


async def _compare_revision(
    revision: str, scratch: ScratchIndex, base: BaseFiles, rules: PathRules
) -> tuple[Mapping[str, GitEntry | None] | Rejection, tuple[str, ...]]:
    """Return the entries that a revision changes, and the paths of changes that are left out.

    Raises `StudyError` if there is no such revision.
    """
    if revision == THE_TREE:
        home = scratch.folder / "tree"
        home.mkdir()
        taken = await take_snapshot(scratch.snapshot.source, home)
        tree, objects = taken.tree, taken.repo / "objects"
    else:
        repository = await find_repository(scratch.snapshot.source)
        tree = f"{await find_commit(repository, revision)}^{{tree}}"
        objects = await find_objects(repository)
    changed = await scratch.compare_tree(tree, objects)
    submodules = [path for path, entry in changed.items() if entry and entry.mode == _SUBMODULE]
    own = {path for path in changed if BESIDE in PurePosixPath(path).parts}  # not the project's
    skipped = {*submodules, *own}
    entries = {path: entry for path, entry in changed.items() if path not in skipped}
    if rules.is_strict:
        return entries, ()
    left_out = [
        path
        for path, entry in entries.items()
        if rules.find_violation(path, _find_change(path, entry, base), base.paths)
    ]
    kept = {path: entry for path, entry in entries.items() if path not in set(left_out)}
    return kept, tuple(path for path in left_out if path not in rules.fixed)


def _find_change(path: str, state: object | None, base: BaseFiles) -> PathChange:
    if state is None:
        return PathChange.REMOVED
    return PathChange.CHANGED if path in base.entries else PathChange.ADDED


async def editable_files(snapshot: Snapshot, rules: PathRules) -> dict[str, FileState]:
    """Return the files of the base that candidates may change, by path."""
    base = await list_base(snapshot)
    entries = {
        path: entry
        for path, entry in base.entries.items()
        if rules.find_violation(path, PathChange.CHANGED) is None and entry.mode != _SUBMODULE
    }
    with scratch_index(snapshot, base) as scratch:
        contents = await scratch.contents(entry.blob for entry in entries.values())
    return {path: entry.state(contents[entry.blob]) for path, entry in entries.items()}


async def editable_texts(snapshot: Snapshot, rules: PathRules) -> tuple[dict[str, str], list[str]]:
    """Return the editable text files, and the paths of those that are not UTF-8."""
    texts, unread = {}, []
    for path, state in (await editable_files(snapshot, rules)).items():
        if state.is_link or b"\0" in state.content:
            continue
        try:
            texts[path] = state.content.decode("utf-8")
        except UnicodeDecodeError:
            unread.append(path)
    return texts, sorted(unread)


async def _load_entries(
    entries: Mapping[str, GitEntry | None], scratch: ScratchIndex
) -> Files | Rejection:
    """Return the files that a diff changes, or a rejection if they can't be used."""
    for path, entry in entries.items():
        if entry and entry.mode == _SUBMODULE:
            message = f"the path {show_path(path)} would be a repository of its own"
            return Rejection(Reason.UNUSABLE, message)
    blobs = [entry.blob for entry in entries.values() if entry]
    sizes = await scratch.sizes(blobs)
    size = sum(sizes[blob] for blob in blobs)
    if size > MAX_CANDIDATE_MB * MB:
        message = (
            f"the files that it changes come to more than {MAX_CANDIDATE_MB} MB "
            f"({size / MB:.1f} MB)"
        )
        return Rejection(Reason.UNUSABLE, message)
    contents = await scratch.contents(blobs)
    return {
        path: entry.state(contents[entry.blob]) if entry else None
        for path, entry in entries.items()
    }


async def _load_base(paths: Files, scratch: ScratchIndex, base: BaseFiles) -> dict[str, FileState]:
    entries = {path: base.entries[path] for path in paths if path in base.entries}
    contents = await scratch.contents(entry.blob for entry in entries.values())
    return {path: entry.state(contents[entry.blob]) for path, entry in entries.items()}


def _rebase(files: Mapping[str, FileState], cwd: str) -> Mapping[str, FileState]:
    """Return the files by paths relative to the top; they may be relative to the project's folder.

    All editable files lie below that folder, so the two cases can't be confused.
    """
    prefix = "" if cwd in (".", "") else f"{cwd}/"
    if any(path.startswith(prefix) for path in files):
        return files
    return {prefix + path: state for path, state in files.items()}


def _overlay(files: Mapping[str, FileState], base: BaseFiles) -> Files | Rejection:
    """Return the states of whole files; modes that the candidate leaves open are the base's."""
    overlaid: dict[str, FileState | None] = {}
    for path, state in files.items():
        problem = find_path_problem(path) or _find_obstacle(path, files, base)
        if problem:
            return Rejection(Reason.UNUSABLE, f"the path {show_path(path)} {problem}")
        entry = base.entries.get(path)
        executable = state.executable
        if executable is None:
            executable = entry is not None and entry.state(b"").executable is True
        is_executable = executable and not state.is_link
        overlaid[path] = FileState(state.content, is_executable, state.is_link)
    return overlaid


def _find_obstacle(path: str, files: Mapping[str, FileState], base: BaseFiles) -> str | None:
    """Describe a file or link where a folder has to be, or the other way round."""
    if path in base.paths and path not in base.entries:
        return "is a folder in the base: to replace it takes a diff"
    parent = path.rpartition("/")[0]
    while parent:
        new_state = files.get(parent)
        entry = base.entries.get(parent)
        if new_state is not None or entry is not None:
            is_link = (
                new_state.is_link if new_state else entry is not None and entry.state(b"").is_link
            )
            kind = "a symbolic link" if is_link else "a file"
            return f"leads through {show_path(parent)}, which is {kind}"
        parent = parent.rpartition("/")[0]
    return None


def _refuse_links(files: Files, base: BaseFiles) -> Rejection | None:
    """Return a rejection if a link leads out of the tree, directly or by way of others."""
    links = {path: state for path, state in files.items() if state and state.is_link}
    if not links:
        return None

    def read_link(path: str) -> str | None:
        if path in files:
            state = links.get(path)
            return os.fsdecode(state.content) if state else None
        return base.links.get(path)

    for path, state in links.items():
        problem = find_link_problem(path, os.fsdecode(state.content), read_link)
        if problem:
            return Rejection(Reason.UNUSABLE, f"the symbolic link {show_path(path)} {problem}")
    return None


def _refuse_paths(files: Files, base: BaseFiles, rules: PathRules) -> Rejection | None:
    """Return a rejection with all files that candidates may not change; None if there are none."""
    failures = []
    for path, state in files.items():
        change = _find_change(path, state, base)
        violation = rules.find_violation(path, change, base.paths)
        if violation:
            failures.append(Failure("paths", path, f"{change.value}: {violation}"))
    if not failures:
        return None
    first = failures[0].message.partition(": ")[2]
    more = f", and {len(failures) - 1} more" if len(failures) > 1 else ""
    return Rejection(
        Reason.OUTSIDE,
        f"{first}{more}",
        tuple(failures[:MAX_FAILURES]),
        max(len(failures) - MAX_FAILURES, 0),
    )
