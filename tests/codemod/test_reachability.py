"""What can be reached from what is timed, and that nothing else is changed."""

import textwrap

import pytest

from fairtrial.optimize import Brief, Request, RequestKind
from fairtrial_codemod import ruff
from fairtrial_codemod.catalog import transform
from fairtrial_codemod.proposer import CodemodProposer
from fairtrial_codemod.reachability import find_reachable

GLUE = """
def {name}(parts):
    text = ""
    for part in parts:
        text += part
    return text
"""
MANY = {
    "src/shop/__init__.py": "from shop.report import show\n",
    "src/shop/report.py": textwrap.dedent(
        """
        from shop import tables as made
        from shop.words import squeeze as tidy
        from shop.tables import Table, wide

        def show(rows):
            def inner(row):
                return tidy(row)
            return wide.draw([inner(row) for row in rows], rows[0] + rows[1])

        def unused(rows):
            return forgotten(rows)
        """
    ),
    "src/shop/words.py": textwrap.dedent(
        """
        def squeeze(text):
            return BLANKS.join(text.split())

        BLANKS = make_blanks(1)

        def make_blanks(count):
            return " " * count

        def forgotten(text):
            return text
        """
    ),
    "src/shop/tables.py": textwrap.dedent(
        """
        class Base:
            def line(self, row):
                return self.sep

        class Table(Base):
            def __init__(self):
                self.rows = []

            def draw(self, rows, more):
                return self.line(rows)

            def never_named(self):
                return 1

        class Other:
            def draw(self, rows):
                return rows

            def __add__(self, other):
                return self

            def rest(self):
                return 1

        wide = Table()
        """
    ),
}


def reach(files, *timed, checked=()):
    found = find_reachable(files, timed, checked)
    return None if found is None else {f"{path.rpartition('/')[2]} {name}" for path, name in found}


def test_what_is_named_brings_all_that_it_names():
    assert reach(MANY, "day: shop:show") == {
        *("report.py show", "report.py show.inner", "words.py squeeze", "words.py make_blanks"),
        *("tables.py Table.__init__", "tables.py Table.draw", "tables.py Base.line"),
        "tables.py Table.never_named",
        *("tables.py Other.draw", "tables.py Other.__add__"),
    }
    assert reach(MANY, "shop.words:forgotten") == {"words.py forgotten"}
    both = reach(MANY, "a: shop.words:forgotten", "b: shop.words:make_blanks")
    assert both == {"words.py forgotten", "words.py make_blanks"}
    assert "tables.py Table.__init__" in reach(MANY, "a: shop.tables:wide.draw")


def test_a_class_that_is_named_brings_all_its_methods_and_its_bases():
    text = """
class Plain:
    def base(self): return 1

class Ledger(Plain):
    def __init__(self, rows): self.rows = rows
    def total(self): return sum(self.rows)

class Other:
    def never(self): return 1

def first(rows):
    return Ledger(rows)
"""
    assert reach({"a.py": text}, "a:first") == {
        "a.py first",
        *(f"a.py {name}" for name in ("Ledger.__init__", "Ledger.total", "Plain.base")),
    }


def test_every_function_counts_if_the_reachable_ones_are_unknown():
    assert reach(MANY) is None
    assert reach(MANY, "day: python -m shop") is None
    assert reach(MANY, "a: shop.words:forgotten", "b: python -m shop") is None
    assert reach(MANY, "day: benchmarks.day:run") is None  # it isn't among the files


def test_without_benchmarks_the_checked_functions_count():
    checked = ("pytest -q must pass", "shop.words:forgotten must give what it gives now")
    assert reach(MANY, checked=checked) == {"words.py forgotten"}
    assert reach(MANY, checked=checked[:1]) is None
    assert reach(MANY, "shop.words:make_blanks", checked=checked) == {"words.py make_blanks"}


@pytest.mark.parametrize(
    ("body", "reached"),
    [
        ("getattr(x, 'to_{}'.format(kind))(x)", {"f", "to_text", "to_number"}),
        ("getattr(x, f'to_{kind}')(x)", {"f", "to_text", "to_number"}),
        ("getattr(x, 'other')(x)", {"f", "other"}),
        ("getattr(x, kind)(x)", None),
        ("globals()[kind](x)", None),
        ("kind['other']", {"f"}),
    ],
)
def test_names_that_are_put_together_are_reached_too(body, reached):
    names = ("to_text", "to_number", "other")
    text = f"def f(x, kind):\n    return {body}\n" + "".join(
        f"def {name}(x):\n    return x\n" for name in names
    )
    found = find_reachable({"a.py": text}, ("a:f",), ())
    assert (found and {name for _, name in found}) == reached


def test_names_that_come_from_elsewhere_are_looked_for_among_the_texts_that_are_reached():
    text = textwrap.dedent(
        """
        KINDS = {1: "one", 2: "two words"}
        def f(x): return ask(x, KINDS[x])
        def ask(x, kind): return getattr(x, kind)
        def one(): return 1
        def two(): return "three"
        def three(): return "one"
        """
    )
    found = find_reachable({"a.py": text}, ("a:f",), ())
    assert {name for _, name in found} == {"f", "ask", "one"}


def test_functions_that_a_decorator_hands_on_are_reached():
    text = textwrap.dedent(
        """
        import functools

        def f(kind): return KINDS[kind]()

        @register("a")
        def one(): return other()

        @functools.lru_cache(maxsize=None)
        def two(): return 1

        def other(): return 1

        try:
            from fast import three
        except ImportError:
            def three(): return 1
        """
    )
    found = find_reachable({"a.py": text}, ("a:f",), ())
    assert {name for _, name in found} == {"f", "one", "other"}
    found = find_reachable({"a.py": text}, ("a:three",), ())
    assert {name for _, name in found} == {"three", "one", "other"}


def test_only_what_is_reached_is_changed():
    files = {
        "a.py": GLUE.format(name="glue") + GLUE.format(name="other"),
        "b.py": GLUE.format(name="more"),
    }
    told = Brief("slow", "", files, benchmarks=("day: a:glue",))
    reply = CodemodProposer().answer(told, Request(RequestKind.INITIAL, 0, 0))
    (candidate,) = reply.candidates
    assert candidate.name == "join"
    assert list(candidate.files) == ["a.py"]
    new = candidate.files["a.py"].content.decode()
    assert new.partition("def other")[2] == files["a.py"].partition("def other")[2]
    assert "".join(new.partition("def other")[0]).count("text_parts") > 1
    told = Brief("fast", "", {**files, "c.py": "def fast(): return 1\n"}, benchmarks=("c:fast",))
    reply = CodemodProposer().answer(told, Request(RequestKind.INITIAL, 0, 0))
    assert reply.refusal == "no transformation applies to what is timed"


MIXED = '''\
"""Doc."""
import os


def first(xs):
    out = []
    for x in xs:
        out.append(x * 2)
    return out


class Table:
    def second(self, xs):
        return sorted(xs, key=lambda x: x[1]), sorted(list(xs))


NAMES = sorted(list(os.environ))
'''


def test_ruff_changes_only_the_functions_that_it_may():
    everything = transform(MIXED, "ruff")
    assert set(everything.scopes) == {"first", "Table.second", ""}
    assert "sorted(os.environ)" in everything.text

    one = transform(MIXED, "ruff", frozenset({"first"}))
    assert one.scopes == ("first",)
    assert one.notes[0].startswith("line 6")
    assert "    out = [x * 2 for x in xs]\n    return out\n" in one.text
    assert "import operator" not in one.text
    before, after = MIXED.partition("class Table"), one.text.partition("class Table")
    assert after[1:] == before[1:]

    other = transform(MIXED, "ruff", frozenset({"Table.second"}))
    assert other.scopes == ("Table.second",)
    assert "operator.itemgetter(1)" in other.text
    assert "import operator" in other.text
    assert "import os\n" in other.text
    assert "out.append(x * 2)" in other.text
    assert "sorted(list(os.environ))" in other.text
    assert transform(MIXED, "ruff", frozenset({"nobody"})).text == MIXED
    assert transform(other.text, "ruff", frozenset({"Table.second"})).text == other.text


def test_an_import_that_others_need_stays():
    text = (
        "from functools import lru_cache\n\n\n@lru_cache(maxsize=None)\ndef f(x):\n    return x\n"
        "\n\n@lru_cache(maxsize=None)\ndef g(x):\n    return x\n"
    )
    new = transform(text, "ruff", frozenset({"g"})).text
    assert "\n@cache\ndef g(x)" in new
    names = {}
    exec(new, names)
    assert (names["f"](1), names["g"](1)) == (1, 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sum([x * 2 for x in xs])", None),
        ("x == y or x == z", None),
        ("any([x.a for x in xs])", "any(x.a for x in xs)"),
        ("s.startswith('a') or s.startswith('b')", "s.startswith(('a', 'b'))"),
        ("[xs[i] for i, x in enumerate(xs)]", "[x for i, x in enumerate(xs)]"),
        ("[d[k] for k, v in d.items()]", "list(d.values())"),
    ],
)
def test_ruff_knows_what_is_faster(old, new):
    text = f"def f(xs: list, x, y, z, s, d):\n    return {old}\n"
    assert transform(text, "ruff").text == (text if new is None else text.replace(old, new))


def test_lists_are_put_together_in_one_go():
    assert "operator.iadd" in ruff.fix_some("def f(lists):\n    return sum(lists, [])\n").text
