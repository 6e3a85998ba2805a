"""Count for how many everyday slow functions the offline proposer finds something faster.

    python benchmarks/codemod_coverage.py [--only NAME ...] [--show]

The 50 functions in `codemod_functions` were written before their author had read what the
transformations match. To each function all transformations are applied together, and one at a
time. The results are compared on inputs of four sizes; then each version and the original take
turns in one process, and the best version is printed. "Faster" means a median ratio of CPU times
of at least 1.05 in each third of the rounds.
"""

from __future__ import annotations

import argparse
import copy
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from fairtrial_codemod.catalog import CATALOG, transform

FOLDER = Path(__file__).parent / "codemod_functions"
ROUNDS = 9
LEAST_GAIN = 1.05
SAMPLE_S = 0.02
Arguments = tuple[Any, ...]
_RANDOM = random.Random(7)


def _numbers(count: int, below: int) -> list[int]:
    return [_RANDOM.randrange(below) for _ in range(count)]


def _words(count: int, kinds: int) -> list[str]:
    return [f"word{_RANDOM.randrange(kinds)}" for _ in range(count)]


def _graph(count: int) -> dict[int, list[int]]:
    return {
        node: sorted({_RANDOM.randrange(node + 1, count) for _ in range(3)})
        if node + 1 < count
        else []
        for node in range(count)
    }


def _matrix(rows: int, columns: int) -> list[list[int]]:
    return [_numbers(columns, 100) for _ in range(rows)]


def make_inputs(scale: int) -> dict[str, Arguments]:
    """Return the arguments of each function; `scale` 1 is for timing, a larger one for checks."""
    size = 300 // scale
    graph = _graph(size)
    people = [{"name": f"n{i}", "city": f"c{_RANDOM.randrange(20)}"} for i in range(size)]
    users = [{"id": i, "name": f"n{i}"} for i in range(size)]
    orders = [{"number": i, "customer_id": _RANDOM.randrange(size)} for i in range(size)]
    weights = {a: [(b, _RANDOM.randrange(1, 9)) for b in graph[a]] for a in graph}
    text = " ".join(_words(size, 60))
    return {
        "bubble_sort": (_numbers(size // 2, 1000),),
        "deduplicate": (_numbers(size, 200),),
        "running_maximum": (_numbers(size, 1000),),
        "prefix_sums": (_numbers(size, 1000),),
        "two_sum": ([*range(size)], 2 * size - 5),
        "flatten": (_matrix(size, 4),),
        "longest_run": ([i // 7 for i in range(size)],),
        "has_duplicates": ([*range(size // 2)],),
        "transpose": (_matrix(size // 10 + 1, 30),),
        "multiply": (_matrix(size // 15 + 1, size // 15 + 1), _matrix(size // 15 + 1, 20)),
        "moving_average": (_numbers(size, 100), 10),
        "intersect": (_numbers(size, 400), _numbers(size, 400)),
        "difference": (_numbers(size, 400), _numbers(size, 400)),
        "reverse": (_numbers(size * 10, 100),),
        "serve_queue": ([(f"job{i}", _RANDOM.randrange(1, 4)) for i in range(size * 10)],),
        "mode": (_numbers(size, 50),),
        "ranks": (_numbers(size, 1000),),
        "medians_of_prefixes": (_numbers(size, 1000),),
        "pig_latin": (" ".join(["apple", "tree", "olive", "stone"] * (size // 3)),),
        "reverse_text": ("some text" * size,),
        "word_frequency": (text,),
        "group_anagrams": (_words(size, 60),),
        "caesar": ("attack at dawn " * (size // 5), 3),
        "remove_stop_words": ("the cat and a dog sat on an old mat " * (size // 8),),
        "parse_log": ([f"10.0.0.{i % 9} GET /a {200 + i % 3}" for i in range(size)],),
        "to_csv": (_matrix(size // 5, 12),),
        "is_palindrome": ("A man, a plan, a canal: Panama " * (size // 20),),
        "first_unique": ("abcdefgh" * size + "z",),
        "levenshtein": ("kitten", "sitting"[: 8 - scale]),
        "common_tags": ([{"tags": _words(size // 2, 500)} for _ in range(5)],),
        "join_orders": (orders, users),
        "find_names": (_numbers(size, size * 2), users),
        "group_by_city": (people,),
        "total_by_category": ([(p["city"], 3) for p in people],),
        "topological_sort": (graph,),
        "breadth_first": (graph, 0),
        "count_paths": ([], 7, 6),
        "cheapest_route": (weights, 0),
        "reachable_pairs": ([(a, b) for a in graph for b in graph[a]], [*graph]),
        "normalize": ([[*range(i, i + 30)] for i in range(size // 10 + 1)],),
        "missing_keys": ([{"id": i, "a": 1, "b": 2} for i in range(size)], ["a", "b", "c"]),
        "is_prime": (9973,),
        "primes_below": (size * 2,),
        "fibonacci": (17,),
        "divisors": (5040 // scale,),
        "standard_deviation": (_numbers(size, 100),),
        "happy_numbers": (size,),
        "perfect_squares": (_numbers(size, 10**6),),
        "histogram": (_numbers(size, 1000), 20),
        "pascal_triangle": (12,),
    }


@cache
def _compile(text: str) -> CodeType:
    return compile(text, "module.py", "exec")


def load(text: str, name: str) -> Callable[..., Any]:
    """Return a function of a source."""
    namespace: dict[str, Any] = {}
    exec(_compile(text), namespace)
    function: Callable[..., Any] = namespace[name]
    return function


def list_versions(text: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield the recipes that change a function, and the changed module."""

    def apply(names: list[str]) -> tuple[str, str]:
        new, used = text, []
        for transformation in names:
            applied = transform(new, transformation)
            if any(scope.partition(".")[0] == name for scope in applied.scopes):
                # Only this function may change.
                only = frozenset(s for s in applied.scopes if s.partition(".")[0] == name)
                new = transform(new, transformation, only).text
                used.append(transformation)
        return "+".join(used), new

    everything = [transformation.name for transformation in CATALOG]
    seen = {text}
    for names in (everything, *([single] for single in everything)):
        label, new = apply(names)
        if new not in seen:
            seen.add(new)
            yield label, new


def is_right(
    before: Callable[..., Any],
    after: Callable[..., Any],
    name: str,
    scales: Sequence[int] = (1, 4, 20, 60),
) -> bool:
    """Return whether both give the same results, and leave the same arguments, on a few inputs."""
    for scale in scales:
        arguments = make_inputs(scale)[name]
        ours, theirs = copy.deepcopy(arguments), copy.deepcopy(arguments)
        if repr(_call(before, ours)) != repr(_call(after, theirs)) or repr(ours) != repr(theirs):
            return False
    return True


def _call(function: Callable[..., Any], arguments: Arguments) -> object:
    try:
        return function(*arguments)
    except Exception as error:  # an error is a result, too
        return type(error)


def compare(before: str, after: str, name: str) -> float:
    """Return the time of a function in one source by that in another: the least of the medians of
    three thirds of the rounds.
    """
    arguments = make_inputs(1)[name]
    calls = min(100, max(1, round(SAMPLE_S / _time(before, name, arguments, 1))))
    ratios = []
    for number in range(ROUNDS):
        pair = (before, after) if number % 2 else (after, before)
        seconds = {text: _time(text, name, arguments, calls) for text in pair}
        ratios.append(seconds[before] / seconds[after])
    return min(statistics.median(ratios[third::3]) for third in range(3))


def _time(text: str, name: str, arguments: Arguments, calls: int) -> float:
    """Return the CPU time of some calls; each has a fresh module, so that none finds the results
    of another.
    """
    seconds = 0.0
    for function in [load(text, name) for _ in range(calls)]:
        began_s = time.process_time()
        function(*arguments)
        seconds += time.process_time() - began_s
    return seconds


def main() -> int:
    """Try all functions, and print a line for each and the totals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="names of functions")
    parser.add_argument("--show", action="store_true", help="print the best version")
    options = parser.parse_args()
    counts = {"faster": 0, "no faster": 0, "nothing proposed": 0, "wrong": 0}
    sources = {path.stem: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.py"))}
    for name in options.only or make_inputs(1):
        text = next(text for text in sources.values() if f"\ndef {name}(" in text)
        before = load(text, name)
        gains = []
        kind = "nothing proposed"
        for label, new in list_versions(text, name):
            after = load(new, name)
            if not is_right(before, after, name):
                kind = "wrong"
                print(f"{name}: wrong by {label}")
                break
            gains.append((compare(text, new, name), label, new))
        if gains and kind != "wrong":
            best, label, new = max(gains)
            kind = "faster" if best >= LEAST_GAIN else "no faster"
            print(f"| `{name}` | `{label}` | {best:.2f} |", flush=True)
            if options.show:
                print(new[new.index(f"def {name}(") :].partition("\n\n\n")[0])
        else:
            print(f"| `{name}` | {kind} | |", flush=True)
        counts[kind] += 1
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
