"""A recorder of calls: a decorator that a copy of the base's code gets on chosen functions.

It writes to the folder that $FAIRTRIAL_RECORDING names, one file for each process, one JSON object
a line:

    {"target": number, "module": name, "test": id of the pytest test, or ""}   # who reached it
    {"target": .., "key": text, "args": .., "kwargs": .., "seconds": .., "result" or "raises": ..}
    {"target": .., "total": calls, "seconds": .., "keys": {key: [calls, s]}, "left": {why: calls}}

Arguments are encoded before the call. Not every call is: of those with arguments of the same types
and about the same sizes the first ones, then the 64th, 128th, ... The last line of a file with
`total` counts. It must run on Python 3.8.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
import time
import types
from typing import Any, Callable

_package: Any = types.ModuleType("_fairtrial_recorder_harness")  # a unique name
_package.__path__ = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
sys.modules["_fairtrial_recorder_harness"] = _package

from _fairtrial_recorder_harness import codec, pickled_calls  # type: ignore[import-not-found]  # noqa: E402

FIRST = 24
"""How many calls of each kind are recorded before they are thinned out."""
MOST, MOST_BYTES = 600, 24 * 2**20
"""How many calls of a function are recorded in one process, and their size in total."""
CAPS = codec.Caps(60, 100000, 2 * 2**20)
FLUSH_S = 0.5
_now, _getpid, _open, _write = time.perf_counter, os.getpid, os.open, os.write
_FOLDER = os.environ.get("FAIRTRIAL_RECORDING", "")
_local = threading.local()
_lock = threading.Lock()


class RecordFile:
    """The file of this process; forked ones get their own."""

    def __init__(self) -> None:
        self.owner, self.number = -1, -1

    def write(self, line: dict[str, Any]) -> None:
        """Append one line; does nothing without a folder."""
        if not _FOLDER:
            return
        try:
            with _lock:
                if self.owner != _getpid():
                    self.owner = _getpid()
                    path = os.path.join(_FOLDER, f"{self.owner}-{time.time_ns()}.jsonl")
                    self.number = _open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
                _write(self.number, codec.dump_encoded(line).encode("ascii") + b"\n")
        except OSError:
            return  # a test has closed the descriptor, or the disk is full: recording isn't vital


_file = RecordFile()


class Site:
    """One recorded function, and what is known of its calls."""

    def __init__(self, number: int, function: Any, module: str, owner: str) -> None:
        self.number, self.owner = number, owner
        self.module = getattr(function, "__module__", "") or ""
        self.import_name = module if self.module == "__main__" else ""
        self.total, self.seconds, self.recorded, self.size = 0, 0.0, 0, 0
        self.keys: dict[str, list[Any]] = {}
        self.left: dict[str, int] = {}
        self.tests: set[str] = set()
        self.seen: set[int] = set()
        self.written = 0.0
        atexit.register(self.sum_up)

    def begin(self, args: Any, kwargs: Any) -> Any:
        """Note a call; return its encoded arguments and kind if it is to be recorded."""
        self.total += 1
        own_class = self.owner and getattr(args[0], "__qualname__", "") == self.owner
        args = args[1:] if self.owner else args
        test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
        if test not in self.tests:
            self.tests.add(test)
            _file.write({"target": self.number, "module": self.module, "test": test})
        key = "; ".join(
            [_describe(value, 2) for value in args]
            + [f"{name}={_describe(value, 2)}" for name, value in kwargs.items()]
        )[:300]
        counts = self.keys.get(key)
        if counts is None:
            if len(self.keys) >= 2000:
                key = "others"
            counts = self.keys.setdefault(key, [0, 0.0])
        counts[0] += 1
        number = counts[0]
        is_wanted = number <= FIRST or number & (number - 1) == 0
        if not is_wanted or self.recorded >= MOST or self.size >= MOST_BYTES:
            return key, None
        if self.owner and not own_class:
            self.leave_out(f"it is called on a subclass of {self.owner}")
            return key, None
        if self.import_name:
            _name_script(self.import_name)
        return key, self.encode(args, kwargs)

    def encode(self, args: Any, kwargs: Any) -> Any:
        """Return encoded arguments; None, and the reason counted, if they can't be made again."""
        if any(hasattr(type(value), "__next__") for value in (*args, *kwargs.values())):
            return self.leave_out("an argument is an iterator, which can be used only once")
        try:
            case = pickled_calls.encode_call(args, kwargs, CAPS)
        except pickled_calls.UnusableError as error:
            return self.leave_out(str(error))
        text = codec.dump_encoded(case)
        if hash(text) in self.seen:
            return None
        self.seen.add(hash(text))
        self.size += len(text)
        return case

    def leave_out(self, why: str) -> None:
        """Count a call that can't be recorded."""
        why = why[:200]
        if len(self.left) < 50 or why in self.left:
            self.left[why] = self.left.get(why, 0) + 1

    def end(self, noted: Any, seconds: float, outcome: dict[str, Any]) -> None:
        """Count the time of a call, and write it if it is recorded."""
        key, case = noted
        self.keys[key][1] += seconds
        self.seconds += seconds
        if case is not None:
            self.recorded += 1
            _file.write({"target": self.number, "key": key, **case, "seconds": seconds, **outcome})
        if _now() - self.written > FLUSH_S:
            self.sum_up()

    def sum_up(self) -> None:
        """Write the counts so far."""
        self.written = _now()
        if self.total:
            counts = {"total": self.total, "seconds": self.seconds}
            _file.write({"target": self.number, **counts, "keys": self.keys, "left": self.left})


def _describe(value: Any, depth: int) -> str:
    """Return a few words on a value's type and size: equal for calls of one kind."""
    kind = type(value)
    name = kind.__name__
    if value is None or kind is bool:
        return str(value)
    if kind is int:
        return f"int{'-' if value < 0 else ''}{value.bit_length() // 4}"
    if kind is float:
        return "float"
    if kind in (str, bytes, list, tuple, set, frozenset, dict):
        size = len(value)
        inner = ""
        if depth and size and kind not in (str, bytes):
            inner = "[" + _describe(next(iter(value)), depth - 1) + "]"
            if kind is dict:
                inner += "[" + _describe(next(iter(value.values())), depth - 1) + "]"
        exact = size if size < 4 else f"2^{size.bit_length()}"
        return f"{name}{exact}{inner}"
    return name


def _name_script(name: str) -> None:
    """Give what a script defines the name by which candidates import the file.

    Their objects and results then have the same types. A script's own module is `__main__`.
    """
    script = sys.modules["__main__"]
    sys.modules.setdefault(name, script)
    todo = list(vars(script).values())
    while todo:
        value = todo.pop()
        if isinstance(value, (type, types.FunctionType)) and value.__module__ == "__main__":
            value.__module__ = name
            if isinstance(value, type):
                todo += vars(value).values()


def record(number: int, module: str = "", owner: str = "") -> Callable[[Any], Any]:
    """Return a decorator that records the calls of a function as those of target `number`.

    module: the name by which candidates import the function's file
    owner: the class of a class method, whose first argument isn't recorded
    """

    def decorate(function: Any) -> Any:
        if isinstance(function, (type, property)) or not callable(function):
            return function
        site = Site(number, function, module, owner)

        def recording(*args: Any, **kwargs: Any) -> Any:
            under_way = _local.__dict__.setdefault("under_way", set())
            if number in under_way or "encoding" in under_way:
                return function(*args, **kwargs)
            noted = None
            under_way.add(number)
            try:
                noted = _guarded(under_way, site.begin, args, kwargs)
                began = _now()
                try:
                    result = function(*args, **kwargs)
                except BaseException as error:
                    seconds = _now() - began
                    if noted is not None and isinstance(error, Exception):
                        raised = {"raises": codec.encode_raised(error, CAPS)}
                        _guarded(under_way, site.end, noted, seconds, raised)
                    raise
                seconds = _now() - began
                if noted is not None:
                    has_case = noted[1] is not None
                    outcome = _guarded(under_way, _encode_result, result) if has_case else {}
                    _guarded(under_way, site.end, noted, seconds, outcome or {})
                return result
            finally:
                under_way.discard(number)

        return _dress(recording, function)

    return decorate


def _guarded(under_way: set[Any], work: Callable[..., Any], *args: Any) -> Any:
    """Do the recorder's own work, during which nothing is recorded; None if it fails."""
    under_way.add("encoding")
    try:
        return work(*args)
    except Exception:
        return None
    finally:
        under_way.discard("encoding")


def _encode_result(result: Any) -> dict[str, Any]:
    """Return the encoded result, unless reading it would use it up."""
    kind = type(result)
    if any(hasattr(kind, name) for name in ("__next__", "__await__", "__anext__")):
        return {}
    return {"result": codec.encode(result, CAPS, exhausts=False)}


def _dress(recording: Any, function: Any) -> Any:
    """Make the wrapper look like the function: name, signature, attributes such as cache_clear."""
    functools.update_wrapper(recording, function)
    for name in dir(function):
        if not name.startswith("__"):
            try:
                setattr(recording, name, getattr(function, name))
            except Exception:
                continue
    return recording
