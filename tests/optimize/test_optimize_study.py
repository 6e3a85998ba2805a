"""Optimizers in studies: options checked before anything runs, budgets, tables, lineages."""

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from optimize_kit import WORKING, OptimizeSite, SimBench

from fairtrial import (
    Check,
    CodeProblem,
    LabError,
    LedgerError,
    Study,
    StudyError,
    resume_study,
    run_study,
)
from fairtrial.arena import Arena, Judgement, Reason, Rejection, Verdict
from fairtrial.arena.slots.threads import NoRoomError
from fairtrial.optimize import Brief, Optimizer, Usage, UsageTotal
from fairtrial.optimize.confirmation import Confirmation, make_result, refuse_unfounded
from fairtrial.optimize.preparation import (
    check_ceilings,
    choose_lineages,
    describe_estimate,
)
from fairtrial.optimize.proposers.chat.proposer import Chat
from fairtrial.optimize.proposers.patches import PatchesProposer
from fairtrial.optimize.proposers.replay import Replay
from fairtrial.optimize.study_events import describe_unjudged
from fairtrial.sandbox import host_lock as quiet
from fairtrial.study import (
    RunBudget,
    RunStatus,
    dry_run_validate,
    open_results,
    render_markdown_summary,
)
from fairtrial_codemod.proposer import CodemodProposer

URL = "http://127.0.0.1:9/v1"
SLOW = """\
def f(xs):
    out = []
    for x in xs:
        if x not in out:
            out.append(x)
    return out
"""


def study(folder, options, **more):
    problem = {"use": "code", "options": {"path": str(folder / "repo/problem.yaml")}}
    return Study(
        "s",
        "Optimizers",
        agents={"opt": {"use": "optimize", "options": {"unsandboxed": not WORKING, **options}}},
        problems={"total": problem},
        agent_specs=("opt",),
        problem_ids=("total",),
        folder=folder,
        output_dir=folder / "repo/results",
        **more,
    )


@pytest.fixture
def site(tmp_path, monkeypatch):
    made = OptimizeSite(tmp_path, None)
    for name, value in {**made.variables(), "KIT_FOLDER": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)

    async def bench(*_):
        yield SimBench()

    monkeypatch.setattr(quiet, "HOST_FOLDER", made.locks)
    monkeypatch.setattr(Arena, "bench", asynccontextmanager(bench))
    return made


# -- mistakes, before anything runs --


def errors(folder, options, **more):
    return "\n".join(dry_run_validate(study(folder, options, **more)).errors)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"proposer_options": {"colour": 1}}, "options.proposer_options.colour: unknown key"),
        ({"proposer": "codemods"}, "options.proposer: there is no proposer 'codemods'"),
        ({"lineages": -1}, "options.lineages: must be 0 or more, got -1"),
        ({"max_candidates": 0}, "options.max_candidates: expected 1 or more, got 0"),
        ({"batch_refine": 0}, "options.batch_refine: expected 1 or more, got 0"),
        ({"max_seconds": 0}, "options.max_seconds: must be more than 0, got 0"),
        ({"patience": "one"}, "options.patience: expected a whole number"),
        ({"proposer": "chat", "proposer_options": {"model": "m"}}, "'base_url' is missing"),
    ],
)
def test_mistakes_in_options_are_found_by_a_dry_run(site, options, why):
    assert why in errors(site.folder, options)


def test_options_that_a_factor_sets_are_checked_as_well(site):
    factor = {"name": "agents.opt.options.proposer_options.most", "levels": [1, 0]}
    assert "most: must be 1 or more, got 0" in errors(site.folder, {}, factors=[factor])


def test_a_missing_key_is_found_by_a_dry_run(site, monkeypatch):
    monkeypatch.delenv("MY_KEY", raising=False)
    chat = {"base_url": URL, "model": "m", "key_variable": "MY_KEY"}
    found = errors(site.folder, {"proposer": "chat", "proposer_options": chat})
    assert "agents.opt.options.proposer_options.key_variable" in found
    monkeypatch.setenv("MY_KEY", "k" * 20)
    assert errors(site.folder, {"proposer": "chat", "proposer_options": chat}) == ""


@pytest.mark.parametrize("whose", ["study", "agent"])
def test_a_ceiling_with_an_unknown_price_refuses_to_start(site, whose):
    chat = {"base_url": URL, "model": "mine"}
    own = {"max_cost_usd": 1.0} if whose == "agent" else {}
    budget = RunBudget(max_cost_usd=2.0 if whose == "study" else None)
    options = {"proposer": "chat", "proposer_options": chat, **own}
    found = errors(site.folder, options, run_budget=budget)
    assert "the price of the model 'mine' is not known" in found
    priced = {**options, "proposer_options": {**chat, "prices": {"mine": [1, 2]}}}
    assert errors(site.folder, priced, run_budget=budget) == ""


def test_in_python_too():
    with pytest.raises(StudyError, match=r"proposer_options.colour: unknown key"):
        Optimizer(proposer_options={"colour": 1})


# -- what a run took --


@pytest.mark.slow
def test_a_study_s_budget_and_tables_see_what_an_optimizer_paid(site):
    options = {
        "proposer": "function",
        "proposer_options": {"use": "proposing:propose"},
        "lineages": 3,
    }
    budget = RunBudget(replicates=3, max_cost_usd=0.05)
    results = run_study(study(site.folder, options, run_budget=budget), executor="serial")
    assert len(results) == 1  # it cost 0.09, and no other was begun
    metrics = results[0].metrics
    assert metrics["cost_usd"] == pytest.approx(0.09)
    assert (metrics["input_tokens"], metrics["output_tokens"]) == (900, 90)
    with open_results(site.folder / "repo/results") as found:
        (run,) = [row for row in found.runs if row["status"] == "success"]
        rows = list(found.candidates)
    assert run["cost_usd"] == pytest.approx(0.09)
    assert {(row["tokens"], row["cost_usd"]) for row in rows} == {(110, 0.01)}
    # The output lies in the project, and must not count as a part of it.
    assert (site.folder / "repo/results/.gitignore").read_text() == "*\n"


@pytest.mark.slow
def test_replayed_replies_cost_the_study_nothing(site):
    options = {
        "proposer": "function",
        "proposer_options": {"use": "proposing:propose"},
        "lineages": 3,
    }
    (first,) = run_study(study(site.folder, options), executor="serial")
    (record,) = (site.folder / "repo/results/workspaces").glob("*/*/replies.jsonl")
    kept = site.folder / "kept.jsonl"
    kept.write_bytes(record.read_bytes())
    again = {"proposer": "replay", "proposer_options": {"path": str(kept)}, "lineages": 3}
    other = replace(study(site.folder, again), output_dir=site.folder / "other")
    results = run_study(other, executor="serial")
    assert results[0].outputs["patch"] == first.outputs["patch"]
    assert results[0].outputs["tokens"] == first.outputs["tokens"] == 990
    assert (results[0].metrics["cost_usd"], results[0].metrics["input_tokens"]) == (0.0, 0)


# -- candidates that nobody could judge, for reasons of ours --

LOST = Judgement(
    "b", "d1", Verdict.INCONCLUSIVE, rejection=Rejection(Reason.EVALUATOR, "it could not be timed")
)
WRONG = Judgement("a", "d0", Verdict.REJECTED, rejection=Rejection(Reason.TESTS, "1 of 2"))


def came_to(*judgements):
    by_digest = {each.digest: each for each in judgements}
    scheduler = SimpleNamespace(judgements=by_digest, spent=UsageTotal(), why_over="")
    return make_result(scheduler, Confirmation(None, {})), by_digest.values()


def test_candidates_that_could_not_be_judged_are_counted_separately():
    result, _ = came_to(WRONG, LOST, replace(WRONG, digest="d2", rejection=None))
    assert (result.candidates, result.passed, result.unjudged) == (2, 1, 1)
    assert describe_unjudged([WRONG, LOST]) == [
        "1 of 2 candidates could not be judged, through no fault of theirs; of the first one: it "
        "could not be timed"
    ]
    assert describe_unjudged([WRONG]) == []


def test_that_nothing_is_worth_taking_is_not_said_of_candidates_that_have_no_verdict():
    refuse_unfounded(*came_to(WRONG))
    with pytest.raises(LabError, match="none that was judged is worth taking, and 1 of 2 cand"):
        refuse_unfounded(*came_to(WRONG, LOST))
    result, judgements = came_to(WRONG, LOST)
    refuse_unfounded(replace(result, best="0.0"), judgements)


def failing_clock(monkeypatch, wanted, error):
    """The clock fails for labels that end so, until it is mended."""

    class Failing(SimBench):
        async def run(self, changes, label, *rest):
            if label.endswith(wanted) and wanted:
                raise error
            return await super().run(changes, label, *rest)

    async def bench(*_):
        yield Failing()

    monkeypatch.setattr(Arena, "bench", asynccontextmanager(bench))


ONE_LINEAGE = {
    "proposer": "function",
    "proposer_options": {"use": "proposing:propose"},
    "lineages": 1,
    "max_candidates": 1,
}


def test_a_base_that_does_not_hold_is_no_failure_of_the_agent(site):
    (site.top / "problem.yaml").write_text(
        json.dumps({"problem_id": "p", "editable": ["src/*.py"], "check": [{"command": ["false"]}]})
    )
    budget = RunBudget(retries=0)
    (run,) = run_study(study(site.folder, ONE_LINEAGE, run_budget=budget), executor="serial")
    assert run.status == RunStatus.BROKEN
    assert "check[0]: on the unchanged base, the command exited with 1" in run.error_info


@pytest.mark.slow
@pytest.mark.parametrize(
    ("label", "error", "told"),
    [
        ("/0.0", LabError("the clock broke"), "it could not be timed: the clock broke"),
        ("/0.0", NoRoomError("no room"), "NoRoomError: no room"),
        ("final/0.0", LabError("the clock broke"), "0.0 looks best, and measuring it again failed"),
    ],
)
def test_a_run_whose_only_candidate_we_could_not_time_is_broken_and_continues(
    site, monkeypatch, label, error, told
):
    failing_clock(monkeypatch, label, error)
    (broken,) = run_study(study(site.folder, ONE_LINEAGE), executor="serial")
    assert (broken.status, told in broken.error_info) == (RunStatus.BROKEN, True), broken.error_info
    asked = site.calls()
    failing_clock(monkeypatch, "", error)
    (found,) = resume_study(study(site.folder, ONE_LINEAGE), executor="serial")
    assert (found.status, found.outputs["best"]) == (RunStatus.SUCCESS, "0.0")
    assert site.calls() == asked, "the answer was paid for"


@pytest.mark.slow
def test_a_run_with_a_winner_reports_unjudged_candidates(site, monkeypatch):
    failing_clock(monkeypatch, "/0.1", LabError("the clock broke"))
    made = study(site.folder, {**ONE_LINEAGE, "max_candidates": 2})
    (found,) = run_study(made, executor="serial")
    assert (found.status, found.outputs["best"]) == (RunStatus.SUCCESS, "0.0")
    assert (found.outputs["candidates"], found.outputs["unjudged"]) == (1, 1)
    values = {row["metric_name"]: row["metric_value"] for row in found.evaluator_outputs}
    assert (values["candidates"], values["unjudged"]) == (1, 1)
    with open_results(site.folder / "repo/results") as results:
        report = render_markdown_summary(made, results)
    assert "through no fault of theirs: 1, in 1 run" in report


def test_the_usage_of_a_reply_is_divided_among_its_candidates():
    whole = Usage("m", 101, 10, 0.3, 3.0)
    assert whole.divided_by(1) is whole
    assert whole.divided_by(2) == Usage("m", 50, 5, 0.15, 1.5)
    assert Usage("m", 8, 8, None).divided_by(2).cost_usd is None


# -- how many lineages there are, what it may cost --


def lineages(proposer, files, most):
    brief = Brief("p", "faster", files)
    return asyncio.run(choose_lineages(proposer, brief, most))


def test_every_patch_has_a_lineage(tmp_path):
    for number in range(5):
        (tmp_path / f"{number}.diff").write_text("")
    proposer = PatchesProposer(tmp_path)
    assert [lineages(proposer, {}, most) for most in (16, 5, 3)] == [5, 5, 3]


def test_codemods_have_a_lineage_for_each_first_proposal_with_room_for_more():
    assert lineages(CodemodProposer(), {"a.py": "x = 1\n"}, 16) == 1
    known = asyncio.run(CodemodProposer().count_first_proposals(Brief("p", "", {"a.py": SLOW})))
    assert known >= 1
    assert lineages(CodemodProposer(), {"a.py": SLOW}, 16) == min(known, 8)
    assert lineages(CodemodProposer(), {"a.py": SLOW}, 1) == 1


@pytest.mark.parametrize(("most", "expected"), [(16, 4), (6, 1), (1, 1), (40, 10)])
def test_of_others_each_lineage_has_a_few_candidates(most, expected):
    assert lineages(Replay(Path("none")), {}, most) == expected


def test_the_estimated_cost_is_shown_before_the_first_request():
    brief = Brief("p", "faster", {"a.py": "x = 1\n" * 500})
    chat = Chat(URL, "mine", prices={"mine": (10.0, 100.0)})
    each = chat.estimate(brief)
    told = describe_estimate(each, 8, None)
    assert f"about 8 answers of mine, some {each.tokens:,} tokens each" in told
    assert f"about ${8 * each.cost_usd:.2f} in all" in told
    assert describe_estimate(each, 8, 0.5).endswith("; asking stops at $0.50.")
    assert "isn't known" in describe_estimate(Chat(URL, "other").estimate(brief), 8, None)
    assert describe_estimate(CodemodProposer().estimate(brief), 8, None) == ""
    assert describe_estimate(Usage("claude", cost_usd=0.5), 4, None).endswith(
        "4 answers of claude: about $2.00 in all."
    )


def test_a_ceiling_that_holds_no_answer_is_refused():
    each = Usage("m", 900, 100, 0.05)
    check_ceilings(each, 1_000, 0.05)
    check_ceilings(each, None, None)
    with pytest.raises(StudyError, match="one answer of m takes some 1,000 tokens, more than the"):
        check_ceilings(each, 999, None)
    with pytest.raises(StudyError, match=r"about \$0.05, more than the ceiling of \$0.01"):
        check_ceilings(each, None, 0.01)


def test_how_patient_it_is_changes_no_answer_and_all_else_does():
    problem = CodeProblem("p", check=(Check(command=("true",)),))

    def setting(problem=problem, **options):
        made = {"base_url": URL, "model": "m", **options}
        arena = SimpleNamespace(problem=problem, tree="t")
        return Optimizer("chat", made)._journal_setting(arena)

    first = setting()
    assert setting(timeout_s=1.0, retries=9, prices={"m": [1, 2]}, most_at_once=2) == first
    for other in (
        setting(model="n"),
        setting(temperature=0.5),
        setting(problem=replace(problem, brief="less memory")),
        setting(problem=replace(problem, check=(Check(command=("false",)),))),
    ):
        assert other != first


@pytest.mark.slow
def test_a_study_whose_problem_was_edited_is_another_study(site):
    options = {"proposer": "function", "proposer_options": {"use": "proposing:nothing"}}
    budget = RunBudget(replicates=2)
    made = study(site.folder, options, run_budget=budget)
    run_study(made, executor="serial", limit=1)
    path = site.folder / "repo/problem.yaml"
    path.write_text(json.dumps({**json.loads(path.read_text()), "min_effect": 0.5}))
    with pytest.raises(LedgerError, match=r"code problems\.total\.min_effect: 0\.02 -> 0\.5"):
        run_study(made, executor="serial", resume=True)
    results = run_study(made, executor="serial", resume=True, accept_changes=True)
    assert len(results) == 2
