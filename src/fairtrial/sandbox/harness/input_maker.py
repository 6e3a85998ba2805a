"""Makes the inputs of a function check, with the problem's input maker.

Run by path in the project's Python, on the unchanged base. The job is on stdin, as JSON:
``{"file": "benchmarks/inputs.py", "function": "make", "seed": "...", "cases": 50, "caps": [...]}``.
One line of JSON for each input goes to the channel; a line with the mistake ends it early.
"""

from __future__ import annotations

import json
import os
import random
import sys
import types
from typing import Any

_package: Any = types.ModuleType("_fairtrial_harness")  # a unique name
_package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
sys.modules["_fairtrial_harness"] = _package
sys.path[:] = [folder for folder in sys.path if folder not in _package.__path__]

from _fairtrial_harness import (  # type: ignore[import-not-found]  # noqa: E402
    codec,
    maker_tools,
    pickled_calls,
)

_MAX_TRACEBACK_CHARS = 4000


class MakerError(Exception):
    """An input maker is wrong; the message is for its author."""


def main() -> int:
    """Make all inputs, or report the mistake."""
    job = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    with open(int(os.environ.pop("FAIRTRIAL_CHANNEL")), "w", encoding="ascii") as channel:
        try:
            make = load_maker(job["file"], job["function"])
            for number in range(job["cases"]):
                # Each input has its own seed, so that one can be made again without the others.
                rng = random.Random("{}/{}".format(job["seed"], number + 1))
                case = encode_input(make(rng), codec.Caps(*job["caps"]))
                channel.write(codec.dump_encoded({"case": number, **case}) + "\n")
            channel.write(codec.dump_encoded({"done": job["cases"]}) + "\n")
        except MakerError as error:
            channel.write(codec.dump_encoded({"mistake": str(error), "traceback": ""}) + "\n")
        except BaseException as error:
            message = f"{type(error).__name__}: {error}"
            report = {"mistake": message, "traceback": format_traceback()}
            channel.write(codec.dump_encoded(report) + "\n")
    return 0


def load_maker(file: str, function: str) -> Any:
    """Import an input maker; its file may import modules beside it, and the project.

    Raises `MakerError` if there is no such file or function.
    """
    import importlib.util

    path = os.path.abspath(file)
    sys.path.append(os.path.dirname(path))
    sys.modules.setdefault("fairtrial_makers", maker_tools)
    spec = importlib.util.spec_from_file_location("_fairtrial_inputs", path)
    if spec is None or spec.loader is None or not os.path.isfile(path):
        raise MakerError(f"there is no Python file {file}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    make = getattr(module, function, None)
    if make is None:
        raise MakerError(f"{file} has no function {function}")
    return make


def is_input(result: Any) -> bool:
    """Return whether the result of an input maker is what it should be: (args, kwargs)."""
    return (
        isinstance(result, tuple)
        and len(result) == 2
        and isinstance(result[0], (tuple, list))
        and isinstance(result[1], dict)
        and all(type(name) is str for name in result[1])
    )


def encode_input(result: Any, caps: Any) -> dict[str, Any]:
    """Encode the result of an input maker; raises `MakerError` if workers can't make it again."""
    if not is_input(result):
        raise MakerError(
            "it must return (args, kwargs), a tuple and a dictionary, such as ((3, 4), {}); "
            f"it returned {shorten(repr(result))}"
        )
    try:
        case: dict[str, Any] = pickled_calls.encode_call(*result, caps)
    except pickled_calls.UnusableError as error:
        raise MakerError(f"an input can't be passed on: {error}") from None
    return case


def pickle_input(result: Any, caps: Any) -> bytes:
    """Return the input of a timed call (see `pickled_calls`); raises `MakerError`."""
    try:
        data: bytes = pickled_calls.pack_input(*result)
    except pickled_calls.UnusableError as error:
        raise MakerError(f"an input can't be passed on: {error}") from None
    if len(data) > caps.size:
        raise MakerError(f"an input is too large: it takes more than {caps.size:,} bytes")
    return data


def shorten(text: str) -> str:
    """Cut a text to 200 characters."""
    return text if len(text) <= 200 else text[:197] + "..."


def format_traceback() -> str:
    """Return the end of the current exception's traceback."""
    import traceback

    return traceback.format_exc()[-_MAX_TRACEBACK_CHARS:]


if __name__ == "__main__":
    sys.exit(main())
