"""Makes inputs for timed workers on request, on the trusted base.

Run by path in the project's Python, with the base and the problem's input maker. Replies to ``M``
(make; JSON with seed, first, count) with the inputs, joined as in `packing`, or with the mistake.
If ``writes_files`` is set in the job, an input is a folder of files: ``{"files": {path: base64}}``.
"""

from __future__ import annotations

import binascii
import json
import os
import pathlib
import random
import shutil
import sys
import tempfile
import types
from typing import Any

_package: Any = types.ModuleType("_fairtrial_harness")  # a unique name
_package.__path__ = [os.path.dirname(os.path.abspath(__file__))]
sys.modules["_fairtrial_harness"] = _package
sys.path[:] = [folder for folder in sys.path if folder not in _package.__path__]

from _fairtrial_harness import (  # type: ignore[import-not-found]  # noqa: E402
    codec,
    frames,
    input_maker,
    packing,
    pickled_calls,
)

_MOST_BYTES = 32 * 2**20
_holds_objects: list[bool] = []
"""Not empty once an input held objects."""


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
            kind = make_files if job["writes_files"] else make_arguments
            answer = make_inputs(make, kind, json.loads(payload), codec.Caps(*job["caps"]))
        except input_maker.MakerError as error:
            answer = codec.dump_encoded({"mistake": str(error), "traceback": ""}).encode("ascii")
        except BaseException as error:
            report = {
                "mistake": f"{type(error).__name__}: {error}",
                "traceback": input_maker.format_traceback(),
            }
            answer = codec.dump_encoded(report).encode("ascii")
        requests.reply(letter, number, answer)


def make_inputs(make: Any, kind: Any, order: Any, caps: Any) -> bytes:
    """Return the requested inputs, joined; each has its own seed."""
    inputs = []
    for number in range(order["first"], order["first"] + order["count"]):
        rng = random.Random("{}/{}".format(order["seed"], number))
        inputs.append(kind(make, rng, caps))
    joined: bytes = packing.join_inputs(inputs)
    return joined


def make_arguments(make: Any, rng: random.Random, caps: Any) -> Any:
    """Return the arguments of one call: packed if they are plain or arrays, pickled if they hold
    other objects, else as JSON."""
    made = make(rng)
    if input_maker.is_input(made):
        packed = packing.pack_plain((list(made[0]), dict(made[1])))
        if packed is not None and len(packed) <= caps.size:
            return packed
        if _holds_objects:
            return input_maker.pickle_input(made, caps)
    case = input_maker.encode_input(made, caps)
    if pickled_calls.PICKLED in case:
        _holds_objects.append(True)  # the next ones probably hold some, too
        return input_maker.pickle_input(made, caps)
    return packing.pack_case(case) or codec.dump_encoded(case).encode("ascii")


def make_files(make: Any, rng: random.Random, caps: Any) -> Any:
    """Have files written to a new folder; return JSON of their contents in base64, by path.

    Raises `MakerError` if there are none, or too much.
    """
    folder = pathlib.Path(tempfile.mkdtemp(prefix="inputs-"))
    try:
        make(rng, folder)
        files, size = {}, 0
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                content = path.read_bytes()
                size += len(content)
                if size > _MOST_BYTES:
                    most = f"{_MOST_BYTES // 2**20} MB"
                    raise input_maker.MakerError(f"its files take more than {most}")
                text = binascii.b2a_base64(content, newline=False).decode("ascii")
                files[path.relative_to(folder).as_posix()] = text
    finally:
        shutil.rmtree(str(folder), ignore_errors=True)
    if not files:
        raise input_maker.MakerError("it wrote no file to the folder that it got")
    return codec.dump_encoded({"files": files}).encode("ascii")


if __name__ == "__main__":
    main()
