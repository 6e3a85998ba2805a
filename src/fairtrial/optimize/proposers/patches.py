"""The proposer `patches`: candidates from a folder of diffs, or of folders with files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from fairtrial.arena import DIFF_SUFFIXES, Workshop, read_candidate
from fairtrial.core import Mistake, Record, StudyError
from fairtrial.optimize.option_paths import resolve_option_path
from fairtrial.optimize.proposals import Brief, Reply, Request, RequestKind, Usage
from fairtrial.optimize.proposer import PreflightContext, Proposer

MOST_AT_ONCE = 8
_EXPECTED = "a candidate is a file *.diff or *.patch, or a folder with the files as they are to be"


@dataclass(frozen=True, slots=True)
class PatchesProposer(Proposer, Record):
    """The diffs and folders in a folder, in the order of their names, one for each lineage.

    It refuses requests to repair or refine.

    folder: where they are; relative to the folder of the problem's file
    glob: which of its entries they are; by default all diffs (*.diff, *.patch) and folders whose
        names don't begin with a dot
    """

    folder: Path
    glob: str = ""

    name = "patches"
    most_at_once = MOST_AT_ONCE

    def _mistakes(self) -> Iterator[Mistake]:
        if self.glob and (len(PurePath(self.glob).parts) != 1 or "\0" in self.glob):
            hint = "name the folder itself in `folder`"
            yield Mistake(("glob",), f"must be a pattern of names, got '{self.glob}'", hint)

    def can(self, kind: RequestKind) -> bool:
        """Return whether a first proposal is asked for."""
        return kind == RequestKind.INITIAL

    def preflight(self, context: PreflightContext) -> None:
        """Raise a `StudyError` if the folder holds no candidates."""
        if context.folder is not None:
            self._within(context.folder).list_paths()

    async def open(self, workshop: Workshop) -> PatchesProposer:
        """Return the proposer with an absolute folder; `StudyError` if that has no candidates."""
        opened = self._within(workshop.folder)
        opened.list_paths()
        return opened

    def _within(self, folder: Path) -> PatchesProposer:
        return replace(self, folder=resolve_option_path(self.folder, folder, "folder"))

    def list_paths(self) -> list[Path]:
        """Return the candidates' paths, sorted by name; raise a `StudyError` if there are none."""
        try:
            if self.glob:
                paths = [path for path in self.folder.iterdir() if path.match(self.glob)]
            else:
                paths = [path for path in self.folder.iterdir() if _is_candidate(path)]
        except OSError as error:
            message = f"{self.folder} can't be read: {error.strerror or error}"
            hint = "name a folder of diffs; it starts at the folder of the problem's file"
            raise StudyError(Mistake(("folder",), message, hint)) from error
        if not paths:
            what = f"is nothing that fits '{self.glob}'" if self.glob else "are no diffs or folders"
            hint = "`glob` says which of its entries count" if self.glob else _EXPECTED
            raise StudyError(Mistake(("folder",), f"there {what} in {self.folder}", hint))
        return sorted(paths, key=lambda path: path.name)

    async def count_first_proposals(self, brief: Brief) -> int:
        """Return how many candidates the folder holds."""
        return len(self.list_paths())

    async def propose(self, brief: Brief, request: Request) -> Reply:
        """Return the lineage's candidate; a refusal if it can't be read or there is none."""
        from anyio import to_thread

        if not self.can(request.kind):
            return self._refuse("a folder of patches can't repair or refine them")
        paths = await to_thread.run_sync(self.list_paths)
        if request.lineage >= len(paths):
            return self._refuse(f"{self.folder} holds {len(paths)} candidates, and no more")
        try:
            candidate = await to_thread.run_sync(read_candidate, paths[request.lineage])
        except StudyError as error:
            return self._refuse(str(error))
        return Reply((candidate,), Usage(self.name))

    def _refuse(self, why: str) -> Reply:
        return Reply(usage=Usage(self.name), refusal=why)


def _is_candidate(path: Path) -> bool:
    if path.name.startswith("."):
        return False
    return path.is_dir() or path.suffix.lower() in DIFF_SUFFIXES
