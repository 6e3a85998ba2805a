"""The worker of function checks: calls one function with many inputs and reports each result.

Run by path in the project's Python; the job is on stdin, as JSON:
``{"function": "module:name", "view": "module:name" or "", "prepare": "file.py:name" or "",
"caps": [...], "output_bytes": 100, "clocked": false, "cases": [{"args": [...], "kwargs": {...}},
...]}``. One line of JSON for each call goes to the channel, with its times if it is clocked, and a
last one with the imported files and the changed settings of the process.

The function shares this process and can do anything with it. But it doesn't know the expected
results, so a forged report gains little, and the parent counts the cases. Before the function is
imported, the harness is made unreachable by name: no module holds it, it has its own built-ins, and
it uses the C functions of `json`. It can still be found through frames and the garbage collector.
"""

from __future__ import annotations

import builtins
import functools
import operator
import os
import sys
import time
import types
from typing import Any, Callable, NamedTuple, NoReturn

globals()["__builtins__"] = dict(vars(builtins))  # candidates may replace the process's own
_package: Any = types.ModuleType("_fairtrial_harness")  # a unique name
_package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
sys.modules["_fairtrial_harness"] = _package
sys.path[:] = [folder for folder in sys.path if folder not in _package.__path__]

from _fairtrial_harness import (  # type: ignore[import-not-found]  # noqa: E402
    codec,
    import_record,
    pickled_calls,
    process_state,
)

# Bound early, before candidates can replace them.
_modules = sys.modules
_Coroutine: Any = types.CoroutineType
_AsyncGenerator: Any = types.AsyncGeneratorType
_exit, _getpid, _write, _pread = os._exit, os.getpid, os.write, os.pread
_dup2, _truncate, _seek = os.dup2, os.ftruncate, os.lseek
_read = object.__getattribute__
_wall_time, _cpu_time = time.perf_counter, time.process_time
_attrgetter, _abspath = operator.attrgetter, os.path.abspath
_PROPERTIES = (property, functools.cached_property)
_STDOUT = 1
_MAX_TRACEBACK_CHARS = 4000


def main() -> NoReturn:
    """Read the job, run it, and exit without waiting for threads or `atexit` functions."""
    reporter = CallReporter(int(os.environ.pop("FAIRTRIAL_CHANNEL")))
    job = codec.load_encoded(sys.stdin.buffer.read().decode("utf-8"))
    output = CapturedStdout(job["output_bytes"])
    list_recorded = import_record.record_imports()
    list_changes = process_state.record_state()
    hide_harness()
    try:
        called = load_called(job)
    except BaseException as error:
        reporter.send({"failed": codec.encode_raised(error), "traceback": format_error(error)})
        _exit(1)
    for number, case in enumerate(job["cases"]):
        call = run_case(called, case, codec.Caps(*job["caps"]), output)
        clocked = {"seconds": call.seconds, "cpu_s": call.cpu_s} if job.get("clocked") else {}
        reporter.send({"case": number, **call.report, **clocked})
    changes = list_changes()
    reporter.send({"done": len(job["cases"]), "files": list_recorded(), "changes": changes})
    _exit(0)


def hide_harness() -> None:
    """Remove the harness from `sys.modules`, with the names of `__main__`."""
    for name in list(sys.modules):
        if name.partition(".")[0] == _package.__name__:
            del sys.modules[name]
    main_module: Any = types.ModuleType("__main__")
    main_module.__dict__.update(__builtins__=builtins, __file__=sys.argv[0], __spec__=None)
    sys.modules["__main__"] = main_module


class CallReporter:
    """Writes JSON lines to the channel, in this process only: forks must not report for it."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.owner = os.getpid()
        os.set_inheritable(descriptor, False)

    def send(self, report: object) -> None:
        """Write one line; exits if the channel is closed."""
        if _getpid() != self.owner:
            _exit(0)
        line = codec.dump_encoded(report).encode("ascii") + b"\n"
        try:
            while line:
                line = line[_write(self.descriptor, line) :]
        except OSError:
            _exit(1)  # the channel is closed


class CapturedStdout:
    """Captures standard output of each call, also output that doesn't go through sys.stdout.

    max_bytes: longer output is reported as unreadable
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        folder = os.environ.get("TMPDIR") or "/tmp"
        path = os.path.join(folder, f"fairtrial-output-{os.getpid()}")
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.unlink(path)
        self.stream = sys.stdout
        self.begin()

    def begin(self) -> None:
        """Forget earlier output, and redirect standard output to the file."""
        self.flush()
        _truncate(self.file, 0)
        _seek(self.file, 0, 0)
        _dup2(self.file, _STDOUT)
        sys.stdout = self.stream

    def flush(self) -> None:
        """Flush Python's streams."""
        for stream in (sys.stdout, self.stream):
            try:
                stream.flush()
            except BaseException:
                continue  # closed, or not a stream

    def end(self) -> object:
        """Return the encoded output since `begin`."""
        self.flush()
        content = _pread(self.file, self.max_bytes + 1, 0)
        if len(content) > self.max_bytes:
            return {codec.TAG: "unreadable", "why": f"it takes more than {self.max_bytes:,} bytes"}
        return codec.encode(content.decode("utf-8", "surrogateescape"))


def find_function(name: str) -> Any:
    """Import ``module:function`` or ``module:Class.method``.

    A property becomes a function of an object, which gets it. Raises `TypeError` if there is
    something else under this name.
    """
    module, _, attributes = name.partition(":")
    __import__(module)  # unlike importlib, it leaves no frames of its own in tracebacks
    target: Any = _modules[module]
    owner: Any = None
    for attribute in attributes.split("."):
        owner, target = target, getattr(target, attribute)
    if isinstance(owner, type) and isinstance(target, _PROPERTIES):
        return _attrgetter(attribute)
    if not callable(target):
        raise TypeError(f"{name} is no function or property, but of type {type(target).__name__}")
    return target


class CalledFunction(NamedTuple):
    """What is called.

    function: the function
    view: converts its results before they are encoded; None if they are encoded as they are
    prepare: makes the arguments of a call from those of its input; None if they are the same
    """

    function: Callable[..., Any]
    view: Callable[[Any], Any] | None
    prepare: Callable[[Any, Any], Any] | None


def load_called(job: dict[str, Any]) -> CalledFunction:
    """Import what a job names."""
    file, _, name = (job.get("prepare") or "").rpartition(":")
    path = _abspath(file)  # before a candidate can change the working folder
    function = find_function(job["function"])
    view = find_function(job["view"]) if job["view"] else None
    return CalledFunction(function, view, _load_step(path, name) if file else None)


def _load_step(path: str, name: str) -> Callable[[Any, Any], Any]:
    """Run a file of the problem, and return the function of this name."""
    module: Any = types.ModuleType("_fairtrial_prepare")
    module.__file__ = path
    _modules[module.__name__] = module
    sys.path.append(os.path.dirname(path))  # it may import modules beside it
    with open(path, "rb") as file:
        exec(compile(file.read(), path, "exec"), module.__dict__)
    step = getattr(module, name, None)
    if step is None:
        raise AttributeError(f"{path} has no function {name}")

    def prepare(args: Any, kwargs: Any) -> Any:
        made = step(list(args), dict(kwargs))
        if type(made) is not tuple or len(made) != 2 or type(made[1]) is not dict:
            raise TypeError(
                f"{name} must return (args, kwargs), a list or tuple and a dictionary; it returned "
                f"a value of type {type(made).__name__}"
            )
        return made

    return prepare


class CallRecord:
    """One call: what is reported, and the objects that took part.

    report: result or exception, output, and changed arguments
    args, kwargs: its arguments
    result: what it returned; None if it raised
    seconds, cpu_s: its wall time, and its CPU time, whose clock may be coarse
    """

    __slots__ = ("args", "cpu_s", "kwargs", "report", "result", "seconds")

    def __init__(self) -> None:
        self.report: dict[str, Any] = {}
        self.args: Any = []
        self.kwargs: Any = {}
        self.result: Any = None
        self.seconds = self.cpu_s = 0.0


def run_case(
    called: CalledFunction,
    case: Any,
    caps: Any,
    out: CapturedStdout,
    watch: Callable[[CallRecord], None] | None = None,
) -> CallRecord:
    """Call the function once; reports its result or exception, output, and changed arguments.

    watch: called with the arguments, before the call
    """
    call = CallRecord()
    try:
        call.args, call.kwargs = pickled_calls.decode_call(case)
        if called.prepare is not None:
            call.args, call.kwargs = called.prepare(call.args, call.kwargs)
    except Exception as error:
        call.report = {"unusable": f"{type(error).__name__}: {error}"}
        return call
    # Tuples: the function could put other objects into lists that it finds in this frame.
    given, named = tuple(call.args), tuple(call.kwargs.items())
    if watch is not None:
        watch(call)
    out.begin()
    cpu_s, began = _cpu_time(), _wall_time()
    try:
        returned = called.function(*given, **dict(named))
        if is_lazy(returned):
            call.report["awaited"] = True
        call.result = await_result(returned)
        call.seconds, call.cpu_s = _wall_time() - began, _cpu_time() - cpu_s
        shown = await_result(called.view(call.result)) if called.view else call.result
        call.report["result"] = codec.encode(shown, caps, has_layouts=True)
    except BaseException as error:
        call.report["raised"] = encode_raised(error, caps)
        call.report["traceback"] = format_error(error)
    call.report["output"] = out.end()
    call.args, call.kwargs = list(given), dict(named)
    call.report["after"] = None if called.prepare else find_changes(call, case, caps)
    return call


def find_changes(call: CallRecord, case: Any, caps: Any) -> Any:
    """Return the arguments of a call as they are now; None if they are those of its input."""
    after = encode_arguments(call, caps)
    before = {"args": case["args"], "kwargs": case["kwargs"]}
    return None if codec.dump_encoded(after) == codec.dump_encoded(before) else after


def encode_arguments(call: CallRecord, caps: Any) -> dict[str, Any]:
    """Encode the arguments of a call as they are now."""
    parts = {"args": call.args, "kwargs": call.kwargs}
    return {name: codec.encode(part, caps, exhausts=False) for name, part in parts.items()}


def encode_raised(error: BaseException, caps: Any) -> dict[str, Any]:
    """Encode a raised exception: its type, its arguments, and the classes that catch it."""
    return {**codec.encode_raised(error, caps), "bases": codec.list_base_classes(error)}


def is_lazy(result: Any) -> bool:
    """Return whether a result has to be awaited: a coroutine or an asynchronous generator."""
    return type(result) is _Coroutine or type(result) is _AsyncGenerator


def await_result(result: Any) -> Any:
    """Run a coroutine to its result, and an asynchronous generator to an iterator of its items."""
    if not is_lazy(result):
        return result
    import asyncio

    async def collect() -> Any:
        return iter([item async for item in result])

    return asyncio.run(result if type(result) is _Coroutine else collect())


def format_error(error: BaseException) -> str:
    """Return the traceback of an exception, without frames of this file; it isn't compared."""
    try:
        import traceback

        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        text = "".join(traceback.format_exception(type(error), error, trace))
    except BaseException:
        return ""
    return text if len(text) <= _MAX_TRACEBACK_CHARS else "...\n" + text[-_MAX_TRACEBACK_CHARS:]


def list_files() -> list[str]:
    """Return the files of all loaded modules, without triggering lazy imports."""
    files = set()
    for module in list(_modules.values()):
        try:
            file = _read(module, "__dict__").get("__file__")
        except BaseException:
            continue
        if type(file) is str:
            files.add(file)
    return sorted(files)


if __name__ == "__main__":
    main()
