"""Says what the Python that runs it needs to be seen; run with ``-I``, as a script.

Older Pythons than the others here need can run it, so that they can be told apart from broken ones.
"""

import json
import sys
import sysconfig
from pathlib import Path
from typing import Iterator


def find_libraries() -> "list[str]":
    """Folders of the standard library, of packages, and of the interpreter's shared library."""
    paths = sysconfig.get_paths()
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    found = [paths.get(name) for name in names]
    found.append(sysconfig.get_config_var("DESTSHARED"))
    found.append(str(Path(getattr(sys, "_base_executable", None) or sys.executable).parent))
    try:
        with Path("/proc/self/maps").open(encoding="utf-8", errors="surrogateescape") as maps:
            for line in maps:
                path = Path("/" + line.rstrip("\n").partition("/")[2])
                if path.name.startswith("libpython"):
                    found.append(str(path.parent))
    except OSError:
        if sysconfig.get_config_var("Py_ENABLE_SHARED"):
            found.append(sysconfig.get_config_var("LIBDIR"))
    return [path for path in dict.fromkeys(found) if path]


def find_editable() -> "Iterator[str]":
    """Folders of projects that are installed in place; not all of them are on the path."""
    try:
        from importlib.metadata import distributions
        from urllib.parse import unquote, urlsplit
    except ImportError:
        return
    for distribution in distributions():
        try:
            told = json.loads(distribution.read_text("direct_url.json") or "{}")
            if told.get("dir_info", {}).get("editable"):
                yield unquote(urlsplit(told["url"]).path)
        except Exception:  # one damaged record says nothing of the others
            continue


def has_pytest() -> bool:
    """Whether there is a pytest to import."""
    try:
        import importlib.util

        return importlib.util.find_spec("pytest") is not None
    except Exception:  # whatever somebody's import hooks raise
        return False


def main() -> None:
    """Print it, as one line."""
    prefixes = [sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix]
    told = {
        "fairtrial": 1,
        "version": list(sys.version_info[:3]),
        "executable": sys.executable,
        "prefixes": prefixes,
        "libraries": find_libraries(),
        "paths": list(sys.path) + list(find_editable()),
        "has_pytest": has_pytest(),
    }
    sys.stdout.write("\n" + json.dumps(told) + "\n")


if __name__ == "__main__":
    main()
