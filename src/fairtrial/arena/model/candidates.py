"""Candidates: proposed changes to a code base, and the files that they change in a given base."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fairtrial.core import Mistake, StudyError, describe_value

_NO_FILES: Mapping[str, Any] = {}
"""The default of `Candidate.files`. Compared by identity: an empty mapping passed by the caller
proposes the base unchanged."""


@dataclass(frozen=True, slots=True)
class FileState:
    """The content and kind of one file.

    Raises `StudyError` if a field has the wrong type.

    content: the file's bytes; text is encoded as UTF-8. For a symbolic link, the link's target
    executable: whether the file is executable; None keeps the base's mode (new files are not)
    is_link: whether the file is a symbolic link
    """

    content: bytes
    executable: bool | None = None
    is_link: bool = False

    if TYPE_CHECKING:

        def __init__(
            self, content: bytes | str, executable: bool | None = None, is_link: bool = False
        ) -> None: ...

    def __post_init__(self) -> None:
        # One is created for each file of a base, so the checks of valid values must be cheap.
        if type(self.content) is not bytes:
            object.__setattr__(self, "content", _as_bytes(self.content, "content", "FileState"))
        if self.executable not in _BOOLEAN_OR_NONE or self.is_link not in _BOOLEAN:
            raise StudyError(list(self._mistakes()), source="FileState")

    def _mistakes(self) -> Iterator[Mistake]:
        for name, allowed in (("executable", _BOOLEAN_OR_NONE), ("is_link", _BOOLEAN)):
            value = getattr(self, name)
            if value not in allowed:
                yield Mistake((name,), f"expected true or false, got {describe_value(value)}")


_BOOLEAN = (True, False)
_BOOLEAN_OR_NONE = (None, *_BOOLEAN)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed change to the base: a unified diff, files that overlay the base, or a revision.

    Text is encoded as UTF-8. `files={}` proposes the base unchanged. Raises `StudyError` with all
    mistakes if a field has the wrong type, or if there are neither a diff nor files.

    name: the candidate's name in messages and reports
    diff: a unified diff against the base, in the format of git or diff; or
    files: new contents by path, relative to the top of the repository
    parent: the digest of the candidate that this one was derived from, if any
    origin: where the candidate comes from: an agent's name or a file
    revision: a git revision of the user's repository whose files are proposed, instead of a diff or
        files; `.` is the tree as it is
    note: a description by the candidate's author
    """

    name: str
    diff: bytes | None = None
    files: Mapping[str, FileState] = field(default_factory=lambda: _NO_FILES)
    parent: str | None = None
    origin: str = ""
    note: str = ""
    revision: str = ""

    if TYPE_CHECKING:

        def __init__(
            self,
            name: str,
            diff: bytes | str | None = None,
            files: Mapping[str, FileState]
            | Mapping[str, str]
            | Mapping[str, bytes]
            | Mapping[str, FileState | str | bytes] = _NO_FILES,
            parent: str | None = None,
            origin: str = "",
            note: str = "",
            revision: str = "",
        ) -> None: ...

    def __post_init__(self) -> None:
        mistakes = list(self._mistakes())
        if mistakes:
            raise StudyError(mistakes, source="Candidate")
        if self.files is _NO_FILES:
            object.__setattr__(self, "files", {})
        if isinstance(self.diff, str):
            object.__setattr__(self, "diff", _as_bytes(self.diff, "diff", "Candidate"))
        if not all(
            type(path) is str and type(state) is FileState for path, state in self.files.items()
        ):
            files = {_as_path(path): _as_state(state) for path, state in self.files.items()}
            object.__setattr__(self, "files", files)

    def _mistakes(self) -> Iterator[Mistake]:
        for name in ("name", "origin", "note", "revision"):
            if not isinstance(getattr(self, name), str):
                yield Mistake((name,), f"expected text, got {describe_value(getattr(self, name))}")
        if not isinstance(self.parent, str | None):
            yield Mistake(("parent",), f"expected a digest, got {describe_value(self.parent)}")
        if not isinstance(self.diff, bytes | str | None):
            yield Mistake(("diff",), f"expected text or bytes, got {describe_value(self.diff)}")
        if not isinstance(self.files, Mapping):
            message = f"expected a mapping of paths to contents, got {describe_value(self.files)}"
            yield Mistake(("files",), message)
            return
        for path, state in self.files.items():
            if not isinstance(path, str | PurePath):
                yield Mistake(("files",), f"expected paths as keys, got {describe_value(path)}")
            elif not isinstance(state, FileState | str | bytes):
                message = f"expected text, bytes or a FileState, got {describe_value(state)}"
                yield Mistake(("files", os.fspath(path)), message)
        if self.diff is None and self.files is _NO_FILES and not self.revision:
            yield Mistake((), "has neither a diff nor files", "give one of them")


def _as_bytes(value: Any, name: str, source: str) -> bytes:
    """Return text as UTF-8; surrogates of `surrogateescape` become the original bytes again.

    Raises `StudyError` about the field `name` of `source` if it is neither text nor bytes.
    """
    if isinstance(value, bytes):
        return bytes(value)
    message = f"expected text or bytes, got {describe_value(value)}"
    if isinstance(value, str):
        try:
            return value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            message = f"is text that UTF-8 can't hold: {error.reason}"
    raise StudyError(Mistake((name,), message), source=source)


def _as_path(path: str | PurePath) -> str:
    return path.as_posix() if isinstance(path, PurePath) else str(path)


def _as_state(value: FileState | str | bytes) -> FileState:
    return value if isinstance(value, FileState) else FileState(value)


@dataclass(frozen=True, slots=True)
class Changes:
    """The effect of a candidate on a given base.

    files: the new state of every path that differs from the base; None for a deleted file
    digest: a hash of the changes, equal for candidates that differ only in formatting, comments,
        docstrings or names of local variables; empty if nothing differs from the base
    left_out: paths that a revision changes, too, but candidates may not
    """

    files: Mapping[str, FileState | None] = field(default_factory=lambda: MappingProxyType({}))
    digest: str = ""
    left_out: tuple[str, ...] = ()
