"""The worker that is timed: calls one function on request.

Run by path in the project's Python, in a new process for every session. It communicates with the
parent on one descriptor (see `frames`), and doesn't know whether it runs the base:

- ``H``  hello: sent once, without a request, when it is ready
- ``L``  load the function; replies with the imported files, or the error
- ``I``  inputs, one JSON line per call; replies when they are decoded
- ``G``  go: call the function once with each input; replies when all results are there
- ``C``  collect: replies with the results, one JSON line per call

The function shares this process and can do anything with it. So the parent keeps the clock, the
inputs to come and the comparison of results; and the kernel counts CPU time spent here before and
after the timed part.
"""

from __future__ import annotations

import builtins
import gc
import marshal
import os
import sys
import time
import types
from typing import Any, Callable

globals()["__builtins__"] = dict(vars(builtins))  # candidates may replace the process's own
_package: Any = types.ModuleType("_fairtrial_harness")  # a unique name
_package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
sys.modules["_fairtrial_harness"] = _package
sys.path[:] = [folder for folder in sys.path if folder not in _package.__path__]

from _fairtrial_harness import (  # type: ignore[import-not-found]  # noqa: E402
    call_worker,
    codec,
    decoder,
    frames,
    library_values,
)

_now = time.perf_counter
_collect, _freeze = gc.collect, gc.freeze
_dup, _dup2, _close = os.dup, os.dup2, os.close
_stdout = sys.stdout
_read_json = codec.load_encoded
_type_name = type.__dict__["__name__"].__get__
_marshal = marshal.dumps
_TAG_TEXT = codec.dump_encoded(codec.TAG)
_TAG = _TAG_TEXT.encode("ascii")
_LAZY = (types.CoroutineType, types.AsyncGeneratorType)
_NUMBERS = (type(None), bool, int, float, complex)
_FINISHED = frozenset((*_NUMBERS, str, bytes, bytearray, list, tuple, dict, set, frozenset, range))


class Raised:
    """The exception that a call raised.

    error: the exception
    """

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


class ImportOutput:
    """Redirects standard output to standard error while modules are imported.

    What they print then isn't compared with the base's.
    """

    def __enter__(self) -> None:
        self.saved = _dup(1)
        _dup2(2, 1)

    def __exit__(self, *exception: object) -> None:
        flush_output()
        _dup2(self.saved, 1)
        _close(self.saved)


def flush_output() -> None:
    """Flush Python's standard output, which the parent compares with the base's."""
    for stream in (sys.stdout, _stdout):
        try:
            stream.flush()
        except BaseException:
            continue  # closed, or not a stream


class CallBatch:
    """The function, the inputs of its next calls, and the results of its last.

    job: function, view and caps, as for `call_worker`
    """

    def __init__(self, job: dict[str, Any]) -> None:
        self.caps = codec.Caps(*job["caps"])
        self.function: Callable[..., Any] = call_worker.find_function(job["function"])
        self.view = call_worker.find_function(job["view"]) if job["view"] else None
        self.lines: list[bytes] = []
        self.cases: list[Any] = []
        self.before: list[bytes | None] = []
        self.results: list[Any] = []
        self.exhausting_s = 0.0

    def load_inputs(self, payload: bytes) -> None:
        """Decode the inputs of the next calls, one JSON line each."""
        self.lines = payload.split(b"\n") if payload else []
        self.cases = [read_case(line) for line in self.lines]
        self.before = [marshal_case(case) for case in self.cases]
        self.results = []
        self.exhausting_s = 0.0
        _freeze()  # so that every sample begins with no objects for the garbage collector

    def run(self) -> None:
        """Call the function with each input; this is what is timed."""
        function, keep, is_finished = self.function, self.results.append, _FINISHED.__contains__
        for args, kwargs in self.cases:
            try:
                result = function(*args, **kwargs)
                if not is_finished(type(result)):
                    result = self.exhaust(result)
            except BaseException as error:
                result = Raised(error)
            keep(result)

    def exhaust(self, result: Any) -> Any:
        """Await or iterate a result that may be lazy, so that all of its work is timed."""
        began = _now()
        if type(result) in _LAZY:
            result = call_worker.await_result(result)
        kind = type(result)
        if not (_type_name(kind) == "ndarray" and library_values.is_native(kind)):
            if hasattr(kind, "__next__"):
                result = Iterated(list(result))
            elif hasattr(kind, "__iter__"):
                for _ in result:
                    pass
        self.exhausting_s += _now() - began
        return result

    def encode_results(self) -> bytes:
        """Return the results and changed arguments, one JSON line per call, and forget them."""
        flush_output()
        lines = []
        for index, result in enumerate(self.results):
            after = self.encode_changed_arguments(index)
            plain = None if self.view or after is not None else dump_plain(result)
            if plain is None:
                lines.append(codec.dump_encoded({**self.encode_result(result), "after": after}))
            else:
                lines.append('{"result":' + plain + ',"after":null}')
        lines.append(codec.dump_encoded({"going_through_s": self.exhausting_s}))
        self.cases, self.results, self.before = [], [], []
        return "\n".join(lines).encode("ascii")

    def encode_changed_arguments(self, index: int) -> Any:
        """Return the encoded arguments after a call; None if they are unchanged."""
        before = self.before[index]
        if before is not None and marshal_case(self.cases[index]) == before:
            return None
        args, kwargs = self.cases[index]
        parts = {"args": args, "kwargs": kwargs}
        after = {name: codec.encode(part, self.caps) for name, part in parts.items()}
        is_same = codec.dump_encoded(after).encode("ascii") == self.lines[index]
        return None if is_same else after

    def encode_result(self, result: Any) -> dict[str, Any]:
        """Return an encoded result, or the exception that was raised."""
        if type(result) is Raised:
            return {"raised": call_worker.encode_raised(result.error, self.caps)}
        if type(result) is Iterated:
            result = iter(result.items)
        try:
            viewed = call_worker.await_result(self.view(result)) if self.view else result
        except BaseException as error:
            return {"raised": call_worker.encode_raised(error, self.caps)}
        return {"result": codec.encode(viewed, self.caps, has_layouts=True)}


class Iterated:
    """The items of an iterator that was returned.

    items: the items
    """

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        self.items = items


def read_case(line: bytes) -> Any:
    """Decode the arguments of a call; JSON without a tag needs no decoding."""
    case = _read_json(line.decode("ascii"))
    if _TAG not in line:
        return case["args"], case["kwargs"]
    return decoder.decode(case["args"]), decoder.decode(case["kwargs"])


def marshal_case(case: Any) -> bytes | None:
    """Return a case as bytes, quickly, for comparison; None if marshal can't write it."""
    try:
        return _marshal(case, 2)  # the version whose bytes depend on values alone
    except ValueError:
        return None


def dump_plain(result: Any) -> str | None:
    """Return the JSON of a result that needs no tags, quickly; None for other results.

    A result needs no tags if reading the JSON back gives the same value, types included. (Integers
    beyond 2^53 are written as numbers here, but with a tag by `codec`; base and candidate are
    treated alike.)
    """
    before = marshal_case(result)
    if before is None:
        return None
    try:
        text: str = codec.dump_encoded(result)
    except (TypeError, ValueError, RecursionError):
        return None
    is_plain = _TAG_TEXT not in text and marshal_case(_read_json(text)) == before
    return text if is_plain else None


def format_error(error: BaseException) -> str:
    """Return the traceback of an exception, without the harness's own frames."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in (
        __file__,
        call_worker.__file__,
    ):
        trace = trace.tb_next
    error.__traceback__ = trace
    return str(call_worker.format_error(error))


def main() -> None:
    """Serve requests until the channel is closed."""
    requests = frames.RequestChannel(int(os.environ.pop("FAIRTRIAL_CHANNEL")))
    requests.reply(b"H", 0)
    call_worker.hide_harness()
    batch: Any = None
    while True:
        letter, number, payload = requests.receive()
        answer = b""
        if letter == b"G":
            batch.run()
        elif letter == b"I":
            batch.load_inputs(payload)
        elif letter == b"C":
            answer = batch.encode_results()
        elif letter == b"L":
            try:
                job = _read_json(payload.decode("ascii"))
                with ImportOutput():
                    batch = CallBatch(job)
                answer = codec.dump_encoded({"files": call_worker.list_files()}).encode("ascii")
                _collect()
                _freeze()
            except BaseException as error:
                report = {"failed": codec.encode_raised(error), "traceback": format_error(error)}
                answer = codec.dump_encoded(report).encode("ascii")
        requests.reply(letter, number, answer)


if __name__ == "__main__":
    main()
