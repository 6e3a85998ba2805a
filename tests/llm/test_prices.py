"""Prices of tokens, and the cost of answers, which may be unknown."""

import math
from datetime import date

import pytest
from hypothesis import given, strategies as st

from fairtrial.core import StudyError
from fairtrial.llm.prices import PRICES, PRICES_DATE, cost_usd, find_price
from fairtrial.optimize import Brief, PreflightContext
from fairtrial.optimize.proposers.chat.proposer import Chat

URL = "http://localhost:8000/v1"
TOKENS = st.integers(0, 10**9)
RATES = st.floats(0, 1_000)


def test_the_table_is_dated_and_sound():
    assert date.fromisoformat(PRICES_DATE) <= date.today()
    for model, (asked, answered) in PRICES.items():
        assert 0 < asked <= answered < 1_000, model


def test_a_cost_is_by_the_million():
    assert cost_usd((2.0, 8.0), 1_000_000, 500_000) == 6.0
    assert cost_usd(None, 1, 1) is None


@pytest.mark.parametrize(
    ("price", "prompt", "completion", "expected"),
    [
        ((2.0, 8.0), None, 5, None),
        ((2.0, 8.0), 5, None, None),
        ((0.0, 8.0), None, 1_000_000, 8.0),
        ((0.0, 0.0), None, None, 0.0),
    ],
)
def test_an_unknown_price_or_count_makes_the_cost_unknown_unless_it_is_free(
    price, prompt, completion, expected
):
    assert cost_usd(price, prompt, completion) == expected


@given(st.tuples(RATES, RATES), TOKENS, TOKENS, TOKENS)
def test_more_tokens_never_cost_less(price, prompt, completion, more):
    cost = cost_usd(price, prompt, completion)
    assert 0 <= cost <= cost_usd(price, prompt + more, completion)
    assert cost <= cost_usd(price, prompt, completion + more)
    assert math.isfinite(cost)


def test_prices_of_users_take_precedence_over_the_table():
    assert find_price("gpt-4o", {}) == PRICES["gpt-4o"]
    assert find_price("gpt-4o", {"gpt-4o": (1.0, 2.0)}) == (1.0, 2.0)
    assert find_price("gpt-4o-2024-05-13", {}) is None, "that one cost twice as much"
    assert Chat(URL, "mine", prices={"mine": [1, 2]}).price == (1.0, 2.0)


def test_a_ceiling_needs_a_price():
    with pytest.raises(StudyError) as caught:
        Chat(URL, "mine").preflight(PreflightContext(max_cost_usd=5.0))
    [mistake] = caught.value.mistakes
    assert mistake.path == ("prices",)
    assert "'mine' is not known" in str(mistake)
    assert "prices: {mine: [input, output]}" in str(mistake)


@pytest.mark.parametrize(
    ("proposer", "ceiling"),
    [
        (Chat(URL, "mine"), None),
        (Chat(URL, "mine", prices={"mine": (0, 0)}), 5.0),
        (Chat(URL, "gpt-4o"), 0.0),
    ],
)
def test_a_ceiling_that_can_be_kept(proposer, ceiling):
    proposer.preflight(PreflightContext(max_cost_usd=ceiling))


def test_an_estimate_grows_with_the_files_and_is_bounded_by_max_tokens():
    def estimate(size, **options):
        brief = Brief("p", "t", {"a.py": "x" * size})
        return Chat(URL, "mine", prices={"mine": (1, 1)}, **options).estimate(brief)

    small, large = estimate(100), estimate(10_000)
    assert small.prompt_tokens < large.prompt_tokens
    assert 0 < small.cost_usd < large.cost_usd
    assert estimate(10_000, max_tokens=50).completion_tokens == 50
    assert Chat(URL, "other").estimate(Brief("p", "t", {})).cost_usd is None
