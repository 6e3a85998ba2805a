"""Ready-made studies: valid, with the same runs as in design-research-experiments."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairtrial.compat import ComparisonStudyConfig, RecipeStudyConfig, recipes
from fairtrial.compat.recipes.comparison_recipes import make_comparison_factor
from fairtrial.core import StudyError
from fairtrial.study import (
    AnalysisPlan,
    Block,
    Constraint,
    DesignKind,
    Factor,
    Hypothesis,
    Level,
    OutcomeSpec,
    RunBudget,
    SeedPolicy,
    Study,
    build_design,
    plan_runs,
    validate_study,
)

COMPARISONS = ("univariate_comparison", "bivariate_comparison", "strategy_comparison")
OTHERS = (
    "agent_architecture_comparison",
    "prompt_framing",
    "grammar_scaffold",
    "human_vs_agent_process",
    "diversity_and_exploration",
    "optimization_benchmark",
)
ALL = (*COMPARISONS, *OTHERS)


def make(recipe: str, **changes: Any) -> Study:
    """A recipe's study, with changes where there are any."""
    builder: Callable[..., Study] = getattr(recipes, f"build_{recipe}_study")
    config_class = ComparisonStudyConfig if recipe in COMPARISONS else RecipeStudyConfig
    return builder(config_class(**changes)) if changes else builder()


def factor(name: str, *values: Any) -> Factor:
    return Factor(name=name, levels=tuple(Level(name=str(value), value=value) for value in values))


def fingerprint(study: Study) -> tuple[int, str]:
    """How many runs a study plans, and a hash of their ids and seeds, whatever their order."""
    runs = sorted(f"{run.run_id} {run.seed}" for run in plan_runs(study, build_design(study)))
    return len(runs), hashlib.sha256("\n".join(runs).encode()).hexdigest()[:16]


PEOPLE = recipes.human_vs_agent_bundle()
GRAMMAR = recipes.grammar_problem_bundle()
IDEAS = recipes.ideation_bundle()
BUDGET = {
    "run_budget": RunBudget(replicates=4),
    "seed_policy": SeedPolicy(base_seed=5),
    "blocks": (Block(name="b", levels=(1, 2)),),
    "constraints": (Constraint(constraint_id="c", expression="b == 1"),),
}
TONE = factor("tone", "warm", "cold")
TEMPERATURE = factor("temp", 0.0, 0.5)

# Counts and hashes were taken from design-research-experiments 0.3.0 for the same calls.
FROZEN: list[tuple[str, dict[str, Any], int, str]] = [
    ("univariate_comparison", {}, 12, "e09ca29b1f866245"),
    ("bivariate_comparison", {}, 24, "0aa8cb146f0f3dbe"),
    ("strategy_comparison", {}, 12, "ff928b33520dd12f"),
    ("agent_architecture_comparison", {}, 216, "bdeb9ceefb8037fd"),
    ("prompt_framing", {}, 216, "2deacfeb11814acd"),
    ("grammar_scaffold", {}, 48, "4c27eb80a51939f1"),
    ("human_vs_agent_process", {}, 36, "d25679e74a46ac83"),
    ("diversity_and_exploration", {}, 108, "741f2b62ebdca20c"),
    ("optimization_benchmark", {}, 144, "efbbec45d4b21a02"),
    ("univariate_comparison", {"bundle": GRAMMAR}, 12, "ff54512239e49c92"),
    ("bivariate_comparison", {"bundle": PEOPLE}, 16, "77c0bf97ab1f7fae"),
    ("strategy_comparison", {"bundle": PEOPLE}, 12, "8794de99f9b6ea10"),
    ("prompt_framing", {"bundle": GRAMMAR}, 216, "d35d2388dc6e3a66"),
    ("optimization_benchmark", {"bundle": PEOPLE}, 144, "5706fbad3a89f314"),
    (
        "univariate_comparison",
        {"bundle": PEOPLE, "agent_specs": ("solo",)},
        8,
        "7a624986b2f85c0a",
    ),
    (
        "strategy_comparison",
        {"bundle": PEOPLE, "problem_ids": ("p9",)},
        6,
        "5ae8465cd9230b17",
    ),
    (
        "grammar_scaffold",
        {"bundle": PEOPLE, "agent_specs": ("solo",)},
        24,
        "e4cd7e8e54a8a4ef",
    ),
    (
        "human_vs_agent_process",
        {"bundle": PEOPLE, "problem_ids": ("p9",)},
        18,
        "b89b109ce9e7812c",
    ),
    ("univariate_comparison", {"problem_ids": (), "agent_specs": ()}, 12, "e09ca29b1f866245"),
    (
        "strategy_comparison",
        {"problem_ids": (), "agent_specs": (), "bundle": IDEAS},
        18,
        "4e171d02836f590b",
    ),
    ("diversity_and_exploration", {"problem_ids": (), "agent_specs": ()}, 18, "50723a38f2efefd6"),
    ("univariate_comparison", {"factors": (factor("depth", 1, 2, 3),)}, 18, "cb2020ab31c3c002"),
    ("strategy_comparison", {"factors": (factor("depth", 1, 2, 3),)}, 36, "58c2a8be17af9dda"),
    ("optimization_benchmark", {"factors": (factor("depth", 1, 2, 3),)}, 108, "c25ffc2a8f38fc8b"),
    (
        "bivariate_comparison",
        {"factors": (factor("agent", "x", "y"), factor("problem", "p", "q"))},
        8,
        "236275fe0e43c60c",
    ),
    (
        "agent_architecture_comparison",
        {"factors": (factor("agent", "x", "y"), factor("problem", "p", "q"))},
        16,
        "b4fb07fabc394c82",
    ),
    ("bivariate_comparison", {"study_id": "other"}, 24, "bdbc5f27e15b2832"),
    ("human_vs_agent_process", {"study_id": "other"}, 36, "429cc7c98f86fb13"),
    ("strategy_comparison", BUDGET, 24, "f46f6216cc98d3d2"),
    ("prompt_framing", BUDGET, 144, "351029622309d121"),
    ("univariate_comparison", {"comparison_factor": TONE}, 12, "e4fd98f0388200dd"),
    ("strategy_comparison", {"comparison_factor": TONE}, 24, "e21d7b04f5942a0f"),
    (
        "bivariate_comparison",
        {"comparison_factor": factor("agent_spec", "warm", "cold")},
        24,
        "f8371ec71bb30d6b",
    ),
    ("univariate_comparison", {"secondary_factor": TEMPERATURE}, 24, "ddebba1343fb62af"),
    ("bivariate_comparison", {"secondary_factor": TEMPERATURE}, 24, "caebb5d74802dec8"),
    (
        "strategy_comparison",
        {"secondary_factor": factor("problem_id", "a", "b")},
        8,
        "342a1e8bdcb19cbe",
    ),
    (
        "strategy_comparison",
        {"comparison_factor": TONE, "secondary_factor": TEMPERATURE, "bundle": PEOPLE},
        48,
        "4af739ba243ee4ea",
    ),
    (
        "univariate_comparison",
        {"factors": (factor("z", 1),), "comparison_factor": TONE},
        6,
        "67c1b7ec81a3bc1c",
    ),
]


@pytest.mark.parametrize(
    ("recipe", "changes", "count", "digest"),
    FROZEN,
    ids=[f"{recipe}-{'+'.join(changes) or 'as it is'}" for recipe, changes, _, _ in FROZEN],
)
def test_a_recipe_plans_the_runs_and_seeds_that_its_users_know(
    recipe: str, changes: dict[str, Any], count: int, digest: str
) -> None:
    assert fingerprint(make(recipe, **changes)) == (count, digest)


@pytest.mark.parametrize("recipe", ALL)
def test_a_recipe_is_a_study_without_mistakes(recipe: str) -> None:
    assert validate_study(make(recipe)) == []


@pytest.mark.parametrize("recipe", ALL)
def test_a_recipe_round_trips_as_plain_data(recipe: str) -> None:
    study = make(recipe)
    assert Study.from_dict(study.to_dict()) == study


def test_studies_of_recipes_differ_in_ids_and_texts() -> None:
    studies = [make(recipe) for recipe in ALL]
    for field in ("study_id", "title", "description", "rationale"):
        assert len({getattr(study, field) for study in studies}) == len(ALL)
    assert {study.authors for study in studies} == {()}


@pytest.mark.parametrize("recipe", ALL)
def test_the_output_folder_follows_the_study_id_unless_it_is_given(recipe: str) -> None:
    assert make(recipe).output_dir == Path("artifacts") / make(recipe).study_id
    assert make(recipe, study_id="other").output_dir == Path("artifacts/other")
    assert make(recipe, study_id="other", output_dir="out").output_dir == Path("out")


REPLACEMENTS: dict[str, Any] = {
    "study_id": "mine",
    "title": "Mine",
    "description": "",
    "authors": ("Ada",),
    "rationale": "Because.",
    "tags": (),
    "hypotheses": (Hypothesis(hypothesis_id="h9", label="l", statement="s"),),
    "factors": (factor("depth", 1, 2),),
    "blocks": (),
    "constraints": (Constraint(constraint_id="c", expression="1 == 1"),),
    "design_spec": {"kind": "full"},
    "outcomes": (OutcomeSpec(name="cost", primary=True),),
    "analysis_plans": (),
    "run_budget": RunBudget(replicates=9),
    "seed_policy": SeedPolicy(base_seed=99),
    "output_dir": Path("elsewhere"),
    "provenance_metadata": {"lab": "B"},
    "notes": "n",
    "problem_ids": ("p",),
    "agent_specs": ("a",),
}


def test_every_part_of_the_study_can_be_replaced() -> None:
    names = {field.name for field in dataclasses.fields(RecipeStudyConfig)} - {"bundle"}
    assert set(REPLACEMENTS) == names


@pytest.mark.parametrize("part", REPLACEMENTS)
@pytest.mark.parametrize("recipe", ["univariate_comparison", "optimization_benchmark"])
def test_what_is_given_replaces_that_part_and_leaves_the_study_sound(
    recipe: str, part: str
) -> None:
    study = make(recipe, **{part: REPLACEMENTS[part]})
    expected = getattr(RecipeStudyConfig(**{part: REPLACEMENTS[part]}), part)
    assert getattr(study, part) == expected
    assert validate_study(study) == []


def test_claim_and_plan_follow_what_replaces_the_factors_outcomes_blocks_and_hypotheses() -> None:
    study = make(
        "optimization_benchmark",
        factors=REPLACEMENTS["factors"],
        outcomes=REPLACEMENTS["outcomes"],
        blocks=(),
    )
    assert study.hypotheses[0].independent_vars == ("depth",)
    assert study.hypotheses[0].dependent_vars == ("cost",)
    assert study.analysis_plans[0].outcomes == ("cost",)
    assert study.analysis_plans[0].random_effects == ()
    own = make("optimization_benchmark", hypotheses=REPLACEMENTS["hypotheses"])
    assert own.analysis_plans[0].hypothesis_ids == ("h9",)
    assert own.analysis_plans[0].random_effects == ("problem_family",)
    assert make("optimization_benchmark", hypotheses=()).analysis_plans == ()


def test_a_plan_looks_at_all_outcomes_where_none_is_primary() -> None:
    outcomes = (OutcomeSpec(name="cost"), OutcomeSpec(name="time"))
    assert make("prompt_framing", outcomes=outcomes).analysis_plans[0].outcomes == ("cost", "time")


def test_plans_keep_the_tests_plots_and_tables_of_each_recipe() -> None:
    def kept(recipe: str) -> tuple[tuple[str, ...], ...]:
        plan: AnalysisPlan = make(recipe).analysis_plans[0]
        assert plan.multiple_comparison_policy == "holm"
        return plan.tests, plan.plots, plan.export_tables

    usual = (("difference_in_means", "regression"), ("condition_means",), ("summary_by_condition",))
    special = {
        "bivariate_comparison": (
            usual[0],
            ("condition_means", "interaction_means"),
            ("summary_by_condition", "summary_by_interaction"),
        ),
        "optimization_benchmark": (
            ("difference_in_means", "mixed_effects"),
            ("family_condition_means",),
            ("optimization_summary",),
        ),
    }
    for recipe in ALL:
        assert kept(recipe) == special.get(recipe, usual)


def test_the_design_of_each_recipe() -> None:
    kinds = {recipe: make(recipe).design_spec.kind for recipe in ALL}
    assert kinds == {
        **dict.fromkeys(COMPARISONS, DesignKind.CONSTRAINED_FACTORIAL),
        "agent_architecture_comparison": DesignKind.CONSTRAINED_FACTORIAL,
        "prompt_framing": DesignKind.RANDOMIZED_BLOCK,
        "grammar_scaffold": DesignKind.FULL_FACTORIAL,
        "human_vs_agent_process": DesignKind.REPEATED_MEASURES,
        "diversity_and_exploration": DesignKind.RANDOMIZED_BLOCK,
        "optimization_benchmark": DesignKind.RANDOMIZED_BLOCK,
    }
    for recipe in ALL:
        assert make(recipe).design_spec.randomize == (recipe != "human_vs_agent_process")


@pytest.mark.parametrize("recipe", COMPARISONS)
def test_one_condition_of_a_comparison_is_the_baseline_of_all_axes(recipe: str) -> None:
    conditions = build_design(make(recipe))
    marks = [condition.metadata["comparison_baseline"] for condition in conditions]
    assert [mark["is_baseline_condition"] for mark in marks].count(True) == 1
    for condition in conditions:
        axes = condition.metadata["comparison_axes"]
        assert {name: axis["value"] for name, axis in axes.items()} == condition.factor_assignments
        for axis in axes.values():
            assert axis["role"] == ("baseline" if axis["is_baseline"] else "treatment")


@pytest.mark.parametrize(
    ("agents", "baseline"),
    [
        (("clever", "Random-walk", "baseline"), "Random-walk"),
        (("clever", "my-baseline"), "my-baseline"),
        (("clever", "cleverer"), "clever"),
    ],
)
def test_the_agent_that_is_named_so_is_the_baseline_of_a_strategy_comparison(
    agents: tuple[str, ...], baseline: str
) -> None:
    bundle = dataclasses.replace(IDEAS, agent_specs=agents)
    levels = make("strategy_comparison", bundle=bundle).factors[0].levels
    assert [level.value for level in levels if level.metadata["is_baseline"]] == [baseline]


def test_level_names_stay_distinct_where_agents_differ_in_punctuation_only() -> None:
    assert [
        level.name for level in make_comparison_factor("a", "", ("x-1", "y 2"), "x-1").levels
    ] == [
        "x_1",
        "y_2",
    ]
    axis = make_comparison_factor("a", "", ("x-1", "x_1", "!"), "x-1")
    assert [level.name for level in axis.levels] == ["x-1", "x_1", "!"]


def test_a_strategy_comparison_without_agents_says_what_to_do() -> None:
    empty = dataclasses.replace(IDEAS, agent_specs=())
    with pytest.raises(StudyError, match="'ideation' has no agents to compare; add some"):
        make("strategy_comparison", bundle=empty)
    # Not needed where the user compares something else.
    assert make("strategy_comparison", bundle=empty, comparison_factor=TONE).factors == (TONE,)
    assert make("univariate_comparison", bundle=empty).agent_specs == ("default-agent",)


def test_an_agent_listed_twice_is_refused() -> None:  # two runs would share an id
    twice = dataclasses.replace(IDEAS, agent_specs=("a", "a"))
    with pytest.raises(StudyError, match="earlier level"):
        make("strategy_comparison", bundle=twice)


def test_a_factor_that_names_agents_or_problems_takes_the_place_of_the_list() -> None:
    study = make("strategy_comparison")
    assert study.agent_specs == ()
    assert study.problem_ids == recipes.optimization_bundle().problem_ids
    crossed = make("univariate_comparison", secondary_factor=factor("problem", "p", "q"))
    assert crossed.problem_ids == ()
    assert crossed.agent_specs == ("baseline-agent",)


def test_a_config_is_checked_when_it_is_made_and_takes_lists() -> None:
    config = RecipeStudyConfig(tags=["a"], authors=["Ada"])  # type: ignore[arg-type]
    assert config.tags == ("a",)
    with pytest.raises(StudyError, match="agent_specs: expected a list, got the text 'solo'"):
        RecipeStudyConfig(agent_specs="solo")  # type: ignore[arg-type]
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.study_id = "x"  # type: ignore[misc]


def test_each_recipe_has_a_config_of_its_own_name() -> None:
    names = [name for name in recipes.__all__ if name.endswith("Config")]
    assert len(names) == 11
    for name in names:
        is_comparison = name.startswith(("Univariate", "Bivariate", "Strategy", "Comparison"))
        wanted = ComparisonStudyConfig if is_comparison else RecipeStudyConfig
        assert getattr(recipes, name) is wanted


def test_the_bundles_hold_the_problems_and_agents_that_their_users_know() -> None:
    def contents(bundle: recipes.BenchmarkBundle) -> tuple[Any, ...]:
        return bundle.bundle_id, bundle.problem_ids, bundle.agent_specs, bundle.metadata["domain"]

    assert contents(recipes.ideation_bundle()) == (
        "ideation",
        ("ideation-brief-a", "ideation-brief-b", "ideation-brief-c"),
        ("baseline-agent", "creative-agent", "structured-agent"),
        "ideation",
    )
    assert contents(recipes.optimization_bundle()) == (
        "optimization",
        ("optimization-small", "optimization-medium", "optimization-large"),
        ("deterministic-baseline", "self-learning-agent"),
        "optimization",
    )
    assert contents(recipes.grammar_problem_bundle()) == (
        "grammar",
        ("grammar-unconstrained", "grammar-guided", "grammar-tool-guided"),
        ("direct-llm", "workflow-agent"),
        "grammar",
    )
    assert contents(recipes.human_vs_agent_bundle()) == (
        "human-vs-agent",
        ("teaming-session-a", "teaming-session-b"),
        ("human-only", "ai-assisted", "hybrid-team"),
        "teaming",
    )
