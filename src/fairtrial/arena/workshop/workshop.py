"""The workshop: gives agents of proposers private copies of an open arena's base."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from fairtrial.arena.candidates.paths import PathRules
from fairtrial.arena.candidates.resolution import resolve
from fairtrial.arena.model.candidates import Candidate
from fairtrial.arena.model.verdicts import Rejection
from fairtrial.arena.resources import ArenaResources, find_hidden
from fairtrial.arena.slots.base import Base, prepare_base
from fairtrial.arena.slots.copying import TargetTree
from fairtrial.arena.slots.threads import as_lab_error, in_thread
from fairtrial.arena.snapshot.snapshot import Snapshot
from fairtrial.arena.stage import Stage
from fairtrial.arena.workshop.agent_slot import AgentSlot
from fairtrial.arena.workshop.private_slot import Files, PrivateSlot, make_private_slot
from fairtrial.core import StudyError
from fairtrial.sandbox import HostLock, Sandbox


class Workshop(Protocol):
    """What a proposer may use besides brief and request: `ArenaWorkshop` is one.

    A proposer that needs it has a method ``async def prepared(self, workshop) -> Proposer``; its
    result is used in its place while the arena is open.
    """

    @property
    def folder(self) -> Path:
        """The folder that relative paths in options start from."""
        ...

    @property
    def project(self) -> Path:
        """The project's folder in the user's tree."""
        ...

    @property
    def sandbox(self) -> Sandbox:
        """Runs untrusted commands."""
        ...

    @property
    def lock(self) -> HostLock:
        """The host lock, whose shared side is held while CPU is used."""
        ...

    @property
    def snapshot(self) -> Snapshot:
        """The base."""
        ...

    def slot(
        self, *, about: str = "", git: bool = True, home: Path | None = None
    ) -> AbstractAsyncContextManager[AgentSlot]:
        """Make a private folder with the base's files and `about` applied; remove it afterwards."""
        ...


class ArenaWorkshop:
    """The workshop of an open arena.

    resources: the arena's resources
    path_rules: which paths candidates may change
    folder: the folder that relative paths in options start from: that of the problem's file
    project: the project's folder in the user's tree
    sandbox: runs untrusted commands, without warm starts
    lock: the host lock, whose shared side is held while CPU is used
    snapshot: the base
    """

    def __init__(self, resources: ArenaResources, path_rules: PathRules) -> None:
        import anyio

        self.resources = resources
        self.path_rules = path_rules
        self.folder = self.resources.problem.folder
        self.sandbox: Sandbox = self.resources.cold or self.resources.sandbox
        self.lock: HostLock = self.resources.lock
        self.snapshot: Snapshot = self.resources.pool.snapshot
        self.project = self.snapshot.source / self.resources.problem.cwd
        self._parent = self.resources.pool.base.parent / "agents"  # removed with the pool
        self._base: Base | None = None
        self._preparing = anyio.Lock()

    @asynccontextmanager
    async def slot(
        self, *, about: str = "", git: bool = True, home: Path | None = None
    ) -> AsyncIterator[AgentSlot]:
        """Make a private folder with the base's files, and remove it afterwards.

        about: a diff against the base that is applied first; raises `StudyError` if it can't be
        git: whether it is a repository of one commit, the base; then `about` is uncommitted
        home: a folder whose contents the agent's home starts with
        """
        import anyio

        files = await self._resolve(about)
        base = await self._prepare()
        wanted = base.visible if git else _without_git(base.visible)
        private = await in_thread(make_private_slot, self._parent)
        try:
            await in_thread(private.fill, wanted, files, home)
            yield AgentSlot(
                private,
                self._stage(private),
                self.snapshot,
                self.path_rules,
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
        changes = await resolve(candidate, self.snapshot, self.path_rules)
        if isinstance(changes, Rejection):
            raise StudyError(f"the candidate it is about can't be applied: {changes.message}")
        return changes.files

    async def _prepare(self) -> Base:
        """Return the base of private slots: a repository, without the files that checks hide."""
        async with self._preparing:
            if self._base is None:
                included = [] if self.sandbox.relocates else self._included()
                # A new folder each time: a canceled attempt leaves an incomplete one.
                private = await in_thread(make_private_slot, self._parent)
                try:
                    self._base = await prepare_base(
                        self.snapshot,
                        private.place,
                        included=included,
                        hidden=find_hidden(self.resources.problem, self.snapshot.source),
                        has_git=True,
                    )
                except OSError as error:
                    raise as_lab_error(error) from error
        return self._base

    def _included(self) -> list[str]:
        top = self.snapshot.source
        return [str(mount.target.relative_to(top)) for mount in self.resources.included]

    def _stage(self, private: PrivateSlot) -> Stage:
        relocates = self.sandbox.relocates
        return Stage(
            problem=self.resources.problem,
            interpreter=self.resources.interpreter,
            sandbox=self.sandbox,
            slot=private.tree,
            seen=self.snapshot.source if relocates else private.tree,
            import_roots=self.resources.import_roots,
            included=self.resources.included if relocates else (),
        )


def _without_git(wanted: TargetTree) -> TargetTree:
    kept = {folder: names for folder, names in wanted.items() if not folder.startswith(".git/")}
    return {**kept, "": {name: entry for name, entry in kept[""].items() if name != ".git"}}
