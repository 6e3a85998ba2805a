"""A pytest plug-in that stands in for pytest-benchmark: a `benchmark` fixture of ours.

By default it calls what it is given once, so that the test's own assertions hold. If `state.serve`
is set, it hands over what it is given instead, to be timed, and never returns. If `state.listing`
is set, tests are collected only. It must run on Python 3.8 and pytest 6. PYTEST_DONT_REWRITE: it
holds no assertions.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Callable, Generator

import pytest

_OPTIONS = (
    "min-time", "max-time", "min-rounds", "timer", "calibration-precision", "warmup",
    "warmup-iterations", "disable-gc", "skip", "disable", "enable", "only", "save", "autosave",
    "save-data", "json", "compare", "compare-fail", "cprofile", "cprofile-loops", "cprofile-top",
    "cprofile-dump", "time-unit", "storage", "netrc", "verbose", "quiet", "sort", "group-by",
    "columns", "name", "histogram",
)  # fmt: skip
"""The options of pytest-benchmark, which a project's configuration may name; they do nothing."""
_FLAGS = {
    "disable-gc", "skip", "disable", "enable", "only", "autosave", "save-data", "verbose", "quiet",
}  # fmt: skip
_MOST_CHARS = 1500


class State:
    """What this plug-in is to do, and what came of it.

    serve: called with what is timed, what refreshes it, and how many calls a batch may have
    listing: gets the (path, name) of each test with a `benchmark` fixture; None if tests are run
    stops_after_one: whether the session ends after the first test that passes
    passed: how many tests with the fixture passed
    failure: why the last test failed or was skipped
    """

    serve: Callable[..., Any] | None = None
    listing: list[tuple[str, str]] | None = None
    stops_after_one = False
    passed = 0
    failure = ""


state = State()


class BenchmarkStandIn:
    """The stand-in for pytest-benchmark's fixture."""

    def __init__(self, name: str) -> None:
        self.name = self.fullname = name
        self.group: Any = None
        self.param: Any = None
        self.params: Any = None
        self.extra_info: dict[str, Any] = {}
        self.stats: Any = None
        self.disabled = state.serve is None
        self.enabled = not self.disabled
        self._is_used = False

    def __call__(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        """Call the function: once, or again and again to be timed."""
        self._use()
        if state.serve is not None:
            call = functools.partial(function, *args, **kwargs) if args or kwargs else function
            return state.serve(call, None, None)
        return function(*args, **kwargs)

    def pedantic(
        self,
        target: Any,
        args: Any = (),
        kwargs: Any = None,
        setup: Any = None,
        teardown: Any = None,
        rounds: int = 1,
        warmup_rounds: int = 0,
        iterations: int = 1,
    ) -> Any:
        """Call the target with its setup before each call, untimed."""
        self._use()
        kwargs = dict(kwargs or {})

        def refresh() -> Any:
            given = setup() if setup is not None else None
            return (tuple(args), kwargs) if given is None else given

        if state.serve is not None:
            if setup is None:
                return state.serve(functools.partial(target, *args, **kwargs), None, None)
            return state.serve(target, refresh, 1)
        given, named = refresh()
        result = target(*given, **named)
        if teardown is not None:
            teardown(*given, **named)
        return result

    def weave(self, *_: Any, **__: Any) -> Any:
        """Refuse: what a test patches can't be timed here."""
        raise NotImplementedError("benchmark.weave and benchmark.patch can't be timed by fairtrial")

    patch = weave

    def _use(self) -> None:
        if self._is_used:
            raise RuntimeError("a benchmark fixture can be used once only")
        self._is_used = True


@pytest.fixture
def benchmark(request: Any) -> BenchmarkStandIn:
    """Stand in for pytest-benchmark."""
    return BenchmarkStandIn(request.node.name)


@pytest.fixture
def benchmark_weave(benchmark: BenchmarkStandIn) -> Any:
    """Stand in for pytest-benchmark."""
    return benchmark.weave


def pytest_addoption(parser: Any) -> None:
    """Accept the options of pytest-benchmark."""
    group = parser.getgroup("fairtrial benchmarks")
    for name in _OPTIONS:
        kind: dict[str, Any] = {"action": "store_true"} if name in _FLAGS else {"nargs": "?"}
        try:
            group.addoption(f"--benchmark-{name}", default=None, **kind)
        except ValueError:
            continue  # another plug-in has it


def pytest_configure(config: Any) -> None:
    """Register the marker of pytest-benchmark."""
    config.addinivalue_line("markers", "benchmark: a benchmark, timed by fairtrial")


def is_benchmark(item: Any) -> bool:
    """Return whether a test times something: by its fixture, or as a whole by its marker."""
    return "benchmark" in getattr(item, "fixturenames", ()) or _is_marked(item)


def _is_marked(item: Any) -> bool:
    has_fixture = "benchmark" in getattr(item, "fixturenames", ())
    return not has_fixture and item.get_closest_marker("benchmark") is not None


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Leave out tests that time nothing."""
    others = [item for item in items if not is_benchmark(item)]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if is_benchmark(item)]
    if state.listing is not None:
        for item in items:
            path = os.path.relpath(str(item.fspath))
            state.listing.append((path, item.nodeid.partition("::")[2]))
        items[:] = []


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> Any:
    """Time a test as a whole if it is marked and has no `benchmark` fixture."""
    if state.serve is None or not _is_marked(pyfuncitem):
        return None
    given = pyfuncitem.funcargs
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: given[name] for name in names}
    state.serve(functools.partial(pyfuncitem.obj, **arguments), None, None)
    return True


def pytest_collectreport(report: Any) -> None:
    """Remember why tests could not be collected."""
    if report.failed:
        state.failure = str(report.longrepr)[-_MOST_CHARS:]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Generator[None, Any, None]:
    """Remember what came of the last test."""
    outcome = yield
    report = outcome.get_result()
    if report.when == "call" and report.passed:
        state.passed += 1
        if state.stops_after_one:
            item.session.shouldstop = "one benchmark has passed"
    elif report.skipped:
        why = report.longrepr
        state.failure = f"it is skipped: {why[-1] if isinstance(why, tuple) else why}"
    elif report.failed:
        state.failure = str(call.excinfo.exconly() if call.excinfo else report.longrepr)
        state.failure = state.failure[-_MOST_CHARS:]
