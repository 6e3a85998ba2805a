"""`fairtrial clean`."""

import json
import os

import pytest
from repository_kit import write_files

from fairtrial.arena.slots import pool_folders


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRTRIAL_HOME", str(tmp_path / "home"))


@pytest.fixture
def orphan(tmp_path):
    made = pool_folders.create_pool_folder(tmp_path / "one")
    write_files(made.path, {"1/file": "x" * 1_000_000})
    os.close(made.lock)
    return made.path


@pytest.fixture
def live(tmp_path):
    made = pool_folders.create_pool_folder(tmp_path / "two")
    yield made.path
    made.remove()


def test_orphans_go_and_what_is_in_use_stays(run, orphan, live):
    code, out, _ = run("clean")
    assert code == 0
    lines = {line.partition(":")[0]: line for line in out.splitlines()}
    assert "one; left by a run that has ended, now removed" in lines[str(orphan)]
    assert f"two; in use by process {os.getpid()}" in lines[str(live)]
    assert "1 folder removed, which freed 1.0 MB" in out
    assert not orphan.exists()
    assert live.exists()


def test_dry_run_removes_nothing(run, orphan, live):
    code, out, _ = run("clean", "--dry-run")
    assert code == 0
    assert "1 folder can be removed, which would free 1.0 MB" in out
    assert orphan.exists()


def test_json(run, orphan, live, tmp_path):
    code, out, _ = run("clean", "--json")
    assert code == 0
    told = json.loads(out)
    pools = {pool["path"]: pool for pool in told["pools"]}
    assert pools[str(orphan)]["removed"]
    assert not pools[str(orphan)]["alive"]
    assert pools[str(orphan)]["size_bytes"] >= 1_000_000
    assert pools[str(live)]["alive"]
    assert not pools[str(live)]["removed"]
    assert pools[str(live)]["repository"] == str(tmp_path / "two")
    assert told["freed_bytes"] == pools[str(orphan)]["size_bytes"]


def test_kept_ones_are_said_to_be_and_go(run, tmp_path):
    made = pool_folders.create_pool_folder(tmp_path / "one")
    made.leave(tmp_path / "one")
    _, out, _ = run("clean")
    assert "kept on purpose, now removed" in out
    assert not made.path.exists()


def test_recorded_runs_of_checks_go(run, monkeypatch, tmp_path):
    monkeypatch.setenv("FAIRTRIAL_HOME", str(tmp_path / "recording"))
    file = tmp_path / "recording" / "base-runs" / "1.json"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"x" * 2_000)
    assert "1 folder can be removed" in run("clean", "--dry-run")[1]
    assert file.exists()
    assert "recorded runs of checks, now removed" in run("clean")[1]
    assert not file.exists()
    assert run("clean")[1] == "nothing is left on disk\n"


def test_nothing_to_do(run):
    assert run("clean")[:2] == (0, "nothing is left on disk\n")


@pytest.mark.parametrize("as_json", [True, False])
def test_what_can_not_be_removed_is_said_and_is_a_failure(run, orphan, monkeypatch, as_json):
    def stubborn(name, **options):
        raise PermissionError(1, "Operation not permitted", name)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", stubborn)
        code, out, err = run("clean", *["--json"] * as_json)
    assert code == 4
    assert "Operation not permitted" in (out if as_json else err)
    assert orphan.exists()
