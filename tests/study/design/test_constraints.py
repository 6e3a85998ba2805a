"""Constraint expressions: their meaning, and what is refused."""

import colorsys  # noqa: F401, so that one of that name is loaded
import contextlib
import sys

import pytest
from hypothesis import given, strategies as st

from fairtrial import Constraint, Factor, Level, Study, StudyError, build_design
from fairtrial.core.plugins import load_reference
from fairtrial.study.design.constraints import ConstraintChecker
from fairtrial.study.design.expressions import Expression


def holds(text, factors=None, blocks=None):
    return Expression(text).holds(factors or {}, blocks or {})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x == 1", True),
        ("x != 1", False),
        ("0 < x <= 1 < y", True),
        ("0 < x < 1", False),
        ('factors["x"] == 1 and factors.y == 2', True),
        ('blocks["site"] == "a"', True),
        ('site in ["a", "b"]', True),
        ("x not in (1, 2)", False),
        ("not (x == 1 and y == 3)", True),
        ("x + y * 2 - 1 == 4", True),
        ("y / 2 == 1 and 7 // 2 == 3 and 7 % 4 == 3 and -x == -1", True),
        ('len(name) == 4 and int("3") == 3 and str(x) == "1"', True),
        ("float(x) == 1.0 and bool(y)", True),
        ("nothing is None", True),
        ("x is not None", True),
        ('name + "!" == "abcd!"', True),
        ("options.depth == 3", True),
        ('options["depth"] > 2', True),
        ("table[1] == 20", True),
        ("  x == 1  ", True),
    ],
)
def test_an_expression_means_what_python_means(text, expected):
    factors = {
        "x": 1,
        "y": 2,
        "name": "abcd",
        "nothing": None,
        "options": {"depth": 3},
        "table": [10, 20],
    }
    assert holds(text, factors, {"site": "a"}) is expected


def test_and_and_or_stop_at_the_first_part_that_decides():
    assert holds("x == 0 or 1 / x > 0", {"x": 0}) is True
    assert holds("x != 0 and 1 / x > 0", {"x": 0}) is False


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('true')",
        "x.__class__",
        "().__class__.__bases__",
        "[c for c in (1, 2)]",
        "lambda: 1",
        "x if x else y",
        "f'{x}'",
        "(y := 1) == 1",
        "open('/etc/passwd') == 1",
        "len.__self__",
        "getattr(x, 'real')",
        "str(x, 'utf-8') == ''",
        "len(*x) == 1",
        "int('7', base=8) == 7",
        "9 ** 9 ** 9 > 1",
        "1 << 999999 > 1",
        "b'x' == x",
        "... == x",
        "{1: 2} == x",
        "x is y",
        "await x",
        "x; y",
        "x = 1",
        "",
        "(" * 300 + "1" + ")" * 300 + " == 1",
        "-" * 1_900 + "1 == 1",
        "x == 1 " + "or x == 1 " * 400,
        "9" * 1_900 + "9" * 3_000 + " > 1",
    ],
)
def test_anything_outside_the_language_is_refused_when_it_is_read(text):
    with pytest.raises(StudyError) as caught:
        Expression(text)
    assert "the expression `" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        '"x" * 1000000000 == ""',
        "[0] * 1000000000 == []",
        '"%1000000000d" % 1 == ""',
        'name["real"] == 1',
        "name.real == 1",
        "name < 3",
        "1 / zero == 1",
        'factors["nope"] == 1',
        'factors["__class__"] == 1',
        "unknown == 1",
        "table[7] == 1",
        "1",
        '"yes"',
    ],
)
def test_what_goes_wrong_while_evaluating_is_one_clear_error(text):
    expression = Expression(text)
    with pytest.raises(StudyError) as caught:
        expression.holds({"name": "abc", "zero": 0, "table": [1]}, {})
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("text", ['name["real"] == 1', "name.real == 1", "zero.real == 0"])
def test_only_mappings_have_names_to_look_up(text):
    with pytest.raises(StudyError, match=r"looks up 'real' in .*, which has no names"):
        Expression(text).holds({"name": "abc", "zero": 0}, {})


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_and_never_anything_else(text):
    with contextlib.suppress(StudyError):
        assert Expression(text).holds({"x": 1}, {}) in (True, False)


def test_names_lists_what_an_expression_depends_on():
    text = 'x == 1 or factors["a-b"] > factors.c or blocks.site == "s"'
    assert Expression(text).names == {"x", "a-b", "c", "site"}


def test_severity_decides_whether_a_broken_rule_stops_a_condition():
    rules = [
        Constraint("stop", "must be small", expression="x < 2"),
        Constraint("tell", "should be even", expression="x % 2 == 0", severity="warning"),
    ]
    judge = ConstraintChecker(rules)
    assert judge({"x": 0}, {}) == (True, ())
    assert judge({"x": 1}, {}) == (True, ("tell: should be even",))
    assert judge({"x": 3}, {}) == (False, ("stop: must be small", "tell: should be even"))


def test_a_misspelled_severity_is_refused():
    with pytest.raises(StudyError, match="warning"):
        Constraint("c", "", expression="x == 1", severity="warnin")


def test_a_rule_may_be_a_function_of_the_studys_folder(tmp_path):
    (tmp_path / "my_rules_a.py").write_text(
        "def keep(factors, blocks):\n    return factors['x'] != 2\n"
    )
    study = Study(
        "s",
        "t",
        factors=(Factor("x", levels=(1, 2, 3)),),
        constraints=(Constraint("c", "not two", callable_ref="my_rules_a:keep"),),
        folder=tmp_path,
    )
    admissible = {c.factor_assignments["x"]: c.admissible for c in build_design(study)}
    assert admissible == {1: True, 2: False, 3: True}


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def keep(f, b):\n    raise KeyError('boom')\n", "raised KeyError"),
        ("raise RuntimeError('no import')\n", "can't be imported"),
        ("raise SystemExit(0)\n", "can't be imported.*SystemExit"),
        ("def keep(f, b):\n    raise SystemExit(0)\n", "raised SystemExit"),
        ("other = 1\n", "has no 'keep'"),
        ("keep = 3\n", "is not callable"),
    ],
)
def test_a_rule_function_that_fails_is_reported_with_its_constraint(
    tmp_path, source, says, request
):
    module = f"my_rules_{abs(hash(request.node.name)) % 10**8}"
    (tmp_path / f"{module}.py").write_text(source)
    rule = Constraint("c", "", callable_ref=f"{module}:keep")
    study = Study(
        "s", "t", factors=(Factor("x", levels=(1,)),), constraints=(rule,), folder=tmp_path
    )
    with pytest.raises(StudyError, match=says) as caught:
        build_design(study)
    assert "constraints[0].callable_ref" in str(caught.value)


def test_two_studies_may_each_have_a_module_of_the_same_name(tmp_path):
    kept = []
    for folder, keeps in (("one", 1), ("two", 2), ("one", 1)):
        (tmp_path / folder / "my_rules_b").mkdir(parents=True, exist_ok=True)
        (tmp_path / folder / "my_rules_b" / "__init__.py").write_text("from . import inner\n")
        (tmp_path / folder / "my_rules_b" / "inner.py").write_text(
            f"def keep(factors, blocks):\n    return factors['x'] == {keeps}\n"
        )
        study = Study(
            "s",
            "t",
            factors=(Factor("x", levels=(1, 2)),),
            constraints=(Constraint("c", "", callable_ref="my_rules_b:inner.keep"),),
            folder=tmp_path / folder,
        )
        kept.append([c.factor_assignments["x"] for c in build_design(study) if c.admissible])
    assert kept == [[1], [2], [1]]


def test_a_module_next_to_the_study_comes_before_one_that_is_loaded(tmp_path):
    (tmp_path / "colorsys.py").write_text("def keep(factors, blocks):\n    return False\n")
    check = load_reference("colorsys:keep", tmp_path)
    assert check({}, {}) is False
    assert hasattr(sys.modules["colorsys"], "hls_to_rgb")  # everybody else's stays


def test_levels_of_different_types_compare_by_python_rules():
    study = Study(
        "s",
        "t",
        factors=(Factor("x", levels=(Level("one", 1), Level("yes", True), Level("text", "1"))),),
        constraints=(Constraint("c", "", expression='x == "1"'),),
    )
    assert [c.admissible for c in build_design(study)] == [False, False, True]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (" * ".join(["large"] * 200) + " > 0", "a number gets too large"),
        (" + ".join(["long"] * 200) + " == ''", "`+` may join 100,000 characters or items"),
        (f"len({' + '.join(['many'] * 200)}) > 0", "`+` may join 100,000 characters or items"),
        (f"len(str([{', '.join(['many'] * 300)}])) > 0", "str() takes a text or a number"),
    ],
)
def test_levels_that_are_large_themselves_can_not_make_an_expression_run_away(text, says):
    factors = {"large": 10**4_000, "long": "x" * 1_000_000, "many": list(range(100_000))}
    with pytest.raises(StudyError) as caught:
        Expression(text).holds(factors, {})
    assert says in str(caught.value)
    assert len(str(caught.value)) < 500


def test_names_are_taken_as_they_stand_though_python_reads_some_letters_as_others():
    expression = Expression("\u00b5 == 1 and factors.\u00b5 == 1 and \ufb01 == 2")
    assert expression.names == {"\u00b5", "\ufb01"}
    assert expression.holds({"\u00b5": 1, "\ufb01": 2}, {})


def test_a_factor_named_factors_hides_no_other():
    assert holds('factors["x"] == 1 and factors["factors"] == 2', {"x": 1, "factors": 2})


@pytest.mark.parametrize("returned", ["None", "'no'", "keep"])
def test_a_rule_function_that_returns_neither_true_nor_false_is_refused(tmp_path, returned):
    module = f"my_rules_returns_{len(returned)}"
    (tmp_path / f"{module}.py").write_text(f"def keep(f, b):\n    return {returned}\n")
    judge = ConstraintChecker([Constraint("c", "", callable_ref=f"{module}:keep")], tmp_path)
    with pytest.raises(StudyError, match="must return true or false"):
        judge({"x": 1}, {})


def test_a_rule_function_can_not_change_the_levels(tmp_path):
    (tmp_path / "my_rules_meddle.py").write_text(
        "def keep(factors, blocks):\n    factors['x'].append(1)\n    return True\n"
    )
    rule = Constraint("c", "", callable_ref="my_rules_meddle:keep")
    factor = Factor("x", levels=(Level("l", [0]),))
    study = Study("s", "t", factors=(factor,), constraints=(rule,), folder=tmp_path)
    assert build_design(study)[0].factor_assignments == {"x": [0]}


def test_a_rule_with_two_halves_says_which_of_them_failed(tmp_path):
    (tmp_path / "my_rules_half.py").write_text("def keep(f, b):\n    return f['x'] / 0\n")
    rules = [
        Constraint("c", "", expression="x > 0", callable_ref="my_rules_half:keep"),
        Constraint("d", "", expression="x / 0 > 0", callable_ref="my_rules_half:keep"),
    ]
    for rule, field in zip(rules, ("callable_ref", "expression"), strict=True):
        with pytest.raises(StudyError) as caught:
            ConstraintChecker([rule], tmp_path)({"x": 1}, {})
        assert [mistake.path for mistake in caught.value.mistakes] == [("constraints", 0, field)]


def test_what_a_rule_function_prints_stays_out_of_our_output(tmp_path, capsys):
    (tmp_path / "my_rules_loud.py").write_text(
        "print('imported')\ndef keep(f, b):\n    print('called')\n    return True\n"
    )
    ConstraintChecker([Constraint("c", "", callable_ref="my_rules_loud:keep")], tmp_path)(
        {"x": 1}, {}
    )
    assert capsys.readouterr() == ("", "imported\ncalled\n")


def test_an_async_rule_function_is_refused_without_further_noise(tmp_path):
    (tmp_path / "my_rules_async.py").write_text("async def keep(f, b):\n    return True\n")
    judge = ConstraintChecker([Constraint("c", "", callable_ref="my_rules_async:keep")], tmp_path)
    with pytest.raises(StudyError, match="must return true or false, gave a coroutine"):
        judge({"x": 1}, {})
