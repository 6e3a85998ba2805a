"""`fairtrial lock`: the lock in ledger, report, status and bundle, and what differs from it."""

import hashlib
import io
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest
from cli_kit import STUDY

from fairtrial import load_study
from fairtrial.core import LedgerError
from fairtrial.study import lock_study, run_study
from fairtrial.study.ledger import read_lock
from fairtrial.study.tables import provenance, verify_bundle
from fairtrial.study.tables.provenance import read_commit

CLAIMS = {
    "outcomes": [{"name": "score", "source_table": "evaluations", "primary": True}],
    "hypotheses": [
        {
            "hypothesis_id": "h",
            "label": "More is more",
            "statement": "More is more.",
            "independent_vars": ["x"],
            "dependent_vars": ["score"],
        }
    ],
    "analysis_plans": [{"analysis_plan_id": "p", "hypothesis_ids": ["h"], "tests": ["anova"]}],
}
NOISY = """
import random

def act(task):
    return {"x": task.factors["x"] + random.Random(task.seed).gauss(0, 1)}

def score(x):
    return {"score": x}

def inverse(x):
    return {"score": -x}
"""
BOUND = {
    "agents": {"a": "noisy:act"},
    "problems": {"p": {"brief": "add", "evaluator": "noisy:score"}},
    "run_budget": {"replicates": 2},
}
OTHER_CLAIM = [{**CLAIMS["hypotheses"][0], "direction": "less"}]


@pytest.fixture
def study(write):
    write(NOISY, "noisy.py")

    def study(**fields):
        return write({**STUDY, **CLAIMS, **BOUND, **fields})

    return study


@pytest.fixture
def locked(run):
    """Lock a study; gives the lock as data."""

    def locked(*arguments):
        code, out, err = run("lock", *arguments, "--json")
        assert code == 0, err
        return json.loads(out)

    return locked


@pytest.fixture
def report(run):
    def report(folder="out"):
        code, out, err = run("report", folder, "--json")
        assert code == 0, err
        return json.loads(out)

    return report


def standing(reported):
    return {test["hypothesis_id"]: test["standing"] for test in reported["tests"]}


def test_a_run_picks_up_the_lock(run, study, locked, report):
    lock = locked(study(), "--timestamp", "https://stamps/1", "--note", "first try")
    assert (lock["made_by"], lock["runs"]) == ("lock", 6)
    assert set(lock["parts"]) == {"study", "design", "seeds", "code", "analysis"}
    assert list(lock["code"]) == ["noisy.py"]
    assert run("run", study())[0] == 0
    reported = report()
    assert reported["deviations"] == []
    assert standing(reported) == {"h": "confirmatory"}
    assert reported["lock"]["digest"] == lock["digest"]
    assert reported["claims"]["laid_down_at"] == lock["at"]
    run("report", "out")
    text = Path("out/report.md").read_text("utf-8").replace("\\", "")
    assert f"locked {lock['at']} by fairtrial lock; SHA-256 {lock['digest']}" in text
    assert "timestamp https://stamps/1; note: first try" in text
    _, out, _ = run("status", "out")
    assert f"  locked   {lock['at']} ({lock['digest'][:12]})" in out.splitlines()
    assert json.loads(run("status", "out", "--json")[1])["lock"]["digest"] == lock["digest"]
    _, out, _ = run("show", "out", "lock")
    assert f"SHA-256 {lock['digest']}" in out
    assert all(digest in out for digest in lock["parts"].values())
    assert json.loads(run("show", "out", "lock", "--json")[1])["lock"]["digest"] == lock["digest"]


def test_the_first_run_locks_a_study(run, study, report):
    assert run("run", study(), "--limit", 1)[0] == 0
    lock = report()["lock"]
    assert lock["made_by"] == "run"
    assert run("run", study(), "--resume")[0] == 0
    assert report()["lock"] == lock
    assert "locked" not in run("status", "out")[1]  # every study has such a lock
    code, out, _ = run("lock", study(), "--json")
    assert (code, json.loads(out)["digest"]) == (0, lock["digest"])


def test_how_runs_are_executed_is_not_locked(run, study, locked, report):
    digest = locked(study())["digest"]
    faster = study(run_budget={"replicates": 2, "parallelism": 2, "retries": 0, "max_tokens": 9999})
    assert locked(faster)["digest"] == digest
    assert run("run", faster, "--parallel", 2)[0] == 0
    assert report()["deviations"] == []


def test_another_output_has_another_ledger_and_the_same_digest(study, locked):
    assert locked(study())["digest"] == locked(study(), "--output", "there")["digest"]


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"run_budget": {"replicates": 3}}, "seeds"),
        ({"seed_policy": {"base_seed": 4}}, "seeds"),
        ({"factors": [{"name": "x", "levels": [1, 2]}]}, "design"),
        ({"hypotheses": OTHER_CLAIM}, "analysis"),
        ({"description": "d"}, "study"),
    ],
)
def test_each_part_has_its_digest(study, locked, fields, part):
    before = locked(study())
    after = locked(study(**fields), "--output", "there")
    changed = {name for name in before["parts"] if before["parts"][name] != after["parts"][name]}
    assert {part, "study"} <= changed
    assert "code" not in changed
    assert before["digest"] != after["digest"]


def test_locking_again_says_that_it_is_locked(run, study, locked):
    lock = locked(study())
    code, out, _ = run("lock", study())
    assert code == 0
    assert lock["at"] in out
    assert locked(study(), "--note", "later") == lock


def test_another_study_is_refused_unless_it_is_to_replace_the_lock(run, study, locked):
    lock = locked(study())
    changed = study(hypotheses=OTHER_CLAIM)
    code, _, err = run("lock", changed)
    assert code == 3
    assert 'direction: "different" -> "less"' in err
    assert "--relock" in err
    again = locked(changed, "--relock")
    assert again["digest"] != lock["digest"]
    assert again["replaces"] == [{"digest": lock["digest"], "at": lock["at"]}]


def test_a_lock_can_not_be_replaced_once_a_result_is_known(run, study, locked):
    lock = locked(study())
    assert run("run", study(), "--limit", 1)[0] == 0
    code, _, err = run("lock", study(hypotheses=OTHER_CLAIM), "--relock")
    assert code == 3
    assert "1 result is known, so the lock stays" in err
    assert locked(study())["digest"] == lock["digest"]


def test_a_lock_after_results_without_one_is_refused(run, study):
    assert run("run", study(), "--limit", 1)[0] == 0
    forget_lock("out")
    code, _, err = run("lock", study())
    assert code == 3
    assert "a lock would come too late" in err


def forget_lock(folder):
    """Make a ledger look as if an earlier version had begun it."""
    connection = sqlite3.connect(f"{folder}/ledger.sqlite")
    with connection:
        connection.execute("DELETE FROM facts WHERE name IN ('lock', 'first study', 'changes')")
    connection.close()


def test_an_older_ledger_says_that_no_lock_was_recorded(run, study, report):
    assert run("run", study())[0] == 0
    forget_lock("out")
    assert run("run", study(), "--resume")[0] == 0
    reported = report()
    assert reported["lock"] is None
    assert standing(reported) == {"h": "unknown"}
    run("report", "out")
    assert "- no lock was recorded" in Path("out/report.md").read_text("utf-8")
    assert run("show", "out", "lock")[1] == "no lock was recorded\n"


def test_a_run_of_another_study_than_the_locked_one_is_a_deviation(run, study, locked, report):
    locked(study())
    changed = study(hypotheses=OTHER_CLAIM, run_budget={"replicates": 3}, description="d")
    code, _, err = run("run", changed)
    assert code == 0
    assert "this is not the study that was locked" in err
    reported = report()
    lines = "\n".join(reported["deviations"])
    when = "after the study was locked, before its first result"
    assert f"claims were changed {when}" in lines
    assert f"the study was changed {when}" in lines
    assert "run_budget.replicates: 2 -> 3" in lines
    assert 'description: "" -> "d"' in lines
    assert standing(reported) == {"h": "exploratory"}
    (test,) = reported["tests"]
    assert test["why"].startswith(f"changed {when}; ")
    assert run("run", changed, "--resume")[0] == 0
    assert report()["deviations"] == reported["deviations"]  # going on adds none


def test_more_replicates_than_locked_before_any_result_leave_the_claim_confirmatory(
    run, study, locked, report
):
    locked(study())
    assert run("run", study(run_budget={"replicates": 3}))[0] == 0
    reported = report()
    assert len(reported["deviations"]) == 1
    assert standing(reported) == {"h": "confirmatory"}


def test_code_that_was_edited_between_results_makes_the_claim_exploratory(
    run, study, write, report
):
    path = study()
    assert run("run", path, "--limit", 2)[0] == 0
    write(NOISY.replace('return {"score": x}', 'return {"score": x + 1}'), "noisy.py")
    assert run("run", path, "--resume")[0] == 0
    reported = report()
    assert standing(reported) == {"h": "exploratory"}
    assert "the change of code in noisy.py" in reported["tests"][0]["why"]
    assert any("the code differs from the locked one" in line for line in reported["deviations"])


def test_a_second_edit_of_code_that_already_differed_from_the_lock_counts(
    run, study, write, locked, report
):
    path = study()
    locked(path)
    write(NOISY + "\nNUMBER = 4\n", "noisy.py")
    assert run("run", path, "--limit", 2)[0] == 0
    assert standing(report()) == {"h": "confirmatory"}
    write(NOISY + "\nNUMBER = 5\n", "noisy.py")
    assert run("run", path, "--resume")[0] == 0
    assert standing(report()) == {"h": "exploratory"}


def test_code_that_differs_from_the_lock_is_named(run, study, write, locked, report):
    path = study()
    locked(path)
    write(NOISY + "\nNUMBER = 4\n", "noisy.py")
    assert run("run", path, "--limit", 2)[0] == 0
    (line,) = [line for line in report()["deviations"] if "code" in line]
    assert "before its first result" in line
    assert line.endswith("the code differs from the locked one: `code noisy.py: changed`")
    assert run("run", path, "--resume")[0] == 0
    assert len([line for line in report()["deviations"] if "code" in line]) == 1
    write(NOISY, "noisy.py")
    assert run("run", path, "--resume")[0] == 0
    *_, line = [line for line in report()["deviations"] if "code" in line]
    assert "after 6 results were known" in line
    assert line.endswith("the code is the locked one again")


def test_a_folder_with_a_lock_only_says_so(run, study, locked):
    locked(study())
    for command in ("status", "report", "export"):
        code, _, err = run(command, "out")
        assert code == 3
        assert "holds the lock of a study that was not run yet" in err
    assert run("show", "out", "lock")[0] == 0


def test_a_study_that_is_killed_after_its_lock_keeps_it(run, study, locked, report, tmp_path):
    path = study()
    lock = locked(path)
    script = (
        "import os, signal\n"
        "from fairtrial.study.runner import run\n"
        "def die(*arguments):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "run.store_plan = die\n"
        "from fairtrial.cli.main import main\n"
        f"main(['run', {str(path)!r}])\n"
    )
    ended = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True)
    assert ended.returncode == -signal.SIGKILL
    assert run("run", path)[0] == 0
    assert report()["lock"]["digest"] == lock["digest"]
    assert report()["deviations"] == []


def test_mistakes_are_reported_with_their_line_and_nothing_is_locked(run, study):
    path = study(hypotheses=[{**CLAIMS["hypotheses"][0], "independent_vars": ["y"]}])
    code, _, err = run("lock", path)
    assert code == 2
    assert "study.yaml:" in err
    assert not Path("out").exists()


def test_overrides_are_locked(run, study, locked, report):
    lock = locked(study(), "--set", "run_budget.replicates=3")
    assert lock["runs"] == 9
    assert run("run", study(), "--set", "run_budget.replicates=3")[0] == 0
    assert report()["deviations"] == []


# -- changes that make data fit a claim --


def test_changes_of_data_by_the_command_make_the_claim_exploratory(run, study, report):
    claim = [{**CLAIMS["hypotheses"][0], "direction": "greater"}]
    contrast = [{**claim[0], "contrast": {"left": "3", "right": "1"}}]
    plan = {"tests": ["welch_t"], "generalize": "these_problems_only"}
    plans = [{**CLAIMS["analysis_plans"][0], **plan}]
    fields = {"hypotheses": contrast, "analysis_plans": plans}
    two = {**BOUND["problems"], "q": {"brief": "subtract", "evaluator": "noisy:inverse"}}
    both = study(**fields, problems=two, problem_ids=["p", "q"], run_budget={"replicates": 6})
    assert run("run", both)[0] == 0
    assert standing(report()) == {"h": "confirmatory"}
    one = study(**fields, problems=two, problem_ids=["p"], run_budget={"replicates": 6})
    assert run("run", one, "--resume")[0] == 3
    assert run("run", one, "--resume", "--accept-changes")[0] == 0
    (test,) = report()["tests"]
    assert test["standing"] == test["verdict"] == "exploratory"
    assert "without the removal of problem q: inconclusive; " in test["why"]
    more = ["--set", "run_budget.replicates=12"]
    assert run("resume", "out", *more)[0] == 0
    (test,) = report()["tests"]
    assert (
        "without the removal of problem q and the added replicates: inconclusive; "
        "with them: supported, exploratory"
    ) in test["why"]
    assert run("run", one, *more, "--output", "again")[0] == 0
    (test,) = report("again")["tests"]
    assert test["standing"] == "exploratory"
    assert "(../out)" in test["why"]


# -- git --

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="no git")


def git(*words):
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def with_git(monkeypatch):
    """Let studies ask git again, which all other tests prevent."""
    monkeypatch.setattr(provenance, "read_commit", read_commit)


@needs_git
def test_the_commit_is_recorded_and_not_part_of_the_digest(study, locked, with_git, tmp_path):
    path = study()
    lock = locked(path)
    assert (lock["git_commit"], lock["git_dirty"]) == (None, None)
    git("init", "-q")
    git("add", "study.yaml", "noisy.py")
    git("-c", "user.name=n", "-c", "user.email=e@x", "commit", "-q", "-m", "m")
    clean = locked(path, "--output", "clean")
    assert (clean["git_commit"], clean["git_dirty"]) == (git("rev-parse", "HEAD"), False)
    (tmp_path / "noisy.py").write_text(NOISY + "\n# more\n")
    dirty = locked(path, "--output", "dirty")
    assert (dirty["git_commit"], dirty["git_dirty"]) == (clean["git_commit"], True)
    assert clean["digest"] == lock["digest"] != dirty["digest"]


# -- bundles --


def repack(archive, change):
    """Change the manifest of a bundle, and the list of checksums with it."""
    with tarfile.open(archive) as packed:
        files = {member.name: packed.extractfile(member).read() for member in packed}
    root = next(iter(files)).partition("/")[0]
    manifest = json.loads(files[f"{root}/manifest.json"])
    change(manifest)
    old = hashlib.sha256(files[f"{root}/manifest.json"]).hexdigest()
    files[f"{root}/manifest.json"] = json.dumps(manifest).encode()
    new = hashlib.sha256(files[f"{root}/manifest.json"]).hexdigest()
    checksums = files[f"{root}/CHECKSUMS.sha256"].decode().replace(old, new)
    files[f"{root}/CHECKSUMS.sha256"] = checksums.encode()
    with tarfile.open(archive, "w:gz") as packed:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))


def set_study_id(manifest):
    manifest["study_id"] = "other"


def set_claim(manifest):
    manifest["lock"]["study"]["hypotheses"][0]["direction"] = "less"


def set_digest(manifest):
    manifest["lock"]["digest"] = "0" * 64


def set_nothing(manifest):
    manifest["lock"] = {}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (set_claim, "the lock's digest of the study is not that of the study in it"),
        (set_digest, "the lock's digest is not that of its parts"),
        (set_nothing, "the lock can't be read: KeyError: 'study'"),
        (set_study_id, "the lock is that of another study"),
    ],
)
def test_a_bundle_has_the_lock_and_its_verification_checks_it(run, study, locked, change, problem):
    lock = locked(study())
    assert run("run", study())[0] == 0
    assert run("bundle", "out", "--out", "b.tar.gz")[0] == 0
    with tarfile.open("b.tar.gz") as packed:
        manifest = json.load(packed.extractfile("s/manifest.json"))
    assert manifest["lock"]["digest"] == lock["digest"]
    assert run("bundle", "b.tar.gz", "--verify")[0] == 0
    repack("b.tar.gz", change)
    assert f"manifest.json: {problem}" in verify_bundle("b.tar.gz")
    assert run("bundle", "b.tar.gz", "--verify")[0] == 2


# -- Python --


def test_python_locks_and_runs(study, tmp_path):
    loaded = load_study(study())
    lock = lock_study(loaded, output_dir=tmp_path / "there", note="by hand")
    assert lock_study(loaded, output_dir=tmp_path / "there") == lock
    with pytest.raises(LedgerError, match="relock=True"):
        lock_study(load_study(study(title="Other")), output_dir=tmp_path / "there")
    results = run_study(replace(loaded, output_dir=tmp_path / "there"), show_progress=False)
    with results:
        assert read_lock(results.reader) == lock
