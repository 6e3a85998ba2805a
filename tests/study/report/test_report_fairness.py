"""Disclosure in reports: changed plans, pooled agents, copied replicates, changed projects."""

import json
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner
from run_kit import PACKET, make_study, run, run_study
from simulated_study_kit import make_claim, make_plan, make_study as made_up, simulate

from fairtrial import AgentOutput, Broken, Factor, OutcomeSpec, RunBudget, open_results
from fairtrial.cli.main import cli
from fairtrial.core import LedgerError
from fairtrial.optimize import OptimizationResult
from fairtrial.study import full_report, judge_hypotheses, render_markdown_summary
from fairtrial.study.ledger import LedgerReader
from fairtrial.study.ledger.amendments import read_amendments

NONE = "There are none: every planned run and test was made."


def deviations(folder):
    with open_results(folder) as results:
        text = full_report(results.study, results.conditions, results)
    return text.partition("### Deviations from the plan")[2].partition("## Codebook")[0].strip()


def report_json(folder):
    done = CliRunner().invoke(cli, ["report", str(folder), "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


# -- replicates that were changed after results --


def test_replicates_that_were_raised_after_results_are_a_deviation(tmp_path):
    run(make_study(tmp_path, replicates=2))
    assert deviations(tmp_path) == NONE
    run(make_study(tmp_path, replicates=3), resume=True)
    deviation_text = deviations(tmp_path)
    assert re.fullmatch(
        r"- replicates were raised from 2 to 3 after 6 runs were done "
        r"\(\d{4}-\d\d-\d\dT[\d:]+\+00:00\): p values don't allow for that",
        deviation_text,
    )
    assert f"- {report_json(tmp_path)['deviations'][0]}" == deviation_text
    with open_results(tmp_path) as results:
        (amendment,) = read_amendments(results.reader)
        assert (amendment.before, amendment.after, amendment.runs_done) == (2, 3, 6)
        first, second = (session["started_at"] for session in results.reader.sessions.values())
        assert first[:19] <= amendment.at[:19] <= second[:19]
        assert deviation_text in render_markdown_summary(results.study, results, results.conditions)


def test_every_change_is_kept_and_resuming_adds_none(tmp_path):
    run(make_study(tmp_path, replicates=1), limit=1)
    for replicates, runs in ((2, 2), (2, None), (1, None), (1, None)):
        run(make_study(tmp_path, replicates=replicates), limit=runs, resume=True)
    deviation_text = deviations(tmp_path).splitlines()
    assert [line.partition(" (")[0] for line in deviation_text] == [
        "- replicates were raised from 1 to 2 after 1 run was done",
        "- replicates were lowered from 2 to 1 after 6 runs were done",
        "- 3 results of runs that are no longer in the plan left out",
    ]


def test_changes_before_the_first_result_are_no_amendment(tmp_path):
    def break_down(task):
        raise Broken("no network")

    run(make_study(tmp_path, replicates=1, budget={"retries": 0}), break_down)
    run(make_study(tmp_path, replicates=3), resume=True)
    assert deviations(tmp_path) == NONE


def test_budgets_and_notes_are_no_amendment(tmp_path):
    study = make_study(tmp_path, replicates=2)
    run(study)
    budget = RunBudget(replicates=2, parallelism=2)
    run(replace(study, notes="more words", run_budget=budget), resume=True)
    assert deviations(tmp_path) == NONE


def test_unreadable_amendments_are_reported_as_damage(tmp_path):
    run(make_study(tmp_path))
    reader = LedgerReader.open(tmp_path)
    reader.fact = lambda name: '[{"before": 1}]'
    with pytest.raises(LedgerError, match="amendments"):
        read_amendments(reader)
    reader.close()


# -- the table of conditions --


def conditions_table(text):
    part = text.partition("## Conditions")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows if not row[0].startswith(" --")]


def test_agents_that_are_compared_are_not_pooled():
    study = made_up(agent_specs=("rules", "model"), problem_ids=("p",))
    speeds = {"rules": 20.0, "model": 1.0}
    conditions, results = simulate(study, lambda spec, c, rng: speeds[spec.agent_spec_ref])
    head, *rows = conditions_table(full_report(study, conditions, results))
    assert head == ["`arm`", "agent", "n", "failed", "`score` mean (sd)"]
    assert [row[:3] + row[4:] for row in rows] == [
        ["plain", "rules", "5", "20 (0)"],
        ["plain", "model", "5", "1 (0)"],
        ["fancy", "rules", "5", "20 (0)"],
        ["fancy", "model", "5", "1 (0)"],
    ]


def test_a_table_of_many_agents_shows_fewer_conditions():
    agents = tuple(f"a{number}" for number in range(15))
    factor = Factor("arm", levels=tuple("abcde"))
    study = made_up(agent_specs=agents, factors=(factor,), problem_ids=("p",))
    text = full_report(study, *simulate(study, lambda s, c, rng: 1.0))
    assert len(conditions_table(text)) == 1 + 2 * 15
    assert "3 more conditions not shown." in text


def test_an_agent_that_is_a_factor_has_its_column_already():
    study = made_up(factors=(Factor("agent_id", levels=("a", "b")),), agent_specs=())
    study = replace(study, hypotheses=(make_claim(independent_vars=("agent_id",)),))
    head, *rows = conditions_table(full_report(study, *simulate(study, lambda s, c, rng: 1.0)))
    assert head[:2] == ["`agent_id`", "n"]
    assert len(rows) == 2


def test_every_outcome_of_a_hypothesis_has_a_column():
    names = [f"y{number}" for number in range(6)]
    study = made_up(
        outcomes=(OutcomeSpec("score", primary=True), *map(OutcomeSpec, names), OutcomeSpec("z")),
        hypotheses=(make_claim(dependent_vars=tuple(names)),),
    )
    results = simulate(study, lambda s, c, rng: dict.fromkeys([*names, "score", "z"], 1.0))
    head = conditions_table(full_report(study, *results))[0]
    assert head[3:] == [f"`{name}` mean (sd)" for name in ["score", *names]]


def test_other_outcomes_are_shown_while_there_is_room():
    study = made_up(outcomes=(OutcomeSpec("score", primary=True), OutcomeSpec("candidates")))
    results = simulate(study, lambda s, c, rng: {"score": 1.0, "candidates": 3})
    head, first, _ = conditions_table(full_report(study, *results))
    assert head[-1] == "`candidates` mean (sd)"
    assert first[-1] == "3 (0)"


def test_a_test_without_a_plan_decides_nothing_in_every_line():
    study = made_up(analysis_plans=())
    text = full_report(study, *simulate(study, lambda s, c, rng: rng.random()))
    assert "**difference_in_means** (no plan, decides nothing): **exploratory**" in text
    assert "decides)" not in text
    asked = made_up(hypotheses=(make_claim(kind="exploratory"),))
    text = full_report(asked, *simulate(asked, lambda s, c, rng: rng.random()))
    assert "(plan `p`; exploratory, decides nothing): **exploratory**" in text


# -- replicates that are copies --


def make_optimizer(digests):
    """An agent that tells of candidates as optimisers do; `digests` makes them for a task."""

    def propose(task):
        for number, digest in enumerate(digests(task)):
            task.emit("candidate", "", candidate_id=f"0.{number}", digest=digest)
        return AgentOutput({"x": task.factors["x"] + task.rng.random()})

    return propose


def reported(folder, digests):
    study = make_study(
        folder,
        levels=(1, 2),
        replicates=2,
        hypotheses=(make_claim(independent_vars=("x",)),),
        analysis_plans=(make_plan(),),
    )
    run_study(
        study, agent_bindings={"a": make_optimizer(digests)}, problem_registry={"p": PACKET}
    ).close()
    with open_results(folder) as results:
        text = full_report(results.study, results.conditions, results)
        (test,) = judge_hypotheses(results.study, results.conditions, results)
    return text, test


def test_replicates_with_the_same_candidates_are_called_copies(tmp_path):
    def in_any_order(task):
        return [f"a{task.factors['x']}", "b"][:: 1 if task.run_spec.replicate == 1 else -1]

    text, test = reported(tmp_path, in_any_order)
    remark = "Replicates are copies as far as proposals go: everywhere all runs had the same"
    assert remark in text.partition("## Conditions")[2].partition("## Tests")[0]
    assert any(note.startswith(remark) for note in test.notes)


def test_only_conditions_that_were_copied_are_counted(tmp_path):
    def in_part(task):
        return ["a", str(task.run_spec.replicate if task.factors["x"] == 2 else 0)]

    assert "as far as proposals go: in 1 of 2 groups" in reported(tmp_path, in_part)[0]


@pytest.mark.parametrize(
    "digests",
    [
        lambda task: [str(task.run_spec.replicate)],
        lambda task: ["a"] * task.run_spec.replicate,
        lambda task: ["a", None],
        lambda task: [],
    ],
    ids=["others", "more", "unknown", "no candidates"],
)
def test_replicates_that_differ_are_not_called_copies(tmp_path, digests):
    text, test = reported(tmp_path, digests)
    assert "copies" not in text
    assert not any("copies" in note for note in test.notes)


# -- code that was changed between runs --


def test_runs_about_different_states_of_a_project_are_a_deviation(tmp_path):
    trees = iter(["one", "one", "other"])

    def agent(task):
        return {**OptimizationResult(tree=next(trees)).to_output(), "x": 1}

    run(make_study(tmp_path, levels=(1,), replicates=3), agent)
    deviation_text = deviations(tmp_path)
    assert "was changed between runs: they are about 2 different states of it" in deviation_text
    assert "was changed between runs" in report_json(tmp_path)["deviations"][0]
