"""Candidates: changes to a code base that somebody proposes, and where they come from."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fairtrial.core import Mistake, StudyError, describe

_NO_FILES: Mapping[str, Any] = {}
"""What a candidate has that was given no files; an empty mapping that was given is another."""


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as it should be.

    content: its bytes, or its text, which becomes UTF-8; of a symbolic link, where it leads
    executable: whether it may be run; None keeps what it is (new files: no)
    is_link: whether it is a symbolic link
    """

    content: bytes
    executable: bool | None = None
    is_link: bool = False

    if TYPE_CHECKING:

        def __init__(
            self, content: bytes | str, executable: bool | None = None, is_link: bool = False
        ) -> None: ...

    def __post_init__(self) -> None:
        # There is one for each file of a base: what is right passes by comparing identities.
        if type(self.content) is not bytes:
            object.__setattr__(self, "content", _as_bytes(self.content, "content", "FileState"))
        if self.executable not in _YES_NO_UNSAID or self.is_link not in _YES_NO:
            raise StudyError(list(self._mistakes()), source="FileState")

    def _mistakes(self) -> Iterator[Mistake]:
        for name, allowed in (("executable", _YES_NO_UNSAID), ("is_link", _YES_NO)):
            given = getattr(self, name)
            if given not in allowed:
                yield Mistake((name,), f"expected true or false, got {describe(given)}")


_YES_NO = (True, False)
_YES_NO_UNSAID = (None, *_YES_NO)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed change, as somebody made it: a unified diff, or whole files that overlay the base.

    Text becomes UTF-8. To propose the base as it is, give it `files={}`.

    name: what people call it
    diff: a unified diff against the base, as git or diff writes it; or
    files: new contents by path, relative to the top of the repository
    parent: the digest of the candidate that it was made from, if any
    origin: who made it: an agent's name, a file
    note: what its maker says of it
    """

    name: str
    diff: bytes | None = None
    files: Mapping[str, FileState] = field(default_factory=lambda: _NO_FILES)
    parent: str | None = None
    origin: str = ""
    note: str = ""

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
        for name in ("name", "origin", "note"):
            if not isinstance(getattr(self, name), str):
                yield Mistake((name,), f"expected text, got {describe(getattr(self, name))}")
        if not isinstance(self.parent, str | None):
            yield Mistake(("parent",), f"expected a digest, got {describe(self.parent)}")
        if not isinstance(self.diff, bytes | str | None):
            yield Mistake(("diff",), f"expected text or bytes, got {describe(self.diff)}")
        if not isinstance(self.files, Mapping):
            message = f"expected a mapping of paths to contents, got {describe(self.files)}"
            yield Mistake(("files",), message)
            return
        for path, state in self.files.items():
            if not isinstance(path, str | PurePath):
                yield Mistake(("files",), f"expected paths as keys, got {describe(path)}")
            elif not isinstance(state, FileState | str | bytes):
                message = f"expected text, bytes or a FileState, got {describe(state)}"
                yield Mistake(("files", os.fspath(path)), message)
        if self.diff is None and self.files is _NO_FILES:
            yield Mistake((), "has neither a diff nor files", "give one of them")


def _as_bytes(given: Any, name: str, source: str) -> bytes:
    """Text as UTF-8; what was read with `surrogateescape` becomes the bytes that it was."""
    if isinstance(given, bytes):
        return bytes(given)
    message = f"expected text or bytes, got {describe(given)}"
    if isinstance(given, str):
        try:
            return given.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError as error:
            message = f"is text that UTF-8 can't hold: {error.reason}"
    raise StudyError(Mistake((name,), message), source=source)


def _as_path(path: str | PurePath) -> str:
    return path.as_posix() if isinstance(path, PurePath) else str(path)


def _as_state(given: FileState | str | bytes) -> FileState:
    return given if isinstance(given, FileState) else FileState(given)


@dataclass(frozen=True, slots=True)
class Changes:
    """What a candidate comes to, against a given base.

    files: every path that differs from the base, as it should be; None for a file that goes
    digest: the same for candidates that differ in formatting, comments, docstrings or names of
        local variables only; empty text if nothing differs from the base
    """

    files: Mapping[str, FileState | None] = field(default_factory=lambda: MappingProxyType({}))
    digest: str = ""
