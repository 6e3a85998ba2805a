"""Every transformation: what it makes of small programs does the same as they do, and in order.

A program's function `f` says by the names of its parameters what it is given. It is run before and
after on the same inputs: what it returns or raises, what becomes of its arguments, what is left of
its iterators, what it prints and when it calls `look` are compared. Drawing inputs takes ten times
as long as running a program: they are drawn once for all programs, each of which has them in
another order and with other inputs beside them.
"""

import ast
import copy
import math
import textwrap
from collections import deque
from dataclasses import dataclass
from functools import cache
from itertools import islice
from random import Random

import pytest
from hypothesis import Phase, given, settings, strategies as st

from fairtrial_codemod.catalog import BY_NAME, CATALOG, transform

# What Python 3.13 says of programs that are as old as those that are mended.
pytestmark = pytest.mark.filterwarnings("ignore:'(maxsplit|count)' is passed as positional")


class Flow(list):
    """What a program gets as an iterator, which is used up by going through it."""


class Broken(list):
    """What a program gets as an iterator that fails at its end."""


class Word(str):
    """A text of somebody's own."""


@dataclass(frozen=True)
class Own:
    """What a program gets as a `Word`."""

    text: str


NAN = math.nan
SMALL = st.integers(0, 4)
INT = st.integers(-9, 9)
NUMBER = st.sampled_from([0, 1, 2, 3, -1, 7, True, False, 0.0, 1.0, -0.0, 0.5, 2.25, -3.5])
THING = st.sampled_from(
    [0, 1, 2, 3, 1.0, 0.5, True, None, "", "a", "b", "é", "ab", (), (1, 2), (1.0, "a"), NAN]
)
FEW = st.sampled_from([0, 1, True, 1.0])
TEXT = st.text("abz.-,; \n\tAéß漢0", max_size=6)
WORD = st.one_of(TEXT, TEXT.map(Own))
ROW = st.fixed_dictionaries({"id": THING, "name": TEXT, "n": NUMBER})
DATE = st.one_of(
    st.dates().map(str),
    st.datetimes().map(lambda each: str(each)[:19]),
    st.datetimes().map(lambda each: each.isoformat()[:16]),
    st.text("0129-:TW +٢", min_size=8, max_size=19),
    st.sampled_from(
        ["2024-02-30", "20240101", "2024-W01-1", "2024-001", "2024-01- 1", " 024-01-01"]
    ),
    st.sampled_from(
        ["2024-01-01 24:00", "2024-01-01T24:00", "٢٠٢٤-01-01", "2024-+1-01", "0000-01-01"]
    ),
    st.sampled_from([None, 3, b"2024-01-01", Own("2024-01-01"), list("2024-01-01"), "2024-1-1"]),
)


def some(each, most=7):
    """Few of few different ones: there are many that are equal."""
    return st.lists(each, max_size=most)


def anything(each):
    """Whatever can be gone through."""
    forms = [some(each).map(form) for form in (list, tuple, Flow, Broken)]
    return st.one_of(*forms, st.dictionaries(each, SMALL))


INPUTS = {
    "things": some(THING),
    "more": some(THING),
    "wild": anything(THING),
    "ints": some(INT),
    "numbers": some(NUMBER),
    "many": anything(NUMBER),
    "flow": some(THING).map(Flow),
    "pairs": some(st.tuples(SMALL, NUMBER)),
    "others": some(st.tuples(THING, NUMBER)) | some(st.tuples(FEW, FEW)),
    "rows": some(ROW, 5),
    "held": some(st.lists(SMALL, max_size=2), 5),
    "table": st.dictionaries(THING, NUMBER, max_size=6),
    "boxes": st.dictionaries(SMALL, st.lists(SMALL, max_size=2), max_size=5),
    "graph": st.dictionaries(SMALL, st.sets(SMALL, max_size=3), max_size=5),
    "matrix": st.lists(st.lists(NUMBER, min_size=3, max_size=3), min_size=3, max_size=3),
    "text": TEXT,
    "word": WORD,
    "texts": some(WORD),
    "date": DATE,
    "n": st.integers(-2, 12),
    "thing": THING,
    "number": NUMBER,
}

PROGRAMS = {
    "sort": [
        """
        def f(numbers, n):
            for i in range(len(numbers)):
                for j in range(len(numbers) - 1 - i):
                    if numbers[j] > numbers[j + 1]:
                        numbers[j], numbers[j + 1] = numbers[j + 1], numbers[j]
            print(numbers)
            return look(n)
        """,
        """
        def f(ints):
            swapped = True
            while swapped:
                swapped = False
                for i in range(1, len(ints)):
                    if ints[i - 1] < ints[i]:
                        kept = ints[i]
                        ints[i] = ints[i - 1]
                        ints[i - 1] = kept
                        swapped = True
            return ints
        """,
        """
        def f(rows):
            for i in range(1, len(rows)):
                row = rows[i]
                j = i - 1
                while j >= 0 and rows[j]["n"] > row["n"]:
                    rows[j + 1] = rows[j]
                    j = j - 1
                rows[j + 1] = row
            return rows
        """,
    ],
    "scan_group": [
        """
        def f(things, others):
            out = []
            for thing in things:
                for key, value in others:
                    if key == thing and value:
                        out.append((thing, value))
                        break
            return out
        """,
        """
        def f(rows, table):
            return {
                name: [row["n"] for row in rows if row["n"] == number]
                for name, number in table.items()
            }
        """,
        """
        def f(pairs, ints):
            places = {}
            for x in ints:
                places[x] = []
                for i in range(len(pairs)):
                    if x == pairs[i][0] and pairs[i][1] != x:
                        places[x].append(i)
            return places
        """,
    ],
    "inline": [
        """
        def f(things, n):
            def same(one, other=3):
                return look(one) == other
            return [x for x in things if same(x) or same(other=n, one=things[0])]
        """,
        """
        def f(texts):
            out = []
            for text in texts:
                if is_long(text[:1], text) and not is_long(text, text):
                    out.append(text)
            return out
        def is_long(one, other):
            'Whether it is.'
            return one.lower() + "a" > other
        """,
    ],
    "cache": [
        """
        def f(n):
            if n < 2:
                return n
            return f(n - 1) + f(n - 2)
        """,
        """
        def f(n):
            return ways(n, 3), ways(True, 2), ways(1, 2), ways(1.0, 2)

        def ways(n, most):
            if n <= 0:
                return n
            return sum(ways(n - each, most) for each in range(1, most)) + n
        """,
    ],
    "growing_set": [
        """
        def f(graph, things):
            visited = []
            def visit(node):
                visited.append(node)
                for other in sorted(graph.get(node, ())):
                    if other not in visited:
                        visit(other)
                    print(other)
            for node in graph:
                if node not in visited:
                    visit(node)
            return visited
        """,
        """
        def f(wild):
            seen = []
            for x in wild:
                if x in seen:
                    print(x)
                    continue
                seen.append(x)
            return seen
        """,
        """
        def f(wild, more: list):
            return [x for x in wild if x in more]
        """,
        """
        def f(things, more):
            for x in things:
                if x not in more:
                    more.append(x)
            return more
        """,
        """
        def f(wild):
            seen, twice = [], []
            for x in wild:
                if x not in seen:
                    seen.append(x)
                elif x not in twice:
                    twice.append(x)
            return seen, twice
        """,
        """
        def f(others):
            seen = []
            for a, b in others:
                if (b, a) not in seen:
                    seen.append((a, b))
                elif a == b:
                    seen.clear()
                else:
                    seen += [(a, 1)]
            return seen
        """,
        """
        def f(rows):
            seen = []
            for row in rows:
                if row["id"] not in seen and row["name"].lower() not in seen:
                    seen.append(row["id"])
                    seen.insert(0, row["name"].lower())
            return seen, len(seen)
        """,
        """
        def f(others, n):
            (seen, last) = [(n, 1)], n
            for a, b in others:
                if (a, b) not in seen:
                    seen.append((a, b))
                    last = b
            return seen, last
        """,
    ],
    "lookup_set": [
        """
        def f(rows, things, more):
            common = things
            for row in [{"id": more}, *rows]:
                common = [x for x in common if x in row["id"]]
                print(common)
            return common
        """,
        """
        def f(things, boxes):
            out = []
            for key in sorted(boxes):
                for x in things:
                    if x in boxes[key]:
                        out.append(x)
            return out
        """,
        """
        def f(things, others):
            return [x for x in things if x in [y[0] for y in others if y[1] > 0]]
        """,
        """
        def f(wild, table):
            out = []
            for x in wild:
                if x not in table.values() and x not in list(table.values()):
                    out.append(x)
            return out
        """,
        """
        def f(texts, text):
            return [each for each in texts if each in text.split() or each in text.splitlines()]
        """,
        """
        def f(things, more):
            out = []
            for x in things:
                if x in more:
                    out.append(x)
            return out
        """,
        """
        def f(things, wild):
            return [x for x in things if x not in wild]
        """,
        """
        def f(ints, held):
            return [x for x in ints if x in held]
        """,
        """
        def f(texts, text):
            return [x for x in texts if x in text]
        """,
        """
        def f(things, wild):
            wild = wild or []
            return [x for x in things if x in wild]
        """,
        """
        def f(things, wild, n):
            if n > 3:
                wild = []
            for x in things:
                if x in wild:
                    print(x)
        """,
        """
        def f(things, wild, n):
            if n > 3:
                known = look(wild)
            elif n == 3:
                return n
            else:
                known = [1, n]
            return [x for x in things if x in known], known
        """,
    ],
    "scan_index": [
        """
        def f(things):
            out = {}
            for x in things:
                out[x] = things.count(x), things.index(x)
            return out
        """,
        """
        def f(text):
            return [text.count(c) for c in text], sorted({text.index(c) for c in text})
        """,
    ],
    "hoist": [
        """
        def f(numbers):
            return [x * sum(numbers) for x in numbers if x < max(numbers)]
        """,
        """
        def f(things, word):
            out = []
            for x in things:
                print(x)
                out.append((x, len(things), word.strip().lower()))
            return out
        """,
        """
        def f(numbers, things):
            out = []
            for x in numbers:
                if x > 0:
                    out.append((len(things), x in list(things)))
            return out
        """,
    ],
    "deque": [
        """
        def f(wild):
            queue = list(wild)
            while queue:
                x = queue.pop(0)
                print(x, len(queue), x in queue)
                if x == 1:
                    queue.append(2)
                elif x == 2:
                    queue.insert(0, None)
        """,
        """
        def f(things):
            queue = [None]
            queue.extend(things)
            while len(queue) < 9:
                print(queue.pop(0), len(queue))
                queue.insert(0, look(3))
                queue.append(None)
            return [*queue], queue[0], queue[-1], look(4) in queue
        """,
    ],
    "append": [
        """
        def f(wild):
            out = []
            for x in wild:
                out = out + [x]
                if x:
                    out = out + [x, look(x)]
            return out
        """,
        """
        def f(held, wild):
            out = []
            for row in held:
                out = out + [look(x) for x in row]
                out = out + sorted(row)
                print(len(out))
            for x in wild:
                out = out + list(x)
            return out
        """,
    ],
    "prepend": [
        """
        def f(graph):
            seen, order = set(), []
            for node in sorted(graph):
                visit(node, graph, seen, order)
            return look(order)
        def visit(node, graph, seen, order):
            if node in seen:
                return
            seen.add(node)
            for other in sorted(graph.get(node, ())):
                visit(other, graph, seen, order)
            order.insert(0, node)
        """,
        """
        def f(graph, things):
            order = [None]
            done = set()
            def visit(node):
                if node not in done:
                    done.add(node)
                    for other in sorted(graph.get(node, ())):
                        visit(other)
                    order.insert(0, look(node))
            for node in sorted(graph):
                visit(node)
            order.append(1)
            return order
        """,
        """
        def f(wild):
            out = []
            for x in wild:
                out.insert(0, look(x))
                if len(out) > 4:
                    break
            return out
        """,
        """
        def f(ints):
            out = list(ints)
            for x in ints:
                for y in range(x):
                    out = [(x, y)] + out
            return out
        """,
    ],
    "join": [
        """
        def f(texts):
            out = "<"
            for each in texts:
                out += each + ","
                if each:
                    out = out + each.upper() + look(";")
            return out
        """,
        """
        def f(n, texts):
            out = ""
            for each in texts:
                out = each + out
            bits = b""
            while n > 0:
                bits += b"01"[n % 2:n % 2 + 1]
                n //= 2
            return out, bits
        """,
        """
        def f(texts):
            out, count = "", 0
            for each in texts:
                out += each
                count += 1
            return out, count
        """,
    ],
    "module_set": [
        """
        KNOWN = (0, 1, 2)

        def f(wild):
            return [x for x in wild if x in KNOWN], len(KNOWN)
        """,
        """
        _WORDS = ["a", "ab", "é"]

        def f(texts):
            return [x not in _WORDS for x in texts]
        """,
    ],
    "pattern": [
        """
        import re

        def f(word):
            out = [re.sub("[ab]+", "<>", word), re.findall("(a)|(b)", word, re.I)]
            found = re.match(r"\\s*(\\w)", word)
            return out, found and found[1]
        """,
        """
        import re

        def f(texts):
            spaces = re.compile(r"\\s+")
            parts = [spaces.split(each) for each in texts]
            return parts, [re.search("^.$", each) is None for each in texts]
        """,
    ],
    "pattern_cache": [
        """
        import re

        def f(texts, word):
            out = []
            for each in texts:
                if re.search(each, word):
                    out.append(re.sub(each, "-", word, count=1))
                out.append(re.findall(each, word, re.I))
            return out
        """,
    ],
    "module_constant": [
        """
        def f(thing):
            names = {0: "none", 1: "one", 2.5: "more", None: "nothing"}
            ends = ("a", "b", "é")
            return names.get(thing), [each for each in ends if each == thing]
        """,
        """
        def f(word):
            table = str.maketrans("ab", "xy")
            return word.translate(table), {"a": 1, "b": 2}.get(word, len([1, 2, 3]))
        """,
    ],
    "min_max": [
        """
        def f(number, n):
            low = min(number, n)
            high = max(number, n, 1)
            low = min(low, n * 2)
            return low, high, [max(number, 0)], min(number, True)
        """,
        """
        def f(thing, number):
            best = max(look(thing), look(number))
            return min(thing, number), best
        """,
    ],
    "listing": [
        """
        def f(wild):
            return ",".join(str(look(x)) for x in wild), tuple(x for x in wild if x)
        """,
        """
        def f(many):
            return sum(x * 2 for x in many)
        """,
        """
        def f(flow, numbers):
            return frozenset(x for x in flow), sorted((-x for x in numbers), key=abs), max(
                look(x) for x in numbers
            )
        """,
    ],
    "constant_set": [
        """
        def f(text):
            return [c.lower() in ["a", "k", "ss"] for c in text], [
                c.upper() in ("A", "K", "Z") for c in text + "k"
            ]
        """,
        """
        def f(wild):
            return [x for x in wild if x in (0, 1, 2) or x not in ["b", "", "é"]]
        """,
        """
        def f(word):
            out = []
            for x in word:
                out.append(x in ("a", "b", "é"))
            return out, word in ["a", "ab", "b"]
        """,
    ],
    "ruff": [
        """
        def f(wild):
            out = []
            for x in wild:
                if x:
                    out.append(look(x))
            return out
        """,
        """
        def f(things, table):
            out = {}
            for i, x in enumerate(things):
                out[x] = i
            for key, _ in table.items():
                print(key)
            return out, list(x for x in things)
        """,
    ],
}
MOST_INPUTS, EXAMPLES, EXAMPLES_WATCHED = 60, 70, 50
"""The number of inputs for a name at most, and how often programs are run."""
CASES = [(name, at) for name, programs in PROGRAMS.items() for at in range(len(programs))]


def run(text, arguments, last, is_exact):
    """All that anybody can see of a program; what it calls fails once, when it has seen so much."""
    seen = []

    def look(*values):
        seen.append([say(each) for each in values])
        if len(seen) == last:
            raise ValueError(last)
        return values[0] if values else None

    names = {"look": look, "print": look, "__name__": "program"}
    exec(read(text), names)
    mine = [make(each) for each in copy.deepcopy(arguments)]
    try:
        result = say(names["f"](*mine))
    except Exception as error:
        result = type(error), error.args if is_exact else ()
    return result, seen, [say(each) for each in mine]


@cache
def read(text):
    """A program, compiled."""
    return compile(text, "program.py", "exec", dont_inherit=True)


def make(given):
    """What a program gets."""
    if isinstance(given, Flow):
        return (each for each in given)
    if isinstance(given, Broken):
        return break_off(given)
    if isinstance(given, list) and any(isinstance(each, Own) for each in given):
        return [make(each) for each in given]
    return Word(given.text) if isinstance(given, Own) else given


def break_off(items):
    """An iterator that fails at its end."""
    yield from items
    raise ValueError("broken")


def say(value):
    """What a value is: 1, 1.0 and True are three."""
    if isinstance(value, set | frozenset):
        return type(value), sorted(map(say, value), key=repr)
    if isinstance(value, dict):
        return type(value), [(say(key), say(each)) for key, each in value.items()]
    if isinstance(value, list | tuple | deque):
        return type(value), [say(each) for each in value]
    if type(value).__module__ == "program":
        return type(value).__name__, say(vars(value))
    if hasattr(value, "__next__"):
        return "what is left", say_rest(value)
    return type(value), repr(value)


def say_rest(items):
    """What comes out of an iterator, and how it ends."""
    left = []
    try:
        left.extend(say(each) for each in items)
    except Exception as error:
        left.append(type(error))
    return left


def watch(text):
    """The same program with somebody who catches what is raised, and looks at what is there."""
    tree = ast.parse(text)
    function = function_of(text)
    loops = [each for each in ast.walk(tree) if isinstance(each, ast.For | ast.comprehension)]
    hidden = {
        each.id for loop in loops for each in ast.walk(loop.target) if isinstance(each, ast.Name)
    }
    stored = [
        each.id
        for each in ast.walk(function)
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    ]
    names = [each for each in dict.fromkeys(stored) if each not in hidden]
    lines = [f"try:\n print({name})\nexcept NameError:\n print('none')" for name in names]
    caught = ast.parse("try:\n pass\nexcept ValueError as error:\n print(type(error))")
    (block,) = caught.body
    block.body = function.body
    block.handlers[0].body += ast.parse("\n".join(lines)).body
    at = [getattr(each, "name", "") for each in tree.body].index("f")
    tree.body[at].body = [block]
    return ast.unparse(ast.fix_missing_locations(tree))


def function_of(text):
    """The function `f` of a program."""
    (function,) = (each for each in ast.parse(text).body if getattr(each, "name", "") == "f")
    return function


def test_every_transformation_has_programs():
    assert set(PROGRAMS) == {each.name for each in CATALOG}
    assert all(PROGRAMS.values())
    texts = [textwrap.dedent(each) for programs in PROGRAMS.values() for each in programs]
    assert all(function_of(text).args.args for text in texts)  # what has none would never be run


@pytest.mark.parametrize(("name", "at"), CASES)
def test_a_program_does_the_same_as_before(name, at):
    text = textwrap.dedent(PROGRAMS[name][at])
    applied = transform(text, name)
    assert applied.notes, "the transformation doesn't apply"
    compare(name, text, applied.text, EXAMPLES)


@pytest.mark.parametrize(("name", "at"), CASES)
def test_what_was_done_until_an_error_came_is_the_same(name, at):
    text = watch(textwrap.dedent(PROGRAMS[name][at]))
    applied = transform(text, name)
    if applied.notes:
        compare(name, text, applied.text, EXAMPLES_WATCHED)


def compare(name, before, after, examples):
    """Run two programs on the same inputs; `look` or `print` may fail at some time.

    Where nothing is taken for granted, errors say the same, too.
    """
    is_exact = not BY_NAME[name].assumes
    names = [each.arg for each in function_of(before).args.args]
    for arguments, last in choose(names, examples, Random(before)):
        example = arguments, last, is_exact
        assert run(after, *example) == run(before, *example), example


def choose(names, examples, rng):
    """Arguments for so many runs, and when `look` fails; the shortest first."""
    chosen = zip(*(shuffle(draw(name), rng) for name in names), strict=True)
    examples = [(each, rng.randrange(10)) for each in islice(chosen, examples)]
    return sorted(examples, key=lambda each: len(repr(each)))


def shuffle(values, rng):
    """All of them, and all of them again in another order, without end."""
    while True:
        yield from rng.sample(values, len(values))


@cache
def draw(name):
    """The inputs of a name."""
    found = []

    @settings(max_examples=MOST_INPUTS, database=None, derandomize=True, phases=[Phase.generate])
    @given(INPUTS[name])
    def add(value):
        found.append(value)

    add()
    return found
