"""Suites as people name them on the command line, and the problem that they make."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from fairtrial.arena.model.problem import Benchmark, Check, CodeProblem
from fairtrial.arena.timing.benchmark_suites import LISTER
from fairtrial.core import Mistake, StudyError

_SIGN = re.compile(
    r"^\s*(async\s+)?def\s+(time_|peakmem_|Time[A-Z_]|PeakMem[A-Z_])\w"
    r"|^\s*def\s+[a-z]\w*\([^)]*\bbenchmark\b|\bmark\.benchmark\b",
    re.MULTILINE,
)
"""What a file with benchmarks for pytest-benchmark or asv holds."""
_SKIPPED = {"__pycache__", "build", "dist", "env", "node_modules", "venv"}
_MOST_FILES, _MOST_BYTES = 2_000, 2**20
SEPARATOR = "::"
CHECK_S = 300.0


def is_suite(target: str) -> bool:
    """Return whether a target is a suite: a folder or file with benchmarks, or `FILE::NAME`."""
    path = Path(target.partition(SEPARATOR)[0])
    if path.is_file():
        return path.suffix == ".py" and _has_benchmarks(path)
    if not path.is_dir() or SEPARATOR in target:
        return False
    return any(map(_has_benchmarks, islice(_python_files(path), _MOST_FILES)))


def suite_problem(target: str, folder: Path | None = None) -> CodeProblem:
    """Return a problem that times a suite, and checks only that one of its benchmarks runs.

    target: see `is_suite`; relative to the folder
    folder: the project's folder, where commands start; by default the present one

    Raises `StudyError` if the target lies outside of the folder.
    """
    folder = (folder or Path.cwd()).resolve()
    given, separator, name = target.partition(SEPARATOR)
    path = os.path.relpath((folder / given).resolve(), folder)
    if path.startswith(".."):
        message = f"{given} lies outside of {folder}"
        raise StudyError(
            Mistake((), message, "start from a folder that both code and suite are in")
        )
    suite = f"{path}{separator}{name}"
    pattern = f"{path}/**" if (folder / path).is_dir() else path
    return CodeProblem(
        problem_id=suite,
        editable=("**",) if path == "." else ("**", f":!{pattern}"),
        check=(Check(command=("{python}", str(LISTER), "--run", suite), timeout_s=CHECK_S),),
        bench=(Benchmark(suite, suite=suite, trust="all"),),
        folder=folder,
        file="the command line",
    )


def _has_benchmarks(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return _SIGN.search(file.read(_MOST_BYTES)) is not None
    except OSError:
        return False


def _python_files(folder: Path) -> Iterator[Path]:
    for parent, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if name not in _SKIPPED and name[0] != ".")
        yield from (Path(parent, file) for file in sorted(files) if file.endswith(".py"))
