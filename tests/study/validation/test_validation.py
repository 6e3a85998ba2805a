"""Checks of a study as a whole."""

import pytest

from fairtrial import Study, StudyError, build_design, validate_study
from fairtrial.study.design import count_runs
from fairtrial.study.tables.canonical import CONDITION_COLUMNS
from fairtrial.study.validation import (
    RESERVED_COLUMNS,
    find_unbound_names,
    find_uncorrected_claims,
    find_unused_settings,
)


def study(**fields):
    return Study.from_dict({"study_id": "s", "title": "t", **fields})


def x(*levels, name="x", **fields):
    return {"name": name, "levels": list(levels or (1, 2)), **fields}


H = {"hypothesis_id": "h", "label": "l", "statement": "s"}
PLAN = {"analysis_plan_id": "p", "hypothesis_ids": ["h"], "tests": ["t"]}
RULE = {"constraint_id": "c", "expression": "x == 1"}

WRONG = [
    ({"factors": [x(), x()]}, "factors[1].name: duplicate: 'x' is used twice"),
    ({"factors": [x()], "blocks": [x(), x()]}, "blocks[1].name: duplicate"),
    ({"factors": [x()], "outcomes": [{"name": "o"}, {"name": "o"}]}, "outcomes[1].name: duplicate"),
    ({"factors": [x()], "hypotheses": [H, H]}, "hypotheses[1].hypothesis_id: duplicate"),
    (
        {"factors": [x()], "hypotheses": [H], "analysis_plans": [PLAN, PLAN]},
        "analysis_plans[1].analysis_plan_id: duplicate",
    ),
    ({"factors": [x()], "constraints": [RULE, RULE]}, "constraints[1].constraint_id: duplicate"),
    ({"factors": [x()], "blocks": [x()]}, "'x' is also the name of a block"),
    ({"factors": [x(), x(name="X")]}, "'X' and 'x' would share a column"),
    ({"factors": [x(name="block_b")], "blocks": [x(name="b")]}, "would share a column"),
    (
        {"factors": [x()], "hypotheses": [{**H, "independent_vars": ["xx"]}]},
        "hypotheses[0].independent_vars[0]: hypothesis 'h' refers to an unknown factor 'xx'",
    ),
    (
        {
            "factors": [x()],
            "outcomes": [{"name": "speed"}],
            "hypotheses": [{**H, "dependent_vars": ["sped"]}],
        },
        "unknown outcome 'sped'; did you mean 'speed'?",
    ),
    (
        {"factors": [x()], "hypotheses": [{**H, "moderators": ["zz"]}]},
        "unknown factor or block 'zz'",
    ),
    (
        {
            "factors": [x("low", "high")],
            "hypotheses": [
                {**H, "independent_vars": ["x"], "contrast": {"left": "hihg", "right": "low"}}
            ],
        },
        "contrast.left: hypothesis 'h': 'hihg' is no level of x; did you mean 'high'?",
    ),
    ({"factors": [x()], "analysis_plans": [PLAN]}, "unknown hypothesis 'h'"),
    (
        {"factors": [x()], "hypotheses": [H], "analysis_plans": [{**PLAN, "outcomes": ["o"]}]},
        "analysis plan 'p' refers to an unknown outcome 'o'",
    ),
    (
        {"factors": [x()], "design_spec": {"kind": "full_factoral"}},
        "there is no design 'full_factoral'; did you mean 'full_factorial'?",
    ),
    (
        {"factors": [x()], "design_spec": {"options": {"resolution": "V"}}},
        "design_spec.options.resolution: unknown key",
    ),
    (
        {"factors": [x()], "constraints": [{"constraint_id": "c", "expression": "y == 1"}]},
        "constraints[0].expression: 'y' is not a factor or block",
    ),
    (
        {"factors": [x()], "constraints": [{"constraint_id": "c", "expression": "x ="}]},
        "constraints[0].expression: the expression `x =` is not an expression",
    ),
    (
        {"factors": [x()], "constraints": [{"constraint_id": "c", "callable_ref": "no_such:f"}]},
        "module 'no_such' can't be imported",
    ),
    (
        {"factors": [x()], "constraints": [{"constraint_id": "c", "expression": "x > 5"}]},
        "no condition is left to run: the constraints (c) exclude all 2",
    ),
    ({"factors": [x()], "agent_specs": ["a", "a"]}, "agent_specs[1]: 'a' is listed twice"),
    ({"factors": [x()], "problem_ids": ["a", "a"]}, "problem_ids[1]: 'a' is listed twice"),
    (
        {
            "factors": [x(1, 2, 3)],
            "agent_specs": ["a", "b"],
            "run_budget": {"max_runs": 11, "replicates": 2},
        },
        "run_budget.max_runs: the plan has 12 runs, max_runs allows 11",
    ),
    (
        {"factors": [x()], "run_budget": {"replicates": 10**9}},
        "run_budget.replicates: the plan has 2,000,000,000 runs; a study can tell 10,000,000 apart",
    ),
    ({"factors": [x(), x(name="y", tied_to="z")]}, "'z' is not a factor listed earlier"),
    ({"factors": [x(name="y", tied_to="x"), x()]}, "'x' is not a factor listed earlier"),
    ({"factors": [x(), x(1, 2, 3, name="y", tied_to="x")]}, "'y' has 3 levels, 'x' has 2"),
    (
        {"factors": [x(), x(name="y", tied_to="x"), x(name="z", tied_to="y")]},
        "'y' is tied itself; tie to 'x'",
    ),
    ({"factors": [x(when="y == 1"), x(name="y")]}, "'y' is not a factor listed earlier"),
    (
        {
            "factors": [x(0, 1), x(0, 1, name="y", when="x == 0")],
            "design_spec": {"kind": "lhs", "n_samples": 4},
        },
        "a latin_hypercube design can't follow `when`",
    ),
    (
        {"factors": [x(*range(1000), name=n) for n in "abc"]},
        "the design has 1,000,000,000 conditions, more than max_conditions (100,000)",
    ),
]


@pytest.mark.parametrize(("fields", "says"), WRONG)
def test_an_inconsistent_study_is_reported(fields, says):
    result = validate_study(study(**fields))
    assert any(says in text for text in result), result


def test_every_key_column_of_a_table_with_factors_is_reserved():
    assert {*CONDITION_COLUMNS, "run_id"} == RESERVED_COLUMNS


@pytest.mark.parametrize("name", ["run_id", "condition_id", "Study_ID", "assignment_meta_json"])
def test_a_factor_may_not_take_the_name_of_a_key_column(name):
    assert any("key column" in text for text in validate_study(study(factors=[x(name=name)])))


@pytest.mark.parametrize("name", ["order", "select", "agent_id", "problem_id", "größe", "a b"])
def test_other_names_are_fine_even_if_sql_knows_them(name):
    assert validate_study(study(factors=[x(name=name)])) == []


def test_all_mistakes_are_reported_together():
    result = validate_study(
        study(
            factors=[x(), x()],
            hypotheses=[{**H, "independent_vars": ["nope"], "dependent_vars": ["nada"]}],
            analysis_plans=[{**PLAN, "hypothesis_ids": ["h9"]}],
            design_spec={"kind": "nonsense"},
        )
    )
    assert len(result) == 5


def test_a_plan_that_does_not_fit_is_reported_with_what_else_is_wrong():
    result = validate_study(
        study(
            factors=[x()],
            hypotheses=[{**H, "dependent_vars": ["nada"]}],
            run_budget={"max_runs": 1},
        )
    )
    assert [text.partition(":")[0] for text in result] == [
        "hypotheses[0].dependent_vars[0]",
        "run_budget.max_runs",
    ]


def test_a_plan_is_not_judged_where_what_it_is_made_of_is_wrong():
    result = validate_study(study(factors=[x(), x()], run_budget={"max_runs": 1}))
    assert result == ["factors[1].name: duplicate: 'x' is used twice"]


def test_a_study_that_holds_together_has_no_mistakes():
    good = study(
        factors=[x("low", "high"), x(1, 2, name="y", tied_to="x"), x(name="z", when='x == "low"')],
        blocks=[x(name="site")],
        outcomes=[{"name": "o", "primary": True}],
        hypotheses=[
            {
                **H,
                "independent_vars": ["x", "agent_id"],
                "dependent_vars": ["o"],
                "moderators": ["site"],
                "contrast": {"left": "high", "right": "low"},
            }
        ],
        analysis_plans=[{**PLAN, "outcomes": ["o"]}],
        constraints=[{"constraint_id": "c", "expression": 'x == "low" or site == 1'}],
        run_budget={"max_runs": 5},
    )
    assert validate_study(good) == []
    assert count_runs(good, build_design(good)) == 5  # not one less than the budget holds


def test_a_contrast_of_agents_or_problems_names_no_levels_of_the_study():
    contrast = {"left": "small", "right": "large"}
    claims = [
        {**H, "hypothesis_id": name, "independent_vars": [name], "contrast": contrast}
        for name in ("agent_id", "problem_id")
    ]
    assert validate_study(study(factors=[x()], hypotheses=claims)) == []


def test_ten_to_the_ninth_conditions_are_refused_before_any_is_made():
    huge = study(factors=[x(*range(1000), name=n) for n in "abc"])
    with pytest.raises(StudyError, match="1,000,000,000 conditions"):
        build_design(huge)
    with pytest.raises(StudyError, match=r"1,000,000 conditions, more than max_conditions \(10\)"):
        build_design(
            study(
                factors=[x(*range(1000), name=n) for n in "ab"], design_spec={"max_conditions": 10}
            )
        )


def test_a_plan_of_more_conditions_than_can_be_written_down_is_refused_all_the_same():
    factors = [x(1, 2, 3, 4, name=f"f{index}") for index in range(7_500)]
    (mistake,) = validate_study(study(factors=factors))
    assert "some 10^4515 conditions" in mistake


@pytest.mark.parametrize(
    ("spec", "unused"),
    [
        ({"n_samples": 4, "center_points": 2}, ["n_samples", "center_points"]),
        ({"matrix_path": "m.csv"}, ["matrix_path"]),
        ({"kind": "lhs", "n_samples": 4, "center_points": 2}, []),
        (
            {"kind": "lhs", "n_samples": 4, "block_randomization_key": "x"},
            ["block_randomization_key"],
        ),
        (
            {"kind": "lhs", "n_samples": 4, "block_randomization_key": "x", "randomize": True},
            [],
        ),
        ({"kind": "frac2", "n_samples": 4}, ["n_samples"]),
        ({"kind": "d_optimal", "n_samples": 4}, []),
        ({"kind": "custom_matrix", "matrix_path": "m.csv"}, []),
        ({"kind": "somebody_elses", "n_samples": 4, "center_points": 1}, []),
    ],
)
def test_settings_that_a_design_has_no_use_for_are_doubted(spec, unused):
    warnings = find_unused_settings(study(factors=[x(0, 1)], design_spec=spec))
    assert [mistake.path for mistake in warnings] == [("design_spec", name) for name in unused]


# -- who is tried --


def contrast(left, right, *variables):
    return [{**H, "independent_vars": variables, "contrast": {"left": left, "right": right}}]


TWO = {"agents": {"careful": "m:careful", "hasty": "m:hasty"}}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (TWO, "'hastey' is no level of agent_id; did you mean 'hasty'?"),
        ({"agent_specs": ["careful", "hasty"]}, "did you mean 'hasty'?"),
        ({"factors": [x("careful", "hasty", name="agent_id")]}, "did you mean 'hasty'?"),
        ({"factors": [x("careful", "hasty", name="agent")]}, "did you mean 'hasty'?"),
    ],
)
def test_a_contrast_of_agents_names_agents_that_are_used(fields, message):
    (mistake,) = validate_study(
        study(**fields, hypotheses=contrast("careful", "hastey", "agent_id"))
    )
    assert mistake.startswith("hypotheses[0].contrast.right: hypothesis 'h': ")
    assert mistake.endswith(message)
    claims = contrast("careful", "hasty", "agent_id")
    assert validate_study(study(**fields, hypotheses=claims)) == []


def test_a_contrast_of_an_agent_that_is_bound_but_not_listed_says_so():
    fields = {**TWO, "agent_specs": ["careful", "hastey"]}
    (message,) = validate_study(
        study(**fields, hypotheses=contrast("careful", "hasty", "agent_id"))
    )
    assert message.endswith("it is bound, but not used: agent_specs names careful, hastey")


@pytest.mark.parametrize(
    "fields",
    [
        {"problem_ids": ["careful", "hasty"]},
        {"blocks": [x("careful", "hasty", name="problem_id")]},
        {"factors": [x("low", name="x")], "problems": {"careful": "m:a", "hasty": "m:b"}},
    ],
)
def test_a_contrast_may_be_of_problems_or_blocks_beside_factors(fields):
    fields = {"factors": [x("low")], **fields}
    claims = contrast("careful", "hasty", "x", "problem_id")
    assert validate_study(study(**fields, hypotheses=claims)) == []
    claims = contrast("careful", "hastey", "x", "problem_id")
    assert "no level of x, problem_id" in validate_study(study(**fields, hypotheses=claims))[0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({**TWO, "agent_specs": ["careful", "hastey"]}, "agent_specs[1]: nothing is bound to the"),
        ({**TWO, "factors": [x("hastey", name="agent")]}, "factors[0].levels[0]: nothing is"),
        (
            {"problems": {"hasty": "m:h"}, "problem_ids": ["hastey"]},
            "problem_ids[0]: nothing is bound to the problem 'hastey'",
        ),
    ],
)
def test_a_used_name_that_is_not_bound_while_others_are_gets_a_warning(fields, message):
    (warning,) = find_unbound_names(study(**fields))
    assert str(warning).startswith(message)
    assert warning.hint == "did you mean 'hasty'?"


@pytest.mark.parametrize(
    "fields",
    [
        TWO,
        {**TWO, "agent_specs": ["hasty"]},
        {"agent_specs": ["bound_by_python"]},
        {**TWO, "condition_runner": "m:run", "agent_specs": ["x"]},
    ],
)
def test_names_that_are_bound_or_left_to_python_give_no_warning(fields):
    assert list(find_unbound_names(study(**fields))) == []


@pytest.mark.parametrize(("side", "text"), [(True, "true"), (False, "false")])
def test_a_yes_where_text_is_expected_has_a_hint(side, text):
    with pytest.raises(StudyError) as caught:
        study(factors=[x(True, False)], hypotheses=contrast(side, "true", "x"))
    (mistake,) = caught.value.mistakes
    assert str(mistake).endswith(f'expected text, got {text}; put it in quotes: "{text}"')
    assert (
        validate_study(study(factors=[x(True, False)], hypotheses=contrast(text, "true", "x")))
        == []
    )


def plan_for(name, *hypotheses, policy=None):
    fields = {} if policy is None else {"multiple_comparison_policy": policy}
    return {**PLAN, "analysis_plan_id": name, "hypothesis_ids": list(hypotheses), **fields}


def uncorrected(*plans, outcomes=("speed",)):
    claims = [{**H, "hypothesis_id": name, "independent_vars": ["x"]} for name in "abc"]
    checked = study(
        factors=[x()],
        outcomes=[{"name": name, "primary": True} for name in outcomes],
        hypotheses=claims,
        analysis_plans=list(plans),
    )
    return [str(mistake) for mistake in find_uncorrected_claims(checked)]


def test_several_claims_without_a_correction_are_warned_of():
    assert uncorrected(plan_for("p", "a", "b", "c")) == []
    assert uncorrected(plan_for("p", "a", policy="none")) == []
    (warning,) = uncorrected(plan_for("p", "a", "b", "c", policy="none"))
    assert "3 claims are tested without a correction" in warning
    assert "up to 14%" in warning
    assert (
        len(uncorrected(plan_for("p", "a", policy="none"), plan_for("q", "b", policy="none"))) == 2
    )
    (warning,) = uncorrected(plan_for("p", "a", policy="none"), outcomes=("speed", "cost"))
    assert "2 claims" in warning


def test_plans_with_different_corrections_are_warned_of():
    (warning,) = uncorrected(plan_for("p", "a"), plan_for("q", "b", policy="bonferroni"))
    assert "different corrections (bonferroni, holm)" in warning
