"""Benchmarks that were written for pytest-benchmark or asv, and how they are called.

A *unit* is one benchmark with one combination of parameters: a dictionary with kind (`pytest` or
`asv`), file, name (a test's id after the file, or ``Class.method``), combination (an index) and
title. Paths are relative to the working folder.

pytest-benchmark's tests run under pytest with a `benchmark` fixture of ours (`plugin/
fairtrial_benchmark.py`). asv's functions and classes are imported and called here. Neither tool is
needed.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import itertools
import os
import re
import sys
import types
from typing import Any, Callable, Iterator

TIMED = re.compile(r"Time[A-Z_].+|time_.+")
PEAK = re.compile(r"PeakMem[A-Z_].+|peakmem_.+")
OTHER = re.compile(r"Track[A-Z_].+|track_.+|Mem[A-Z_].+|mem_.+|TimeRaw[A-Z_].+|timeraw_.+")
"""Names of asv's benchmarks: those that are read, and others, which are left out."""
_NOT_CODE = {"__pycache__", "build", "dist", "env", "html", "node_modules", "results", "venv"}
_LONGEST_TITLE = 160


class UnitError(Exception):
    """A unit can't be called."""


class SkippedError(UnitError):
    """Its setup says that these parameters are to be skipped."""


class TimedCall:
    """What is timed.

    call: called without arguments unless `refresh` returns some
    refresh: called before each batch of calls, untimed; may return their (args, kwargs)
    most_calls: how many calls a batch may have, before it must be refreshed
    """

    def __init__(
        self,
        call: Callable[..., Any],
        refresh: Callable[[], Any] | None = None,
        most_calls: int | None = None,
    ) -> None:
        self.call = call
        self.refresh = refresh
        self.most_calls = most_calls


def find_kinds(source: str) -> set[str]:
    """Return the kinds of benchmarks that a file seems to define."""
    kinds: set[str] = set()
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return kinds
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == "benchmark":
            if isinstance(node.value, ast.Attribute) and node.value.attr == "mark":
                kinds.add("pytest")
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            named = [argument.arg for argument in [*node.args.args, *node.args.kwonlyargs]]
            if "benchmark" in named and not node.name.startswith("_"):
                kinds.add("pytest")
            elif TIMED.fullmatch(node.name) or PEAK.fullmatch(node.name):
                kinds.add("asv")
    return kinds


def find_files(path: str) -> Iterator[tuple[str, set[str]]]:
    """Yield the Python files at a path with the kinds of benchmarks in each."""
    if os.path.isfile(path):
        yield path, _kinds_of(path)
        return
    for folder, names, files in os.walk(path):
        names[:] = sorted(name for name in names if name not in _NOT_CODE and name[0] != ".")
        for file in sorted(files):
            if file.endswith(".py"):
                full = os.path.normpath(os.path.join(folder, file))
                kinds = _kinds_of(full)
                if not kinds and is_asv_file(full) and not file.startswith("_"):
                    kinds = {"inherited"}
                if kinds:
                    yield full, kinds


def _kinds_of(path: str) -> set[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return find_kinds(file.read())
    except OSError:
        return set()


def is_asv_file(path: str) -> bool:
    """Return whether an asv.conf.json names the folder that a file is in."""
    folder = os.path.abspath(os.path.dirname(path))
    parent = folder
    while True:
        configuration = os.path.join(parent, "asv.conf.json")
        if os.path.isfile(configuration):
            with open(configuration, encoding="utf-8", errors="replace") as file:
                match = re.search(r'^\s*"benchmark_dir"\s*:\s*"([^"]*)"', file.read(), re.M)
            named = os.path.join(parent, match.group(1) if match else "benchmarks")
            return (folder + os.sep).startswith(os.path.normpath(named) + os.sep)
        above = os.path.dirname(parent)
        if above == parent:
            return False
        parent = above


def import_file(path: str) -> types.ModuleType:
    """Import a file of asv's benchmarks as asv does: as a module of the package that it is in."""
    path = os.path.abspath(path)
    parts = [os.path.splitext(os.path.basename(path))[0]]
    folder = os.path.dirname(path)
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        parts.insert(0, os.path.basename(folder))
        folder = os.path.dirname(folder)
    if parts[-1] == "__init__":
        parts.pop()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(".".join(parts))


def list_asv(path: str) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    """Return the units of a file, and what is left out, with the reason."""
    module = import_file(path)
    units: list[dict[str, Any]] = []
    left_out: list[tuple[str, str]] = []
    for name, function in _functions(module):
        label = f"{path}::{name}"
        short = name.rpartition(".")[2]
        if not (TIMED.fullmatch(short) or PEAK.fullmatch(short)):
            left_out.append((label, "it measures neither time nor peak memory"))
            continue
        try:
            combinations = list(itertools.product(*_parameters(module, name, function)))
        except Exception as error:
            left_out.append((label, f"its params can't be read: {error}"))
            continue
        for index, values in enumerate(combinations):
            title = label + (f"({', '.join(map(_spell, values))})" if values else "")
            unit = {"kind": "asv", "file": path, "name": name, "combination": index}
            is_memory = PEAK.fullmatch(short) is not None
            units.append({**unit, "title": title[:_LONGEST_TITLE], "memory": is_memory})
    return units, left_out


def open_asv(unit: dict[str, Any]) -> TimedCall:
    """Set up a unit of asv, and return what is timed.

    Raises `SkippedError` if its setup says so.
    """
    module = import_file(unit["file"])
    functions = dict(_functions(module))
    if unit["name"] not in functions:
        raise UnitError(f"{unit['file']} has no {unit['name']}")
    function = functions[unit["name"]]
    owner = _make_owner(module, unit["name"])
    bound = getattr(owner, unit["name"].rpartition(".")[2]) if owner is not None else function
    combinations = list(itertools.product(*_parameters(module, unit["name"], function)))
    arguments = list(combinations[unit["combination"]])
    sources = [source for source in (function, owner, module) if source is not None]
    setups = [source.setup for source in reversed(sources) if callable(_get(source, "setup"))]
    teardowns = [source.teardown for source in sources if callable(_get(source, "teardown"))]
    makers = [source.setup_cache for source in sources if callable(_get(source, "setup_cache"))]
    if makers:
        arguments.insert(0, makers[0]())
    number = next((_get(source, "number") for source in sources if _get(source, "number")), 0)

    def set_up() -> None:
        for setup in setups:
            setup(*arguments)

    def refresh() -> None:
        for teardown in teardowns:
            teardown(*arguments)
        set_up()

    try:
        set_up()
    except NotImplementedError as error:
        raise SkippedError(
            f"its setup skips these parameters: {error}"
            if str(error)
            else "its setup skips these parameters"
        ) from None
    call = functools.partial(bound, *arguments) if arguments else bound
    is_limited = isinstance(number, int) and number > 0 and bool(setups)
    return TimedCall(call, refresh if is_limited else None, number if is_limited else None)


def _functions(module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    """Yield the benchmarks of a module: functions, and methods as ``Class.method``."""
    patterns = (TIMED, PEAK, OTHER)
    for name, value in list(vars(module).items()):
        if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(value) and not inspect.isabstract(value):
            for attribute, method in inspect.getmembers(value, inspect.isroutine):
                if any(pattern.fullmatch(attribute) for pattern in patterns):
                    yield f"{name}.{attribute}", method
        elif inspect.isroutine(value) and any(pattern.fullmatch(name) for pattern in patterns):
            yield name, value


def _make_owner(module: types.ModuleType, name: str) -> Any:
    """Return an object of a benchmark's class; None for a function."""
    owner = name.rpartition(".")[0]
    return getattr(module, owner)() if owner else None


def _parameters(module: types.ModuleType, name: str, function: Any) -> list[list[Any]]:
    owner = name.rpartition(".")[0]
    sources = [function, *([getattr(module, owner)] if owner else []), module]
    params: Any = next((_get(source, "params") for source in sources if _get(source, "params")), [])
    params = list(params)
    if params and not isinstance(params[0], (tuple, list)):
        params = [params]
    return [list(values) for values in params]


def _get(source: Any, name: str) -> Any:
    return getattr(source, name, None)


def _spell(value: Any) -> str:
    text = getattr(value, "__name__", None) or repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def run_pytest(arguments: list[str]) -> None:
    """Run pytest with the stand-in for pytest-benchmark, and without plug-ins that disturb it."""
    import pytest

    extra = []
    if importlib.util.find_spec("xdist") is not None:
        extra += ["-n0"]
    if importlib.util.find_spec("pytest_cov") is not None:
        extra += ["--no-cov"]
    pytest.main(
        [
            *("-p", "fairtrial_benchmark", "-p", "no:benchmark", "-p", "no:codspeed"),
            *("-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:pytest_randomly"),
            *("--capture=no", "--assert=plain", "-q", *extra, *arguments),
        ]
    )


def open_pytest(unit: dict[str, Any], serve: Callable[[TimedCall], Any]) -> None:
    """Run a test until it calls its `benchmark` fixture, and hand over what it is called with.

    serve: called with what is timed; doesn't return

    Raises `UnitError` if the test ends without that.
    """
    import fairtrial_benchmark as plugin  # type: ignore[import-not-found]

    plugin.state.serve = lambda call, refresh, most: serve(TimedCall(call, refresh, most))
    run_pytest([f"{unit['file']}::{unit['name']}"])
    why = plugin.state.failure or "it ended without calling its benchmark fixture"
    raise UnitError(why)
