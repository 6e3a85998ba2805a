"""Candidates: changes to a code base that somebody proposes, and where they come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as it should be.

    content: its bytes; of a symbolic link, where it leads
    executable: whether it may be run; None keeps what it is (new files: no)
    is_link: whether it is a symbolic link
    """

    content: bytes
    executable: bool | None = None
    is_link: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """A proposed change, as somebody made it: a unified diff, or whole files that overlay the base.

    name: what people call it
    diff: a unified diff against the base, as git or diff writes it; or
    files: new contents by path, relative to the top of the repository
    parent: the digest of the candidate that it was made from, if any
    origin: who made it: an agent's name, a file
    note: what its maker says of it
    """

    name: str
    diff: bytes | None = None
    files: Mapping[str, FileState] = field(default_factory=dict)
    parent: str | None = None
    origin: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Changes:
    """What a candidate comes to, against a given base.

    files: every path that differs from the base, as it should be; None for a file that goes
    digest: the same for candidates that differ in formatting, comments, docstrings or names of
        local variables only; empty text if nothing differs from the base
    """

    files: Mapping[str, FileState | None] = field(default_factory=lambda: MappingProxyType({}))
    digest: str = ""
