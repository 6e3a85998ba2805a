"""Where proposers work that need more than a brief: an arena's base, sandbox and lock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from fairtrial.arena.arena import Arena
from fairtrial.arena.candidates.paths import PathRules
from fairtrial.arena.candidates.resolution import resolve
from fairtrial.arena.model.candidates import Candidate
from fairtrial.arena.model.verdicts import Rejection
from fairtrial.arena.opening import find_hidden
from fairtrial.arena.resources import Ground
from fairtrial.arena.slots.base import Base, prepare_base
from fairtrial.arena.slots.copying import Wanted
from fairtrial.arena.slots.threads import explain, in_thread
from fairtrial.arena.snapshot.snapshot import Snapshot
from fairtrial.arena.stage import Stage
from fairtrial.arena.workshop.folder import Files, PrivateSlot, make_place
from fairtrial.arena.workshop.place import AgentSlot
from fairtrial.core import StudyError
from fairtrial.sandbox import HostLock, Sandbox


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
    def project(self) -> Path:
        """Where commands start, as the user has it."""
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
    project: where commands start, as the user has it
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
        self.project = self.snapshot.source / self.ground.problem.cwd
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
            yield AgentSlot(
                private,
                self._stage(private),
                self.snapshot,
                self.rules,
                base.top,
                files,
                self._included(),
            )
        finally:
            with anyio.CancelScope(shield=True):
                await in_thread(private.remove)

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
