"""pyperf and pytest-benchmark, used as their documentation says, on two folders.

Part of `timing.py`; what is compared, and how, is told in `timing_peers.py`.
"""

from __future__ import annotations

import json
import math
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from fairtrial.arena.self_test import WORKLOADS as SOURCES
from timing_kit import BASE_PIECES, INPUTS, tell_progress, write_pieces

PACKAGES = ("pyperf", "pytest", "pytest-benchmark")
_START = """import random
import sys
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:0] = [str(here / "src"), str(here)]
import {inputs}
from workloads.pieces import repeat_{workload}

args, _ = {inputs}.{workload}(random.Random({seed}))
"""
_PYPERF = "import pyperf\npyperf.Runner().bench_func('it', repeat_{workload}, *args)\n"
_PYTEST = "def test_it(benchmark):\n    benchmark(repeat_{workload}, *args)\n"
_QUICK_PYPERF = ("-p", "3", "-n", "2", "-w", "1", "--min-time", "0.01")
_QUICK_PYTEST = ("--benchmark-max-time=0.05",)


def make_venv(folder: Path) -> str:
    """A Python that has the peers, from the package registry."""
    tell_progress(f"installing {', '.join(PACKAGES)}")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = str(folder / "bin" / "python")
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *PACKAGES], check=True)
    return python


class Peers:
    """Both versions of a pair in folders of their own, and what the peers say of them."""

    def __init__(
        self, python: str, folder: Path, workload: str, pieces: int, *, quick: bool
    ) -> None:
        self.python, self.quick = python, quick
        self.trees = []
        seed = random.randrange(2**32)
        for name, count in (("base", BASE_PIECES), ("candidate", pieces)):
            tree = folder / name
            shutil.rmtree(tree, ignore_errors=True)
            shutil.copytree(SOURCES, tree, ignore=shutil.ignore_patterns("__pycache__"))
            write_pieces(tree, count)
            start = _START.format(inputs=INPUTS.removesuffix(".py"), workload=workload, seed=seed)
            (tree / "run_pyperf.py").write_text(start + _PYPERF.format(workload=workload))
            (tree / "test_it.py").write_text(start + "\n\n" + _PYTEST.format(workload=workload))
            self.trees.append(tree)

    def ask_pyperf(self) -> dict[str, Any]:
        began = time.monotonic()
        files = [str(tree / "pyperf.json") for tree in self.trees]
        for tree, file in zip(self.trees, files, strict=True):
            quick = _QUICK_PYPERF if self.quick else ()
            self._run(tree, "run_pyperf.py", "--quiet", *quick, "-o", file)
        said = self._run(self.trees[0], "-m", "pyperf", "compare_to", *files)
        seconds = time.monotonic() - began
        base, candidate = (_read_values(Path(file)) for file in files)
        log, half_values = log_ratio(
            list(chain.from_iterable(base)), list(chain.from_iterable(candidate))
        )
        means = [[statistics.fmean(each) for each in arm] for arm in (base, candidate)]
        return {
            "claim": _read_claim(said),
            "seconds": seconds,
            "log": log,
            "half_values": half_values,
            "half_processes": log_ratio(*means)[1],
        }

    def ask_pytest(self) -> dict[str, Any]:
        began = time.monotonic()
        medians = []
        for tree in self.trees:
            quick = _QUICK_PYTEST if self.quick else ()
            words = ("-m", "pytest", "-q", "test_it.py", "--benchmark-json=pytest.json", *quick)
            self._run(tree, *words)
            found = json.loads((tree / "pytest.json").read_text())
            medians.append(found["benchmarks"][0]["stats"]["median"])
        return {
            "seconds": time.monotonic() - began,
            "log": math.log(medians[1] / medians[0]),
        }

    def _run(self, tree: Path, *words: str) -> str:
        done = subprocess.run(
            [self.python, *words], cwd=tree, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout


def _read_values(file: Path) -> list[list[float]]:
    """pyperf's values, process by process; the process that calibrates has none."""
    runs = json.loads(file.read_text())["benchmarks"][0]["runs"]
    return [run["values"] for run in runs if run.get("values")]


def _read_claim(said: str) -> str:
    if "not significant" in said.lower():
        return "inconclusive"
    for claim in ("faster", "slower"):
        if claim in said:
            return claim
    if "no change" in said:  # significant, but the same when it is rounded
        return "inconclusive"
    raise RuntimeError(f"pyperf compare_to says something new: {said}")


def log_ratio(base: Sequence[float], candidate: Sequence[float]) -> tuple[float, float]:
    """log(candidate/base) of the means, and half the width of its 95 % interval (Welch, delta)."""
    from scipy import special

    means = [statistics.fmean(arm) for arm in (base, candidate)]
    arms = list(zip((base, candidate), means, strict=True))
    parts = [statistics.variance(arm) / len(arm) / mean**2 for arm, mean in arms]
    squares = sum(p * p / (len(arm) - 1) for p, (arm, _) in zip(parts, arms, strict=True))
    freedom = sum(parts) ** 2 / squares
    half = float(special.stdtrit(freedom, 0.975)) * math.sqrt(sum(parts))
    return math.log(means[1] / means[0]), half
