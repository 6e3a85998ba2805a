"""`fairtrial optimize`: what it says, how it ends, what it does to the user's files, and resuming.

The clock is simulated (`optimize_kit`): what is timed, and how well, is other tests' business.
"""

import json
from types import SimpleNamespace

import anyio
import pytest
from optimize_desk import Desk
from optimize_kit import (
    FILES,
    MODULE,
    NOTHING,
    WORKING,
    OptimizeSite,
    fingerprint,
)

from fairtrial import OutcomeSpec, Study, run_study
from fairtrial.cli import optimize
from fairtrial.cli.optimize_errors import explain_failure
from fairtrial.core import StudyError
from fairtrial.core.events import ignore_event
from fairtrial.optimize import Brief, Proposer
from fairtrial.optimize.journal import JournalState
from fairtrial.optimize.lineage import LoopRules
from fairtrial.optimize.loop import OptimizeLoop
from fairtrial.optimize.requests import ProposerClient
from fairtrial.optimize.scheduler import Scheduler
from fairtrial.sandbox import selection as choosing
from fairtrial.study import runner
from fairtrial.study.agents.journal import Journal
from fairtrial.study.ledger.writer import open_ledger

pytestmark = pytest.mark.slow

needs_sandbox = pytest.mark.skipif(not WORKING, reason="no full sandbox works here")
WINNER = MODULE.format(8, 8)
CODEMOD = ("--agent", "codemod", "--option", 'families=["sorts"]')


@pytest.fixture
def desk(tmp_path, monkeypatch):
    return Desk(OptimizeSite(tmp_path, None), monkeypatch)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A desk where an optimization has been done, and what that said."""
    with pytest.MonkeyPatch.context() as patch:
        desk = Desk(OptimizeSite(tmp_path_factory.mktemp("finished"), None), patch)
        before = [fingerprint(desk.site.top / name) for name in ("src", ".git")]
        said = desk.optimize()
        after = [fingerprint(desk.site.top / name) for name in ("src", ".git")]
        assert after == before, "nobody had asked for that"
        yield desk, said


@pytest.fixture
def tidy(finished):
    """The same, with the user's files as they were afterwards."""
    desk, _ = finished
    yield desk
    desk.git("checkout", "--quiet", ".")


# -- what it says --


@needs_sandbox
def test_progress_and_the_place_of_the_winner_are_printed(finished):
    desk, (code, out, err) = finished
    assert code == 0
    estimate = "up to 16 candidates; timing them, and the best again, takes 22 min at most"
    assert err.startswith(estimate)
    steps = [
        "0.0  proposed (initial): initial-0",
        "1.0  rejected: different results: 2 of 2 calls of mod:total differ from the base",
        "1.1  proposed (repair of 1.0): same as 0.0",
        "0.1  proposed (refine of 0.0): refine-0",
        "2.0  slower, 0.33",
        "0.1  faster, ",
        "best so far: 0.1, ",
        "lineage 0, adapt: answered in 0.0 s; so far ",
        "; nothing more to say",
        "measuring 0.1 again",
    ]
    assert [step for step in steps if step not in err] == []
    assert "5 judged, 4 passed their checks; why it ended: 2 lineages: " in out
    assert "The best is 0.1: 3.999x [" in out
    assert "patch:       out/best.patch\nexplanation: out/best.md\n" in out
    patch = (desk.site.folder / "out/best.patch").read_text()
    # In the project's own tree it would be a part of the next start's base.
    assert (desk.site.folder / "out/.gitignore").read_text() == "*\n"
    assert "+    return sum([i for i in range(n) for _ in range(8)]) // 8" in patch
    assert (desk.site.folder / "out/best.md").read_text().startswith("# `total`: ")


@needs_sandbox
def test_what_is_finished_asks_nobody_and_says_the_same(finished):
    desk, _ = finished
    before = desk.site.calls(), (desk.site.folder / "out/best.patch").read_bytes()
    code, out, err = desk.optimize("--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert (found["ok"], found["is_new"], found["best"], found["done"]) == (True, False, "0.1", [])
    assert (found["candidates"], found["passed"], found["tokens"]) == (5, 4, 990)
    assert found["cost_usd"] == pytest.approx(0.09)
    assert found["low"] < found["ratio"] < found["high"]
    assert "edits" not in found
    assert found["patch"].encode() == before[1]
    after = desk.site.calls(), (desk.site.folder / "out/best.patch").read_bytes()
    assert after == before
    code, out, err = desk.optimize()
    assert code == 0
    assert "The best is 0.1: 3.999x [" in out
    assert "found earlier, and done with; to look again, name a new --output" in err


@needs_sandbox
def test_other_rules_are_another_optimization(finished):
    desk, _ = finished
    code, _, err = desk.optimize("--max-candidates", "3")
    assert code == 3
    assert "out holds another optimization:" in err
    assert "max_candidates: 16 -> 3" in err
    assert err.rstrip().endswith("choose another --output")


@needs_sandbox
def test_each_base_and_each_set_of_rules_has_a_folder_of_its_own(desk):
    def where(*options):
        code, out, _ = desk.optimize("--json", *options, asking=NOTHING, output="")
        assert code == 0
        told = json.loads(out)
        return told["output_dir"].removeprefix("artifacts/optimize-total"), told["is_new"]

    assert where() == ("", True)
    assert where() == ("", False)
    assert where("--max-candidates", "3") == ("-2", True)
    assert where() == ("", False)
    right = desk.module.read_text()
    desk.module.write_text(right + "\n# another base\n")
    assert where() == ("-3", True)
    assert where() == ("-3", False)
    assert where("--apply") == ("-3", False)
    desk.module.write_text(right + "\n# a third\n")
    assert where("--apply") == ("-3", False)  # what was found is taken, whatever has changed since
    desk.module.write_text(right)
    assert where() == ("", False)


@needs_sandbox
@pytest.mark.parametrize("output", ["", "out"])
def test_one_that_was_killed_before_it_began_continues(desk, output):
    folder = desk.site.folder / (output or "artifacts/optimize-total")
    folder.mkdir(parents=True)
    (folder / ".gitignore").write_text("*\n")
    open_ledger(folder).close()
    code, out, err = desk.optimize("--json", asking=NOTHING, output=output)
    assert (code, err) == (0, "")
    assert desk.site.folder / json.loads(out)["output_dir"] == folder


@needs_sandbox
def test_a_changed_problem_is_optimized_again(desk):
    """Also if its file lies elsewhere, so that the tree is the same."""
    path = desk.site.folder / "elsewhere.yaml"
    problem = json.loads((desk.site.top / "problem.yaml").read_text())

    def where(*options, **changed):
        path.write_text(json.dumps({**problem, "repo": "repo", **changed}))
        code, out, _ = desk.optimize("--json", *options, asking=CODEMOD, problem=path, output="")
        assert code == 0, out
        told = json.loads(out)
        return told["output_dir"].removeprefix("artifacts/optimize-total"), told["is_new"]

    assert where() == ("", True)
    assert where() == ("", False)
    assert where(min_effect=0.5) == ("-2", True)
    assert where("--branch", "other", min_effect=0.5) == ("-2", False)
    assert where() == ("", False)


def test_another_study_is_not_replaced_also_if_it_came_to_nothing(desk):
    def fail(task):
        raise ValueError("no")

    folder = desk.site.folder / "out"
    study = Study("mine", "mine", outcomes=(OutcomeSpec("answer"),), output_dir=folder)
    run_study(study, agent_bindings={"default-agent": fail}, show_progress=False)
    code, out, err = desk.optimize("--unsandboxed", asking=NOTHING)
    assert (code, out) == (3, "")
    told = "out holds the results of the study 'mine' (mine); choose another --output"
    assert err == f"error: {told}\n"


def test_a_second_interrupt_names_the_command_that_continues(desk, monkeypatch):
    def leave_at_once(study, settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "execute_study", leave_at_once)
    code, out, err = desk.optimize("--unsandboxed", asking=NOTHING)
    assert (code, out) == (130, "")
    assert err.endswith("the same command continues where it stopped\n")


@needs_sandbox
def test_a_failed_optimization_can_be_repeated_after_its_cause_is_fixed(desk):
    """Whatever was mended: the problem's file, or the rules. There is nothing to lose."""
    path = desk.site.folder / "elsewhere.yaml"
    problem = json.loads((desk.site.top / "problem.yaml").read_text())
    folder = desk.site.folder / "artifacts/optimize-total"

    def look(*options, **changed):
        path.write_text(json.dumps({**problem, "repo": "repo", **changed}))
        code, out, _ = desk.optimize("--json", *options, asking=CODEMOD, problem=path, output="")
        return code, json.loads(out)

    broken = [{"command": ["false"]}]
    assert look(check=broken)[0] == 2
    code, told = look("--max-candidates", "3", check=broken)
    assert (code, desk.site.folder / told["output_dir"]) == (2, folder)
    code, told = look("--max-candidates", "3")
    assert (code, told["is_new"], desk.site.folder / told["output_dir"]) == (0, True, folder)
    # Now there is something, and other rules are another optimization.
    code, told = look()
    assert (code, told["output_dir"]) == (0, "artifacts/optimize-total-2")


@pytest.mark.parametrize(
    ("output", "code", "why"),
    [
        ("repo/src", 3, "repo/src holds something else: results of code problems need a folder"),
        ("out-\udcff", 2, "'out-\\udcff' is no text"),
    ],
)
def test_a_folder_that_will_not_do_is_refused_before_any_work(desk, output, code, why):
    before = fingerprint(desk.site.top / "src")
    found, out, err = desk.optimize("--unsandboxed", asking=NOTHING, output=output)
    assert (found, out) == (code, "")
    assert why in err
    assert fingerprint(desk.site.top / "src") == before
    assert desk.site.calls() == {}


@pytest.mark.parametrize(
    ("agent", "option"), [("replay", "path"), ("patches", "folder"), ("command", "home")]
)
@pytest.mark.parametrize("path", ["~nobody-at-all/x", "a\0b", "\ud800"])
def test_what_can_be_no_path_is_refused(desk, agent, option, path):
    more = ("--option", 'argv=["true"]') if agent == "command" else ()
    asking = ("--agent", agent, "--option", f"{option}={json.dumps(path)}", *more)
    code, out, err = desk.optimize(asking=asking)
    assert (code, out) == (2, "")
    assert f"--agent {agent} --option {option}: " in err
    assert_nothing_done(desk)


def test_what_is_wrong_with_a_record_is_said_with_file_and_line(desk):
    record = desk.site.top / "kept.jsonl"
    asking = ("--agent", "replay", "--option", "path=kept.jsonl")
    assert f"--option path: there is no {record}; name a replies" in desk.optimize(asking=asking)[2]
    record.write_text('\n{"version": 1, "ke')
    assert f"{record}:2: is not JSON" in desk.optimize(asking=asking)[2]


@needs_sandbox
def test_a_folder_that_was_named_says_which_base_it_is_about(tidy):
    tidy.module.write_text(FILES["src/mod.py"] + "\n# another base\n")
    code, out, err = tidy.optimize()
    assert code == 0
    assert "The best is 0.1: 3.999x [" in out
    assert "found earlier, for the project as it was then; to look again, name a new" in err


# -- where the winner goes --


@needs_sandbox
def test_a_branch_holds_the_winner_and_no_file_changes(finished):
    desk, _ = finished
    head, before = desk.git("rev-parse", "HEAD"), desk.module.read_text()
    code, out, _ = desk.optimize("--branch", "faster")
    assert code == 0
    assert f"branch faster is at {desk.git('rev-parse', 'faster')[:12]}" in out
    assert desk.git("show", "faster:src/mod.py") == WINNER.strip()
    assert desk.git("rev-parse", "faster^") == head == desk.git("rev-parse", "HEAD")
    assert desk.git("log", "-1", "--format=%s", "faster") == "total: 3.999x as fast"
    assert (desk.module.read_text(), desk.git("status", "--short")) == (before, "")
    # A second time it is refused, and so is what can be no branch.
    told = "has a branch faster already: name another"
    code, out, err = desk.optimize("--branch", "faster")
    assert (code, out) == (2, "")
    assert told in err
    code, out, _ = desk.optimize("--branch", "faster", "--json")
    assert code == 2
    assert told in json.loads(out)["error"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("taken", "has a branch taken already"),
        ("taken/too", "has a branch taken, so that there can't be one named taken/too"),
        ("a", "has a branch a/b, so that there can't be one named a"),
        ("a..b", "'a..b' can't be the name of a branch"),
        ("x" * 300, "can't be the name of a branch"),
    ],
)
def test_a_branch_that_can_not_be_is_refused_before_any_work(desk, name, why):
    desk.git("branch", "taken")
    desk.git("branch", "a/b")
    code, out, err = desk.optimize("--branch", name, "--unsandboxed")
    assert (code, out) == (2, "")
    assert why in err
    assert_nothing_done(desk)


@needs_sandbox
def test_apply_changes_the_files_once(tidy):
    code, out, _ = tidy.optimize("--apply")
    assert (code, tidy.module.read_text()) == (0, WINNER)
    assert "\nchanged: src/mod.py\n" in out
    assert tidy.git("diff", "--cached") == ""
    code, out, _ = tidy.optimize("--apply", "--json")
    assert (code, tidy.module.read_text()) == (0, WINNER)
    assert json.loads(out)["done"] == ["was in already: src/mod.py"]


@needs_sandbox
def test_apply_keeps_what_was_edited_meanwhile(tidy):
    tidy.module.write_text(FILES["src/mod.py"].replace("return 7", "return 8"))
    code, out, _ = tidy.optimize("--apply")
    assert (code, tidy.module.read_text()) == (0, WINNER.replace("return 7", "return 8"))
    assert "\nmerged with your edits, which was not measured: src/mod.py\n" in out
    code, out, _ = tidy.optimize("--apply")
    assert (code, tidy.module.read_text()) == (0, WINNER.replace("return 7", "return 8"))
    assert "\nwas in already: src/mod.py\n" in out


@needs_sandbox
def test_apply_refuses_what_meets_an_edit_and_then_makes_no_branch(tidy):
    edited = FILES["src/mod.py"].replace("// 32", "// 32 + 1")
    tidy.module.write_text(edited)
    code, _, err = tidy.optimize("--apply", "--branch", "both")
    assert (code, tidy.module.read_text()) == (2, edited)
    assert "src/mod.py" in err
    assert f"apply --reject {tidy.site.folder / 'out/best.patch'}" in err
    assert tidy.git("branch", "--list", "both") == ""  # so that the same command can be given again


# -- what is refused --


def assert_nothing_done(desk):
    assert not (desk.site.folder / "out").exists()
    assert desk.site.calls() == {}
    assert desk.site.files() == []


@pytest.mark.parametrize(
    ("asking", "why"),
    [
        (("--agent", "nobody"), "there is no proposer 'nobody'; known: chat, codemod, command"),
        (("--agent", "codemods"), "did you mean 'codemod'?"),
        (("--option", "color=red"), "--agent codemod --option color: unknown key; known: "),
        (("--option", "color"), "--option: expected NAME=VALUE, got 'color'"),
        (("--option", "=red"), "--option: expected NAME=VALUE, got '=red'"),
        (("--agent", "function"), "--agent function: 'use' is missing"),
        (("--agent", "function", "--option", "use=proposing:gone"), "has no 'gone'"),
        ((*NOTHING, "--option", "most_at_once=0"), "must be 1 or more, got 0"),
        ((*NOTHING, "--option", 'most_at_once="many"'), "--agent function --option most_at_once: "),
        (("--max-candidates", "0"), "0 is not in the range"),
    ],
)
def test_bad_options_are_refused_before_any_work(desk, asking, why):
    code, out, err = desk.optimize(asking=asking)
    assert (code, out) == (2, "")
    assert why in err
    code, out, _ = desk.optimize("--json", asking=asking)
    told = json.loads(out)
    assert (code, told["ok"]) == (2, False)
    assert why in told["error"]
    assert_nothing_done(desk)


def test_nothing_to_time_is_refused_before_any_work(desk):
    problem = json.loads((desk.site.top / "problem.yaml").read_text())
    (desk.site.top / "few.yaml").write_text(json.dumps({**problem, "bench": []}))
    code, _, err = desk.optimize(problem="few.yaml")
    assert code == 2
    assert "few.yaml: bench: is empty, and no check runs pytest: nothing can be timed" in err
    assert_nothing_done(desk)
    assert desk.optimize(problem="none.yaml")[0] == 2


def test_no_sandbox_is_refused_before_any_work(desk, monkeypatch):
    monkeypatch.setattr(choosing, "FULL_SANDBOXES", ())
    code, _, err = desk.optimize()
    assert code == 4
    assert "no sandbox works on this machine" in err
    assert "--unsandboxed" in err
    assert_nothing_done(desk)  # so that the same command with --unsandboxed is no other study


# -- what goes wrong on the way --


@needs_sandbox
def test_mistakes_and_network_failures_have_their_exit_codes_and_the_command_can_be_repeated(desk):
    inputs, down = desk.site.top / "inputs.py", desk.site.folder / "down"
    right = inputs.read_text()
    inputs.write_text(right.replace("number", "numbers"))
    code, out, err = desk.optimize("--json", asking=NOTHING)
    assert (code, json.loads(out)["ok"]) == (2, False)  # the user's
    assert "inputs.py" in json.loads(out)["error"]
    inputs.write_text(right)
    down.touch()
    code, _, err = desk.optimize(asking=NOTHING)
    assert code == 4  # nobody's here
    assert "error: the network is down; the same command continues where it stopped" in err
    down.unlink()
    code, out, _ = desk.optimize(asking=NOTHING)
    assert code == 0
    assert "0 judged, 0 passed their checks; why it ended: " in out
    assert "\nNone is worth taking.\n" in out
    assert "No branch was made" not in out
    _, out, _ = desk.optimize("--branch", "b", asking=NOTHING)
    assert "\nNone is worth taking.\nNo branch was made, and no file was changed.\n" in out
    assert "has nothing to propose" in " ".join(out.split())
    assert not (desk.site.folder / "out/best.patch").exists()


@pytest.mark.parametrize("stopped", ["interrupted", "cancelled"])
def test_a_stopped_optimization_says_how_to_continue(desk, monkeypatch, stopped):
    monkeypatch.setattr(runner, "execute_study", lambda *_: SimpleNamespace(stopped=stopped))
    code, out, err = desk.optimize("--unsandboxed", asking=NOTHING)
    assert (code, out) == (130, "")
    told = f"interrupted; {optimize.KEPT}\n"
    assert err.endswith(told)


def test_what_a_run_found_wrong_is_said_of_the_option_or_of_the_problem(tmp_path):
    path = tmp_path / "problem.yaml"
    for told, expected in {
        "StudyError: proposer_options.argv[0]: no program": "--agent mine --option argv[0]: no pro",
        "StudyError: proposer_options: what: ever": "--agent mine: what: ever",
        "StudyError: max_cost_usd: too low": "--max-cost: too low",
        "StudyError: check[0].inputs: gone": f"{path}: check[0].inputs: gone",
        "PluginError: the base fails: all of it": f"{path}: the base fails: all of it",
    }.items():
        error = explain_failure(told, path, "mine")
        assert isinstance(error, StudyError)
        assert str(error).startswith(expected)


class Raises(Proposer):
    async def propose(self, brief, request):
        raise StudyError("the record is gone")


def test_what_a_task_raises_comes_out_by_itself():
    client = ProposerClient(Raises(), Brief("p", "", {}), Journal(), JournalState())
    scheduler = Scheduler(None, None, OptimizeLoop(LoopRules()), client, ignore_event)
    with pytest.raises(StudyError, match="the record is gone"):
        anyio.run(scheduler.run)
