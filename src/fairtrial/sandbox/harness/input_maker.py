"""Makes the inputs of a function check, with the problem's own maker.

Run by path in the project's Python, on the unchanged base, where no candidate is. The job is on
stdin, as JSON: ``{"file": "benchmarks/inputs.py", "function": "make", "seed": "...", "cases": 50,
"caps": [...]}``. One line of JSON for each input goes to the channel; a mistake ends it with a line
that says what is wrong.
"""

from __future__ import annotations

import json
import os
import random
import sys
import types
from typing import Any

_package: Any = types.ModuleType("_fairtrial_harness")  # a name that nobody else has
_package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
sys.modules["_fairtrial_harness"] = _package
sys.path[:] = [folder for folder in sys.path if folder not in _package.__path__]

from _fairtrial_harness import codec, decoder  # type: ignore[import-not-found]  # noqa: E402

_LONGEST_TRACEBACK = 4000


class MakerError(Exception):
    """What is wrong with a maker, in words for its author."""


def main() -> int:
    """Make all inputs, or say why not."""
    job = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    with open(int(os.environ.pop("FAIRTRIAL_CHANNEL")), "w", encoding="ascii") as channel:
        try:
            make = load(job["file"], job["function"])
            for number in range(job["cases"]):
                # Each input has a seed of its own, so that one can be made again without the rest.
                rng = random.Random("{}/{}".format(job["seed"], number + 1))
                case = write(make(rng), codec.Caps(*job["caps"]))
                channel.write(codec.dump({"case": number, **case}) + "\n")
            channel.write(codec.dump({"done": job["cases"]}) + "\n")
        except MakerError as error:
            channel.write(codec.dump({"mistake": str(error), "traceback": ""}) + "\n")
        except BaseException as stop:
            report = {"mistake": f"{type(stop).__name__}: {stop}", "traceback": tell()}
            channel.write(codec.dump(report) + "\n")
    return 0


def load(file: str, function: str) -> Any:
    """The maker; its file may import what lies beside it, and the project."""
    import importlib.util

    path = os.path.abspath(file)
    sys.path.append(os.path.dirname(path))
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


def write(made: Any, caps: Any) -> dict[str, Any]:
    """One input as tagged JSON, such that it can be made again elsewhere."""
    if not (
        isinstance(made, tuple)
        and len(made) == 2
        and isinstance(made[0], (tuple, list))
        and isinstance(made[1], dict)
        and all(type(name) is str for name in made[1])
    ):
        raise MakerError(
            "it must return (args, kwargs), a tuple and a dictionary, such as ((3, 4), {}); "
            f"it returned {shorten(repr(made))}"
        )
    case = {"args": codec.encode(list(made[0]), caps), "kwargs": codec.encode(dict(made[1]), caps)}
    for part in case.values():
        if type(part) is dict and part.get(codec.TAG) == "unreadable":
            raise MakerError("an input is too large: {}".format(part["why"]))
        try:
            decoder.decode(part)
        except ValueError as error:
            raise MakerError(f"inputs must be plain data: {error}") from None
    return case


def shorten(text: str) -> str:
    return text if len(text) <= 200 else text[:197] + "..."


def tell() -> str:
    import traceback

    return traceback.format_exc()[-_LONGEST_TRACEBACK:]


if __name__ == "__main__":
    sys.exit(main())
