"""Which sandbox to use: the best that works on this machine, as a trial shows."""

from __future__ import annotations

import threading
from pathlib import Path

from fairtrial.core import LabError
from fairtrial.sandbox.bubblewrap import Bubblewrap
from fairtrial.sandbox.commands import Command, Ending
from fairtrial.sandbox.namespaces import Namespaces
from fairtrial.sandbox.plain import Plain
from fairtrial.sandbox.protocol import Sandbox

FULL: tuple[Sandbox, ...] = (Bubblewrap(), Namespaces())
_ADVICE = (
    "install bubblewrap (the program bwrap) and allow unprivileged user namespaces; "
    "`fairtrial doctor` says more"
)
_TRIAL_S = 20.0
_tried: dict[str, str] = {}


def find_sandbox(wanted: str = "auto", *, unsandboxed: bool = False) -> Sandbox:
    """The sandbox for a problem's commands; a `LabError` says what to do if there is none.

    wanted: `auto` takes the best there is, `require` only a full one, `plain` none
    unsandboxed: whether the user has said that commands may run without one
    """
    if wanted == "plain":
        if not unsandboxed:
            raise LabError(
                "sandbox: plain runs candidates with all that you may do yourself: "
                "give --unsandboxed if you mean that"
            )
        return Plain()
    reasons = []
    for sandbox in sorted(FULL, key=lambda each: len(each.shortfalls)):
        reason = try_sandbox(sandbox)
        if not reason:
            return sandbox
        reasons.append(f"{sandbox.name}: {reason}")
    if wanted == "auto" and unsandboxed:
        return Plain()
    otherwise = ", or give --unsandboxed to run without" if wanted == "auto" else ""
    told = "; ".join(reasons)
    raise LabError(f"no sandbox works on this machine: {_ADVICE}{otherwise} ({told})")


def try_sandbox(sandbox: Sandbox) -> str:
    """Why a sandbox doesn't work here; empty if it does. Tried once in each process."""
    if sandbox.name not in _tried:
        # A thread of its own: whoever asks may have an event loop running.
        thread = threading.Thread(target=_try, args=(sandbox,))
        thread.start()
        thread.join()
    return _tried.get(sandbox.name, "the trial broke off")


def _try(sandbox: Sandbox) -> None:
    import anyio

    command = Command(("/bin/sh", "-c", "exit 7"), Path("/tmp"), timeout_s=_TRIAL_S)
    try:
        done = anyio.run(sandbox.run, command)
    except LabError as error:
        _tried[sandbox.name] = str(error)
        return
    is_well = (done.ending, done.exit_code) == (Ending.EXITED, 7)
    said = done.stderr.text.strip()[:500]
    _tried[sandbox.name] = "" if is_well else f"a trial came to {done.ending}: {said}"
