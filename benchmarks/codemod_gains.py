"""Time each transformation of the offline proposer on one typical function.

    python benchmarks/codemod_gains.py

Prints, for each transformation, the time of the function before divided by the time after: the best
CPU time of several alternating runs in one process. It shows whether a transformation gains at all,
not what it gains elsewhere; an optimization measures that in fresh processes.
"""

from __future__ import annotations

import sys
import textwrap
import time
import timeit
from typing import Any

from fairtrial_codemod.catalog import CATALOG, transform

ROUNDS = 7
WORDS = [f"word {number % 70}" for number in range(200)]
NUMBERS = [(number * 7919) % 1009 for number in range(200)]
TABLE = {word: number for number, word in enumerate(WORDS)}
GRAPH = {number: [number + 1, number + 2] for number in range(300)}

# transformation -> (source of f, its arguments)
PROGRAMS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "sort": (
        """
        def f(xs):
            xs = list(xs)
            for i in range(len(xs)):
                for j in range(len(xs) - i - 1):
                    if xs[j] > xs[j + 1]:
                        xs[j], xs[j + 1] = xs[j + 1], xs[j]
            return xs
        """,
        (NUMBERS,),
    ),
    "cache": (
        "def f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)\n",
        (18,),
    ),
    "growing_set": (
        """
        def f(xs):
            seen = []
            for x in xs:
                if x not in seen:
                    seen.append(x)
            return seen
        """,
        (WORDS,),
    ),
    "lookup_set": (
        "def f(xs, row):\n    return [x for x in xs if x in row['tags']]\n",
        (WORDS, {"tags": WORDS[:70]}),
    ),
    "scan_group": (
        """
        def f(xs, rows):
            out = []
            for x in xs:
                for word, number in rows:
                    if word == x:
                        out.append(number)
            return out
        """,
        (WORDS[:70], [(word, number) for number, word in enumerate(WORDS)]),
    ),
    "scan_index": ("def f(xs):\n    return [xs.count(x) for x in xs]\n", (WORDS,)),
    "hoist": (
        """
        def f(xs):
            i = 0
            while i < len(xs):
                i += 1
            return i
        """,
        (NUMBERS,),
    ),
    "deque": (
        """
        def f(n):
            queue = list(range(n))
            total = 0
            while queue:
                total += queue.pop(0)
            return total
        """,
        (5000,),
    ),
    "append": (
        """
        def f(xs):
            out = []
            for x in xs:
                out = out + [x]
            return out
        """,
        (NUMBERS,),
    ),
    "prepend": (
        """
        def f(graph):
            seen, order = set(), []
            def visit(node):
                if node not in seen:
                    seen.add(node)
                    for other in graph.get(node, ()):
                        visit(other)
                    order.insert(0, node)
            for node in graph:
                visit(node)
            return order
        """,
        (GRAPH,),
    ),
    "inline": (
        """
        def f(text):
            def is_vowel(char):
                return char in "aeiou"
            return [char for char in text if is_vowel(char)]
        """,
        ("some words of a text " * 9,),
    ),
    "join": (
        """
        def f(xs):
            text = ""
            for x in xs:
                text = x + text
            return text
        """,
        (WORDS,),
    ),
    "module_set": (
        """
        _NAMES = ("one", "two", "three", "four", "five", "six")
        def f(xs):
            return [x in _NAMES for x in xs]
        """,
        (WORDS,),
    ),
    "pattern": (
        'import re\ndef f(xs):\n    return [re.search("[0-4]", x) for x in xs]\n',
        (WORDS,),
    ),
    "pattern_cache": (
        "import re\ndef f(xs, rule):\n    return [re.search(rule, x) for x in xs]\n",
        (WORDS, "[0-4]"),
    ),
    "module_constant": (
        """
        def f(x):
            names = {"one": 1, "two": 2, "three": 3, "four": 4}
            return names.get(x)
        """,
        ("two",),
    ),
    "min_max": ("def f(xs):\n    return [min(x, 500) for x in xs]\n", (NUMBERS,)),
    "listing": ("def f(xs):\n    return ','.join(str(x) for x in xs)\n", (NUMBERS,)),
    "constant_set": (
        "def f(xs):\n    return [x == 'a' or x == 'b' or x == 'c' for x in xs]\n",
        (WORDS,),
    ),
    "ruff": (
        """
        def f(xs):
            out = []
            for x in xs:
                out.append(x * 2)
            return out
        """,
        (NUMBERS,),
    ),
}


def measure(name: str) -> float:
    """Return how many times as fast a transformation makes its program.

    Raises `ValueError` if the transformation doesn't apply or changes the result.
    """
    text, arguments = PROGRAMS[name]
    text = textwrap.dedent(text)
    applied = transform(text, name)
    functions = []
    for source in (text, applied.text):
        names: dict[str, Any] = {}
        exec(source, names)
        functions.append(names["f"])
    before, after = functions
    if not applied.notes or repr(before(*arguments)) != repr(after(*arguments)):
        raise ValueError(f"{name} doesn't apply, or changes the result")
    if name == "cache":  # each run begins without results
        names["_f_results"].clear()
        clear = names["_f_results"].clear
    else:
        clear = _do_nothing
    once = timeit.Timer(lambda: before(*arguments), timer=time.process_time)
    number = max(1, once.autorange()[0] // 10)
    times: list[list[float]] = [[], []]
    for _ in range(ROUNDS):
        for function, taken in zip(functions, times, strict=True):
            timer = timeit.Timer(
                lambda f=function: (clear(), f(*arguments)), timer=time.process_time
            )
            taken.append(timer.timeit(number))
    return min(times[0]) / min(times[1])


def _do_nothing() -> None:
    """Take the place of a function that empties a cache."""


def main() -> int:
    """Print the table; return 1 if a transformation doesn't gain."""
    print("| transformation | times as fast |\n|---|---|")
    lowest = 1.0
    for transformation in CATALOG:
        ratio = measure(transformation.name)
        lowest = min(lowest, ratio)
        print(f"| `{transformation.name}` | {ratio:.2f} |", flush=True)
    return int(lowest < 1)


if __name__ == "__main__":
    sys.exit(main())
