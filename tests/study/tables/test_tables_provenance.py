"""Where and how a study was run: recorded, without secrets."""

import os
import subprocess

import pytest
from small_ledger_kit import small_study

from fairtrial import Study
from fairtrial.study import AgentBinding
from fairtrial.study.tables import provenance
from fairtrial.study.tables.provenance import add_own, gather, read_commit, redact


def git(folder, *arguments):
    settings = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setattr(provenance, "GIT_TIMEOUT_S", 60.0)  # it is to be heard, however slow it is
    monkeypatch.setattr(provenance, "read_commit", read_commit)
    git(tmp_path, "init", "--quiet")
    (tmp_path / "agent.py").write_text("pass\n")
    git(tmp_path, "add", "agent.py")
    return tmp_path


def test_what_is_gathered():  # spec 24
    study = small_study(agents={"a": AgentBinding("numpy.random:default_rng")})
    told = gather(study, ["fairtrial", "run", "study.yaml", "--api-key", "k"])
    assert told["command"] == ["fairtrial", "run", "study.yaml", "--api-key", "***"]
    assert {"fairtrial", "msgspec", "numpy"} <= set(told["package_versions"])
    assert told["seed_policy"]["base_seed"] == 0
    assert told["cpu_count"] == os.cpu_count()
    assert set(told) == {
        "captured_at",
        "host",
        "platform",
        "cpu_count",
        "python_version",
        "package_versions",
        "git_sha",
        "git_dirty",
        "command",
        "seed_policy",
    }


def test_the_commit_is_that_of_the_studys_folder(repository):
    assert read_commit(repository) == (None, None)  # no commit yet
    git(repository, "commit", "--quiet", "-m", "m")
    sha, is_dirty = read_commit(repository)
    assert len(sha) == 40
    assert is_dirty is False
    (repository / "artifacts").mkdir()
    (repository / "artifacts" / "new.csv").write_text("")  # results are not changes
    assert read_commit(repository) == (sha, False)
    (repository / "agent.py").write_text("changed\n")
    assert read_commit(repository) == (sha, True)
    study = Study("s", "t")
    object.__setattr__(study, "folder", repository)
    assert (gather(study)["git_sha"], gather(study)["git_dirty"]) == (sha, True)


def test_without_git_or_a_repository_there_is_no_commit(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert read_commit(tmp_path) == (None, None)
    assert read_commit(tmp_path / "none") == (None, None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_commit(tmp_path) == (None, None)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--api-key", "abc"], ["--api-key", "***"]),
        (["--api-key=abc"], ["--api-key=***"]),
        (["-token", "abc", "next"], ["-token", "***", "next"]),
        (["--password", "--verbose"], ["--password", "--verbose"]),
        (["OPENAI_API_KEY=abc def"], ["OPENAI_API_KEY=***"]),
        (["--set", "agents.a.options.api_key=abc"], ["--set", "agents.a.options.api_key=***"]),
        (["--set", "x=sk-abcdefghijklmnop"], ["--set", "x=***"]),
        (["Authorization: Bearer abc.def"], ["Authorization: ***"]),
        (["-H", "X: bearer abc"], ["-H", "X: bearer ***"]),
        (["https://me:pass@host/path"], ["https://***@host/path"]),
        (["ghp_0123456789abcdefghij"], ["***"]),
        (["eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.c2ln"], ["***"]),
        (["AKIA0123456789ABCDEF"], ["***"]),
        (["--max-tokens", "5"], ["--max-tokens", "5"]),
        (["--set", "run_budget.max_tokens=5"], ["--set", "run_budget.max_tokens=5"]),
        (["run", "study.yaml", "--parallel", "8"], ["run", "study.yaml", "--parallel", "8"]),
        (["--set", "authors=me"], ["--set", "authors=me"]),
        (["task-abcdefghijklmnop"], ["task-abcdefghijklmnop"]),
    ],
)
def test_secrets_on_the_command_line_are_hidden(words, shown):
    assert redact(words) == shown


def test_a_studys_own_facts_are_added_and_replace_nothing():
    recorded = {"host": "h", "git_sha": None}
    assert add_own(recorded, {"grant": 1}) == {**recorded, "grant": 1}
    assert add_own(recorded, {"host": "mine", "git_sha": "x", "grant": 1}) == {
        **recorded,
        "grant": 1,
        "provenance_metadata": {"host": "mine", "git_sha": "x"},
    }
