"""Central composite and Box-Behnken designs, checked by their rows."""

import itertools
import math
import re

import numpy as np
import pyDOE3
import pytest
from hypothesis import given, strategies as st

from fairtrial import Study, StudyError, build_design
from fairtrial.core import canonical_json
from fairtrial.study.design import design_table, response_surface as surface

BOX_BEHNKEN_SIZES = {3: 15, 4: 27, 5: 46, 6: 54, 7: 62, 9: 130, 10: 170, 11: 188, 12: 204, 16: 396}


def study(kind, factors, spec=None, **options):
    if isinstance(factors, int):
        factors = [{"name": f"f{i}", "levels": [-1, 1]} for i in range(factors)]
    design = {"kind": kind, "options": options, **(spec or {})}
    return Study.from_dict(
        {"study_id": "s", "title": "t", "factors": factors, "design_spec": design}
    )


def matrix(kind, factors, **options):
    rows = design_table(study(kind, factors, **options)).rows
    return np.array([list(row.factors.values()) for row in rows])


def facts(kind, factors, **options):
    return design_table(study(kind, factors, **options)).facts


def quadratic(points):
    """The columns of the full quadratic model."""
    count = points.shape[1]
    columns = [np.ones(len(points)), *points.T, *(points**2).T]
    columns += [points[:, a] * points[:, b] for a, b in itertools.combinations(range(count), 2)]
    return np.column_stack(columns)


def moments(points):
    """Sums of x_i^4, all alike, and of x_i^2 x_j^2."""
    squares = points**2
    products = squares.T @ squares
    fourth = np.diag(products)
    assert np.allclose(fourth, fourth[0])
    return fourth[0], products[~np.eye(len(products), dtype=bool)]


def as_set(points):
    return {tuple(row) for row in np.round(points, 9).tolist()}


# Central composite

alphas = st.one_of(
    st.sampled_from(["rotatable", "orthogonal", "spherical", "face"]), st.floats(0.3, 4)
)


@given(st.integers(2, 8), alphas, st.sampled_from(["inscribed", "circumscribed"]), st.booleans())
def test_central_composite_fits_the_quadratic_model(count, alpha, face, fraction):
    options = {"alpha": alpha, "face": face, "fraction": fraction}
    points = matrix("ccd", count, **options)
    reported = facts("ccd", count, **options)
    assert (
        reported["rows"] == reported["cube"] + reported["axial"] + reported["center"] == len(points)
    )
    assert reported["axial"] == 2 * count
    terms = quadratic(points)
    assert reported["rank"] == np.linalg.matrix_rank(terms) == terms.shape[1]
    # Main effects are balanced, and independent of all other terms.
    gram = terms.T @ terms
    mains = slice(1, count + 1)
    assert np.allclose(gram[mains], np.diag(np.diag(gram))[mains])
    extremes = np.column_stack([points.min(axis=0), points.max(axis=0)])
    assert list(reported["ranges"].values()) == extremes.tolist()
    canonical_json(reported)


@pytest.mark.parametrize("count", range(2, 12))
@pytest.mark.parametrize("face", ["inscribed", "circumscribed"])
def test_rotatable_predicts_equally_well_in_all_directions(count, face):
    # Box & Hunter 1957: [iiii] = 3 [iijj].
    fourth, products = moments(matrix("ccd", count, face=face))
    assert np.allclose(fourth, 3 * products)


@pytest.mark.parametrize("count", range(2, 8))
@pytest.mark.parametrize("center", [0, 1, 4])
@pytest.mark.parametrize("spec", [{}, {"center_points": 3}, {"center_points": 1, "replicates": 2}])
def test_orthogonal_estimates_quadratic_effects_independently(count, center, spec):
    points = matrix("ccd", count, alpha="orthogonal", center=center, spec=spec)
    squares = points**2 - (points**2).mean(axis=0)
    gram = squares.T @ squares
    assert np.allclose(gram, np.diag(np.diag(gram)))


@pytest.mark.parametrize("count", range(2, 8))
def test_spherical_has_corners_and_axial_points_equally_far_out(count):
    points = matrix("ccd", count, alpha="spherical", face="circumscribed", center=1)
    radii = np.linalg.norm(points, axis=1)
    assert np.allclose(radii[:-1], math.sqrt(count))
    assert radii[-1] == 0


@given(st.integers(2, 6), alphas)
def test_by_default_no_point_leaves_the_range_and_both_ends_are_met(count, alpha):
    points = matrix("ccd", count, alpha=alpha)
    assert (points.min(axis=0) == -1).all()
    assert (points.max(axis=0) == 1).all()


def test_circumscribed_has_corners_at_the_levels_and_axial_points_outside():
    points = matrix("ccd", 2, face="circumscribed")
    assert points.max() == facts("ccd", 2)["alpha"] == math.sqrt(2)
    assert facts("ccd", 2, face="circumscribed")["ranges"]["f0"] == [-math.sqrt(2), math.sqrt(2)]


@pytest.mark.parametrize("options", [{"face": "faced"}, {"alpha": "face"}, {"alpha": 1.0}])
def test_face_centered_has_three_levels(options):
    assert as_set(matrix("ccd", 3, **options).ravel()[:, None]) == {(-1,), (0,), (1,)}
    assert facts("ccd", 3, **options)["alpha"] == 1


@pytest.mark.parametrize("count", [2, 3, 4, 5])
@pytest.mark.parametrize(
    ("ours", "theirs"), [("circumscribed", "ccc"), ("inscribed", "cci"), ("faced", "ccf")]
)
def test_pydoe3_gives_the_same_points(count, ours, theirs):
    # Its "orthogonal" is another property, of blocks, and is not compared.
    points = matrix("ccd", count, face=ours, fraction=False, center=8)
    expected = pyDOE3.ccdesign(count, center=(4, 4), alpha="rotatable", face=theirs)
    assert len(points) == len(expected)
    assert as_set(points) == as_set(expected)


@pytest.mark.parametrize(("count", "cube"), [(4, 16), (5, 16), (6, 32), (8, 64), (10, 128)])
def test_the_cube_is_a_fraction_from_five_factors_on(count, cube):
    assert facts("ccd", count)["cube"] == cube
    assert facts("ccd", count, fraction=False)["cube"] == 2**count


def test_size_is_known_before_any_row_is_made(monkeypatch):
    def explode(*_):
        raise AssertionError("a row was made")

    monkeypatch.setattr(surface, "decode_point", explode)
    assert design_table(study("ccd", 15, fraction=False)).size == 2**15 + 30 + 4
    assert design_table(study("bbd", 16)).size == 396


# Box-Behnken


@pytest.mark.parametrize("count", BOX_BEHNKEN_SIZES)
def test_box_behnken_is_three_level_balanced_and_without_corners(count):
    points = matrix("bbd", count)
    assert len(points) == BOX_BEHNKEN_SIZES[count] == facts("bbd", count)["rows"]
    assert set(points.ravel().tolist()) == {-1.0, 0.0, 1.0}
    assert (np.abs(points).sum(axis=1) < count).all()
    assert len(set((points == 1).sum(axis=0))) == 1
    assert ((points == 1).sum(axis=0) == (points == -1).sum(axis=0)).all()
    reported = facts("bbd", count)
    assert reported["edges"] + reported["center"] == len(points)
    assert (points == 0).all(axis=1).sum() == reported["center"]


@pytest.mark.parametrize("count", BOX_BEHNKEN_SIZES)
def test_box_behnken_fits_the_quadratic_model(count):
    terms = quadratic(matrix("bbd", count))
    assert np.linalg.matrix_rank(terms) == terms.shape[1] == facts("bbd", count)["rank"]
    gram = terms.T @ terms
    # Main effects and interactions are independent of all other terms.
    for part in (slice(1, count + 1), slice(2 * count + 1, None)):
        assert (gram[part] == np.diag(np.diag(gram))[part]).all()


@pytest.mark.parametrize("count", BOX_BEHNKEN_SIZES)
def test_box_behnken_predicts_about_equally_well_in_all_directions(count):
    terms = quadratic(matrix("bbd", count))
    directions = np.random.default_rng(0).normal(size=(200, count))
    directions = np.vstack([directions, np.eye(count), np.ones(count)])
    at = quadratic(directions / np.linalg.norm(directions, axis=1)[:, None])
    variances = ((at @ np.linalg.inv(terms.T @ terms)) * at).sum(axis=1)
    # The designs of 4 and 7 factors are rotatable, the others nearly so.
    assert variances.max() / variances.min() < (1 + 1e-9 if count in (4, 7) else 1.35)


@pytest.mark.parametrize("count", [3, 4, 5])
def test_pydoe3_gives_the_same_box_behnken_designs_of_up_to_five_factors(count):
    theirs = pyDOE3.bbdesign(count)
    assert as_set(theirs) == as_set(matrix("bbd", count))
    assert len(theirs) == BOX_BEHNKEN_SIZES[count]


def test_pydoe3_takes_all_pairs_of_six_factors_where_the_published_design_takes_six_triples():
    assert len(pyDOE3.bbdesign(6, center=6)) == 66
    assert len(matrix("bbd", 6)) == 54


@pytest.mark.parametrize("count", [8, 13, 17])
def test_box_behnken_designs_that_were_not_published_are_refused(count):
    with pytest.raises(StudyError, match=f"not {count}; use central_composite"):
        matrix("bbd", count)


# What both share


def test_codes_become_the_factors_own_values():
    factors = [
        {"name": "rate", "levels": [0.1, 0.3]},
        {"name": "size", "levels": [30, 10, 20]},
        {"name": "count", "levels": [2, 8], "dtype": "int"},
    ]
    rows = [c.factor_assignments for c in build_design(study("bbd", factors, center=1))]
    assert {row["rate"] for row in rows} == {0.1, 0.2, 0.3}
    assert rows[0] == {"rate": 0.1, "size": 10.0, "count": 5}
    assert rows[-1] == {"rate": 0.2, "size": 20.0, "count": 5}
    assert {type(row["count"]) for row in rows} == {int}
    assert {type(row["size"]) for row in rows} == {float}


def test_inscribed_values_lie_between_the_levels():
    factors = [{"name": "a", "levels": [10, 30]}, {"name": "b", "levels": [0, 1]}]
    rows = [c.factor_assignments for c in build_design(study("ccd", factors))]
    assert rows[0] == pytest.approx({"a": 20 - 10 / math.sqrt(2), "b": 0.5 - 0.5 / math.sqrt(2)})
    assert [row["a"] for row in rows[4:8]] == [10.0, 30.0, 20.0, 20.0]


@pytest.mark.parametrize("kind", ["ccd", "bbd"])
def test_all_factors_without_a_numeric_range_are_named(kind):
    factors = [
        {"name": "model", "levels": ["small", "large"]},
        {"name": "flag", "levels": [False, True]},
        {"name": "one", "levels": [1]},
        {"name": "flat", "levels": [1, 1.0]},
        {"name": "steps", "levels": [1, 10, 100]},
        {"name": "good", "levels": [1, 2, 3]},
    ]
    with pytest.raises(StudyError) as caught:
        build_design(study(kind, factors))
    assert [mistake.path for mistake in caught.value.mistakes] == [
        ("factors", index) for index in (0, 1, 2, 3, 4)
    ]
    assert "'steps' has the level 10, where this design has no point" in str(caught.value)


@pytest.mark.parametrize(("kind", "least"), [("ccd", 2), ("bbd", 3)])
def test_too_few_factors_are_refused(kind, least):
    for count in range(least):
        with pytest.raises(StudyError, match=f"at least {least} factors; got {count}"):
            matrix(kind, count)


def test_whole_numbers_are_kept_or_the_design_is_refused():
    factors = [{"name": n, "levels": [1, 9], "dtype": "int"} for n in "ab"]
    points = build_design(study("ccd", factors, face="faced"))
    assert {v for c in points for v in c.factor_assignments.values()} == {1, 5, 9}
    assert all(type(v) is int for c in points for v in c.factor_assignments.values())
    with pytest.raises(StudyError) as caught:
        build_design(study("ccd", factors))
    assert len(caught.value.mistakes) == 2
    assert "'a' takes whole numbers, and the design has 1, 2.172, 5, 7.828, 9" in str(caught.value)
    with pytest.raises(StudyError, match=r"use options\.center"):
        build_design(study("ccd", factors, face="faced", spec={"center_points": 1}))


@pytest.mark.parametrize(
    ("kind", "count", "options"),
    [("ccd", 2, {}), ("ccd", 3, {"alpha": "spherical"}), ("ccd", 4, {}), ("bbd", 4, {})],
)
def test_a_sphere_without_a_center_can_not_fit_the_model_and_is_refused(kind, count, options):
    with pytest.raises(StudyError, match=re.escape("design_spec.options.center")):
        matrix(kind, count, center=0, **options)
    # A center point from elsewhere will do; and without one the rank would be short.
    points = matrix(kind, count, center=0, spec={"center_points": 1}, **options)
    terms = quadratic(points)
    assert np.linalg.matrix_rank(terms) == terms.shape[1]
    assert np.linalg.matrix_rank(terms[:-1]) == terms.shape[1] - 1


@pytest.mark.parametrize(
    ("kind", "options", "field"),
    [
        ("ccd", {"alpha": "round"}, "alpha"),
        ("ccd", {"alpha": 0}, "alpha"),
        ("ccd", {"alpha": 2, "face": "faced"}, "alpha"),
        ("ccd", {"center": -1}, "center"),
        ("bbd", {"center": -1}, "center"),
    ],
)
def test_options_that_make_no_sense_are_refused(kind, options, field):
    with pytest.raises(StudyError, match=f"design_spec.options.{field}: "):
        matrix(kind, 3, **options)


def test_a_fraction_of_too_many_factors_is_refused():
    with pytest.raises(StudyError, match="up to 15 factors; there are 16; find those that matter"):
        matrix("ccd", 16)
