"""Design tables without a study."""

from __future__ import annotations

import functools
import itertools
import json
from collections import Counter
from dataclasses import dataclass
from importlib.metadata import EntryPoint

import pytest
from hypothesis import given, strategies as st

from fairtrial.core import StudyError, plugins
from fairtrial.study import (
    DesignRow,
    DesignSpec,
    DesignTable,
    Factor,
    SeedPolicy,
    Study,
    build_design,
    generate_doe,
)
from fairtrial.study.design import DESIGN_ALIASES

NUMERIC = {"a": [0, 1], "b": [10, 20], "c": [-5, 5]}
SQUARE = {"a": [1, 2, 3], "b": [1, 2, 3], "c": ["x", "y", "z"]}
CODED = {"a": None, "b": [], "c": None}
EVERY_KIND = {
    "full_factorial": {"factors": SQUARE},
    "constrained_factorial": {"factors": SQUARE},
    "randomized_block": {"factors": SQUARE},
    "repeated_measures": {"factors": {"a": [1, 2, 3, 4]}},
    "latin_square": {"factors": SQUARE},
    "latin_hypercube": {"factors": NUMERIC, "n_samples": 6},
    "sobol": {"factors": NUMERIC, "n_samples": 8},
    "halton": {"factors": NUMERIC, "n_samples": 6},
    "fractional_factorial_2level": {"factors": {**CODED, "d": ["lo", "hi"]}},
    "plackett_burman": {"factors": CODED},
    "central_composite": {"factors": CODED},
    "box_behnken": {"factors": CODED},
    "d_optimal": {"factors": SQUARE, "n_samples": 12},
}


def _values(made):
    return [tuple(row.values()) for row in made["design"]]


def _mistakes(**arguments):
    with pytest.raises(StudyError) as caught:
        generate_doe(**arguments)
    return {mistake.path: str(mistake) for mistake in caught.value.mistakes}


# The rows of design-research-experiments 0.3, frozen


def test_full_factorial_gives_the_known_rows():
    made = generate_doe(
        kind="full",
        factors={"a": [1, 2, 3], "b": ["x", "y"]},
        replicates=2,
        center_points=1,
        seed=3,
    )
    shown = " ".join(f"{a:g}{b}" for a, b in _values(made))
    assert shown == "2x 3y 1y 1x 1x 3x 3x 1y 3y 2x 2x 2y 2y"
    assert made["design"][0] == {"a": 2.0, "b": "x"}
    assert made["summary"] == {
        "n_runs": 13,
        "factors": ["a", "b"],
        "ranges": {"a": [1.0, 3.0]},
        "design_kind": "full_factorial",
        "backend": "stdlib",
        "balance": {
            "a": {"n_levels": 3.0, "max_to_min_ratio": 1.25},
            "b": {"n_levels": 2.0, "max_to_min_ratio": 7 / 6},
        },
    }


def test_latin_hypercube_gives_the_known_rows():
    made = generate_doe(
        kind="lhs", factors={"t": [0, 1], "u": [10, 20]}, n_samples=4, seed=11, center_points=1
    )
    assert _values(made) == [
        (0.11309488837745466, 15.235308640573047),
        (0.7310526460059323, 14.48244218129988),
        (0.8664125175249433, 18.258503156561314),
        (0.48975370295119897, 14.91660497855166),
        (0.389943096520124, 11.574706800542005),
    ]


def test_two_level_fraction_gives_the_known_rows():
    made = generate_doe(kind="frac2", factors=dict.fromkeys("abcdef", (-1, 1)), seed=7)
    signs = ["".join("+" if value > 0 else "-" for value in row) for row in _values(made)]
    assert " ".join(signs) == "++---- ++++++ -+-++- +--+-+ ----++ -++--+ --++-- +-+-+-"
    assert made == generate_doe(kind="frac2", factors=dict.fromkeys("abcdef"), seed=7)


# Every kind


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_every_kind_gives_plain_data(kind):
    made = generate_doe(kind=kind, seed=5, **EVERY_KIND[kind])
    assert json.loads(json.dumps(made)) == made
    assert list(made) == ["design", "summary", "interpretation", "warnings", "facts"]
    assert made["summary"]["n_runs"] == len(made["design"]) > 0
    assert made["summary"]["factors"] == list(EVERY_KIND[kind]["factors"])
    assert str(len(made["design"])) in made["interpretation"]


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize("randomize", [True, False])
def test_rows_are_those_of_a_study(kind, randomize):
    given = EVERY_KIND[kind]
    study = Study(
        "s",
        "s",
        factors=tuple(
            Factor(name, levels=levels or (-1.0, 1.0)) for name, levels in given["factors"].items()
        ),
        design_spec=DesignSpec(kind=kind, n_samples=given.get("n_samples"), randomize=randomize),
        seed_policy=SeedPolicy(base_seed=5),
    )
    rows = [dict(condition.factor_assignments) for condition in build_design(study)]
    assert generate_doe(kind=kind, seed=5, randomize=randomize, **given)["design"] == rows


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_replicates_and_center_points_are_added_once(kind):
    once = generate_doe(kind=kind, **EVERY_KIND[kind])
    more = generate_doe(kind=kind, replicates=3, center_points=2, **EVERY_KIND[kind])
    assert len(more["design"]) == 3 * len(once["design"]) + 2


@pytest.mark.parametrize("alias", DESIGN_ALIASES)
def test_aliases_name_the_same_design(alias):
    kind = DESIGN_ALIASES[alias]
    made = generate_doe(kind=alias, **EVERY_KIND[kind])
    assert made == generate_doe(kind=str(kind), **EVERY_KIND[kind])
    assert made["summary"]["design_kind"] == kind


def test_a_matrix_file_is_read(tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("a,b\n1,x\n2,y\n1,y\n", encoding="utf-8")
    options = {"matrix_path": str(file)}
    typed = generate_doe(
        kind="custom_matrix", factors={"a": [1, 2], "b": ["x", "y"]}, options=options
    )
    assert _values(typed) == [(1, "x"), (2, "y"), (1, "y")]
    as_written = generate_doe(
        kind="custom_matrix", factors={"a": None, "b": None}, options=options, replicates=2
    )
    assert _values(as_written) == [("1", "x"), ("2", "y"), ("1", "y")] * 2
    assert ("matrix_path",) in _mistakes(kind="custom_matrix", factors={"a": None})


@dataclass(frozen=True)
class Ladder:
    """A plug-in that leaves order and replicates to others: all factors at their n-th level."""

    steps: int = 3

    def table(self, study):
        rows = [
            DesignRow({factor.name: factor.levels[step].value for factor in study.factors})
            for step in range(self.steps)
        ]
        return DesignTable(size=self.steps, rows=rows, facts={"steps": self.steps})


@pytest.fixture
def ladder(monkeypatch):
    point = EntryPoint("ladder", f"{__name__}:Ladder", "fairtrial.designs")
    monkeypatch.setattr(
        plugins, "_find_entry_points", functools.cache(lambda group: {"ladder": [point]})
    )


@pytest.mark.usefixtures("ladder")
def test_a_plug_in_is_a_kind_like_any_other():
    made = generate_doe(
        kind="ladder",
        factors={"a": [1, 2, 3], "b": [4, 5, 6]},
        options={"steps": 2},
        replicates=2,
        center_points=1,
        randomize=False,
    )
    assert _values(made) == [(1, 4), (2, 5), (1, 4), (2, 5), (1.5, 4.5)]
    assert made["facts"] == {"steps": 2}
    assert made["warnings"] == ["a and b change together: their effects can't be told apart"]
    assert (
        "options.stps"
        in _mistakes(kind="ladder", factors={"a": [1]}, options={"stps": 2})["options", "stps"]
    )


# What it says


def test_uneven_levels_are_warned_of():
    made = generate_doe(kind="full", factors={"a": [1, 2, 3]}, center_points=2)
    assert made["warnings"] == ["a: its commonest level occurs 3 times as often as its rarest"]
    assert "unequally often in a" in made["interpretation"]


def test_a_balanced_table_is_called_balanced():
    made = generate_doe(kind="full", factors=SQUARE)
    assert made["warnings"] == []
    assert made["interpretation"] == (
        "full_factorial: 27 runs over 3 factors. All levels occur equally often, and so do all "
        "pairs of levels."
    )


def test_a_fraction_says_what_is_aliased():
    made = generate_doe(kind="frac2", factors=dict.fromkeys("abcde"), options={"resolution": "V"})
    assert made["facts"]["resolution"] == "V"
    assert len(made["design"]) == 16


def test_response_surfaces_are_uneven_on_purpose():
    assert generate_doe(kind="ccd", factors=CODED)["warnings"] == []


# Order


@given(st.integers(-5, 2**40), st.integers(1, 3))
def test_the_seed_alone_decides_the_order(seed, replicates):
    arguments = {"kind": "full", "factors": SQUARE, "seed": seed, "replicates": replicates}
    made = generate_doe(**arguments)
    assert made == generate_doe(**arguments)
    assert sorted(_values(made)) == sorted(_values(generate_doe(**arguments, randomize=False)))


def test_rows_are_shuffled_within_a_factor():
    made = generate_doe(kind="full", factors=SQUARE, block_randomization_key="a", seed=2)
    assert [row["a"] for row in made["design"]] == [1] * 9 + [2] * 9 + [3] * 9
    orders = [[tuple(row.values())[1:] for row in made["design"][i : i + 9]] for i in (0, 9, 18)]
    assert len({tuple(order) for order in orders}) == 3  # Each its own permutation


def test_levels_that_look_alike_stay_apart():
    made = generate_doe(kind="full", factors={"a": [1, "1", 1.0, True, None]}, randomize=False)
    assert [repr(row["a"]) for row in made["design"]] == ["1", "'1'", "1.0", "True", "None"]


def test_ranges_are_of_numeric_factors():
    made = generate_doe(kind="full", factors={"n": [3, 1], "b": [True, False], "t": ["x"]})
    assert made["summary"]["ranges"] == {"n": [1.0, 3.0]}


# Bad input


@pytest.mark.parametrize("factors", [None, [], ["a"], "a", {}, 3])
def test_factors_must_be_a_mapping(factors):
    assert ("factors",) in _mistakes(kind="full", factors=factors)


def test_all_mistakes_are_reported_at_once_in_the_callers_terms():
    result = _mistakes(
        kind="fulll",
        factors={"x": "abc", "y": [1, 2, 1], "z": None, "ok": [1], "odd": [object()]},
        seed="lucky",
        block_randomization_key="zz",
    )
    assert set(result) == {
        ("kind",),
        ("seed",),
        ("factors", "x"),
        ("factors", "y"),
        ("factors", "z"),
        ("factors", "odd"),
        ("block_randomization_key",),
    }
    assert "lists the number 1 twice" in result["factors", "y"]
    assert "full_factorial" in result["kind",]


def test_settings_are_checked():
    result = _mistakes(kind="full", factors={"x": [1]}, replicates=0, center_points=-1, n_samples=0)
    assert set(result) == {("replicates",), ("center_points",), ("n_samples",)}


def test_a_range_of_texts_is_refused_by_its_factor():
    result = _mistakes(kind="lhs", factors={"ok": [0, 1], "temp": ["cold", "hot"]})
    assert set(result) == {("factors", "temp"), ("n_samples",)}
    assert "design_spec" not in "".join(result.values())


def test_a_third_level_is_refused_by_its_factor():
    result = _mistakes(kind="frac2", factors={"a": [1, 2], "b": [1, 2, 3]})
    assert set(result) == {("factors", "b")}


def test_unknown_back_ends_are_refused():
    assert set(_mistakes(kind="full", factors={"a": [1]}, backend="scipy")) == {("backend",)}
    result = _mistakes(kind="lhs", factors={"a": [0, 1]}, n_samples=2, backend="abacus")
    assert set(result) == {("backend",)}
    made = generate_doe(kind="lhs", factors={"a": [0, 1]}, n_samples=4, backend="scipy")
    assert made["summary"]["backend"] == "scipy"


def test_too_many_rows_are_refused_before_they_are_made():
    huge = {f"f{i}": list(range(10)) for i in range(9)}
    assert "1,000,000,000" in "".join(_mistakes(kind="full", factors=huge).values())
    assert "20,000,000,000" in "".join(
        _mistakes(kind="full", factors={"a": [1, 2]}, replicates=10**10).values()
    )
    assert "10,000,000,000" in "".join(
        _mistakes(kind="lhs", factors={"a": [1, 2]}, n_samples=10**10).values()
    )
    few = {"kind": "full", "factors": {"a": [1, 2, 3]}}
    assert _mistakes(**few, max_conditions=2)
    assert len(generate_doe(**few, max_conditions=3)["design"]) == 3


def test_replicates_of_repeated_measures_are_balanced_as_stated():
    treatments = ["a", "b", "c", "d"]
    made = generate_doe(kind="repeated_measures", factors={"t": treatments}, replicates=4)
    row = [row["t"] for row in made["design"]]
    sequences = [row[start : start + 4] for start in range(0, 16, 4)]
    followers = Counter(pair for order in sequences for pair in itertools.pairwise(order))
    assert made["facts"]["carry_over_balanced"] is True
    assert made["facts"]["subjects"] == 4
    assert followers == dict.fromkeys(itertools.permutations(treatments, 2), 1)


def test_replicates_of_a_randomized_block_have_orders_of_their_own():
    factors = {"t": list(range(6))}
    row = [r["t"] for r in generate_doe(kind="randomized_block", factors=factors)["design"]]
    made = generate_doe(kind="randomized_block", factors=factors, replicates=5)["design"]
    orders = [tuple(row["t"] for row in made[start : start + 6]) for start in range(0, 30, 6)]
    assert list(orders[0]) == row
    assert len(set(orders)) == 5
    assert all(sorted(order) == factors["t"] for order in orders)
