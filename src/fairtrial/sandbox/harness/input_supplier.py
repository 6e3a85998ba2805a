"""Makes inputs for whoever is timed, as many as are asked for: the trusted side.

Run by path in the project's Python, with the base and the problem's input makers. Replies to ``M``
(make; JSON with seed, first, count) with one JSON line for each input, or with what is wrong.
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

from _fairtrial_harness import codec, frames, input_maker  # type: ignore[import-not-found]  # noqa: E402


def main() -> None:
    """Load the maker once, then make what is asked for."""
    job = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    requests = frames.Requests(int(os.environ.pop("FAIRTRIAL_CHANNEL")))
    requests.reply(b"H", 0)
    make: Any = None
    while True:
        letter, number, payload = requests.receive()
        try:
            make = make or input_maker.load(job["file"], job["function"])
            answer = supply(make, json.loads(payload), codec.Caps(*job["caps"]))
        except input_maker.MakerError as error:
            answer = codec.dump({"mistake": str(error), "traceback": ""})
        except BaseException as stop:
            told = {"mistake": f"{type(stop).__name__}: {stop}", "traceback": input_maker.tell()}
            answer = codec.dump(told)
        requests.reply(letter, number, answer.encode("ascii"))


def supply(make: Any, order: Any, caps: Any) -> str:
    """The inputs that were asked for; each has a seed of its own."""
    lines = []
    for number in range(order["first"], order["first"] + order["count"]):
        rng = random.Random("{}/{}".format(order["seed"], number))
        lines.append(codec.dump(input_maker.write(make(rng), caps)))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
