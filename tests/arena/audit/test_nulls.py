"""Null candidates: what the replaced function does."""

import asyncio
import sys
import types

import pytest

from fairtrial.arena.audit.definitions import Definition
from fairtrial.arena.audit.nulls import make_null
from fairtrial.arena.model.adequacy import NullKind

MODULE = """
def double(items):
    return [2 * item for item in items]

def lazy(items):
    for item in items:
        yield item

def picky(number):
    raise ValueError(number)

async def later(number):
    return number + 1

class Cart:
    @classmethod
    def make(cls, price):
        return [price]

    def add(self, price):
        return price + 1
"""


@pytest.fixture
def null(tmp_path):
    (tmp_path / "mod.py").write_text(MODULE)

    def build(name, kind):
        changes = make_null(tmp_path, Definition("mod.py", name), kind)
        module = types.ModuleType("null_of_a_test")
        sys.modules[module.__name__] = module
        try:
            exec(changes.files["mod.py"].content, module.__dict__)
        finally:
            del sys.modules[module.__name__]
        return module

    return build


@pytest.mark.parametrize(
    ("kind", "results"),
    [
        (NullKind.CONSTANT, [[2, 4], [2, 4], [2, 4]]),
        (NullKind.EMPTY, [[], [], []]),
        (NullKind.NONE, [None, None, None]),
        (NullKind.FIRST_ARGUMENT, [[1, 2], [3], [4]]),
        (NullKind.LAST_RESULT, [[2, 4], [2, 4], [6]]),
    ],
)
def test_each_kind_returns_what_it_says(null, kind, results):
    double = null("double", kind).double
    assert [double([1, 2]), double([3]), double(items=[4])] == results


def test_one_that_raises_raises(null):
    with pytest.raises(RuntimeError):
        null("double", NullKind.RAISE).double([1])


def test_iterators_are_given_again_and_empty_ones_are_empty(null):
    constant = null("lazy", NullKind.CONSTANT).lazy
    assert [list(constant([1, 2])), list(constant([3]))] == [[1, 2], [1, 2]]
    assert list(null("lazy", NullKind.EMPTY).lazy([1, 2])) == []


def test_an_exception_is_an_answer_as_well(null):
    picky = null("picky", NullKind.CONSTANT).picky
    for number in (1, 2):
        with pytest.raises(ValueError, match="1"):
            picky(number)


def test_coroutines_and_methods_are_replaced(null):
    later = null("later", NullKind.CONSTANT).later
    assert [asyncio.run(later(1)), asyncio.run(later(5))] == [2, 2]
    cart = null("Cart.make", NullKind.FIRST_ARGUMENT).Cart
    assert (cart.make(3), cart().make(4)) == (3, 4)
    assert null("Cart.add", NullKind.FIRST_ARGUMENT).Cart().add(7) == 7


def test_arguments_stay_as_they_are_even_if_the_original_is_called(null):
    items = [1, 2]
    null("double", NullKind.CONSTANT).double(items)
    assert items == [1, 2]
