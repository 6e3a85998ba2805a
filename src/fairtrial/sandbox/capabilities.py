"""Survey of what sandboxes can enforce on this machine, with advice on what is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from fairtrial.core import LabError
from fairtrial.sandbox.bubblewrap import Bubblewrap
from fairtrial.sandbox.cgroup import find_usable_parents
from fairtrial.sandbox.hierarchy import CONTROLLERS
from fairtrial.sandbox.host_lock import HOST_FOLDER, HostLock
from fairtrial.sandbox.namespaces import Namespaces
from fairtrial.sandbox.plain import Plain
from fairtrial.sandbox.protocol import Sandbox
from fairtrial.sandbox.remedies import (
    NAMESPACE_SETTINGS,
    find_blocking_settings,
    install_hint,
    settings_hint,
)
from fairtrial.sandbox.selection import find_sandbox, try_sandbox

__all__ = ["HostFact", "HostSurvey", "survey_host"]
MIN_GIT = (2, 31)
"""The first version that takes its configuration from environment variables."""
MIN_FREE_GB = 1.0
UNIFIED = Path("/sys/fs/cgroup/cgroup.controllers")
"""Exists if control groups are of version 2 only."""
SANDBOX_REMEDY = "It needs what is said above of user namespaces, and the rights to mount in them."
CONTAINER_REMEDY = (
    "If this is a container, it has to be started with namespaces allowed. With Docker, try\n"
    "$ docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined ..."
)
ENTER_NAMESPACE = """
import ctypes, os
user = os.geteuid()
if ctypes.CDLL(None, use_errno=True).unshare(0x10000000 | 0x00020000):
    raise SystemExit(os.strerror(ctypes.get_errno()))
with open("/proc/self/uid_map", "w") as file:
    file.write(f"0 {user} 1")
"""


@dataclass(frozen=True, slots=True)
class HostFact:
    """One property of this machine that matters for judging or timing candidates.

    name: the property's name
    status: whether it is as it should be
    detail: what was found
    remedy: what the user can do; lines that start with "$ " are commands
    """

    name: str
    status: Literal["yes", "partly", "no"]
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class HostSurvey:
    """The result of a survey of this machine.

    facts: the properties that were checked
    sandbox: the sandbox that `sandbox: auto` selects
    is_full: whether that is a full sandbox
    shortfalls: what that sandbox can't enforce
    """

    facts: tuple[HostFact, ...]
    sandbox: str
    is_full: bool
    shortfalls: tuple[str, ...]


def survey_host(slots: Sequence[Path], slots_variable: str) -> HostSurvey:
    """Survey this machine; takes a moment, since sandboxes are tried.

    slots: folders for candidates' files, the best first
    slots_variable: the environment variable that sets another folder for them
    """
    temp = Path(tempfile.gettempdir())
    checks: Sequence[Callable[[], HostFact]] = (
        check_git,
        check_user_namespaces,
        check_bubblewrap,
        check_namespaces,
        check_control_groups,
        check_host_lock,
        check_cores,
        lambda: check_free_space("slots", slots, slots_variable),
        lambda: check_free_space("temp folder", [temp], "TMPDIR"),
        check_user,
    )
    sandbox = find_sandbox("auto", unsandboxed=True)
    return HostSurvey(
        facts=tuple(check() for check in checks),
        sandbox=sandbox.name,
        is_full=not isinstance(sandbox, Plain),
        shortfalls=sandbox.shortfalls,
    )


def check_git() -> HostFact:
    """Check whether git is installed and new enough."""
    output = _run_program("git", "--version")
    if output is None:
        return HostFact("git", "no", "not on the path", install_hint("git"))
    version = re.search(r"(\d+)\.(\d+)\S*", output)
    if version is None:
        return HostFact("git", "no", f"says of its version: {output[:100]!r}", install_hint("git"))
    if (int(version[1]), int(version[2])) < MIN_GIT:
        required = ".".join(map(str, MIN_GIT))
        detail = f"{version[0]}; needs {required} or newer"
        return HostFact("git", "no", detail, install_hint("git"))
    return HostFact("git", "yes", version[0])


def check_user_namespaces() -> HostFact:
    """Check, in a child process, whether this user may enter a user namespace."""
    name = "user namespaces"
    if not sys.platform.startswith("linux"):
        return HostFact(name, "no", f"{sys.platform} has none; full sandboxes need Linux")
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ENTER_NAMESPACE],
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode == 0:
        return HostFact(name, "yes", "a child could enter one")
    reason = _get_last_line(result.stderr)
    blocking = find_blocking_settings()
    if blocking:
        values = ", ".join(f"{setting} is {NAMESPACE_SETTINGS[setting][0]}" for setting in blocking)
        return HostFact(name, "no", f"refused: {reason} ({values})", settings_hint(blocking))
    if _is_filtered():
        reason = f"{reason}; a seccomp filter is on, as in most containers"
        return HostFact(name, "no", f"refused: {reason}", CONTAINER_REMEDY)
    return HostFact(name, "no", f"refused: {reason}")


def check_bubblewrap() -> HostFact:
    """Check whether bubblewrap is installed and works."""
    output = _run_program("bwrap", "--version")
    if output is None:
        return HostFact("bubblewrap", "no", "bwrap is not on the path", install_hint("bubblewrap"))
    version = output.split()[-1] if output.split() else "of unknown version"
    return _check_sandbox(Bubblewrap(), version)


def check_namespaces() -> HostFact:
    """Check whether the namespaces sandbox works, which needs nothing but the kernel."""
    return _check_sandbox(Namespaces(), "fairtrial's own sandbox")


def _check_sandbox(sandbox: Sandbox, label: str) -> HostFact:
    reason = try_sandbox(sandbox)
    if reason:
        detail = f"{label}: a trial failed: {_get_last_line(reason)}"
        return HostFact(sandbox.name, "no", detail, SANDBOX_REMEDY)
    if sandbox.shortfalls:
        shortfalls = "; ".join(sandbox.shortfalls)
        return HostFact(sandbox.name, "partly", f"{label}: a trial worked, but: {shortfalls}")
    return HostFact(sandbox.name, "yes", f"{label}: a trial worked")


def check_control_groups() -> HostFact:
    """Check whether control groups can be made, by which the kernel limits a process tree."""
    parents, reason = find_usable_parents()
    controllers = [
        f"{controller} (version {parent.version})"
        for parent in parents
        for controller in parent.controllers
    ]
    if set(CONTROLLERS) <= {name for parent in parents for name in parent.controllers}:
        return HostFact("control groups", "yes", ", ".join(controllers))
    remedy = ""
    if UNIFIED.exists() and os.geteuid() != 0 and shutil.which("systemd-run"):
        # In the scope that this makes, the groups around the process's own belong to the user.
        remedy = "This may help:\n$ systemd-run --user --scope fairtrial doctor"
    polled = "limits that the kernel can't hold are held by looking often; short bursts get past"
    usable = ", ".join(controllers) or "none available"
    detail = f"{usable}: {reason}; {polled}" if reason else f"{usable}; {polled}"
    return HostFact("control groups", "partly" if controllers else "no", detail, remedy)


def check_host_lock() -> HostFact:
    """Check whether the host lock, by which timing has this host to itself, can be used."""
    try:
        HostLock().check()
    except LabError as error:
        return HostFact("host lock", "no", str(error))
    return HostFact("host lock", "yes", f"in {HOST_FOLDER}, for all users")


def check_cores() -> HostFact:
    """Check how many cores can be used, and so how many checks can run at once."""
    affinity = getattr(os, "sched_getaffinity", None)
    usable, total = len(affinity(0)) if affinity else os.cpu_count() or 1, os.cpu_count() or 1
    detail = f"{usable}" if usable == total else f"{usable} of {total}"
    if usable == 1:
        return HostFact("cores", "partly", f"{detail}: candidates are checked one at a time")
    return HostFact("cores", "yes", detail)


def check_free_space(name: str, folders: Sequence[Path], variable: str) -> HostFact:
    """Check whether one of these folders can be written to or made, and has free space."""
    usable = [folder for folder in folders if os.access(_find_existing(folder), os.W_OK | os.X_OK)]
    if not usable:
        listed = ", ".join(map(str, folders))
        remedy = f"Set {variable} to a folder."
        return HostFact(name, "no", f"can't be written to: {listed}", remedy)
    free_gb = shutil.disk_usage(_find_existing(usable[0])).free / 1e9
    detail = f"{free_gb:,.1f} GB free in {usable[0]}"
    if free_gb < MIN_FREE_GB:
        remedy = f"Make room, or set {variable} to a folder on another disk."
        return HostFact(name, "partly", detail, remedy)
    return HostFact(name, "yes", detail)


def _find_existing(folder: Path) -> Path:
    """Return the folder, or its nearest ancestor that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def check_user() -> HostFact:
    """Check as which user candidates would run without a sandbox."""
    if os.geteuid() != 0:
        return HostFact("user", "yes", "an ordinary one")
    detail = "root: a full sandbox takes its rights from candidates, without one they have them all"
    return HostFact("user", "partly", detail)


def _run_program(*command: str) -> str | None:
    """Return a program's output; None if it can't be run."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip()


def _get_last_line(text: str) -> str:
    """Return the last line of an error output, which usually names the cause."""
    return (text.strip().splitlines() or ["no reason given"])[-1]


def _is_filtered() -> bool:
    try:
        return "\nSeccomp:\t2\n" in Path("/proc/self/status").read_text()
    except OSError:
        return False
