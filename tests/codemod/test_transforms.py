"""Each transformation: the code that it writes, and that the code behaves as before."""

import ast
import re
import textwrap
from pathlib import Path

import pytest
from codemod_kit import (
    ANY,
    FEW,
    GRAPH,
    INTS,
    LISTS,
    PAIRS,
    ROWS,
    SMALL,
    TEXT,
    TEXTS,
    WORDS,
    call,
    load,
)
from hypothesis import given, settings, strategies as st

from fairtrial_codemod import ruff
from fairtrial_codemod.catalog import CATALOG, transform

# Python 3.13 warns of the old programs that are transformed here.
pytestmark = pytest.mark.filterwarnings("ignore:'(maxsplit|count)' is passed as positional")

# case -> (transformation, what must be in the new text, inputs of f, source)
CASES = {
    "bubble sort by a flag": (
        "sort",
        "    values.sort()\n    return values",
        [INTS],
        """
        def f(values):
            n = len(values)
            for i in range(n):
                swapped = False
                for j in range(n - i - 1):
                    if values[j] > values[j + 1]:
                        values[j], values[j + 1] = values[j + 1], values[j]
                        swapped = True
                if not swapped:
                    break
            return values
        """,
    ),
    "selection sort, the largest first": (
        "sort",
        "values.sort(reverse=True)",
        [INTS],
        """
        def f(values):
            for i in range(len(values) - 1):
                best = i
                for j in range(i + 1, len(values)):
                    if values[j] > values[best]:
                        best = j
                if best != i:
                    values[i], values[best] = values[best], values[i]
            return values
        """,
    ),
    "sort of records": (
        "sort",
        "rows.sort(key=lambda item: item['id'])",
        [ROWS],
        """
        def f(rows):
            for i in range(len(rows)):
                for j in range(len(rows) - 1):
                    if rows[j]["id"] > rows[j + 1]["id"]:
                        kept = rows[j]
                        rows[j] = rows[j + 1]
                        rows[j + 1] = kept
            return rows
        """,
    ),
    "a nested function is written out": (
        "inline",
        "if (word[0].lower() in ['a', 'e']):",
        [TEXTS],
        """
        def f(words):
            def is_vowel(char):
                return char.lower() in ["a", "e"]
            out = []
            for word in words:
                # maybe
                if is_vowel(word[0]):
                    out.append(word)
            return out
        """,
    ),
    "a function of the module is written out": (
        "inline",
        "[(x * LIMIT + 2) for x in xs]",
        [INTS],
        """
        LIMIT = 3

        def scale(value, more=2):
            "Scale it."
            return value * LIMIT + more

        def f(xs):
            return [scale(x) for x in xs]
        """,
    ),
    "set of a subscript": (
        "lookup_set",
        'tags_set = article["tags"]',
        [FEW, st.lists(FEW, max_size=4)],
        """
        def f(common, all_tags):
            for tags in all_tags:
                article = {"tags": tags}
                common = [tag for tag in common if tag in article["tags"]]
            return common
        """,
    ),
    "set of an attribute of a variable": (
        "lookup_set",
        "tags_set = other.tags",
        [st.lists(ANY, max_size=4), FEW],
        """
        class Tagged:
            def __init__(self, tags): self.tags = tags
        def f(all_tags, xs):
            out = []
            for other in map(Tagged, all_tags):
                for x in xs:
                    if x in other.tags:
                        out.append(x)
            return out
        """,
    ),
    "set beside a list of the function around": (
        "growing_set",
        "visited_set.add(node)",
        [GRAPH],
        """
        def f(graph):
            visited = []
            def visit(node):
                visited.append(node)
                for other in graph.get(node, ()):
                    if other not in visited:
                        visit(other)
            for node in graph:
                if node not in visited:
                    visit(node)
            return visited
        """,
    ),
    "a parameter that a recursion prepends to": (
        "prepend",
        "        stack.append(v)\n",
        [GRAPH],
        """
        class Graph:
            def __init__(self, edges): self.edges = edges
            def visit(self, v, visited, stack):
                visited.add(v)
                for i in self.edges.get(v, ()):
                    if i not in visited:
                        self.visit(i, visited, stack)
                stack.insert(0, v)
            def sort(self):
                visited, stack = set(), []
                for v in self.edges:
                    if v not in visited:
                        self.visit(v, visited, stack)
                return stack
        def f(graph):
            return Graph(graph).sort()
        """,
    ),
    "a list of the function around that a recursion prepends to": (
        "prepend",
        "    order.reverse()\n    return order",
        [GRAPH],
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
    ),
    "first places of items of another list": (
        "scan_index",
        "xs_places[y] if y in xs_places else xs.index(y)",
        [ANY, FEW],
        """
        def f(xs, ys):
            return [xs.index(y) for y in ys]
        """,
    ),
    "equal to one of several": (
        "constant_set",
        "if (x in {1, 2, 3}) and (y not in {'a', 'b', 'c'}):",
        [INTS, TEXTS],
        """
        def f(xs, ys):
            out = []
            for x in xs:
                for y in ys:
                    if (x == 1 or x == 2 or x == 3) and (y != 'a' and y != 'b' and y != 'c'):
                        out.append((x, y))
            return out
        """,
    ),
    "inner loop that looks for a key": (
        "scan_group",
        'for other in rows_by_id.get(row["id"], ()):',
        [ROWS],
        """
        def f(rows):
            out = []
            for row in rows:
                for other in rows:
                    if row["id"] == other["id"] and row is not other:  # another one
                        out.append(other["name"])
            return out
        """,
    ),
    "first match by index": (
        "scan_group",
        "for j in ys_by_key.get(x, ()):",
        [INTS, INTS],
        """
        def f(xs, ys):
            places = {}
            for x in xs:
                places[x] = []
                for j in range(len(ys)):
                    if ys[j] == x:
                        places[x].append(j)
                        break
            return places
        """,
    ),
    "pairs in a comprehension": (
        "scan_group",
        "for key, value in others_by_key.get(x, ())",
        [INTS, PAIRS],
        """
        def f(xs, others):
            return [(x, value) for x in xs for key, value in others if key == x]
        """,
    ),
    "cache of a nested function": (
        "cache",
        "    _choose_results = {}\n",
        [st.integers(0, 7)],
        """
        def f(n):
            def choose(n, k):
                if k == 0 or k == n:
                    return 1
                return choose(n - 1, k - 1) + choose(n - 1, k)

            return [choose(n, k) for k in range(n + 1)]
        """,
    ),
    "sorted list that is searched": (
        "hoist",
        "xs_sorted = sorted(xs)",
        [INTS],
        """
        def f(xs):
            return [sorted(xs).index(x) for x in xs]
        """,
    ),
    "length of a part": (
        "hoist",
        'name_len = len(row["name"])',
        [st.fixed_dictionaries({"name": TEXT}), INTS],
        """
        def f(row, xs):
            out = []
            for x in xs:
                out.append(x + len(row["name"]))
            return out
        """,
    ),
    "largest of a list of two": (
        "min_max",
        "return (y if y > x else x), (y if y < x else x)",
        [SMALL, SMALL],
        """
        def f(x, y):
            return max([x, y]), min((x, y))
        """,
    ),
    "lists that are added": (
        "append",
        "out += part",
        [st.lists(INTS)],
        """
        def f(parts):
            out = []
            for part in parts:
                out = out + part
            return out
        """,
    ),
    "cache": (
        "cache",
        "_f_results = {}\n\n# of Pisa\ndef f(n):",
        [SMALL],
        '''
        """Doc."""
        from __future__ import annotations

        LIMIT = 2

        # of Pisa
        def f(n):
            """Rabbits."""
            return n if n < LIMIT else f(n - 1) + f(n - 2)
        ''',
    ),
    "cache of a call in a loop": (
        "cache",
        "key = (n, most, type(n), type(most))",
        [SMALL],
        """
        import os

        def f(n, most=3):
            if n <= 0:
                return int(n == 0)
            return sum(f(n - each, most) for each in range(1, most + 1))
        """,
    ),
    "set beside a list that grows": (
        "growing_set",
        "if x not in seen_set:",
        [INTS],
        """
        def f(xs):
            seen = []  # in order
            for x in xs:
                if x not in seen:
                    seen.append(x)
            return seen
        """,
    ),
    "set beside a list that is begun anew": (
        "growing_set",
        "row_set = set()",
        [PAIRS],
        """
        def f(pairs):
            rows = []
            for pair in pairs:
                row = []
                for x in pair * 2:
                    if x in row: continue
                    row.append(x)
                rows.append(row)
            return rows
        """,
    ),
    "set beside a parameter": (
        "growing_set",
        "known_set = set(known)",
        [INTS, INTS],
        '''
        def f(xs, known: list[int]):
            """Doc."""
            return [x for x in xs if x in known]
        ''',
    ),
    "set beside a list of words": (
        "growing_set",
        "words_set = set(words)",
        [TEXTS, st.text("abz ")],
        """
        def f(texts, text):
            words = text.split()
            return [each for each in texts if each in words]
        """,
    ),
    "set beside what is given and grows": (
        "growing_set",
        "if x not in known_set:",
        [INTS, INTS],
        """
        def f(xs, known):
            for x in xs:
                if x not in known:
                    known.append(x)
            return known
        """,
    ),
    "set beside what is computed": (
        "growing_set",
        "seen_set.add(seen_item)",
        [PAIRS],
        """
        def f(pairs):
            seen = [(0, 0)]
            out = []
            for a, b in pairs:
                if (b, a) not in seen and (a, b) not in seen:
                    # both ways
                    seen.append((a, b))
                elif a > 2:
                    seen += [(a + 1, b), (a, b + 1)]
                elif b > 7:
                    seen.insert(0, (b, a))
                elif a == b:
                    seen.clear()
                out.append(len(seen))
            out += seen
            return out, seen
        """,
    ),
    "set beside parts of what is seen": (
        "growing_set",
        "seen_item = row['name'].lower()",
        [ROWS],
        """
        def f(rows):
            seen = []
            ids = []
            for row in rows:
                if row["id"] in ids:
                    continue
                ids.append(row['id'])
                if row["name"].lower() not in seen:
                    seen.append(row['name'].lower())
            return ids, seen
        """,
    ),
    "set of what is made in each round": (
        "lookup_set",
        "known_set = [b[0] for b in bs if b[1] > 1]",
        [PAIRS, PAIRS],
        """
        def f(ones, bs):
            out = [a for a in ones if a[0] in [b[0] for b in bs if b[1] > 1]]
            for a in ones:
                if a[1] not in set(b[1] for b in bs) and a[1] not in [x for x, _ in bs]:
                    out.append(a)
            return out
        """,
    ),
    "set of an argument": (
        "lookup_set",
        "known_set = known\n    if type(known_set) in (list, tuple):",
        [FEW, ANY],
        """
        def f(xs, known):
            out = []
            for x in xs:
                if x in known or x + 1 not in known:
                    out.append(x)
            return out
        """,
    ),
    "set of an argument in a comprehension": (
        "lookup_set",
        "if x in known_set]",
        [TEXTS, st.one_of(TEXTS, st.text("ab"))],
        """
        def f(xs, known):
            return [x for x in xs if x in known]
        """,
    ),
    "set of what an object holds": (
        "lookup_set",
        "known_set = self._known",
        [FEW, ANY],
        """
        class Filter:
            def __init__(self, known):
                self._known = known
                self.count = 0
            def keep(self, xs):
                out = []
                for x in xs:
                    if x in self._known and len(self._known) > 1:
                        self.count += 1
                        out.append(x)
                return out, [x for x in xs if x not in self._known], self.count
        def f(xs, known):
            return Filter(known).keep(xs)
        """,
    ),
    "set of what a call gives": (
        "lookup_set",
        "while i in names_set",
        [FEW],
        """
        def load(xs):
            return list(xs)
        def f(xs):
            names = load(xs)
            i = 0
            while i in names:
                i += 1
            return i
        """,
    ),
    "values are asked": (
        "lookup_set",
        "known_set = list(d.values())",
        [FEW, st.one_of(WORDS, LISTS)],
        """
        def f(xs, d):
            out = [x for x in xs if x in d.values()]
            for x in xs:
                if x not in list(d.values()) and x in list(xs):
                    out.append(x)
            return out
        """,
    ),
    "words of a text are asked": (
        "lookup_set",
        'known_set = text.split(" ")',
        [TEXTS, st.text("ab ")],
        """
        def f(words, text):
            out = []
            for word in words:
                if word.lower() in text.split(" "):
                    out.append(word)
                if word in [other.upper() for other in words]:
                    out.append(word)
            return out
        """,
    ),
    "counts and places": (
        "scan_index",
        "xs_counts[xs_item] = xs_counts.get(xs_item, 0) + 1",
        [FEW],
        """
        def f(xs):
            out = {x: xs.count(x) for x in xs}
            for x in set(xs):
                out[x] += xs.index(x)
            return out
        """,
    ),
    "counts of characters": (
        "scan_index",
        "text_counts[c]",
        [st.text("abc")],
        """
        def f(text):
            return [text.count(c) for c in text]
        """,
    ),
    "hoist": (
        "hoist",
        "xs_sum = sum(xs)",
        [INTS],
        """
        def f(xs):
            out = [x * sum(xs) for x in xs if x < max(xs)]
            i = 0
            while i < len(xs):
                out.append(f"é {len(xs)} {'x'}")
                if xs[i] in sorted(xs)[1:]:
                    out.append(len(xs))
                i += 1
            return out
        """,
    ),
    "hoist of texts": (
        "hoist",
        "word_strip_2 = word.strip(",
        [TEXTS, st.text("abZ ")],
        """
        def f(texts, word):
            return [t for t in texts if t in word.strip("a") or t == word.strip("b").lower()]
        """,
    ),
    "a text that others are given": (
        "hoist",
        "text_len = len(text)",
        [st.text("ab"), FEW],
        """
        def shorten(text, x):
            return text[x:]
        def f(text: str, xs: list):
            parts = (text, text)
            return [shorten(text, x) + str(len(text)) for x in xs], parts
        """,
    ),
    "a text that is only asked": (
        "hoist",
        "text_len = len(text)",
        [st.text("ab")],
        """
        def f(text):
            i = n = 0
            while i < len(text):
                if text.startswith("ab", i) and text != "ab":
                    n += 1
                i += 1
            return n
        """,
    ),
    "deque": (
        "deque",
        "queue.popleft()",
        [INTS],
        """
        def f(xs):
            queue: list[int] = list(xs)
            out = []
            while queue:
                x = queue.pop(0)
                out.append((x, len(queue), 3 in queue))
                if x > 5:
                    queue.append(x - 3)
                elif x > 2:
                    queue.insert(0, x - 3)
            return out
        """,
    ),
    "append": (
        "append",
        "out.append(x * 2)",
        [INTS],
        """
        def f(xs):
            out = []
            for x in xs:
                out = out + [x * 2]
                if x > 3:
                    out = out + [x, x]
            return out
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
    "join": (
        "join",
        'text = "".join(text_parts)',
        [TEXTS],
        """
        def f(parts):
            text = "<"
            for part in parts:
                # a comment that stays
                text += part.upper()  # one that stays beside
                if part:
                    text = text + ("," if "a" in part else ";") + part
                text += (
                    "'"  # a quote
                    + part
                )
            return text + ">"
        """,
    ),
    "join in the inner loop and in the outer one": (
        "join",
        'line = "".join(line_parts)',
        [st.lists(TEXTS, max_size=3)],
        """
        def f(rows):
            out = ""
            for row in rows:
                line = ""
                for cell in row:
                    line += cell + "|"
                out += line
            return out
        """,
    ),
    "join of bytes": (
        "join",
        'b"".join(',
        [TEXTS],
        """
        def f(parts):
            data: bytes = b""
            for part in parts:
                data += part.encode()
            return data
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
    "set of the module": (
        "module_set",
        "_KNOWN_SET = frozenset(KNOWN)",
        [INTS],
        """
        KNOWN = (1, 2, 3)

        def f(xs):
            return [x for x in xs if x in KNOWN], len(KNOWN)
        """,
    ),
    "pattern": (
        "pattern",
        '_PATTERN = re.compile("[ab]+")',
        [TEXTS],
        """
        import re

        def f(texts):
            out = [re.sub("[ab]+", "<>", text) for text in texts]
            found = re.compile(r"z", re.I)
            out += [bool(found.search(text)) for text in texts]
            return out + [re.findall("b", text, re.I | re.M) for text in texts]
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
    "set of constants": (
        "constant_set",
        "x in {1, 2, 3}",
        [INTS],
        """
        def f(xs):
            return [x for x in xs if x in (1, 2, 3) or x not in [0, -1, 9]]
        """,
    ),
    "ruff": (
        "ruff",
        "[x * 2 for x in xs if x > 1]",
        [INTS],
        """
        def f(xs):
            out = []
            for x in xs:
                if x > 1:
                    out.append(x * 2)
            return out
        """,
    ),
}


def apply_all(text, order=CATALOG):
    """Apply all transformations, one after the other."""
    for transformation in order:
        text = transform(text, transformation.name).text
    return text


@pytest.mark.parametrize("case", CASES)
def test_the_slow_pattern_is_replaced_once(case):
    name, expected, _, text = CASES[case]
    text = textwrap.dedent(text)
    applied = transform(text, name)
    assert expected in applied.text
    assert applied.notes
    assert all(re.match(r"line \d+: .", note) for note in applied.notes)
    again = transform(applied.text, name)
    assert again.text == applied.text
    assert not again.notes
    for comment in re.findall(r"#.*", text):
        assert comment in applied.text


@pytest.mark.parametrize("case", CASES)
def test_a_function_behaves_as_before_after_one_and_after_all_transformations(case):
    name, _, inputs, text = CASES[case]
    text = textwrap.dedent(text)
    before, alone, together = load(text), load(transform(text, name).text), load(apply_all(text))

    @settings(max_examples=60, deadline=None, derandomize=True, database=None)
    @given(st.tuples(*inputs))
    def check(arguments):
        expected = call(before, arguments)
        assert call(alone, arguments) == expected
        assert call(together, arguments) == expected

    check()


def test_every_transformation_has_a_case():
    assert {name for name, *_ in CASES.values()} == {each.name for each in CATALOG}


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.sampled_from(sorted(CASES)), st.permutations(CATALOG), st.data())
def test_a_function_behaves_as_before_in_whatever_order_transformations_are_applied(
    case, order, data
):
    _, _, inputs, text = CASES[case]
    text = textwrap.dedent(text)
    before, after = load(text), load(apply_all(text, order))
    for _ in range(5):
        arguments = data.draw(st.tuples(*inputs))
        assert call(before, arguments) == call(after, arguments)


def test_only_the_functions_that_were_asked_for_are_changed():
    text = textwrap.dedent(CASES["join"][3])
    text += text.replace("def f", "def g") + "class A:\n" + textwrap.indent(text, "    ")
    applied = transform(text, "join", frozenset({"g", "A.f"}))
    assert set(applied.scopes) == {"g", "A.f"}
    assert applied.text.count("text_parts = [text]") == 2
    assert ast.unparse(ast.parse(applied.text).body[0]) == ast.unparse(ast.parse(text).body[0])


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_form_of_a_file_stays(end):
    text = "\ufeff# é ö 漢\ndef f(xs):\n\ts = ''\n\tfor x in 'é', xs:\n\t\ts += 'ü' + x\n\treturn s"
    text = text.replace("\n", end)
    new = transform(text, "join").text
    assert new.startswith(f"\ufeff# é ö 漢{end}def f(xs):{end}\ts = ''{end}")
    assert f"\t\ts_parts.append('ü' + x){end}" in new
    assert new.endswith("return s")
    assert (end == "\r\n") == ("\r" in new)


def test_the_docs_name_families_and_transformations_that_exist():
    (guide,) = (Path(__file__).parents[2] / "docs").glob("optimi[sz]ing.md")
    text = guide.read_text("utf-8").partition("| family |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| ((?:`\w+`(?:, )?)+) \|", text, re.M)
    listed = {(name, family) for family, names in rows for name in re.findall(r"\w+", names)}
    assert listed == {(each.name, each.family) for each in CATALOG}


ELSE = """def f(xs):
    out = []
    for x in xs:
        out.append(x + 1)
    else:
        out.append(0)
    return out


def g(xs):
    out = []
    for x in xs:
        out.append(x + 1)
    return out


def h(xs):
    def inner():
        found = []
        for x in xs:
            found.append(x * 2)
        else:
            found.append(0)
        return found

    out = []
    for x in inner():
        out.append(x + 1)
    return out
"""


@pytest.mark.skipif(ruff.find_ruff() is None, reason="ruff isn't here")
def test_a_loop_keeps_what_it_does_in_the_end():
    applied = transform(ELSE, "ruff")
    assert "def g(xs):\n    return [x + 1 for x in xs]" in applied.text or (
        "def g(xs):\n    out = [x + 1 for x in xs]" in applied.text
    )
    assert applied.text.count("else:") == 2
    assert "f" not in applied.scopes
    old, new = {}, {}
    exec(ELSE, old)
    exec(applied.text, new)
    for name in "fgh":
        assert new[name]([1, 2]) == old[name]([1, 2])
    # Nothing else to be had: nothing is changed.
    alone = ELSE[: ELSE.index("def g")]
    assert transform(alone, "ruff").text == alone
    assert transform(ELSE, "ruff", frozenset({"f"})).text == ELSE
