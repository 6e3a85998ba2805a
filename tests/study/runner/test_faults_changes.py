"""A study that has changed since its ledger was begun, and what results it may keep."""

import json
import re
import signal
import sys

import pytest
import yaml
from fault_stage_kit import wait_until

from fairtrial.study.tables.integrity import validate_artifacts

pytest_plugins = ("fault_fixtures",)
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

CHANGES = {
    # what is set, what the refusal says, how many of six results are still in the plan
    "levels": ("factors", [{"name": "dose", "levels": [1, 2, 4]}], "factors[dose].levels", 4),
    "a level more": ("factors", [{"name": "dose", "levels": [1, 2, 3, 4]}], "factors[dose]", 6),
    "seed": ("seed_policy", {"base_seed": 7}, "seed_policy.base_seed: 0 -> 7", 0),
    "agent options": (
        "agents",
        {"subject": {"use": "fault_agents:steady", "options": {"wait_s": 0.001}}},
        "agents.subject.options.wait_s",
        6,
    ),
    "problem": (
        "problems",
        {"task": {"family": "other", "evaluator": "fault_agents:score"}},
        "problems.task.family",
        6,
    ),
    "study_id": ("study_id", "others", "study_id", 0),
}
NO_CHANGES = {
    "budget": {"run_budget": {"replicates": 2, "max_cost_usd": 5.0, "timeout_s": 30}},
    "parallelism": {"run_budget": {"replicates": 2, "parallelism": 2}},
    "notes": {"notes": "by the way", "title": "Other", "description": "words"},
    "output_dir": {"output_dir": "elsewhere"},
    "hypotheses": {
        "hypotheses": [
            {
                "hypothesis_id": "h",
                "label": "h",
                "statement": "more is more",
                "independent_vars": ["dose"],
                "dependent_vars": ["score"],
            }
        ],
        "outcomes": [{"name": "score", "source_table": "evaluations", "primary": True}],
    },
    "limits": {
        "agents": {"subject": {"use": "fault_agents:steady", "max_parallel": 2}},
    },
}


def change(stage, **changes):
    study = yaml.safe_load(stage.study_file.read_text())
    stage.study_file.write_text(yaml.safe_dump({**study, **changes}))


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_study_is_refused_until_the_change_is_accepted(stage, name):
    section, value, says, kept = CHANGES[name]
    stage.write()
    assert stage.run().code == 0
    old = {row["run_id"]: row for row in stage.table()}
    change(stage, **{section: value})
    for words in ((), ("--resume",)):
        ended = stage.run(*words)
        assert ended.code == 3
        assert "different study" in ended.err
        assert says in ended.err
        assert "--accept-changes" in ended.err
    assert sum(stage.calls().values()) == 6
    ended = stage.run("--resume", "--accept-changes")
    assert ended.code == 0, ended.err
    left_out = 6 - kept
    assert (f"{left_out} result" in ended.err) == (left_out > 0)
    assert validate_artifacts(stage.output) == []
    conditions = {row["condition_id"] for row in stage.table("conditions.csv")}
    rows = {row["run_id"]: row for row in stage.table()}
    assert {row["condition_id"] for row in rows.values()} == conditions
    planned = 8 if name == "a level more" else 6
    assert len(rows) == planned
    assert sum(stage.calls().values()) == 6 + planned - kept
    same = [run_id for run_id in rows if old.get(run_id) == rows[run_id]]
    assert len(same) == kept
    if name == "seed":  # not reused under the new seed's name
        assert set(rows) == set(old)
        assert all(rows[run_id]["seed"] != old[run_id]["seed"] for run_id in rows)
        assert all(
            rows[run_id]["primary_outcome"] != old[run_id]["primary_outcome"] for run_id in rows
        )
    shown = stage.status()
    assert (shown["done"], shown["left_out"]) == (planned, left_out)


@pytest.mark.parametrize("way", ["run", "resume", "resume DIR", "retry DIR"])
def test_the_way_out_that_a_refusal_names_works(stage, way):
    stage.write()
    assert stage.run().code == 0
    words = {
        "run": ("run", stage.study_file, "--output", stage.output, "--resume"),
        "resume": ("resume", stage.study_file, "--output", stage.output),
        "resume DIR": ("resume", stage.output, "--set", "seed_policy.base_seed=7"),
        "retry DIR": ("retry", stage.output, "--set", "seed_policy.base_seed=7"),
    }[way]
    change(stage, seed_policy={"base_seed": 7})
    ended = stage.call(*words)
    assert ended.code == 3
    named = re.findall(r"`fairtrial (\w+)((?: --[\w-]+)+)`", " ".join(ended.err.split()))
    assert dict(named) == {"run": " --resume --accept-changes", "resume": " --accept-changes"}
    command = words[0] if words[0] != "retry" else "resume"
    options = [option for option in dict(named)[command].split() if option not in words]
    ended = stage.call(command, *words[1:], *options)
    assert ended.code == 0, ended.err
    assert stage.status()["done"] == 6
    (recorded,) = claims_written(stage)["changes"]
    assert (recorded["results_known"], recorded["changes"]) == (
        6,
        ["seed_policy.base_seed: 0 -> 7"],
    )


def claims_written(stage):
    return json.loads((stage.output / "manifest.json").read_text("utf-8"))["claims"]


def test_claims_that_are_changed_by_command_are_shown_by_later_commands(stage):
    claim = NO_CHANGES["hypotheses"]["hypotheses"][0]
    plan = {"analysis_plan_id": "p", "hypothesis_ids": ["h"], "tests": ["anova"]}
    outcomes = NO_CHANGES["hypotheses"]["outcomes"]
    stage.write(hypotheses=[claim], analysis_plans=[plan], outcomes=outcomes)
    assert stage.run("--limit", 4).code == 0
    change(stage, analysis_plans=[{**plan, "tests": ["kruskal_wallis"]}])
    ended = stage.call("resume", stage.study_file, "--output", stage.output)
    assert ended.code == 0, ended.err
    assert "claims changed after 4 results were known" in ended.err
    difference = '`analysis_plans[p].tests: ["anova"] -> ["kruskal_wallis"]`'
    for command in ("export", "rescore", "resume"):
        assert stage.call(command, stage.output).code == 0
        assert [claim["standing"] for claim in claims_written(stage)["standing"]] == ["exploratory"]
    report = stage.call("report", stage.output, "--json").data
    assert report["deviations"][0].startswith("claims were changed after 4 results were known")
    assert report["deviations"][0].endswith(difference)
    assert [test["standing"] for test in report["tests"]] == ["exploratory"]
    assert any(
        line.startswith("6 runs judged again by the problems' own evaluators")
        for line in report["deviations"]
    )


def test_what_was_left_out_comes_back_when_the_change_is_taken_back(stage):
    stage.write()
    assert stage.run().code == 0
    before = stage.table()
    change(stage, seed_policy={"base_seed": 7})
    assert stage.run("--resume", "--accept-changes").code == 0
    change(stage, seed_policy={"base_seed": 0})
    assert stage.run("--resume", "--accept-changes").code == 0
    assert stage.table() == before
    assert sum(stage.calls().values()) == 12


@pytest.mark.parametrize("name", NO_CHANGES)
def test_what_changes_no_result_is_no_change(stage, name):
    stage.write()
    assert stage.run("--limit", 4).code == 0
    before = {row["run_id"]: row["answer"] for row in answers(stage)}
    change(stage, **NO_CHANGES[name])
    ended = stage.run("--resume")
    assert ended.code == 0, ended.err
    assert len(stage.table()) == 6
    assert set(stage.calls().values()) == {1}
    after = {row["run_id"]: row["answer"] for row in answers(stage)}
    assert before.items() <= after.items()


def answers(stage):
    return [
        {"run_id": row["run_id"], "answer": row["metric_value"]}
        for row in stage.table("evaluations.csv")
    ]


def test_more_replicates_keep_all_that_is_done(stage):
    stage.write()
    assert stage.run().code == 0
    before = {row["run_id"]: row for row in stage.table()}
    ended = stage.run("--resume", "--set", "run_budget.replicates=5")
    assert ended.code == 0, ended.err
    after = {row["run_id"]: row for row in stage.table()}
    assert len(after) == 15
    assert before.items() <= after.items()
    assert set(stage.calls().values()) == {1}
    ended = stage.run("--resume", "--set", "run_budget.replicates=1")
    assert ended.code == 0, ended.err
    assert "12 results" in ended.err
    assert len(stage.table()) == 3
    assert sum(stage.calls().values()) == 15


def test_a_study_that_was_cut_off_before_its_first_result_leaves_nothing_to_the_next(stage):
    """Attempts and events of one study never become another's."""
    stage.write("held_back_by_excepts")
    command = stage.start_run("--parallel", 2)
    wait_until(stage.witnessed, "a run")
    command.kill(signal.SIGINT)
    assert command.wait().code == 130
    assert stage.done() == []
    assert stage.query("SELECT count(*) > 0 FROM attempts") == [(1,)]
    stage.write(study_id="another", factors=[{"name": "dose", "levels": [5, 6]}])
    ended = stage.run()
    assert ended.code == 0, ended.err
    assert len(stage.table()) == 4
    assert {row["attempt"] for row in stage.table()} == {"1"}
    assert validate_artifacts(stage.output) == []
