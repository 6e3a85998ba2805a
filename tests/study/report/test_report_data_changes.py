"""Data that were changed after results were known: claims are exploratory, with both verdicts."""

import json
import random
import shutil
from dataclasses import replace

import pytest
from click.testing import CliRunner
from simulated_study_kit import level, make_claim, make_plan, make_study

from fairtrial import Broken, open_results
from fairtrial.cli.main import cli
from fairtrial.study import (
    AgentBinding,
    Contrast,
    Factor,
    HypothesisDirection,
    RunBudget,
    SeedPolicy,
    Stopping,
    full_report,
    judge_hypotheses,
    rescore_study,
    run_study,
)

CLAIM = make_claim(
    direction=HypothesisDirection.GREATER, contrast=Contrast(left="fancy", right="plain")
)
OTHER = replace(
    CLAIM, hypothesis_id="h2", contrast=Contrast(left="plain", right="fancy"), label="Other"
)
LIMITED = RunBudget(replicates=4, max_runs=2, max_runs_policy="balanced")
PROBLEMS = ("p1", "p2", "p3", "p4")
GAIN = {"p4": -6.0}
"""What fancy adds to the score of a problem, if not 2."""


def agent(problem, run_spec, condition):
    rng = random.Random(run_spec.seed)
    gain = GAIN.get(run_spec.problem_id, 2.0) * (level(condition) == "fancy")
    return {"score": gain + rng.gauss(0, 0.5)}


def make(folder, **parts):
    given = {
        "hypotheses": (CLAIM,),
        "analysis_plans": (make_plan("welch_t", generalize="these_problems_only"),),
        "problem_ids": PROBLEMS,
        "run_budget": RunBudget(replicates=4),
        **parts,
    }
    return make_study(output_dir=str(folder), **given)


def run(study, agent=agent, **settings):
    problems = {name: {"evaluator": score} for name in PROBLEMS}
    settings = {"show_progress": False, "problem_registry": problems, **settings}
    return run_study(study, agent_bindings={"a": agent}, **settings)


def score(output):
    return {"score": output["score"]}


def report(folder):
    done = CliRunner().invoke(cli, ["report", str(folder), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def verdict(reported, hypothesis_id="h1"):
    (test,) = [
        test
        for test in reported["tests"]
        if test["hypothesis_id"] == hypothesis_id and test["decides"]
    ]
    return test


def test_dropping_the_problem_that_spoils_it_makes_the_claim_exploratory(tmp_path):
    run(make(tmp_path / "out"))
    assert verdict(report(tmp_path / "out"))["verdict"] == "inconclusive"
    dropped = make(tmp_path / "out", problem_ids=PROBLEMS[:3])
    run(dropped, resume=True, accept_changes=True)
    reported = report(tmp_path / "out")
    test = verdict(reported)
    assert (test["verdict"], test["standing"]) == ("exploratory", "exploratory")
    assert (test["verdict_without"], test["verdict_with"]) == ("inconclusive", "supported")
    both = "without the removal of problem p4: inconclusive; with it: supported, exploratory"
    assert f"`h1` on `score`: {both}" in reported["deviations"]
    assert test["why"].startswith(f"its data were changed after 32 results were known; {both}; ")
    assert reported["claims"]["data_changes"] == [
        {"change": "the removal of problem p4", "results_known": 32}
    ]
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert [entry["standing"] for entry in manifest["claims"]["standing"]] == ["exploratory"]


def test_dropping_a_problem_before_its_runs_are_made_has_no_verdict_to_compare_with(tmp_path):
    run(make(tmp_path), only="problem_id != 'p4'")
    run(make(tmp_path, problem_ids=PROBLEMS[:3]), resume=True, accept_changes=True)
    test = verdict(report(tmp_path))
    assert (test["standing"], test["verdict_without"]) == ("exploratory", None)
    assert (
        "the verdict without the removal of problem p4 can't be computed: "
        "8 runs of the first plan were not made"
    ) in test["why"]


def test_a_problem_that_comes_back_leaves_the_claim_confirmatory(tmp_path):
    run(make(tmp_path))
    run(make(tmp_path, problem_ids=PROBLEMS[:3]), resume=True, accept_changes=True)
    run(make(tmp_path), resume=True, accept_changes=True)
    test = verdict(report(tmp_path))
    assert (test["verdict"], test["standing"]) == ("inconclusive", "confirmatory")


def test_raising_replicates_after_a_look_makes_the_claim_exploratory(tmp_path):
    def weak(problem, run_spec, condition):
        rng = random.Random(run_spec.seed)
        return {"score": 0.6 * (level(condition) == "fancy") + rng.gauss(0, 1)}

    few = {"run_budget": RunBudget(replicates=2), "problem_ids": ("p1", "p2")}
    run(make(tmp_path, **few), weak)
    before = verdict(report(tmp_path))
    assert (before["verdict"], before["standing"]) == ("inconclusive", "confirmatory")
    run(make(tmp_path, **few | {"run_budget": RunBudget(replicates=60)}), weak, resume=True)
    reported = report(tmp_path)
    test = verdict(reported)
    assert (test["verdict"], test["standing"]) == ("exploratory", "exploratory")
    assert (test["verdict_without"], test["verdict_with"]) == ("inconclusive", "supported")
    both = "without the added replicates: inconclusive; with them: supported, exploratory"
    assert f"`h1` on `score`: {both}" in reported["deviations"]
    with open_results(tmp_path) as results:
        text = full_report(results.study, results.conditions, results)
    assert both in text
    assert "Exploratory, without a plan" in text
    assert "Confirmatory" not in text.partition("## Runs")[0]


def test_replicates_may_be_raised_before_the_first_result(tmp_path):
    def broken(problem, run_spec, condition):
        raise Broken("no network")

    run(make(tmp_path, run_budget=RunBudget(replicates=1, retries=0)), broken)
    run(make(tmp_path), resume=True)
    reported = report(tmp_path)
    assert verdict(reported)["standing"] == "confirmatory"
    assert reported["deviations"] == []


@pytest.mark.parametrize(
    ("spending", "standing"), [("anytime", "confirmatory"), ("obrien_fleming", "exploratory")]
)
def test_planned_looks_are_no_deviation_and_open_ended_plans_allow_more_runs(
    tmp_path, spending, standing
):
    stopping = Stopping(looks=3, spending=spending)
    plan = make_plan("welch_t", generalize="these_problems_only", stopping=stopping)
    run(make(tmp_path, analysis_plans=(plan,)), limit=16)
    report(tmp_path)
    run(make(tmp_path, analysis_plans=(plan,)), resume=True)
    assert not any("looked at" in line for line in report(tmp_path)["deviations"])
    longer = make(tmp_path, analysis_plans=(plan,), run_budget=RunBudget(replicates=5))
    run(longer, resume=True)
    assert verdict(report(tmp_path))["standing"] == standing


def test_stopping_early_by_fewer_replicates_makes_the_claim_exploratory(tmp_path):
    run(make(tmp_path, problem_ids=PROBLEMS[:3]), only="replicate <= 2")
    fewer = make(tmp_path, problem_ids=PROBLEMS[:3], run_budget=RunBudget(replicates=2))
    run(fewer, resume=True)
    test = verdict(report(tmp_path))
    assert (test["standing"], test["verdict_without"]) == ("exploratory", None)
    assert (
        "the verdict without the dropped replicates can't be computed: "
        "12 runs of the first plan were not made"
    ) in test["why"]


def test_claims_on_other_runs_stay_confirmatory(tmp_path):
    run(make(tmp_path))
    wild = (Factor("arm", levels=("plain", "fancy", "wild")),)
    run(make(tmp_path, factors=wild), resume=True, accept_changes=True)
    reported = report(tmp_path)
    assert verdict(reported)["standing"] == "confirmatory"
    assert reported["claims"]["data_changes"][0]["change"] == "the addition of conditions"


def test_repeating_failed_runs_makes_the_claim_exploratory(tmp_path):
    def fails_on_p4(problem, run_spec, condition):
        if run_spec.problem_id == "p4":
            raise RuntimeError("no")
        return agent(problem, run_spec, condition)

    run(make(tmp_path), fails_on_p4)
    assert verdict(report(tmp_path))["standing"] == "confirmatory"
    run(make(tmp_path), resume=True, retry="failed")
    test = verdict(report(tmp_path))
    assert (test["standing"], test["verdict_with"]) == ("exploratory", "inconclusive")
    assert test["verdict_without"].startswith("supported")
    assert "with it: inconclusive, exploratory" in test["why"]


def test_new_scores_make_the_claim_exploratory_unless_they_are_the_same(tmp_path):
    run(make(tmp_path))
    rescore_study(tmp_path, score)
    assert verdict(report(tmp_path))["standing"] == "confirmatory"
    rescore_study(tmp_path, abs_score)
    test = verdict(report(tmp_path))
    assert test["standing"] == "exploratory"
    assert (test["verdict_without"], test["verdict_with"]) == ("inconclusive", "supported")
    assert "without the new scores: inconclusive; with them: supported, exploratory" in test["why"]


def abs_score(output):
    return {"score": abs(output["score"])}


def test_another_time_limit_counts_for_runs_that_were_made_under_it(tmp_path):
    run(make(tmp_path), limit=8)
    limited = make(tmp_path, run_budget=RunBudget(replicates=4, timeout_s=60.0))
    run(limited, resume=True)
    reported = report(tmp_path)
    test = verdict(reported)
    assert (test["standing"], test["verdict_without"]) == ("exploratory", None)
    assert "the verdict without the other timeout_s can't be computed" in test["why"]


def test_another_limit_of_runs_is_a_change_of_data(tmp_path):
    few = {"problem_ids": PROBLEMS[:3], "run_budget": LIMITED}
    run(make(tmp_path, **few))
    before = verdict(report(tmp_path))
    assert (before["verdict"], before["standing"]) == ("not tested", "confirmatory")
    run(make(tmp_path, **few | {"run_budget": replace(LIMITED, max_runs=24)}), resume=True)
    test = verdict(report(tmp_path))
    assert (test["standing"], test["verdict_without"]) == ("exploratory", "not tested")
    assert "without the other max_runs: not tested; with it: supported, exploratory" in test["why"]


def test_a_changed_agent_counts_for_its_runs(tmp_path):
    def other(problem, run_spec, condition):
        return agent(problem, run_spec, condition)

    def bound(use):
        return make(tmp_path, agents={"a": AgentBinding(use)})

    run(bound("one:act"), limit=8)
    run(bound("two:act"), other, resume=True, accept_changes=True)
    test = verdict(report(tmp_path))
    assert (test["standing"], test["verdict_without"]) == ("exploratory", None)
    assert "the verdict without the change of agent a can't be computed" in test["why"]


def test_other_filters_show_the_verdict_as_laid_down(tmp_path):
    run(make(tmp_path))
    plan = make_plan(
        "welch_t", generalize="these_problems_only", filters={"problem_id": ["p1", "p2", "p3"]}
    )
    with pytest.warns(UserWarning, match="claims changed"):
        run(make(tmp_path, analysis_plans=(plan,)), resume=True)
    test = verdict(report(tmp_path))
    assert (test["verdict"], test["standing"]) == ("exploratory", "exploratory")
    assert (test["verdict_without"], test["verdict_with"]) == ("inconclusive", "supported")


def test_other_seeds_in_the_same_folder_are_a_change_of_data(tmp_path):
    run(make(tmp_path))
    seeds = replace(make(tmp_path).seed_policy, base_seed=9)
    run(make(tmp_path, seed_policy=seeds), resume=True, accept_changes=True)
    test = verdict(report(tmp_path))
    assert test["standing"] == "exploratory"
    assert (
        "without the other seeds: inconclusive; with them: inconclusive, exploratory" in test["why"]
    )


# -- a second folder --


def test_a_claim_picked_from_the_data_of_another_folder_is_exploratory(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    run(
        make(first, hypotheses=(OTHER,), analysis_plans=(plan_for("h2"),), problem_ids=PROBLEMS[:3])
    )
    assert verdict(report(first), "h2")["verdict"] == "contradicted"
    run(make(second, problem_ids=PROBLEMS[:3]))
    reported = report(second)
    test = verdict(reported)
    assert (test["verdict"], test["standing"]) == ("exploratory", "exploratory")
    assert "laid down after 24 results were known of the same runs (../first)" in test["why"]
    line, verdicts = reported["deviations"]
    assert line.startswith("24 runs of this study were made before with the same seeds in")
    assert verdicts == (
        "`h1` on `score`: without the runs that were made before: not tested; "
        "with them: supported, exploratory"
    )
    assert reported["claims"]["earlier_folders"][0]["shared"] == 24
    assert verdict(report(first), "h2")["standing"] == "confirmatory"  # it came first


def plan_for(hypothesis_id):
    return make_plan("welch_t", hypothesis_ids=(hypothesis_id,), generalize="these_problems_only")


def test_a_repetition_with_the_same_seeds_is_no_independent_evidence(tmp_path):
    run(make(tmp_path / "first"))
    run(make(tmp_path / "second"))
    test = verdict(report(tmp_path / "second"))
    assert test["standing"] == "exploratory"
    assert "a repetition of runs with the same seeds (../first)" in test["why"]
    assert "no independent evidence" in test["why"]


def test_runs_that_are_new_are_tested_without_those_of_a_pilot_in_another_folder(tmp_path):
    easy = {"problem_ids": PROBLEMS[:3]}
    run(make(tmp_path / "pilot", **easy), only="replicate == 1")
    run(make(tmp_path / "whole", **easy))
    test = verdict(report(tmp_path / "whole"))
    assert test["standing"] == "exploratory"
    assert (
        "without the runs that were made before: supported; with them: supported, exploratory"
    ) in test["why"]


def test_another_folder_with_other_seeds_is_listed_and_leaves_the_claim_confirmatory(tmp_path):
    run(make(tmp_path / "first"))
    seeds = replace(make(tmp_path).seed_policy, base_seed=9)
    run(make(tmp_path / "second", seed_policy=seeds))
    reported = report(tmp_path / "second")
    assert verdict(reported)["standing"] == "confirmatory"
    assert any(
        "run before with other seeds in `../first`" in line for line in reported["deviations"]
    )


def test_the_same_comparison_under_another_study_id_is_listed(tmp_path):
    run(make(tmp_path / "first"))
    run(replace(make(tmp_path / "second"), study_id="renamed"))
    lines = report(tmp_path / "second")["deviations"]
    assert any("a study of the same comparison" in line and "`../first`" in line for line in lines)
    other = replace(CLAIM, independent_vars=("problem_id",), contrast=None)
    run(replace(make(tmp_path / "third", hypotheses=(other,)), study_id="another question"))
    lines = report(tmp_path / "third")["deviations"]
    assert not any("same comparison" in line for line in lines)


@pytest.mark.parametrize("changes", [{"study_id": "renamed"}, {"seed_policy": SeedPolicy(9)}])
def test_a_study_without_a_problem_of_an_earlier_one_is_exploratory(tmp_path, changes):
    run(make(tmp_path / "first"))
    fewer = make(tmp_path / "second", problem_ids=PROBLEMS[:3])
    run(replace(fewer, **changes))
    reported = report(tmp_path / "second")
    test = verdict(reported)
    assert test["standing"] == "exploratory"
    assert f"without problem {PROBLEMS[3]} of an earlier study (../first)" in test["why"]
    assert "results were known" in test["why"]
    assert any(f"and problem {PROBLEMS[3]}" in line for line in reported["deviations"])


def test_a_study_of_more_or_other_problems_than_an_earlier_one_stays_confirmatory(tmp_path):
    run(make(tmp_path / "first", problem_ids=PROBLEMS[:3]))
    run(replace(make(tmp_path / "second"), study_id="more"))
    assert verdict(report(tmp_path / "second"))["standing"] == "confirmatory"


def test_the_interval_after_added_replicates_is_wider_so_that_it_holds_at_every_look(tmp_path):
    run(make(tmp_path))
    run(make(tmp_path, run_budget=RunBudget(replicates=8)), resume=True, accept_changes=True)
    added = verdict(report(tmp_path))
    run(make(tmp_path / "planned", run_budget=RunBudget(replicates=8)))
    with open_results(tmp_path / "planned") as results:
        (planned,) = judge_hypotheses(results.study, results.conditions, results)
    assert planned.estimate == pytest.approx(added["estimate"])
    assert added["interval"][0] < planned.interval[0]
    assert added["interval"][1] > planned.interval[1]
    assert any("however often that was done" in note for note in added["notes"])


def test_a_folder_that_is_found_later_counts_if_it_was_earlier(tmp_path):
    run(make(tmp_path / "hidden" / "first"))
    run(make(tmp_path / "second"))
    assert verdict(report(tmp_path / "second"))["standing"] == "confirmatory"
    (tmp_path / "hidden" / "first").rename(tmp_path / "first")
    assert verdict(report(tmp_path / "second"))["standing"] == "exploratory"


def test_a_copy_of_the_folder_and_one_in_which_all_runs_failed_do_no_harm(tmp_path):
    def fail(problem, run_spec, condition):
        raise RuntimeError("no key")

    run(make(tmp_path / "failed"), fail, keep_going=True)
    run(make(tmp_path / "out"))
    shutil.copytree(tmp_path / "out", tmp_path / "backup")
    for name in ("out", "backup"):
        reported = report(tmp_path / name)
        assert verdict(reported)["standing"] == "confirmatory"
        assert reported["deviations"] == []


def test_a_folder_that_is_gone_later_stays_recorded(tmp_path):
    run(make(tmp_path / "first"))
    run(make(tmp_path / "second"))
    (tmp_path / "first" / "ledger.sqlite").unlink()
    assert verdict(report(tmp_path / "second"))["standing"] == "exploratory"


def test_a_deleted_ledger_is_noticed_by_the_tables_it_left(tmp_path):
    run(make(tmp_path / "out"))
    (tmp_path / "out" / "ledger.sqlite").unlink()
    plan = make_plan("welch_t", hypothesis_ids=("h2",))
    run(make(tmp_path / "out", hypotheses=(OTHER,), analysis_plans=(plan,)))
    reported = report(tmp_path / "out")
    (test,) = reported["tests"]
    assert (test["verdict"], test["standing"]) == ("exploratory", "exploratory")
    assert "32 results were known of the same runs (a ledger that is gone)" in test["why"]
    gone = [line for line in reported["deviations"] if "whose ledger is gone" in line]
    assert gone[0].startswith("32 runs of this study were made before with the same seeds")


def test_a_deleted_ledger_with_other_seeds_is_listed(tmp_path):
    study = make(tmp_path / "out")
    run(study)
    (tmp_path / "out" / "ledger.sqlite").unlink()
    run(replace(study, seed_policy=replace(study.seed_policy, base_seed=7)))
    reported = report(tmp_path / "out")
    assert reported["tests"][0]["standing"] == "confirmatory"
    assert any("before with other seeds in this directory" in d for d in reported["deviations"])


def test_folders_that_cannot_be_read_are_passed_over(tmp_path):
    run(make(tmp_path / "first"))
    ledger = tmp_path / "first" / "ledger.sqlite"
    content = ledger.read_bytes()
    for name, damaged in (
        ("cut", content[:5000]),
        ("noise", content[:100] + bytes(len(content) - 100)),
        ("text", b"no ledger"),
        ("empty", b""),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ledger.sqlite").write_bytes(damaged)
    (tmp_path / "folder" / "ledger.sqlite").mkdir(parents=True)
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "ledger.sqlite").symlink_to(tmp_path / "nothing")
    ledger.unlink()
    run(make(tmp_path / "second"))
    reported = report(tmp_path / "second")
    assert verdict(reported)["standing"] == "confirmatory"
    assert reported["deviations"] == []


def test_a_neighbor_in_a_read_only_folder_is_read_and_nothing_is_written_there(tmp_path):
    run(make(tmp_path / "first"))
    before = sorted(path.name for path in (tmp_path / "first").iterdir())
    (tmp_path / "first").chmod(0o555)
    try:
        run(make(tmp_path / "second"))
        assert verdict(report(tmp_path / "second"))["standing"] == "exploratory"
        assert sorted(path.name for path in (tmp_path / "first").iterdir()) == before
    finally:
        (tmp_path / "first").chmod(0o755)


def test_a_study_without_claims_looks_for_no_neighbors(tmp_path):
    bare = {"hypotheses": (), "analysis_plans": ()}
    run(make(tmp_path / "first", **bare))
    run(make(tmp_path / "second", **bare))
    assert report(tmp_path / "second")["deviations"] == []
