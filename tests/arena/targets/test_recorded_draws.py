"""How recorded calls are drawn for a benchmark."""

from collections import Counter
from random import Random

from fairtrial.sandbox.harness.maker_tools import RecordedCalls


def draw(seconds, count=2000):
    calls = RecordedCalls([{"args": [n], "seconds": each} for n, each in enumerate(seconds)])
    rng = Random(7)
    return Counter(calls.draw(rng)[0][0] for _ in range(count))


def test_calls_that_take_longer_are_drawn_more_often():
    drawn = draw([3e-3, 1e-3])
    assert 0.65 < drawn[0] / 2000 < 0.75  # a fifth goes to both alike: 0.8 * 0.75 + 0.1


def test_calls_that_take_no_time_are_drawn_beside_one_that_takes_all():
    drawn = draw([1.0, 1e-7, 0.0])
    assert min(drawn[1], drawn[2]) > 80
    assert drawn[0] > 1600
