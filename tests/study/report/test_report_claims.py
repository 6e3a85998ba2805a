"""Claims that were changed after results were known: recorded, reported, and exploratory."""

import json
import random
import re
import sqlite3
from dataclasses import replace

import pytest
from click.testing import CliRunner
from simulated_study_kit import level, make_claim, make_plan, make_study, noisy, simulate

from fairtrial import Broken, open_results
from fairtrial.cli.main import cli
from fairtrial.core import LedgerError
from fairtrial.study import (
    Contrast,
    Factor,
    HypothesisDirection,
    HypothesisKind,
    Level,
    OutcomeSpec,
    RunBudget,
    RunOutput,
    full_report,
    judge_hypotheses,
    resume_study,
    run_study,
)
from fairtrial.study.ledger.amendments import CHANGES_FACT, FIRST_STUDY_FACT
from fairtrial.study.ledger.claim_history import read_claim_history
from fairtrial.study.report.verdicts import TestVerdict

H1 = make_claim(
    direction=HypothesisDirection.GREATER,
    contrast=Contrast(left="fancy", right="plain"),
    minimum_effect_of_interest=0.3,
)
H2 = replace(H1, hypothesis_id="h2", label="Fancy is fast", dependent_vars=("speed",))
H2_ON_BOTH = replace(H2, dependent_vars=("speed", "score"))
H3 = replace(H1, hypothesis_id="h3", label="Another")
PLAN = make_plan("welch_t", hypothesis_ids=("h1", "h2"), multiple_comparison_policy="holm")
OUTCOMES = (OutcomeSpec("score", primary=True), OutcomeSpec("speed"))
LATE = pytest.warns(UserWarning, match="claims changed after 20 results were known")
KNOWN = "after 20 results were known"


def runner(run_spec, condition):
    rng = random.Random(run_spec.seed)
    score = 2.0 * (level(condition) == "fancy") + rng.gauss(0, 1)
    return RunOutput({}, {"score": score, "speed": rng.gauss(0, 1)})


def break_down(run_spec, condition):
    raise Broken("no network")


def make(folder, **parts):
    given = {
        "hypotheses": (H1, H2),
        "analysis_plans": (PLAN,),
        "outcomes": OUTCOMES,
        "condition_runner": "test_report_claims:runner",
        "problem_ids": (),
        "agent_specs": (),
        "run_budget": RunBudget(replicates=10),
        **parts,
    }
    return make_study(output_dir=str(folder), **given)


def run(study, **settings):
    settings = {"condition_runner": runner, "show_progress": False, **settings}
    return run_study(study, **settings)


def report(folder):
    done = CliRunner().invoke(cli, ["report", str(folder), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def standings(reported):
    return {test["hypothesis_id"]: test["standing"] for test in reported["tests"]}


# -- each kind of change --

BOTH, ONLY_H1 = {"h1", "h2"}, {"h1"}
CHANGED = {
    # what is changed, what the report says of it, which verdicts are exploratory for it
    "added": (
        {
            "hypotheses": (H1, H2, H3),
            "analysis_plans": (replace(PLAN, hypothesis_ids=("h1", "h2", "h3")),),
        },
        [
            "hypotheses[h3]: added",
            'analysis_plans[p].hypothesis_ids: ["h1","h2"] -> ["h1","h2","h3"]',
        ],
        {"h3"},
    ),
    "added, and p may shrink": (
        {
            "hypotheses": (H1, H2, H3),
            "analysis_plans": (
                replace(PLAN, hypothesis_ids=("h1", "h2", "h3"), multiple_comparison_policy="bh"),
            ),
        },
        ["hypotheses[h3]: added", 'analysis_plans[p].multiple_comparison_policy: "holm" -> "bh"'],
        {"h1", "h2", "h3"},
    ),
    "removed": (
        {"hypotheses": (H1,), "analysis_plans": (replace(PLAN, hypothesis_ids=("h1",)),)},
        ["hypotheses[h2]: removed"],
        ONLY_H1,  # it no longer shares p with h2
    ),
    "direction": (
        {"hypotheses": (replace(H1, direction=HypothesisDirection.LESS), H2)},
        ['hypotheses[h1].direction: "greater" -> "less"'],
        BOTH,
    ),
    "contrast": (
        {"hypotheses": (replace(H1, contrast=Contrast(left="plain", right="fancy")), H2)},
        ['hypotheses[h1].contrast.left: "fancy" -> "plain"'],
        BOTH,
    ),
    "minimum": (
        {"hypotheses": (replace(H1, minimum_effect_of_interest=0.1), H2)},
        ["hypotheses[h1].minimum_effect_of_interest: 0.3 -> 0.1"],
        BOTH,
    ),
    "test": (
        {"analysis_plans": (replace(PLAN, tests=("mann_whitney",)),)},
        ['analysis_plans[p].tests: ["welch_t"] -> ["mann_whitney"]'],
        BOTH,
    ),
    "policy": (
        {"analysis_plans": (replace(PLAN, multiple_comparison_policy="none"),)},
        ['analysis_plans[p].multiple_comparison_policy: "holm" -> "none"'],
        BOTH,
    ),
    "a stricter policy": (
        {"analysis_plans": (replace(PLAN, multiple_comparison_policy="bonferroni"),)},
        ['analysis_plans[p].multiple_comparison_policy: "holm" -> "bonferroni"'],
        set(),  # it can't turn a claim that fails into one that holds
    ),
    "filters": (
        {"analysis_plans": (replace(PLAN, filters={"replicate": [1, 2, 3, 4, 5]}),)},
        ["analysis_plans[p].filters.replicate: added: [1,2,3,4,5]"],
        BOTH,
    ),
    "another plan": (
        {"analysis_plans": (replace(PLAN, analysis_plan_id="q"),)},
        ["analysis_plans[p]: removed", "analysis_plans[q]: added"],
        BOTH,
    ),
    "outcome added": (
        {"outcomes": (*OUTCOMES, OutcomeSpec("joy"))},
        ["outcomes[joy]: added"],
        set(),
    ),
    "outcome redefined": (
        {"outcomes": (OutcomeSpec("score", primary=True, column="speed"), OUTCOMES[1])},
        ['outcomes[score].column: "score" -> "speed"'],
        BOTH,
    ),
    "missing data": (
        {"outcomes": (replace(OUTCOMES[0], missing_data_policy="zero"), OUTCOMES[1])},
        ['outcomes[score].missing_data_policy: "drop" -> "zero"'],
        BOTH,
    ),
    "primary": (
        {"outcomes": (OutcomeSpec("score"), OutcomeSpec("speed", primary=True))},
        ["outcomes[score].primary: true -> false", "outcomes[speed].primary: false -> true"],
        set(),  # both claims name their outcome
    ),
}


@pytest.fixture(scope="module")
def done_study(tmp_path_factory):
    """A study with all its results, for tests that change nothing in it."""
    folder = tmp_path_factory.mktemp("done")
    run(make(folder))
    return folder


@pytest.mark.parametrize("name", CHANGED)
def test_a_report_with_other_claims_says_what_was_changed_and_what_is_exploratory(done_study, name):
    changes, lines, exploratory = CHANGED[name]
    study = make(done_study, **changes)
    with open_results(done_study) as results:
        tests = judge_hypotheses(study, results.conditions, results)
        text = full_report(study, results.conditions, results)
    reported = text.partition("### Deviations from the plan")[2].partition("## Codebook")[0]
    for line in lines:
        assert f"- claims were changed {KNOWN} (for this report): `{line}`" in reported
    assert {test.hypothesis_id for test in tests if test.standing == "exploratory"} == exploratory
    for test in tests:
        assert (test.verdict is TestVerdict.EXPLORATORY) == (test.hypothesis_id in exploratory)
        assert (KNOWN in test.why) == (test.hypothesis_id in exploratory)
        assert test.to_row()["standing"] == test.standing


@pytest.mark.parametrize("way", ["run", "resume", "directory"])
def test_a_change_is_kept_in_the_ledger_however_it_was_made(tmp_path, way):
    run(make(tmp_path))
    assert standings(report(tmp_path)) == {"h1": "confirmatory", "h2": "confirmatory"}
    changed = make(tmp_path, hypotheses=(replace(H1, direction=HypothesisDirection.LESS), H2))
    if way == "directory":
        with open_results(tmp_path) as results:
            study = replace(results.study, hypotheses=changed.hypotheses)
    else:
        study = changed
    with LATE:
        if way == "run":
            run(study, resume=True)
        else:
            resume_study(study, condition_runner=runner, show_progress=False)
    reported = report(tmp_path)
    assert standings(reported) == {"h1": "exploratory", "h2": "exploratory"}
    line, *verdicts = reported["deviations"]
    assert re.fullmatch(
        rf"claims were changed {KNOWN} \(\d{{4}}-[\d:T+-]+\): "
        r'`hypotheses\[h1\]\.direction: "greater" -> "less"`',
        line,
    )
    assert verdicts == [
        "`h1` on `score`: as laid down: supported; as changed: contradicted, exploratory",
        "`h2` on `speed`: as laid down: inconclusive; as changed: inconclusive, exploratory",
    ]
    first, second = reported["tests"]
    assert first["verdict"] == second["verdict"] == "exploratory"
    assert first["why"].startswith(f"changed {KNOWN}; ")
    assert second["why"].startswith(f"other claims of its plan were changed {KNOWN}")
    assert reported["claims"]["results_known"] == 0
    (change,) = reported["claims"]["changes"]
    assert (change["results_known"], len(change["changes"])) == (20, 1)


def test_tables_and_later_commands_have_the_changed_standing(tmp_path):
    run(make(tmp_path))
    with LATE:
        run(
            make(tmp_path, hypotheses=(H1, replace(H2, minimum_effect_of_interest=1.0))),
            resume=True,
        )
    for words in (["export", str(tmp_path)], ["export", str(tmp_path), "--sqlite"]):
        done = CliRunner().invoke(cli, words)
        assert done.exit_code == 0, done.output
        claims = json.loads((tmp_path / "manifest.json").read_text())["claims"]
        assert [entry["standing"] for entry in claims["standing"]] == ["exploratory"] * 2
        (change,) = claims["changes"]
        assert change["changes"] == ["hypotheses[h2].minimum_effect_of_interest: 0.3 -> 1.0"]
    run(make(tmp_path, hypotheses=(H1, replace(H2, minimum_effect_of_interest=1.0))), resume=True)
    assert len(report(tmp_path)["claims"]["changes"]) == 1  # going on adds none


@pytest.mark.parametrize(
    "changes",
    [
        {"hypotheses": (H2_ON_BOTH, H1)},
        {"outcomes": OUTCOMES[::-1]},
        {"analysis_plans": (replace(PLAN, tests=("Welch",), hypothesis_ids=("h2", "h1")),)},
        {"analysis_plans": (replace(PLAN, multiple_comparison_policy="Holm-Bonferroni"),)},
        {"analysis_plans": (replace(PLAN, notes="later", plots=("a",)),)},
        {"hypotheses": (H1, replace(H2, dependent_vars=("score", "speed")))},
        {
            "hypotheses": (
                replace(H1, notes="n", statement="Fancy  runs\nscore higher."),
                H2_ON_BOTH,
            )
        },
        {"outcomes": (replace(OUTCOMES[0], description="d"), OUTCOMES[1]), "title": "Other"},
    ],
    ids=[
        "order",
        "outcomes",
        "alias",
        "policy alias",
        "plots",
        "variables",
        "spaces",
        "description",
    ],
)
def test_a_different_spelling_of_the_same_claims_is_no_change(tmp_path, changes):
    first = (H1, H2_ON_BOTH)
    changes = {"hypotheses": first, **changes}
    run(make(tmp_path, hypotheses=first))
    run(make(tmp_path, **changes), resume=True)
    reported = report(tmp_path)
    assert reported["deviations"] == []
    assert set(standings(reported).values()) == {"confirmatory"}


def test_changed_labels_are_reported_and_the_test_stays_confirmatory(tmp_path):
    run(make(tmp_path))
    with LATE:
        run(make(tmp_path, hypotheses=(replace(H1, statement="Fancy is slower."), H2)), resume=True)
    reported = report(tmp_path)
    (line,) = reported["deviations"]
    assert line.endswith("hypotheses[h1].statement: other words for the same test`")
    assert set(standings(reported).values()) == {"confirmatory"}


def test_claims_may_change_before_the_first_result(tmp_path):
    run(make(tmp_path, run_budget=RunBudget(retries=0)), condition_runner=break_down)
    changed = make(tmp_path, hypotheses=(replace(H1, direction=HypothesisDirection.LESS), H2))
    run(changed, resume=True)
    reported = report(tmp_path)
    assert reported["deviations"] == []
    assert set(standings(reported).values()) == {"confirmatory"}


def test_one_known_result_makes_a_changed_claim_exploratory(tmp_path):
    run(make(tmp_path), limit=1)
    changed = make(tmp_path, hypotheses=(replace(H1, direction=HypothesisDirection.LESS), H2))
    with pytest.warns(UserWarning, match="after 1 result was"):
        run(changed, resume=True)
    reported = report(tmp_path)
    assert "changed after 1 result was known" in reported["deviations"][0]
    assert standings(reported)["h1"] == "exploratory"


def test_replaced_results_count_as_known(tmp_path):
    def fail(run_spec, condition):
        raise RuntimeError("no")

    run(make(tmp_path), condition_runner=fail, keep_going=True)
    again = make(tmp_path, run_budget=RunBudget(replicates=10, retries=0))
    run(again, condition_runner=break_down, resume=True, retry="failed", keep_going=True)
    changed = make(tmp_path, hypotheses=(replace(H1, direction=HypothesisDirection.LESS), H2))
    with LATE:
        run(changed, resume=True)
    assert standings(report(tmp_path))["h1"] == "exploratory"


def test_results_that_left_the_plan_count_as_known(tmp_path):
    run(make(tmp_path))
    policy = replace(make(tmp_path).seed_policy, base_seed=7)
    run(
        make(tmp_path, seed_policy=policy, run_budget=RunBudget(replicates=10, retries=0)),
        resume=True,
        accept_changes=True,
        condition_runner=break_down,
        keep_going=True,
    )
    changed = make(
        tmp_path,
        seed_policy=policy,
        hypotheses=(replace(H1, direction=HypothesisDirection.LESS), H2),
    )
    with LATE:
        run(changed, resume=True)
    assert standings(report(tmp_path))["h1"] == "exploratory"


def test_a_claim_that_is_changed_back_is_confirmatory_again(tmp_path):
    run(make(tmp_path))
    with LATE:
        run(
            make(tmp_path, hypotheses=(replace(H1, direction=HypothesisDirection.LESS), H2)),
            resume=True,
        )
    with LATE:
        run(make(tmp_path), resume=True)
    reported = report(tmp_path)
    assert set(standings(reported).values()) == {"confirmatory"}
    assert len(reported["deviations"]) == 2


def test_without_a_policy_claims_of_a_plan_do_not_affect_each_other(tmp_path):
    plan = replace(PLAN, multiple_comparison_policy="none")
    run(make(tmp_path, analysis_plans=(plan,)))
    changed = (H1, replace(H2, direction=HypothesisDirection.LESS))
    with LATE:
        run(make(tmp_path, analysis_plans=(plan,), hypotheses=changed), resume=True)
    assert standings(report(tmp_path)) == {"h1": "confirmatory", "h2": "exploratory"}


@pytest.mark.parametrize(
    ("policy", "harmed"), [("holm", False), ("bonferroni", False), ("bh", True)]
)
def test_an_added_claim_makes_others_exploratory_where_it_may_lower_their_p(
    tmp_path, policy, harmed
):
    plan = replace(PLAN, multiple_comparison_policy=policy)
    run(make(tmp_path, analysis_plans=(plan,)))
    more = replace(plan, hypothesis_ids=("h1", "h2", "h3"))
    with open_results(tmp_path) as results:
        study = make(tmp_path, hypotheses=(H1, H2, H3), analysis_plans=(more,))
        tests = judge_hypotheses(study, results.conditions, results)
    assert [test.standing == "exploratory" for test in tests] == [harmed, harmed, True]


def test_another_baseline_makes_another_claim(tmp_path):
    open_claim = replace(H1, contrast=None)
    parts = {"hypotheses": (open_claim,), "analysis_plans": (make_plan("welch_t"),)}
    run(make(tmp_path, **parts))
    levels = (Level("plain", "plain"), Level("fancy", "fancy", metadata={"is_baseline": True}))
    turned = make(tmp_path, factors=(Factor("arm", levels=levels),), **parts)
    with pytest.raises(LedgerError, match="--accept-changes"):
        run(turned, resume=True)
    with LATE:
        run(turned, resume=True, accept_changes=True)
    reported = report(tmp_path)
    assert standings(reported) == {"h1": "exploratory"}
    assert any(
        "the study was changed" in line and "is_baseline" in line for line in reported["deviations"]
    )


def test_a_hypothesis_that_no_plan_decides_on_was_never_confirmatory(tmp_path):
    question = replace(H2, kind=HypothesisKind.EXPLORATORY)
    run(make(tmp_path, hypotheses=(H1, question, H3)))
    reported = report(tmp_path)
    assert standings(reported) == {"h1": "confirmatory", "h2": "exploratory", "h3": "exploratory"}
    assert reported["deviations"] == []
    with open_results(tmp_path) as results:
        text = full_report(results.study, results.conditions, results)
    assert "Confirmatory, laid down before the first result: `h1`. Exploratory" in text


# -- what nobody noted --


def forget(folder):
    """Make a ledger look as if an earlier version had begun it."""
    with sqlite3.connect(folder / "ledger.sqlite") as connection:
        connection.execute(
            "DELETE FROM facts WHERE name IN (?, ?)", (FIRST_STUDY_FACT, CHANGES_FACT)
        )
    connection.close()


def test_with_an_older_ledger_the_standing_is_unknown(tmp_path):
    run(make(tmp_path))
    verdicts = [test["verdict"] for test in report(tmp_path)["tests"]]
    forget(tmp_path)
    reported = report(tmp_path)
    assert [test["verdict"] for test in reported["tests"]] == verdicts
    assert set(standings(reported).values()) == {"unknown"}
    (line,) = reported["deviations"]
    assert "is not known: it was not recorded when this ledger was started" in line
    run(make(tmp_path), resume=True)
    assert set(standings(report(tmp_path)).values()) == {"unknown"}
    with LATE:
        run(make(tmp_path, hypotheses=(H1, H2, H3)), resume=True)
    reported = report(tmp_path)
    assert standings(reported) == {"h1": "unknown", "h2": "unknown", "h3": "exploratory"}
    assert "recorded only since 20 results were known" in reported["deviations"][0]
    assert reported["deviations"][1].endswith("`hypotheses[h3]: added`")


def test_with_an_older_ledger_changes_for_a_report_are_still_reported(tmp_path):
    run(make(tmp_path))
    forget(tmp_path)
    with open_results(tmp_path) as results:
        study = replace(results.study, hypotheses=(H1, H2, H3))
        text = full_report(study, results.conditions, results)
    assert "it was not recorded when this ledger was started" in text
    assert f"{KNOWN} (for this report): `hypotheses[h3]: added`" in text
    assert "Not known to be laid down before the first result: `h1`, `h2`." in text


def test_without_a_ledger_the_standing_is_unknown():
    study = make_study()
    conditions, results = simulate(study, noisy(fancy=3.0))
    (test,) = judge_hypotheses(study, conditions, results)
    assert (test.standing, test.verdict) == ("unknown", TestVerdict.SUPPORTED)
    assert "come without a ledger" in full_report(study, conditions, results)


@pytest.mark.parametrize("text", ['{"study": {}}', "[]", "no JSON", '{"study": {"study_id": 1}}'])
def test_an_unreadable_record_is_reported_as_damage(done_study, text):
    with open_results(done_study) as results:
        results.reader.fact = lambda name: text if name == FIRST_STUDY_FACT else None
        with pytest.raises(LedgerError, match="history of the claims"):
            read_claim_history(results.reader)


# -- what else a report owns up to --


def test_accepted_changes_are_reported(tmp_path):
    run(make(tmp_path))
    factors = (Factor("arm", levels=("plain", "fancy", "wild")),)
    run(make(tmp_path, factors=factors), resume=True, accept_changes=True)
    reported = report(tmp_path)
    assert any(
        f"the study was changed {KNOWN}" in line and "factors[arm].levels[wild]: added" in line
        for line in reported["deviations"]
    )
    assert set(standings(reported).values()) == {"confirmatory"}  # their contrasts name two levels


def test_changed_limits_are_reported(tmp_path):
    run(make(tmp_path))
    run(make(tmp_path, run_budget=RunBudget(replicates=10, timeout_s=60.0)), resume=True)
    (line,) = report(tmp_path)["deviations"]
    assert line.endswith("run_budget.timeout_s: null -> 60.0`")


def test_repeated_failed_runs_are_reported(tmp_path):
    is_mended = False

    def sometimes(run_spec, condition):
        if run_spec.replicate <= 2 and not (is_mended and run_spec.replicate == 1):
            raise RuntimeError("no")
        return runner(run_spec, condition)

    run(make(tmp_path), condition_runner=sometimes)
    assert not any("run again" in line for line in report(tmp_path)["deviations"])
    is_mended = True
    run(make(tmp_path), condition_runner=sometimes, resume=True, retry="failed")
    assert (
        "4 runs that had failed were run again on request, of which 2 succeeded then: "
        "p values don't allow for that"
    ) in report(tmp_path)["deviations"]


def test_runs_at_different_commits_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "fairtrial.study.tables.provenance.read_commit", lambda folder: ("a" * 40, False)
    )
    run(make(tmp_path), limit=5)
    monkeypatch.setattr(
        "fairtrial.study.tables.provenance.read_commit", lambda folder: ("a" * 40, True)
    )
    run(make(tmp_path), resume=True)
    assert (
        "runs were made at different commits, so that agents may have changed: "
        "`aaaaaaaaaaaa` (5 runs), `aaaaaaaaaaaa with changes` (15 runs)"
    ) in report(tmp_path)["deviations"]


def test_runs_with_different_package_versions_are_reported(tmp_path, monkeypatch):
    for settings in ({"limit": 5}, {"resume": True}):
        version = "1.0" if "limit" in settings else "2.0"
        versions = {"model-client": version, "numpy": "1"}
        monkeypatch.setattr(
            "fairtrial.study.tables.provenance._versions", lambda study, v=versions: v
        )
        run(make(tmp_path), **settings)
    assert report(tmp_path)["deviations"] == [
        "runs were made with different versions of `model-client`: `1.0`, `2.0`"
    ]


def test_a_study_that_was_ended_by_a_budget_says_so(tmp_path):
    def dear(run_spec, condition):
        return replace(runner(run_spec, condition), metrics={"score": 1.0, "cost_usd": 1.0})

    run(
        make(tmp_path, run_budget=RunBudget(replicates=10, max_cost_usd=3.0)), condition_runner=dear
    )
    assert any("not done (a budget ended it)" in line for line in report(tmp_path)["deviations"])
