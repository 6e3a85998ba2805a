"""What an agent sees of its folder, and what is taken from it afterwards."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from fairtrial.agents.proposers.command_slot import Files, PrivateSlot
from fairtrial.arena.proposals.base_files import list_base
from fairtrial.arena.proposals.patches import render_patch
from fairtrial.arena.proposals.paths import Change, PathRules, unsafe_path
from fairtrial.arena.slots.offloading import in_thread
from fairtrial.arena.snapshots.snapshot import Snapshot
from fairtrial.arena.stage import Stage, common_variables
from fairtrial.model.candidates import Changes, FileState
from fairtrial.model.commands import Mount, View

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
    ) -> None:
        """
        private: its folders
        stage: how commands see them
        snapshot: the base
        rules: what candidates may change
        base: a folder with the base's files
        about: what was changed before the agent got it
        """
        self._private, self._stage, self._snapshot = private, stage, snapshot
        self._rules, self._base, self._about = rules, base, about

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
        left = await in_thread(self._private.read, self._laid_over())
        listed = await list_base(self._snapshot)
        before = await in_thread(_read_before, left.files, self._base)
        changed = {
            path: state
            for path, state in left.files.items()
            if state != before.get(path) and (state is not None or path in listed.entries)
        }
        kept = {path: state for path, state in changed.items() if self._may(path)}
        diff = await self._render(kept)
        return Taken(
            diff,
            MappingProxyType(kept),
            MappingProxyType(before),
            tuple(sorted({*(changed.keys() - kept.keys()), *left.odd})),
            diff == await self._render(self._about),
        )

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
        included = self._stage.problem.include
        targets = [mount.target for mount in self._stage.view().over]
        seen = self._stage.seen
        inside = [target for target in targets if target.is_relative_to(seen)]
        return [*(str(target.relative_to(seen)) for target in inside), *included]


def _read_before(files: Files, top: Path) -> dict[str, FileState | None]:
    """The base's own files at these paths."""
    found: dict[str, FileState | None] = {}
    for path in files:
        place = top / path
        if any(parent.is_symlink() for parent in list(place.parents)[: path.count("/")]):
            continue
        if place.is_symlink():
            found[path] = FileState(os.fsencode(os.readlink(place)), is_link=True)  # noqa: PTH115
        elif place.is_file():
            is_executable = bool(place.stat().st_mode & stat.S_IXUSR)
            found[path] = FileState(place.read_bytes(), is_executable)
    return found
