"""Prints which folders the Python that runs it needs; run as a script with ``-I``.

It runs on older Pythons than the rest of the harness, so that they can be told from broken ones.
"""

import json
import sys
import sysconfig
from pathlib import Path
from typing import Iterator


def find_libraries() -> "list[str]":
    """Return the folders of the standard library, of packages, and of the interpreter itself."""
    paths = sysconfig.get_paths()
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = [paths.get(name) for name in names]
    folders.append(sysconfig.get_config_var("DESTSHARED"))
    folders.append(str(Path(getattr(sys, "_base_executable", None) or sys.executable).parent))
    try:
        with Path("/proc/self/maps").open(encoding="utf-8", errors="surrogateescape") as maps:
            for line in maps:
                path = Path("/" + line.rstrip("\n").partition("/")[2])
                if path.name.startswith("libpython"):
                    folders.append(str(path.parent))
    except OSError:
        if sysconfig.get_config_var("Py_ENABLE_SHARED"):
            folders.append(sysconfig.get_config_var("LIBDIR"))
    return [folder for folder in dict.fromkeys(folders) if folder]


def find_editable_projects() -> "Iterator[str]":
    """Yield the folders of projects in editable installs; not all of them are on sys.path."""
    try:
        from importlib.metadata import distributions
        from urllib.parse import unquote, urlsplit
    except ImportError:
        return
    for distribution in distributions():
        try:
            origin = json.loads(distribution.read_text("direct_url.json") or "{}")
            if origin.get("dir_info", {}).get("editable"):
                yield unquote(urlsplit(origin["url"]).path)
        except Exception:  # skip a damaged distribution
            continue


def has_pytest() -> bool:
    """Return whether pytest can be imported."""
    try:
        import importlib.util

        return importlib.util.find_spec("pytest") is not None
    except Exception:  # import hooks may raise anything
        return False


def main() -> None:
    """Print one line of JSON."""
    prefixes = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix]
    report = {
        "fairtrial": 1,
        "version": list(sys.version_info[:3]),
        "executable": sys.executable,
        "prefixes": prefixes,
        "libraries": find_libraries(),
        "paths": list(sys.path) + list(find_editable_projects()),
        "has_pytest": has_pytest(),
    }
    sys.stdout.write("\n" + json.dumps(report) + "\n")


if __name__ == "__main__":
    main()
