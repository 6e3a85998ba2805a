"""An agent's slot: what the agent sees of its folder, and the changes it leaves there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairtrial.arena.candidates.base_files import BaseFiles, list_base
from fairtrial.arena.candidates.folders import MAX_CANDIDATE_MB, MB
from fairtrial.arena.candidates.patches import render_patch
from fairtrial.arena.candidates.paths import PathChange, PathRules, find_path_problem
from fairtrial.arena.model.candidates import Changes, FileState
from fairtrial.arena.slots.threads import in_thread
from fairtrial.arena.snapshot.git import git
from fairtrial.arena.snapshot.snapshot import Snapshot
from fairtrial.arena.stage import Stage, common_variables
from fairtrial.arena.workshop.private_slot import Files, PrivateSlot, TooLargeError, read_entry
from fairtrial.sandbox import Mount, View

HOME = Path("/home/fairtrial-agent")
"""An agent's home in a full sandbox; files in the usual home would count as memory there."""
_GIT_IDENTITY = {
    "GIT_AUTHOR_NAME": "agent",
    "GIT_AUTHOR_EMAIL": "agent@localhost",
    "GIT_COMMITTER_NAME": "agent",
    "GIT_COMMITTER_EMAIL": "agent@localhost",
}
"""For agents that commit."""


@dataclass(frozen=True, slots=True)
class AgentChanges:
    """An agent's changes, as far as candidates may contain them.

    diff: the diff against the base; empty if nothing differs
    files: the changed files that candidates may change
    before: the base's version of these files
    dropped: other changed paths, which candidates may not change
    is_as_given: whether the agent changed nothing
    """

    diff: bytes
    files: Files
    before: Files
    dropped: tuple[str, ...]
    is_as_given: bool


class AgentSlot:
    """A private slot in which an agent sees the project at the user's own path."""

    def __init__(
        self,
        private: PrivateSlot,
        stage: Stage,
        snapshot: Snapshot,
        rules: PathRules,
        base: Path,
        about: Files,
        included: Sequence[str] = (),
    ) -> None:
        """Describe a slot; `Workshop.slot` makes them.

        private: its folders
        stage: how commands run there
        snapshot: the base
        rules: which paths candidates may change
        base: a folder with the base's files
        about: the changes that were applied before the agent started
        included: paths in the slot that aren't the base's
        """
        self._private, self._stage, self._snapshot = private, stage, snapshot
        self._rules, self._base, self._about = rules, base, about
        self._included = included

    @property
    def folder(self) -> Path:
        """The project's folder on disk."""
        return self._private.tree

    @property
    def cwd(self) -> Path:
        """The project's folder, as the agent sees it."""
        return self._stage.seen / self._stage.problem.cwd

    @property
    def home(self) -> Path:
        """The agent's home on disk."""
        return self._private.home

    @property
    def home_seen(self) -> Path:
        """The agent's home as the agent sees it."""
        return HOME if self._stage.sandbox.relocates else self.home

    @property
    def python(self) -> str:
        """The problem's Python."""
        return str(self._stage.interpreter.executable)

    def variables(self) -> dict[str, str]:
        """Return the environment variables of the agent, besides those passed on to it."""
        return {**common_variables(self._stage.problem, self._stage.interpreter), **_GIT_IDENTITY}

    def view(self, readable: Sequence[Path] = ()) -> View:
        """Return the mounts of the project, the home, the interpreter, and `readable` folders."""
        view = self._stage.view()
        extra = tuple(Mount(path, path) for path in readable)
        home = Mount(self.home, self.home_seen)
        return View(extra + view.readable, (home, *view.writable), view.over)

    async def read_changes(self) -> AgentChanges:
        """Return the differences from the base; raise `TooLargeError` if they are too large."""
        listed = await list_base(self._snapshot)
        modes = await in_thread(self._private.list_changed, self._covered_paths())
        new = modes.keys() - listed.entries.keys() - self._about.keys()
        ignored = await self._find_ignored(new, listed)
        modes = {
            path: mode
            for path, mode in modes.items()
            if path not in ignored and (mode is not None or path in listed.entries)
        }
        kept, before, dropped = await in_thread(self._sort_out, modes)
        diff = await self._render(kept)
        is_as_given = diff == await self._render(self._about)
        return AgentChanges(diff, kept, before, dropped, is_as_given)

    async def _find_ignored(self, new: Iterable[str], listed: BaseFiles) -> set[str]:
        """Return the new files that the base's .gitignore excludes, as the base excludes them."""
        # git refuses paths behind links.
        paths = [path for path in new if not any(map(listed.links.__contains__, _parents(path)))]
        ignored = await git(
            *("check-ignore", "-z", "--stdin"),
            repo=self._base / ".git",
            worktree=self._base,
            stdin=b"".join(os.fsencode(path) + b"\0" for path in paths),
            accept=(0, 1),  # 1 means that none is ignored
        )
        return {os.fsdecode(path) for path in ignored.split(b"\0")[:-1]}

    def _sort_out(self, modes: Mapping[str, int | None]) -> tuple[Files, Files, tuple[str, ...]]:
        """Return the files that candidates may change, the base's versions, and other paths."""
        kept: dict[str, FileState | None] = {}
        before: dict[str, FileState | None] = {}
        dropped = []
        left = MAX_CANDIDATE_MB * MB
        for path, mode in modes.items():
            old = _read_base(self._base, path)
            is_editable = self._is_editable(path)
            try:
                # A file that grew has changed, and need not be read to know that.
                most = left if is_editable else len(old.content) if old else 0
                state = None if mode is None else self._private.read(path, mode, most)
            except TooLargeError:
                if is_editable:
                    raise
                state = None
            if state == old and (mode is None) == (old is None):
                continue
            if is_editable and (mode is None or state is not None):
                kept[path], before[path] = state, old
                left -= len(state.content) if state else 0
            else:
                dropped.append(path)
        return kept, before, tuple(dropped)

    def _is_editable(self, path: str) -> bool:
        """Return whether a candidate may contain a path.

        A new file that would hide a module is accepted here, since other files may need it; the
        arena rejects such a candidate with a reason.
        """
        return (
            not find_path_problem(path)
            and self._rules.find_violation(path, PathChange.CHANGED) is None
        )

    async def _render(self, files: Files) -> bytes:
        return await render_patch(Changes(files), self._snapshot) if files else b""

    def _covered_paths(self) -> list[str]:
        """Return paths that were mounted over the slot or copied into it, not by the agent."""
        targets = [mount.target for mount in self._stage.view().over]
        seen = self._stage.seen
        inside = [target for target in targets if target.is_relative_to(seen)]
        return [*(str(target.relative_to(seen)) for target in inside), *self._included]


def _parents(path: str) -> Iterator[str]:
    """Yield the parents of a path: ``a`` and ``a/b`` for ``a/b/c``."""
    return (path[:index] for index, char in enumerate(path) if char == "/")


def _read_base(top: Path, path: str) -> FileState | None:
    """Read the base's file at a path; None if there is none."""
    if any((top / parent).is_symlink() for parent in _parents(path)):
        return None
    try:
        mode = (top / path).lstat().st_mode
    except OSError:
        return None
    return read_entry(top / path, mode, sys.maxsize)
