"""Code for which a careless transformation would give other results."""

import contextlib
import textwrap

import pytest

from fairtrial_codemod.catalog import CATALOG, transform

# transformation -> what might come out differently, by why: the source, and a call
SAME = {
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
        "it goes deep, again": (
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
    "growing_set": {
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
    "lookup_set": {
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
    "scan_index": {
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
        "part of a text": (
            "def f(text, words):\n    return [text.count(word) for word in words]\n",
            "f('abab', ['ab', 'x'])",
        ),
        "none of the items": (
            "def f(xs, ys):\n    return [xs.index(y) for y in ys]\n",
            "f([1, 2], [2, 3])",
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
def test_transformed_code_gives_the_same_results(name, why):
    text, call = SAME[name][why]
    text = textwrap.dedent(text)
    before = outcome(text, call)
    assert outcome(transform(text, name).text, call) == before
    new = text
    for each in CATALOG:
        new = transform(new, each.name).text
    assert outcome(new, call) == before
