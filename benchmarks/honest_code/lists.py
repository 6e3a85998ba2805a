"""Honest candidates for a function that orders numbers.

Each computes what the base does, in its own way.
"""

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
