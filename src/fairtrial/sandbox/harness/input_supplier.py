"""Makes inputs for timed workers on request, on the trusted base.

Run by path in the project's Python, with the base and the problem's input maker. Replies to ``M``
(make; JSON with seed, first, count) with one JSON line for each input, or with the mistake.
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

from _fairtrial_harness import codec, frames, input_maker  # type: ignore[import-not-found]  # noqa: E402


def main() -> None:
    """Load the maker on the first request, and make inputs until the channel is closed."""
    job = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    requests = frames.RequestChannel(int(os.environ.pop("FAIRTRIAL_CHANNEL")))
    requests.reply(b"H", 0)
    make: Any = None
    while True:
        letter, number, payload = requests.receive()
        try:
            make = make or input_maker.load_maker(job["file"], job["function"])
            answer = make_inputs(make, json.loads(payload), codec.Caps(*job["caps"]))
        except input_maker.MakerError as error:
            answer = codec.dump_encoded({"mistake": str(error), "traceback": ""})
        except BaseException as error:
            report = {
                "mistake": f"{type(error).__name__}: {error}",
                "traceback": input_maker.format_traceback(),
            }
            answer = codec.dump_encoded(report)
        requests.reply(letter, number, answer.encode("ascii"))


def make_inputs(make: Any, order: Any, caps: Any) -> str:
    """Return the requested inputs, one JSON line each; each has its own seed."""
    lines = []
    for number in range(order["first"], order["first"] + order["count"]):
        rng = random.Random("{}/{}".format(order["seed"], number))
        lines.append(codec.dump_encoded(input_maker.encode_input(make(rng), caps)))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
