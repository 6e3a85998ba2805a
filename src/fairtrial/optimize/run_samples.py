"""The timed samples of an optimization: a file in its run's workspace, and its reading."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fairtrial.arena as arena  # names are imported on first use: most studies need none
from fairtrial.core import StudyError

SAMPLES = "samples.csv"
"""The file in the run's workspace with all timed samples, as `--samples` writes it."""
LARGEST_FILE = 30_000_000
MOST_SAMPLES = 3_000
"""Samples of one candidate; of more, whole sessions are left out at the end."""


def find_samples(workspaces: Path, attempt: int) -> Path:
    """Return where the samples of a run attempt are, if they are anywhere.

    workspaces: the folder with the workspaces of all attempts at the run; one that was cut off and
        made again has several: ``attempt-1``, ``attempt-1.2``
    """
    newest = workspaces / f"attempt-{attempt}"
    number = 2
    while (again := workspaces / f"attempt-{attempt}.{number}").is_dir():
        newest, number = again, number + 1
    return newest / SAMPLES


def read_strips(path: Path) -> dict[str, dict[str, Any]]:
    """Return the samples of each candidate, in the order of time; empty if there is no file.

    Each has columns: `benchmark` and `session` (numbers), `arm` (0 for the base, 1 for the
    candidate), `seconds` per call, and whether they count.
    """
    try:
        if path.is_symlink() or path.stat().st_size > LARGEST_FILE:
            return {}
        rows = arena.TimingFiles(samples=path).read_samples()
    except (OSError, StudyError):
        return {}
    strips: dict[str, dict[str, Any]] = {}
    for row in rows:
        if not row.sample.calls:  # only request and reply were timed
            continue
        strip = strips.setdefault(
            row.candidate,
            {
                "benchmarks": [],
                "benchmark": [],
                "session": [],
                "arm": [],
                "seconds": [],
                "kept": [],
                "left_out": 0,
            },
        )
        if row.benchmark not in strip["benchmarks"]:
            strip["benchmarks"].append(row.benchmark)
        is_new = not strip["session"] or strip["session"][-1] != row.session
        if strip["left_out"] or (is_new and len(strip["session"]) >= MOST_SAMPLES):
            strip["left_out"] += 1
            continue
        strip["benchmark"].append(strip["benchmarks"].index(row.benchmark))
        strip["session"].append(row.session)
        strip["arm"].append(int(row.sample.arm == "candidate"))
        strip["seconds"].append(float(f"{row.sample.wall_s / row.sample.calls:.5g}"))
        strip["kept"].append(int(row.sample.is_kept))
    return strips
