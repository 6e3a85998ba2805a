"""Candidates that somebody has made already: a folder of diffs, or of folders with files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from fairtrial.arena import SUFFIXES, Workshop, read_candidate
from fairtrial.core import Mistake, Record, StudyError, expand
from fairtrial.optimize.proposals import Brief, Reply, Request, RequestKind, Usage

MOST_AT_ONCE = 8
_EXPECTED = "a candidate is a file *.diff or *.patch, or a folder with the files as they are to be"


@dataclass(frozen=True, slots=True)
class PatchesProposer(Record):
    """The diffs and folders in a folder, by name: the first is the first line's, and so on.

    It has nothing to say to a request to repair or refine.

    folder: where they are; relative to the folder of the problem's file
    glob: which of its entries they are; by default all diffs (*.diff, *.patch) and folders whose
        names don't begin with a dot
    """

    folder: Path
    glob: str = ""

    name = "patches"
    can_batch = False
    most_at_once = MOST_AT_ONCE

    def _mistakes(self) -> Iterator[Mistake]:
        if self.glob and (len(PurePath(self.glob).parts) != 1 or "\0" in self.glob):
            hint = "name the folder itself in `folder`"
            yield Mistake(("glob",), f"must be a pattern of names, got '{self.glob}'", hint)

    def can(self, kind: RequestKind) -> bool:
        """There is one for each line, and no other."""
        return kind == RequestKind.INITIAL

    def check_ceiling(self, max_cost: float | None) -> None:
        """Any ceiling will do: nothing is paid for."""

    def check_ready(self, folder: Path = Path()) -> None:
        """Whether there are any, before anything starts: raises `StudyError`.

        folder: where a relative path starts
        """
        self._within(folder).list_paths()

    async def prepared(self, workshop: Workshop) -> PatchesProposer:
        """The same with its folder found."""
        made = self._within(workshop.folder)
        made.list_paths()
        return made

    def _within(self, folder: Path) -> PatchesProposer:
        return replace(self, folder=expand(self.folder, folder, "folder"))

    def list_paths(self) -> list[Path]:
        """Where the candidates are, in the order of their names; `StudyError` if there are none."""
        try:
            if self.glob:
                found = [path for path in self.folder.iterdir() if path.match(self.glob)]
            else:
                found = [path for path in self.folder.iterdir() if _is_candidate(path)]
        except OSError as error:
            message = f"{self.folder} can't be read: {error.strerror or error}"
            hint = "name a folder of diffs; it starts at the folder of the problem's file"
            raise StudyError(Mistake(("folder",), message, hint)) from error
        if not found:
            what = f"is nothing that fits '{self.glob}'" if self.glob else "are no diffs or folders"
            hint = "`glob` says which of its entries count" if self.glob else _EXPECTED
            raise StudyError(Mistake(("folder",), f"there {what} in {self.folder}", hint))
        return sorted(found, key=lambda path: path.name)

    async def count_firsts(self, brief: Brief) -> int:
        """One for each of them."""
        return len(self.list_paths())

    async def propose(self, brief: Brief, request: Request) -> Reply:
        """The line's candidate; one that can't be read is a refusal."""
        from anyio import to_thread

        if not self.can(request.kind):
            return self._refuse("a folder of patches can't repair or refine them")
        paths = await to_thread.run_sync(self.list_paths)
        if request.line >= len(paths):
            return self._refuse(f"{self.folder} holds {len(paths)} candidates, and no more")
        try:
            candidate = await to_thread.run_sync(read_candidate, paths[request.line])
        except StudyError as error:
            return self._refuse(str(error))
        return Reply((candidate,), Usage(self.name))

    def _refuse(self, why: str) -> Reply:
        return Reply(usage=Usage(self.name), refusal=why)


def _is_candidate(path: Path) -> bool:
    if path.name.startswith("."):
        return False
    return path.is_dir() or path.suffix.lower() in SUFFIXES
