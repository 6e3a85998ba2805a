"""Objects in timed calls: pickled inputs, packed results, and classes that would deceive."""

import collections
import dataclasses
import functools
import importlib
import json
import sys
import threading
import types

import numpy as np
import pytest

from fairtrial.arena.checks.comparison_rules import ComparisonRules
from fairtrial.arena.checks.value_comparison import compare
from fairtrial.sandbox.harness import codec, instances
from fairtrial.sandbox.wire import dump_encoded, encode

SHOP = """
import sqlite3

class Item:
    def __init__(self, name, price):
        self.name, self.price = name, price

class Cart:
    def __init__(self, items=()):
        self.items = list(items)
        self.name = "a cart"
        self.parent = self

    def total(self):
        return sum(item.price for item in self.items)

    def rename(self):
        self.name = "".join(["a ", "cart"])  # equal, but another object

    def add(self, item):
        self.items.append(item)
        return self

def first(connection):
    return connection.execute("select price from prices").fetchone()[0]
"""
STEPS = """
import sqlite3

def connect(args, kwargs):
    connection = sqlite3.connect(":memory:")
    connection.execute("create table prices (price)")
    connection.execute("insert into prices values (?)", args)
    return (connection,), kwargs

def forget(args, kwargs):
    return None
"""


@pytest.fixture(scope="module")
def turns():
    path, modules = list(sys.path), set(sys.modules)
    yield importlib.import_module("fairtrial.sandbox.harness.timed_worker")
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith(("_fairtrial_", "shop_of_objects")):
            del sys.modules[name]


@pytest.fixture(scope="module")
def shop():
    module = types.ModuleType("shop_of_objects")
    sys.modules[module.__name__] = module
    exec(SHOP, module.__dict__)
    return module


def run_batch(turns, function, *args, prepare=""):
    """Make one call as a timed worker does; return the batch."""
    job = {"function": f"shop_of_objects:{function}", "view": "", "prepare": prepare}
    work = turns.CallBatch({**job, "caps": list(codec.Caps())})
    work.load_inputs(turns.packing.join_inputs([turns.pickled_calls.pack_input(args, {})]))
    work.run()
    return work


def read_values(work):
    return json.loads(work.list_values().split(b"\n")[0])


def test_a_timed_call_gets_a_copy_of_its_object(turns, shop):
    cart = shop.Cart([shop.Item("a", 2.5)])
    work = run_batch(turns, "Cart.add", cart, shop.Item("b", 1))
    assert len(cart.items) == 1
    told = read_values(work)
    assert told["result"]["state"]["items"][1]["state"] == {"name": "b", "price": 1}
    assert len(told["after"]["args"][0]["state"]["items"]) == 2


def test_an_object_is_unchanged_if_it_consists_of_equal_parts(turns, shop):
    assert read_values(run_batch(turns, "Cart.total", shop.Cart()))["after"] is None
    assert read_values(run_batch(turns, "Cart.rename", shop.Cart()))["after"] is None


def test_other_objects_have_another_digest(turns, shop):
    def digest(price):
        return turns.close_turn(run_batch(turns, "Cart.add", shop.Cart(), price))[:16]

    assert digest(1.5) == digest(1.5) != digest(2.5)


def test_messages_get_a_summary_and_no_pickle_is_loaded_for_them(turns, shop):
    data = turns.pickled_calls.pack_input([shop.Cart([1, 2])], {"n": 3})
    summary = turns.pickled_calls.read_summary(data)
    assert summary["args"][0]["text"] == "Cart(items=list of 2, name='a cart', parent=Cart)"
    assert summary["kwargs"]["n"]["text"] == "3"


def test_a_prepare_step_makes_what_can_not_be_pickled(turns, shop, tmp_path):
    (tmp_path / "steps.py").write_text(STEPS)
    step = f"{tmp_path / 'steps.py'}:connect"
    assert read_values(run_batch(turns, "first", 2.5, prepare=step)) == {
        "result": 2.5,
        "after": None,
    }
    with pytest.raises(TypeError, match=r"forget must return \(args, kwargs\)"):
        run_batch(turns, "first", 2.5, prepare=step.replace("connect", "forget"))


class Plain:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def differ(one, other, **rules):
    """Return where two values differ, after they went through JSON."""
    told = [json.loads(dump_encoded(encode(value, has_layouts=True))) for value in (one, other)]
    found = compare(*told, ComparisonRules(**rules))
    return [difference.where for difference in found.first]


def ring(*names):
    """Return the first of some objects, each of which refers to the next and to the first."""
    nodes = [Plain(name=name) for name in names]
    for node, following in zip(nodes, [*nodes[1:], nodes[0]], strict=True):
        node.following, node.first = following, nodes[0]
    return nodes[0]


def chain(length, last):
    node = Plain(value=last)
    for _ in range(length):
        node = Plain(following=node)
    return node


def test_cycles_and_chains_of_any_length_are_compared():
    assert differ(ring("a", "b", "c"), ring("a", "b", "c")) == []
    assert differ(ring("a", "b", "c"), ring("a", "b", "d")) == ["result.following.following.name"]
    assert differ(chain(5_000, 1), chain(5_000, 1)) == []
    (place,) = differ(chain(500, 1), chain(500, 2))
    assert place.endswith(".following.value")


def test_sharing_alone_is_no_difference():
    shared = Plain(price=1.5)
    assert differ([shared, shared], [Plain(price=1.5), Plain(price=1.5)]) == []
    assert differ([Plain(price=1.5), Plain(price=2.5)], [shared, shared]) == ["result[1].price"]


def test_shared_objects_do_not_grow_without_limit():
    laughs = Plain(text="ha")
    for _ in range(60):
        laughs = Plain(items=[laughs] * 3)
    assert differ(laughs, laughs) == []


def test_tolerances_hold_for_attributes_and_arrays():
    one, other = (Plain(price=1.0 + more, sizes=np.ones(3) + more) for more in (0, 1e-12))
    assert differ(one, other, rel_tol=1e-9) == []
    assert "result.price" in differ(one, other)
    assert differ(
        Plain(sizes=np.ones((2, 2)).T.copy("F")), Plain(sizes=np.ones((2, 2))), array_layout=True
    )


def test_order_of_dictionaries_in_attributes_counts_as_the_rules_say():
    one, other = Plain(prices={"a": 1, "b": 2}), Plain(prices={"b": 2, "a": 1})
    assert differ(one, other) == []
    assert differ(one, other, dict_order=True) == ["order of result.prices"]


def test_objects_in_sets_are_compared_by_structure():
    assert differ({Plain(n=1), Plain(n=2)}, {Plain(n=2), Plain(n=1)}) == []
    assert len(differ({Plain(n=1)}, {Plain(n=3)})) == 2


def test_functions_are_compared_by_name_and_those_without_one_not_at_all():
    assert differ(Plain(key=len), Plain(key=len)) == []
    assert differ(Plain(key=len), Plain(key=max)) == ["result.key"]
    assert differ(functools.partial(chain, 3), functools.partial(chain, 3)) == []
    assert differ(functools.partial(chain, 3), functools.partial(chain, 4))
    assert differ(lambda: 1, lambda: 1) == ["result"]
    assert differ(Plain(lock=threading.Lock()), Plain(lock=threading.Lock())) == []


def test_what_a_cached_property_keeps_is_not_compared():
    class Cached(Plain):
        @functools.cached_property
        def total(self):
            return sum(self.prices)

    one, other = Cached(prices=[1]), Cached(prices=[1])
    assert one.total == 1
    assert differ(one, other) == []


# Classes of candidates that are not what they seem.


def imitate(make, **names):
    """Return an instance of a class that has these names, and calls itself Plain."""
    body = {"__module__": Plain.__module__, "__qualname__": "Plain", **names}
    return make(type("Plain", (), body))


def fill(kind, **attributes):
    made = kind.__new__(kind)
    for name, value in attributes.items():
        object.__setattr__(made, name, value)
    return made


RIGHT = Plain(price=2.5)
DECEIVING = {
    "equal to everything": {"__eq__": lambda self, other: True, "__hash__": None},
    "pickled as another": {"__reduce_ex__": lambda self, protocol: (Plain, (), {"price": 2.5})},
    "with another state": {"__getstate__": lambda self: {"price": 2.5}},
    "with another class": {"__class__": Plain},
    "with another dict": {"__dict__": property(lambda self: {"price": 2.5}), "__slots__": ()},
    "with a property": {"price": property(lambda self: 2.5)},
    "with answers": {"__getattr__": lambda self, name: 2.5},
    "with all answers": {"__getattribute__": lambda self, name: 2.5},
}


@pytest.mark.parametrize("names", DECEIVING.values(), ids=DECEIVING)
def test_an_object_that_imitates_the_expected_one_differs_from_it(names):
    assert differ(RIGHT, imitate(fill, **names))


def test_a_property_in_place_of_an_attribute_is_reported():
    kind = type("Plain", (), {"price": property(lambda self: 2.5)})
    made = kind()
    vars(made)["price"] = 2.5
    told = encode(made)
    assert list(told["state"]) == ["price" + instances.HIDDEN]


def test_no_code_of_a_class_runs_when_its_instances_are_read(turns):
    called = []

    class Meta(type):
        def __eq__(cls, other):
            called.append("metaclass")
            return True

        def __hash__(cls):
            called.append("hash")
            return hash(int)

    class Loud(metaclass=Meta):
        def __getattribute__(self, name):
            called.append(name)
            return object.__getattribute__(self, name)

        __getattr__ = __reduce__ = __getstate__ = __getattribute__
        __reduce_ex__ = __iter__ = __len__ = __repr__ = __getattribute__

    loud = fill(Loud, price=2.5)
    called.clear()
    encode([loud, loud])
    turns.packing.pack_values([loud, loud])
    assert called == []


@dataclasses.dataclass
class Price:
    value: float
    cache: dict = dataclasses.field(default_factory=dict, compare=False)


def test_packed_objects_are_equal_only_if_their_content_is(turns):
    def pack(value):
        return turns.packing.pack_values(value)

    assert pack(Price(1.5)) == pack(Price(1.5, {"a": 1})) != pack(Price(2.5))
    assert pack(ring("a", "b")) == pack(ring("a", "b")) != pack(ring("a", "c"))
    assert pack(Plain(a=1)) != pack(Plain(b=1))
    assert pack(collections.UserList([1])) != pack(collections.UserList([2]))
    assert pack(lambda: 1) is None
