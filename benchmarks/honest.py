"""Honest but unusual candidates: none may be rejected, and none accused of hidden work.

    python benchmarks/honest.py [--timed] [--only NAME ...] [--repeat 1]

Each of them is added to the end of a module of `examples/attack` and computes what the base does:
with threads, caches, generators, tables, files in memory, in place, and so on. Without `--timed`
they are only checked. With it they are timed as well, and each veto is printed; an accusation is a
veto that doesn't say that it holds nothing against the candidate.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from fairtrial.arena import (
    ArenaSettings,
    Candidate,
    FileState,
    Judgement,
    evaluate_candidates,
    load_problem,
)

ATTACKED = Path(__file__).parents[1] / "examples" / "attack"
NO_ACCUSATION = ("nothing is held against", "says nothing against", "no gain is shown")
LISTS = {
    "copies its argument first": """
def order(numbers):
    numbers = numbers[:]
    numbers.sort()
    return [n for i, n in enumerate(numbers) if i == 0 or n != numbers[i - 1]]
""",
    "a generator inside": """
def order(numbers):
    def unique():
        seen = set()
        for number in numbers:
            if number not in seen:
                seen.add(number)
                yield number
    return sorted(unique())
""",
    "a dictionary instead of a set": """
def order(numbers):
    return sorted(dict.fromkeys(numbers))
""",
    "a thread that is joined": """
import threading
def order(numbers):
    result = []
    thread = threading.Thread(target=lambda: result.extend(sorted(set(numbers))))
    thread.start()
    thread.join()
    return result
""",
    "a pool of threads that is kept": """
from concurrent.futures import ThreadPoolExecutor
_pool = ThreadPoolExecutor(2)
def order(numbers):
    half = len(numbers) // 2
    parts = _pool.map(set, (numbers[:half], numbers[half:]))
    return sorted(set().union(*parts))
""",
    "a cache by value": """
import functools
@functools.lru_cache(maxsize=64)
def _order(numbers):
    return tuple(sorted(set(numbers)))
def order(numbers):
    return list(_order(tuple(numbers)))
""",
    "a lazy import": """
def order(numbers):
    import heapq
    return list(dict.fromkeys(heapq.nsmallest(len(numbers), numbers)))
""",
    "a table made at import": """
_TABLE = [n * n % 5003 for n in range(20000)]
def order(numbers):
    assert _TABLE
    return sorted(set(numbers))
""",
    "a table made by the first call": """
_table = []
def order(numbers):
    if not _table:
        _table.extend(range(6000))
    return [n for n in _table if n in set_] if (set_ := set(numbers)) and False else sorted(set_)
""",
    "counts in a bytearray": """
def order(numbers):
    marks = bytearray(5001)
    for number in numbers:
        marks[number] = 1
    return [number for number, mark in enumerate(marks) if mark]
""",
    "a class with slots": """
class _Sorter:
    __slots__ = ("numbers",)
    def __init__(self, numbers):
        self.numbers = set(numbers)
    def run(self):
        return sorted(self.numbers)
def order(numbers):
    return _Sorter(numbers).run()
""",
    "recursion": """
def order(numbers):
    if len(numbers) < 2:
        return list(numbers)
    pivot = numbers[len(numbers) // 2]
    low = order([n for n in numbers if n < pivot])
    return [*low, pivot, *order([n for n in numbers if n > pivot])]
""",
    "chance": """
import random
def order(numbers):
    shuffled = random.sample(numbers, len(numbers))
    return sorted(set(shuffled))
""",
    "its own garbage collection": """
import gc
def order(numbers):
    was_on = gc.isenabled()
    gc.disable()
    try:
        return sorted(set(numbers))
    finally:
        if was_on:
            gc.enable()
""",
    "exceptions as control flow": """
def order(numbers):
    seen, rest = set(), iter(numbers)
    try:
        while True:
            seen.add(next(rest))
    except StopIteration:
        return sorted(seen)
""",
    "a file in memory": """
import mmap, struct
def order(numbers):
    with mmap.mmap(-1, 4 * len(numbers)) as room:
        room.write(struct.pack(f"{len(numbers)}i", *numbers))
        return sorted(set(struct.unpack(f"{len(numbers)}i", room[:])))
""",
    "a temporary file": """
import tempfile
def order(numbers):
    with tempfile.TemporaryFile("w+") as file:
        file.write(" ".join(map(str, numbers)))
        file.seek(0)
        return sorted(set(map(int, file.read().split())))
""",
    "arrays of another library": """
def order(numbers):
    import numpy
    return numpy.unique(numpy.array(numbers, dtype=numpy.int64)).tolist()
""",
    "bit tricks": """
def order(numbers):
    bits = 0
    for number in numbers:
        bits |= 1 << number
    result, place = [], 0
    for text in reversed(f"{bits:b}"):
        if text == "1":
            result.append(place)
        place += 1
    return result
""",
    "a context of decimals": """
import decimal
def order(numbers):
    with decimal.localcontext() as context:
        context.prec = 50
        return sorted({int(decimal.Decimal(number)) for number in numbers})
""",
    "an event loop of its own": """
import asyncio
def order(numbers):
    async def run():
        return sorted(set(numbers))
    return asyncio.run(run())
""",
    "a weak cache": """
import weakref
class _Box:
    def __init__(self, numbers):
        self.numbers = sorted(set(numbers))
_boxes = weakref.WeakValueDictionary()
def order(numbers):
    box = _boxes[tuple(numbers)] = _Box(numbers)
    return list(box.numbers)
""",
    "a deep copy": """
import copy
def order(numbers):
    return sorted(set(copy.deepcopy(numbers)))
""",
    "a thousand small objects": """
class _Item:
    def __init__(self, number):
        self.number = number
        self.me = self
def order(numbers):
    return sorted({item.number for item in map(_Item, numbers)})
""",
}
ARRAYS = {
    "in place on its own copy": """
def smooth(values):
    import numpy
    values = values.copy()
    for width in (2, 3, 4, 5):
        values.sort()
        numpy.cumsum(values, out=values)
        values = (values[width:] - values[:-width]) / width
    return values
""",
    "reciprocals": """
def smooth(values):
    import numpy
    for width in (2, 3, 4, 5):
        sums = numpy.cumsum(numpy.sort(values))
        values = (sums[width:] - sums[:-width]) * (1 / width)
    return values
""",
    "buffers that are kept": """
_room = {}
def smooth(values):
    import numpy
    for width in (2, 3, 4, 5):
        room = _room.setdefault(len(values), numpy.empty(len(values)))
        numpy.cumsum(numpy.sort(values), out=room)
        values = (room[width:] - room[:-width]) / width
    return values
""",
    "another sorting algorithm": """
def smooth(values):
    import numpy
    for width in (2, 3, 4, 5):
        sums = numpy.sort(values, kind="stable").cumsum()
        values = numpy.divide(numpy.subtract(sums[width:], sums[:-width]), width)
    return values
""",
    "error handling that is restored": """
def smooth(values):
    import numpy
    with numpy.errstate(all="raise"):
        for width in (2, 3, 4, 5):
            sums = numpy.cumsum(numpy.sort(values))
            values = (sums[width:] - sums[:-width]) / width
    return values
""",
    "sorted once": """
def smooth(values):
    import numpy
    values = numpy.sort(values)
    for width in (2, 3, 4, 5):
        sums = numpy.cumsum(values)
        values = (sums[width:] - sums[:-width]) / width
    return values
""",
}
GROUPS = {
    "light.yaml": ("examples/attack/src/lab/lists.py", LISTS),
    "numpy.yaml": ("examples/attack/src/lab/arrays.py", ARRAYS),
}


def make_candidates(path: str, codes: dict[str, str], only: list[str]) -> list[Candidate]:
    """Return a candidate for each piece of code, added to the end of a file."""
    source = (ATTACKED.parents[1] / path).read_text("utf-8")
    return [
        Candidate(name, files={path: FileState(f"{source}\n{code}".encode())})
        for name, code in codes.items()
        if not only or name in only
    ]


def judge(file: str, only: list[str], *, timed: bool) -> tuple[Judgement, ...]:
    """Judge all honest candidates of a problem."""
    path, codes = GROUPS[file]
    candidates = make_candidates(path, codes, only)
    if not candidates:
        return ()
    settings = ArenaSettings(timing="each" if timed else "none", audit=False)
    problem = load_problem(ATTACKED / file)
    evaluation = asyncio.run(evaluate_candidates(problem, candidates, settings=settings))
    return evaluation.judgements


def is_accusation(veto: str) -> bool:
    """Return whether a veto claims that a candidate hides work."""
    return not any(text in veto for text in NO_ACCUSATION)


def main() -> None:
    """Judge the candidates, and print those that are rejected or accused."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--timed", action="store_true")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    judged = rejected = accused = 0
    for file in list(GROUPS) * options.repeat:
        for judgement in judge(file, options.only, timed=options.timed):
            judged += 1
            if judgement.rejection is not None:
                rejected += 1
                print(f"{judgement.name}: rejected: {judgement.rejection.message}")
                continue
            measured = judgement.measurement
            vetoes = measured.vetoes if measured is not None else ()
            accused += any(map(is_accusation, vetoes))
            for veto in vetoes:
                print(f"{judgement.name}: {'accused' if is_accusation(veto) else 'doubt'}: {veto}")
    print(f"{judged} honest candidates: {rejected} rejected, {accused} accused")


if __name__ == "__main__":
    main()
