"""A full sandbox that uses bubblewrap (`bwrap`)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from fairtrial.core import LabError
from fairtrial.sandbox.cold_start import make_cold_start
from fairtrial.sandbox.commands import Command, Completed
from fairtrial.sandbox.descriptors import Descriptors
from fairtrial.sandbox.init_process import run_under_init
from fairtrial.sandbox.mount_plan import PRIVATE, make_plan, private_variables
from fairtrial.sandbox.system import HARNESS, is_small_system_file, own_python_mounts

_OWN_HARNESS = Path("/run/fairtrial")
"""The harness's folder inside the sandbox: mounted last, so that no view can cover it."""


@dataclass(frozen=True, slots=True)
class Bubblewrap:
    """Isolates each command in namespaces that bwrap makes."""

    name = "bubblewrap"
    relocates = True

    @property
    def shortfalls(self) -> tuple[str, ...]:
        """What this sandbox can't enforce."""
        # bwrap can make a device read-only, but then it can't be used any more.
        modes = "commands can change the modes of this machine's devices, such as /dev/null"
        return (modes,) if os.geteuid() == 0 else ()

    async def run(self, command: Command) -> Completed:
        """Run a command; when this returns or is cancelled, all of its processes have ended."""
        plan = make_plan(command)

        def wrap(argv: Sequence[str], descriptors: Descriptors) -> list[str]:
            return [_bwrap(), *bwrap_arguments(plan, descriptors), "--", *argv]

        return await run_under_init(
            command,
            make_cold_start(self.name, wrap=wrap, pid_option="--info-fd", harness=_OWN_HARNESS),
            sandbox_name=self.name,
            env=private_variables(),
            plan=None,
            is_first=True,
            private=list(PRIVATE),
            scratch="",
        )


@cache
def _bwrap() -> str:
    program = shutil.which("bwrap")
    if program is None:
        raise LabError("bwrap is not on the path: install the package bubblewrap")
    return program


def bwrap_arguments(plan: dict[str, Any], descriptors: Descriptors) -> list[str]:
    """Return a mount plan as bwrap's options.

    descriptors: takes the descriptors of files that bwrap reads
    """
    return list(_arguments(plan, descriptors))


def _arguments(plan: dict[str, Any], descriptors: Descriptors) -> Iterator[str]:
    yield from ("--unshare-all", "--unshare-user", "--disable-userns", "--as-pid-1")
    yield from ("--new-session", "--cap-drop", "ALL")
    if plan["network"]:
        yield "--share-net"
    yield from ("--uid", str(plan["uid"]), "--gid", str(plan["gid"]))
    yield from ("--hostname", plan["hostname"], "--chdir", "/")
    for path, target in plan["links"].items():
        yield from ("--symlink", target, path)
    yield from ("--proc", "/proc", "--dev", "/dev")
    for folder in plan["private"]:
        size = str(plan["private_mb"] << 20)
        yield from ("--perms", "1777", "--size", size, "--tmpfs", folder)
    for source, target, is_writable in plan["mounts"]:
        if is_small_system_file(source, target):
            # A copy: each mount takes bwrap longer, since it reads all mounts again.
            number = descriptors.open(source, os.O_RDONLY)
            yield from ("--perms", "0444", "--file", str(number), target)
        else:
            yield from ("--bind" if is_writable else "--ro-bind", source, target)
    for source, target in (*own_python_mounts(), (str(HARNESS), str(_OWN_HARNESS))):
        yield from ("--ro-bind", source, target)
    # For root, files in /proc/sys would be writable even without capabilities.
    for folder in ("/proc", "/dev", "/"):
        yield from ("--remount-ro", folder)
