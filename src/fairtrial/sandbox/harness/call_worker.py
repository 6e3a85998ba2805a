"""The worker of function checks: calls one function with many inputs and reports each result.

Run by path in the project's Python; the job is on stdin, as JSON:
``{"function": "module:name", "view": "module:name" or "", "caps": [...], "output_bytes": 100,
"cases": [{"args": [...], "kwargs": {...}}, ...]}``. One line of JSON for each call goes to the
channel, and a last one with the imported files.

The function shares this process and can do anything with it. But it doesn't know the expected
results, so a forged report gains nothing, and the parent counts the cases. Here it only matters
that honest code is reported correctly, whatever it does to streams, exits and threads.
"""

from __future__ import annotations

import json
import os
import sys
import types
from typing import Any, Callable, NoReturn

_package: Any = types.ModuleType("_fairtrial_harness")  # a unique name
_package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
sys.modules["_fairtrial_harness"] = _package
sys.path[:] = [folder for folder in sys.path if folder not in _package.__path__]

from _fairtrial_harness import codec, decoder, import_record  # type: ignore[import-not-found]  # noqa: E402

# Bound early, before candidates can replace them.
_exit, _getpid, _write, _pread = os._exit, os.getpid, os.write, os.pread
_dup2, _truncate, _seek = os.dup2, os.ftruncate, os.lseek
_read = object.__getattribute__
_STDOUT = 1
_MAX_TRACEBACK_CHARS = 4000


def main() -> NoReturn:
    """Read the job, run it, and exit without waiting for threads or `atexit` functions."""
    reporter = CallReporter(int(os.environ.pop("FAIRTRIAL_CHANNEL")))
    job = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    output = CapturedStdout(job["output_bytes"])
    list_recorded = import_record.record_imports()
    try:
        function = find_function(job["function"])
        view = find_function(job["view"]) if job["view"] else None
    except BaseException as error:
        reporter.send({"failed": codec.encode_raised(error), "traceback": format_error(error)})
        _exit(1)
    for number, case in enumerate(job["cases"]):
        report = run_case(function, view, case, codec.Caps(*job["caps"]), output)
        reporter.send({"case": number, **report})
    reporter.send({"done": len(job["cases"]), "files": list_recorded()})
    _exit(0)


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
    """Import ``module:function`` or ``module:Class.method``."""
    module, _, attributes = name.partition(":")
    __import__(module)  # unlike importlib, it leaves no frames of its own in tracebacks
    target: Any = sys.modules[module]
    for attribute in attributes.split("."):
        target = getattr(target, attribute)
    return target


def run_case(
    function: Callable[..., Any],
    view: Callable[[Any], Any] | None,
    case: Any,
    caps: Any,
    out: CapturedStdout,
) -> dict[str, Any]:
    """Call the function once; reports its result or exception, output, and changed arguments."""
    try:
        args, kwargs = decoder.decode(case["args"]), decoder.decode(case["kwargs"])
    except Exception as error:
        return {"unusable": str(error)}
    out.begin()
    report: dict[str, Any]
    try:
        result = await_result(function(*args, **kwargs))
        report = {"result": codec.encode(await_result(view(result)) if view else result, caps)}
    except BaseException as error:
        report = {"raised": codec.encode_raised(error, caps), "traceback": format_error(error)}
    report["output"] = out.end()
    after = {"args": codec.encode(args, caps), "kwargs": codec.encode(kwargs, caps)}
    before = {"args": case["args"], "kwargs": case["kwargs"]}
    report["after"] = None if codec.dump_encoded(after) == codec.dump_encoded(before) else after
    return report


def await_result(result: Any) -> Any:
    """Run a coroutine to its result, and an asynchronous generator to an iterator of its items."""
    if type(result) not in (types.CoroutineType, types.AsyncGeneratorType):
        return result
    import asyncio

    async def collect() -> Any:
        return iter([item async for item in result])

    return asyncio.run(result if type(result) is types.CoroutineType else collect())


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
    for module in list(sys.modules.values()):
        try:
            file = _read(module, "__dict__").get("__file__")
        except BaseException:
            continue
        if type(file) is str:
            files.add(file)
    return sorted(files)


if __name__ == "__main__":
    main()
