"""Ruff's own fixes for slow patterns, without regard to the project's configuration."""

from __future__ import annotations

import importlib
import shutil
import subprocess
import sysconfig
import threading
from functools import cache
from pathlib import Path

RULES = (
    *("PERF", "C4", "UP032", "UP033", "RUF015", "SIM118", "SIM401", "PLR1714"),
    *("FURB113", "FURB118", "FURB129", "FURB132", "FURB140", "FURB142", "FURB145"),
)
"""Loops to comprehensions and `update`, superfluous lists and copies, f-strings, `operator`.

Not all of FURB: the others there are about style, or wrong at times. FURB148 forgets that names may
be nonlocal; FURB192 takes the first of equal ones (`max`) for the last (``sorted(x, key=k)[-1]``).
"""
TARGET = "py39"
TIMEOUT_S = 30.0
_LOOKING = threading.Lock()


def fix(text: str) -> str:
    """The source with all fixes; as it was if ruff isn't here or has nothing to say."""
    executable = find_ruff()
    if executable is None:
        return text
    command = [executable, "check", "--isolated", "--no-cache", "--quiet", "--fix-only"]
    # Without --preview it finds loops that should be comprehensions, but leaves them as they are.
    command += ["--preview", "--unsafe-fixes", "--target-version", TARGET]
    command += ["--select", ",".join(RULES)]
    try:
        told = subprocess.run(
            [*command, "--stdin-filename", "module.py", "-"],
            input=text.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},  # variables that begin with RUFF_ are options, too
            cwd="/",
            timeout=TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return text
    return told.stdout.decode() if told.returncode == 0 and told.stdout else text


def find_ruff() -> str | None:
    """Where ruff is: in this environment, or on the path; None if nowhere."""
    # Until 3.12, a second thread that asks `sysconfig` at the same time is told that nothing is
    # known: proposals are made in threads.
    with _LOOKING:
        return _look()


@cache
def _look() -> str | None:
    try:
        found = Path(importlib.import_module("ruff").find_ruff_bin())
        if found.is_file():
            return str(found)
    except (ImportError, AttributeError, OSError):
        pass
    beside = Path(sysconfig.get_path("scripts"), "ruff")
    return str(beside) if beside.is_file() else shutil.which("ruff")
