"""Where proposers work that need more than a brief: an arena's base, sandbox and lock.

`make_ready` is what an optimiser calls, once, when its arena is open.
"""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from fairtrial.agents.proposers.command_slot import Files, PrivateSlot, make_place
from fairtrial.arena.arena import Arena
from fairtrial.arena.ground import Ground
from fairtrial.arena.opening import find_hidden
from fairtrial.arena.proposals.base_files import list_base
from fairtrial.arena.proposals.candidates import resolve
from fairtrial.arena.proposals.patches import render_patch
from fairtrial.arena.proposals.paths import Change, PathRules, unsafe_path
from fairtrial.arena.slots.base import Base, prepare_base
from fairtrial.arena.slots.copying import Wanted
from fairtrial.arena.slots.offloading import explain, in_thread
from fairtrial.arena.snapshots.snapshot import Snapshot
from fairtrial.arena.stage import Stage, common_variables
from fairtrial.errors import StudyError
from fairtrial.model.candidates import Candidate, Changes, FileState
from fairtrial.model.commands import Mount, View
from fairtrial.model.verdicts import Rejection
from fairtrial.protocols import Proposer, Sandbox
from fairtrial.sandbox.quiet import HostLock

HOME = Path("/home/fairtrial-agent")
"""Where an agent sees its home in a full sandbox: what lies in the usual one counts as memory."""
_WHO = {
    "GIT_AUTHOR_NAME": "agent",
    "GIT_AUTHOR_EMAIL": "agent@localhost",
    "GIT_COMMITTER_NAME": "agent",
    "GIT_COMMITTER_EMAIL": "agent@localhost",
}
"""Agents that commit need a name."""


async def make_ready(proposer: Proposer, arena: Arena) -> Proposer:
    """The proposer to use: the same, or what it makes of itself when it is shown the workshop.

    One that needs a workshop has a method ``async def prepared(self, workshop) -> Proposer``. What
    comes back is good for as long as the arena is open.
    """
    prepared = getattr(proposer, "prepared", None)
    if prepared is None:
        return proposer
    ready: Proposer = await prepared(ArenaWorkshop(arena))
    return ready


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
        self, private: PrivateSlot, stage: Stage, shop: ArenaWorkshop, base: Base, about: Files
    ) -> None:
        self._private, self._stage, self._shop, self._base = private, stage, shop, base
        self._about = about

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
        listed = await list_base(self._shop.snapshot)
        before = await in_thread(_read_before, left.files, self._base.top)
        changed = {
            path: state
            for path, state in left.files.items()
            if state != before.get(path) and (state is not None or path in listed.entries)
        }
        kept = {path: state for path, state in changed.items() if self._may(path)}
        diff = await self._shop.render(kept)
        return Taken(
            diff,
            MappingProxyType(kept),
            MappingProxyType(before),
            tuple(sorted({*(changed.keys() - kept.keys()), *left.odd})),
            diff == await self._shop.render(self._about),
        )

    def _may(self, path: str) -> bool:
        """Whether a candidate may hold it.

        A new file that would hide a module is not left out here: the rest may need it. Such a
        candidate is rejected by the arena, which says why.
        """
        return not unsafe_path(path) and self._shop.rules.mistake(path, Change.CHANGED) is None

    def _laid_over(self) -> list[str]:
        """What was mounted over the slot, relative to its top: the places are empty now."""
        seen = self._stage.seen
        targets = [mount.target for mount in self._stage.view().over]
        shown = [each.target for each in self._shop.ground.included]
        tops = {seen, self._shop.snapshot.source}
        return [
            str(path.relative_to(top))
            for path in (*targets, *shown)
            for top in tops
            if path.is_relative_to(top)
        ]


class Workshop(Protocol):
    """What a proposer may use beyond brief and request: `ArenaWorkshop` is one.

    A proposer that needs it has a method ``async def prepared(self, workshop) -> Proposer``; what
    that returns is used in its place while the arena is open.
    """

    @property
    def folder(self) -> Path:
        """Where relative paths in options start."""
        ...

    @property
    def sandbox(self) -> Sandbox: ...

    @property
    def lock(self) -> HostLock: ...

    @property
    def snapshot(self) -> Snapshot: ...

    def slot(
        self, *, about: str = "", git: bool = True, home: Path | None = None
    ) -> AbstractAsyncContextManager[AgentSlot]:
        """A new private folder with the base's files, and `about` applied; removed afterwards."""
        ...


class ArenaWorkshop:
    """What an open arena lends to proposers.

    folder: where relative paths in options start: the folder of the problem's file
    sandbox: where commands run that aren't ours
    lock: the host's: whoever uses CPU holds its shared side
    snapshot: the base
    """

    def __init__(self, arena: Arena) -> None:
        import anyio

        self.ground: Ground
        self.rules: PathRules
        self.ground, _, self.rules = arena.parts()
        self.folder = self.ground.problem.folder
        self.sandbox: Sandbox = self.ground.cold or self.ground.sandbox
        self.lock: HostLock = self.ground.lock
        self.snapshot: Snapshot = self.ground.pool.snapshot
        self._place = self.ground.pool.base.parent / "agents"  # goes with the pool
        self._base: Base | None = None
        self._preparing = anyio.Lock()

    @asynccontextmanager
    async def slot(
        self, *, about: str = "", git: bool = True, home: Path | None = None
    ) -> AsyncIterator[AgentSlot]:
        """A new private folder with the base's files, removed afterwards.

        about: a diff against the base that is applied first; `StudyError` if that can't be done
        git: whether it is a repository of one commit, the base; then `about` is uncommitted
        home: a folder whose contents the agent's home starts with
        """
        import anyio

        files = await self._resolve(about)
        base = await self._prepare()
        wanted = base.shown if git else _without_git(base.shown)
        private = await in_thread(make_place, self._place)
        try:
            await in_thread(private.fill, wanted, files, home)
            yield AgentSlot(private, self._stage(private), self, base, files)
        finally:
            with anyio.CancelScope(shield=True):
                await in_thread(private.remove)

    async def render(self, files: Files) -> bytes:
        """Files as a diff against the base."""
        return await render_patch(Changes(files), self.snapshot) if files else b""

    async def _resolve(self, diff: str) -> Files:
        if not diff:
            return {}
        candidate = Candidate("about", diff=diff.encode("utf-8", "surrogateescape"))
        changes = await resolve(candidate, self.snapshot, self.rules)
        if isinstance(changes, Rejection):
            raise StudyError(f"the candidate it is about can't be applied: {changes.message}")
        return changes.files

    async def _prepare(self) -> Base:
        """What private slots are copies of: a repository, and without what checks compare with."""
        async with self._preparing:
            if self._base is None:
                included = [] if self.sandbox.relocates else self._included()
                # A new place each time: one who was cancelled leaves half of it.
                private = await in_thread(make_place, self._place)
                try:
                    self._base = await prepare_base(
                        self.snapshot,
                        private.place,
                        included=included,
                        hidden=find_hidden(self.ground.problem),
                        has_git=True,
                    )
                except OSError as error:
                    raise explain(error) from error
        return self._base

    def _included(self) -> list[str]:
        top = self.snapshot.source
        return [str(mount.target.relative_to(top)) for mount in self.ground.included]

    def _stage(self, private: PrivateSlot) -> Stage:
        relocates = self.sandbox.relocates
        return Stage(
            problem=self.ground.problem,
            interpreter=self.ground.interpreter,
            sandbox=self.sandbox,
            slot=private.tree,
            seen=self.snapshot.source if relocates else private.tree,
            import_roots=self.ground.import_roots,
            included=self.ground.included if relocates else (),
        )


def _without_git(wanted: Wanted) -> Wanted:
    kept = {folder: names for folder, names in wanted.items() if not folder.startswith(".git/")}
    return {**kept, "": {name: each for name, each in kept[""].items() if name != ".git"}}


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
