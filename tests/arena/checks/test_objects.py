"""Function checks with objects: they are rebuilt from pickles, and compared by structure."""

import json
import subprocess
import sys
from dataclasses import replace
from textwrap import dedent

import pytest
from calls_kit import CHECK, Slots

from fairtrial.arena import Reason
from fairtrial.core import StudyError
from fairtrial.testing import cheats

SHOP = """
    import functools

    class Item:
        def __init__(self, name, price):
            self.name, self.price = name, price

    class Cart:
        currency = "EUR"

        def __init__(self, items=()):
            self.items = list(items)
            self.closed = False

        def total(self, discount=0.0):
            return sum(item.price for item in self.items) * (1 - discount)

        def close(self):
            self.items.sort(key=lambda item: item.price)
            self.closed = True
            return self

        @property
        def count(self):
            return len(self.items)

        @functools.cached_property
        def prices(self):
            return [item.price for item in self.items]

        @classmethod
        def make(cls, names):
            return cls([Item(name, 1.5) for name in names])

        @staticmethod
        def clean(names):
            return sorted(set(names))
"""
CARTS = """
    from shop import Cart, Item

    def make(rng):
        items = [Item(f"item {number}", rng.randrange(1, 100) / 4) for number in range(4)]
        return (Cart(items),), {}

    def names(rng):
        return ([f"name {rng.randrange(9)}" for _ in range(4)],), {}
"""


@pytest.fixture
def slots(tmp_path):
    files = {"shop.py": SHOP, "bench/inputs.py": CARTS}
    return Slots(tmp_path, files)


def prepare(slots, **changes):
    return slots.prepare(replace(CHECK, inputs="bench/inputs.py:make", cases=3), **changes)


def first_difference(slots, prepared, old, new):
    """Return the first difference of a candidate with this change."""
    assert old in SHOP
    rejection = slots.judge(prepared, shop=SHOP.replace(old, new)).rejection
    assert rejection is not None
    assert rejection.reason == Reason.DIFFERENT
    return rejection.failures[0].differences[0]


def passes(slots, prepared, old="", new=""):
    return slots.judge(prepared, shop=SHOP.replace(old, new)).rejection is None


def test_a_method_gets_its_object_as_first_argument(slots):
    prepared = prepare(slots, function="shop:Cart.total")
    assert passes(slots, prepared)
    assert passes(slots, prepared, "sum(item.price", "sum(1 * item.price")
    found = first_difference(slots, prepared, "(1 - discount)", "(1 - discount) + 0.5")
    assert found.where == "result"


def test_objects_in_results_are_compared_attribute_by_attribute_with_a_path(slots):
    prepared = prepare(slots, function="shop:Cart.close")
    assert passes(slots, prepared)
    found = first_difference(
        slots,
        prepared,
        "self.closed = True",
        "self.closed = True\n            self.items[2].price += 0.5",
    )
    assert found.where == "result.items[2].price"
    assert float(found.actual) == float(found.expected) + 0.5


def test_objects_are_compared_after_the_call_like_other_arguments(slots):
    prepared = prepare(slots, function="shop:Cart.total")
    found = first_difference(
        slots, prepared, "return sum(", "self.closed = 1\n            return sum("
    )
    assert found.where == "after the call, args[0].closed"


def test_attributes_that_the_base_does_not_have_are_a_difference_unless_they_are_allowed(slots):
    change = ("self.closed = True", "self.closed = True\n            self._total = 1")
    strict = prepare(slots, function="shop:Cart.close")
    found = first_difference(slots, strict, *change)
    assert (found.where, found.expected) == ("result._total", "nothing")
    rejection = slots.judge(strict, shop=SHOP.replace(*change)).rejection
    assert "`attributes: any` in this check allows" in rejection.message
    loose = prepare(slots, function="shop:Cart.close", attributes="any")
    assert passes(slots, loose, *change)
    assert not passes(slots, loose, "self.closed = True", "del self.closed")


FAILING = """
    class CartError(ValueError):
        pass

    def check(prices):
        error = CartError("too many")
        error.first = prices[0]
        error.source = object()
        raise error
"""
PRICES = """
    def make(rng):
        return ([rng.randrange(9)],), {}
"""


def test_attributes_of_exceptions_are_compared_as_far_as_the_base_has_them(tmp_path):
    slots = Slots(tmp_path, {"shop.py": FAILING, "bench/inputs.py": PRICES})
    strict = prepare(slots, function="shop:check")

    def judge(prepared, old, new):
        rejection = slots.judge(prepared, shop=FAILING.replace(old, new)).rejection
        return rejection.failures[0].differences[0] if rejection else None

    assert judge(strict, "error.source", "error.more = 1; error.source") is None
    missing = judge(strict, "error.first = prices[0]", "pass")
    assert (missing.where, missing.actual) == ("the exception.first", "nothing")
    other = judge(strict, "prices[0]", "prices[0] + 1")
    assert other.where == "the exception.first"
    loose = prepare(slots, function="shop:check", attributes="any")
    assert judge(loose, "error.first = prices[0]", "pass") is None


def test_a_property_is_called_by_getting_it(slots):
    for name in ("count", "prices"):
        prepared = prepare(slots, function=f"shop:Cart.{name}")
        assert passes(slots, prepared)
    assert passes(slots, prepared, "@functools.cached_property", "@property")
    assert not passes(slots, prepared, "[item.price", "[-item.price")


def test_class_methods_and_static_methods_are_called_without_an_object(slots):
    for name in ("make", "clean"):
        prepared = prepare(slots, function=f"shop:Cart.{name}", inputs="bench/inputs.py:names")
        assert passes(slots, prepared)
    assert not passes(slots, prepared, "sorted(set(names))", "sorted(names)")


def test_what_is_no_function_is_refused_in_one_line(slots):
    with pytest.raises(StudyError) as stop:
        prepare(slots, function="shop:Cart.currency")
    assert "shop:Cart.currency is no function or property, but of type str" in str(stop.value)


def test_a_candidate_may_give_a_class_slots(slots):
    prepared = prepare(slots, function="shop:Cart.total")
    assert passes(
        slots, prepared, "class Item:", "class Item:\n        __slots__ = 'name', 'price'"
    )


def test_a_candidate_whose_objects_can_not_be_made_is_rejected(slots):
    prepared = prepare(slots, function="shop:Cart.total")
    rejection = slots.judge(prepared, shop=SHOP.replace("class Item", "class Thing")).rejection
    assert rejection.reason == Reason.DIFFERENT
    assert "arguments that can't be made there" in rejection.message
    assert "Item" in rejection.message


RECORD = """
    import sys
    from pathlib import Path
    from fairtrial.arena import record_call, write_calls
    from shop import Cart, Item
    cart = Cart([Item("a", 2.5), Item("b", 1.0)])
    write_calls(Path(sys.argv[1]), [record_call(Cart.close, cart), record_call(Cart.close, Cart())])
"""


def record(tmp_path, text):
    """Run a script that records calls; return its file."""
    (tmp_path / "shop.py").write_text(dedent(SHOP))
    (tmp_path / "record.py").write_text(dedent(text))
    command = [sys.executable, "record.py", "cases.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    return done, tmp_path / "cases.json"


def test_recorded_objects_are_as_they_were_before_the_call(slots, tmp_path):
    done, file = record(tmp_path, RECORD)
    assert done.returncode == 0, done.stderr
    slots.files["cases.json"] = file.read_text()
    prepared = prepare(slots, function="shop:Cart.close", inputs="", calls="cases.json")
    assert passes(slots, prepared)
    assert not passes(slots, prepared, "key=lambda item: item.price", "key=lambda item: 0")
    call = json.loads(file.read_text())[0]
    assert call["pickle"]["repr"].startswith("Cart.close(shop.Cart(items=[shop.Item(name='a'")
    assert call["pickle"]["protocol"] == 4


def test_a_pickle_that_was_changed_is_refused(slots, tmp_path):
    _, file = record(tmp_path, RECORD)
    calls = json.loads(file.read_text())
    calls[1]["pickle"]["data"] = calls[0]["pickle"]["data"]
    slots.files["cases.json"] = json.dumps(calls)
    with pytest.raises(StudyError, match=r"call 2: its pickle is not the one that was recorded"):
        prepare(slots, function="shop:Cart.close", inputs="", calls="cases.json")


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ("lambda: 0", "argument 1, of type function, can't be pickled"),
        ("(number for number in [1])", ""),
        ("[Cart(), iter([1])]", "it holds an iterator beside objects"),
        ("Mine()", "Mine is defined in a script, which candidates can't import"),
    ],
)
def test_a_call_that_can_not_be_recorded_is_refused_with_the_argument(tmp_path, made, message):
    text = RECORD.replace("cart = Cart", "class Mine: pass\n    cart = Cart")
    text = text.replace("record_call(Cart.close, cart)", f"record_call(id, {made})")
    done, _ = record(tmp_path, text)
    assert message in done.stderr
    assert bool(message) == ("call 1 can't be recorded: " in done.stderr)


@pytest.mark.parametrize(
    "name", ["an object that imitates a result", "a result that is made when it is looked at"]
)
def test_objects_that_only_pretend_to_be_results_are_rejected(slots, name):
    prepared = prepare(slots, function="shop:Cart.close")
    (attack,) = (attack for attack in cheats.ATTACKS if attack.name == name)
    code = attack.template.replace("BASE", "_base").replace("ATTACK", "_attack")
    cheat = f"{dedent(SHOP)}\n_base = Cart.close\n{code}\nCart.close = _attack\n"
    rejection = slots.judge(prepared, shop=cheat).rejection
    assert rejection is not None
    assert rejection.reason == Reason.DIFFERENT
