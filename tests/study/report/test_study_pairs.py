"""Two studies compared: which runs, paired or not, and what else differs."""

import dataclasses

import pytest
from run_kit import make_study, run

from fairtrial import AgentBinding, ProblemPacket, SeedPolicy, Study
from fairtrial.core import StudyError
from fairtrial.study import Factor, RunBudget
from fairtrial.study.report import compare_studies


def problems(*names):
    return {
        name: ProblemPacket(name, "sums", "add", {"term": ord(name)}, {}, lambda x: {"score": x})
        for name in names
    }


def made(folder, names="pqrs", shift=0.0, **fields):
    """Run a study whose scores are the problem's term plus the level, a shift and some noise."""

    def add(task):
        noise = task.rng.random() / 10
        return {"x": task.factors["x"] + task.problem.payload["term"] + shift + noise}

    fields.setdefault("seed_policy", SeedPolicy(base_seed=ord(folder.name[0])))
    study = make_study(folder, problem_ids=tuple(names), **fields)
    run(study, add, problem_registry=problems(*names))
    return folder


def test_the_same_problems_are_paired(tmp_path):
    comparison = compare_studies(made(tmp_path / "a"), made(tmp_path / "b", shift=1.0))
    (test,) = comparison.exploration.tests
    assert comparison.pairing == "paired"
    assert test.difference == "b − a"
    # The problems differ by up to 3, which only a comparison within problems leaves out.
    assert test.interval[1] - test.interval[0] < 0.5
    assert test.estimate == pytest.approx(1.0, abs=0.1)
    assert (test.verdict, test.standing) == ("exploratory", "exploratory")
    assert comparison.basis == ("paired by problem: 4 problems that both have",)


def test_problems_of_one_study_are_left_out_and_counted(tmp_path):
    comparison = compare_studies(made(tmp_path / "a", "pqrst"), made(tmp_path / "b", "qrstuv"))
    (test,) = comparison.exploration.tests
    assert {effect.problem for effect in test.by_problem} == set("qrst")
    assert "left out: 1 problem that only a has" in comparison.basis
    assert "left out: 2 problems that only b has" in comparison.basis


def test_studies_without_common_problems_are_compared_unpaired_and_it_is_said(tmp_path):
    comparison = compare_studies(made(tmp_path / "a", "pqrs"), made(tmp_path / "b", "tuvw"))
    (test,) = comparison.exploration.tests
    assert comparison.pairing == "unpaired"
    assert "no problem in common" in comparison.basis[0]
    assert test.p_value is not None
    assert test.estimate == pytest.approx(4.0, abs=0.2)


def test_only_levels_and_agents_that_both_have_are_compared(tmp_path):
    first = made(tmp_path / "a", levels=(1, 2))
    second = made(tmp_path / "b", levels=(2, 100))
    comparison = compare_studies(first, second)
    (test,) = comparison.exploration.tests
    assert test.estimate == pytest.approx(0.0, abs=0.1)
    assert "only runs of agents under levels that both have (1 of 2 and 2)" in comparison.basis


def test_other_agents_are_compared_as_a_whole_with_a_warning(tmp_path):
    first = made(tmp_path / "a", agent_specs=("old",))
    second = made(tmp_path / "b", agent_specs=("new",), shift=2.0)
    comparison = compare_studies(first, second)
    assert comparison.exploration.tests[0].estimate == pytest.approx(2.0, abs=0.1)
    assert any(line.startswith("all runs: no agent") for line in comparison.basis)


def test_other_numbers_of_replicates_are_no_lost_runs(tmp_path):
    first = made(tmp_path / "a", replicates=2)
    second = made(tmp_path / "b", run_budget=RunBudget(replicates=3))
    comparison = compare_studies(first, second)
    groups = {group.name: group for group in comparison.exploration.tests[0].groups}
    assert (groups["a"].planned, groups["a"].pending) == (24, 0)
    assert (groups["b"].planned, groups["b"].pending) == (36, 0)
    assert "replicates: 2 → 3" in [item.text() for item in comparison.differences]


def test_what_else_differs_is_listed(tmp_path):
    agents = {"a": AgentBinding("m:f", {"model": "small"})}
    first = made(tmp_path / "a", agents=agents, seed_policy=SeedPolicy())
    second = made(
        tmp_path / "b",
        agents={"a": AgentBinding("m:f", {"model": "large"})},
        seed_policy=SeedPolicy(base_seed=7),
        factors=(Factor("x", levels=(1, 2, 3)), Factor("style", levels=("dry",))),
    )
    text = "\n".join(item.text() for item in compare_studies(first, second).differences)
    assert 'agents.a.options.model: "small" → "large"' in text
    assert "seed_policy.base_seed: 0 → 7" in text
    assert "factors[style]: added" in text


def test_versions_commits_and_models_come_from_the_sessions(tmp_path, monkeypatch):
    from fairtrial.study.tables import provenance

    def model(name):
        return lambda task: {"output": {"x": 1}, "metadata": {"model_name": name}}

    def versions(number):
        return lambda study: {"fairtrial": number, "numpy": "1"}

    for name, sha in (("a", "1" * 40), ("b", "2" * 40)):
        monkeypatch.setattr(provenance, "read_commit", lambda folder, sha=sha: (sha, False))
        monkeypatch.setattr(provenance, "_versions", versions(name))
        study = make_study(tmp_path / name, problem_ids=tuple("pqrs"))
        run(study, model(f"m-{name}"), problem_registry=problems(*"pqrs"))
    found = compare_studies(tmp_path / "a", tmp_path / "b").differences
    texts = [item.text() for item in found]
    assert "models: m-a → m-b" in texts
    assert f"git commit: {'1' * 12} → {'2' * 12}" in texts
    assert "fairtrial: a → b" in texts


def test_problems_that_are_defined_differently_are_counted(tmp_path):
    from fairtrial import ProblemBinding

    for name, brief in (("a", "add"), ("b", "add up")):
        binding = {problem: ProblemBinding(brief=brief) for problem in "pqrs"}
        made(tmp_path / name, problems=binding)
    basis = compare_studies(tmp_path / "a", tmp_path / "b").basis
    assert "of these, 4 are defined differently in the two studies" in basis


def test_unfinished_studies_say_what_is_pending(tmp_path):
    first = made(tmp_path / "a")
    study = make_study(tmp_path / "b", problem_ids=tuple("pqrs"))
    run(study, problem_registry=problems(*"pqrs"), limit=20)
    notes = compare_studies(first, tmp_path / "b").exploration.notes
    assert "an interim look: 4 planned runs of b are not done yet" in notes


def test_the_same_folder_twice_and_condition_runners_are_refused(tmp_path):
    made(tmp_path / "a")
    with pytest.raises(StudyError, match="both are the same study"):
        compare_studies(tmp_path / "a", tmp_path / "." / "a")
    study = Study("c", "c", output_dir=tmp_path / "c", factors=(Factor("x", levels=(1, 2)),))
    from fairtrial import run_study

    run_study(study, condition_runner=lambda run_spec, condition: {"x": 1})
    with pytest.raises(StudyError, match="condition runner"):
        compare_studies(tmp_path / "a", tmp_path / "c")


def test_folders_of_one_name_are_distinguished(tmp_path):
    comparison = compare_studies(made(tmp_path / "old" / "x"), made(tmp_path / "new" / "x"))
    assert comparison.labels == ("old/x", "new/x")


def test_the_text_says_what_is_compared_and_what_differs(tmp_path):
    second = made(tmp_path / "b", seed_policy=SeedPolicy(base_seed=3))
    comparison = compare_studies(
        made(tmp_path / "a", seed_policy=SeedPolicy()), second, by="problem"
    )
    text = comparison.to_markdown()
    assert text.startswith("# `b` against `a`\n")
    for part in ("## What is compared", "## What else differs", "base\\_seed: 0 → 3", "for each"):
        assert part in text or part.replace("\\", "") in text
    data = comparison.to_dict()
    assert data["studies"] == ["a", "b"]
    assert data["pairing"] == "paired"
    assert dataclasses.is_dataclass(comparison)
