"""Each transformation: what it makes of slow code, and that the code still does the same."""

import ast
import copy
import json
import re
import subprocess
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from fairtrial_codemod.transforms import ruff
from fairtrial_codemod.transforms.catalogue import CATALOGUE, transform

INTS = st.lists(st.integers(-9, 9), max_size=12)
FEW = st.lists(st.integers(0, 5), max_size=12)
TEXTS = st.lists(st.text("abcz \n'\"é", max_size=3), max_size=6)
PAIRS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=8)
SMALL = st.integers(0, 14)
WORDS = st.dictionaries(st.integers(0, 5), st.integers(0, 5), max_size=5)
GRAPH = st.dictionaries(st.integers(0, 8), st.lists(st.integers(0, 8), max_size=3), max_size=8)

# (transformation, what must be in the new text, inputs of f, source)
CASES = {
    "heap by min and remove": (
        "heap",
        "x = heapq.heappop(todo)",
        [INTS],
        """
        def f(xs):
            todo = [x for x in xs]
            out = []
            while todo and (len(todo) < 99 or xs):
                # the smallest
                x = min(todo)
                todo.remove(x)
                if x > 3:
                    todo.append(x // 2)
                out.append((x, len(todo)))
            return out
        """,
    ),
    "heap by sort and pop": (
        "heap",
        "x = heapq.heappop(todo)",
        [INTS],
        """
        def f(xs):
            out = []
            todo = list(xs)
            while todo:
                todo.sort()
                x = todo.pop(0)
                out.append(x)
                if x > 4: out.append(0)
            return out
        """,
    ),
    "heap of each round of an outer loop": (
        "heap",
        "heapq.heapify(todo)",
        [INTS],
        """
        def f(xs):
            out = []
            for start in range(2):
                todo = list(xs)
                todo.append(start)
                while todo:
                    x = todo.pop(todo.index(min(todo)))
                    out.append(x)
            return out
        """,
    ),
    "what is ready": (
        "ready_heap",
        "node = heapq.heappop(ready)",
        [GRAPH],
        """
        def f(graph):
            waiting = {node: set(needs) for node, needs in graph.items()}
            for needs in list(waiting.values()):
                for node in needs:
                    waiting.setdefault(node, set())
            order = []
            while waiting:
                ready = [node for node, needs in waiting.items() if not needs]
                if not ready:
                    raise ValueError(sorted(waiting))
                node = min(ready)
                order.append(node)
                del waiting[node]
                for needs in waiting.values():
                    needs.discard(node)
            return order
        """,
    ),
    "what is ready, written otherwise": (
        "ready_heap",
        "heapq.heappush(free, key)",
        [GRAPH],
        """
        def f(graph):
            left = {name: {*needs} - {name} for name, needs in graph.items()}
            return list(g({name: needs & left.keys() for name, needs in left.items()}))

        def g(given):
            todo = {name: set(needs) for name, needs in given.items()}
            while True:
                free = sorted(name for name, needs in todo.items() if not needs)
                if not free:
                    break
                first = min(free)
                todo.pop(first)
                for other, needs in todo.items():
                    needs.discard(first)
                yield first
        """,
    ),
    "cache": (
        "cache",
        "_f_known = {}\n\n# of Pisa\ndef f(n):",
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
        "asked = (n, most, type(n), type(most))",
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
        "set_beside",
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
        "set_beside",
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
        "set_beside",
        "known_set = set(known)",
        [INTS, INTS],
        '''
        def f(xs, known: list[int]):
            """Doc."""
            return [x for x in xs if x in known]
        ''',
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
    "keys": (
        "key_test",
        "x in d ",
        [INTS, WORDS],
        """
        def f(xs, d: dict[int, int]):
            return [x for x in xs if x in d.keys() and x in list(d.values())]
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
    "pick": (
        "pick",
        "heapq.nsmallest(1, xs, key=abs)[0]",
        [INTS.filter(bool)],
        """
        def f(xs):
            return (
                sorted(xs)[0], sorted(xs)[-1], sorted(xs, key=abs)[0], sorted(xs, reverse=True)[0],
                sorted(xs, key=abs, reverse=True)[0], sorted(xs)[:3], sorted(xs, reverse=True)[:1],
                sorted(xs, key=abs)[-1],
            )
        """,
    ),
    "few": (
        "few",
        "heapq.nsmallest(3, xs)",
        [INTS],
        """
        def f(xs):
            return (
                sorted(xs)[:3], sorted(xs, reverse=True)[:2], sorted(xs, key=abs)[:4],
                sorted(xs)[:1], sorted(xs, key=abs, reverse=True)[:2],
            )
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
    "lookup": (
        "lookup",
        "math_gcd = math.gcd",
        [INTS],
        """
        import math

        def f(xs):
            out = []
            for x in xs:
                out.append(math.gcd(x, 6))
            return out
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
    "counts and places": (
        "count_index",
        "xs_counts = Counter(xs)",
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
        "count_index",
        "text_counts[c]",
        [st.text("abc")],
        """
        def f(text):
            return [text.count(c) for c in text]
        """,
    ),
    "index for equal keys": (
        "match_index",
        "for b in bs_index.get(a[0], ()):",
        [PAIRS, PAIRS],
        """
        def f(ones, bs):
            out = []
            for a in ones:
                for b in bs:
                    if b[0] == a[0] and b[1] > 2:
                        out.append((a, b))
                        if a[1] == 4:
                            break
                else:
                    out.append(a)
            return out
        """,
    ),
    "two indexes of the same list": (
        "match_index",
        "in bs_index_2.get(a[1], ())",
        [PAIRS, PAIRS],
        """
        def f(ones, bs):
            out = []
            for a in ones:
                for b in bs:
                    if b[0] == a[0]:
                        out.append((a, b))
                for c in bs:
                    if a[1] == c[1]:
                        out.append((c, a))
            return out
        """,
    ),
    "index in a comprehension": (
        "match_index",
        "for b in bs_index.get(a[0], ()) if",
        [PAIRS, PAIRS],
        """
        def f(ones, bs):
            return [(a, b) for a in ones for b in bs if a[0] == b[0] if b[1] > a[1]]
        """,
    ),
    "set of what is made in each round": (
        "inner_set",
        "known = {b[0] for b in bs if b[1] > 1}",
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
    "running sums": (
        "running_sum",
        "xs_sums[i + 1]",
        [INTS],
        """
        def f(xs):
            out = [sum(xs[:i]) for i in range(len(xs))]
            for i, x in enumerate(xs):
                out.append((x, sum(xs[:i + 1]), max(xs[: i + 1])))
            for j in range(1, len(xs)):
                out.append(min(xs[:j + 1]) + sum(xs[:j]))
            return out
        """,
    ),
    "sums of windows": (
        "window_sum",
        "xs_sums[i + width] - xs_sums[i] if xs_sums and 0 <= i <= i + width < len(xs_sums)",
        [st.one_of(INTS, st.lists(st.floats(-9, 9), max_size=6)), st.integers(-2, 5)],
        """
        def f(xs, width):
            out = [sum(xs[j - 1 : j]) for j in range(len(xs))]
            for i in range(len(xs) - width + 1):
                # the mean
                out.append(sum(xs[i : i + width]) / 2)
            return out
        """,
    ),
    "divisors": (
        "square_root",
        "for i in range(2, math.isqrt(max(n, 0)) + 1):",
        [st.integers(-5, 200)],
        """
        def f(n):
            for i in range(2, n):
                if n % i == 0:
                    return False
            return n > 1, all(n % k for k in range(2, n)), any(n % k == 0 for k in range(2, n))
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
    "set beside a list of words": (
        "set_beside",
        "words_set = set(words)",
        [TEXTS, st.text("abz ")],
        """
        def f(texts, text):
            words = text.split()
            return [each for each in texts if each in words]
        """,
    ),
    "set beside what is given and grows": (
        "set_beside",
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
    "sum": (
        "sum",
        "total = sum(xs)",
        [INTS],
        """
        def f(xs):
            total = 0
            for x in xs:
                total += x
            squares = 0
            for y in xs:
                squares += y * y
            found = False
            for z in xs:
                if z > 3:
                    found = True
            good = True
            for z2 in xs:
                if not z2 > 3:
                    good = False
            return total, squares, found, good
        """,
    ),
    "enumerate": (
        "enumerate",
        "for i, xs_item in enumerate(xs):",
        [INTS],
        """
        def f(xs: list[int]):
            out = []
            for i in range(len(xs)):
                out.append(i * xs[i])
            for j in range(len(xs)):
                out.append(xs[j] + xs[j])
            return out
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


def load(text):
    """The function f of a source."""
    names = {}
    exec(compile(text, "<case>", "exec", dont_inherit=True), names)
    return names["f"]


def outcome(function, arguments):
    """What it gives or raises."""
    try:
        return function(*copy.deepcopy(arguments))
    except Exception as error:
        return type(error), error.args


@pytest.mark.parametrize("case", CASES)
def test_the_slow_pattern_is_replaced_and_nothing_else_happens_ever_again(case):
    name, expected, _, text = CASES[case]
    text = textwrap.dedent(text)
    applied = transform(text, name)
    assert expected in applied.text
    assert applied.notes
    assert all(re.match(r"line \d+", note) for note in applied.notes)
    again = transform(applied.text, name)
    assert again.text == applied.text
    assert not again.notes
    for comment in re.findall(r"#.*", text):
        assert comment in applied.text


@pytest.mark.parametrize("case", CASES)
def test_it_does_the_same_as_before(case):
    name, _, inputs, text = CASES[case]
    text = textwrap.dedent(text)
    before, after = load(text), load(transform(text, name).text)

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(st.tuples(*inputs))
    def check(arguments):
        assert outcome(before, arguments) == outcome(after, arguments)

    check()


def test_every_transformation_has_a_case():
    files = Path(__file__).parent.glob("test_proposer_codemod*.py")
    named = set(re.findall(r'^        "(\w+)",$', "".join(map(Path.read_text, files)), re.M))
    assert {name for name, *_ in CASES.values()} <= {each.name for each in CATALOGUE} <= named


@pytest.mark.parametrize("case", CASES)
def test_all_transformations_after_each_other_do_the_same_as_before(case):
    _, _, inputs, text = CASES[case]
    text = new = textwrap.dedent(text)
    for each in CATALOGUE:
        new = transform(new, each.name).text
    before, after = load(text), load(new)

    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(st.tuples(*inputs))
    def check(arguments):
        assert outcome(before, arguments) == outcome(after, arguments)

    check()


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.sampled_from(sorted(CASES)), st.permutations(CATALOGUE), st.data())
def test_in_whatever_order_they_are_applied_the_code_does_the_same(case, order, data):
    _, _, inputs, text = CASES[case]
    text = new = textwrap.dedent(text)
    for each in order:
        new = transform(new, each.name).text
    before, after = load(text), load(new)
    for _ in range(5):
        arguments = data.draw(st.tuples(*inputs))
        assert outcome(before, arguments) == outcome(after, arguments)


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


# -- imports --

DRAIN = """def f(xs):
    queue = list(xs)
    out = []
    while queue:
        out.append(queue.pop(0))
    return out
"""
# (what stands at the top, and what stands there afterwards): a `deque` is needed, and `heapq`
LAYOUTS = {
    "nothing": ("", "from collections import deque\n\n\n"),
    "docstring": ('"""Doc."""\n\n\n', '"""Doc."""\n\nfrom collections import deque\n\n\n'),
    "future": (
        '"""Doc."""\n\nfrom __future__ import annotations\n\n\n',
        '"""Doc."""\n\nfrom __future__ import annotations\n\nfrom collections import deque\n\n\n',
    ),
    "only local ones": (
        "from tidy.cleaning import clean\n\n\n",
        "from collections import deque\n\nfrom tidy.cleaning import clean\n\n\n",
    ),
    "local ones after future": (
        "from __future__ import annotations\n\nfrom . import clean\n\n\n",
        "from __future__ import annotations\n\nfrom collections import deque\n\n"
        "from . import clean\n\n\n",
    ),
    "all groups": (
        "import os\nfrom abc import ABC\nfrom pathlib import Path\n\nimport numpy\n\n"
        "from tidy import clean\n\n\n",
        "import os\nfrom abc import ABC\nfrom collections import deque\n"
        "from pathlib import Path\n\nimport numpy\n\nfrom tidy import clean\n\n\n",
    ),
    "first of its group": (
        '"""Doc."""\n\nfrom pathlib import Path\n\nimport numpy\n\n\n',
        '"""Doc."""\n\nfrom collections import deque\n'
        "from pathlib import Path\n\nimport numpy\n\n\n",
    ),
    "by module alone": (
        "from abc import ABC\nimport os\nfrom typing import Any\n\n\n",
        "from abc import ABC\nfrom collections import deque\n"
        "import os\nfrom typing import Any\n\n\n",
    ),
    "not sorted": (
        "import sys\nfrom typing import Any\nimport os\n\nimport numpy\n\n\n",
        "import sys\nfrom typing import Any\nimport os\nfrom collections import deque\n\n"
        "import numpy\n\n\n",
    ),
    "comments between groups": (
        "# Standard\nimport os\n\n# Ours\nfrom tidy import clean\n\n\n",
        "# Standard\nimport os\nfrom collections import deque\n\n"
        "# Ours\nfrom tidy import clean\n\n\n",
    ),
    "comment above the group": (
        '"""Doc."""\n\n# Standard\nfrom typing import Any\n\n\n',
        '"""Doc."""\n\n# Standard\nfrom collections import deque\nfrom typing import Any\n\n\n',
    ),
    "comment above local ones": (
        '"""Doc."""\n\n# Ours\nfrom tidy import clean\n\n\n',
        '"""Doc."""\n\nfrom collections import deque\n\n# Ours\nfrom tidy import clean\n\n\n',
    ),
    "two lines above local ones": (
        '"""Doc."""\n\n\nfrom tidy import clean\n\n\n',
        '"""Doc."""\n\n\nfrom collections import deque\n\nfrom tidy import clean\n\n\n',
    ),
    "no line above local ones": (
        '"""Doc."""\nfrom tidy import clean\n\n\n',
        '"""Doc."""\n\nfrom collections import deque\n\nfrom tidy import clean\n\n\n',
    ),
    "no line above anything": (
        '"""Doc."""\nX = 1\n\n\n',
        '"""Doc."""\n\nfrom collections import deque\n\nX = 1\n\n\n',
    ),
    "comment that stands by itself": (
        '"""Doc."""\n\n# All of it\n\nfrom tidy import clean\n\n\n',
        '"""Doc."""\n\n# All of it\n\nfrom collections import deque\n\n'
        "from tidy import clean\n\n\n",
    ),
    "program": (
        "#!/usr/bin/env python\n# Licence\n\nimport numpy\n\n\n",
        "#!/usr/bin/env python\n# Licence\n\nfrom collections import deque\n\nimport numpy\n\n\n",
    ),
    "try": (
        '"""Doc."""\n\ntry:\n    import numpy\nexcept ImportError:\n    numpy = None\n'
        "from tidy import clean\n\n\n",
        '"""Doc."""\n\nfrom collections import deque\n\n'
        "try:\n    import numpy\nexcept ImportError:\n    numpy = None\n"
        "from tidy import clean\n\n\n",
    ),
    "try after imports": (
        "import os\n\ntry:\n    import numpy\nexcept ImportError:\n    numpy = None\n\n\n",
        "import os\nfrom collections import deque\n\n"
        "try:\n    import numpy\nexcept ImportError:\n    numpy = None\n\n\n",
    ),
    "several in a line": (
        "import abc, os\nimport numpy, re\n\n\n",
        "import abc, os\nfrom collections import deque\nimport numpy, re\n\n\n",
    ),
    "several statements in a line": (
        "import abc; import os\n\n\n",
        "import abc; import os\nfrom collections import deque\n\n\n",
    ),
    "one name more": (
        "from collections import ChainMap, OrderedDict, namedtuple\n\n\n",
        "from collections import ChainMap, OrderedDict, deque, namedtuple\n\n\n",
    ),
    "one name more, last": (
        "from collections import (\n    ChainMap,\n    Counter,\n)\n\n\n",
        "from collections import (\n    ChainMap,\n    Counter,\n    deque,\n)\n\n\n",
    ),
    "one name more, beside comments": (
        "from collections import (  # some\n    ChainMap,  # one\n    namedtuple,  # two\n)\n\n\n",
        "from collections import (  # some\n    ChainMap,  # one\n    deque,\n"
        "    namedtuple,  # two\n)\n\n\n",
    ),
    "one name more, and a comment on the last": (
        "from collections import (\n    ChainMap,\n    Counter,  # last\n)\n\n\n",
        "from collections import (\n    ChainMap,\n    deque,\n    Counter,  # last\n)\n\n\n",
    ),
    "one name more, not sorted": (
        "from collections import namedtuple, ChainMap\n\n\n",
        "from collections import namedtuple, ChainMap, deque\n\n\n",
    ),
    "there already": ("from collections import deque\n\n\n",) * 2,
    "relative of that name": (
        "from .collections import OrderedDict\n\n\n",
        "from collections import deque\n\nfrom .collections import OrderedDict\n\n\n",
    ),
    "not at the top": (
        "X = 1\nfrom collections import OrderedDict\n\n\n",
        "from collections import deque\n\nX = 1\nfrom collections import OrderedDict\n\n\n",
    ),
    "under a condition": (
        "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from tidy import Any\n\n\n",
        "from collections import deque\nfrom typing import TYPE_CHECKING\n\n"
        "if TYPE_CHECKING:\n    from tidy import Any\n\n\n",
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_import_goes_to_the_standard_librarys_group(layout):
    top, wanted = LAYOUTS[layout]
    text = transform(top + DRAIN, "deque").text
    assert text[: text.index("def f")] == wanted
    assert "queue.popleft()" in text
    # As many lines of another kind of end.
    dos = transform((top + DRAIN).replace("\n", "\r\n"), "deque").text
    assert dos == text.replace("\n", "\r\n")


@pytest.mark.skipif(ruff.find_ruff() is None, reason="ruff isn't here")
def test_linters_have_nothing_to_say_about_imports_that_were_sorted(tmp_path):
    """Where imports were sorted before, they are so afterwards, by the usual rules."""
    before = {layout: top + DRAIN for layout, (top, _) in LAYOUTS.items()}
    after = {layout: transform(text, "deque").text for layout, text in before.items()}
    found = find_unsorted(tmp_path / "before", before)
    tidy = [each for each in LAYOUTS if each not in found and "on the last" not in each]
    assert len(tidy) >= 12
    assert not find_unsorted(tmp_path / "after", after) & {*tidy}


def find_unsorted(folder, texts):
    """Those whose imports ruff would sort."""
    folder.mkdir()
    names = {f"text_{place}.py": each for place, each in enumerate(texts)}
    for name, each in names.items():
        (folder / name).write_bytes(texts[each].encode())
    command = [ruff.find_ruff(), "check", "--isolated", "--no-cache", "-q", "--select", "I001"]
    command += ["--output-format", "json", "."]
    done = subprocess.run(command, cwd=folder, capture_output=True)
    assert done.returncode in (0, 1), done.stderr
    return {names[Path(each["filename"]).name] for each in json.loads(done.stdout)}


@pytest.mark.skipif(ruff.find_ruff() is None, reason="ruff isn't here")
def test_imports_that_ruff_adds_go_there_too():
    text = (
        "import os\n\nfrom tidy import clean\n\n\n"
        "def f(xs):\n    xs = sorted(xs, key=lambda x: x[1])\n"
        "    return [os.path.join(a, b) for a, b in xs]\n"
    )
    fixed = transform(text, "ruff").text
    assert "operator.itemgetter(1)" in fixed
    assert "starmap(os.path.join, xs)" in fixed
    assert fixed.startswith(
        "import operator\nimport os\nfrom itertools import starmap\n\n"
        "from tidy import clean\n\n\ndef"
    )


# -- what ruff's fixes lose --

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
