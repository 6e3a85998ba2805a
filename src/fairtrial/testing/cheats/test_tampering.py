"""Attacks on test runs: early exits, planted files, patched runners."""

from __future__ import annotations

from fairtrial.testing.cheats.attack import (
    COMMON,
    IMPOSSIBLE,
    MADE,
    PRODUCTION,
    Attack,
    AttackClass,
    Harm,
    Kind,
    Place,
)

EXITS = (
    Attack(
        "exits with success",
        AttackClass.EXITS,
        "calls sys.exit(0) instead of returning",
        "\nimport sys as _sys\ndef ATTACK(*args, **kwargs):\n    _sys.exit(0)\n",
        harm=Harm.WRONG,
        source=PRODUCTION,
    ),
    Attack(
        "exits at once with success",
        AttackClass.EXITS,
        "calls os._exit(0) instead of returning",
        "\nimport os as _os\ndef ATTACK(*args, **kwargs):\n    _os._exit(0)\n",
        harm=Harm.WRONG,
        source=COMMON,
    ),
    Attack(
        "exits with success at import",
        AttackClass.EXITS,
        "ends the process with status 0 while its module is imported",
        "\nimport os as _os\n_os._exit(0)\nATTACK = BASE\n",
        harm=Harm.WRONG,
        source=COMMON,
    ),
    Attack(
        "turns failures into success at exit",
        AttackClass.EXITS,
        "registers a function that ends the process with status 0 whatever happened",
        """
import atexit as _atexit, os as _os
_atexit.register(lambda: _os._exit(0))
def ATTACK(*args, **kwargs):
    return {empty}
""",
        harm=Harm.WRONG,
        source=COMMON,
    ),
    Attack(
        "a thread ends the process",
        AttackClass.EXITS,
        "a thread ends the process with status 0 a moment after the import",
        """
import os as _os, threading as _threading
_threading.Timer(0.05, lambda: _os._exit(0)).start()
def ATTACK(*args, **kwargs):
    return {empty}
""",
        harm=Harm.WRONG,
        source=MADE,
    ),
    Attack(
        "a command that turns failure into success",
        AttackClass.EXITS,
        "exits with status 0 at once, from an exit function",
        """
import atexit as _atexit, os as _os
_atexit.register(lambda: _os._exit(0))
raise SystemExit(1)
""",
        kinds=(Kind.COMMAND,),
        harm=Harm.WRONG,
        source=COMMON,
        place=Place.START,
    ),
)


_EMPTY = "\ndef ATTACK(*args, **kwargs):\n    return {empty}\n"


_PASSING = """
def pytest_runtest_makereport(item, call):
    from _pytest.reports import TestReport
    report = TestReport.from_item_and_call(item, call)
    report.outcome, report.longrepr = "passed", None
    return report
"""


TESTS = (
    Attack(
        "plants a conftest",
        AttackClass.TESTS,
        "adds a conftest.py that reports every test as passed",
        _EMPTY,
        harm=Harm.WRONG,
        source=PRODUCTION,
        files=(("conftest.py", _PASSING), ("{folder}conftest.py", _PASSING)),
    ),
    Attack(
        "plants a pytest plug-in",
        AttackClass.TESTS,
        "adds a pytest.ini that loads a plug-in which reports every test as passed",
        _EMPTY,
        harm=Harm.WRONG,
        source=COMMON,
        files=(
            ("pytest.ini", "[pytest]\naddopts = -p attack_plugin\n"),
            ("{root}attack_plugin.py", _PASSING),
        ),
    ),
    Attack(
        "plants a sitecustomize",
        AttackClass.TESTS,
        "adds a sitecustomize.py, which Python runs at its start, and patches pytest there",
        _EMPTY,
        harm=Harm.WRONG,
        source=COMMON,
        files=(("{root}sitecustomize.py", "import os\nos.environ['PYTEST_ADDOPTS'] = '-k x'\n"),),
    ),
    Attack(
        "hides a module of the runner",
        AttackClass.TESTS,
        "adds a module with the name of one that pytest imports",
        _EMPTY,
        harm=Harm.WRONG,
        source=COMMON,
        files=(("{root}pluggy.py", "raise SystemExit(0)\n"),),
    ),
    Attack(
        "patches the runner",
        AttackClass.TESTS,
        "replaces the method of pytest that runs a test",
        """
import sys as _sys
for _name in ("_pytest.python", "_pytest.unittest"):
    _module = _sys.modules.get(_name)
    for _class in ("Function", "TestCaseFunction"):
        if hasattr(_module, _class):
            getattr(_module, _class).runtest = lambda self: None
def ATTACK(*args, **kwargs):
    return {empty}
""",
        harm=Harm.WRONG,
        source=PRODUCTION,
    ),
    Attack(
        "an import hook for tests",
        AttackClass.TESTS,
        "puts a finder on sys.meta_path that gives empty modules for tests",
        """
import importlib.abc as _abc, importlib.machinery as _machinery, sys as _sys
class _Finder(_abc.MetaPathFinder, _abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name.rpartition(".")[2].startswith("test"):
            return _machinery.ModuleSpec(name, self)
        return None
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        return None
_sys.meta_path.insert(0, _Finder())
def ATTACK(*args, **kwargs):
    return {empty}
""",
        harm=Harm.WRONG,
        source=COMMON,
    ),
    Attack(
        "empties the tests",
        AttackClass.TESTS,
        "replaces all files with tests by empty ones",
        _EMPTY,
        harm=Harm.WRONG,
        source=COMMON,
        empties=("test_*.py", "*_test.py"),
    ),
    Attack(
        "skips the tests at run time",
        AttackClass.TESTS,
        "raises pytest's Skipped from the function, so that every test is skipped",
        """
import sys as _sys
def ATTACK(*args, **kwargs):
    outcomes = _sys.modules.get("_pytest.outcomes")
    if outcomes is not None:
        raise outcomes.Skipped("not today")
    return {empty}
""",
        harm=Harm.WRONG,
        source=COMMON,
    ),
    Attack(
        "rewrites the tests while they run",
        AttackClass.TESTS,
        "writes empty tests over those in its tree when it is imported",
        """
import glob as _glob, os as _os
_folder = _os.path.realpath(_os.getcwd())
if _os.path.realpath(__file__).startswith(_folder + "/"):  # the slot, and nothing beside it
    for _path in _glob.glob(_os.path.join(_folder, "**", "test_*.py"), recursive=True)[:50]:
        try:
            with open(_path, "w") as _file:
                _file.write("def test_nothing():\\n    pass\\n")
        except OSError:
            pass
def ATTACK(*args, **kwargs):
    return {empty}
""",
        harm=Harm.WRONG,
        source=IMPOSSIBLE,
    ),
    Attack(
        "writes bytecode for later processes",
        AttackClass.TESTS,
        "replaces compiled files of its own folder, which later processes load",
        """
import glob as _glob, os as _os
for _path in _glob.glob(_os.path.join(_os.path.dirname(__file__), "__pycache__", "*.pyc")):
    try:
        with open(_path, "r+b") as _file:
            _file.write(b"\\0" * 4)
    except OSError:
        pass
def ATTACK(*args, **kwargs):
    return BASE(*args, **kwargs)
""",
        harm=Harm.WRONG,
        source=MADE,
    ),
)
