"""Provenance of a study: host, platform, package versions, git commit, command line.

Collected once at the beginning of each session and stored in the ledger. Values that look like
secrets are redacted.
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

from fairtrial.core import dump_record
from fairtrial.study.model.problems import named_code
from fairtrial.study.model.study import Study

HIDDEN = "***"
GIT_TIMEOUT_S = 10.0
USER_KEY = "provenance_metadata"
"""Key for metadata of the study that has the same names as collected provenance."""
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
_ASSIGNMENT = re.compile(r"([\w.\-\[\]]+)(\s*[=:]\s*)(\S.*)", re.DOTALL)


def collect_provenance(study: Study, command: Sequence[str] | None = None) -> dict[str, Any]:
    """Return the provenance of this process.

    study: the study; its folder determines the git commit
    command: the command line; by default that of this process
    """
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
        "command": redact_command(sys.argv if command is None else command),
        "seed_policy": dump_record(study.seed_policy),
    }


def merge_metadata(recorded: Mapping[str, Any], declared: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the recorded provenance with the metadata that a study declares.

    Recorded values take precedence; declared ones of the same name go under `USER_KEY`.
    """
    merged = dict(recorded)
    clashing = {name: value for name, value in declared.items() if name in recorded}
    merged.update((name, value) for name, value in declared.items() if name not in recorded)
    return {**merged, USER_KEY: clashing} if clashing else merged


def redact_command(command: Iterable[str]) -> list[str]:
    """Return a command line with values replaced that look like secrets.

    A value is redacted because of the name of its option or because of its own format.
    """
    redacted: list[str] = []
    hide_next = False
    for argument in command:
        if hide_next and not argument.startswith("-"):
            redacted.append(HIDDEN)
            hide_next = False
            continue
        is_bare_option = argument.startswith("-") and "=" not in argument and " " not in argument
        hide_next = is_bare_option and _SECRET_NAME.search(argument) is not None
        redacted.append(_redact_argument(argument))
    return redacted


def _redact_argument(argument: str) -> str:
    argument = _SCHEME.sub(rf"\1 {HIDDEN}", argument)
    assignment = _ASSIGNMENT.fullmatch(argument)
    if assignment and _SECRET_NAME.search(assignment[1]):
        return f"{assignment[1]}{assignment[2]}{HIDDEN}"
    return _IN_ADDRESS.sub(HIDDEN, _SECRET_VALUE.sub(HIDDEN, argument))


def read_commit(folder: Path) -> tuple[str | None, bool | None]:
    """Return the git commit of a folder, and whether tracked files differ from it.

    Both are None if there is no repository, no commit, or no git.
    """
    command = ["git", "-c", "core.fsmonitor=false", "status", "--porcelain=v2", "--branch"]
    try:
        status = subprocess.run(
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
    lines = status.stdout.decode("utf-8", "replace").splitlines()
    sha = next((line.split()[2] for line in lines if line.startswith("# branch.oid ")), None)
    if sha == "(initial)":
        return None, None
    return sha, any(not line.startswith("#") for line in lines)


def _versions(study: Study) -> dict[str, str]:
    """Return the versions of fairtrial, its requirements, and the packages that the study uses."""
    names = {"fairtrial", *_requirements("fairtrial"), *_modules(study)}
    versions = {name: _version(name) for name in sorted(names, key=str.lower)}
    return {name: version for name, version in versions.items() if version is not None}


def _requirements(package: str) -> Iterable[str]:
    try:
        required = metadata.requires(package) or []
    except metadata.PackageNotFoundError:
        return []
    return [match[0] for text in required if (match := re.match(r"[\w.-]+", text))]


def _modules(study: Study) -> Iterable[str]:
    """Return the top-level modules that a study refers to; most packages are named like them."""
    references = [study.condition_runner, *(agent.use for agent in study.agents.values())]
    references += named_code(study.problems)
    return [text.split(":")[0].split(".")[0] for text in references if text and ":" in text]


@functools.cache
def _version(name: str) -> str | None:
    """Return the version of an installed package, or None.

    Cached: an upgrade during the process does not change the code that is loaded.
    """
    try:
        return metadata.version(name)
    except (metadata.PackageNotFoundError, ValueError):
        return None
