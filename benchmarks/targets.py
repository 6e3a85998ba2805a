"""From a function's name to a verdict, on functions of real packages: how many work, and how long.

    python benchmarks/targets.py            # fetches the packages' sources with pip
    python benchmarks/targets.py toolz      # only those of one package

Each function is optimized with the offline agent (`--agent codemod`) and at most two candidates; no
file is written by hand. Prints one line for each: the verdict or what stopped it, and the minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

SUBJECTS = (
    ("boltons", "boltons/iterutils.py::unique"),
    ("boltons", "boltons.setutils:IndexedSet.union"),
    ("inflection", "inflection:pluralize"),
    ("more-itertools", "more_itertools/more.py::chunked"),
    ("natsort", "natsort:natsorted"),
    ("networkx", "networkx/algorithms/core.py::core_number"),
    ("parse", "parse:parse"),
    ("python-slugify", "slugify.slugify:slugify"),
    ("sortedcontainers", "sortedcontainers/sortedlist.py::SortedList.add"),
    ("tabulate", "tabulate:tabulate"),
    ("textdistance", "textdistance/algorithms/edit_based.py::Levenshtein._cycled"),
    ("toolz", "toolz:groupby"),
    ("wcwidth", "wcwidth:wcswidth"),
    ("humanize", "humanize.number:intcomma"),
)
PATIENCE_S = 600


def fetch(package: str, folder: Path) -> Path:
    """Download a package's sources, unpack them, and make them a repository."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "fairtrial-targets")
    cache.mkdir(parents=True, exist_ok=True)
    name = package.replace("-", "_").lower()
    found = sorted(cache.glob(f"{name}-*.tar.gz"))
    if not found:
        words = ["download", "--quiet", "--no-deps", "--no-binary", package, "--dest", str(cache)]
        subprocess.run([sys.executable, "-m", "pip", *words, package], check=True)
        found = sorted(cache.glob(f"{name}-*.tar.gz"))
    with tarfile.open(found[-1]) as archive:
        archive.extractall(folder, filter="data")
    (top,) = folder.iterdir()
    subprocess.run(["git", "init", "--quiet", str(top)], check=True)
    return top


def judge(top: Path, target: str) -> tuple[str, float]:
    """Optimize a function; return the last lines of what was said, and the seconds it took."""
    command = [sys.executable, "-m", "fairtrial", "optimize", target]
    began = time.monotonic()
    done = subprocess.run(
        [*command, "--agent", "codemod", "--max-candidates", "2"],
        cwd=top,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    lines = [*done.stderr.splitlines(), *done.stdout.splitlines()]
    return f"exit {done.returncode}: {describe(lines)}", time.monotonic() - began


def describe(lines: list[str]) -> str:
    """Return what was found: the error, or the verdicts on candidates and the best one."""
    errors = [line for line in lines if line.startswith("error:")]
    if errors:
        return errors[0][:300]
    words = ("recorded:", "The best is", "None is worth", " faster,", " rejected:", " not faster")
    return " | ".join(line.strip()[:110] for line in lines if any(word in line for word in words))


def run(chosen: list[str]) -> Iterator[str]:
    """Yield a line for each function."""
    for package, target in SUBJECTS:
        if chosen and package not in chosen:
            continue
        with TemporaryDirectory() as folder:
            try:
                said, seconds = judge(fetch(package, Path(folder)), target)
            except (subprocess.SubprocessError, OSError, tarfile.TarError) as error:
                said, seconds = f"{type(error).__name__}: {str(error)[-200:]}", 0.0
        yield f"{target} ({package}), {seconds / 60:.1f} min, load {os.getloadavg()[0]:.1f}: {said}"


def main() -> None:
    """Print a line for each function as soon as it is known."""
    for line in run(sys.argv[1:]):
        print(line, flush=True)


if __name__ == "__main__":
    main()
