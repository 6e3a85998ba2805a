"""Provenance of a study, recorded without secrets."""

import os
import subprocess

import pytest
from small_ledger_kit import make_small_study

from fairtrial import Study
from fairtrial.study import AgentBinding
from fairtrial.study.tables import provenance
from fairtrial.study.tables.provenance import (
    collect_provenance,
    merge_metadata,
    read_commit,
    redact_command,
)


def git(folder, *arguments):
    settings = ["-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *settings, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setattr(provenance, "GIT_TIMEOUT_S", 60.0)  # git may be slow on a busy machine
    monkeypatch.setattr(provenance, "read_commit", read_commit)
    git(tmp_path, "init", "--quiet")
    (tmp_path / "agent.py").write_text("pass\n")
    git(tmp_path, "add", "agent.py")
    return tmp_path


def test_provenance_has_host_versions_commit_and_command():
    study = make_small_study(agents={"a": AgentBinding("numpy.random:default_rng")})
    collected = collect_provenance(study, ["fairtrial", "run", "study.yaml", "--api-key", "k"])
    assert collected["command"] == ["fairtrial", "run", "study.yaml", "--api-key", "***"]
    assert {"fairtrial", "msgspec", "numpy"} <= set(collected["package_versions"])
    assert collected["seed_policy"]["base_seed"] == 0
    assert collected["cpu_count"] == os.cpu_count()
    assert set(collected) == {
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
    collected = collect_provenance(study)
    assert (collected["git_sha"], collected["git_dirty"]) == (sha, True)


def test_without_git_or_a_repository_there_is_no_commit(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert read_commit(tmp_path) == (None, None)
    assert read_commit(tmp_path / "none") == (None, None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert read_commit(tmp_path) == (None, None)


@pytest.mark.parametrize(
    ("command", "expected"),
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
def test_secrets_on_the_command_line_are_hidden(command, expected):
    assert redact_command(command) == expected


def test_metadata_of_the_study_are_added_and_replace_nothing():
    recorded = {"host": "h", "git_sha": None}
    assert merge_metadata(recorded, {"grant": 1}) == {**recorded, "grant": 1}
    assert merge_metadata(recorded, {"host": "mine", "git_sha": "x", "grant": 1}) == {
        **recorded,
        "grant": 1,
        "provenance_metadata": {"host": "mine", "git_sha": "x"},
    }
