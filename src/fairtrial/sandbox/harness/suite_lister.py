"""Lists the benchmarks of a suite, or runs one of them once.

Run by path in the project's Python, in the project's folder: ``suite_lister.py PATH[::NAME]``
writes JSON to the channel: ``{"units": [...], "left_out": [[what, why], ...]}`` (see
`suite_units`), with ``"missing": PATH`` if there is no such file. With
``--run`` it calls benchmarks, each once, until one succeeds, and exits with 1 if none does.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import types
from typing import Any

_package: Any = types.ModuleType("_fairtrial_harness")  # a unique name
_package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
sys.modules["_fairtrial_harness"] = _package
sys.path[:] = [folder for folder in sys.path if folder not in _package.__path__]

from _fairtrial_harness import suite_units  # type: ignore[import-not-found]  # noqa: E402

_PLUGIN = os.path.join(_package.__path__[0], "plugin")
_MOST_CHARS = 600


def list_units(target: str) -> dict[str, Any]:
    """Return the units of a target, and what is left out."""
    path, _, name = target.partition("::")
    units: list[Any] = []
    left_out: list[Any] = []
    if not os.path.exists(path):
        return {"units": [], "left_out": [], "missing": path}
    tests: list[str] = []
    for file, kinds in suite_units.find_files(path):
        if "pytest" in kinds and not (kinds & {"asv"} and not name.startswith("test")):
            tests.append(file)
        if kinds & {"asv", "inherited"} or (not kinds and os.path.isfile(path)):
            try:
                new, others = suite_units.list_asv(file)
            except BaseException:
                left_out.append((file, _last_line()))
                continue
            units += [unit for unit in new if _is_named(unit, name)]
            left_out += [] if name else others
    if tests:
        new, problem = _list_tests([f"{path}::{name}"] if name else tests)
        units += new
        if problem and (not new or not name):
            left_out.append((", ".join(tests[:3]), problem))
    return {"units": units, "left_out": left_out}


def _is_named(unit: dict[str, Any], name: str) -> bool:
    """Return whether a unit of asv is what a target names: a function, method or class, or one."""
    own = unit["name"]
    owners = (own, own.rpartition(".")[0])
    return not name or name in owners or unit["title"].partition("::")[2] == name


def _list_tests(targets: list[str]) -> tuple[list[dict[str, Any]], str]:
    """Return the units of tests, and why some could not be read."""
    try:
        import fairtrial_benchmark as plugin  # type: ignore[import-not-found]
    except ImportError as error:
        return [], f"pytest is needed to read it: {error}"
    plugin.state.listing = []
    try:
        suite_units.run_pytest(targets)
    except BaseException:
        return [], _last_line()
    units = [
        {"kind": "pytest", "file": path, "name": name, "title": f"{path}::{name}"}
        for path, name in plugin.state.listing
    ]
    return units, plugin.state.failure.strip().splitlines()[-1] if plugin.state.failure else ""


def _last_line() -> str:
    """Return the exception that is being handled, with where it was raised."""
    kind, error, trace = sys.exc_info()
    frames = traceback.extract_tb(trace)
    where = f" (line {frames[-1].lineno} of {os.path.basename(frames[-1].filename)})"
    return f"{kind.__name__ if kind else ''}: {error}"[:_MOST_CHARS] + (where if frames else "")


def run_one(target: str) -> bool:
    """Call the benchmarks of a target, each once, until one succeeds; return whether one did."""
    listed = list_units(target)
    tests = [
        f"{unit['file']}::{unit['name']}" for unit in listed["units"] if unit["kind"] == "pytest"
    ]
    for unit in listed["units"]:
        if unit["kind"] != "asv":
            continue
        try:
            subject = suite_units.open_asv(unit)
            subject.call()
            return True
        except BaseException:
            print(f"{unit['title']}: {_last_line()}", file=sys.stderr)
    if tests:
        import fairtrial_benchmark as plugin

        plugin.state.listing, plugin.state.stops_after_one = None, True
        suite_units.run_pytest([*tests, "--tb=line"])
        return bool(plugin.state.passed)
    for what, why in listed["left_out"]:
        print(f"{what}: {why}", file=sys.stderr)
    return False


def main() -> None:
    """List, or run."""
    sys.path.append(_PLUGIN)
    if sys.argv[1] == "--run":
        sys.exit(0 if run_one(sys.argv[2]) else 1)
    channel = int(os.environ.pop("FAIRTRIAL_CHANNEL"))
    os.set_inheritable(channel, False)
    report = json.dumps(list_units(sys.argv[1])).encode("ascii")
    while report:
        report = report[os.write(channel, report) :]


if __name__ == "__main__":
    main()
