"""Arguments of calls that aren't plain data: pickled by trusted processes, rebuilt in workers.

An encoded call is ``{"args": [...], "kwargs": {...}}``; with ``"pickled": base64`` its arguments
are made from that, and ``args`` and ``kwargs`` only say what they consist of. Pickles come from
input makers and recorded calls alone: no process loads one that a candidate made.
"""

from __future__ import annotations

import _pickle
import binascii
import builtins
import io
import struct
from typing import Any

from . import codec, decoder, packing
from .library_values import TAG

globals()["__builtins__"] = dict(vars(builtins))  # candidates may replace the process's own

PICKLED = "pickled"
"""The key of the pickled arguments in an encoded call."""
PROTOCOL = 4
"""The version of pickles, which Python 3.8 and later read."""
_SIZE = struct.Struct(">I")
_MOST, _LONGEST = 4, 40
_OUT_OF_REACH = ("__main__", "_fairtrial_inputs")
"""Modules that workers can't import: a script, and an input maker."""
_buffer, _loads, _dumps = io.BytesIO, _pickle.loads, _pickle.dumps
_from_base64, _to_base64 = binascii.a2b_base64, binascii.b2a_base64


class UnusableError(Exception):
    """Arguments can't be passed on; the message says why."""


class _NameCheckingUnpickler(_pickle.Unpickler):
    """Refuses classes that workers can't import."""

    def find_class(self, module: str, name: str) -> Any:
        """Called for each class and function."""
        if module in _OUT_OF_REACH:
            where = "a script" if module == "__main__" else "the file of the input maker"
            raise UnusableError(
                f"{name} is defined in {where}, which candidates can't import: define it in a "
                "module of the project, or make it in a `prepare` step"
            )
        return super().find_class(module, name)


def encode_call(args: Any, kwargs: Any, caps: Any) -> dict[str, Any]:
    """Return an encoded call; its arguments are pickled if they aren't plain data.

    Raises `UnusableError` if they are too large, or can't be pickled.
    """
    case = {
        "args": codec.encode(list(args), caps, exhausts=False),
        "kwargs": codec.encode(dict(kwargs), caps, exhausts=False),
    }
    try:
        for part in case.values():
            if type(part) is dict and part.get(TAG) == "unreadable":
                raise UnusableError("it is too large, or can't be read: {}".format(part["why"]))
            decoder.decode(part)
        return case
    except ValueError:
        pass
    if _find_iterator(case):
        raise UnusableError(
            "it holds an iterator beside objects, which can be used only once: pass a list, or "
            "make the iterator in a `prepare` step"
        )
    data = pickle_arguments(args, kwargs)
    check_pickle(data)
    return {**case, PICKLED: _to_base64(data, newline=False).decode("ascii")}


def pickle_arguments(args: Any, kwargs: Any) -> bytes:
    """Return the arguments of a call as bytes; raises `UnusableError` if they can't be pickled."""
    try:
        return _dumps((list(args), dict(kwargs)), PROTOCOL)
    except Exception as error:
        named = [(f"argument {number}", item) for number, item in enumerate(args, start=1)]
        named += [(f"argument {name}", item) for name, item in kwargs.items()]
        for name, item in named:
            try:
                _dumps(item, PROTOCOL)
            except Exception as why:
                what = f"{name}, of type {type(item).__name__},"
                raise UnusableError(f"{what} can't be pickled: {why}") from None
        raise UnusableError(f"it can't be pickled: {error}") from None


def check_pickle(data: bytes) -> None:
    """Load pickled arguments where they were made; raises `UnusableError` if that fails."""
    try:
        _NameCheckingUnpickler(_buffer(data)).load()
    except UnusableError:
        raise
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        raise UnusableError(f"it can't be made again from its pickle: {text}") from None


def decode_call(case: dict[str, Any]) -> tuple[Any, Any]:
    """Return the arguments of an encoded call; raises an exception if they can't be made."""
    if PICKLED in case:
        args, kwargs = load_arguments(_from_base64(case[PICKLED]))
        return args, kwargs
    return decoder.decode(case["args"]), decoder.decode(case["kwargs"])


def load_arguments(data: bytes) -> Any:
    """Return the (args, kwargs) that `pickle_arguments` wrote, made of this process's classes."""
    try:
        return _loads(data)
    except AttributeError:
        return _load_into_slots(data)


def pack_input(args: Any, kwargs: Any) -> bytes:
    """Return the input of a timed call: its pickled arguments, after a summary of them.

    Raises `UnusableError` if they can't be pickled.
    """
    described = {
        "args": [_summarize(item) for item in args],
        "kwargs": {name: _summarize(item) for name, item in kwargs.items()},
    }
    summary = codec.dump_encoded(described).encode("ascii")
    return b"".join(
        (packing.PICKLED_FIRST, _SIZE.pack(len(summary)), summary, pickle_arguments(args, kwargs))
    )


def is_pickled_input(data: bytes) -> bool:
    """Return whether `pack_input` made an input."""
    return data[:1] == packing.PICKLED_FIRST


def read_summary(data: bytes) -> Any:
    """Return the summary of an input as an encoded call, for messages; nothing is unpickled."""
    first = 1 + _SIZE.size
    (size,) = _SIZE.unpack_from(data, 1)
    return codec.load_encoded(data[first : first + size].decode("ascii"))


def load_input(data: bytes) -> Any:
    """Return the arguments of a call from its input, as (args, kwargs)."""
    (size,) = _SIZE.unpack_from(data, 1)
    return load_arguments(data[1 + _SIZE.size + size :])


def _summarize(value: Any) -> Any:
    """Return a text of limited size, as an encoded value: the type, and a few attributes."""
    attributes = getattr(value, "__dict__", None)
    if type(attributes) is not dict or isinstance(value, type):
        return {TAG: "shown", "text": _name_briefly(value)}
    parts = [f"{name}={_name_briefly(item)}" for name, item in list(attributes.items())[:_MOST]]
    more = [", ..."] if len(attributes) > _MOST else []
    return {TAG: "shown", "text": type(value).__name__ + "(" + ", ".join(parts + more) + ")"}


def _name_briefly(value: Any) -> str:
    if value is None or type(value) in (bool, int, float, str, bytes):
        text = repr(value if type(value) is not int or abs(value) < 2**64 else "a large integer")
        return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
    name = type(value).__name__
    sized = isinstance(value, (list, tuple, dict, set, frozenset))
    return f"{name} of {len(value):,}" if sized else name


def _load_into_slots(data: bytes) -> Any:
    """Load a pickle with attributes of instances whose classes have slots for them by now."""
    import pickle

    unpickler: Any = pickle._Unpickler

    def build(loading: Any) -> None:
        state, instance = loading.stack[-1], loading.stack[-2]
        fills = type(state) is dict and not hasattr(instance, "__dict__")
        if not fills or hasattr(instance, "__setstate__"):
            unpickler.load_build(loading)
            return
        loading.stack.pop()
        for name, value in state.items():
            object.__setattr__(instance, name, value)

    loading = unpickler(_buffer(data))
    loading.dispatch = {**unpickler.dispatch, pickle.BUILD[0]: build}
    return loading.load()


def _find_iterator(node: Any) -> bool:
    if type(node) is dict:
        return node.get(TAG) == "iterator" or any(map(_find_iterator, node.values()))
    return type(node) is list and any(map(_find_iterator, node))
