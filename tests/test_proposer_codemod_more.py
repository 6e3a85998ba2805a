"""Further transformations: what they make of slow code, what they leave alone."""

import copy
import re
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from fairtrial_codemod.transforms.catalogue import CATALOGUE, transform

# What Python 3.13 says of programs that are as old as those that are mended.
pytestmark = pytest.mark.filterwarnings("ignore:'(maxsplit|count)' is passed as positional")

INTS = st.lists(st.integers(-9, 9), max_size=9)
FEW = st.lists(st.integers(0, 5), max_size=12)
TEXT = st.text("abcz. -\n'\"é", max_size=8)
TEXTS = st.lists(TEXT, max_size=5)
SMALL = st.integers(0, 40)
NUMBER = st.integers(-3, 60)
WORDS = st.dictionaries(st.integers(0, 5), st.integers(0, 5), max_size=5)
GRAPH = st.dictionaries(st.integers(0, 8), st.sets(st.integers(0, 8), max_size=3), max_size=8)

# (transformation, what must be in the new text, inputs of f, source)
CASES = {
    "items in a comprehension": (
        "items",
        "{k for k, counts_value in counts.items() if counts_value == 1}",
        [FEW],
        """
        from collections import Counter

        def f(xs):
            counts = Counter(xs)
            return {k for k in counts if counts[k] == 1}
        """,
    ),
    "items in a loop": (
        "items",
        "for name, table_value in table.items():",
        [WORDS],
        """
        def f(table: dict[int, int]):
            out = []
            # each of them
            for name in table.keys():
                if table[name] > 2 and name in table:
                    out.append((name, table[name]))
            return out, [table[other] for other in table]
        """,
    ),
    "items in each other": (
        "items",
        "table_value * table_value_2",
        [WORDS],
        """
        def f(table: dict):
            return [table[one] * table[other] for one in table for other in table if one != other]
        """,
    ),
    "items that are set": (
        "items",
        "table[name] = table_value * 2 + table_value",
        [WORDS],
        """
        def f(table):
            table = dict(table)
            for name in table:
                if table[name] > 1:
                    table[name] = table[name] * 2 + table[name]
            return table
        """,
    ),
    "items of an attribute": (
        "items",
        "for table_value in self.table.values()",
        [WORDS],
        """
        class A:
            def __init__(self):
                self.table = {}
            def total(self):
                return sum(self.table[key] for key in self.table)

        def f(table):
            a = A()
            a.table = table
            return a.total()
        """,
    ),
    "patterns by keywords, by names, in lambdas": (
        "pattern",
        "_PATTERN = re.compile(DIGIT + 'b+', re.I)",
        [TEXT],
        """
        import re

        DIGIT = "a"
        KNOWN = re.compile("[az]")

        def f(text):
            out = [re.sub(DIGIT + 'b+', "<", text, flags=re.I, count=1), re.split("[.-]", text, 1)]
            out.append(re.sub(KNOWN, "-", text, 1))
            own = re.compile(text[:0] + "b+")
            out += re.findall(own, text)
            out += sorted([text, "b"], key=lambda each: re.subn("[ab]", "z", string=each)[1])
            return out + re.split("[ab]+" "[cz]", text, maxsplit=2)
        """,
    ),
    "patterns of another spelling": (
        "pattern",
        "return _PATTERN.sub(r'<\\1>', text), _PATTERN_2.findall(text)",
        [TEXT],
        """
        import re as regular
        from re import sub

        def f(text):
            return regular.sub('([ab])', r'<\\1>', text), regular.findall('[a-c]', text)
        """,
    ),
    "patterns by a function": (
        "pattern",
        "_PATTERN = re.compile('([ab])')",
        [TEXT],
        """
        from re import sub

        def f(text):
            return sub('([ab])', '-', text)
        """,
    ),
    "patterns that come from outside": (
        "pattern_cache",
        "_compiled(rule).sub(",
        [TEXTS, TEXT],
        """
        import re

        RULES = [("(a)b$", "c"), (re.compile("[cz]+"), "<>"), ("(z", "")]

        def f(rules, text):
            out = []
            for rule, new in [*((re.escape(rule), "_") for rule in rules), *RULES]:
                if re.search(rule, text):
                    text = re.sub(rule, new, re.sub(rule, new, text, count=1))
                out.append(re.findall(f"{text[:1]}", text, re.I))
            return out, text
        """,
    ),
    "plain texts": (
        "plain_text",
        "text.replace('.', '<>'), text.split('a', 1), text.replace('ab', '-', 2)",
        [TEXT],
        """
        import re

        PLAIN = re.compile("z")

        def f(text):
            out = [re.sub(r"\\.", "<>", text), re.split("a", text, 1), re.sub("ab", "-", text, 2)]
            if re.search("bc", text) or not re.match("a", text + "b"):
                out.append(len(re.findall("a", text)))
            out.append([re.search("-", text) is None, bool(PLAIN.fullmatch(text))])
            return out, PLAIN.sub("", text), PLAIN.split(text), re.search("é", text) is not None
        """,
    ),
    "tables of constants": (
        "module_constant",
        "_KINDS = {\n    type(None): 0,",
        [st.one_of(SMALL, TEXT, st.none())],
        """
        import operator

        # about f
        def f(x):
            # kinds of values
            kinds = {
                type(None): 0,
                int: 1,  # whole
                str: (2, "text"),
            }
            names = ["none", "int", "str"]
            signs = {"+": operator.add, "-": operator.sub, "*": operator.mul}
            out = [kinds.get(type(x), -1), len(names), signs["+"](1, 2)]
            for name in names:
                out.append((name, name in {"a": 1, "b": 2, "int": 3}.keys()))
            table = str.maketrans("abc", "xyz")
            return out, {1: 2, 3: 4, 5: -6}.get(x), str(x).translate(table)

        class A:
            def int(self):
                return 3
        """,
    ),
    "smallest of some": (
        "min_max",
        "if best_or < best:",
        [INTS, INTS],
        """
        def f(xs, ys):
            low = best_of = 99
            row = [0] * (len(ys) + 1)
            for x in xs:
                for i, y in enumerate(ys):
                    other = row[i] + (x != y)
                    row[i] = min(other, row[i] + 1, x)  # kept
                    low = min(low, other)
                    best_of = max(best_of, x * y, -y)
                    low = min(x * y,
                              low)
            return max(low, best_of), [max(x, 0) + 1 for x in xs], g(xs)

        def g(xs):
            return max(len(xs), 3)
        """,
    ),
    "smallest, ties and all": (
        "min_max",
        "return b if b < a else a",
        [st.sampled_from([0, 0.0, False, -0.0, "a", float("nan"), 1, True, 1.0, None])] * 2,
        """
        def f(a, b):
            def low(a, b):
                return min(a, b)
            high = max([a][0], [b][0])
            return low(a, b), high, max(a, b, 1)
        """,
    ),
    "lists instead of generators": (
        "listing",
        "','.join([str(x) for x in xs if x])",
        [INTS],
        """
        def f(xs):
            out = [','.join(str(x) for x in xs if x), sum(2 * x for x in xs)]
            out.append(sum((x for x in xs), 3))
            out.append(sorted((-x for x in xs), key=abs))
            out.append(
                tuple(
                    (x, y)
                    for x in xs
                    for y in range(x)
                )
            )
            return out, max(abs(x) for x in xs)
        """,
    ),
    "texts that grow in front": (
        "join",
        'bits = "".join(bits_parts[::-1])',
        [SMALL],
        """
        def f(n):
            bits = "."
            while n:
                bits = str(n % 2) + "," + bits
                if n > 20:
                    bits = "!" + bits
                n //= 2
            return bits
        """,
    ),
    "lists that grow in front": (
        "prepend",
        "path.append(n % 3)",
        [SMALL, INTS],
        """
        def f(n, xs):
            path = []
            while n and len(path) < 4:
                # the last comes first
                path.insert(0, n % 3)  # at 0
                n //= 3
            back = list(xs)
            back.append(7)
            for x in xs:
                if x > 4:
                    break
                for y in range(x):
                    back = [(x, y)] + back
            outer = []
            for x in xs:
                inner = [x]
                for y in range(x):
                    inner.insert(0, y)
                outer.append(inner)
            return path, back, outer
        """,
    ),
    "attributes that grow": (
        "accumulator",
        "self_text += part + self.end",
        [TEXTS],
        """
        class A:
            def __init__(self):
                self.text, self.end, self.items = "<", ";", [1]

            def feed(self, parts):
                for part in parts:
                    for char in part:
                        if char == "a":
                            continue
                        self.text += part + self.end
                    self.items += [len(part)]

        def f(parts):
            a = A()
            a.feed(parts)
            return a.text, a.items
        """,
    ),
    "levels": (
        "levels",
        "ordered_next = set(sorted(freed, key=data_place.__getitem__))",
        [GRAPH],
        """
        def f(data):
            return list(levels(data))

        def levels(data):
            data = {item: set(e for e in dep if e != item) for item, dep in data.items()}
            extra = {value for values in data.values() for value in values} - set(data.keys())
            # those that need nothing
            data.update({item: set() for item in extra})
            while True:
                # what is free now
                ordered = set(item for item, dep in data.items() if len(dep) == 0)
                if not ordered:
                    break
                yield list(ordered)
                data = {
                    item: (dep - ordered) for item, dep in data.items() if item not in ordered
                }
            if len(data) != 0:
                yield data
        """,
    ),
    "levels until nothing is left": (
        "levels",
        "del todo[need]",
        [GRAPH],
        """
        def f(graph):
            todo = {k: {v for v in vs if v < k} for k, vs in graph.items()}
            order = []
            while todo:
                ready = {k for k, v in todo.items() if not v}
                if not ready:
                    raise ValueError(todo)
                order += sorted(ready)
                todo = {k: v - ready for k, v in todo.items() if k not in ready}
            return order, todo
        """,
    ),
    "counting": (
        "counter",
        "counts = dict(Counter(iter(xs)))",
        [FEW],
        """
        from collections import defaultdict

        def f(xs):
            counts = {}
            for x in xs:
                counts[x] = counts.get(x, 0) + 1
            odd: dict[int, int] = dict()
            for x in xs:
                if x % 2:
                    if x * 2 not in odd:
                        odd[x * 2] = 0
                    odd[x * 2] += 1
            pairs = defaultdict(int)
            # by pairs
            for i, x in enumerate(xs):
                pairs[i % 2, x] += 1
            seen = {}
            for x in set(xs):
                if str(x) in seen:
                    seen[str(x)] += 1
                else:
                    seen[str(x)] = 1
            keys = {}
            for x in counts:
                keys[x] = keys.get(x, 0) + 1
            return counts, odd, pairs, pairs[9, 9], seen, keys
        """,
    ),
    "a sieve": (
        "slice_fill",
        "flags[i * i : n + 1 : i] = [False] * len(range(i * i, n + 1, i))",
        [SMALL],
        """
        def f(n):
            flags = [True] * (n + 1)
            other = bytearray(n + 1)
            for i in range(2, n + 1):
                if flags[i]:
                    for j in range(i * i, n + 1, i):
                        flags[j] = False
            for i in range(2, n):
                k = i + i
                while k <= n:
                    other[k] = 1
                    k += i
            return flags, bytes(other)
        """,
    ),
    "beginnings without copies": (
        "offset",
        "text.startswith('ab', i)",
        [TEXT],
        """
        def f(text):
            out = []
            for i in range(len(text)):
                if text[i:].startswith('ab') or text[i + 1:].startswith(('c', '.')):
                    out.append(i)
                out.append(text[:i].endswith(text[-1]))
            return out, text[-2:].startswith('z'), text[1:3].startswith('b')
        """,
    ),
    "the largest so far": (
        "best",
        "low = min(xs)",
        [INTS],
        """
        def f(xs):
            best = 0
            for x in xs:
                if x * x > best:
                    best = x * x
            high = float("-inf")
            # the highest
            for x in xs or [3]:
                high = max(high, x)
            low = xs[0]
            for x in xs[1:]:
                if x < low:
                    low = x
            return best, high, low
        """,
    ),
    "cells that grow": (
        "cell",
        "cell += a[i][k] * b[k][j]",
        [st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=3, max_size=3)] * 2,
        """
        def f(a, b):
            n = len(a)
            c = [[0] * n for _ in range(n)]
            row = [0] * n
            for i in range(n):
                for j in range(n):
                    for k in range(n):
                        # one more
                        c[i][j] += a[i][k] * b[k][j]
                        row[i] += k
            return c, row, [sum(each) for each in c]
        """,
    ),
    "tally": (
        "tally",
        "many += len([1 for x in xs if x > 2 and x not in (3, 4)])",
        [INTS],
        """
        def f(xs):
            many = 0
            for x in xs:
                if x > 2 and x not in (3, 4):
                    many += 1
            # and pairs
            for i, x in enumerate(xs) if many else ((0, 1), (2, 2)):
                if x == i if many else any(x == each for each in xs):
                    many += 1
            return many
        """,
    ),
    "dates": (
        "iso_date",
        "return [_read_date_3(day).date()]",
        [
            st.one_of(
                st.datetimes().map(str),
                st.datetimes().map(lambda each: str(each)[:19]),
                st.datetimes().map(lambda each: each.isoformat()[:16]),
                st.dates().map(str),
                st.from_regex(r"[12]0[0-9]{2}-[01W]?[0-9]-[0-3 ]?[0-9]([ T][0-2][0-9]:[0-6]\\d)?"),
                st.sampled_from(["2024-02-30", "2024-W01-1", "2024-01-01 24:00", "٢٠٢٤-01-01", ""]),
                st.sampled_from([None, 3, "2024-1-1", "2024-01-01T10:00:61", "2024-01-01 1:00:00"]),
            )
        ],
        """
        import datetime as dt
        from datetime import datetime

        def f(day):
            out = []
            for read in (g, h):
                try:
                    out += read(day)
                except (ValueError, TypeError) as error:
                    out.append(type(error))
            return out

        def g(day):
            return [datetime.strptime(day, "%Y-%m-%d"), day]

        def h(day):
            for form in (a, b):
                try:
                    return form(day)
                except ValueError:
                    pass
            return [dt.datetime.strptime(day, "%Y-%m-%dT%H:%M")]

        def a(day):
            return [dt.datetime.strptime(day, "%Y-%m-%d %H:%M:%S").date()]

        def b(day):
            return [dt.datetime.strptime(day, "%Y-%m-%d %H:%M")]
        """,
    ),
    "divisors up to a half": (
        "square_root",
        "for i in range(2, math.isqrt(max(n, 0)) + 1):",
        [NUMBER],
        """
        def f(n):
            is_prime = n > 1
            for i in range(2, n // 2 + 1):
                if n % i == 0:
                    is_prime = False
                    break
            return is_prime, g(n), g(float(n)), all(n % i for i in range(2, n // 2 + 1))

        def g(n):
            for i in range(2, int(n / 2) + 1):
                if n % i == 0:
                    return False
            return True
        """,
    ),
}

# {transformation: {why it stays: source}}
UNSAFE = {
    "ruff": {
        "the last is read by another function": """
            def f(xs):
                def last():
                    return x
                out = []
                for x in xs:
                    out.append(-x)
                return out, last
        """,
        "somebody reads what there is so far": """
            def f(xs):
                try:
                    out = []
                    for x in xs:
                        out.append(look(x))
                finally:
                    print(out)
        """,
    },
    "sum": {
        "somebody catches, and reads it": """
            def f(xs):
                try:
                    total = 0
                    for x in xs:
                        total += x
                except TypeError:
                    return total
        """,
    },
    "levels": {
        "the sets are somebody else's": """
            def f(graph):
                todo = {k: v for k, v in graph.items()}
                while todo:
                    ready = {k for k, v in todo.items() if not v}
                    todo = {k: v - ready for k, v in todo.items() if k not in ready}
        """,
        "somebody has them": """
            def f(graph):
                todo = {k: set(v) for k, v in graph.items()}
                keep(todo)
                while todo:
                    ready = {k for k, v in todo.items() if not v}
                    todo = {k: v - ready for k, v in todo.items() if k not in ready}
        """,
        "a level changes": """
            def f(graph):
                todo = {k: set(v) for k, v in graph.items()}
                while todo:
                    ready = {k for k, v in todo.items() if not v}
                    ready.discard(3)
                    todo = {k: v - ready for k, v in todo.items() if k not in ready}
        """,
        "they are asked for in between": """
            def f(graph):
                todo = {k: set(v) for k, v in graph.items()}
                while todo:
                    ready = {k for k, v in todo.items() if not v}
                    print(todo)
                    todo = {k: v - ready for k, v in todo.items() if k not in ready}
        """,
    },
    "counter": {
        "it counts already": """
            def f(xs, d):
                for x in xs:
                    d[x] = d.get(x, 0) + 1
        """,
        "a missing one ends it": """
            def f(xs):
                d = {}
                for x in xs:
                    d[x] += 1
                return d
        """,
        "the last is wanted": """
            def f(xs):
                d = {}
                for x in xs:
                    d[x] = d.get(x, 0) + 1
                return d, x
        """,
        "an object is counted by": """
            def f(xs, one):
                d = {}
                for one.x in xs:
                    d[one.x] = d.get(one.x, 0) + 1
                return d
        """,
        "what is counted is asked for once more": """
            def f(xs):
                d = {}
                for x in xs:
                    d[x.pop()] = d.get(x.pop(), 0) + 1
                return d
        """,
        "what is raised is caught": """
            def f(xs):
                try:
                    d = {}
                    for x in xs:
                        d[x] = d.get(x, 0) + 1
                except TypeError:
                    return d
        """,
        "it waits": """
            def f():
                d = {}
                for x in (yield):
                    d[x] = d.get(x, 0) + 1
                yield d
        """,
        "it asks itself": """
            def f(xs):
                d = {}
                for x in xs:
                    d[len(d)] = d.get(len(d), 0) + 1
                return d
        """,
    },
    "cell": {
        "the cell changes": """
            def f(n):
                xs = [0] * n
                for i in range(n):
                    xs[i] += 1
                return xs
        """,
        "it is read": """
            def f(n):
                xs = [0] * 9
                for i in range(n):
                    xs[3] += xs[i]
                return xs
        """,
        "read by another name": """
            def f(n):
                xs = [[0] * 9 for _ in range(9)]
                row = xs[3]
                for i in range(n):
                    xs[3][3] += row[i]
                return xs
        """,
        "a dictionary may make it": """
            def f(xs, d, k):
                for x in xs:
                    d[k] += x
        """,
        "somebody has it": """
            def f(n):
                xs = [0] * 9
                keep(xs)
                for i in range(n):
                    xs[3] += i
                return xs
        """,
        "the loop is left": """
            def f(n):
                xs = [0] * 9
                for i in range(n):
                    xs[3] += i
                    if i > 3:
                        return xs
        """,
        "the cell may not be there": """
            def f(n, ys):
                xs = [0] * n
                for y in ys:
                    xs[3] += y
                return xs
        """,
        "rows of another length": """
            def f(n, m, ys):
                xs = [[0] * m for _ in range(n)]
                for i in range(n):
                    for j in range(n):
                        for y in ys:
                            xs[i][j] += y
                return xs
        """,
        "rows of many lengths": """
            def f(n, i, ys):
                xs = [[0] * i for i in range(n)]
                for k in range(n):
                    for j in range(i):
                        for y in ys:
                            xs[k][j] += y
                return xs
        """,
        "the size changes": """
            def f(n, ys):
                xs = [0] * n
                n += 1
                for i in range(n):
                    for y in ys:
                        xs[i] += y
                return xs
        """,
        "there are fewer": """
            def f(n, ys):
                xs = [0] * n
                del xs[0]
                for i in range(n):
                    for y in ys:
                        xs[i] += y
                return xs
        """,
        "a row is somebody else's": """
            def f(n, row):
                xs = [row, row]
                for i in range(n):
                    xs[0][1] += row[i]
                return xs
        """,
        "a row by another name's name": """
            def f(n):
                xs = [[1] * 9 for _ in range(9)]
                rows = [row for row in xs]
                mine = rows[3]
                for i in range(n):
                    xs[3][3] += mine[i]
                return xs
        """,
        "a row is kept": """
            def f(n, kept):
                xs = [[1] * 9 for _ in range(9)]
                kept.append(xs[3])
                for i in range(n):
                    xs[3][3] += kept[-1][i]
                return xs
        """,
        "it is gone through meanwhile": """
            def f(n):
                xs = [1] * 9
                pairs = zip(xs, xs)
                them = pairs
                for i in range(n):
                    xs[3] += next(them)[1]
                return xs
        """,
        "the index is a part of what changes": """
            def f(ys, at):
                xs = [0] * 9
                for y in ys:
                    xs[at[0]] += y
                    at[0] = 4
                return xs
        """,
        "the index is the module's": """
            K = 0
            def step():
                global K
                K = 1
                return 1
            def f(ys):
                xs = [0] * 9
                for y in ys:
                    xs[K] += step()
                return xs
        """,
        "the index is counted elsewhere": """
            def f(n, ys):
                xs = [0] * n
                for i in range(n):
                    i += 1
                    for y in ys:
                        xs[i] += y
                return xs
        """,
        "an error is expected there": """
            from contextlib import suppress
            def f(ys):
                xs = [0] * 2
                for y in ys:
                    with suppress(TypeError):
                        xs[1] += y
                return xs
        """,
    },
    "tally": {
        "a float": """
            def f(xs):
                n = 0.1
                for x in xs:
                    if x:
                        n += 1
                return n
        """,
        "given": "def f(xs, n):\n    for x in xs:\n        if x: n += 1\n    return n",
        "it asks itself": """
            def f(xs):
                n = 0
                for x in xs:
                    if x > n:
                        n += 1
                return n
        """,
        "the last is wanted": """
            def f(xs):
                n = 0
                for x in xs:
                    if x:
                        n += 1
                return n, x
        """,
        "a truth that nothing is added to": """
            def f(xs):
                n = False
                for x in xs:
                    if x:
                        n += 1
                return n
        """,
        "there may be none yet": """
            def f(xs, is_begun):
                if is_begun:
                    n = 0
                for x in xs:
                    if x:
                        n += 1
                return xs
        """,
        "the last is the module's": """
            def f(xs):
                global x
                n = 0
                for x in xs:
                    if x:
                        n += 1
                return n
        """,
        "the last is what comes next": """
            def f(x):
                n = 0
                for _ in range(2):
                    for x in x:
                        if x:
                            n += 1
                return n
        """,
        "something goes on with its name": """
            def f(xs, kept):
                n = 0
                for x in xs:
                    if kept.append(y + x for y in (1, 2)) is None:
                        n += 1
                return n
        """,
        "it waits": """
            async def f(xs):
                n = 0
                for x in xs:
                    if [y async for y in x]:
                        n += 1
                return n
        """,
    },
    "iso_date": {
        "its own length": """
            from datetime import datetime
            def len(text):
                return 10
            def f(x):
                return datetime.strptime(x, "%Y-%m-%d")
        """,
        "its own error": """
            from datetime import datetime
            class ValueError(Exception):
                pass
            def f(x):
                return datetime.strptime(x, "%Y-%m-%d")
        """,
        "another form": """
            from datetime import datetime
            def f(x):
                return datetime.strptime(x, "%d.%m.%Y")
        """,
        "a form by a name": """
            from datetime import datetime
            def f(x, form):
                return datetime.strptime(x, form)
        """,
        "somebody's": """
            from dates import datetime
            def f(x):
                return datetime.strptime(x, "%Y-%m-%d")
        """,
        "it is bound again": """
            from datetime import datetime
            datetime = datetime
            def f(x):
                return datetime.strptime(x, "%Y-%m-%d")
        """,
    },
    "slice_fill": {
        "a list that may grow": """
            def f(n):
                xs = [0] * 9
                for j in range(0, n, 1):
                    xs[j] = 1
                return xs
        """,
        "somebody else's": "def f(xs):\n    for j in range(0, 9, 2):\n        xs[j] = 1",
        "it depends": """
            def f(n):
                xs = [0] * 9
                for j in range(0, 9, 2):
                    xs[j] = j
                return xs
        """,
        "the last is wanted": """
            def f(n):
                xs = [0] * 9
                for j in range(0, 9, 2):
                    xs[j] = 1
                return xs, j
        """,
    },
    "offset": {
        "steps": "def f(s):\n    return s[::2].startswith('a')",
        "already": "def f(s):\n    return s[1:].startswith('a', 2)",
        "asked for in another order": "def f(s):\n    return s[g():].startswith(h())",
    },
    "best": {
        "there may be none yet": """
            def f(xs, is_begun):
                if is_begun:
                    best = 0
                for x in xs:
                    if x > best:
                        best = x
                return xs
        """,
        "the last is the module's": """
            def f(xs):
                global x
                best = 0
                for x in xs:
                    if x > best:
                        best = x
                return best
        """,
        "the last of them": """
            def f(xs, best):
                for x in xs:
                    if x >= best:
                        best = x
                return best
        """,
        "compared with what it becomes": """
            def f(xs, best):
                for x in xs:
                    if x - best > best:
                        best = x - best
                return best
        """,
        "asked for twice": """
            def f(xs, best):
                for x in xs:
                    if x.pop() > best:
                        best = x.pop()
                return best
        """,
        "where it is matters, too": """
            def f(xs, best):
                for x in xs:
                    if x > best:
                        best = x
                        where = x
                return best, where
        """,
    },
    "square_root": {
        "half is not enough": """
            def f(n):
                for i in range(2, n // 2):
                    if n % i == 0:
                        return False
                return True
        """,
        "the divisor is told": """
            def f(n):
                for i in range(2, n // 2 + 1):
                    if n % i == 0:
                        found = True
                        break
                return i
        """,
    },
    "join": {
        "at both ends": """
            def f(xs):
                s = ""
                for x in xs:
                    s = x + s
                    s += x
                return s
        """,
        "a list": "def f(xs):\n    s = []\n    for x in xs:\n        s = x + s\n    return s",
        "both are it": "def f(xs):\n    s = 'a'\n    for x in xs:\n        s = x + s + s",
        "the loop may be left otherwise": """
            def f(rows):
                for row in rows:
                    s = ""
                    for x in row:
                        s += x
                    else:
                        continue
                return s
        """,
    },
    "prepend": {
        "it is read": """
            def f(xs):
                p = []
                for x in xs:
                    p.insert(0, x)
                    print(p[0])
        """,
        "it grows behind, too": """
            def f(xs):
                p = []
                for x in xs:
                    p.insert(0, x)
                    p.append(x)
                return p
        """,
        "somebody else's": """
            def f(xs, p):
                for x in xs:
                    p.insert(0, x)
        """,
        "somebody has it": """
            def f(xs):
                p = []
                keep(p)
                for x in xs:
                    p.insert(0, x)
        """,
        "given in the loop": """
            def f(xs):
                p = []
                for x in xs:
                    p.insert(0, x)
                    if x:
                        return p
        """,
        "what is raised is caught": """
            def f(xs):
                p = []
                try:
                    for x in xs:
                        p.insert(0, int(x))
                except ValueError:
                    return p
        """,
        "bound before another loop": """
            def f(rows):
                p = []
                for row in rows:
                    for x in row:
                        p.insert(0, x)
                    print(p)
        """,
        "elsewhere": "def f(xs):\n    p = []\n    for x in xs:\n        p.insert(1, x)",
    },
    "accumulator": {
        "it is read": """
            class A:
                n = 0
                def f(self, xs):
                    for x in xs:
                        self.n += x
                        print(self.n)
        """,
        "it does something": """
            class A:
                n = 0
                def f(self, xs):
                    for x in xs:
                        self.n += x
                        self.tell()
        """,
        "handed on": """
            class A:
                n = 0
                def f(self, xs):
                    for x in xs:
                        self.n += x
                        x.tell(self)
        """,
        "the loop is left": """
            class A:
                n = 0
                def f(self, xs):
                    for x in xs:
                        self.n += x
                        if x: return
        """,
        "another may be the same": """
            def f(one, others):
                one.n = 0
                for other in others:
                    one.n += other.n
        """,
        "something computes with it": """
            class A:
                n = 0
                @property
                def twice(self):
                    return 2 * self.n
                def f(self, xs):
                    for x in xs:
                        self.n += x * self.twice
        """,
        "it may not be there": """
            class A:
                def f(self, xs):
                    for x in xs:
                        self.n += x
        """,
        "it may be there": """
            def f(one, xs):
                if xs:
                    one.n = 0
                for x in xs:
                    one.n += x
        """,
    },
    "module_constant": {
        "a type of its own": """
            def f(int, x):
                return {str: 1, bytes: 2, int: 3}[x]
        """,
        "a type of the module's": """
            def f(x):
                return {str: 1, bytes: 2, int: 3}[x]
            int = 3
        """,
        "given away": "def f():\n    table = {1: 2, 3: 4, 5: 6}\n    return table",
        "handed on": "def f():\n    table = [1, 2, 3]\n    g(table)",
        "changed": "def f(x):\n    t = {1: 2, 3: 4, 5: 6}\n    t[x] = 1\n    return len(t)",
        "changed by a method": "def f(x):\n    t = [1, 2, 3]\n    t.append(x)\n    return len(t)",
        "what is in it may be changed": """
            def f(x):
                table = {1: [], 2: [], 3: []}
                return table[x]
        """,
        "it depends": "def f(x):\n    table = {1: x, 3: 4, 5: 6}\n    return table[1]",
        "bound twice": "def f(x):\n    t = [1, 2, 3]\n    t = [x]\n    return t[0]",
        "seen from within": "def f():\n    t = [1, 2, 3]\n    return lambda x: t[x]",
        "a few": "def f(x):\n    return {1: 2}[x]",
        "by another name": "def f(x):\n    t = [1, 2, 3]\n    u = t\n    u.pop()\n    return t[0]",
        "the module comes later": """
            def f(x):
                return {"a": operator.add, "b": operator.sub, "c": operator.mul}[x]
            import operator
        """,
    },
    "min_max": {
        "by a key": "def f(a, b):\n    return min(a, b, key=abs)",
        "of a list": "def f(a):\n    return min(a)",
        "not seen": "def f(a):\n    return min(*a, 3)",
        "somebody's": "from numpy import min\ndef f(a, b):\n    return min(a, b)",
        "many": "def f(a, b, c, d):\n    x = min(a, b, c, d)\n    return x",
        "a comment in it": "def f(a, b):\n    x = min(a[0],  # first\n        b[0])\n    return x",
    },
    "listing": {
        "it ends from within": """
            def f(xs, more):
                return ",".join(more.__next__() for x in xs)
        """,
        "it may stop early": "def f(xs):\n    return any(x for x in xs)",
        "a key in between": "def f(xs):\n    return max((x for x in xs), key=g)",
        "it ends itself": "def f(xs):\n    return sum(next(xs) for _ in xs)",
        "it waits": "async def f(xs):\n    return sum(x async for x in xs)",
        "somebody's": "from numpy import sum\ndef f(xs):\n    return sum(x for x in xs)",
    },
    "pattern_cache": {
        "constant": "import re\ndef f(x):\n    return re.sub('a', 'b', x)",
        "flags by a name": "import re\ndef f(x, p, i):\n    return re.sub(p, 'b', x, flags=i)",
        "arguments that aren't seen": "import re\ndef f(x):\n    return re.sub(*x)",
        "re is something else": "import regex as re\ndef f(p, x):\n    return re.search(p, x)",
        "the module comes later": "def f(p, x):\n    return re.search(p, x)\nimport re",
        "functools is something else": """
            import re
            functools = None
            def f(p, x):
                return re.search(p, x)
        """,
    },
    "pattern": {
        "no pattern at all": """
            import re
            def f(text):
                try:
                    return re.sub("(", "", text)
                except re.error:
                    return re.findall("a" + "[", text)
        """,
        "it is bound later": "import re\ndef f(x):\n    return re.sub(P, '', x)\nP = 'a'",
        "it is bound twice": "import re\nP = 'a'\nP = 'b'\ndef f(x):\n    re.sub(P, '', x)",
        "flags of what is compiled": """
            import re
            P = re.compile("a")
            def f(x):
                return re.sub(P, "", x, flags=re.I)
        """,
    },
    "plain_text": {
        "special": "import re\ndef f(x):\n    return re.sub('a.', 'b', x)",
        "a class": "import re\ndef f(x):\n    return re.sub(r'\\d', 'b', x)",
        "a group is put in": "import re\ndef f(x):\n    return re.sub('a', r'\\g<0>', x)",
        "nothing": "import re\ndef f(x):\n    return re.split('', x)",
        "flags": "import re\ndef f(x):\n    return re.split('a', x, flags=re.I)",
        "a function": "import re\ndef f(x):\n    return re.sub('a', str.upper, x)",
        "the match is wanted": "import re\ndef f(x):\n    return re.search('a', x)",
        "the match may be given": "import re\ndef f(x):\n    return x and re.search('a', x)",
        "a count by a name": "import re\ndef f(x, n):\n    return re.sub('a', 'b', x, n)",
        "what is raised is caught": """
            import re
            def f(x):
                try:
                    return re.sub("a", "b", x)
                except TypeError:
                    return x
        """,
    },
    "items": {
        "a list": "def f():\n    xs = [1, 0]\n    return [xs[i] for i in xs]",
        "a list by its annotation": "def f(xs: list[int]):\n    return [xs[i] for i in xs]",
        "set before it is read": """
            def f(d):
                for k in d:
                    d[k] = 3
                    print(d[k])
        """,
        "set in an inner loop": """
            def f(d):
                for k in d:
                    for i in range(3):
                        d[k] = d[k] + i
        """,
        "another key is set": "def f(d):\n    for k in d:\n        d[0] = 3\n        print(d[k])",
        "handed on": "def f(d):\n    for k in d:\n        change(d)\n        print(d[k])",
        "somebody else's": "def f():\n    for k in D:\n        change()\n        print(D[k])",
        "an object that does something": """
            def f(self):
                for k in self.d:
                    self.change()
                    print(self.d[k])
        """,
        "the key changes": "def f(d):\n    for k in d:\n        k = k + 1\n        print(d[k])",
        "one waits in between": "def f(d):\n    for k in d:\n        yield k\n        print(d[k])",
        "read later": "def f(d):\n    return [lambda: d[k] for k in d]",
        "by another name": """
            def f(d):
                e = d
                for k in d:
                    change(e)
                    print(d[k])
        """,
    },
}


def load(text):
    """The function `f` of a source."""
    names = {"__name__": "loaded"}
    exec(compile(text, "loaded.py", "exec"), names)
    return names["f"]


def outcome(function, arguments):
    """What it gives or raises, and what becomes of its arguments."""
    mine = copy.deepcopy(arguments)
    try:
        return repr(function(*mine)), mine
    except Exception as error:
        return type(error), mine


@pytest.mark.parametrize("case", CASES)
def test_the_slow_pattern_is_replaced_once(case):
    name, expected, _, text = CASES[case]
    text = textwrap.dedent(text)
    applied = transform(text, name)
    assert expected in applied.text
    assert all(re.match(r"line \d+: .", note) for note in applied.notes)
    assert transform(applied.text, name).text == applied.text
    for comment in re.findall(r"#.*", text):
        assert comment in applied.text


@pytest.mark.parametrize("case", CASES)
def test_it_does_the_same_as_before_alone_and_with_all_others(case):
    name, _, inputs, text = CASES[case]
    text = new = textwrap.dedent(text)
    for each in CATALOGUE:
        new = transform(new, each.name).text
    before, alone, together = load(text), load(transform(text, name).text), load(new)

    @settings(max_examples=40, deadline=None, derandomize=True, database=None)
    @given(st.tuples(*inputs))
    def check(arguments):
        expected = outcome(before, arguments)
        assert expected == outcome(alone, arguments)
        assert expected == outcome(together, arguments)

    check()


@pytest.mark.parametrize(
    ("name", "why"), [(name, why) for name, cases in UNSAFE.items() for why in cases]
)
def test_what_may_not_be_safe_stays_as_it_is(name, why):
    text = textwrap.dedent(UNSAFE[name][why])
    assert transform(text, name).text == text


def test_the_docs_name_families_and_transformations_that_are_there():
    text = (Path(__file__).parents[1] / "docs" / "optimizing.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ((?:`\w+`(?:, )?)+) \|", text, re.M)
    told = {(name, family) for family, names in rows for name in re.findall(r"\w+", names)}
    assert told
    assert told <= {(each.name, each.family) for each in CATALOGUE}
    assert {name for name, *_ in CASES.values()} <= {name for name, _ in told}
