"""A small project with tests, scripts and odd functions, for tests of targets."""

from pathlib import Path

import anyio
from arena_fault_kit import WORKING
from repository_kit import make_repository

from fairtrial.arena import ArenaSettings, targets

CART = '''
import functools


def unique(items):
    """Each item once, in order."""
    seen = []
    for item in items:
        if item not in seen:
            seen.append(item)
    return seen


def outer():
    def inner():
        return 1
    return inner()


def drain(items):
    """Take all items away."""
    taken = list(items)
    items.clear()
    return taken


def draw():
    """Something else each time."""
    import time
    return time.time_ns()


def halves(numbers: list[int], most: int) -> list[int]:
    return [number // 2 for number in numbers][:most]


def unused(thing):
    return thing


def pairs(items):
    for item in items:
        yield item, item


async def fetch(number):
    return number * 2


class Cart:
    def __init__(self, prices=()):
        self.prices = list(prices)

    @property
    def size(self):
        return len(self.prices)

    def total(self, rate=1):
        return sum(price * rate for price in self.prices)

    @staticmethod
    @functools.lru_cache
    def rounded(price):
        return round(price)
'''
TESTS = """
import asyncio
import pytest
from shop.cart import Cart, draw, drain, fetch, pairs, unique


@pytest.mark.parametrize("count", [0, 1, 5, 50])
def test_unique(count):
    assert unique(list(range(count)) * 2) == list(range(count))


def test_no_items():
    with pytest.raises(TypeError):
        unique(None)


def test_functions_in_a_list():
    assert len(unique([lambda: 1])) == 1


def test_total():
    assert Cart([1, 2]).total(rate=2) == 6
    assert Cart([1, 2]).size == 2
    assert Cart.rounded(2.4) == 2
    Cart.rounded.cache_clear()


def test_others():
    items = [3, 4]
    assert drain(items) == [3, 4]
    assert not items
    assert draw()
    assert list(pairs([1])) == [(1, 1)]
    assert asyncio.run(fetch(4)) == 8
"""
FILES = {
    ".gitignore": "ignored.py\n.venv\n",
    "pyproject.toml": '[project]\nname = "shop"\nversion = "1"\n',
    "src/shop/__init__.py": "from shop.cart import unique as distinct\n",
    "src/shop/cart.py": CART,
    "src/shop/ignored.py": "def f():\n    return 1\n",
    "tests/test_cart.py": TESTS,
}
SETTINGS = ArenaSettings(unsandboxed=not WORKING)


def make_shop(folder, files=None):
    """A repository with the project, or with these files instead."""
    return make_repository(Path(folder) / "repo", FILES if files is None else files)


def prepare(text, folder, **options):
    """Draft the problem of a target."""

    async def work():
        return await targets.prepare_target(text, folder, settings=SETTINGS, **options)

    return anyio.run(work)


def find_hot_spots(folder, command=()):
    """Rank the functions of a project."""

    async def work():
        return await targets.find_hot_spots(command, folder=folder, settings=SETTINGS)

    return anyio.run(work)
