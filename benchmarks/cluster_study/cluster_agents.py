"""What the runs of `cluster.py` do; in a module of their own, so that workers can import it."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import Any

ROUNDS = 80_000
"""Rounds of a key derivation: some 20 ms of CPU, the length of one CPU-bound run."""
NOTES = "FAIRTRIAL_BENCH_NOTES"
"""The environment variable with the folder where runs leave the pids of their processes."""


def noop(task: Any) -> dict[str, Any]:
    return {"text": "x" * 600, "value": 1.0}


def spin_bare() -> int:
    return hashlib.pbkdf2_hmac("sha256", b"password", b"salt", ROUNDS)[0]


def spin(task: Any) -> dict[str, Any]:
    return {"value": spin_bare()}


def draw(task: Any) -> dict[str, Any]:
    """A run of some 20 ms that leaves the pids of its worker process and of its actor."""
    folder = Path(os.environ[NOTES])
    (folder / f"{os.getpid()} {os.getppid()}").touch()
    time.sleep(0.02)
    return {"value": task.rng.random()}


def score(output: Any) -> float:
    return float(output["value"])
