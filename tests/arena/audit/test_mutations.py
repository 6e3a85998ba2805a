"""Mutations: small changes of source, chosen by a seed."""

import ast
from pathlib import Path

import pytest

from fairtrial.arena.audit.definitions import Definition, find_definition
from fairtrial.arena.audit.mutations import find_mutations, is_valid
from fairtrial.arena.audit.selection import order_mutations

SOURCE = b'''\
LIMIT = 10


def total(items: list[int], start=0):
    """Add up: 1 + 1."""
    result = start
    for item in items[1:]:
        if item > 3 and not item % 2:
            result += item
    return min(result, LIMIT)


def unreached(x):
    return x + 1


class Cart:
    def add(self, price):
        self.price = price
        self.log.append(price)
'''
ALL = range(1, 30)


def mutate(lines=ALL, source=SOURCE):
    return find_mutations("src/mod.py", source, lines)


def changed_lines(mutation, source=SOURCE):
    lines = mutation.render_diff(source).splitlines()[2:]
    return [line[1:].strip() for line in lines if line.startswith("+")]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ("comparison", "if (item >= 3) and not item % 2:"),
        ("boolean operator", "if (item > 3 or not item % 2):"),
        ("negation removed", "if item > 3 and (item % 2):"),
        ("arithmetic", "if item > 3 and not (item * 2):"),
        ("arithmetic", "result -= item"),
        ("constant", "if item > 4 and not item % 2:"),
        ("constant", "if item > 2 and not item % 2:"),
        ("slice boundary", "for item in items[1 + 1:]:"),
        ("slice boundary", "for item in items[1:-1]:"),
        ("negated condition", "if not (item > 3 and (not item % 2)):"),
        ("removed statement", "pass"),
        ("returns None", "return None"),
        ("swapped arguments", "return min(LIMIT, result)"),
    ],
)
def test_each_kind_of_change_is_made(change, line):
    assert [line] in [changed_lines(each) for each in mutate() if each.change == change]


def test_every_mutation_of_usual_code_is_python_and_differs_from_the_base():
    for mutation in mutate():
        changed = mutation.apply(SOURCE)
        assert is_valid(changed)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(SOURCE))


def test_only_lines_that_were_run_inside_of_functions_are_changed():
    assert {mutation.line for mutation in mutate((1, 4, 5, 6, 7, 8))} == {7, 8}
    assert {mutation.function for mutation in mutate()} == {"total", "unreached", "Cart.add"}


def test_annotations_docstrings_and_other_languages_are_left_alone():
    assert all(mutation.line not in (1, 4, 5) for mutation in mutate())
    assert mutate(source=b"def f(:\n") == []
    assert mutate(source="def f():\n    return 'ä' + 1\n".encode("latin-1")) == []


def test_text_beyond_ascii_moves_no_change():
    source = "def f(x):\n    return g('ä', x + 1)\n".encode()
    assert ["return g('ä', (x - 1))"] in [
        changed_lines(mutation, source) for mutation in mutate(source=source)
    ]


def test_a_seed_gives_one_order_in_which_functions_and_lines_take_turns():
    ordered = order_mutations(mutate(), 7)
    assert ordered == order_mutations(mutate(), 7)
    assert ordered != order_mutations(mutate(), 8)
    assert sorted(ordered, key=repr) == sorted(mutate(), key=repr)
    assert {mutation.function for mutation in ordered[:3]} == {"total", "unreached", "Cart.add"}
    total = [mutation.line for mutation in ordered if mutation.function == "total"]
    assert len(set(total[:4])) == 4


FILES = {
    "src/shop/__init__.py": "from .cart import total as sum_up\nfrom .more import *\n",
    "src/shop/cart.py": "try:\n    from _fast import total\nexcept ImportError:\n"
    "    def total(x): return x\n\nclass Cart:\n    def add(self): pass\nalias = total\n",
    "src/shop/more.py": "def extra(): pass\n",
    "src/loop.py": "from loop import f\n",
    "main.py": "from shop import cart\n",
}


@pytest.mark.parametrize(
    ("function", "found"),
    [
        ("shop:sum_up", Definition("src/shop/cart.py", "total")),
        ("shop.cart:Cart.add", Definition("src/shop/cart.py", "Cart.add")),
        ("shop.cart:alias", Definition("src/shop/cart.py", "alias")),
        ("shop:extra", Definition("src/shop/more.py", "extra")),
        ("main:cart.total", Definition("src/shop/cart.py", "total")),
        ("shop:missing", None),
        ("loop:f", None),
        ("numpy:sort", None),
    ],
)
def test_the_file_that_defines_a_function_is_found_through_imports(tmp_path, function, found):
    for name, text in FILES.items():
        path = Path(tmp_path, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert find_definition(tmp_path, ("src", "."), function) == found
