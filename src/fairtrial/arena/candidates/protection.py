"""Protected files, which candidates may not change even if `editable` matches them.

These are tests and their data, configuration of tools, files that Python executes or prefers to
sources by itself, and files that other tools execute automatically once a patch is applied. A
problem can allow changes to some of them in `unprotect`.
"""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase

HOLDS_TESTS = "it holds tests"
_CONFIGURATION = "it configures how tests and tools run"
_STARTUP = "Python runs it, or prefers it to sources, automatically"
_AUTOMATIC = "other tools run it automatically"

FOLDERS = {
    **dict.fromkeys(("test", "tests", "testing"), HOLDS_TESTS),
    **dict.fromkeys(("__pycache__", "*.egg-info", "*.dist-info"), _STARTUP),
    **dict.fromkeys(
        (".github", ".gitlab", ".circleci", ".husky", ".vscode", ".idea", ".devcontainer"),
        _AUTOMATIC,
    ),
}
"""Folders whose files are protected, ignoring case, and why."""
FILES = {
    **dict.fromkeys(("test_*.py", "*_test.py", "tests.py", "conftest.py"), HOLDS_TESTS),
    **dict.fromkeys(
        (
            *("pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "tox.toml", "noxfile.py"),
            *("pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", ".coveragerc"),
            *("makefile", "gnumakefile", "justfile", ".justfile"),
        ),
        _CONFIGURATION,
    ),
    **dict.fromkeys(
        ("sitecustomize.py", "usercustomize.py", "*.pth", "*._pth", "*.egg-link", "pyvenv.cfg"),
        _STARTUP,
    ),
    **dict.fromkeys(("*.pyc", "*.pyo"), _STARTUP),
    **dict.fromkeys(
        (".gitattributes", ".gitmodules", ".gitlab-ci.yml", ".pre-commit-config.yaml", ".envrc"),
        _AUTOMATIC,
    ),
}
"""Names of files that are protected in any folder, ignoring case, and why."""

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
OWN_PREFIXES = ("fairtrial", "_fairtrial")


def get_protection(path: str) -> str | None:
    """Return the reason why a path is protected; None if it is not."""
    *folders, name = path.lower().split("/")
    for folder in folders:
        for pattern, reason in FOLDERS.items():
            if fnmatchcase(folder, pattern):
                return reason
    return next((reason for pattern, reason in FILES.items() if fnmatchcase(name, pattern)), None)
