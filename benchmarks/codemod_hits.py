"""Count where the transformations of the offline proposer apply in code not written for them.

    python benchmarks/codemod_hits.py [--download FOLDER] [--paths FOLDER ...]
                                      [--json FILE] [--before FILE] [--only NAME ...]

Reads the standard library, this environment's site-packages and, with ``--download``, a fixed list
of pure-Python packages from the package registry. Tests are left out. A hit is a function in which
a transformation finds something to change; nothing is written or executed. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from multiprocessing import Pool
from pathlib import Path

from fairtrial_codemod import catalog, ruff
from fairtrial_codemod.analysis.source_file import read_source

PACKAGES = (
    *("algorithms==1.0.1", "astroid==4.3.4", "babel==2.18.0", "beautifulsoup4==4.15.0"),
    *("black==26.10.1", "boltons==26.2.0", "bottle==0.13.4", "cachetools==8.0.0", "click==8.5.1"),
    *("docutils==0.23", "flask==3.1.3", "fuzzywuzzy==0.18.0", "html5lib==1.1", "inflect==7.6.0"),
    *("inflection==0.5.1", "jedi==0.20.1", "jinja2==3.1.6", "jsonschema==4.26.0", "lark==1.3.1"),
    *("markdown==3.11.3", "mistune==3.4.0", "more-itertools==11.2.1", "mpmath==1.4.1"),
    *("networkx==3.6.1", "nltk==3.10.4", "num2words==0.5.14", "openpyxl==3.1.5", "parso==0.8.7"),
    *("ply==3.11", "prettytable==3.18.0", "pycodestyle==2.15.0", "pyflakes==4.1.0"),
    *("pygments==2.21.0", "pylint==4.1.3", "pyparsing==3.3.3", "python-dateutil==4.0.0"),
    *("python-docx==1.2.0", "pyyaml==6.0.3", "requests==2.34.2", "rich==15.0.0", "roman==5.2"),
    *("rouge==1.0.1", "simpy==4.1.2", "six==1.17.0", "sphinx==9.0.4", "sqlparse==0.6.1"),
    *("sympy==1.14.0", "tabulate==0.10.0", "textdistance==4.6.3", "thefuzz==0.22.1"),
    *("titlecase==2.4.1", "toolz==1.2.0", "toposort==1.10", "wcwidth==0.9.4", "werkzeug==3.1.9"),
)
"""Downloaded by name and version, so that the table can be made again."""
FILE_TIMEOUT_S = 60
"""A file that takes longer is counted as skipped."""
_SKIPPED_FOLDERS = {
    "test",
    "tests",
    "testing",
    "idlelib",
    "lib2to3",
    "__pycache__",
    "site-packages",
}
_SKIPPED_FOLDERS |= {"numpy.libs", "fairtrial", "_vendor"}
_LARGEST_BYTES = 200_000


class FileTimeout(Exception):  # noqa: N818 - it ends one file, it isn't an error
    """One file took longer than `FILE_TIMEOUT_S`."""


def download(folder: Path) -> None:
    """Install `PACKAGES` without their dependencies into a folder of their own."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install"]
    options = ["--no-deps", "--no-compile", "--target", str(folder)]
    subprocess.run([*pip, *options, *PACKAGES], check=True)


def list_files(roots: list[Path]) -> Iterator[Path]:
    """Yield the Python files below some folders, without tests and without very large files."""
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            parts = path.relative_to(root).parts
            is_test = path.name.startswith("test_") or path.name == "conftest.py"
            if is_test or _SKIPPED_FOLDERS.intersection(parts):
                continue
            if path.stat().st_size <= _LARGEST_BYTES:
                yield path


def count_file(path: Path, only: frozenset[str]) -> tuple[str, dict[str, int], int]:
    """Return the file's path, the functions hit by each transformation, and its functions."""
    try:
        text = path.read_text("utf-8")
    except (UnicodeDecodeError, OSError):
        return str(path), {}, -1
    signal.signal(signal.SIGALRM, _raise_timeout)
    signal.alarm(FILE_TIMEOUT_S)
    try:
        source = read_source(text)
        if source is None:
            return str(path), {}, -1
        hits = {}
        for transformation in catalog.CATALOG:
            if transformation.name not in only:
                continue
            if transformation.find is None:
                scopes = set(ruff.fix_some(text).scopes)
            else:
                scopes = {change.scope for change in transformation.find(source)}
            if scopes:
                hits[transformation.name] = len(scopes)
        return str(path), hits, len(source.functions)
    except (FileTimeout, RecursionError):
        return str(path), {}, -1
    finally:
        signal.alarm(0)


def _raise_timeout(*_: object) -> None:
    raise FileTimeout


def count_all(files: list[Path], processes: int, only: frozenset[str]) -> dict[str, object]:
    """Count the hits of some transformations in all files and return what the tables need."""
    hits: Counter[str] = Counter(dict.fromkeys(sorted(only), 0))
    places: dict[str, list[str]] = {}
    functions = skipped = 0
    began_s = time.monotonic()
    with Pool(processes) as pool:
        count = partial(count_file, only=only)
        for path, counted, number in pool.imap_unordered(count, files, chunksize=8):
            skipped += number < 0
            functions += max(number, 0)
            hits.update(counted)
            for name in counted:
                places.setdefault(name, []).append(path)
    return {
        "files": len(files) - skipped,
        "skipped": skipped,
        "functions": functions,
        "seconds": round(time.monotonic() - began_s),
        "hits": dict(hits),
        "places": {name: sorted(paths) for name, paths in places.items()},
    }


def write_table(result: dict[str, object], before: dict[str, object] | None) -> Iterator[str]:
    """Yield the lines of the Markdown table, with the figures of an earlier run beside it."""
    hits = _get_hits(result)
    old = _get_hits(before) if before else {}
    yield f"{result['files']} files, {result['functions']} functions, {result['skipped']} skipped"
    yield ""
    yield "| transformation | functions before | functions after |\n|---|---|---|"
    for name in sorted({**old, **hits}, key=lambda name: (-hits.get(name, 0), -old.get(name, 0))):
        yield f"| `{name}` | {old.get(name, '-')} | {hits.get(name, '-')} |"
    yield f"| all | {sum(old.values())} | {sum(hits.values())} |"


def _get_hits(result: dict[str, object]) -> dict[str, int]:
    hits = result["hits"]
    assert isinstance(hits, dict)
    return hits


def main() -> int:
    """Parse the arguments, count or compare, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--download", type=Path, help="folder for the downloaded packages")
    parser.add_argument("--paths", type=Path, nargs="*", help="read these folders only")
    parser.add_argument("--json", type=Path, help="write the counts and places there")
    parser.add_argument("--before", type=Path, help="counts of an earlier run to print beside")
    parser.add_argument("--only", nargs="*", help="count these transformations only")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    if options.download and not options.download.exists():
        download(options.download)
    roots = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib")]
    if options.download:
        roots.append(options.download)
    files = list(list_files(options.paths or roots))
    names = options.only or catalog.BY_NAME
    result = count_all(files, options.processes, frozenset(names))
    if options.json:
        options.json.write_text(json.dumps(result, indent=1), "utf-8")
    before = json.loads(options.before.read_text("utf-8")) if options.before else None
    print("\n".join(write_table(result, before)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
