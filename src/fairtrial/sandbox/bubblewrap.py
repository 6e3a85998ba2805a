"""A full sandbox by way of bubblewrap (`bwrap`), which many machines have and trust."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fairtrial.core import LabError
from fairtrial.sandbox.cold_start import starting
from fairtrial.sandbox.commands import Command, Completed
from fairtrial.sandbox.init_process import run_child
from fairtrial.sandbox.mount_plan import PRIVATE, make_plan, private_variables
from fairtrial.sandbox.system import HARNESS, own_python_mounts

_OWN_HARNESS = Path("/run/fairtrial")
"""Where our init finds its files inside: mounted last, where no view can lie over them."""


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """A machine of its own for each command, made by bwrap."""

    name = "bubblewrap"
    relocates = True

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """What it can't enforce."""
        # bwrap can make a device read-only, but then nobody can use it any more.
        modes = "commands can change the modes of this machine's devices, such as /dev/null"
        return (modes,) if os.geteuid() == 0 else ()

    async def run(self, command: Command) -> Completed:
        """Run it to its end; when this returns, or is cancelled, none of its processes is left."""
        plan = make_plan(command)
        prefix = [_bwrap(), *bwrap_arguments(plan), "--"]
        return await run_child(
            command,
            starting(self.name, wrap=lambda argv: [*prefix, *argv], guest=_OWN_HARNESS),
            who=self.name,
            env=private_variables(),
            plan=None,
            is_first=True,
            private=list(PRIVATE),
            scratch="",
        )


@cache
def _bwrap() -> str:
    found = shutil.which("bwrap")
    if found is None:
        raise LabError("bwrap is not on the path: install the package bubblewrap")
    return found


def bwrap_arguments(plan: dict[str, Any]) -> list[str]:
    """A plan in bwrap's words."""
    return list(_arguments(plan))


def _arguments(plan: dict[str, Any]) -> Iterator[str]:
    yield from ("--unshare-all", "--unshare-user", "--disable-userns", "--as-pid-1")
    yield from ("--new-session", "--cap-drop", "ALL")
    if plan["network"]:
        yield "--share-net"
    yield from ("--uid", str(plan["uid"]), "--gid", str(plan["gid"]))
    yield from ("--hostname", plan["hostname"], "--chdir", "/")
    for path, leads_to in plan["links"].items():
        yield from ("--symlink", leads_to, path)
    yield from ("--proc", "/proc", "--dev", "/dev")
    for folder in plan["private"]:
        size = str(plan["private_mb"] << 20)
        yield from ("--perms", "1777", "--size", size, "--tmpfs", folder)
    for source, target, is_writable in plan["mounts"]:
        yield from ("--bind" if is_writable else "--ro-bind", source, target)
    for source, target in (*own_python_mounts(), (str(HARNESS), str(_OWN_HARNESS))):
        yield from ("--ro-bind", source, target)
    # For root, what lies in /proc/sys would be writable, capabilities or not.
    for folder in ("/proc", "/dev", "/"):
        yield from ("--remount-ro", folder)
