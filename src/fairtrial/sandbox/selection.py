"""Selection of a sandbox: the best one that passes a trial on this machine."""

from __future__ import annotations

import threading
from pathlib import Path

from fairtrial.core import LabError
from fairtrial.sandbox.bubblewrap import Bubblewrap
from fairtrial.sandbox.commands import Command, Ending
from fairtrial.sandbox.namespaces import Namespaces
from fairtrial.sandbox.plain import Plain
from fairtrial.sandbox.protocol import Sandbox

FULL_SANDBOXES: tuple[Sandbox, ...] = (Bubblewrap(), Namespaces())
_ADVICE = (
    "install bubblewrap (the program bwrap) and allow unprivileged user namespaces; "
    "`fairtrial doctor` says more"
)
_TRIAL_S = 20.0
_trial_results: dict[str, str] = {}


def find_sandbox(wanted: str = "auto", *, unsandboxed: bool = False) -> Sandbox:
    """Return the sandbox for a problem's commands; raises `LabError` with advice if none works.

    wanted: `auto` for the best available, `require` for a full one only, `plain` for none
    unsandboxed: whether the user allows commands to run without a sandbox
    """
    if wanted == "plain":
        if not unsandboxed:
            raise LabError(
                "sandbox: plain runs candidates with all that you may do yourself: "
                "give --unsandboxed if you mean that"
            )
        return Plain()
    reasons = []
    for sandbox in sorted(FULL_SANDBOXES, key=lambda sandbox: len(sandbox.shortfalls)):
        reason = try_sandbox(sandbox)
        if not reason:
            return sandbox
        reasons.append(f"{sandbox.name}: {reason}")
    if wanted == "auto" and unsandboxed:
        return Plain()
    otherwise = ", or give --unsandboxed to run without" if wanted == "auto" else ""
    raise LabError(f"no sandbox works on this machine: {_ADVICE}{otherwise} ({'; '.join(reasons)})")


def try_sandbox(sandbox: Sandbox) -> str:
    """Return why a sandbox doesn't work on this machine; empty if it does.

    Runs a trial command, once per sandbox and process.
    """
    if sandbox.name not in _trial_results:
        # In a thread, since the caller may have an event loop running.
        thread = threading.Thread(target=_run_trial, args=(sandbox,))
        thread.start()
        thread.join()
    return _trial_results.get(sandbox.name, "the trial broke off")


def _run_trial(sandbox: Sandbox) -> None:
    import anyio

    command = Command(("/bin/sh", "-c", "exit 7"), Path("/tmp"), timeout_s=_TRIAL_S)
    try:
        result = anyio.run(sandbox.run, command)
    except LabError as error:
        _trial_results[sandbox.name] = str(error)
        return
    works = (result.ending, result.exit_code) == (Ending.EXITED, 7)
    stderr = result.stderr.text.strip()[:500]
    _trial_results[sandbox.name] = "" if works else f"a trial ended as {result.ending}: {stderr}"
