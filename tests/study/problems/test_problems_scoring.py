"""What evaluators return: numbers become rows, the rest notes, and nothing is dropped."""

import math
from collections import namedtuple
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from run_attempt_kit import run

from fairtrial.study.problems.scoring import read_verdict

Verdict = namedtuple("Verdict", "score time_s")


def row(name, value, **others):
    return {
        "evaluator_id": "problem_evaluator",
        "metric_name": name,
        "metric_value": value,
        "metric_unit": "unitless",
        "aggregation_level": "run",
        "notes_json": {},
        **others,
    }


@dataclass
class Judged:
    score: float
    reason: str = "close"
    parts: list = field(default_factory=lambda: [1, 2])
    judge: object = None


class Slotted:
    __slots__ = ("_secret", "score")

    def __init__(self):
        self.score, self._secret = 2, 3


class Loose:
    def __init__(self):
        self.score, self._secret = 2, 3


class Dictable:
    def to_dict(self):
        return {"score": 2}


@pytest.mark.parametrize(
    ("verdict", "value"),
    [
        (0.73, 0.73),  # known trap: was silently dropped
        (3, 3),
        (True, True),
        (np.float64(0.73), 0.73),  # known trap: was silently dropped
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.array(0.5), 0.5),
        (Decimal("0.5"), 0.5),
        (Fraction(1, 2), 0.5),
    ],
)
def test_a_number_is_a_score(verdict, value):
    (found,) = read_verdict(verdict)
    assert found == row("score", value)
    assert type(found["metric_value"]) is type(value)
    ran = run(lambda task: {"answer": 1}, {"evaluator": lambda answer: verdict})
    assert ran.body["evaluations"] == [row("score", value)]
    assert ran.body["metrics"]["primary_outcome"] == value


def test_nan_is_kept():
    (found,) = read_verdict(float("nan"))
    assert math.isnan(found["metric_value"])
    ran = run(lambda task: {}, {"evaluator": lambda output: math.nan})
    assert ran.outcome.status == "success"
    assert math.isnan(ran.body["evaluations"][0]["metric_value"])


@pytest.mark.parametrize(
    ("verdict", "rows"),
    [
        (None, []),
        ({}, []),
        ([], []),
        ({"a": 1, "b": np.float64(0.5)}, [row("a", 1), row("b", 0.5)]),
        (Verdict(1, 0.5), [row("score", 1), row("time_s", 0.5)]),
        (Slotted(), [row("score", 2)]),
        (Loose(), [row("score", 2)]),
        (Dictable(), [row("score", 2)]),
        ([0.5, 0.7], [row("score", 0.5), row("score", 0.7)]),
        (np.array([0.5, 0.75]), [row("score", 0.5), row("score", 0.75)]),
        ([{"a": 1}, {"b": 2}], [row("a", 1), row("b", 2)]),
        (({"a": n} for n in (1, 2)), [row("a", 1), row("a", 2)]),
    ],
)
def test_mappings_objects_and_rows_are_read(verdict, rows):
    assert read_verdict(verdict) == rows


def test_what_stands_beside_the_numbers_is_kept_as_notes():
    notes = {"reason": "close", "parts": [1, 2]}
    assert read_verdict({"score": 1, **notes}) == [row("score", 1, notes_json=notes)]
    assert read_verdict(Judged(1, judge=3)) == [
        row("score", 1, notes_json=notes),
        row("judge", 3, notes_json=notes),
    ]
    told = read_verdict({"score": 1, "higher_is_better": True})
    assert told == [row("score", 1, notes_json={"higher_is_better": True})]


def test_what_cannot_even_be_noted_is_named():
    (found,) = read_verdict(Judged(1, judge=object()))
    assert found["notes_json"] == {"reason": "close", "parts": [1, 2], "left_out": ["judge"]}


def test_rows_are_kept_as_they_stand():
    given_row = {
        "evaluator_id": "judge",
        "metric_name": "speed",
        "metric_value": np.int32(3),
        "metric_unit": "m/s",
        "aggregation_level": "trial",
        "notes_json": {"n": 2},
        "run_id": "made up",
    }
    expected = row("speed", 3, evaluator_id="judge", metric_unit="m/s")
    expected |= {"aggregation_level": "trial", "notes_json": {"n": 2}}
    assert read_verdict(given_row) == read_verdict([given_row]) == [expected]
    assert read_verdict({"value": 3}) == [row("score", 3)]
    assert read_verdict({"value": 3, "weight": 2}) == [row("value", 3), row("weight", 2)]
    assert read_verdict({"metric_name": "label", "metric_value": "good"}) == [row("label", "good")]
    assert read_verdict({"metric_name": "time", "metric_value": None}) == [row("time", None)]
    told = read_verdict({"metric_name": "a", "value": 1, "notes_json": "hm", "who": "me"})
    assert told == [row("a", 1, notes_json={"note": "hm", "who": "me"})]


class Bare:
    pass


@pytest.mark.parametrize(
    ("verdict", "says"),
    [
        ("good", "type str, which can't be read"),
        (b"good", "type bytes"),
        (1j, "type complex"),
        (Bare(), "type Bare"),
        (ValueError("x"), "type ValueError"),
        (print, "type builtin_function_or_method"),
        ({"verdict": "good"}, "returned no number: verdict"),
        ({"score": None}, "returned no number: score"),
        ([0.5, "good"], "type str"),
        ([0.5, None], "list with None in it"),
        ({"metric_name": "speed"}, "row 'speed' has no metric_value"),
        ({"metric_name": "speed", "metric_value": [1]}, "metric_value of type list"),
    ],
)
def test_what_cannot_be_read_fails_the_run(verdict, says):
    with pytest.raises(TypeError) as caught:
        read_verdict(verdict)
    assert says in str(caught.value)
    ran = run(lambda task: {"answer": 1}, {"evaluator": lambda answer: verdict})
    assert (ran.outcome.status, ran.outcome.failure_kind) == ("failed", "exception")
    assert ran.body["error_info"].startswith("the evaluator failed: TypeError: the evaluator")
    assert says in ran.body["error_info"]
    assert ran.body["outputs"] == {"answer": 1}


numbers = st.integers() | st.floats(allow_nan=False) | st.booleans()


@given(st.dictionaries(st.text(max_size=5), numbers))
def test_every_number_of_a_mapping_becomes_a_row(verdict):
    verdict = {name: number for name, number in verdict.items() if name not in ("value",)}
    rows = read_verdict(verdict)
    assert {each["metric_name"]: each["metric_value"] for each in rows} == verdict


def test_async_evaluators_work():
    async def judge(answer):
        return answer * 2

    ran = run(lambda task: {"answer": 2}, {"evaluator": judge})
    assert ran.body["evaluations"] == [row("score", 4)]
