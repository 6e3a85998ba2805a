"""The worker that is timed: calls one function whenever it is its turn.

Run by path in the project's Python, a fresh process for every session. It talks with our process on
one descriptor (`frames`), and knows neither what time it is nor whether it is the base:

- ``H``  said once, unasked: it is there
- ``L``  load the function; replies with the files that were imported, or why it can't be
- ``I``  inputs, one JSON line for each call; replies when they are made into values
- ``G``  go: call the function once with each; replies when all results are there
- ``C``  what came of it, one JSON line for each call

The function shares this process and can do with it what it likes. It is our process that holds the
clock, knows the inputs that are still to come and compares the results; and the kernel counts what
is done here before and after it is timed.
"""

from __future__ import annotations

import gc
import json
import marshal
import os
import sys
import time
import types
from typing import Any, Callable

_package: Any = types.ModuleType("_fairtrial_harness")  # a name that nobody else has
_package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
sys.modules["_fairtrial_harness"] = _package
sys.path[:] = [folder for folder in sys.path if folder not in _package.__path__]

from _fairtrial_harness import call_worker, codec, decoder, frames  # type: ignore[import-not-found]  # noqa: E402

_now = time.perf_counter
_collect, _freeze = gc.collect, gc.freeze
_read_json = json.loads
_marshal = marshal.dumps
_TAG_TEXT = codec.dump(codec.TAG)
_TAG = _TAG_TEXT.encode("ascii")
_LAZY = (types.CoroutineType, types.AsyncGeneratorType)
_NUMBERS = (type(None), bool, int, float, complex)
_FINISHED = frozenset((*_NUMBERS, str, bytes, bytearray, list, tuple, dict, set, frozenset, range))


class Raised:
    """That a call raised something."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Work:
    """The function, the inputs of its next turn, and the results of its last."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.caps = codec.Caps(*job["caps"])
        self.function: Callable[..., Any] = call_worker.find(job["function"])
        self.view = call_worker.find(job["view"]) if job["view"] else None
        self.lines: list[bytes] = []
        self.cases: list[Any] = []
        self.before: list[bytes | None] = []
        self.results: list[Any] = []
        self.going_through_s = 0.0

    def take(self, payload: bytes) -> None:
        self.lines = payload.split(b"\n") if payload else []
        self.cases = [read_case(line) for line in self.lines]
        self.before = [snapshot(case) for case in self.cases]
        self.results = []
        self.going_through_s = 0.0
        _freeze()  # every sample begins with nothing for the collector to look at

    def go(self) -> None:
        """What is timed."""
        function, keep, is_finished = self.function, self.results.append, _FINISHED.__contains__
        for args, kwargs in self.cases:
            try:
                result = function(*args, **kwargs)
                if not is_finished(type(result)):
                    result = self.go_through(result)
            except BaseException as error:
                result = Raised(error)
            keep(result)

    def go_through(self, result: Any) -> Any:
        """A result that may not be there yet is asked for all of it, while the clock runs."""
        began = _now()
        if type(result) in _LAZY:
            result = call_worker.settle(result)
        kind = type(result)
        if not (kind.__module__ == "numpy" and kind.__name__ == "ndarray"):
            if hasattr(kind, "__next__"):
                result = Iterated(list(result))
            elif hasattr(kind, "__iter__"):
                for _ in result:
                    pass
        self.going_through_s += _now() - began
        return result

    def tell(self) -> bytes:
        """The results, and arguments that are not what they were."""
        told = []
        for place, result in enumerate(self.results):
            after = self.tell_after(place)
            plain = None if self.view or after is not None else spell_plain(result)
            if plain is None:
                told.append(codec.dump({**self.tell_one(result), "after": after}))
            else:
                told.append('{"result":' + plain + ',"after":null}')
        told.append(codec.dump({"going_through_s": self.going_through_s}))
        self.cases, self.results, self.before = [], [], []
        return "\n".join(told).encode("ascii")

    def tell_after(self, place: int) -> Any:
        """The arguments after a call; None if they are as they were."""
        before = self.before[place]
        if before is not None and snapshot(self.cases[place]) == before:
            return None
        args, kwargs = self.cases[place]
        parts = {"args": args, "kwargs": kwargs}
        after = {name: codec.encode(part, self.caps) for name, part in parts.items()}
        is_same = codec.dump(after).encode("ascii") == self.lines[place]
        return None if is_same else after

    def tell_one(self, result: Any) -> dict[str, Any]:
        if type(result) is Raised:
            return {"raised": codec.encode_raised(result.error, self.caps)}
        if type(result) is Iterated:
            result = iter(result.items)
        try:
            seen = call_worker.settle(self.view(result)) if self.view else result
        except BaseException as error:
            return {"raised": codec.encode_raised(error, self.caps)}
        return {"result": codec.encode(seen, self.caps)}


class Iterated:
    """What an iterator gave."""

    __slots__ = ("items",)

    def __init__(self, items: list[Any]) -> None:
        self.items = items


def read_case(line: bytes) -> Any:
    """The arguments of a call; what has no tag in it is what it looks like."""
    case = _read_json(line)
    if _TAG not in line:
        return case["args"], case["kwargs"]
    return decoder.decode(case["args"]), decoder.decode(case["kwargs"])


def snapshot(case: Any) -> bytes | None:
    """All of a case in bytes, quickly; None for what can't be written in this way."""
    try:
        return _marshal(case, 2)  # the version whose bytes depend on values alone
    except ValueError:
        return None


def spell_plain(result: Any) -> str | None:
    """What `codec` writes of a result that JSON has all of, quickly; None for any other.

    It is such a result if reading it back gives the same, types included. (Integers beyond 2^53
    stand for themselves here, and have a tag there; base and candidate take the same way.)
    """
    before = snapshot(result)
    if before is None:
        return None
    try:
        text: str = codec.dump(result)
    except (TypeError, ValueError, RecursionError):
        return None
    is_plain = _TAG_TEXT not in text and snapshot(_read_json(text)) == before
    return text if is_plain else None


def tell(stop: BaseException) -> str:
    """The traceback from where the project's own code begins."""
    trace = stop.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename in (
        __file__,
        call_worker.__file__,
    ):
        trace = trace.tb_next
    stop.__traceback__ = trace
    return str(call_worker.tell(stop))


def main() -> None:
    """Do as asked until nobody asks any more."""
    requests = frames.Requests(int(os.environ.pop("FAIRTRIAL_CHANNEL")))
    requests.reply(b"H", 0)
    work: Any = None
    while True:
        letter, number, payload = requests.receive()
        answer = b""
        if letter == b"G":
            work.go()
        elif letter == b"I":
            work.take(payload)
        elif letter == b"C":
            answer = work.tell()
        elif letter == b"L":
            try:
                work = Work(_read_json(payload))
                answer = codec.dump({"files": call_worker.list_files()}).encode("ascii")
                _collect()
                _freeze()
            except BaseException as stop:
                told = {"failed": codec.encode_raised(stop), "traceback": tell(stop)}
                answer = codec.dump(told).encode("ascii")
        requests.reply(letter, number, answer)


if __name__ == "__main__":
    main()
