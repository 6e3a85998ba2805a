"""Two-level fractions: rows, resolution and aliases, computed from the rows."""

import itertools
import re

import numpy as np
import pyDOE3
import pytest
from hypothesis import given, strategies as st

from fairtrial import Study, StudyError, build_design
from fairtrial.core import canonical_json
from fairtrial.study.design import design_table, fractional
from fairtrial.study.design.fractional import NUMERALS

# fmt: off
NAMES = ["temp", "depth", "model", "prompt", "tools", "memory", "vote", "seed",
         "style", "topk", "pen", "stop", "beam", "hint", "lang", "rank"]
# fmt: on


def study(count, *, names=NAMES, spec=None, **options):
    factors = [{"name": name, "levels": [-1, 1]} for name in names[:count]]
    design = {"kind": "frac2", "options": options, **(spec or {})}
    return Study.from_dict(
        {"study_id": "s", "title": "t", "factors": factors, "design_spec": design}
    )


def matrix(count, **options):
    """The rows as they come out, -1 and 1."""
    rows = design_table(study(count, **options)).rows
    return np.array([list(row.factors.values()) for row in rows])


def facts(count, **options):
    return design_table(study(count, **options)).facts


def as_bits(rows):
    return [sum(1 << i for i, sign in enumerate(column) if sign < 0) for column in rows.T]


def shortest_word(rows):
    """The fewest columns whose product is constant; none in a full factorial."""
    columns, everything = as_bits(rows), 2 ** len(rows) - 1
    for size in range(1, len(columns) + 1):
        for chosen in itertools.combinations(columns, size):
            product = 0
            for column in chosen:
                product ^= column
            if product in (0, everything):
                return size
    return None


# What design-research-experiments 0.3.0 gives, "+" for a factor's second level.
OLDER_ROWS = {
    2: "-- -+ +- ++",
    3: "--- --+ -+- -++ +-- +-+ ++- +++",
    4: "---- --++ -+-+ -++- +--+ +-+- ++-- ++++",
    5: "----+ --++- -+-++ -++-- +--+- +-+-+ ++--- +++++",
    6: "----++ --++-- -+-++- -++--+ +--+-+ +-+-+- ++---- ++++++",
}


@pytest.mark.parametrize("count", OLDER_ROWS)
@pytest.mark.parametrize("backend", ["stdlib", "pydoe3", "pydoe"])
def test_two_to_six_factors_have_the_rows_that_older_studies_know(count, backend):
    rows = matrix(count, backend=backend)
    assert (
        " ".join("".join("-+"[int(value > 0)] for value in row) for row in rows)
        == OLDER_ROWS[count]
    )


def test_low_is_the_first_level_whatever_the_values():
    factors = [{"name": "a", "levels": [9, "x"]}, {"name": "b", "levels": [True, False]}]
    made = Study.from_dict(
        {"study_id": "s", "title": "t", "factors": factors, "design_spec": {"kind": "frac2"}}
    )
    rows = [tuple(c.factor_assignments.values()) for c in build_design(made)]
    assert rows == [(9, True), (9, False), ("x", True), ("x", False)]


RUNS = {
    "III": {2: 4, **dict.fromkeys(range(3, 8), 8), **dict.fromkeys(range(8, 16), 16)},
    "IV": {2: 4, 3: 8, 4: 8, **dict.fromkeys(range(5, 9), 16), **dict.fromkeys(range(9, 16), 32)},
    "V": {
        **dict(zip(range(2, 9), (4, 8, 16, 16, 32, 64, 64), strict=True)),
        **dict.fromkeys((9, 10, 11), 128),
        **dict.fromkeys((12, 13, 14, 15), 256),
    },
}
EVERY = [(count, resolution) for resolution in RUNS for count in RUNS[resolution]]


@pytest.mark.parametrize(("count", "resolution"), EVERY)
def test_resolution_as_computed_from_the_rows(count, resolution):
    rows = matrix(count, resolution=resolution)
    assert len(rows) == RUNS[resolution][count]
    shortest = shortest_word(rows)
    reported = facts(count, resolution=resolution)
    if shortest is None:
        assert (reported["resolution"], len(rows)) == ("full", 2**count)
    else:
        assert shortest >= NUMERALS[resolution]
        assert reported["resolution"] == {3: "III", 4: "IV", 5: "V", 6: "VI", 7: "VII"}[shortest]
        assert min(reported["word_lengths"]) == shortest


@pytest.mark.parametrize(("count", "resolution"), EVERY)
def test_columns_are_balanced_and_orthogonal_and_no_row_comes_twice(count, resolution):
    rows = matrix(count, resolution=resolution)
    assert not rows.sum(axis=0).any()
    assert (rows.T @ rows == len(rows) * np.eye(count)).all()
    assert len(np.unique(rows, axis=0)) == len(rows)


def largest_without_short_words(bits):
    """How many columns of so many bits can have no word of four letters or less: by trying all.

    Unit vectors may be taken as given: columns that don't span fit in fewer bits.
    """

    def extend(start, sums):
        """`sums[n]`: all exclusive ors of up to n columns."""
        best = 0
        for column in range(start, 2**bits):
            if column not in sums[3]:
                wider = [sums[0]] + [
                    sums[n] | {column ^ other for other in sums[n - 1]} for n in (1, 2, 3)
                ]
                best = max(best, 1 + extend(column + 1, wider))
        return best

    units = [1 << i for i in range(bits)]
    xors = {
        n: {
            int(np.bitwise_xor.reduce(c, initial=0)) if c else 0
            for r in range(n + 1)
            for c in itertools.combinations(units, r)
        }
        for n in range(4)
    }
    return bits + extend(0, [xors[n] for n in range(4)])


@pytest.mark.parametrize(("bits", "most"), [(4, 5), (5, 6), (6, 8), (7, 11)])
def test_no_smaller_fraction_of_resolution_v_exists(bits, most):
    assert largest_without_short_words(bits) == most
    assert RUNS["V"][most] == 2**bits
    assert RUNS["V"][most + 1] == 2 ** (bits + 1)


@pytest.mark.parametrize("count", range(4, 16))
def test_no_smaller_fraction_of_resolution_iii_and_iv_exists(count):
    # A constant and `count` orthogonal columns; and for IV the same again, mirrored.
    assert RUNS["III"][count] // 2 < count + 1
    assert RUNS["IV"][count] // 2 < 2 * count


def effects(count, order=2):
    return [
        members
        for size in range(1, order + 1)
        for members in itertools.combinations(range(count), size)
    ]


def computed_aliases(rows, order):
    """{effect: {aliased effect: sign}}, from the products of columns."""
    products = {
        members: tuple(rows[:, list(members)].prod(axis=1))
        for members in effects(len(rows.T), order)
    }
    by_column = {}
    for members, column in products.items():
        # A column and its opposite fall together; the sign is that of the first entry.
        canonical = tuple(value * column[0] for value in column)
        by_column.setdefault(canonical, []).append((members, column[0]))
    return {
        first: {second: sign * other for second, other in chain if second != first}
        for chain in by_column.values()
        for first, sign in chain
    }


def reported_aliases(lines, names):
    reported = {}
    for line in lines:
        chain = []
        for text in line.split(" = "):
            members = tuple(names.index(name) for name in text.removeprefix("-").split(" × "))
            chain.append((members, -1 if text.startswith("-") else 1))
        assert chain[0][1] == 1
        for first, sign in chain:
            reported[first] = {second: sign * other for second, other in chain if second != first}
    return reported


fractions = st.one_of(
    st.tuples(st.integers(2, 15), st.sampled_from(["III", "IV", "V"]), st.just(())),
    st.sampled_from(
        [
            (5, "III", ("D = -AB", "E = -AC")),
            (6, "III", ("A = -BC", "F = DE")),
            (7, "IV", ("E = -ABC", "F = BCD", "G = -ACD")),
            (8, "V", ("G = -ABCD", "H = ABEF")),
        ]
    ),
)


@given(fractions, st.booleans())
def test_aliases_are_those_of_the_rows(fraction, foldover):
    count, resolution, generators = fraction
    options = {"resolution": resolution, "generators": list(generators), "foldover": foldover}
    rows, reported = matrix(count, **options), facts(count, **options)
    reported_effects = [text for line in reported["aliases"] for text in line.split(" = ")]
    order = 3 if any(text.count("×") == 2 for text in reported_effects) else 2
    computed = {
        effect: others
        for effect, others in computed_aliases(rows, order).items()
        if others and (len(effect) <= 2 or any(len(other) <= 2 for other in others))
    }
    assert reported_aliases(reported["aliases"], NAMES) == computed


@given(fractions, st.booleans())
def test_words_are_what_is_constant_in_the_rows(fraction, foldover):
    count, resolution, generators = fraction
    options = {"resolution": resolution, "generators": list(generators), "foldover": foldover}
    rows, reported = matrix(count, **options), facts(count, **options)
    letters = list(reported["letters"])
    assert list(reported["letters"].values()) == NAMES[:count]
    for word in reported["defining_relation"]:
        sign = -1 if word.startswith("-") else 1
        product = rows[:, [letters.index(x) for x in word.removeprefix("-")]].prod(axis=1)
        assert (product == sign).all()
    listed = len(reported["defining_relation"]) + reported.get("words_left_out", 0)
    assert sum(reported["word_lengths"].values()) == listed
    distinct = len(np.unique(rows, axis=0))
    assert listed + 1 == 2**count // distinct
    assert reported["rows"] == len(rows)


def test_facts_of_a_well_known_fraction_are_plain_and_readable():
    reported = facts(5)
    assert reported == {
        "rows": 8,
        "generators": ["D = ABC", "E = AC"],
        "fraction": "2^(5-2)",
        "resolution": "III",
        "letters": {"A": "temp", "B": "depth", "C": "model", "D": "prompt", "E": "tools"},
        "defining_relation": ["ACE", "BDE", "ABCD"],
        "word_lengths": {3: 2, 4: 1},
        "aliases": [
            "temp = model × tools",
            "depth = prompt × tools",
            "model = temp × tools",
            "prompt = depth × tools",
            "tools = temp × model = depth × prompt",
            "temp × depth = model × prompt",
            "temp × prompt = depth × model",
        ],
    }
    canonical_json(reported)


def test_fifteen_factors_are_reported_in_fifteen_lines():
    assert len(facts(15)["aliases"]) == 15
    assert len(facts(15, resolution="IV")["aliases"]) == 15
    assert facts(15, resolution="V")["aliases"] == []


# Generators of one's own


def brute_force(count, words):
    """All combinations of levels that keep every word: [(members, sign)]."""
    return {
        row
        for row in itertools.product((-1, 1), repeat=count)
        if all(np.prod([row[i] for i in members]) == sign for members, sign in words)
    }


@st.composite
def own_generators(draw):
    count = draw(st.integers(3, 7))
    letters = "ABCDEFG"[:count]
    defined = draw(st.lists(st.sampled_from(letters), min_size=1, max_size=3, unique=True))
    texts, words = [], []
    for letter in defined:
        others = draw(
            st.lists(st.sampled_from(letters.replace(letter, "")), min_size=1, unique=True)
        )
        sign = draw(st.sampled_from([1, -1]))
        texts.append(f"{letter}={'-' if sign < 0 else ''}{''.join(others)}")
        words.append(([letters.index(x) for x in (letter, *others)], sign))
    return count, texts, words


@given(own_generators())
def test_own_generators_keep_exactly_the_rows_that_obey_them(generated):
    count, texts, words = generated
    expected = brute_force(count, words)
    try:
        rows = matrix(count, generators=texts)
    except StudyError:
        # Refused: they depend on each other, or a word is shorter than three letters.
        assert (
            len(expected) != 2 ** (count - len(texts))
            or shortest_word(np.array(sorted(expected))) < 3
        )
    else:
        assert len(rows) == len(expected)
        assert {tuple(row) for row in rows.tolist()} == expected


@pytest.mark.parametrize(
    "text",
    ["E = -ACD", "e=-acd", "tools = -temp * model*prompt", "tools = - temp × model × prompt"],
)
def test_generators_by_letters_or_names(text):
    reported = facts(5, generators=[text])
    assert reported["generators"] == ["E = -ACD"]
    assert reported["aliases"][0] == "temp = -model × prompt × tools"


def test_generators_that_go_round_in_a_circle_are_unwound():
    assert facts(5, generators=["A = BC", "B = ADE"])["generators"] == ["A = BC", "E = CD"]


def test_single_letter_names_are_names():
    rows = matrix(4, names=["a", "b", "c", "d"], generators=["d = abc"])
    assert (rows[:, 3] == rows[:, :3].prod(axis=1)).all()


def test_every_mistake_in_generators_is_reported_at_once():
    texts = ["E = ABX", "no", "D = ABC", "prompt = AC", "F = AAB", "F = FA", "tols = temp*depth"]
    with pytest.raises(StudyError) as caught:
        facts(6, generators=texts)
    result = {str(mistake) for mistake in caught.value.mistakes}
    path = "design_spec.options.generators"
    expected = {
        f"{path}[0]: `E = ABX` has 'ABX', which is no factor",
        f"{path}[1]: `no` is no generator",
        f"{path}[3]: `prompt = AC` defines 'prompt' once more",
        f"{path}[4]: `F = AAB` names 'temp' twice",
        f"{path}[5]: `F = FA` defines 'memory' by itself",
        f"{path}[6]: `tols = temp*depth` has 'tols', which is no factor",
    }
    assert len(result) == len(expected)
    for start in expected:
        assert any(text.startswith(start) for text in result), start
    assert any("did you mean 'tools'?" in text for text in result)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["D = ABC", "C = ABD"], "[1]: `C = ABD` follows from the others"),
        (["D = ABC", "C = -ABD"], "[1]: `C = -ABD` contradicts the others"),
        (["D = AC", "C = ABD"], "give resolution I, not III: depth is the same in every row"),
        (["D = A"], "give resolution II, not III: temp × prompt is the same in every row"),
    ],
)
def test_generators_that_do_not_make_a_fraction_are_refused(texts, message):
    with pytest.raises(StudyError, match=re.escape(message)):
        facts(4, generators=texts)


def test_own_generators_must_give_the_resolution_that_is_asked_for():
    assert facts(6, generators=["E=ABC", "F=BCD"], resolution="IV")["resolution"] == "IV"
    with pytest.raises(StudyError, match="give resolution IV, not V"):
        facts(6, generators=["E=ABC", "F=BCD"], resolution="V")


def test_a_name_that_is_another_factors_letter_is_ambiguous():
    with pytest.raises(StudyError, match=r"'A', which may mean 'x' .* and 'A'"):
        facts(4, names=["x", "A", "y", "z"], generators=["D = ABC"])


# Foldover


@given(st.integers(4, 15), st.sampled_from(["III", "IV", "V"]))
def test_foldover_clears_main_effects_of_two_factor_interactions(count, resolution):
    rows = matrix(count, resolution=resolution, foldover=True)
    half = len(rows) // 2
    assert (rows[half:] == -rows[:half]).all()
    pairs = np.array([rows[:, a] * rows[:, b] for a, b in itertools.combinations(range(count), 2)])
    assert not (pairs @ rows).any()


def test_foldover_keeps_the_conditions_that_were_there():
    before = build_design(study(7))
    after = build_design(study(7, foldover=True))
    assert [c.condition_id for c in after[:8]] == [c.condition_id for c in before]
    assert [c.metadata["row_index"] for c in after] == list(range(16))


def test_foldover_of_a_fraction_that_is_its_own_mirror_image_says_so():
    assert "repeats" in facts(4, foldover=True)["note"]
    assert facts(4, foldover=True)["fraction"] == "2^(4-1)"
    assert "note" not in facts(5, foldover=True)


# Against another library


@pytest.mark.parametrize(("count", "resolution"), [(7, "III"), (8, "IV"), (11, "IV"), (11, "V")])
def test_pydoe3_gives_the_same_rows_for_the_same_generators(count, resolution):
    words = [
        text.split(" = ")[1].lower() for text in facts(count, resolution=resolution)["generators"]
    ]
    # Its letters are those of the base factors alone, which come first.
    base = "abcdefgh"[: count - len(words)]
    theirs = pyDOE3.fracfact(" ".join([*base, *words]))
    ours = matrix(count, resolution=resolution)
    assert {tuple(row) for row in theirs.tolist()} == {tuple(row) for row in ours.tolist()}


def test_resolution_v_of_seven_factors_where_pydoe3_gives_less():
    assert shortest_word(np.array(pyDOE3.fracfact_by_res(7, 5))) == 4
    assert shortest_word(matrix(7, resolution="V")) == 7


# What goes around the rows


def test_a_tied_factor_follows():
    made = Study.from_dict(
        {
            "study_id": "s",
            "title": "t",
            "factors": [
                *({"name": name, "levels": [0, 1]} for name in "abcd"),
                {"name": "shadow", "levels": ["off", "on"], "tied_to": "b"},
            ],
            "design_spec": {"kind": "frac2"},
        }
    )
    conditions = build_design(made)
    assert len(conditions) == 8
    for condition in conditions:
        row = condition.factor_assignments
        assert row["shadow"] == ("on" if row["b"] else "off")


def test_size_is_known_before_any_row_is_made(monkeypatch):
    def explode(*_):
        raise AssertionError("a row was made")

    monkeypatch.setattr(fractional, "decode", explode)
    table = design_table(study(16, generators=["Q = ABCDEFGH"]))
    assert table.size == 2**15
    with pytest.raises(AssertionError):
        next(iter(table.rows))


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_factors_are_refused(count):
    with pytest.raises(StudyError, match="at least two factors"):
        matrix(count)


@pytest.mark.parametrize(
    ("count", "options", "message"),
    [
        (16, {}, "up to 15 factors; there are 16; use plackett_burman"),
        (4, {"resolution": "VI"}, "design_spec.options.resolution: expected 'III' or 'IV' or 'V'"),
        (4, {"backend": "R"}, "design_spec.options.backend"),
    ],
)
def test_what_there_is_no_fraction_for_is_refused(count, options, message):
    with pytest.raises(StudyError, match=re.escape(message)):
        matrix(count, **options)


def test_own_generators_of_more_factors_than_letters_are_refused():
    names = [f"f{i}" for i in range(17)]
    with pytest.raises(StudyError, match="up to 16 factors; there are 17"):
        facts(17, names=names, generators=["f16 = f0*f1*f2"])


def test_factors_with_other_than_two_levels_are_all_named():
    factors = [{"name": n, "levels": lv} for n, lv in (("a", [1, 2, 3]), ("b", [1, 2]), ("c", [1]))]
    made = Study.from_dict(
        {"study_id": "s", "title": "t", "factors": factors, "design_spec": {"kind": "frac2"}}
    )
    with pytest.raises(StudyError) as caught:
        build_design(made)
    assert [mistake.path for mistake in caught.value.mistakes] == [
        ("factors", 0, "levels"),
        ("factors", 2, "levels"),
    ]


def of_levels(factors, **spec):
    return Study.from_dict(
        {
            "study_id": "s",
            "title": "t",
            "factors": factors,
            "design_spec": {"kind": "frac2", **spec},
        }
    )


def test_levels_may_be_lists_and_mappings():
    levels = [{"name": "p", "value": [1, 2]}, {"name": "q", "value": {"k": [3]}}]
    factors = [{"name": "a", "levels": levels}, {"name": "b", "levels": [1, 2]}]
    *_, center = build_design(of_levels(factors, center_points=1))
    assert center.factor_assignments == {"a": [1, 2], "b": 1.5}
    shuffled = build_design(of_levels(factors, randomize=True, block_randomization_key="a"))
    assert [c.factor_assignments["a"] for c in shuffled] == [[1, 2]] * 2 + [{"k": [3]}] * 2


def test_ties_distinguish_one_from_true():
    levels = [{"name": "number", "value": 1}, {"name": "truth", "value": True}]
    factors = [
        {"name": "a", "levels": levels},
        {"name": "t", "levels": ["x", "y"], "tied_to": "a"},
        {"name": "b", "levels": [1, 2]},
    ]
    rows = [list(c.factor_assignments.values()) for c in build_design(of_levels(factors))]
    assert canonical_json(rows) == '[[1,"x",1],[1,"x",2],[true,"y",1],[true,"y",2]]'
