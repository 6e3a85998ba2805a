"""Read candidates as people name them: diffs, folders, revisions and ranges of revisions."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from fairtrial.arena.candidates.folders import disambiguate_names, read_candidate
from fairtrial.arena.model.candidates import Candidate
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.arena.snapshot.revisions import (
    THE_TREE,
    RevisionRange,
    find_range,
    has_revision,
)
from fairtrial.core import Mistake, StudyError

CandidateSource = Candidate | str | os.PathLike[str]
"""A candidate, the path of a diff or a folder, a revision, or a range of revisions."""
BASE = "base"
"""The name of the base; a candidate that changes nothing is a duplicate of it."""
_HINT = (
    "a candidate is a diff (*.diff, *.patch), a folder with new and changed files at their paths "
    "in the repository, or a git revision"
)


async def read_candidates(
    problem: CodeProblem, sources: Sequence[CandidateSource]
) -> tuple[CodeProblem, list[Candidate]]:
    """Read candidates, and give them distinct names.

    sources: candidates, or paths of diffs and folders, or git revisions of the problem's
        repository; `.` is the tree as it is. Of a range, `A..B` or `A...B`, the candidate is B;
        the base is A, or the merge base of both.

    Returns the problem, with the base of a range if there was one, and the candidates. Raises one
    `StudyError` that names all candidates that can't be read.
    """
    candidates: list[Candidate] = []
    errors: list[StudyError] = []
    bases: dict[str, str] = {}
    for source in sources:
        try:
            read = await _read(problem, source)
        except StudyError as error:
            errors.append(error)
            continue
        if isinstance(read, RevisionRange):
            bases.setdefault(read.base, os.fspath(source))  # type: ignore[arg-type]
            read = make_revision(read.candidate)
        candidates.append(read)
    if len(bases) > 1:
        message = f"{' and '.join(bases.values())} have different bases"
        errors.append(StudyError(Mistake((), message, "judge them one at a time")))
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise StudyError(
            [
                Mistake((error.source,) if error.source else (), mistake.message, mistake.hint)
                for error in errors
                for mistake in error.mistakes
            ]
        )
    based = replace(problem, base=next(iter(bases))) if bases else problem
    return based, disambiguate_names(candidates)


async def read_pair(
    problem: CodeProblem, first: CandidateSource, second: CandidateSource | None = None
) -> tuple[CodeProblem, list[Candidate]]:
    """Read two versions that are to be compared, like `read_candidates`.

    A first version that is a revision becomes the base, and the word `base` stands for the base.
    Without a second one, the first is a range. Raises `StudyError` if one can't be read.
    """
    if second is None:
        problem, candidates = await read_candidates(problem, [first])
        return problem, [Candidate(BASE, files={}), *candidates]
    versions = []
    for source in (first, second):
        is_base = not isinstance(source, Candidate) and os.fspath(source) == BASE
        read = Candidate(BASE, files={}) if is_base else await _read(problem, source)
        if isinstance(read, RevisionRange):
            hint = "write its two sides, or nothing else beside it"
            raise StudyError(Mistake((), f"{source} is a range of revisions", hint))
        versions.append(read)
    if versions[0].revision:
        problem = replace(problem, base=versions[0].revision)
        versions[0] = Candidate(versions[0].name, files={})
    return problem, disambiguate_names(versions)


def make_revision(revision: str) -> Candidate:
    """Return a revision as a candidate."""
    return Candidate(revision, revision=revision)


async def _read(problem: CodeProblem, source: CandidateSource) -> Candidate | RevisionRange:
    """Read one candidate; raise `StudyError` if it is neither a path nor a revision."""
    if isinstance(source, Candidate):
        return source
    text = os.fspath(source)
    if text == THE_TREE:
        return make_revision(THE_TREE)
    if os.path.lexists(text):
        return read_candidate(Path(text))
    versions = await find_range(problem.project, text)
    if versions is not None:
        return versions
    if await has_revision(problem.project, text):
        return make_revision(text)
    message = "there is no such file, folder or revision"
    raise StudyError(Mistake((), message, _HINT), source=text)
