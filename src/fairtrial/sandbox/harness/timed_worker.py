"""The worker that is timed: calls one function on request.

Run by path in the project's Python, in a new process for every session. It communicates with the
parent on one descriptor (see `frames`), and doesn't know whether it runs the base:

- ``H``  hello: sent once, without a request, when it is ready
- ``L``  load the function, or a benchmark of a suite (see `suite_units`); replies with the imported
  files, or the error
- ``I``  inputs of the next calls (see `packing`); replies when they are decoded
- ``G``  go: call the function once with each input; replies when all results are there
- ``C``  close the turn: replies with a digest of the results and of changed arguments
- ``V``  values: replies with the same results in full, one JSON line per call

The function shares this process and can do anything with it. So the parent keeps the clock, the
inputs to come and the comparison of results; and the kernel counts CPU time spent here before and
after the timed part.
"""

from __future__ import annotations

import builtins
import gc
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
    frames,
    layout,
    library_objects,
    library_values,
    packing,
    pickled_calls,
    suite_units,
)

_now = time.perf_counter
_collect, _freeze = gc.collect, gc.freeze
_dup, _dup2, _close = os.dup, os.dup2, os.close
_stdout = sys.stdout
_read_json = codec.load_encoded
_type_name = type.__dict__["__name__"].__get__
_FIRST = packing.PACKED_FIRST
_SETS = (b"\x8f", b"\x91")  # how a set or frozenset begins, when it is packed
_TAG = codec.dump_encoded(codec.TAG).encode("ascii")
_LAZY = (types.CoroutineType, types.AsyncGeneratorType)
_NUMBERS = (type(None), bool, int, float, complex)
_FINISHED = frozenset((*_NUMBERS, str, bytes, bytearray, list, tuple, dict, set, frozenset, range))


_keep: list[object] = []
"""What must not be freed."""


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

    job: function, view, prepare and caps, as for `call_worker`
    called: the function, if it isn't that of the job
    """

    def __init__(self, job: dict[str, Any], called: Any = None) -> None:
        self.caps = codec.Caps(*job["caps"])
        called = called or call_worker.load_called(job)
        self.function: Callable[..., Any] = called.function
        self.view, self.prepare = called.view, called.prepare
        self.inputs: list[bytes] = []
        self.cases: list[Any] = []
        self.before: list[bytes | None] = []
        self.results: list[Any] = []
        self.exhausting_s = 0.0
        self.values: list[str] = []
        self.finished: dict[int, tuple[bool, type]] = {}

    def load_inputs(self, payload: bytes) -> None:
        """Decode the inputs of the next calls, and forget the last ones."""
        self.cases, self.results, self.values = [], [], []
        self.inputs = packing.split_inputs(payload)
        self.cases = [read_case(data) for data in self.inputs]
        if self.prepare is not None:
            self.cases = [self.prepare(*case) for case in self.cases]
        else:
            self.before = [
                data if is_own_copy(data) else packing.pack_values(case)
                for data, case in zip(self.inputs, self.cases)
            ]
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
        if type(result) in _LAZY:
            result = call_worker.await_result(result)
        began = _now()
        kind = type(result)
        if not self.is_finished(kind):
            if hasattr(kind, "__next__"):
                result = Iterated(list(result))
            elif hasattr(kind, "__iter__"):
                for _ in result:
                    pass
        self.exhausting_s += _now() - began
        return result

    def is_finished(self, kind: type) -> bool:
        """Return whether values of a type from a library hold all of their content already."""
        known = self.finished.get(id(kind))
        if known is None:
            is_array = _type_name(kind) == "ndarray" and library_values.is_native(kind)
            known = (is_array or library_objects.is_table(kind), kind)
            self.finished[id(kind)] = known
        return known[0]

    def encode_results(self) -> bytes:
        """Return results and changed arguments as bytes, which are equal only if the values are.

        They are packed if they are plain or arrays, and otherwise lines of JSON.
        """
        flush_output()
        has_changed = self.prepare is None and any(map(self.has_changed, range(len(self.results))))
        is_packable = not self.view and not has_changed
        packed: bytes | None = None
        if is_packable:
            packed = packing.pack_values(self.results)
        if packed is None:
            self.values = self.encode_values()
            packed = "\n".join(self.values).encode("ascii")
        return packed

    def list_values(self) -> bytes:
        """Return results and changed arguments, one JSON line per call, and a line of figures."""
        if len(self.values) != len(self.results):  # reading a result twice may give other values
            self.values = self.encode_values()
        figures = codec.dump_encoded({"going_through_s": self.exhausting_s})
        return "\n".join([*self.values, figures]).encode("ascii")

    def encode_values(self) -> list[str]:
        """Return results and changed arguments, one JSON text per call."""
        return [
            codec.dump_encoded(
                {**self.encode_result(result), "after": self.encode_changed_arguments(index)}
            )
            for index, result in enumerate(self.results)
        ]

    def has_changed(self, index: int) -> bool:
        """Return whether the arguments of a call may have been changed by it."""
        before = self.before[index]
        return before is None or packing.pack_values(self.cases[index]) != before

    def encode_changed_arguments(self, index: int) -> Any:
        """Return the encoded arguments after a call; None if they aren't compared, or unchanged."""
        if self.prepare is not None or not self.has_changed(index):
            return None  # a step may make anything, so that isn't compared
        data = self.inputs[index]
        after = self.encode_arguments(self.cases[index])
        if pickled_calls.is_pickled_input(data):
            before = self.encode_arguments(pickled_calls.load_input(data))
        else:
            before = read_input(data)
        return None if codec.dump_encoded(after) == codec.dump_encoded(before) else after

    def encode_arguments(self, case: Any) -> dict[str, Any]:
        """Return encoded arguments, as `codec` encodes them."""
        parts = dict(zip(("args", "kwargs"), case))
        return {name: codec.encode(part, self.caps, exhausts=False) for name, part in parts.items()}

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


class SuiteBatch(CallBatch):
    """A benchmark of a suite: its calls have no inputs of ours, but may be refreshed before.

    subject: what is timed
    job: caps, and whether results are compared
    """

    def __init__(self, subject: Any, job: dict[str, Any]) -> None:
        super().__init__(job, call_worker.CalledFunction(subject.call, None, None))
        self.subject, self.is_compared = subject, job["compares"]

    def load_inputs(self, payload: bytes) -> None:
        """Refresh what is called."""
        self.cases, self.results, self.values = [], [], []
        self.inputs = packing.split_inputs(payload)
        self.exhausting_s = 0.0
        given = self.subject.refresh() if self.inputs and self.subject.refresh else None
        self.cases = [((), {}) if given is None else given] * len(self.inputs)
        _freeze()

    def encode_results(self) -> bytes:
        """Return results as bytes; if they aren't compared, only which calls raised."""
        if self.is_compared:
            return super().encode_results()
        flush_output()
        return repr([type(result) is Raised for result in self.results]).encode("ascii")

    def has_changed(self, index: int) -> bool:
        """Return False: arguments are the suite's own."""
        return False

    def encode_result(self, result: Any) -> dict[str, Any]:
        """Return an encoded result; if results aren't compared, only whether it raised."""
        if self.is_compared or type(result) is Raised:
            return super().encode_result(result)
        return {"result": None}


class Iterated:
    """The items of an iterator that was returned.

    items: the items
    """

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        self.items = items


def read_case(data: bytes) -> Any:
    """Decode the arguments of a call; what is plain, or JSON without a tag, needs no decoding."""
    if data[:1] == _FIRST:
        case = packing.unpack_plain(data)
        if type(case) is tuple:
            return case
    elif pickled_calls.is_pickled_input(data):
        return pickled_calls.load_input(data)
    else:
        case = _read_json(data.decode("ascii"))
        if _TAG not in data:
            return case["args"], case["kwargs"]
    return pickled_calls.decode_call(case)


def read_input(data: bytes) -> Any:
    """Return the arguments of a call as `codec` encodes them."""
    return packing.unpack_case(data) if data[:1] == _FIRST else _read_json(data.decode("ascii"))


def is_own_copy(data: bytes) -> bool:
    """Return whether packing the decoded arguments gives these bytes again.

    Sets may come in another order, and arrays are not packed alike.
    """
    return packing.is_plain_case(data) and not any(map(data.__contains__, _SETS))


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


def close_turn(batch: CallBatch) -> bytes:
    """Return the summary of a turn."""
    digest = packing.digest(batch.encode_results())
    summary: bytes = packing.pack_summary(digest, len(batch.results), batch.exhausting_s)
    return summary


def load_suite(requests: Any, number: int, job: dict[str, Any]) -> None:
    """Open a benchmark of a suite, and serve requests from there; raises if that fails."""
    output = ImportOutput()
    output.__enter__()

    def begin(subject: Any) -> None:
        output.__exit__()
        report = {"files": call_worker.list_files(), "most_calls": subject.most_calls}
        _collect()
        _freeze()
        requests.reply(b"L", number, codec.dump_encoded(report).encode("ascii"))
        serve(requests, SuiteBatch(subject, job))

    unit = job["suite"]
    if unit["kind"] == "pytest":
        suite_units.open_pytest(unit, begin)
    else:
        begin(suite_units.open_asv(unit))


def main() -> None:
    """Serve requests until the channel is closed."""
    requests = frames.RequestChannel(int(os.environ.pop("FAIRTRIAL_CHANNEL")))
    _keep.append(layout.shift_addresses("FAIRTRIAL_LAYOUT"))
    requests.reply(b"H", 0)
    call_worker.hide_harness()
    serve(requests, None)


def serve(requests: Any, batch: Any) -> None:
    """Serve requests until the channel is closed, which ends this process."""
    while True:
        letter, number, payload = requests.receive()
        answer = b""
        if letter == b"G":
            batch.run()
        elif letter == b"I":
            batch.load_inputs(payload)
        elif letter == b"C":
            answer = close_turn(batch)
        elif letter == b"V":
            answer = batch.list_values()
        elif letter == b"L":
            try:
                job = _read_json(payload.decode("ascii"))
                if "suite" in job:
                    load_suite(requests, number, job)
                with ImportOutput():
                    batch = CallBatch(job)
                answer = codec.dump_encoded({"files": call_worker.list_files()}).encode("ascii")
                _collect()
                _freeze()
            except suite_units.UnitError as error:
                answer = codec.dump_encoded({"failed": str(error)}).encode("ascii")
            except BaseException as error:
                report = {"failed": codec.encode_raised(error), "traceback": format_error(error)}
                answer = codec.dump_encoded(report).encode("ascii")
        requests.reply(letter, number, answer)


if __name__ == "__main__":
    main()
