"""Calls one function with many inputs and reports what comes of each call.

Run by path in the project's Python; the job is on stdin, as JSON:
``{"function": "module:name", "view": "module:name" or "", "caps": [...], "output_bytes": 100,
"cases": [{"args": [...], "kwargs": {...}}, ...]}``. One line of JSON for each call goes to the
channel, and a last one that says which files were imported.

The function shares this process and can do with it what it likes. It doesn't know what it should
give, so a forged report is no better than a true one; and the parent counts the cases. What matters
here is that honest code is reported truly, whatever it does to streams, exits and threads.
"""

from __future__ import annotations

import json
import os
import sys
import types
from typing import Any, Callable, NoReturn

_package: Any = types.ModuleType("_fairtrial_harness")  # a name that nobody else has
_package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
sys.modules["_fairtrial_harness"] = _package
sys.path[:] = [folder for folder in sys.path if folder not in _package.__path__]

from _fairtrial_harness import codec, decoder  # type: ignore[import-not-found]  # noqa: E402

# Kept before candidates can replace them.
_exit, _getpid, _write, _pread = os._exit, os.getpid, os.write, os.pread
_dup2, _truncate, _seek = os.dup2, os.ftruncate, os.lseek
_read = object.__getattribute__
_STDOUT = 1
_LONGEST_TRACEBACK = 4000


def main() -> NoReturn:
    """Read the job, do it, leave: without waiting for threads or `atexit`."""
    reporter = Reporter(int(os.environ.pop("FAIRTRIAL_CHANNEL")))
    job = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    output = Output(job["output_bytes"])
    try:
        function = find(job["function"])
        view = find(job["view"]) if job["view"] else None
    except BaseException as stop:
        reporter.send({"failed": codec.encode_raised(stop), "traceback": tell(stop)})
        _exit(1)
    for number, case in enumerate(job["cases"]):
        report = try_case(function, view, case, codec.Caps(*job["caps"]), output)
        reporter.send({"case": number, **report})
    reporter.send({"done": len(job["cases"]), "files": list_files()})
    _exit(0)


class Reporter:
    """Writes lines to the channel, in this process alone: a fork of it must not speak for it."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.owner = os.getpid()
        os.set_inheritable(descriptor, False)

    def send(self, report: object) -> None:
        if _getpid() != self.owner:
            _exit(0)
        line = codec.dump(report).encode("ascii") + b"\n"
        try:
            while line:
                line = line[_write(self.descriptor, line) :]
        except OSError:
            _exit(1)  # nobody listens any more


class Output:
    """What is written to standard output, by Python or by anybody else, one call at a time."""

    def __init__(self, most: int) -> None:
        self.most = most
        folder = os.environ.get("TMPDIR") or "/tmp"
        path = os.path.join(folder, f"fairtrial-output-{os.getpid()}")
        self.file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.unlink(path)
        self.stream = sys.stdout
        self.begin()

    def begin(self) -> None:
        self.flush()
        _truncate(self.file, 0)
        _seek(self.file, 0, 0)
        _dup2(self.file, _STDOUT)
        sys.stdout = self.stream

    def flush(self) -> None:
        for stream in (sys.stdout, self.stream):
            try:
                stream.flush()
            except BaseException:
                continue  # closed, or not a stream at all

    def end(self) -> object:
        self.flush()
        content = _pread(self.file, self.most + 1, 0)
        if len(content) > self.most:
            return {codec.TAG: "unreadable", "why": f"it takes more than {self.most:,} bytes"}
        return codec.encode(content.decode("utf-8", "surrogateescape"))


def find(name: str) -> Any:
    """``module:function``, or ``module:Class.method``."""
    module, _, attributes = name.partition(":")
    __import__(module)  # unlike importlib's, it leaves no frames of its own in tracebacks
    found: Any = sys.modules[module]
    for attribute in attributes.split("."):
        found = getattr(found, attribute)
    return found


def try_case(
    function: Callable[..., Any],
    view: Callable[[Any], Any] | None,
    case: Any,
    caps: Any,
    out: Output,
) -> dict[str, Any]:
    """One call: what it gives or raises, what it prints, and its arguments afterwards."""
    try:
        args, kwargs = decoder.decode(case["args"]), decoder.decode(case["kwargs"])
    except Exception as error:
        return {"unusable": str(error)}
    out.begin()
    report: dict[str, Any]
    try:
        result = settle(function(*args, **kwargs))
        report = {"result": codec.encode(settle(view(result)) if view else result, caps)}
    except BaseException as stop:
        report = {"raised": codec.encode_raised(stop, caps), "traceback": tell(stop)}
    report["output"] = out.end()
    after = {"args": codec.encode(args, caps), "kwargs": codec.encode(kwargs, caps)}
    before = {"args": case["args"], "kwargs": case["kwargs"]}
    report["after"] = None if codec.dump(after) == codec.dump(before) else after
    return report


def settle(result: Any) -> Any:
    """What a coroutine gives in the end; all that an asynchronous generator yields."""
    if type(result) not in (types.CoroutineType, types.AsyncGeneratorType):
        return result
    import asyncio

    async def collect() -> Any:
        return iter([item async for item in result])

    return asyncio.run(result if type(result) is types.CoroutineType else collect())


def tell(stop: BaseException) -> str:
    """The traceback without our own frames; it isn't compared."""
    try:
        import traceback

        trace = stop.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
            trace = trace.tb_next
        text = "".join(traceback.format_exception(type(stop), stop, trace))
    except BaseException:
        return ""
    return text if len(text) <= _LONGEST_TRACEBACK else "...\n" + text[-_LONGEST_TRACEBACK:]


def list_files() -> list[str]:
    """The files of all modules that are loaded now; reading a lazy one doesn't load it."""
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
