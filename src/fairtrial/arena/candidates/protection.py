"""What candidates may not change even where `editable` matches: what judges them, and what is run
without being asked for.

Tests and their data, the files that tell tools how to run, files that Python itself executes or
prefers over sources, and what people's tools run by themselves once a patch is taken over. A file
that a problem wants changed nevertheless is named in `unprotect`.
"""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase

HOLDS_TESTS = "it holds tests"
_SETTINGS = "it configures how tests and tools run"
_STARTED = "Python runs it, or prefers it to sources, without being asked to"
_AUTOMATIC = "other tools run it by themselves"

FOLDERS = {
    **dict.fromkeys(("test", "tests", "testing"), HOLDS_TESTS),
    **dict.fromkeys(("__pycache__", "*.egg-info", "*.dist-info"), _STARTED),
    **dict.fromkeys(
        (".github", ".gitlab", ".circleci", ".husky", ".vscode", ".idea", ".devcontainer"),
        _AUTOMATIC,
    ),
}
"""Folders whose files are protected, in any case of letters, and why."""
FILES = {
    **dict.fromkeys(("test_*.py", "*_test.py", "tests.py", "conftest.py"), HOLDS_TESTS),
    **dict.fromkeys(
        (
            *("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "tox.toml", "noxfile.py"),
            *("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", ".coveragerc"),
            *("makefile", "gnumakefile", "justfile", ".justfile"),
        ),
        _SETTINGS,
    ),
    **dict.fromkeys(
        ("sitecustomize.py", "usercustomize.py", "*.pth", "*._pth", "*.egg-link", "pyvenv.cfg"),
        _STARTED,
    ),
    **dict.fromkeys(("*.pyc", "*.pyo"), _STARTED),
    **dict.fromkeys(
        (".gitattributes", ".gitmodules", ".gitlab-ci.yml", ".pre-commit-config.yaml", ".envrc"),
        _AUTOMATIC,
    ),
}
"""Names of files that are protected in any folder, in any case of letters, and why."""

TOOLS = frozenset(
    (
        *("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "exceptiongroup", "tomli"),
        *("pygments", "colorama", "hypothesis", "sortedcontainers", "attr", "attrs", "xdist"),
        *("execnet", "coverage", "pytest_cov", "pytest_asyncio", "anyio", "mock", "nose", "numpy"),
        *("scipy", "pandas", "setuptools", "pkg_resources", "_distutils_hack", "Cython"),
        *("typing_extensions", "sitecustomize", "usercustomize"),
    )
)
"""Modules that test runs import and that aren't in the standard library."""
MODULES = frozenset(sys.stdlib_module_names) | TOOLS
OUR_PREFIXES = ("fairtrial", "_fairtrial")


def protection_of(path: str) -> str | None:
    """Why a path is protected; None if it is not."""
    *folders, name = path.lower().split("/")
    for folder in folders:
        for pattern, why in FOLDERS.items():
            if fnmatchcase(folder, pattern):
                return why
    return next((why for pattern, why in FILES.items() if fnmatchcase(name, pattern)), None)
