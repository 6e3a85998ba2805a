"""Giving the winner to the user: as files, in their working tree, or on a branch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fairtrial.arena.delivery.apply import apply_to_tree, write_patch
from fairtrial.arena.delivery.branch import WinnerBranch, check_branch, put_on_branch
from fairtrial.arena.delivery.edits import FileEdits
from fairtrial.arena.delivery.markdown_quoting import as_message
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.arena.model.timings import Estimate
from fairtrial.arena.snapshot.snapshot import find_top
from fairtrial.core import atomic_write

MOST_MISSING = 3


@dataclass(frozen=True, slots=True)
class Delivery:
    """One winner, the project that it is for, and the folder for its files.

    problem: the code problem
    edits: the winner's changes
    explanation: its description for a pull request, in Markdown
    estimate: its speed relative to the base, if it is known
    folder: where its patch and its explanation are written
    """

    problem: CodeProblem
    edits: FileEdits
    explanation: str
    estimate: Estimate | None
    folder: Path

    @property
    def patch(self) -> Path:
        """The file with the winner's changes as a git diff."""
        return self.folder / "best.patch"

    @property
    def description(self) -> Path:
        """The file with the explanation."""
        return self.folder / "best.md"

    @staticmethod
    async def check_branch(problem: CodeProblem, name: str) -> None:
        """Raise `StudyError` if a branch of that name can't be made now."""
        await check_branch(await find_top(problem.project), name)

    def write_files(self) -> None:
        """Write the patch and the explanation; raise `StudyError` if a file can't be written."""
        write_patch(self.patch, self.edits.patch)
        with atomic_write(self.description) as file:
            file.write(self.explanation)

    async def apply(self) -> list[str]:
        """Change the user's files, all or none; return lines for people that say what was done.

        Raises `StudyError` if an edit can't be applied, `LabError` if files can't be written.
        """
        top = await find_top(self.problem.project)
        return (await apply_to_tree(top, self.edits, self.patch)).describe()

    async def put_on_branch(self, name: str) -> list[str]:
        """Commit the winner on a new branch; return lines for people that say what was done.

        Raises `StudyError` if that is impossible, e.g. because of uncommitted changes.
        """
        top = await find_top(self.problem.project)
        ratio = self.estimate.ratio_text() if self.estimate else ""
        message = f"{self.problem.problem_id}: {ratio} as fast\n\n{as_message(self.explanation)}"
        branched = await put_on_branch(top, name, self.edits, message)
        done = [f"branch {branched.branch} is at {branched.commit[:12]}"]
        if branched.merged:
            files = ", ".join(branched.merged)
            done.append(f"your uncommitted changes of {files} are not on it: that was not measured")
        return done + self._list_missing(branched, top)

    def _list_missing(self, branched: WinnerBranch, top: Path) -> list[str]:
        """Return a line on files that were judged and aren't on the branch; not on result files."""
        results = self.folder.resolve()
        files = [
            path for path in branched.missing if not (top / path).resolve().is_relative_to(results)
        ]
        if not files:
            return []
        shown = ", ".join(files[:MOST_MISSING])
        more = f" and {len(files) - MOST_MISSING:,} more" if len(files) > MOST_MISSING else ""
        return [f"not committed, so not on it either: {shown}{more}"]
