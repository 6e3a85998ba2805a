"""The migration guide is complete, and its statements and examples are correct."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import importlib
import io
import re
import shutil
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import click
import pytest

import fairtrial
import fairtrial.compat
from fairtrial.cli.main import cli
from fairtrial.core import StudyError
from fairtrial.study import (
    Block,
    Constraint,
    DesignSpec,
    Factor,
    Level,
    RunBudget,
    SeedPolicy,
    Study,
)

GUIDE = (Path(__file__).parents[2] / "docs" / "migrating.md").read_text("utf-8")

# All that design-research-experiments 0.3.0 exports.
EXPORTED = """
    AgentArchitectureComparisonConfig AnalysisPlan BenchmarkBundle BivariateComparisonConfig Block
    ComparisonStudyConfig Condition ConditionRunner Constraint DesignKind DesignSpec
    DiversityAndExplorationConfig Factor FactorKind GrammarScaffoldConfig
    HumanVsAgentProcessConfig Hypothesis Level OptimizationBenchmarkConfig OutcomeSpec
    ProblemPacket PromptFramingConfig RecipeStudyConfig RunBudget RunOutput RunResult RunSpec
    SeedPolicy StrategyComparisonConfig Study UnivariateComparisonConfig __version__ agent_result
    build_agent_architecture_comparison_study build_bivariate_comparison_study build_design
    build_diversity_and_exploration_study build_grammar_scaffold_study
    build_human_vs_agent_process_study build_optimization_benchmark_study
    build_prompt_framing_study build_strategy_comparison_study build_univariate_comparison_study
    export_analysis_tables generate_doe grammar_problem_bundle human_vs_agent_bundle
    ideation_bundle materialize_conditions optimization_bundle render_codebook
    render_markdown_summary render_methods_scaffold render_significance_brief resolve_problem
    resume_study run_study validate_study write_markdown_report
"""
OLD_NAMES = EXPORTED.split()


def read_table(heading: str) -> list[list[str]]:
    """The rows of the table under a heading, its head left out."""
    section = GUIDE.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def read_blocks(language: str) -> list[str]:
    """The fenced blocks in a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


NAMES = {row[0].strip("`"): row[1:] for row in read_table("Every name")}


def test_every_name_is_listed_once_and_in_order() -> None:
    assert len(OLD_NAMES) == 59
    assert [row[0].strip("`") for row in read_table("Every name")] == OLD_NAMES


@pytest.mark.parametrize("name", OLD_NAMES)
def test_every_name_is_here(name: str) -> None:
    assert name in dir(fairtrial.compat)
    value = getattr(fairtrial.compat, name)
    assert value is not None
    other_home = NAMES[name][0].strip("`")
    assert other_home in ("fairtrial", "fairtrial.study", "")
    if other_home:
        assert getattr(importlib.import_module(other_home), name) is value


def test_the_package_exports_these_names_its_recipes_and_the_import_only() -> None:
    assert set(fairtrial.compat.__all__) == {*OLD_NAMES, "recipes", "import_checkpoints"}


def test_every_command_and_flag_that_the_guide_names_exists() -> None:
    context = click.Context(cli)
    for before, now, remark in read_table("The command line"):
        name = now.strip("`").split()[1]
        command = cli.get_command(context, name)
        assert command is not None, before
        flags = {flag for option in command.params for flag in option.opts + option.secondary_opts}
        renamed = re.sub(r"`--[\w-]+( NAME)?` →", "", remark)  # old flags stand before an arrow
        named = set(re.findall(r"--[a-z][a-z-]*", now + renamed))
        assert named <= flags, f"fairtrial {name} lacks {named - flags}"


def fingerprint(study: Study) -> tuple[int, str]:
    """How many runs a study plans, and a hash of their ids and seeds, whatever their order."""
    planned = fairtrial.plan_runs(study, fairtrial.build_design(study))
    runs = sorted(f"{run.run_id} {run.seed}" for run in planned)
    return len(runs), hashlib.sha256("\n".join(runs).encode()).hexdigest()[:16]


@pytest.mark.parametrize("number", [0, 1], ids=["before", "after"])
def test_the_example_plans_the_same_runs_before_and_after(number: int, tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(read_blocks("yaml")[number], "utf-8")
    study = Study.from_yaml(path)
    assert fairtrial.validate_study(study) == []
    assert study.primary_outcomes == ("score",)
    # Taken from design-research-experiments 0.3.0, which reads the file as it was before.
    assert fingerprint(study) == (24, "90285b07cad60bf7")


OURS = [
    code
    for code in read_blocks("python")
    if "design_research" not in code and "import_checkpoints" not in code
]


def test_the_code_in_the_guide_runs_and_prints_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("study.yaml").write_text(read_blocks("yaml")[1], "utf-8")
    printed = io.StringIO()
    scope: dict[str, Any] = {}
    with contextlib.redirect_stdout(printed):
        for code in OURS:
            exec(compile(code, "docs/migrating.md", "exec"), scope)
    assert printed.getvalue() == "".join(read_blocks("text"))
    planned = [run.run_id for run in scope["runs"]]
    for folder in ("artifacts/tone-of-briefs", "artifacts/again"):
        with fairtrial.open_results(folder) as results:
            assert [result.run_id for result in results] == planned
            assert {result.attempt for result in results} == {1}
            scores = {r.outputs["text"].split()[0]: r.metrics["primary_outcome"] for r in results}
            assert scores == {"warm": 0.7, "plain": 0.5}


def test_names_of_the_sibling_packages_are_enough_as_the_guide_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With stand-ins: what is used of them, and no more."""
    bound = read_blocks("yaml")[2]
    head = "study_id: s\ntitle: t\nfactors: [{name: x, levels: [1, 2]}]\n"
    (tmp_path / "study.yaml").write_text(head + bound, "utf-8")

    class Agent:
        def run(self, prompt: Any, *, request_id: str, dependencies: dict[str, Any]) -> Any:
            metadata = {"model_name": "m"}
            candidate = {"guess": prompt.best - dependencies["condition"].factor_assignments["x"]}
            return SimpleNamespace(
                success=True, output={"final_output": {"candidate": candidate}}, metadata=metadata
            )

    agents = ModuleType("design_research_agents")
    agents.SeededRandomBaselineAgent = Agent  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "design_research_agents", agents)
    problem = SimpleNamespace(best=10, evaluate=lambda answer: None)
    name = "decision_laptop_design_profit_maximization"
    problems = ModuleType("design_research_problems")
    problems.list_problems = lambda: (name,)  # type: ignore[attr-defined]
    for library in (agents, problems):
        library.__spec__ = ModuleSpec(library.__name__, None)
    integration = ModuleType("design_research_problems.integration")
    integration.evaluate_problem_output = (  # type: ignore[attr-defined]
        lambda binding, output: [
            {"metric_name": "gap", "metric_value": 10 - output["candidate"]["guess"]}
        ]
    )
    integration.resolve_problem_binding = lambda name: SimpleNamespace(  # type: ignore[attr-defined]
        family="decision", brief="Decide.", metadata={}, problem_object=problem
    )
    monkeypatch.setitem(sys.modules, "design_research_problems", problems)
    monkeypatch.setitem(sys.modules, "design_research_problems.integration", integration)
    study = dataclasses.replace(Study.from_yaml(tmp_path / "study.yaml"), output_dir=tmp_path / "o")
    results = fairtrial.run_study(study)
    assert [result.metrics["primary_outcome"] for result in results] == [1, 2]
    assert {result.provenance_info["model_name"] for result in results} == {"m"}


# What the guide lists as different.


def two(name: str, *values: Any) -> Factor:
    return Factor(
        name=name, levels=tuple(Level(name=f"l{i}", value=v) for i, v in enumerate(values))
    )


STUDY = Study(
    study_id="s",
    title="t",
    factors=(two("x", *range(6)), two("y", "a", "b")),
    blocks=(Block(name="b", levels=(1, 2)),),
)


def with_design(**spec: Any) -> Study:
    return dataclasses.replace(STUDY, design_spec=DesignSpec(**spec))


@pytest.mark.parametrize("kind", ["randomized_block", "repeated_measures"])
def test_blocked_designs_change_the_order_and_keep_the_ids(kind: str) -> None:
    plain = [c.condition_id for c in fairtrial.build_design(STUDY)]
    ordered = [c.condition_id for c in fairtrial.build_design(with_design(kind=kind))]
    assert ordered != plain
    assert sorted(ordered) == sorted(plain)


def test_groups_of_block_randomization_key_get_permutations_of_their_own() -> None:
    factors = tuple(two(name, 0, 1) for name in "abcd")
    spec = DesignSpec(kind="frac2", randomize=True, replicates=3, block_randomization_key="a")
    study = dataclasses.replace(STUDY, factors=factors, blocks=(), design_spec=spec)
    rows = [c.factor_assignments for c in fairtrial.build_design(study)]
    groups = [[(r["b"], r["c"]) for r in rows if r["a"] == level] for level in (0, 1)]
    assert sorted(groups[0]) == sorted(groups[1])
    assert groups[0] != groups[1]


def test_replicates_of_a_factorial_add_runs_and_keep_earlier_ids() -> None:
    def planned(replicates: int) -> set[str]:
        study = with_design(replicates=replicates)
        return {run.run_id for run in fairtrial.plan_runs(study, fairtrial.build_design(study))}

    assert planned(1) < planned(2)
    assert len(planned(2)) == 2 * len(planned(1))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"problem_id": ["p"]}, "did you mean 'problem_ids'"),
        ({"design_spec": {"kind": "lhs", "n_sample": 3}}, "did you mean 'n_samples'"),
        (
            {"constraints": [{"constraint_id": "c", "expression": "x == 1", "severity": "eror"}]},
            "error",
        ),
        ({"factors": [{"name": "x", "levels": [1, {"name": "one", "value": 1}]}]}, "one id"),
        ({"run_budget": {"replicates": "2"}}, "without quotes"),
        ({"study_id": 7}, "in quotes"),
    ],
    ids=["key", "design key", "severity", "values", "number", "text"],
)
def test_a_file_is_read_strictly(data: dict[str, Any], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        Study.from_dict({"study_id": "s", "title": "t", **data})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"run_budget": RunBudget(max_runs=3)}, "max_runs allows 3"),
        ({"agent_specs": ("a", "a")}, "listed twice"),
        ({"factors": (two("run_id", 1, 2),)}, "key column"),
        ({"factors": (two("b", 1, 2),)}, "name of a block"),
        ({"design_spec": DesignSpec(options={"speed": 1})}, "unknown key"),
        ({"design_spec": DesignSpec(kind="latin_square")}, "has no blocks"),
    ],
    ids=["max_runs", "agents", "key column", "block", "option", "latin square"],
)
def test_a_study_is_checked_as_a_whole(changes: dict[str, Any], message: str) -> None:
    messages = fairtrial.validate_study(dataclasses.replace(STUDY, **changes))
    assert any(message in text for text in messages), messages


def test_a_condition_holds_its_messages_as_a_tuple_and_records_are_frozen() -> None:
    rule = Constraint(constraint_id="c", description="d", expression="x == 0")
    conditions = fairtrial.build_design(dataclasses.replace(STUDY, constraints=(rule,)))
    assert conditions[-1].constraint_messages == ("c: d",)
    with pytest.raises(dataclasses.FrozenInstanceError):
        STUDY.seed_policy = SeedPolicy(base_seed=1)  # type: ignore[misc]


@pytest.mark.parametrize(
    "expression", ["y == 'a' or nope == 1", "x // 2 == 0", "not (x is None)", "len(y) == 1"]
)
def test_expressions_that_work(expression: str) -> None:
    rule = Constraint(constraint_id="c", expression=expression)
    factors = (two("x", 1), two("y", "a"))
    study = dataclasses.replace(STUDY, factors=factors, constraints=(rule,))
    assert all(condition.admissible for condition in fairtrial.build_design(study))


@pytest.mark.parametrize(
    "expression",
    [
        "x ** 2 == 1",
        "max(x, 1) == 1",
        "x.real == 1",
        "y * 2 == 'aa'",
        "y % 2 == 1",
        "{'a': 1}['a'] == 1",
        "int('1', 2) == 1",
        "factors.nope == 1",
    ],
)
def test_expressions_that_are_refused(expression: str) -> None:
    rule = Constraint(constraint_id="c", expression=expression)
    factors = (two("x", 1), two("y", "a"))
    with pytest.raises(StudyError, match=r"constraints\[0\]\.expression"):
        fairtrial.build_design(dataclasses.replace(STUDY, factors=factors, constraints=(rule,)))


def test_a_fraction_without_a_study_comes_in_its_own_levels() -> None:
    def values(levels: list[str] | None) -> set[Any]:
        rows = fairtrial.generate_doe(kind="frac2", factors={"a": levels, "b": levels})["design"]
        return {value for row in rows for value in row.values()}

    assert values(["low", "high"]) == {"low", "high"}
    assert values(None) == {-1, 1}


def test_a_design_too_large_to_make_is_refused_at_once() -> None:
    factors = tuple(two(f"f{i}", *range(10)) for i in range(12))
    with pytest.raises(StudyError, match="more than max_conditions"):
        fairtrial.build_design(dataclasses.replace(STUDY, factors=factors))


# Running. Most of what the guide says of it is tested where it is done; here is how it differs.

TWO = Study(
    study_id="s",
    title="t",
    factors=(two("n", 1, 2),),
    agent_specs=("a",),
    problem_ids=("p",),
    outcomes=(fairtrial.OutcomeSpec("score", primary=True),),
)


def run_two(tmp_path: Path, agent: Any, evaluator: Any = None, **changes: Any) -> Any:
    study = dataclasses.replace(TWO, output_dir=tmp_path / "out", **changes)
    problems = {"p": fairtrial.ProblemPacket("p", "f", "b", evaluator=evaluator)}
    return fairtrial.run_study(study, agent_bindings={"a": agent}, problem_registry=problems)


@pytest.mark.parametrize(
    ("returned", "kept"),
    [
        ({"answer": 42}, {"answer": 42}),
        (42, {"answer": 42}),
        ([1, 2], {"answer": [1, 2]}),
        (None, {}),
        ("words", {"text": "words"}),
        ({"output": {"x": 1}}, {"x": 1}),
        ({"outputs": {"x": 1}}, {"x": 1}),
    ],
)
def test_what_an_agent_returns_is_kept(returned: Any, kept: Any, tmp_path: Path) -> None:
    results = run_two(tmp_path, lambda brief, seed: returned)
    assert [result.outputs for result in results] == [kept, kept]


def test_a_factory_under_any_name_gets_a_hint_at_for_condition(tmp_path: Path) -> None:
    @dataclasses.dataclass
    class Agent:
        n: int

        def run(self, problem_packet: Any) -> Any:
            return {"answer": self.n}

    def made(_condition: Any) -> Agent:
        return Agent(_condition.factor_assignments["n"])

    with pytest.raises(StudyError, match="for_condition"):
        run_two(tmp_path, made)
    for factory in (lambda c: Agent(1), lambda c: lambda seed: {"answer": 1}):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        results = run_two(tmp_path, factory)
        assert {result.status for result in results} == {"failed"}
        assert "for_condition(function)" in results[0].error_info
    shutil.rmtree(tmp_path / "out")
    results = run_two(tmp_path, fairtrial.for_condition(made))
    assert [result.outputs["answer"] for result in results] == [1, 2]


def test_the_primary_outcome_is_the_studys_own(tmp_path: Path) -> None:
    results = run_two(tmp_path, lambda brief, seed: "", lambda output: {"first": 1, "score": 2})
    assert [result.metrics["primary_outcome"] for result in results] == [2, 2]


def test_results_are_a_sequence_in_plan_order_with_tuples_and_mappings(tmp_path: Path) -> None:
    def agent(brief: str, seed: int) -> Any:
        return fairtrial.compat.agent_result("text", events=[{"event_type": "step", "text": "s"}])

    results = run_two(tmp_path, agent, lambda output: {"score": 1})
    assert not isinstance(results, list)
    assert len(list(results)) == 2
    (event,), (row,) = results[0].observations, results[0].evaluator_outputs
    assert event["text"] == "s"
    assert "run_id" not in row
    assert results[0].trace_refs == ()


@pytest.mark.parametrize("more", [{}, {"resume": True}, {"checkpoint": False}])
def test_a_directory_with_earlier_tables_is_left_alone(
    more: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / "artifacts" / "checkpoints").mkdir(parents=True)
    (tmp_path / "artifacts" / "checkpoints" / "run-1.json").write_text("{}")
    (tmp_path / "runs.csv").write_text("study_id,condition_id,run_id\ns,cond-1,run-1\n")
    study = dataclasses.replace(TWO, output_dir=tmp_path)
    problems = {"p": fairtrial.ProblemPacket("p")}
    agents = {"a": lambda brief, seed: 1}
    with pytest.raises(StudyError, match=r"runs\.csv .* was not written by this study"):
        fairtrial.run_study(study, agent_bindings=agents, problem_registry=problems, **more)
    assert (tmp_path / "runs.csv").read_text().endswith("run-1\n")
    assert not (tmp_path / "ledger.sqlite").exists()
