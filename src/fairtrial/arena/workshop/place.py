"""What an agent sees of its folder, and what is taken from it afterwards."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairtrial.arena.candidates.base_files import BaseFiles, list_base
from fairtrial.arena.candidates.folders import LARGEST_MB, MB
from fairtrial.arena.candidates.patches import render_patch
from fairtrial.arena.candidates.paths import Change, PathRules, unsafe_path
from fairtrial.arena.model.candidates import Changes, FileState
from fairtrial.arena.slots.threads import in_thread
from fairtrial.arena.snapshot.git import git
from fairtrial.arena.snapshot.snapshot import Snapshot
from fairtrial.arena.stage import Stage, common_variables
from fairtrial.arena.workshop.folder import Files, PrivateSlot, TooLargeError, read_entry
from fairtrial.sandbox import Mount, View

HOME = Path("/home/fairtrial-agent")
"""Where an agent sees its home in a full sandbox: what lies in the usual one counts as memory."""
_WHO = {
    "GIT_AUTHOR_NAME": "agent",
    "GIT_AUTHOR_EMAIL": "agent@localhost",
    "GIT_COMMITTER_NAME": "agent",
    "GIT_COMMITTER_EMAIL": "agent@localhost",
}
"""Agents that commit need a name."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What an agent has made, as far as candidates may hold it.

    diff: against the base; empty if nothing differs
    files: the files that differ, and may
    before: the same of the base, where it has them
    dropped: paths that it changed as well, and may not
    is_as_given: whether it left everything as it found it
    """

    diff: bytes
    files: Files
    before: Files
    dropped: tuple[str, ...]
    is_as_given: bool


class AgentSlot:
    """A folder of an agent's own, in which it sees the project where the user has it."""

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
        """As `ArenaWorkshop.slot` makes it.

        private: its folders
        stage: how commands see them
        snapshot: the base
        rules: what candidates may change
        base: a folder with the base's files
        about: what was changed before the agent got it
        included: what lies in the slot and isn't the base's
        """
        self._private, self._stage, self._snapshot = private, stage, snapshot
        self._rules, self._base, self._about = rules, base, about
        self._included = included

    @property
    def folder(self) -> Path:
        """Where the project's files are on disk."""
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
        """The same as the agent sees it."""
        return HOME if self._stage.sandbox.relocates else self.home

    @property
    def python(self) -> str:
        """The problem's Python."""
        return str(self._stage.interpreter.executable)

    def variables(self) -> dict[str, str]:
        """What the environment holds beside what is passed on: nothing of ours."""
        return {**common_variables(self._stage.problem, self._stage.interpreter), **_WHO}

    def view(self, readable: Sequence[Path] = ()) -> View:
        """The project, the home and the interpreter; `readable` beside them, under all of it."""
        view = self._stage.view()
        shown = tuple(Mount(path, path) for path in readable)
        home = Mount(self.home, self.home_seen)
        return View(shown + view.readable, (home, *view.writable), view.over)

    async def take(self) -> Taken:
        """What differs from the base now. Raises `TooLargeError`."""
        listed = await list_base(self._snapshot)
        modes = await in_thread(self._private.list_changed, self._laid_over())
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
        return Taken(diff, kept, before, dropped, is_as_given)

    async def _find_ignored(self, new: Iterable[str], listed: BaseFiles) -> set[str]:
        """The new files that the base's .gitignore leaves out: the base has none of them either."""
        # git won't look through links.
        paths = [path for path in new if not any(map(listed.links.__contains__, _parents(path)))]
        told = await git(
            *("check-ignore", "-z", "--stdin"),
            repo=self._base / ".git",
            worktree=self._base,
            stdin=b"".join(os.fsencode(path) + b"\0" for path in paths),
            accept=(0, 1),  # none is
        )
        return {os.fsdecode(path) for path in told.split(b"\0")[:-1]}

    def _sort_out(self, modes: Mapping[str, int | None]) -> tuple[Files, Files, tuple[str, ...]]:
        """What candidates may hold, the same of the base, and the paths of the rest."""
        kept: dict[str, FileState | None] = {}
        before: dict[str, FileState | None] = {}
        dropped = []
        left = LARGEST_MB * MB
        for path, mode in modes.items():
            old = _read_base(self._base, path)
            may = self._may(path)
            try:
                # What is larger than it was has changed, and need not be read to see that.
                most = left if may else len(old.content) if old else 0
                state = None if mode is None else self._private.read(path, mode, most)
            except TooLargeError:
                if may:
                    raise
                state = None
            if state == old and (mode is None) == (old is None):
                continue
            if may and (mode is None or state is not None):
                kept[path], before[path] = state, old
                left -= len(state.content) if state else 0
            else:
                dropped.append(path)
        return kept, before, tuple(dropped)

    def _may(self, path: str) -> bool:
        """Whether a candidate may hold it.

        A new file that would hide a module is not left out here: the rest may need it. Such a
        candidate is rejected by the arena, which says why.
        """
        return not unsafe_path(path) and self._rules.mistake(path, Change.CHANGED) is None

    async def _render(self, files: Files) -> bytes:
        return await render_patch(Changes(files), self._snapshot) if files else b""

    def _laid_over(self) -> list[str]:
        """What was mounted over the slot, or copied into it, beside the base: none of its doing."""
        targets = [mount.target for mount in self._stage.view().over]
        seen = self._stage.seen
        inside = [target for target in targets if target.is_relative_to(seen)]
        return [*(str(target.relative_to(seen)) for target in inside), *self._included]


def _parents(path: str) -> Iterator[str]:
    """``a/b/c`` gives ``a`` and ``a/b``."""
    return (path[:place] for place, char in enumerate(path) if char == "/")


def _read_base(top: Path, path: str) -> FileState | None:
    """The base's own file at a path."""
    if any((top / parent).is_symlink() for parent in _parents(path)):
        return None
    try:
        mode = (top / path).lstat().st_mode
    except OSError:
        return None
    return read_entry(top / path, mode, sys.maxsize)
