"""Where and how a study was run: host, platform, versions, commit, command line.

Gathered once per session, when it begins, and kept in the ledger. Nothing that looks like a secret
gets in.
"""

from __future__ import annotations

import functools
import os
import platform
import re
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from fairtrial.core import dump
from fairtrial.study.model.study import Study

HIDDEN = "***"
GIT_TIMEOUT_S = 10.0
USER_KEY = "provenance_metadata"
"""Where a study's own facts go that are named like recorded ones."""
_SECRET_NAME = re.compile(
    r"key|token(?!s)|secret|passw|passphrase|pwd|credential|cookie|bearer|auth(?!ors?\b)",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(
    r"\b(?:sk|pk|rk)[-_][\w-]{8,}|\bgh[opsur]_\w{16,}|\bgithub_pat_\w{16,}|\bglpat-[\w-]{16,}"
    r"|\bhf_\w{16,}|\bxox[a-z]-[\w-]{8,}|\bAKIA[0-9A-Z]{12,}|\bAIza[\w-]{20,}"
    r"|\beyJ[\w-]{8,}\.[\w.-]+"
)
_SCHEME = re.compile(r"\b(bearer|basic)\s+[^\s'\"]+", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"(?<=://)[^/\s@]+(?=@)")
_ASSIGNED = re.compile(r"([\w.\-\[\]]+)(\s*[=:]\s*)(\S.*)", re.DOTALL)


def gather(study: Study, command: Sequence[str] | None = None) -> dict[str, Any]:
    """What there is to know of this process and its surroundings."""
    folder = study.folder or Path.cwd()
    sha, is_dirty = read_commit(folder)
    return {
        "captured_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "host": socket.gethostname(),
        "platform": platform.platform(),
        "cpu_count": os.cpu_count(),
        "python_version": platform.python_version(),
        "package_versions": _versions(study),
        "git_sha": sha,
        "git_dirty": is_dirty,
        "command": redact(sys.argv if command is None else command),
        "seed_policy": dump(study.seed_policy),
    }


def add_own(recorded: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Recorded facts and the study's own; where both name one, the recorded one stays."""
    merged = dict(recorded)
    clashing = {name: value for name, value in own.items() if name in recorded}
    merged.update((name, value) for name, value in own.items() if name not in recorded)
    return {**merged, USER_KEY: clashing} if clashing else merged


def redact(command: Iterable[str]) -> list[str]:
    """A command line without what looks like a secret: by its name, or by its own shape."""
    shown: list[str] = []
    hide_next = False
    for word in command:
        if hide_next and not word.startswith("-"):
            shown.append(HIDDEN)
            hide_next = False
            continue
        is_bare_option = word.startswith("-") and "=" not in word and " " not in word
        hide_next = is_bare_option and _SECRET_NAME.search(word) is not None
        shown.append(_redact_word(word))
    return shown


def _redact_word(word: str) -> str:
    word = _SCHEME.sub(rf"\1 {HIDDEN}", word)
    assigned = _ASSIGNED.fullmatch(word)
    if assigned and _SECRET_NAME.search(assigned[1]):
        return f"{assigned[1]}{assigned[2]}{HIDDEN}"
    return _IN_ADDRESS.sub(HIDDEN, _SECRET_VALUE.sub(HIDDEN, word))


def read_commit(folder: Path) -> tuple[str | None, bool | None]:
    """The commit that a folder is at, and whether tracked files differ from it; or nothing."""
    command = ["git", "-c", "core.fsmonitor=false", "status", "--porcelain=v2", "--branch"]
    try:
        told = subprocess.run(
            [*command, "--untracked-files=no"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_TIMEOUT_S,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None, None
    lines = told.stdout.decode("utf-8", "replace").splitlines()
    sha = next((line.split()[2] for line in lines if line.startswith("# branch.oid ")), None)
    if sha == "(initial)":
        return None, None
    return sha, any(not line.startswith("#") for line in lines)


def _versions(study: Study) -> dict[str, str]:
    """Versions of fairtrial, what it needs, and what the study's modules belong to."""
    names = {"fairtrial", *_requirements("fairtrial"), *_modules(study)}
    found = {name: _version(name) for name in sorted(names, key=str.lower)}
    return {name: version for name, version in found.items() if version is not None}


def _requirements(package: str) -> Iterable[str]:
    try:
        required = metadata.requires(package) or []
    except metadata.PackageNotFoundError:
        return []
    return [match[0] for text in required if (match := re.match(r"[\w.-]+", text))]


def _modules(study: Study) -> Iterable[str]:
    """The top-level modules that a study names; a package mostly has the name of its module."""
    references = [study.condition_runner, *(agent.use for agent in study.agents.values())]
    for problem in study.problems.values():
        references += [problem.use, problem.evaluator]
    return [text.split(":")[0].split(".")[0] for text in references if text and ":" in text]


@functools.cache
def _version(name: str) -> str | None:
    """The version of a package when it was first asked for: what is loaded stays as it was."""
    try:
        return metadata.version(name)
    except (metadata.PackageNotFoundError, ValueError):
        return None
