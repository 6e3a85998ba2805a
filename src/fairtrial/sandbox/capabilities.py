"""What this machine can enforce, as trials show, and how to get what it can't."""

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
from fairtrial.sandbox.cgroup import usable_places
from fairtrial.sandbox.host_lock import HOST_FOLDER, HostLock
from fairtrial.sandbox.namespaces import Namespaces
from fairtrial.sandbox.plain import Plain
from fairtrial.sandbox.protocol import Sandbox
from fairtrial.sandbox.remedies import SWITCHES, closed_switches, install, open_switches
from fairtrial.sandbox.selection import find_sandbox, try_sandbox

OLDEST_GIT = (2, 31)
"""The first that takes its configuration from variables."""
LEAST_FREE_GB = 1.0
UNIFIED = Path("/sys/fs/cgroup/cgroup.controllers")
"""There where control groups are of version 2 alone."""
ABOVE = "It needs what is said above of user namespaces, and the rights to mount in them."
IN_CONTAINERS = (
    "If this is a container, whoever starts it has to allow namespaces. With Docker, try\n"
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
class Fact:
    """One thing that matters for candidates, and how it stands with it.

    name: what it is about
    status: whether it is as it should be
    detail: what was found
    remedy: what people can do; lines that start with "$ " are commands
    """

    name: str
    status: Literal["yes", "partly", "no"]
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class Survey:
    """All that was found.

    facts: one thing each
    sandbox: what `sandbox: auto` takes
    is_full: whether that is a full sandbox
    shortfalls: what it can't enforce
    """

    facts: tuple[Fact, ...]
    sandbox: str
    is_full: bool
    shortfalls: tuple[str, ...]


def survey(slots: Sequence[Path], slots_variable: str) -> Survey:
    """Look at this machine; takes a moment, since sandboxes are really tried.

    slots: where candidates' files may go, the best place first
    slots_variable: names the variable that puts them elsewhere
    """
    temp = Path(tempfile.gettempdir())
    looks: Sequence[Callable[[], Fact]] = (
        look_at_git,
        look_at_user_namespaces,
        look_at_bubblewrap,
        look_at_namespaces,
        look_at_groups,
        look_at_lock,
        look_at_cores,
        lambda: look_at_room("slots", slots, slots_variable),
        lambda: look_at_room("temp folder", [temp], "TMPDIR"),
        look_at_user,
    )
    sandbox = find_sandbox("auto", unsandboxed=True)
    return Survey(
        facts=tuple(look() for look in looks),
        sandbox=sandbox.name,
        is_full=not isinstance(sandbox, Plain),
        shortfalls=sandbox.shortfalls,
    )


def look_at_git() -> Fact:
    """Whether git is there and new enough."""
    told = _ask("git", "--version")
    if told is None:
        return Fact("git", "no", "not on the path", install("git"))
    found = re.search(r"(\d+)\.(\d+)\S*", told)
    if found is None:
        return Fact("git", "no", f"says of its version: {told[:100]!r}", install("git"))
    if (int(found[1]), int(found[2])) < OLDEST_GIT:
        wanted = ".".join(map(str, OLDEST_GIT))
        return Fact("git", "no", f"{found[0]}; needs {wanted} or newer", install("git"))
    return Fact("git", "yes", found[0])


def look_at_user_namespaces() -> Fact:
    """Whether this user may enter one; tried in a child."""
    name = "user namespaces"
    if not sys.platform.startswith("linux"):
        return Fact(name, "no", f"{sys.platform} has none; full sandboxes need Linux")
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ENTER_NAMESPACE],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode == 0:
        return Fact(name, "yes", "a child could enter one")
    told = _end(done.stderr)
    closed = closed_switches()
    if closed:
        settings = ", ".join(f"{switch} is {SWITCHES[switch][0]}" for switch in closed)
        return Fact(name, "no", f"refused: {told} ({settings})", open_switches(closed))
    if _is_filtered():
        told = f"{told}; a seccomp filter is on, as in most containers"
        return Fact(name, "no", f"refused: {told}", IN_CONTAINERS)
    return Fact(name, "no", f"refused: {told}")


def look_at_bubblewrap() -> Fact:
    """Whether it is there, and whether it works."""
    told = _ask("bwrap", "--version")
    if told is None:
        return Fact("bubblewrap", "no", "bwrap is not on the path", install("bubblewrap"))
    version = told.split()[-1] if told.split() else "of unknown version"
    return _look_at_sandbox(Bubblewrap(), version)


def look_at_namespaces() -> Fact:
    """Whether our own sandbox works, which needs nothing but the kernel."""
    return _look_at_sandbox(Namespaces(), "our own sandbox")


def _look_at_sandbox(sandbox: Sandbox, what: str) -> Fact:
    reason = try_sandbox(sandbox)
    if reason:
        return Fact(sandbox.name, "no", f"{what}: a trial failed: {_end(reason)}", ABOVE)
    if sandbox.shortfalls:
        told = "; ".join(sandbox.shortfalls)
        return Fact(sandbox.name, "partly", f"{what}: a trial worked, but: {told}")
    return Fact(sandbox.name, "yes", f"{what}: a trial worked")


def look_at_groups() -> Fact:
    """Whether the kernel can hold limits for a whole tree of processes."""
    places, reason = usable_places()
    found = [
        f"{controller} (version {place.version})"
        for place in places
        for controller in place.controllers
    ]
    if len(found) == 2:
        return Fact("control groups", "yes", ", ".join(found))
    remedy = ""
    if UNIFIED.exists() and os.geteuid() != 0 and shutil.which("systemd-run"):
        # In the scope that this makes, the groups around ours belong to the user.
        remedy = "This may help:\n$ systemd-run --user --scope fairtrial doctor"
    polled = "limits that the kernel can't hold are held by looking often; short bursts get past"
    detail = f"{', '.join(found) or 'none to be had'}: {reason}; {polled}"
    return Fact("control groups", "partly" if found else "no", detail, remedy)


def look_at_lock() -> Fact:
    """Whether timing can have this host to itself."""
    try:
        HostLock().check()
    except LabError as error:
        return Fact("host lock", "no", str(error))
    return Fact("host lock", "yes", f"in {HOST_FOLDER}, for all users")


def look_at_cores() -> Fact:
    """How many checks can run at once."""
    affinity = getattr(os, "sched_getaffinity", None)
    usable, there = len(affinity(0)) if affinity else os.cpu_count() or 1, os.cpu_count() or 1
    detail = f"{usable}" if usable == there else f"{usable} of {there}"
    if usable == 1:
        return Fact("cores", "partly", f"{detail}: candidates are checked one at a time")
    return Fact("cores", "yes", detail)


def look_at_room(name: str, folders: Sequence[Path], variable: str) -> Fact:
    """Whether one of these folders can be written to or made, and has room."""
    usable = [folder for folder in folders if os.access(_nearest(folder), os.W_OK | os.X_OK)]
    if not usable:
        told = ", ".join(map(str, folders))
        return Fact(name, "no", f"can't be written to: {told}", f"Set {variable} to a folder.")
    free_gb = shutil.disk_usage(_nearest(usable[0])).free / 1e9
    detail = f"{free_gb:,.1f} GB free in {usable[0]}"
    if free_gb < LEAST_FREE_GB:
        remedy = f"Make room, or set {variable} to a folder on another disk."
        return Fact(name, "partly", detail, remedy)
    return Fact(name, "yes", detail)


def _nearest(folder: Path) -> Path:
    """The folder, or what is there of the way to it."""
    return next(each for each in (folder, *folder.parents) if each.exists())


def look_at_user() -> Fact:
    """Who candidates would be without a sandbox."""
    if os.geteuid() != 0:
        return Fact("user", "yes", "an ordinary one")
    detail = "root: a full sandbox takes its rights from candidates, without one they have them all"
    return Fact("user", "partly", detail)


def _ask(*command: str) -> str | None:
    """What a program says; None if it isn't there."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip()


def _end(text: str) -> str:
    """The last line, which tells most of what goes before."""
    return (text.strip().splitlines() or ["no reason given"])[-1]


def _is_filtered() -> bool:
    try:
        return "\nSeccomp:\t2\n" in Path("/proc/self/status").read_text()
    except OSError:
        return False
