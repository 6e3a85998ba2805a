"""Tied and conditional factors: refused, never ignored, by designs that can't follow them."""

import pytest

from fairtrial import DesignKind, Study, StudyError, build_design, validate_study

FOLLOW_WHEN = {
    "full_factorial",
    "constrained_factorial",
    "randomized_block",
    "repeated_measures",
    "d_optimal",
}
FOLLOW_TIES = FOLLOW_WHEN | {"fractional_factorial_2level", "plackett_burman", "latin_square"}
SPECS = {
    "d_optimal": {"n_samples": 8},
    "latin_hypercube": {"n_samples": 4},
    "sobol": {"n_samples": 4},
    "halton": {"n_samples": 4},
}


def study(kind, *further, **spec):
    factors = [{"name": name, "levels": [0, 1]} for name in "abc"]
    return Study.from_dict(
        {
            "study_id": "s",
            "title": "t",
            "factors": [*factors, *further],
            "design_spec": {"kind": kind, **SPECS.get(kind, {}), **spec},
        }
    )


def refusal(made):
    with pytest.raises(StudyError) as caught:
        build_design(made)
    return str(caught.value).splitlines()


@pytest.mark.parametrize("kind", [*map(str, DesignKind)])
def test_a_conditional_factor_is_followed_or_refused(kind):
    factor = {"name": "d", "levels": [0, 1], "when": "a == 1", "default": 7}
    if kind in FOLLOW_WHEN:
        rows = [condition.factor_assignments for condition in build_design(study(kind, factor))]
        assert all((row["d"] == 7) == (row["a"] == 0) for row in rows)
        return
    says = f"a {kind} design can't follow `when`; use a factorial design or d_optimal"
    assert validate_study(study(kind, factor)) == [f"factors[3].when: {says}"]
    assert refusal(study(kind, factor)) == [f"factors[3].when: {says}"]


@pytest.mark.parametrize("kind", [*map(str, DesignKind)])
def test_a_conditional_level_is_followed_or_refused(kind):
    levels = [0, {"name": "1", "value": 1, "when": "a == 1"}]
    made = study(kind, {"name": "d", "levels": levels})
    if kind in FOLLOW_WHEN:
        rows = [condition.factor_assignments for condition in build_design(made)]
        assert {(row["a"], row["d"]) for row in rows} == {(0, 0), (1, 0), (1, 1)}
    else:
        (said,) = refusal(made)
        assert said.startswith("factors[3].levels[1].when: ")


@pytest.mark.parametrize("kind", [*map(str, DesignKind)])
def test_a_tied_factor_is_followed_or_refused(kind):
    factor = {"name": "d", "levels": ["low", "high"], "tied_to": "a"}
    if kind in FOLLOW_TIES:
        rows = [condition.factor_assignments for condition in build_design(study(kind, factor))]
        assert {(row["a"], row["d"]) for row in rows} == {(0, "low"), (1, "high")}
        return
    says = f"a {kind} design can't follow ties; use a factorial design or d_optimal"
    assert validate_study(study(kind, factor)) == [f"factors[3].tied_to: {says}"]
    assert refusal(study(kind, factor)) == [f"factors[3].tied_to: {says}"]


@pytest.mark.parametrize("kind", ["full_factorial", "frac2", "latin_square", "d_optimal"])
@pytest.mark.parametrize(
    ("factor", "says"),
    [
        ({"tied_to": "z"}, "'z' is not a factor listed earlier; known: a, b, c"),
        ({"tied_to": "d"}, "'d' is not a factor listed earlier; known: a, b, c"),
        ({"tied_to": "a", "levels": [1, 2, 3]}, "'d' has 3 levels, 'a' has 2"),
    ],
)
def test_a_tie_to_nothing_is_refused_when_the_design_is_built_too(kind, factor, says):
    """Python code may skip validation; it gets the same words, and no KeyError."""
    (said,) = refusal(study(kind, {"name": "d", "levels": [0, 1], **factor}))
    assert said.startswith(f"factors[3].tied_to: {says}")


def test_an_expression_over_what_comes_later_is_refused_when_the_design_is_built_too():
    (said,) = refusal(study("full", {"name": "d", "levels": [0, 1], "when": "e == 1"}))
    assert said.startswith("factors[3].when: 'e' is not a factor listed earlier; known: a, b, c")
