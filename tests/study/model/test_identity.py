"""Canonical JSON, ids and seeds, to the byte."""

import hashlib
import json
from enum import Enum
from pathlib import PurePosixPath

import pytest
from hypothesis import given, strategies as st

from fairtrial import Factor, Level, SeedPolicy, StudyError
from fairtrial.core import canonical_json
from fairtrial.study.model.identity import (
    fingerprint,
    fingerprint_maker,
    hash_condition,
    hash_id,
    run_id_maker,
    seed_maker,
)

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20
)


class Color(Enum):
    RED = "red"


def sha(value):
    return hashlib.sha256(value.encode()).hexdigest()


@given(values)
def test_canonical_json_is_sorted_compact_json(value):
    assert canonical_json(value) == json.dumps(value, sort_keys=True, separators=(",", ":"))


@given(st.dictionaries(st.text(), scalars))
def test_the_order_of_keys_does_not_matter(value):
    assert canonical_json(value) == canonical_json(dict(reversed(list(value.items()))))


def test_python_types_have_one_json_form():
    value = {1: (1, 2), Color.RED: Color.RED, "p": PurePosixPath("a/b"), "s": {10, 9}}
    assert canonical_json(value) == '{"1":[1,2],"p":"a/b","red":"red","s":[9,10]}'
    assert canonical_json({"ä": "é"}) == '{"\\u00e4":"\\u00e9"}'
    assert canonical_json({1.5, "a"}) == '["a",1.5]'


@pytest.mark.parametrize(
    "value", [object(), b"bytes", 1j, float("nan"), float("inf"), [object()], {"a": {"b": print}}]
)
def test_other_types_are_refused_and_never_become_their_text(value):
    with pytest.raises(StudyError):
        canonical_json(value)


def test_a_refusal_says_where_the_value_sits():
    with pytest.raises(StudyError, match=r"a\[1\]\.b: .*type object"):
        canonical_json({"a": [1, {"b": object()}]})


def test_keys_that_are_the_same_as_text_are_refused():
    with pytest.raises(StudyError, match="two keys"):
        canonical_json({1: "a", "1": "b"})


def test_condition_ids_are_the_published_vectors():
    assert hash_condition(fingerprint({"x": 1}, {})) == "cond-dc7d73c6ab1c"
    text = '{"blocks":{},"factors":{"x":1},"metadata":{"design_kind":"lhs","row_index":0}}'
    assert hash_condition(fingerprint({"x": 1}, {}), {"row_index": 0, "design_kind": "lhs"}) == (
        f"cond-{sha(text)[:12]}"
    )


texts = st.text(max_size=20)


@given(texts, texts, st.integers(1, 10**6), st.none() | texts, st.none() | texts)
def test_run_ids_are_the_hash_of_the_runs_parts(study, condition, replicate, agent, problem):
    payload = {
        "study_id": study,
        "condition_id": condition,
        "replicate": replicate,
        "agent_id": agent,
        "problem_id": problem,
    }
    expected = hash_id("run", payload)
    assert run_id_maker(study, condition, agent, problem)(replicate) == expected


@given(st.integers(), st.integers(), texts, texts, st.integers(1, 10**6), texts)
def test_seeds_are_the_hash_of_the_policy_and_the_run(base, offset, study, cond, replicate, salt):
    policy = SeedPolicy(base_seed=base, per_run_offset=offset)
    payload = {
        "base_seed": base,
        "strategy": "condition_replicate",
        "per_run_offset": offset,
        "study_id": study,
        "condition_id": cond,
        "replicate": replicate,
        "salt": salt,
    }
    expected = int(sha(canonical_json(payload))[:16], 16) % (2**31 - 1)
    assert policy.derive_seed(study, cond, replicate, salt) == expected
    fields = {"base_seed": base, "strategy": "condition_replicate", "per_run_offset": offset}
    assert seed_maker(fields, study, cond, salt)(replicate) == expected


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value", [10**5_000, {"a": [-(10**5_000)]}, nested(5_000)], ids=["long", "inside", "deep"]
)
def test_what_python_itself_gives_up_on_is_refused_like_any_other_value(value):
    with pytest.raises(StudyError):
        canonical_json(value)
    with pytest.raises(StudyError):
        Factor("x", levels=(Level("l", value),))


def test_depth_has_a_limit_of_its_own_the_same_with_every_python():
    def nested(depth):
        value = 1
        for _ in range(depth):
            value = [value]
        return value

    assert canonical_json(nested(100)) == "[" * 100 + "1" + "]" * 100
    for depth in (102, 900, 5_000):
        with pytest.raises(StudyError, match="nested more than 100 deep"):
            canonical_json(nested(depth))


@given(data=st.data())
def test_fingerprints_from_a_form_are_those_of_canonical_json(data):
    values = st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=4),
        st.lists(st.integers(), max_size=2),
        st.sampled_from([-0.0, 10**101, "%s"]),
    )
    make = fingerprint_maker()
    names = data.draw(st.lists(st.text(max_size=3), max_size=4, unique=True))
    for _ in range(2):  # the second time, the form is known
        factors = {name: data.draw(values) for name in names}
        blocks = {name: data.draw(values) for name in names[:1]}
        assert make(factors, blocks) == fingerprint(factors, blocks)


def test_a_value_that_has_no_canonical_json_is_refused_by_a_form_too():
    with pytest.raises(StudyError, match="nan is not a finite number"):
        fingerprint_maker()({"x": float("nan")}, {})
