"""Honest candidates for a long computation and for a function that prints.

Each computes what the base does, in its own way.
"""

WORKS = {
    "a while loop": """
def work(numbers):
    results = []
    for number in numbers:
        left = 150
        while left:
            number = (number * 1103515245 + 12345) % MODULUS
            left -= 1
        results.append(number)
    return results
""",
    "unsigned numbers of C": """
import ctypes
def work(numbers):
    results = []
    for number in numbers:
        state = ctypes.c_uint32(number)
        for _ in range(150):
            state.value = state.value * 1103515245 + 12345
        results.append(state.value % MODULUS)
    return results
""",
    "an object with a state": """
class _Generator:
    __slots__ = ("state",)
    def __init__(self, state):
        self.state = state
    def step(self):
        self.state = (self.state * 1103515245 + 12345) % MODULUS
def work(numbers):
    results = []
    for number in numbers:
        generator = _Generator(number)
        for _ in range(150):
            generator.step()
        results.append(generator.state)
    return results
""",
    "accumulate": """
import itertools
def work(numbers):
    def step(number, _):
        return (number * 1103515245 + 12345) % MODULUS
    results = []
    for number in numbers:
        *_, last = itertools.accumulate(range(150), step, initial=number)
        results.append(last)
    return results
""",
    "a coroutine for each number": """
import asyncio
async def _last(number):
    for _ in range(150):
        number = (number * 1103515245 + 12345) % MODULUS
    return number
def work(numbers):
    async def run():
        return list(await asyncio.gather(*map(_last, numbers)))
    return asyncio.run(run())
""",
    "a mask instead of a remainder": """
def work(numbers):
    results = []
    for number in numbers:
        for _ in range(150):
            number = (number * 1103515245 + 12345) & 2147483647
        results.append(number)
    return results
""",
    "one step of 150": """
_FACTOR, _ADDED = 1, 0
for _ in range(150):
    _FACTOR, _ADDED = _FACTOR * 1103515245 % MODULUS, (_ADDED * 1103515245 + 12345) % MODULUS
def work(numbers):
    return [(number * _FACTOR + _ADDED) % MODULUS for number in numbers]
""",
    "steps by powers": """
def _power(count):
    factor, added = 1, 0
    one, more = 1103515245, 12345
    while count:
        if count & 1:
            factor, added = factor * one % MODULUS, (added * one + more) % MODULUS
        one, more = one * one % MODULUS, (more * one + more) % MODULUS
        count >>= 1
    return factor, added
def work(numbers):
    factor, added = _power(150)
    return [(number * factor + added) % MODULUS for number in numbers]
""",
    "columns": """
def work(numbers):
    results = list(numbers)
    for _ in range(150):
        results = [(number * 1103515245 + 12345) % MODULUS for number in results]
    return results
""",
    "numpy for all numbers": """
def work(numbers):
    import numpy
    values = numpy.array(numbers, dtype=numpy.uint64)
    for _ in range(150):
        values = (values * numpy.uint64(1103515245) + numpy.uint64(12345)) & numpy.uint64(2**31 - 1)
    return values.tolist()
""",
    "a generator of steps": """
def _steps(number):
    while True:
        number = (number * 1103515245 + 12345) % MODULUS
        yield number
def work(numbers):
    import itertools
    return [next(itertools.islice(_steps(number), 149, None)) for number in numbers]
""",
    "a cache of steps": """
import functools
@functools.lru_cache(maxsize=4096)
def _last(number):
    for _ in range(150):
        number = (number * 1103515245 + 12345) % MODULUS
    return number
def work(numbers):
    return [_last(number) for number in numbers]
""",
    "workers in threads": """
from concurrent.futures import ThreadPoolExecutor
def _last(number):
    for _ in range(150):
        number = (number * 1103515245 + 12345) % MODULUS
    return number
def work(numbers):
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(_last, numbers))
""",
    "loops that are unrolled": """
def work(numbers):
    results = []
    for number in numbers:
        for _ in range(50):
            number = (number * 1103515245 + 12345) % MODULUS
            number = (number * 1103515245 + 12345) % MODULUS
            number = (number * 1103515245 + 12345) % MODULUS
        results.append(number)
    return results
""",
}
PRINTS = {
    "one write": """
import sys
def show(words):
    lines = [
        f"{number:5} {word.ljust(20, '.')} {sum(map(ord, word)):6}\\n"
        for number, word in enumerate(sorted(words, key=lambda word: word[::-1]))
    ]
    sys.stdout.write("".join(lines))
    return len(words)
""",
    "print with separators": """
def show(words):
    ordered = sorted(words, key=lambda word: word[::-1])
    print(*(f"{i:5} {w.ljust(20, '.')} {sum(map(ord, w)):6}" for i, w in enumerate(ordered)),
          sep="\\n", end="\\n" if ordered else "")
    return len(words)
""",
    "a text in memory": """
import io
def show(words):
    room = io.StringIO()
    for number, word in enumerate(sorted(words, key=lambda word: word[::-1])):
        room.write("%5d %s %6d\\n" % (number, word.ljust(20, "."), sum(word.encode())))
    print(room.getvalue(), end="")
    return len(words)
""",
    "flushed lines": """
def show(words):
    for number, word in enumerate(sorted(words, key=lambda word: word[::-1])):
        print(f"{number:5} {word:.<20} {sum(map(ord, word)):6}", flush=True)
    return len(words)
""",
    "bytes": """
import sys
def show(words):
    sys.stdout.flush()
    for number, word in enumerate(sorted(words, key=lambda word: word[::-1])):
        text = f"{number:5} {word.ljust(20, '.')} {sum(map(ord, word)):6}\\n"
        sys.stdout.buffer.write(text.encode())
    sys.stdout.buffer.flush()
    return len(words)
""",
    "sums by a table": """
_CODES = {chr(code): code for code in range(128)}
def show(words):
    for number, word in enumerate(sorted(words, key=lambda word: word[::-1])):
        print(f"{number:5} {word.ljust(20, '.')} {sum(_CODES[c] for c in word):6}")
    return len(words)
""",
}
