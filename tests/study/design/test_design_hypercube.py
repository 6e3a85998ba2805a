"""Designs over numeric ranges: Latin hypercubes, Sobol and Halton sequences."""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from fairtrial.core import StudyError
from fairtrial.core.fields import field_docs, field_types
from fairtrial.study import (
    Block,
    Condition,
    DesignSpec,
    Factor,
    Level,
    SeedPolicy,
    Study,
    build_design,
)
from fairtrial.study.design import design_table
from fairtrial.study.design.hypercube import Halton, LatinHypercube, Sobol, draw_latin_hypercube
from fairtrial.study.design.maximin import spread_apart
from fairtrial.study.design.ranges import Range

SEQUENCES = ["sobol", "halton"]


def factor(name: str, *values: Any, **fields: Any) -> Factor:
    return Factor(name, levels=tuple(Level(str(value), value) for value in values), **fields)


def unit_factors(count: int) -> list[Factor]:
    return [factor(f"x{index}", 0.0, 1.0) for index in range(count)]


def sampled(
    factors: Sequence[Factor],
    n: int | None,
    *,
    kind: str = "latin_hypercube",
    seed: int = 0,
    blocks: tuple[Block, ...] = (),
    spec: Mapping[str, Any] | None = None,
    **options: Any,
) -> Study:
    return Study(
        "s",
        "t",
        factors=tuple(factors),
        blocks=blocks,
        design_spec=DesignSpec(kind, n_samples=n, options=options, **(spec or {})),
        seed_policy=SeedPolicy(base_seed=seed),
    )


def rows_of(study: Study) -> list[Mapping[str, Any]]:
    return [condition.factor_assignments for condition in build_design(study)]


def points_of(study: Study) -> list[tuple[float, ...]]:
    return [tuple(row.values()) for row in rows_of(study)]


def smallest_distance(points: Sequence[Sequence[float]]) -> float:
    return min(math.dist(one, two) for one, two in itertools.combinations(points, 2))


def strata(points: Sequence[Sequence[float]], axis: int) -> list[int]:
    return sorted(math.floor(point[axis] * len(points)) for point in points)


TUNING = [factor("temperature", 0.1, 1.3), factor("depth", 1, 9)]


# Made once with design-research-experiments 0.3.0
@pytest.mark.parametrize(
    ("n", "seed", "rows"),
    [
        (
            5,
            0,
            [
                ("cond-f263b7d0d39b", 0.30266124436601155, 4.052980616312537),
                ("cond-567089e65834", 1.1827059331284662, 1.93341126312805),
                ("cond-19d2695ba536", 0.5219090567056727, 6.250940551039526),
                ("cond-2ab03d14e253", 0.6809371793994028, 5.007498969307824),
                ("cond-4ba757bf4207", 0.8821400200703111, 8.609286726651558),
            ],
        ),
        (
            3,
            42,
            [
                ("cond-7a16f7d7ba4d", 0.5100043020890668, 8.712478847212921),
                ("cond-ac12be5c3201", 1.0100117273476477, 5.471198633127763),
                ("cond-2d27a9f083f2", 0.3557707193831535, 2.9639232377706994),
            ],
        ),
    ],
)
def test_rows_and_ids_are_those_of_the_older_library(
    n: int, seed: int, rows: list[tuple[str, float, float]]
) -> None:
    conditions = build_design(sampled(TUNING, n, seed=seed))
    assert [
        (c.condition_id, c.factor_assignments["temperature"], c.factor_assignments["depth"])
        for c in conditions
    ] == rows


def test_explicit_bounds_set_the_order_in_which_random_numbers_are_used() -> None:
    # Made once with design-research-experiments 0.3.0
    bounds = {"b": (-5.0, -1.0), "a": (0.0, 1e6), "c": (0.3, 0.7)}
    factors = [factor(name, 0, 1) for name in "abc"]
    expected = [
        {"b": -3.974989244777333, "a": 257945.66987044588, "c": 0.47013249735902357},
        {"b": -1.7767892618511771, "a": 808165.223347685, "c": 0.6449209046283854},
        {"b": -2.7249706816308805, "a": 523423.80996539805, "c": 0.3716019612922403},
        {"b": -4.360573201542116, "a": 147623.1281122599, "c": 0.5419519820961658},
    ]
    assert rows_of(sampled(factors, 4, seed=42, bounds=bounds)) == expected


def test_seeds_may_be_negative_and_samples_single() -> None:
    # Made once with design-research-experiments 0.3.0
    assert points_of(sampled(unit_factors(1), 3, seed=-3)) == [
        (0.07932154236396378,),
        (0.5147430750986506,),
        (0.7899850555160264,),
    ]
    factors = [factor("x", 0.0, 1.0), factor("y", 2.0, 3.0)]
    assert points_of(sampled(factors, 1, seed=123456789)) == [
        (0.6414006161858726, 2.5421892680969496)
    ]


def test_replicates_center_points_order_and_blocks_give_the_ids_of_the_older_library() -> None:
    # Made once with design-research-experiments 0.3.0
    study = sampled(
        TUNING,
        2,
        seed=7,
        blocks=(Block("day", ("mon", "tue")),),
        spec={"replicates": 2, "center_points": 1, "randomize": True},
    )
    conditions = build_design(study)
    assert [c.condition_id for c in conditions] == [
        "cond-5e4aaf75c927",
        "cond-8f2d81e084fd",
        "cond-089ea3d9d36c",
        "cond-c83e51195dc0",
        "cond-23b46cf99629",
        "cond-24b49297fe49",
        "cond-0f6f33bbe8f4",
        "cond-90c371c47c41",
        "cond-7c23cccd54d9",
        "cond-c584870ed974",
    ]


def test_the_scipy_backend_gives_the_points_of_scipys_own_sampler() -> None:
    from scipy.stats import qmc

    for backend in ("scipy", "qmc"):
        study = sampled(unit_factors(3), 7, seed=5, backend=backend)
        try:
            sampler = qmc.LatinHypercube(3, rng=5)
        except TypeError:  # scipy before 1.15
            sampler = qmc.LatinHypercube(3, seed=5)
        assert points_of(study) == [tuple(point) for point in sampler.random(7).tolist()]


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 25),
    dimensions=st.integers(1, 4),
    seed=st.integers(-(2**40), 2**40),
    backend=st.sampled_from(["stdlib", "scipy"]),
    criterion=st.sampled_from([None, "maximin"]),
)
def test_every_stratum_of_every_axis_has_one_sample(
    n: int, dimensions: int, seed: int, backend: str, criterion: str | None
) -> None:
    study = sampled(
        unit_factors(dimensions), n, seed=seed, backend=backend, criterion=criterion, tries=100
    )
    points = points_of(study)
    assert len(points) == n
    for axis in range(dimensions):
        assert strata(points, axis) == list(range(n))


@settings(max_examples=40, deadline=None)
@given(n=st.integers(2, 20), dimensions=st.integers(1, 4), seed=st.integers(0, 10**6))
def test_maximin_is_never_worse_than_the_plain_hypercube(
    n: int, dimensions: int, seed: int
) -> None:
    study = sampled(unit_factors(dimensions), n, seed=seed, criterion="maximin", tries=300)
    before = smallest_distance(points_of(sampled(unit_factors(dimensions), n, seed=seed)))
    after = smallest_distance(points_of(study))
    facts = design_table(study).facts
    assert after >= before
    assert facts["smallest_distance"] == pytest.approx(after, rel=1e-9)
    assert facts["smallest_distance_before_maximin"] == pytest.approx(before, rel=1e-9)


@pytest.mark.parametrize(("n", "dimensions"), [(12, 2), (20, 3), (60, 5)])
def test_maximin_beats_the_best_of_two_hundred_plain_hypercubes(n: int, dimensions: int) -> None:
    factors = unit_factors(dimensions)
    plain = max(smallest_distance(points_of(sampled(factors, n, seed=seed))) for seed in range(200))
    spread = smallest_distance(points_of(sampled(factors, n, criterion="maximin")))
    assert spread > plain


def apart_by_brute_force(
    points: list[list[float]], tries: int, rng: random.Random
) -> list[list[float]]:
    """What `spread_apart` says it does, with every distance computed anew."""

    def distance(one: int, two: int) -> float:
        return sum((a - b) ** 2 for a, b in zip(points[one], points[two], strict=True))

    points = [list(point) for point in points]
    pairs = list(itertools.combinations(range(len(points)), 2))
    for _ in range(tries):
        closest = min(pairs, key=lambda pair: distance(*pair))
        before = distance(*closest)
        one, other = rng.choice(closest), rng.randrange(len(points))
        axis = rng.randrange(len(points[0]))
        if other in closest:
            continue
        swapped = points[one][axis], points[other][axis]
        points[other][axis], points[one][axis] = swapped
        changed = [pair for pair in pairs if {one, other} & set(pair) and pair != closest]
        changed += [closest]
        if min(distance(*pair) for pair in changed) <= before + 1e-12:
            points[one][axis], points[other][axis] = swapped
    return points


@given(st.integers(3, 9), st.integers(2, 4), st.integers(0, 10**6))
def test_maximin_keeps_its_books_right(count: int, dimensions: int, seed: int) -> None:
    cube = [list(point) for point in draw_latin_hypercube(count, dimensions, seed)]
    fast = spread_apart(cube, 200, random.Random(seed))
    slow = apart_by_brute_force(cube, 200, random.Random(seed))
    assert [list(point) for point in fast] == slow


def test_maximin_of_one_sample_has_no_distance() -> None:
    study = sampled(unit_factors(2), 1, criterion="maximin")
    assert design_table(study).facts["smallest_distance"] is None
    assert len(points_of(study)) == 1


def test_distances_are_those_of_the_unit_cube_whatever_the_ranges() -> None:
    wide = [factor("a", -1000, 1000), factor("b", 0, 0.001)]
    unit = design_table(sampled(unit_factors(2), 9, criterion="maximin")).facts
    assert design_table(sampled(wide, 9, criterion="maximin")).facts == unit


@pytest.mark.parametrize("kind", ["latin_hypercube", *SEQUENCES])
def test_whole_numbers_get_equal_shares_where_asked_for(kind: str) -> None:
    factors = [factor("depth", -1, 2, dtype="int"), factor("x", 0.0, 1.0)]
    rows = rows_of(sampled(factors, 64, kind=kind, integers=True))
    counts = Counter(row["depth"] for row in rows)
    assert counts.keys() == {-1, 0, 1, 2}
    assert max(counts.values()) - min(counts.values()) <= (0 if kind != "halton" else 4)
    assert {type(row["depth"]) for row in rows} == {int}
    assert {type(row["x"]) for row in rows} == {float}


def test_a_factor_of_dtype_int_gets_fractions_where_whole_numbers_are_not_asked_for() -> None:
    typed = [factor("depth", 1, 9, dtype="int")]
    assert rows_of(sampled(typed, 5)) == rows_of(sampled([factor("depth", 1, 9)], 5))


def test_a_point_that_rounds_up_to_one_stays_in_the_range() -> None:
    assert Range("x", 1, 3, whole=True).scale(1.0) == 3


@pytest.mark.parametrize("kind", SEQUENCES)
@pytest.mark.parametrize("scramble", [True, False])
def test_a_longer_sequence_begins_with_the_shorter_one(kind: str, scramble: bool) -> None:
    # Samples can be added, and every id stays
    blocks = (Block("day", ("mon", "tue")),)

    def conditions(n: int) -> list[Condition]:
        return build_design(sampled(TUNING, n, kind=kind, blocks=blocks, scramble=scramble))

    longest = conditions(100)
    assert len({condition.condition_id for condition in longest}) == 200
    for n in (1, 2, 3, 16, 33):
        assert conditions(n) == longest[: 2 * n]


@pytest.mark.parametrize("kind", SEQUENCES)
def test_sequences_follow_the_seed(kind: str) -> None:
    first = points_of(sampled(unit_factors(2), 10, kind=kind, seed=1))
    assert first == points_of(sampled(unit_factors(2), 10, kind=kind, seed=1))
    assert first != points_of(sampled(unit_factors(2), 10, kind=kind, seed=2))
    assert first != points_of(sampled(unit_factors(2), 10, kind=kind, seed=-1))


def radical_inverse(number: int, base: int) -> float:
    """The digits of a number, mirrored behind the point."""
    value, scale = 0.0, 1.0
    while number:
        number, digit = divmod(number, base)
        scale /= base
        value += digit * scale
    return value


def test_an_unscrambled_halton_sequence_mirrors_the_digits_of_its_numbers() -> None:
    points = points_of(sampled(unit_factors(3), 50, kind="halton", scramble=False))
    for number, point in enumerate(points):
        assert point == pytest.approx([radical_inverse(number, base) for base in (2, 3, 5)])


@pytest.mark.parametrize("scramble", [True, False])
def test_a_sobol_sequence_is_balanced_at_powers_of_two(scramble: bool) -> None:
    points = points_of(sampled(unit_factors(4), 64, kind="sobol", scramble=scramble))
    for axis in range(4):
        assert strata(points, axis) == list(range(64))
    cells = Counter((math.floor(x * 8), math.floor(y * 8)) for x, y, *_ in points)
    assert set(cells.values()) == {1}
    assert len(cells) == 64


def test_facts_say_at_which_numbers_a_sobol_sequence_is_balanced() -> None:
    facts = design_table(sampled(unit_factors(2), 100, kind="sobol")).facts
    assert facts["balance"] == "balanced only at powers of two: 64 or 128"
    assert "balance" not in design_table(sampled(unit_factors(2), 64, kind="sobol")).facts


def centered_discrepancy(points: Sequence[Sequence[float]]) -> float:
    """Squared, by the formula of Hickernell (1998)."""
    n, d = len(points), len(points[0])
    off = [[abs(x - 0.5) for x in point] for point in points]
    single = sum(math.prod(1 + a / 2 - a * a / 2 for a in one) for one in off)
    double = sum(
        math.prod(
            1 + off[i][k] / 2 + off[j][k] / 2 - abs(points[i][k] - points[j][k]) / 2
            for k in range(d)
        )
        for i in range(n)
        for j in range(n)
    )
    return (13 / 12) ** d - 2 / n * single + double / n**2


@pytest.mark.parametrize("kind", SEQUENCES)
def test_discrepancy_is_reported_and_below_that_of_random_samples(kind: str) -> None:
    points = points_of(sampled(unit_factors(3), 40, kind=kind))
    reported = design_table(sampled(unit_factors(3), 40, kind=kind)).facts["centered_discrepancy"]
    assert reported == pytest.approx(centered_discrepancy(points))
    assert reported < centered_discrepancy(points_of(sampled(unit_factors(3), 40)))


@pytest.mark.parametrize("kind", ["latin_hypercube", *SEQUENCES])
def test_a_huge_design_is_counted_without_being_made(kind: str) -> None:
    study = sampled(TUNING, 10**7, kind=kind, spec={"max_conditions": 10**7})
    assert design_table(study).size == 10**7


@pytest.mark.parametrize("kind", ["latin_hypercube", *SEQUENCES])
@pytest.mark.parametrize("backend", [None, "scipy"])
def test_values_are_plain_numbers_within_the_range(kind: str, backend: str | None) -> None:
    options = {"backend": backend} if backend and kind == "latin_hypercube" else {}
    for row in rows_of(sampled(TUNING, 20, kind=kind, **options)):
        assert {type(value) for value in row.values()} == {float}
        assert 0.1 <= row["temperature"] <= 1.3
        assert 1 <= row["depth"] <= 9


def mistakes(study: Study) -> list[str]:
    with pytest.raises(StudyError) as caught:
        design_table(study)
    return [str(mistake) for mistake in caught.value.mistakes]


@pytest.mark.parametrize("kind", ["latin_hypercube", *SEQUENCES])
def test_all_that_is_missing_is_reported_at_once(kind: str) -> None:
    named = [factor("model", "small", "large"), factor("x", 0, 1), factor("one", 1)]
    result = mistakes(sampled(named, None, kind=kind))
    assert len(result) == 3
    assert result[0] == f"design_spec.n_samples: {kind} needs a number of samples"
    assert f"factors[0].levels: {kind} needs a numeric range; 'model' has none" in result[1]
    assert "d_optimal or a factorial" in result[1]
    assert "'one'" in result[2]
    assert "at least one factor" in mistakes(sampled([], 5, kind=kind))[0]


def test_bounds_name_every_factor_and_no_other() -> None:
    result = mistakes(sampled(TUNING, 5, bounds={"temprature": (0, 1)}))
    assert result == [
        "design_spec.options.bounds.temprature: 'temprature' is not a factor; "
        "did you mean 'temperature'?",
        "design_spec.options.bounds: there is no range for 'temperature'; "
        "give each factor its [low, high]",
        "design_spec.options.bounds: there is no range for 'depth'; "
        "give each factor its [low, high]",
    ]


@pytest.mark.parametrize("kind", ["latin_hypercube", *SEQUENCES])
def test_ranges_must_go_up(kind: str) -> None:
    bounds = {"temperature": (1, 1), "depth": (3, 2)}
    assert mistakes(sampled(TUNING, 5, kind=kind, bounds=bounds)) == [
        "design_spec.options.bounds.temperature: the range of 'temperature' must go up, "
        "got 1 to 1; [low, high]",
        "design_spec.options.bounds.depth: the range of 'depth' must go up, "
        "got 3 to 2; [low, high]",
    ]
    flat = [factor("x", 0, 1), factor("y", 2, 2.0)]
    result = mistakes(sampled(flat, 5, kind=kind))
    assert result == ["factors[1].levels: the range of 'y' must go up, got 2 to 2; [low, high]"]


@pytest.mark.parametrize("kind", ["latin_hypercube", *SEQUENCES])
def test_ranges_must_not_be_wider_than_floats_allow(kind: str) -> None:
    bounds = {"temperature": (-1.7e308, 1.7e308), "depth": (0, 1)}
    assert mistakes(sampled(TUNING, 5, kind=kind, bounds=bounds)) == [
        "design_spec.options.bounds.temperature: the range of 'temperature' is too wide, "
        "got -1.7e+308 to 1.7e+308"
    ]
    result = mistakes(sampled([factor("x", 0, 10**400)], 5, kind=kind))
    assert len(result) == 1
    assert f"{kind} needs a numeric range; 'x' has none" in result[0]


def test_bounds_serve_factors_whose_levels_are_no_range() -> None:
    factors = [Factor("x", default=0.5), factor("size", "small", "large")]
    bounds = {"x": (0, 1), "size": (10, 20)}
    rows = rows_of(sampled(factors, 4, bounds=bounds))
    assert all(0 <= row["x"] <= 1 and 10 <= row["size"] <= 20 for row in rows)


def test_whole_numbers_need_a_whole_range_a_dtype_and_no_center() -> None:
    assert "no factor has the dtype int" in mistakes(sampled(TUNING, 5, integers=True))[0]
    wrong = [factor("depth", 1.5, 4, dtype="int")]
    result = mistakes(sampled(wrong, 5, integers=True, spec={"center_points": 1}))
    assert len(result) == 2
    assert result[0].startswith("factors[0]: 'depth' has the dtype int and a range from 1.5 to 4")
    assert result[1].startswith("design_spec.center_points")


def test_options_are_checked() -> None:
    result = mistakes(sampled(TUNING, 5, backend="R", criterion="minimax", tries=0.5))
    assert len(result) == 3
    assert mistakes(sampled(TUNING, 5, tries=0)) == [
        "design_spec.options.tries: must be 1 or more, got 0"
    ]
    assert "sobol" in mistakes(sampled(TUNING, 1001, criterion="maximin"))[0]


@pytest.mark.parametrize("design", [LatinHypercube, Sobol, Halton])
def test_every_option_is_documented(design: type[Any]) -> None:
    assert field_docs(design).keys() == field_types(design).keys()
