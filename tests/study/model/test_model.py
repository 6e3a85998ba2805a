"""The records of a study: frozen, typed, checked, and all mistakes at once."""

import dataclasses
import pickle
from pathlib import Path

import pytest

from fairtrial import (
    AgentBinding,
    AnalysisPlan,
    Block,
    Condition,
    Constraint,
    Contrast,
    DesignKind,
    DesignSpec,
    Factor,
    Hypothesis,
    Level,
    OutcomeSpec,
    ProblemBinding,
    RunBudget,
    RunResult,
    RunSpec,
    RunStatus,
    SeedPolicy,
    Study,
    StudyError,
)
from fairtrial.core import PluginError, build_record, did_you_mean
from fairtrial.study import ConstraintSeverity, FactorKind, HypothesisKind

RECORDS = {
    Study: (
        "study_id title description authors rationale tags hypotheses factors blocks constraints "
        "design_spec outcomes analysis_plans run_budget seed_policy output_dir provenance_metadata "
        "notes problem_ids agent_specs agents problems condition_runner environment folder"
    ),
    Factor: "name description kind levels dtype default metadata tied_to when",
    Level: "name value label metadata when",
    Block: "name levels metadata",
    Constraint: "constraint_id description expression callable_ref severity",
    DesignSpec: (
        "kind replicates randomize counterbalance matrix_path n_samples center_points "
        "block_randomization_key options max_conditions"
    ),
    Hypothesis: (
        "hypothesis_id label statement kind independent_vars dependent_vars moderators mediators "
        "contrast direction minimum_effect_of_interest notes"
    ),
    OutcomeSpec: (
        "name source_table column aggregation derivation primary expected_type "
        "missing_data_policy description sd icc slope_sd over_replicates"
    ),
    AnalysisPlan: (
        "analysis_plan_id hypothesis_ids tests outcomes covariates random_effects filters "
        "multiple_comparison_policy plots export_tables notes generalize stopping"
    ),
    RunBudget: (
        "replicates max_runs parallelism fail_fast timeout_s retries max_cost_usd max_tokens "
        "max_runs_policy strict"
    ),
    SeedPolicy: "base_seed strategy per_run_offset",
    Condition: (
        "condition_id factor_assignments block_assignments metadata admissible constraint_messages"
    ),
    RunSpec: (
        "run_id study_id condition_id problem_id replicate seed agent_spec_ref problem_spec_ref "
        "execution_metadata"
    ),
    RunResult: (
        "run_id status outputs metrics evaluator_outputs cost latency trace_refs artifact_refs "
        "error_info provenance_info observations run_spec started_at ended_at failure_kind "
        "attempt executor host traceback stdout stderr evaluator_failed"
    ),
}


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_records_have_the_fields_that_the_public_api_promises(record):
    assert [field.name for field in dataclasses.fields(record)] == RECORDS[record].split()


def test_defaults_are_those_that_the_public_api_promises():
    budget = RunBudget()
    assert (budget.replicates, budget.max_runs, budget.parallelism) == (1, None, 1)
    assert (budget.fail_fast, budget.timeout_s, budget.retries) == (False, None, 2)
    assert (budget.max_cost_usd, budget.max_tokens) == (None, None)
    assert budget.max_runs_policy == "refuse"
    assert dataclasses.astuple(SeedPolicy()) == (0, "condition_replicate", 9973)
    spec = DesignSpec()
    assert (spec.kind, spec.replicates, spec.max_conditions) == ("full_factorial", 1, 100_000)
    assert (spec.randomize, spec.counterbalance, spec.center_points) == (False, False, 0)
    assert Factor("x", levels=(1,)).kind is FactorKind.MANIPULATED
    assert Constraint("c", expression="x == 1").severity is ConstraintSeverity.ERROR
    outcome = OutcomeSpec("o")
    assert (outcome.source_table, outcome.aggregation) == ("runs", "mean")
    assert (outcome.primary, outcome.sd) == (False, None)
    claim = Hypothesis("h", "l", "s")
    assert (claim.kind, claim.direction) == ("effect", "different")
    assert Study("s", "t") == Study("s", "t", "")


def test_records_are_frozen_and_can_be_replaced():
    factor = Factor("x", levels=(1, 2))
    with pytest.raises(dataclasses.FrozenInstanceError):
        factor.name = "y"
    assert dataclasses.replace(factor, name="y") == Factor("y", levels=(1, 2))


def test_a_callers_list_or_mapping_is_copied_not_shared():
    levels, metadata = [1, 2], {"a": [1]}
    factor = Factor("x", levels=levels, metadata=metadata)
    levels.append(3)
    metadata["a"].append(2)
    assert len(factor.levels) == 2
    assert factor.metadata == {"a": [1]}


def test_bare_values_stand_for_levels_and_texts_for_enums():
    factor = Factor("x", kind="nuisance", levels=("a", 2, 0.5, True, None))
    assert factor.kind is FactorKind.NUISANCE
    assert [level.name for level in factor.levels] == ["a", "2", "0.5", "true", "null"]
    assert factor.iter_values() == ("a", 2, 0.5, True, None)
    assert factor.levels[0].label == "a"


def test_aliases_name_the_same_design():
    assert DesignSpec(kind="lhs") == DesignSpec(kind=DesignKind.LATIN_HYPERCUBE)
    assert DesignSpec(kind="full").kind is DesignKind.FULL_FACTORIAL
    assert DesignSpec(kind="frac2").kind is DesignKind.FRACTIONAL_FACTORIAL_2LEVEL
    assert DesignSpec(kind="somebody_elses").kind == "somebody_elses"


def test_older_options_of_a_design_become_its_fields():
    spec = DesignSpec(kind="lhs", options={"n_samples": 7, "bounds": {"x": [0, 1]}})
    assert spec.n_samples == 7
    assert spec.options == {"bounds": {"x": [0, 1]}}
    both = DesignSpec(kind="lhs", n_samples=5, options={"n_samples": 7})
    assert (both.n_samples, both.options) == (5, {})  # the field itself counts


def test_an_older_option_that_says_nothing_leaves_the_field_as_it_is():
    options = {"center_points": None, "n_samples": None, "matrix_path": None}
    assert DesignSpec(kind="lhs", options=options) == DesignSpec(kind="lhs")


def test_outcomes_carry_the_studys_primary_and_secondary_ones():
    outcomes = (OutcomeSpec("a", primary=True), OutcomeSpec("b"), OutcomeSpec("c", column="z"))
    study = Study("s", "t", outcomes=outcomes)
    assert study.primary_outcomes == ("a",)
    assert study.secondary_outcomes == ("b", "c")
    assert [outcome.column for outcome in outcomes] == ["a", "b", "z"]


def test_results_go_to_a_folder_named_after_the_study():
    assert Study("s", "t").output_dir == Path("artifacts/s")
    assert Study("s", "t", output_dir="elsewhere").output_dir == Path("elsewhere")
    assert Study("../s/x", "t").output_dir == Path("artifacts/.._s_x")


BAD = [
    (lambda: Study(" ", "t"), "study_id: must not be empty"),
    (lambda: Study("s", ""), "title: must not be empty"),
    (lambda: Study(3, "t"), "study_id: expected text, got the number 3; put it in quotes"),
    (lambda: Factor("x"), "levels: must hold at least one level"),
    (lambda: Factor("x", levels="ab"), "levels: expected a list"),
    (lambda: Factor("x", levels=(1, 1)), "is the name of an earlier level"),
    (lambda: Factor("x", levels=(Level("a", 1), Level("b", 1))), "two conditions would get one id"),
    (lambda: Factor("x", levels=(float("nan"),)), "nan is not a finite number"),
    (lambda: Factor("x", levels=(float("inf"),)), "inf is not a finite number"),
    (lambda: Factor("x", levels=(object(),)), "expected a mapping"),
    (lambda: Level("a", object()), "a value of type object can't be written down"),
    (lambda: Factor("x", levels=(1,), kind="manipulate"), "did you mean 'manipulated'?"),
    (lambda: Factor("x", levels=(1,), dtype="number"), "expected one of str, int, float, bool"),
    (lambda: Block("b", ()), "levels: must hold at least one level"),
    (lambda: Block("b", (1, 1)), "is the same as level 1"),
    (lambda: Constraint("c"), "needs an `expression` or a `callable_ref`"),
    (lambda: Constraint("c", callable_ref="nothing"), "expected module:function"),
    (lambda: DesignSpec(replicates=0), "replicates: must be 1 or more, got 0"),
    (lambda: DesignSpec(n_samples=0), "n_samples: must be 1 or more"),
    (lambda: DesignSpec(center_points=-1), "center_points: must be 0 or more"),
    (lambda: DesignSpec(randomize="yes"), "randomize: expected true or false"),
    (lambda: RunBudget(replicates=True), "replicates: expected a whole number, got true"),
    (lambda: RunBudget(replicates="3"), "a number stands without quotes"),
    (lambda: RunBudget(timeout_s=0), "timeout_s: must be above 0"),
    (lambda: RunBudget(max_cost_usd=-1), "max_cost_usd: must be above 0"),
    (lambda: RunBudget(retries=-1), "retries: must be 0 or more"),
    (lambda: SeedPolicy(strategy="other"), "strategy: expected condition_replicate"),
    (lambda: Hypothesis("h", "", "s"), "label: must not be empty"),
    (lambda: Hypothesis("h", "l", "s", minimum_effect_of_interest=0), "must be above 0"),
    (
        lambda: Hypothesis("h", "l", "s", contrast=Contrast("c", "a", "")),
        "right: must not be empty",
    ),
    (lambda: OutcomeSpec("o", sd=0), "sd: must be above 0"),
    (lambda: AnalysisPlan("p", (), ("t",)), "hypothesis_ids: must name at least one"),
    (lambda: AnalysisPlan("p", ("h",), ()), "tests: must name at least one test"),
    (lambda: ProblemBinding(), "needs `use` (a plug-in) or a packet"),
    (lambda: ProblemBinding(use="x", brief="y"), "has both `use` and `brief`"),
    (lambda: AgentBinding(""), "use: must not be empty"),
    (lambda: Study("s", "t", condition_runner="nothing"), "expected module:callable"),
]


@pytest.mark.parametrize(("make", "says"), BAD)
def test_a_wrong_value_is_refused_with_what_was_expected(make, says):
    with pytest.raises(StudyError) as caught:
        make()
    assert says in str(caught.value)


def test_study_errors_are_value_errors_and_survive_pickling():
    with pytest.raises(ValueError) as caught:
        Study("", "")
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.mistakes == caught.value.mistakes
    assert str(again) == str(caught.value)
    plugin = pickle.loads(pickle.dumps(PluginError("no such design", source="study.yaml")))
    assert type(plugin) is PluginError
    assert str(plugin) == "study.yaml: no such design"


def test_a_hint_names_the_closest_or_all_that_is_known():
    assert did_you_mean("facters", ["notes", "factors"]) == "did you mean 'factors'?"
    assert did_you_mean("x", ["notes", "factors", "notes"]) == "known: notes, factors"
    assert did_you_mean("x", []) == "there are none"


def test_from_dict_reports_every_mistake_at_once():
    data = {
        "study_id": 7,
        "titel": "x",
        "factors": [{"name": "a", "levels": []}, {"levels": [1]}, 3],
        "hypotheses": [{"hypothesis_id": "h", "label": "l", "statement": "s", "kind": "efect"}],
        "run_budget": {"replicates": 0, "paralellism": 2},
        "agents": {"x": {"use": ""}},
    }
    with pytest.raises(StudyError) as caught:
        Study.from_dict(data)
    text = str(caught.value)
    for expected in [
        "study_id: expected text",
        "titel: unknown key; did you mean 'title'?",
        "'title' is missing",
        "factors[0].levels: must hold at least one level",
        "factors[1]: 'name' is missing",
        "factors[2]: expected a mapping (name, ...), got the number 3",
        "hypotheses[0].kind: expected one of effect",
        "run_budget.paralellism: unknown key; did you mean 'parallelism'?",
        "run_budget.replicates: must be 1 or more, got 0",
        "agents.x.use: must not be empty",
    ]:
        assert expected in text
    assert len(caught.value.mistakes) == 10


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (
            {"name": " ", "levels": [1, 1], "kimd": "blocked", "dtype": "number"},
            [
                "kimd: unknown key; did you mean 'kind'?",
                "name: must not be empty",
                "levels[1].name: '1' is the name of an earlier level too",
                "dtype: expected one of str, int, float, bool; got 'number'",
            ],
        ),
        ({"name": "x", "level": [1]}, ["level: unknown key; did you mean 'levels'?"]),
        ({"levels": [1]}, ["'name' is missing"]),
        ({"name": "x", "levels": [1, {"name": "x"}]}, ["levels[1]: 'value' is missing"]),
    ],
)
def test_what_follows_from_a_mistake_is_not_reported_and_the_rest_is(data, says):
    mistakes = []
    build_record(Factor, data, (), mistakes)
    assert [str(mistake) for mistake in mistakes] == says


def test_keys_that_are_the_same_as_text_are_refused_and_none_is_lost():
    with pytest.raises(
        StudyError, match=r"metadata\.1: two keys are the same once written as text"
    ):
        Factor("x", levels=(1,), metadata={1: "a", "1": "b"})
    assert Factor("x", levels=(1,), metadata={FactorKind.BLOCKED: 1}).metadata == {"blocked": 1}


def test_legacy_outcome_roles_are_carried_over_where_they_agree():
    data = {
        "schema_version": "0.1.0",
        "study_id": "s",
        "title": "t",
        "primary_outcomes": ["a"],
        "secondary_outcomes": ["b"],
        "outcomes": [{"name": "a"}, {"name": "b"}],
        "hypotheses": [
            {
                "hypothesis_id": "h",
                "label": "l",
                "statement": "s",
                "linked_analysis_plan_id": "p",
            }
        ],
        "analysis_plans": [{"analysis_plan_id": "p", "hypothesis_ids": ["h"], "tests": ["t"]}],
    }
    study = Study.from_dict(data)
    assert study.primary_outcomes == ("a",)
    assert study.hypotheses[0].kind is HypothesisKind.EFFECT


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"primary_outcomes": ["z"]}, "'z' is not among the outcomes"),
        ({"primary_outcomes": ["a"], "secondary_outcomes": ["a"]}, "primary and as secondary"),
        ({"outcomes": [{"name": "a", "primary": False}]}, "says otherwise"),
        ({"primary_outcomes": "a"}, "expected a list"),
        ({"schema_version": "3.0"}, "newer than this fairtrial reads"),
        (
            {
                "hypotheses": [
                    {
                        "hypothesis_id": "h",
                        "label": "l",
                        "statement": "s",
                        "linked_analysis_plan_id": "p",
                    }
                ]
            },
            "analysis plan 'p' does not test hypothesis 'h'",
        ),
    ],
)
def test_legacy_keys_that_contradict_the_study_are_mistakes(change, says):
    data = {
        "study_id": "s",
        "title": "t",
        "primary_outcomes": ["a"],
        "outcomes": [{"name": "a"}],
        **change,
    }
    with pytest.raises(StudyError) as caught:
        Study.from_dict(data)
    assert says in str(caught.value)


def test_a_broken_run_is_distinguished_from_a_failed_one():
    assert {status.value for status in RunStatus} == {
        "pending",
        "running",
        "success",
        "failed",
        "skipped",
        "broken",
    }


def test_max_conditions_may_be_raised_to_what_a_machine_can_hold():
    assert DesignSpec(max_conditions=10_000_000).max_conditions == 10_000_000
    with pytest.raises(StudyError, match="must be 10,000,000 or less"):
        DesignSpec(max_conditions=10_000_001)


def test_a_number_of_too_many_digits_is_refused_as_any_wrong_value():
    for make in (lambda n: RunBudget(replicates=n), lambda n: SeedPolicy(base_seed=n)):
        with pytest.raises(StudyError, match="expected a whole number, got a huge number"):
            make(-(10**5_000))
    assert SeedPolicy(base_seed=10**4_000).derive_seed("s", "c", 1) >= 0
