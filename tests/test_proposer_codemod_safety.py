"""Code that looks like a slow pattern and isn't: it stays as it is."""

import contextlib
import textwrap

import pytest

from fairtrial.optimize import Brief, Request, RequestKind
from fairtrial_codemod.proposer import CodemodProposer
from fairtrial_codemod.transforms.catalogue import CATALOGUE, refuse, transform

# transformation -> what must not be touched, by why
UNSAFE = {
    "heap": {
        "a min of its own": """
            def min(xs): return xs[0]
            def f(xs):
                todo = list(xs)
                while todo:
                    x = min(todo)
                    todo.remove(x)
        """,
        "the caller's list": """
            def f(todo):
                while todo:
                    x = min(todo)
                    todo.remove(x)
        """,
        "its order is used": """
            def f(xs):
                todo = list(xs)
                while todo:
                    print(todo[0])
                    x = min(todo)
                    todo.remove(x)
        """,
        "its order is returned": """
            def f(xs):
                todo = list(xs)
                while len(todo) > 2:
                    x = min(todo)
                    todo.remove(x)
                return todo
        """,
        "a closure adds to it": """
            def f(xs):
                todo = list(xs)
                def push(x): todo.append(x)
                while todo:
                    x = min(todo)
                    todo.remove(x)
                    push(x)
        """,
        "a method of it has another name": """
            def f(xs):
                todo = list(xs)
                push = todo.append
                while todo:
                    x = min(todo)
                    todo.remove(x)
                    push(x - 1)
        """,
        "heapq is something else": """
            heapq = None
            def f(xs):
                todo = list(xs)
                while todo:
                    x = min(todo)
                    todo.remove(x)
        """,
        "another list is searched": """
            def f(xs, ys):
                todo = list(xs)
                while todo:
                    x = min(ys)
                    todo.remove(x)
        """,
    },
    "ready_heap": {
        "what is ready is used otherwise": """
            def f(graph):
                waiting = {k: set(v) for k, v in graph.items()}
                while waiting:
                    ready = [k for k, v in waiting.items() if not v]
                    print(ready)
                    node = min(ready)
                    del waiting[node]
                    for needs in waiting.values():
                        needs.discard(node)
        """,
        "more is added while it runs": """
            def f(graph):
                waiting = {k: set(v) for k, v in graph.items()}
                while waiting:
                    ready = [k for k, v in waiting.items() if not v]
                    node = min(ready)
                    del waiting[node]
                    waiting[node + 100] = set()
                    for needs in waiting.values():
                        needs.discard(node)
        """,
        "sets that may be shared": """
            def f(waiting):
                while waiting:
                    ready = [k for k, v in waiting.items() if not v]
                    node = min(ready)
                    del waiting[node]
                    for needs in waiting.values():
                        needs.discard(node)
        """,
        "the last needs are read afterwards": """
            def f(graph):
                waiting = {k: set(v) for k, v in graph.items()}
                needs = None
                while waiting:
                    ready = [k for k, v in waiting.items() if not v]
                    node = min(ready)
                    del waiting[node]
                    for needs in waiting.values():
                        needs.discard(node)
                return needs
        """,
    },
    "cache": {
        "a table for all calls": """
            def f(weights, left, at):
                if at == len(weights): return 0
                if weights[at] > left: return f(weights, left, at + 1)
                return max(f(weights, left, at + 1), 1 + f(weights, left - weights[at], at + 1))
        """,
        "a table for all calls, by name": """
            def f(n, coins):
                return sum(f(n - each, coins=coins) for each in coins) if n > 0 else n == 0
        """,
        "somebody calls it with a list": """
            def f(xs, n):
                return f(xs, n - 1) + f(xs, n - 2) if n > 1 else xs == []
            def g():
                return f([1], 3)
        """,
        "it prints": "def f(n):\n    print(n)\n    return f(n - 1) + f(n - 2) if n > 1 else n",
        "it reads a global": "K = [1]\ndef f(n):\n    return f(n - 1) + f(n - 2) if n > 1 else K",
        "it gives lists": "def f(n):\n    return f(n - 1) + f(n - 2) if n > 1 else [n]",
        "it gives a list by name": """
            def f(n):
                out = []
                if n > 1:
                    out += f(n - 1)
                    out += f(n - 2)
                return out
        """,
        "it takes lists": "def f(n: list[int]):\n    return f(n[1:]) + f(n[2:]) if n else 0",
        "it changes its argument": """
            def f(n):
                n[0] = 1
                return f(n) + f(n)
        """,
        "it is a generator": "def f(n):\n    yield f(n - 1)\n    yield f(n - 2)",
        "no call comes twice": "def f(n):\n    return n * f(n - 1) if n else 1",
        "it is decorated": "@g\ndef f(n):\n    return f(n - 1) + f(n - 2) if n > 1 else n",
        "it is replaced later": """
            def f(n):
                return f(n - 1) + f(n - 2) if n > 1 else n
            f = 3
        """,
        "it calls a builtin of another name": """
            def abs(n): return print(n)
            def f(n):
                return f(n - 1) + f(abs(n) - 2) if n > 1 else n
        """,
        "type is something else": """
            type = id
            def f(n):
                return f(n - 1) + f(n - 2) if n > 1 else n
        """,
    },
    "set_beside": {
        "a parameter that may be a text": """
            def f(xs, known):
                return [x for x in xs if x in known]
        """,
        "it shrinks": """
            def f(xs):
                seen = []
                for x in xs:
                    if x not in seen: seen.append(x)
                    else: seen.remove(x)
        """,
        "somebody else may change it": """
            def f(xs):
                seen = []
                for x in xs:
                    if x not in seen:
                        g(seen, x)
        """,
        "it is changed under another name": """
            def f(xs):
                seen = []
                also = seen
                for x in xs:
                    if x not in seen:
                        also.append(x)
        """,
        "a closure changes it": """
            def f(xs):
                seen = []
                def add(x): seen.append(x)
                for x in xs:
                    if x not in seen: add(x)
        """,
        "what is added is computed": """
            def f(xs):
                seen = []
                for x in xs:
                    if x not in seen: seen.append(next(x))
        """,
        "lists of lists": """
            def f(xs):
                seen = []
                for x in xs:
                    if [x] not in seen: seen.append(x)
        """,
        "it is not in a loop": """
            def f(x):
                seen = [1, 2, x]
                return x in seen
        """,
        "the list is global": """
            def f(xs):
                global seen
                seen = []
                for x in xs:
                    if x not in seen: seen.append(x)
        """,
        "all names may be seen": """
            def f(xs):
                seen = []
                for x in xs:
                    if x not in seen: seen.append(x)
                return locals()
        """,
        "set is something else": """
            set = list
            def f(xs):
                seen = []
                for x in xs:
                    if x not in seen: seen.append(x)
        """,
    },
    "module_set": {
        "it grows": """
            KNOWN = ["a", "b", "c"]
            def f(x):
                KNOWN.append(x)
                return x in KNOWN
        """,
        "a parameter has its name": """
            KNOWN = ["a", "b", "c"]
            def f(x, KNOWN): return x in KNOWN
        """,
        "the module itself changes it": """
            KNOWN = ["a", "b", "c"]
            KNOWN += ["d"]
            def f(x): return x in KNOWN
        """,
    },
    "constant_set": {
        "too few": "def f(x):\n    return x in (1, 2)",
        "not constant": "def f(x, y):\n    return x in (1, 2, y)",
        "it may be a list": """
            def f(shown):
                if shown in ["default", "always", True]: return 1
                return list(shown)
        """,
        "it may be a table": """
            def f(shown):
                if shown in ("default", "always", "never"): return 1
                return [x for x in shown]
        """,
    },
    "key_test": {"not a test": "def f(x):\n    return x.keys(), [y for y in x.keys()]"},
    "join": {
        "a number": """
            def f(xs):
                n = 0
                for x in xs: n += x
                return n
        """,
        "it is read in the loop": """
            def f(xs):
                s = ""
                for x in xs:
                    s += x
                    if len(s) > 80:
                        return s
        """,
        "it is added to itself": """
            def f(xs):
                s = "a"
                for x in xs:
                    s += s
                return s
        """,
        "somebody catches what goes wrong": """
            def f(xs):
                s = ""
                try:
                    for x in xs:
                        s += x
                except TypeError:
                    pass
                return s
        """,
        "it may be no text": """
            def f(xs, s):
                for x in xs:
                    s += x
                return s
        """,
        "it is shared": """
            def f(xs):
                s = ""
                def show(): print(s)
                for x in xs:
                    s += x
                    show()
                return s
        """,
        "another scope's": """
            def f(xs):
                global s
                s = ""
                for x in xs:
                    s += x
        """,
    },
    "deque": {
        "it is shown": """
            def f(xs):
                todo = list(xs)
                while todo:
                    print(f"{todo}")
                    todo.pop(0)
        """,
        "it is returned": """
            def f(xs):
                todo = list(xs)
                while todo[0] > 3:
                    todo.pop(0)
                return todo
        """,
        "it is sliced": """
            def f(xs):
                todo = list(xs)
                while todo:
                    g(todo[1:])
                    todo.pop(0)
        """,
        "the caller's list": """
            def f(todo):
                while todo:
                    todo.pop(0)
        """,
        "it grows while it is gone through": """
            def f(xs):
                todo = list(xs)
                for x in todo:
                    todo.append(x)
                    todo.pop(0)
        """,
        "deque is something else": """
            from double import deque
            def f(xs):
                todo = list(xs)
                while todo:
                    todo.pop(0)
        """,
    },
    "append": {
        "the old list is still known": """
            def f(xs):
                out = []
                all = []
                for x in xs:
                    out = out + [x]
                    all.append(out)
                return all
        """,
        "the caller's list": """
            def f(out, xs):
                for x in xs:
                    out = out + [x]
                return out
        """,
        "it is gone through meanwhile": """
            def f(xs):
                out = [1]
                for x in out:
                    out = out + [x]
                    if len(out) > 9: return out
        """,
        "each is given away": """
            def f(xs):
                out = []
                for x in xs:
                    out = out + [x]
                    yield out
        """,
    },
    "pick": {
        "the last of equal ones": "def f(xs):\n    return sorted(xs, key=abs)[-1]",
        "an error is expected": """
            def f(xs):
                try: return sorted(xs)[0]
                except IndexError: return None
        """,
        "sorted is something else": "def f(xs, sorted):\n    return sorted(xs)[0]",
        "another place": "def f(xs):\n    return sorted(xs)[1], sorted(xs)[::2], sorted(xs)[:-1]",
    },
    "few": {
        "one at most": "def f(xs):\n    return sorted(xs)[:1], sorted(xs)[:0], sorted(xs)[:-2]",
        "how many isn't known": "def f(xs, n):\n    return sorted(xs)[:n], sorted(xs)[1:3]",
    },
    "hoist": {
        "there may be no text": """
            def f(items, query):
                return [it for it in items if query and query.lower() in it]
        """,
        "it need not be given": """
            def f(items, query=None):
                for it in items:
                    print(query.lower(), it)
        """,
        "it need not be given, by name": """
            def f(items, *, query=None):
                for it in items:
                    print(query.lower(), it)
        """,
        "it says that it may be missing": """
            def f(items, query: str | None):
                for it in items:
                    print(query.lower(), it)
        """,
        "there may be no list": """
            def f(items, xs):
                for i in items:
                    if xs and len(xs) > i: print(i)
        """,
        "it may be something else": """
            def f(items, xs):
                for i in items:
                    if isinstance(xs, list):
                        print(i, len(xs))
        """,
        "otherwise the round ends": """
            def f(items, xs):
                for i in items:
                    if xs is None:
                        continue
                    print(i, len(xs))
        """,
        "there is another list instead": """
            def f(items, xs):
                for i in xs or []:
                    print(i, len(xs))
        """,
        "the loop asks": """
            def f(xs):
                i = 0
                while xs and i < 3:
                    print(i, len(xs))
                    i += 1
        """,
        "what is missing is caught": """
            def f(items, xs):
                for i in items:
                    try:
                        print(i, len(xs))
                    except TypeError:
                        pass
        """,
        "one of two": """
            def f(items, xs):
                return [i + (len(xs) if xs else 0) for i in items]
        """,
        "a condition before": """
            def f(items, xs):
                return [i + len(xs) for i in items if xs is not None]
        """,
        "len is something else": "def f(xs, len):\n    return [x + len(xs) for x in xs]",
        "it grows": """
            def f(xs):
                i = 0
                while i < len(xs):
                    xs.append(i)
                    i += 1
        """,
        "it grows elsewhere": """
            def f(xs):
                i = 0
                while i < len(xs):
                    g(xs)
                    i += 1
        """,
        "it grows under another name": """
            def f(xs):
                ys = xs
                i = 0
                while i < len(xs):
                    ys.append(i)
                    i += 1
        """,
        "it grows by a method that has a name": """
            def f(xs):
                add = xs.append
                i = 0
                while i < len(xs):
                    add(i)
                    i += 1
        """,
        "it is bound in the loop": """
            def f(rows):
                for row in rows:
                    print(len(row))
        """,
        "the condition of a loop that changes it": """
            def f(xs, ys):
                while any(y > len(xs) for y in ys):
                    xs.append(1)
        """,
        "another text each time": """
            def f(words):
                for word in words:
                    print([word.lower() for word in words], word.lower())
        """,
        "there may be nothing": "def f(xs):\n    return [x + len(xs) for x in xs] if xs else []",
        "each gets a list of its own": "def f(xs):\n    return [g(list(xs)) for x in xs]",
        "a loop over something else": "def f(xs, ys):\n    return [y for y in ys if y < max(xs)]",
    },
    "lookup": {
        "the name means something else": """
            import math
            def f(xs, math):
                for x in xs: print(math.sqrt(x))
        """,
    },
    "pattern": {
        "not constant": "import re\ndef f(x, p):\n    return re.sub(p, 'a', x)",
        "re is something else": "import regex as re\ndef f(x):\n    return re.sub('a', 'b', x)",
        "re is somebody's": "import re\ndef f(x, re):\n    return re.sub('a', 'b', x)",
        "flags by a name": "import re\ndef f(x, i):\n    return re.sub('a', 'b', x, flags=i)",
    },
    "count_index": {
        "part of a text": """
            def f(text, words):
                return [text.count(word) for word in words]
        """,
        "it changes": """
            def f(xs):
                for x in xs:
                    if xs.count(x) > 1: xs.remove(x)
        """,
    },
    "match_index": {
        "the other key is computed": """
            def f(ones, others):
                return [a for a in ones for b in others if b.id == g(a)]
        """,
        "the list changes": """
            def f(ones, others):
                for a in ones:
                    for b in others:
                        if a.id == b.id:
                            others.remove(b)
        """,
        "the keys change": """
            def f(ones, others):
                for a in ones:
                    for b in others:
                        if a.id == b.id:
                            b.id = 3
        """,
        "the others matter, too": """
            def f(ones, others):
                for a in ones:
                    for b in others:
                        if a.id == b.id: print(a)
                        else: print(b)
        """,
        "one loop": """
            def f(others, a):
                for b in others:
                    if a.id == b.id: print(a)
        """,
    },
    "inner_set": {
        "others change": """
            def f(ones, others):
                for a in ones:
                    if a in [b.id for b in others]:
                        others.append(a)
        """,
        "their ids change": """
            def f(ones, others):
                for a in ones:
                    if a in [b.id for b in others]:
                        others[0].id = a
        """,
        "calls do more": """
            def f(ones, others):
                for a in ones:
                    if a in [g(b) for b in others]:
                        print(a)
        """,
        "it depends on the loop": """
            def f(ones, others):
                for a in ones:
                    if a in [b + a for b in others]:
                        print(a)
        """,
        "lists": "def f(xs, ys):\n    return [x for x in xs if x in [[y] for y in ys]]",
    },
    "running_sum": {
        "any end": "def f(xs, ys):\n    return [sum(xs[:y]) for y in ys]",
        "beyond the end": "def f(xs):\n    return [sum(xs[:i]) for i in range(len(xs) + 1)]",
        "it changes": """
            def f(xs):
                for i in range(len(xs)):
                    xs[i] = sum(xs[:i])
        """,
        "the largest of nothing": "def f(xs):\n    return [max(xs[:i]) for i in range(len(xs))]",
    },
    "square_root": {
        "the divisor is given": """
            def f(n):
                for i in range(2, n):
                    if n % i == 0:
                        return i
        """,
        "more is done": """
            def f(n):
                for i in range(2, n):
                    if n % i == 0:
                        print(i)
        """,
        "the divisor is used afterwards": """
            def f(n):
                for i in range(2, n):
                    if n % i == 0:
                        return False
                return i
        """,
    },
    "sum": {
        "the last item is used": """
            def f(xs):
                total = 0
                for x in xs:
                    total += x
                return total, x
        """,
        "it begins elsewhere": """
            def f(xs, total):
                for x in xs:
                    total += x
                return total
        """,
        "calls do more": """
            def f(xs):
                found = False
                for x in xs:
                    if g(x):
                        found = True
                return found
        """,
    },
    "enumerate": {
        "items are written": """
            def f(xs):
                for i in range(len(xs)):
                    xs[i] = xs[i] + 1
        """,
        "neighbours are read": """
            def f(xs):
                for i in range(len(xs)):
                    print(xs[i], xs[i - 1])
        """,
        "a dictionary": """
            def f():
                xs = {0: 1, 1: 3}
                for i in range(len(xs)):
                    print(xs[i])
        """,
        "the index changes": """
            def f(xs):
                for i in range(len(xs)):
                    i += 1
                    print(xs[i])
        """,
    },
}
CASES = [(name, why) for name, cases in UNSAFE.items() for why in cases]


@pytest.mark.parametrize(("name", "why"), CASES)
def test_what_may_not_be_safe_stays_as_it_is(name, why):
    text = textwrap.dedent(UNSAFE[name][why])
    assert transform(text, name).text == text


@pytest.mark.parametrize("each", CATALOGUE, ids=lambda each: each.name)
@pytest.mark.parametrize("text", ["", "x = 1\n", "def f(:\n", "\0", "def f(): s = ''\n", "é = 'ü'"])
def test_nothing_comes_of_nothing(each, text):
    assert transform(text, each.name).text == text


def test_statements_that_share_a_line_are_left_alone():
    text = "def f(xs):\n    s = ''; t = 1\n    for x in xs: s += x\n    return s\n"
    assert transform(text, "join").text == text
    text = "def f(xs):\n    s = ''\n    for x in xs: s += x\n    return s\n"
    assert transform(text, "join").text == text


def test_a_star_import_may_bring_any_name():
    text = "from numpy import *\ndef f(xs):\n    return sorted(xs)[0]\n"
    assert transform(text, "pick").text == text


def test_files_that_can_not_be_transformed_are_told():
    assert refuse("def f(:\n") == "it can't be parsed"
    assert refuse("# coding: latin-1\nx = 1\n") == "it is written in latin-1"
    assert "larger" in refuse("x = 1\n" * 100_000)
    assert refuse("# -*- coding: utf-8 -*-\nx = 1\n") is None


@pytest.mark.parametrize("depth", [200, 700, 3000])
def test_what_is_nested_too_deeply_is_left_alone(depth):
    text = "def f(xs):\n    s = ''\n    for x in xs:\n        s += x\n    return s" + " + s" * depth
    new = transform(text, "join").text
    assert new == text or "s_parts" in new


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hoist", "def f(xs, y=None):\n    for i in range(9):\n        if xs[i]: print(len(xs))\n"),
        ("hoist", "def f(xs=None):\n    for x in xs:\n        print(x, len(xs))\n"),
        ("hoist", "def f(xs=None):\n if xs is None: xs = []\n for y in 'ab':\n  print(len(xs))\n"),
        ("hoist", "def f(xs, i):\n    while i < len(xs) and xs[i] < len(xs):\n        i += 1\n"),
        ("constant_set", "def f(x, y):\n    return x.a[0] in (1, 2, 3, 4) or g(y) in [1, 2, 3]\n"),
        ("cache", "def f(a: str, n):\n    return f(a, n - 1) + f(a, n - 2) if n > 1 else a[n]\n"),
        ("cache", "def f(a, b):\n    return a and b and max(f(a[1:], b), f(a, b[1:]))\n"),
    ],
)
def test_what_is_safe_is_not_refused(name, text):
    assert transform(text, name).notes


def test_equal_numbers_of_different_types_are_remembered_apart():
    text = "def f(x, n):\n    return x if n < 1 else f(x, n - 1) + f(x, n - 2)\n"
    names = {}
    exec(transform(text, "cache").text, names)
    assert [type(names["f"](x, 5)) for x in (1, 1.0, 1)] == [int, float, int]


# transformation -> what might come out differently, by why: the source, and a call
SAME = {
    "hoist": {
        "asked when there is more": (
            """
            def f(xs, ys):
                return (x * len(ys) for x in xs)
            def go(xs, ys):
                made = f(xs, ys)
                ys.append(1)
                return list(made)
            """,
            "go([1, 2], [3])",
        ),
        "asked when it is something else": (
            """
            def f(xs, name):
                made = (x + name.lower() for x in xs)
                name = "B"
                return list(made)
            """,
            "f(['a'], 'C')",
        ),
        "asked by several, later": (
            """
            def f(xs, ys):
                made = []
                for x in xs:
                    made.append(len(ys) + y for y in range(x))
                ys.append(1)
                return [list(each) for each in made]
            """,
            "f([1, 2], [3])",
        ),
        "the list grows under the name of an attribute": (
            """
            class Queue:
                def __init__(self): self.items = []
                def fill(self, n):
                    items = self.items
                    steps = 0
                    while len(items) < n and steps < 50:
                        self.push()
                        steps += 1
                    return steps
                def push(self): self.items.append(1)
            """,
            "Queue().fill(3)",
        ),
        "errors are let pass": (
            """
            from contextlib import suppress
            def f(items, xs):
                out = []
                for i in items:
                    with suppress(TypeError):
                        out.append(i + len(xs))
                return out
            """,
            "f([1, 2], None)",
        ),
        "somebody else has what is given": (
            """
            class Queue:
                def __init__(self): self.items = []
                def wait(self, queue, n):
                    steps = 0
                    while len(queue) < n and steps < 50:
                        self.poll()
                        steps += 1
                    return steps
                def poll(self): self.items.append(1)
            queue = Queue()
            """,
            "queue.wait(queue.items, 3)",
        ),
        "a function of the module has it": (
            """
            ALL = []
            def more(n): ALL.append(n)
            def f(xs, n):
                while len(xs) < n and n < 50:
                    more(n)
                    n += 1
                    if n > 9: n = len(xs)
                return n
            """,
            "f(ALL, 5)",
        ),
        "two names for what is given": (
            """
            def f(xs, ys):
                for y in (1, 2, 3):
                    ys.append(y + len(xs))
                return ys
            """,
            "f(*[[1]] * 2)",
        ),
        "another thread adds to it": (
            """
            from time import sleep
            def f(xs, n):
                steps = 0
                while len(xs) < n and steps < 50:
                    sleep(0.1)
                    steps += 1
                return steps
            def go():
                xs = []
                globals()["sleep"] = xs.append  # as if it had done so meanwhile
                return f(xs, 3)
            """,
            "go()",
        ),
        "whoever asks changes it meanwhile": (
            """
            def f(xs):
                for i in range(3):
                    yield len(xs)
            def go():
                xs = [1]
                return [(n, xs.append(n)) for n in f(xs)]
            """,
            "go()",
        ),
    },
    "running_sum": {
        "added up when there is more": (
            """
            def f(xs):
                return (sum(xs[:i]) for i in range(len(xs)))
            def go(xs):
                made = f(xs)
                xs[0] = 10
                return list(made)
            """,
            "go([1, 2, 3])",
        ),
        "bools": (
            "def f(xs):\n    return [sum(xs[:i]) for i in range(len(xs))]\n",
            "f([True, True, False]), f([-0.0, 1.0]), f([])",
        ),
        "it grows elsewhere": (
            """
            def f(xs, grow):
                out = []
                for i in range(len(xs)):
                    grow(i)
                    out.append(sum(xs[: i + 1]))
                return out
            xs = [1, 2, 3]
            """,
            "f(xs, lambda i: xs.insert(0, i))",
        ),
    },
    "set_beside": {
        "there is never anything in it": (
            """
            def f(xs):
                none = []
                return [x for x in xs if x in none]
            """,
            "f([[1], [2]])",
        ),
        "kept for what can't be hashed": (
            """
            def f(xs):
                seen, rest = set(), []
                for x in xs:
                    try:
                        if x not in seen:
                            seen.add(x)
                    except TypeError:
                        if x not in rest:
                            rest.append(x)
                return rest
            """,
            "f([1, [2], [2], [3]])",
        ),
        "it need not be given": (
            """
            def f(xs, allowed: list = None):
                return [x for x in xs if not (allowed and x not in allowed)]
            """,
            "f([1]), f([1, 2], [2])",
        ),
        "it is asked whether there is one": (
            """
            def f(xs, allowed: list):
                if allowed is None:
                    return xs
                return [x for x in xs if x in allowed]
            """,
            "f([1], None)",
        ),
        "extended by a generator": (
            """
            def f(batches):
                seen = []
                for batch in batches:
                    fresh = (x for x in batch if x not in seen)
                    seen.extend(fresh)
                return seen
            """,
            "f([[1, 2], [2, 3], [1]])",
        ),
        "extended by map": (
            """
            def f(batches):
                seen = []
                n = 0
                for batch in batches:
                    for x in batch:
                        if x in seen:
                            n += 1
                    new = map(abs, batch)
                    seen.extend(new)
                return n
            """,
            "f([[1, 2], [2, 3], [1]])",
        ),
        "extended by what may be an iterator": (
            """
            def f(batches):
                seen = []
                n = 0
                for batch in batches:
                    n += 1 in seen
                    seen.extend(batch)
                return n
            """,
            "f([iter([1, 2]), iter([2, 3])])",
        ),
        "somebody else has the list": (
            """
            class Known:
                def __init__(self): self.all = []
                def f(self, xs, known: list):
                    return [x for x in xs if x in known or self.learn(x)]
                def learn(self, x): self.all.append(x)
            known = Known()
            """,
            "known.f([1, 1, 2, 1], known.all)",
        ),
        "rows by name": (
            """
            def f(rows):
                out = []
                for row in rows:
                    if row["a"] and row not in out:
                        out.append(row)
                return out
            """,
            "f([{'a': 2}, {'a': 2}])",
        ),
        "rows are lists, it says": (
            """
            def f(rows: list[list[int]]):
                out = []
                for row in rows:
                    if row not in out:
                        out.append(row)
                return out
            """,
            "f([[1], [1]])",
        ),
    },
    "constant_set": {
        "anything may be asked": ("def f(x):\n    return x in ('', 'a', 0)\n", "f([]), f({})"),
        "anything may be refused": (
            """
            def f(kind):
                if kind is None or kind not in ("a", "b", "c"):
                    raise ValueError(kind)
            """,
            "f([])",
        ),
        "anything may be asserted": (
            """
            def f(kind):
                assert kind in ["a", "b", "c"], kind
            """,
            "f({})",
        ),
    },
    "module_set": {
        "another module may add to it": (
            """
            NAMES = ["a", "b", "c"]
            def f(x): return x in NAMES
            def go(): globals()["NAMES"].append("d"); return f("d")
            """,
            "go()",
        ),
        "anything may be refused": (
            """
            _KINDS = ("a", "b", "c")
            def f(kind):
                if kind not in _KINDS:
                    raise ValueError(kind)
            """,
            "f([])",
        ),
        "what is looked for may be a list": (
            """
            _NAMES = ("a", "b", "c")
            def f(x):
                if x in _NAMES:
                    return 1
                return [each in _NAMES for each in x]
            """,
            "f(['a', 'd']), f('a')",
        ),
    },
    "asked_set": {
        "what is asked for could not be hashed": (
            """
            def f(xs, known, others):
                out = []
                for x in xs:
                    try:
                        out.append(known[x])
                    except (KeyError, TypeError):
                        out.append(x in others)
                return out
            """,
            "f([1, [2], [3]], {1: 1}, [2, 3])",
        ),
        "it has its own idea of what is in it": (
            """
            class Words(list):
                def __contains__(self, word): return word.lower() in list(self)
            def f(xs, known):
                return [x for x in xs if x in known]
            """,
            "f(['A', 'b', 'C'], Words(['a', 'b'])), f(['A', 'b'], ['a', 'b'])",
        ),
    },
    "place_index": {
        "looked for when there is more": (
            """
            def f(xs):
                return (x for i, x in enumerate(xs) if x not in xs[:i])
            def go(xs):
                made = f(xs)
                xs.append(4)
                return list(made)
            """,
            "go([1, 2, 1])",
        ),
    },
    "inner_set": {
        "made when there is more": (
            """
            def f(xs, ys):
                return (x for x in xs if x in [abs(y) for y in ys])
            def go(xs, ys):
                made = f(xs, ys)
                ys.append(-2)
                return list(made)
            """,
            "go([1, 2], [1])",
        ),
    },
    "accumulator": {
        "there is none if there is nothing to do": (
            """
            class A:
                def f(self, xs):
                    for x in xs:
                        self.n += x
            """,
            "A().f([])",
        ),
    },
    "pattern": {
        "no pattern with these flags": (
            """
            import re
            def f(x): return x if not x else re.match("( #)", x, re.VERBOSE)
            """,
            "f('')",
        ),
        "no flags for bytes": (
            """
            import re
            def f(x): return x if not x else re.match(b"a+", x, flags=re.I | re.UNICODE)
            """,
            "f(b'')",
        ),
    },
    "pattern_cache": {
        "explained each time": (
            """
            import contextlib, io, re
            def f(x): return re.compile(x, re.DEBUG)
            def go():
                told = io.StringIO()
                with contextlib.redirect_stdout(told):
                    f("a"), f("a")
                return told.getvalue().count("LITERAL")
            """,
            "go()",
        ),
    },
    "module_constant": {
        "a table that can't be made": (
            """
            def f(x):
                if x:
                    table = str.maketrans("ab", "c")
                    return x.translate(table)
            """,
            "f('')",
        ),
    },
    "key_test": {
        "not all that has keys looks for them": (
            """
            import sqlite3
            def f(row): return "name" in row.keys(), "name" in list(row.keys())
            def go():
                with contextlib.closing(sqlite3.connect(":memory:")) as db:
                    db.row_factory = sqlite3.Row
                    return f(db.execute("select 1 as name").fetchone())
            """,
            "go()",
        ),
        "a list is no key": (
            "def f(d: dict):\n    key = [1]\n    return key in list(d.keys())\n",
            "f({})",
        ),
    },
    "ruff": {
        "not all that has keys looks for them": (
            """
            import email.message
            def f(headers): return "to" in headers.keys()
            def go():
                headers = email.message.Message()
                headers["To"] = "you"
                return f(headers)
            """,
            "go()",
        ),
        "what is asked does something": (
            """
            def f(xs: list):
                log = []
                def g(x):
                    log.append(x)
                    return x
                return any([g(x) for x in xs]), log
            """,
            "f([1, 2, 3])",
        ),
        "what is asked is used up": (
            "def f(xs):\n    return any([x > 1 for x in xs]), list(xs)\n",
            "f(iter([1, 2, 3]))",
        ),
    },
    "sum": {
        "an iterator is used up": (
            """
            def f(it):
                found = False
                for x in it:
                    if x > 1:
                        found = True
                return found, list(it)
            """,
            "f(iter([1, 2, 3])), f([1, 2, 3])",
        ),
        "a generator does something": (
            """
            log = []
            def rows():
                for i in range(3):
                    log.append(i)
                    yield i
            def f():
                good = True
                for x in rows():
                    if not x < 1:
                        good = False
                return good, log
            """,
            "f()",
        ),
    },
    "enumerate": {
        "a dictionary may be given": (
            """
            def f(d):
                out = []
                for i in range(len(d)):
                    out.append(d[i])
                return out
            """,
            "f({0: 'a', 1: 'b'})",
        ),
        "it grows elsewhere": (
            """
            class Log:
                def __init__(self): self.lines = [1, 2]
                def f(self, lines: list):
                    for i in range(len(lines)):
                        self.add(lines[i])
                    return lines
                def add(self, line):
                    if len(self.lines) < 9: self.lines.append(line)
            log = Log()
            """,
            "log.f(log.lines)",
        ),
    },
    "lookup": {
        "it need not be there": (
            """
            import math
            def f(xs):
                out = []
                for x in xs:
                    out.append(math.nope(x) if hasattr(math, "nope") else x)
                return out
            """,
            "f([1])",
        ),
        "what is missing is caught": (
            """
            import math
            def f(xs):
                for x in xs:
                    try:
                        return math.nope(x)
                    except AttributeError:
                        return x
            """,
            "f([1]), f([])",
        ),
    },
    "pick": {
        "equal ones, and none": (
            """
            def f(xs):
                return sorted(xs)[-1], sorted(xs)[0], sorted(xs, reverse=True)[-1]
            """,
            "f([1, 1.0, True]), f([1.0, 1]), f(range(3)), f({3, 4})",
        ),
        "the first of nothing": ("def f(xs):\n    return sorted(xs)[0]\n", "f([])"),
        "the last of nothing": ("def f(xs):\n    return sorted(xs)[-1]\n", "f([])"),
        "errors are let pass": (
            """
            from contextlib import suppress
            def f(xs):
                with suppress(IndexError):
                    return sorted(xs)[0]
            """,
            "f([])",
        ),
    },
    "heap": {
        "a class says what is smaller": (
            """
            class Task:
                def __init__(self, p, n): self.p, self.n = p, n
                def __lt__(self, o): return self.p < o.p
                def __repr__(self): return self.n
            def f(xs):
                todo = list(xs)
                out = []
                while todo:
                    task = min(todo)
                    todo.remove(task)
                    out.append(task)
                return out
            """,
            "f([Task(p, n) for p, n in [(1, 'a'), (1, 'b'), (0, 'c'), (1, 'd'), (0, 'e')]])",
        ),
        "tasks of another module": (
            """
            def f(xs):
                todo = list(xs)
                out = []
                while todo:
                    task = min(todo)
                    todo.remove(task)
                    out.append(task.n)
                return out
            Task = type("Task", (), {"__init__": lambda self, p, n: self.__dict__.update(p=p, n=n),
                                     "__lt__": lambda self, o: self.p < o.p})
            """,
            "f([Task(p, n) for p, n in [(1, 'a'), (1, 'b'), (0, 'c'), (1, 'd'), (0, 'e')]])",
        ),
        "its error is the end": (
            """
            def f(xs):
                todo = list(xs)
                out = []
                try:
                    while True:
                        x = min(todo)
                        todo.remove(x)
                        out.append(x)
                except ValueError:
                    return out
            """,
            "f([2, 1])",
        ),
        "the caller waits for its error": (
            """
            def f(xs):
                todo = list(xs)
                while True:
                    x = min(todo)
                    todo.remove(x)
            """,
            "f([2, 1])",
        ),
    },
    "ready_heap": {
        "it is asked how many were ready": (
            """
            def f(graph):
                waiting = {k: set(v) for k, v in graph.items()}
                while waiting:
                    ready = [k for k, v in waiting.items() if not v]
                    node = min(ready)
                    if len(ready) > 1:
                        raise ValueError("ambiguous")
                    del waiting[node]
                    for needs in waiting.values():
                        needs.discard(node)
            """,
            "f({1: [], 2: []})",
        ),
        "their order is told": (
            """
            def f(graph):
                waiting = {k: set(v) for k, v in graph.items()}
                while waiting:
                    ready = [k for k, v in waiting.items() if not v]
                    if len(ready) > 3:
                        raise ValueError(ready)
                    node = min(ready)
                    del waiting[node]
                    for needs in waiting.values():
                        needs.discard(node)
            """,
            "f({4: [], 3: [], 1: [], 2: []})",
        ),
        "a round may end in between": (
            """
            def f(graph, later):
                waiting = {k: set(v) for k, v in graph.items()}
                out = []
                while waiting:
                    ready = [k for k, v in waiting.items() if not v]
                    node = min(ready)
                    if node in later:
                        later.remove(node)
                        continue
                    out.append(node)
                    del waiting[node]
                    for needs in waiting.values():
                        needs.discard(node)
                return out
            """,
            "f({1: [], 2: [1]}, [1])",
        ),
        "a cycle": (
            """
            def f(graph):
                waiting = {k: set(v) for k, v in graph.items()}
                while waiting:
                    ready = [k for k, v in waiting.items() if not v]
                    node = min(ready)
                    del waiting[node]
                    for needs in waiting.values():
                        needs.discard(node)
            """,
            "f({1: [2], 2: [1]})",
        ),
    },
    "cache": {
        "lists in lists": (
            """
            def f(x):
                if isinstance(x, list):
                    return sum(f(y) for y in x)
                return x
            """,
            "f([1, [2]])",
        ),
        "whatever is in it": (
            """
            def f(x):
                return x if isinstance(x, int) else sum(f(y) for y in x)
            """,
            "f([1, [2]])",
        ),
        "it goes deep": (
            """
            def f(i, j):
                if i <= 0 or j <= 0:
                    return 1
                return f(i - 1, 0) + f(i - 1, j)
            """,
            "f(700, 1)",
        ),
        "a constant is changed for a test": (
            """
            STEP = 1
            def f(n):
                return n if n < 2 else f(n - STEP) + f(n - STEP - 1)
            def go():
                first = f(5)
                globals()["STEP"] = 2
                return first, f(5)
            """,
            "go()",
        ),
        "equal numbers of different types": (
            "def f(n):\n    return n if n < 2 else f(n - 1) + f(n - 2)\n",
            "f(True), f(1), f(3.0), f(3)",
        ),
    },
    "deque": {
        "there may be none left": (
            """
            def f(xs):
                todo = list(xs)
                for _ in range(3):
                    todo.pop(0)
            """,
            "f([1, 2])",
        ),
    },
    "inner_cache": {
        "it goes deep": (
            """
            def f(xs, i, j):
                if i <= 0 or j <= 0:
                    return xs[0]
                return f(xs, i - 1, 0) + f(xs, i - 1, j)
            """,
            "f([1], 700, 1)",
        ),
        "a class of another module has a method of its own": (
            """
            class A:
                def f(self, n):
                    if n < 2:
                        return n
                    return self.f(n - 1) + self.f(n - 2)
            """,
            "type('B', (A,), {'f': lambda s, n: 100 if n == 3 else A.f(s, n)})().f(5)",
        ),
    },
    "items": {
        "a list of places": (
            "def f(perm):\n    return [perm[i] for i in perm]\n",
            "f([2, 0, 1]), f({1: 2})",
        ),
        "keys, but no items": (
            """
            import sqlite3
            def f(row): return [row[name] for name in row.keys()]
            def go():
                with contextlib.closing(sqlite3.connect(":memory:")) as db:
                    db.row_factory = sqlite3.Row
                    return f(db.execute("select 1 as name").fetchone())
            """,
            "go()",
        ),
        "it is another by then": (
            """
            def f(table: dict):
                made = (table[key] for key in table)
                table = {1: "b"}
                return list(made)
            """,
            "f({1: 'a'})",
        ),
        "who asks for keys doesn't ask for items": (
            """
            import sqlite3
            def f(row):
                if isinstance(row, dict):
                    return list(row.items())
                if hasattr(row, "keys"):
                    return [(name, row[name]) for name in row.keys()]
            def go():
                with contextlib.closing(sqlite3.connect(":memory:")) as db:
                    db.row_factory = sqlite3.Row
                    return f(db.execute("select 1 as name").fetchone())
            """,
            "go()",
        ),
    },
    "join": {
        "errors are let pass": (
            """
            from contextlib import suppress
            def f(xs):
                with suppress(TypeError):
                    s = ""
                    for x in xs:
                        s += x + ""
                return s
            """,
            "f(['a', 'b', 3])",
        ),
    },
    "prepend": {
        "errors are let pass": (
            """
            from contextlib import suppress
            def f(xs):
                with suppress(TypeError):
                    out = []
                    for x in xs:
                        out.insert(0, x + 1)
                return out
            """,
            "f([1, 2, 'a'])",
        ),
    },
    "offset": {
        "nothing is looked for behind the end": (
            """
            def f(t, i, w):
                return t[i:].startswith(w), t[i:].endswith(w), t[i:9].startswith(w)
            """,
            "[f('abc', i, w) for i in range(-5, 6) for w in ['', 'a', 'c', 'bc', (), ('', 'x')]]",
        ),
    },
    "slice_fill": {
        "by ones, behind the end": (
            """
            def f(n, step):
                flags = [True] * 3
                for j in range(0, n, step):
                    flags[j] = False
                return flags
            """,
            "f(5, 1)",
        ),
        "by twos, behind the end": (
            """
            def f(n):
                flags = [True] * 3
                for j in range(0, n, 2):
                    flags[j] = False
                return flags
            """,
            "f(5)",
        ),
        "from the end": (
            """
            def f(a, n):
                flags = [True] * n
                for j in range(a, n, 2):
                    flags[j] = False
                return flags
            """,
            "f(-3, 4)",
        ),
        "it was longer": (
            """
            def f(n):
                flags = [True] * n
                flags.pop()
                for j in range(0, n, 2):
                    flags[j] = False
                return flags
            """,
            "f(5)",
        ),
        "another end by the same name": (
            """
            def f(n):
                flags = [True] * n
                n += 2
                for j in range(0, n, 2):
                    flags[j] = False
                return flags
            """,
            "f(5)",
        ),
    },
    "count_index": {
        "counted when there is more": (
            """
            def f(xs):
                return (xs.count(x) for x in xs)
            def go(xs):
                made = f(xs)
                xs.append(1)
                return list(made)
            """,
            "go([1, 2, 3])",
        ),
        "lists, it says": (
            "def f(xs: list[list[int]]):\n    return [xs.count(x) for x in xs]\n",
            "f([[1], [1]])",
        ),
        "it grows under another name": (
            """
            class Bag:
                def __init__(self): self.all = [1, 2]
                def f(self, xs):
                    return [xs.count(x) + self.add(x) for x in xs]
                def add(self, x):
                    if len(self.all) < 9: self.all.append(x)
                    return 0
            bag = Bag()
            """,
            "bag.f(bag.all)",
        ),
    },
    "match_index": {
        "somebody else has the list": (
            """
            class Shop:
                def __init__(self): self.all = [{"k": 1}]
                def f(self, ones, others):
                    out = []
                    for a in ones:
                        for b in others:
                            if a["k"] == b["k"]:
                                out.append(a["k"])
                        self.add(a)
                    return out
                def add(self, a): self.all.append(a)
            shop = Shop()
            """,
            "shop.f([{'k': 1}, {'k': 2}, {'k': 2}], shop.all)",
        ),
    },
}
CALLS = [(name, why) for name, cases in SAME.items() for why in cases]


def outcome(text, call):
    """What a call gives or raises, as a text."""
    names = {"contextlib": contextlib}
    exec(compile(text, "case", "exec", dont_inherit=True), names)
    try:
        return repr(eval(call, names))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize(("name", "why"), CALLS)
def test_what_might_come_out_differently_does_not(name, why):
    text, call = SAME[name][why]
    text = textwrap.dedent(text)
    before = outcome(text, call)
    assert outcome(transform(text, name).text, call) == before
    new = text
    for each in CATALOGUE:
        new = transform(new, each.name).text
    assert outcome(new, call) == before


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "hoist",
            "def f(self, n):\n xs = list(n)\n for x in n:\n  self.tell(x)\n  print(len(xs))\n",
            "xs_len = len(xs)",
        ),
        (
            "hoist",
            "def g(x):\n return x + 1\ndef f(xs):\n for x in xs:\n  print(g(x) / len(xs))\n",
            "xs_len = len(xs)",
        ),
        (
            "set_beside",
            "def f(xs, more: list):\n a = []\n for x in xs:\n"
            "  if x in a:\n   print(x)\n  a.extend(more)\n",
            "a_set.update(more)",
        ),
        (
            "set_beside",
            "from a import g\ndef f(xs, known: list):\n return [g(x) for x in xs if x in known]\n",
            "known_set = set(known)",
        ),
        ("module_set", "_A = ['a', 'b', 'c']\ndef f(x):\n    return x in _A\n", "x in _A_SET"),
        ("key_test", "def f(x):\n    d = {}\n    return x in d.keys()\n", "x in d\n"),
        ("key_test", "def f(x, d):\n    return x in list(d.keys())\n", "x in d.keys()\n"),
        ("ruff", "def f(xs: list):\n    return any([x > 1 for x in xs])\n", "any(x > 1 for"),
        (
            "sum",
            "def f(xs: list):\n a = False\n for x in xs:\n  if x > 1:\n   a = True\n return a\n",
            "a = any(x > 1 for x in xs)",
        ),
        (
            "sum",
            "def f(xs):\n a = False\n for x in xs:\n  if x > 1:\n   a = True\n return a\n",
            "a = any([x > 1 for x in xs])",
        ),
        (
            "ready_heap",
            "def f(g):\n w = {k: set(v) for k, v in g.items()}\n while w:\n"
            "  r = [k for k, v in w.items() if not v]\n  print(len(r), sorted(r))\n"
            "  x = min(r)\n  del w[x]\n  for n in w.values():\n   n.discard(x)\n",
            "x = heapq.heappop(r) if r else min(r)",
        ),
    ],
)
def test_what_is_surely_the_same_is_done(name, text, expected):
    assert expected in transform(text, name).text


LOOP = "def f(xs):\n    t = 0\n    for x in xs:\n        t += x\n    return t\n"
BEYOND_LIBCST = {
    "a form feed before an indent": LOOP.replace("    t = 0", "\x0c    t = 0"),
    "no blank before a parenthesis": "y = () if 0 else(lambda:())\n" + LOOP,
}


@pytest.mark.parametrize("why", BEYOND_LIBCST)
def test_what_libcst_can_not_parse_is_left_alone_and_told(why):
    text = BEYOND_LIBCST[why]
    compile(text, "case", "exec")
    assert refuse(text) == "libcst can't parse it, though Python can"
    for each in CATALOGUE:
        if each.find is not None:
            assert transform(text, each.name).text == text
    files = {"odd.py": text, "slow.py": LOOP}
    reply = CodemodProposer().answer(Brief("odd", "", files), Request(RequestKind.INITIAL, 0, 0))
    (candidate,) = reply.candidates
    assert set(candidate.files) == {"slow.py"}
    assert "odd.py is left alone: libcst can't parse it, though Python can" in candidate.note
