"""Code that looks like a slow pattern and isn't: it stays as it is."""

import textwrap

import pytest

from fairtrial.agents.proposers.transforms.catalogue import CATALOGUE, refuse, transform

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
            def f(n): return f(n - 1) + f(n - 2) if n > 1 else n
            f = 3
        """,
        "it calls a builtin of another name": """
            def abs(n): return print(n)
            def f(n): return f(n - 1) + f(abs(n) - 2) if n > 1 else n
        """,
        "functools is something else": """
            functools = 1
            def f(n): return f(n - 1) + f(n - 2) if n > 1 else n
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
