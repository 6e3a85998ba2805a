"""What goes to the nodes of a cluster: which files, and how a node keeps its copies."""

import os
import subprocess
from pathlib import Path

import pytest

from fairtrial.arena import CodeProblem, ProjectCopy, compute_tree
from fairtrial.core import LabError, run_blocking
from fairtrial.study.ledger.schema import LEDGER_NAME
from fairtrial.study.runner.executors import node_files, study_files
from fairtrial.study.runner.executors.node_files import Luggage, NodeFiles, Places
from fairtrial.study.runner.executors.study_files import find_study_files


@pytest.fixture(autouse=True)
def no_modules(monkeypatch, tmp_path):
    """Leave out the modules of the tests, and keep copies in a folder of this test."""
    monkeypatch.setattr(study_files, "_find_module_roots", lambda: iter(()))
    monkeypatch.setattr(node_files.tempfile, "gettempdir", lambda: str(tmp_path))


def git(folder, *arguments):
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def fill(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def list_names(folder, output=None):
    files = find_study_files(folder, output)
    return sorted(str(Path(path).relative_to(folder)) for path in files.paths)


@pytest.mark.parametrize("kind", ["plain", "repository", "in an ignored folder"])
def test_ignored_files_results_and_environments_stay_here(tmp_path, kind):
    folder = tmp_path / "study"
    fill(
        folder, "study.yaml", "agents/a.py", "data/big.bin", "data/kept.csv", ".hidden",
        f"artifacts/old/{LEDGER_NAME}", "artifacts/old/runs.csv", "results/runs.csv",
        "env/pyvenv.cfg", "env/lib/x.py", "agents/__pycache__/a.pyc",
    )  # fmt: skip
    (folder / ".gitignore").write_text("*.bin\n")
    if kind != "plain":
        git(tmp_path, "init", "-q")
    if kind == "in an ignored folder":
        (tmp_path / ".gitignore").write_text("study/\n")
    expected = [".gitignore", ".hidden", "agents/a.py", "data/kept.csv", "study.yaml"]
    assert list_names(folder, folder / "results") == expected


def test_files_of_a_repository_inside_the_folder_go_along(tmp_path):
    folder = tmp_path / "study"
    fill(folder, "study.yaml", "project/code.py", "project/secret.key")
    (folder / "project" / ".gitignore").write_text("*.key\n")
    git(folder / "project", "init", "-q")
    git(folder, "init", "-q")
    assert list_names(folder) == ["project/.gitignore", "project/code.py", "study.yaml"]


def test_too_much_is_refused_with_the_largest_files(tmp_path):
    fill(tmp_path / "s", "study.yaml")
    (tmp_path / "s" / "huge.csv").write_bytes(b"x" * 3_000_000)
    files = find_study_files(tmp_path / "s", None)
    assert not list(files.find_mistakes(4))
    [mistake] = files.find_mistakes(2)
    assert "2 files, 3.0 MB, more than the 2 MB" in mistake.message
    assert "huge.csv (3.0 MB)" in mistake.message


def test_a_node_has_one_copy_until_its_last_worker_ends(tmp_path):
    fill(tmp_path / "s", "study.yaml", "a.py")
    (tmp_path / "s" / "link").symlink_to("a.py")
    (tmp_path / "s" / "a.py").chmod(0o755)
    files = find_study_files(tmp_path / "s", None)
    luggage = Luggage("one", files.roots, files.archive(), code=files.code_paths())
    first, second = NodeFiles(luggage), NodeFiles(luggage)
    copy = Path(first.root + str(tmp_path / "s"))
    assert first.root == second.root
    assert os.access(copy / "a.py", os.X_OK)
    assert (copy / "link").readlink() == Path("a.py")
    assert luggage.digest_copy(first.root) == files.digest()
    (copy / "a.py").write_text("changed")
    assert luggage.digest_copy(first.root) != files.digest()
    first.close()
    assert copy.is_dir()
    second.close()
    assert not copy.exists()


def test_copies_of_workers_that_were_killed_go_when_the_next_starts(tmp_path):
    fill(tmp_path / "s", "a.py")
    files = find_study_files(tmp_path / "s", None)
    killed = NodeFiles(Luggage("killed", files.roots, files.archive()))
    os.close(killed._lock)  # as the kernel does
    after = NodeFiles(Luggage("after", files.roots, files.archive()))
    assert not Path(killed.root).exists()
    assert Path(after.root).exists()
    after.close()


def test_a_node_without_room_says_so(tmp_path, monkeypatch):
    fill(tmp_path / "s", "a.py")
    files = find_study_files(tmp_path / "s", None)

    def refuse(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(node_files.tarfile.TarFile, "extractall", refuse)
    with pytest.raises(LabError, match=r"can't be copied to .*: No space left on device"):
        NodeFiles(Luggage("full", files.roots, files.archive()))


def test_copies_come_before_a_nodes_own_modules_and_the_working_folder_moves(tmp_path):
    root, study = tmp_path / "root", tmp_path / "study"
    moved = Path(f"{root}{study}")
    moved.mkdir(parents=True)
    study.mkdir()
    places = Places(str(root), [str(study)])
    assert places.search_path([str(study), "/nowhere"])[0] == str(moved)
    assert places.find_folder(str(study), [str(study)]) == str(moved)
    assert places.find_folder("/nowhere", [str(study)]) == str(moved)
    shared = Places("", ())
    assert shared.search_path([str(study)])[0] == str(study)
    assert shared.find_folder(str(study), [str(study)]) == str(study)


def make_problem(folder, **fields):
    return CodeProblem("p", folder=folder, check=[{"command": ["true"]}], **fields)


def tree_of(project):
    async def work(_):
        return await compute_tree(make_problem(project))

    return run_blocking(work, lambda _: None)


@pytest.mark.parametrize("where", [".", "part"])
def test_a_repository_arrives_with_the_same_tree_and_its_ignored_files(tmp_path, where):
    top = tmp_path / "repo"
    fill(top, "part/code.py", "text.txt", "built.so", "secret.key")
    (top / "text.txt").write_bytes(b"one\r\ntwo\n")
    (top / ".gitattributes").write_text("*.txt text eol=crlf\n")
    (top / ".gitignore").write_text("*.so\n*.key\n")
    git(top, "init", "-q")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "x")
    fill(top, "part/untracked.py")
    problem = make_problem(top, repo=where, include=("built.so",) if where == "." else ())
    copy = ProjectCopy.pack(problem)
    copy.unpack(tmp_path / "node")
    arrived = Path(f"{tmp_path / 'node'}{top}")
    assert (arrived / "text.txt").read_bytes() == b"one\r\ntwo\n"
    assert tree_of(arrived) == tree_of(top)
    assert (arrived / "built.so").exists() == (where == ".")
    assert not (arrived / "secret.key").exists()


def test_revisions_have_the_same_names_on_a_node(tmp_path):
    top = tmp_path / "repo"
    fill(top, "code.py")
    git(top, "init", "-q")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "first")
    git(top, "tag", "v1")
    fill(top, "more.py")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "second")
    (top / "more.py").write_text("edited")
    copy = ProjectCopy.pack(make_problem(top, base="HEAD~1"))
    copy.unpack(tmp_path / "node")
    arrived = Path(f"{tmp_path / 'node'}{top}")

    def parse(folder, name):
        command = ["git", "rev-parse", name]
        return subprocess.check_output(command, cwd=folder)

    for name in ("HEAD", "HEAD~1", "v1"):
        assert parse(arrived, name) == parse(top, name)
    assert (arrived / "more.py").read_text() == "edited"


def test_a_project_whose_environment_is_missing_on_a_node_is_refused(tmp_path):
    top = tmp_path / "repo"
    fill(top, "code.py", ".venv/pyvenv.cfg", ".venv/bin/python")
    (top / ".gitignore").write_text(".venv\n")
    git(top, "init", "-q")
    copy = ProjectCopy.pack(make_problem(top))
    copy.unpack(tmp_path / "same")
    assert Path(f"{tmp_path / 'same'}{top}", ".venv").resolve() == top / ".venv"
    (top / ".venv").rename(tmp_path / "gone")
    with pytest.raises(LabError, match=r"virtual environment .* is not on this machine"):
        copy.unpack(tmp_path / "other")
