"""Honest candidates for the same function, by the standard library.

Each computes what the base does, in its own way.
"""

MORE_LISTS = {
    "insertion by bisection": """
import bisect
def order(numbers):
    result = []
    for number in numbers:
        place = bisect.bisect_left(result, number)
        if place == len(result) or result[place] != number:
            result.insert(place, number)
    return result
""",
    "a heap": """
import heapq
def order(numbers):
    heap = list(set(numbers))
    heapq.heapify(heap)
    return [heapq.heappop(heap) for _ in range(len(heap))]
""",
    "groups of equal neighbors": """
import itertools
def order(numbers):
    return [key for key, _ in itertools.groupby(sorted(numbers))]
""",
    "a counter": """
from collections import Counter
def order(numbers):
    return sorted(Counter(numbers))
""",
    "an array of the standard library": """
from array import array
def order(numbers):
    marks = array("b", bytes(5001))
    for number in numbers:
        marks[number] = 1
    return [number for number, mark in enumerate(marks) if mark]
""",
    "a memoryview": """
def order(numbers):
    room = bytearray(5001)
    view = memoryview(room)
    for number in numbers:
        view[number] = 1
    return [number for number in range(5001) if view[number]]
""",
    "compress": """
import itertools
def order(numbers):
    marks = bytearray(5001)
    for number in numbers:
        marks[number] = 1
    return list(itertools.compress(range(5001), marks))
""",
    "dataclasses with slots": """
from dataclasses import dataclass
@dataclass(slots=True, order=True)
class _Entry:
    number: int
def order(numbers):
    return [entry.number for entry in sorted(_Entry(number) for number in set(numbers))]
""",
    "named tuples": """
from typing import NamedTuple
class _Entry(NamedTuple):
    number: int
    place: int
def order(numbers):
    entries = sorted(_Entry(number, place) for place, number in enumerate(numbers))
    return [e.number for i, e in enumerate(entries) if not i or entries[i - 1].number != e.number]
""",
    "a pattern compiled at import": """
import re
_NUMBER = re.compile(r"\\d+")
def order(numbers):
    return sorted(set(map(int, _NUMBER.findall(repr(numbers)))))
""",
    "text as storage": """
def order(numbers):
    return [ord(letter) for letter in sorted(set("".join(map(chr, numbers))))]
""",
    "keys of equal width": """
def order(numbers):
    return [int(text) for text in sorted({f"{number:05d}" for number in numbers})]
""",
    "digits in buckets": """
def order(numbers):
    items = list(set(numbers))
    for shift in (0, 4, 8, 12):
        buckets = [[] for _ in range(16)]
        for item in items:
            buckets[(item >> shift) & 15].append(item)
        items = [item for bucket in buckets for item in bucket]
    return items
""",
    "a merge sort of its own": """
def _merge(one, other):
    result, i, j = [], 0, 0
    while i < len(one) and j < len(other):
        if one[i] < other[j]:
            result.append(one[i]); i += 1
        elif other[j] < one[i]:
            result.append(other[j]); j += 1
        else:
            result.append(one[i]); i += 1; j += 1
    return result + one[i:] + other[j:]
def order(numbers):
    runs = [[number] for number in numbers] or [[]]
    while len(runs) > 1:
        pairs = [_merge(*runs[i:i + 2]) for i in range(0, len(runs) - 1, 2)]
        runs = pairs + runs[len(pairs) * 2:]
    return runs[0]
""",
    "a deque": """
from collections import deque
def order(numbers):
    waiting, seen = deque(numbers), set()
    while waiting:
        seen.add(waiting.popleft())
    return sorted(seen)
""",
    "reduce": """
import functools
def order(numbers):
    return sorted(functools.reduce(lambda seen, number: seen | {number}, numbers[:99], set())
                  | set(numbers[99:]))
""",
    "a cache within the call": """
import functools
def order(numbers):
    @functools.lru_cache(maxsize=None)
    def key(number):
        return number * 2
    return sorted(set(numbers), key=key)
""",
    "a partial and a method": """
import functools
def order(numbers):
    seen = set()
    add = functools.partial(set.add, seen)
    for number in numbers:
        add(number)
    return sorted(seen)
""",
    "a match statement": """
def order(numbers):
    match numbers:
        case []:
            return []
        case [only]:
            return [only]
        case _:
            return sorted({*numbers})
""",
    "a large table that is freed": """
def order(numbers):
    table = [None] * 200000
    for number in numbers:
        table[number] = number
    return [number for number in table[:5001] if number is not None]
""",
    "a context manager": """
from contextlib import contextmanager
@contextmanager
def _collecting():
    yield set()
def order(numbers):
    with _collecting() as seen:
        seen.update(numbers)
        return sorted(seen)
""",
    "binary records": """
import struct
def order(numbers):
    data = struct.pack(f"<{len(numbers)}H", *numbers)
    return sorted({number for (number,) in struct.iter_unpack("<H", data)})
""",
    "a table in a database": """
import sqlite3
def order(numbers):
    with sqlite3.connect(":memory:") as connection:
        connection.execute("create table t (n integer)")
        connection.executemany("insert into t values (?)", [(number,) for number in numbers])
        return [row[0] for row in connection.execute("select distinct n from t order by n")]
""",
    "JSON and back": """
import json
def order(numbers):
    return json.loads(json.dumps(sorted(set(numbers))))
""",
    "a queue between threads": """
import queue, threading
def order(numbers):
    waiting, seen = queue.SimpleQueue(), set()
    def take():
        while (number := waiting.get()) is not None:
            seen.add(number)
    thread = threading.Thread(target=take)
    thread.start()
    for number in numbers:
        waiting.put(number)
    waiting.put(None)
    thread.join()
    return sorted(seen)
""",
    "a class with a descriptor": """
class _Once:
    def __get__(self, owner, kind):
        owner.__dict__["seen"] = value = set(owner.numbers)
        return value
class _Sorter:
    seen = _Once()
    def __init__(self, numbers):
        self.numbers = numbers
def order(numbers):
    return sorted(_Sorter(numbers).seen)
""",
    "an iterator class": """
class _Unique:
    def __init__(self, numbers):
        self.rest, self.seen = iter(numbers), set()
    def __iter__(self):
        return self
    def __next__(self):
        for number in self.rest:
            if number not in self.seen:
                self.seen.add(number)
                return number
        raise StopIteration
def order(numbers):
    return sorted(_Unique(numbers))
""",
    "code that is generated": """
exec("def _order(numbers):\\n    return sorted({*numbers})")
order = _order
""",
    "a decorated function": """
import functools
def _checked(function):
    @functools.wraps(function)
    def call(numbers):
        result = function(numbers)
        assert len(result) <= len(numbers)
        return result
    return call
@_checked
def order(numbers):
    return sorted(set(numbers))
""",
    "log messages": """
import logging
_log = logging.getLogger(__name__)
def order(numbers):
    _log.debug("%d numbers", len(numbers))
    return sorted(set(numbers))
""",
    "a tree": """
def order(numbers):
    tree = None
    for number in numbers:
        if tree is None:
            tree = [number, None, None]
            continue
        node = tree
        while node[0] != number:
            side = 1 if number < node[0] else 2
            if node[side] is None:
                node[side] = [number, None, None]
            node = node[side]
    result, stack, node = [], [], tree
    while stack or node:
        while node:
            stack.append(node)
            node = node[1]
        node = stack.pop()
        result.append(node[0])
        node = node[2]
    return result
""",
    "compressed bytes": """
import zlib
def order(numbers):
    marks = bytearray(5001)
    for number in numbers:
        marks[number] = 1
    return [n for n, mark in enumerate(zlib.decompress(zlib.compress(bytes(marks), 1))) if mark]
""",
    "a process-wide lock": """
import threading
_lock = threading.RLock()
def order(numbers):
    with _lock:
        return sorted(set(numbers))
""",
    "a variable of the context": """
import contextvars
_seen = contextvars.ContextVar("seen")
def order(numbers):
    token = _seen.set(set(numbers))
    try:
        return sorted(_seen.get())
    finally:
        _seen.reset(token)
""",
    "warnings that are caught": """
import warnings
def order(numbers):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sorted(set(numbers))
""",
    "output that is caught": """
import contextlib, io
def order(numbers):
    room = io.StringIO()
    with contextlib.redirect_stdout(room):
        print(*set(numbers))
    return sorted(map(int, room.getvalue().split()))
""",
    "it collects its garbage": """
import gc
def order(numbers):
    result = sorted(set(numbers))
    gc.collect(0)
    return result
""",
    "it sleeps": """
import time
def order(numbers):
    time.sleep(0.0001)
    return sorted(set(numbers))
""",
    "it looks at the clock": """
import time
def order(numbers):
    began = time.perf_counter()
    result = sorted(set(numbers))
    assert time.perf_counter() >= began
    return result
""",
}
