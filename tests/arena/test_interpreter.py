"""The Python of a problem's checks, and the folders that it needs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from fairtrial.arena import Check, CodeProblem, interpreter
from fairtrial.arena.interpreter import Interpreter, needed_folders, probe_interpreter
from fairtrial.core import StudyError

BASE = Path(sys.base_prefix).resolve()
BWRAP = shutil.which("bwrap")


def probe(top: Path, python: str = "", cwd: str = ".") -> Interpreter:
    problem = CodeProblem(
        problem_id="p", python=python, cwd=cwd, check=(Check(command=("true",)),), folder=top
    )
    return anyio.run(probe_interpreter, problem, top)


def refusal(top: Path, python: str = "", cwd: str = ".") -> str:
    with pytest.raises(StudyError) as caught:
        probe(top, python, cwd)
    (mistake,) = caught.value.mistakes
    assert mistake.hint
    return str(mistake)


Make = Callable[[Path], Path]


@pytest.fixture(scope="module")
def make_environment(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Makes a virtual environment in a folder and returns its site-packages.

    Copies, which takes no time: nothing in an environment that is used here names its folder.
    """
    kept = tmp_path_factory.mktemp("kept") / "env"
    command = [sys.executable, "-m", "venv", "--without-pip", str(kept)]
    subprocess.run(command, check=True, timeout=60)

    def make(folder: Path) -> Path:
        shutil.copytree(kept, folder, symlinks=True, dirs_exist_ok=True)
        (site,) = folder.glob("lib/python*/site-packages")
        return site

    return make


def make_script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """A repository's tree, with a project in a part of it."""
    (tmp_path / "repo/part").mkdir(parents=True)
    return tmp_path / "repo"


def test_without_an_environment_it_is_our_own(top: Path) -> None:
    found = probe(top)
    assert found.executable == Path(sys.executable)
    assert found.version == sys.version_info[:3]
    assert found.has_pytest
    assert BASE in found.folders


def test_the_projects_environment_is_taken_the_nearest_first(
    top: Path, make_environment: Make
) -> None:
    for name in ("venv", ".venv", "part/venv", "part/.venv"):  # each is nearer than the last
        make_environment(top / name)
        found = probe(top, cwd="part")
        assert found.executable == top / name / "bin/python"
        assert not found.has_pytest
        assert set(found.folders) == {BASE, top / name}


def test_a_named_python_is_found_in_the_project_then_at_the_top(
    top: Path, make_environment: Make
) -> None:
    make_environment(top / ".venv")
    make_environment(top / "envs/one")
    assert probe(top, ".venv/bin/python", "part").executable == top / ".venv/bin/python"
    assert probe(top, "envs/one/bin/python").executable == top / "envs/one/bin/python"
    (top / "part/.venv").symlink_to(top / ".venv")
    nearer = probe(top, ".venv/bin/python", "part")
    assert nearer.executable == top / "part/.venv/bin/python"
    assert {top / "part/.venv", top / ".venv"} <= set(nearer.folders)


def test_an_absolute_path_a_home_path_and_a_name_are_found(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_environment: Make
) -> None:
    make_environment(tmp_path / "home/env")
    program = tmp_path / "home/env/bin/python"
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3.99").symlink_to(program)
    assert probe(top, str(program)).executable == program
    assert probe(top, "~/env/bin/python").executable == program
    assert probe(top, "python3.99").executable == tmp_path / "bin/python3.99"


def test_of_a_launcher_it_is_the_python_behind_it(top: Path, tmp_path: Path) -> None:
    """As pyenv's: a script that could not be run in a sandbox."""
    launcher = make_script(tmp_path / "shims/python", f'exec "{sys.executable}" "$@"')
    found = probe(top, str(launcher))
    assert found.executable == Path(sys.executable)
    assert tmp_path / "shims" not in found.folders


def test_every_folder_on_the_way_to_the_program_is_needed(top: Path, tmp_path: Path) -> None:
    """As uv makes environments: a link to a link, through a folder that is a link."""
    real = Path(os.path.realpath(sys.executable))
    (tmp_path / "pythons").mkdir()
    (tmp_path / "pythons/3").symlink_to(BASE)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python3").symlink_to(f"../pythons/3/bin/{real.name}")
    env = top / ".venv"
    (env / "bin").mkdir(parents=True)
    (env / "bin/python").symlink_to(tmp_path / "bin/python3")
    (env / "pyvenv.cfg").write_text(f"home = {tmp_path}/pythons/3/bin\n")
    found = probe(top)
    assert found.executable == env / "bin/python"
    spelled = {tmp_path / "bin", tmp_path / "pythons/3/bin", tmp_path / "pythons/3"}
    for folder in (*spelled, real.parent):
        assert any(folder.is_relative_to(item) for item in found.folders), folder


def test_what_leads_into_the_project_is_left_to_the_slot(
    top: Path, tmp_path: Path, make_environment: Make
) -> None:
    site = make_environment(top / ".venv")
    for name in ("other/src", "wheel", "home"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "module.py").touch()
    (top / "src").mkdir()
    (top / "vendored").symlink_to(tmp_path / "wheel")
    (tmp_path / "link").symlink_to(top)
    lines = [top / "src", top, tmp_path / "link/src", tmp_path / "other/src", top / "vendored"]
    (site / "paths.pth").write_text("\n".join(map(str, [*lines, tmp_path / "gone"])))
    assert set(probe(top).folders) == {
        BASE,
        top / ".venv",
        tmp_path / "other/src/module.py",
        tmp_path / "wheel/module.py",  # the link to it lies in the slot
    }


def test_projects_that_are_installed_in_place_are_needed_but_this_one(
    top: Path, tmp_path: Path, make_environment: Make
) -> None:
    """Newer tools install a finder, and nothing on the path says where it leads."""
    site = make_environment(tmp_path / "env")
    folders = {"own": top, "a b": tmp_path / "a b", "copied": tmp_path / "copied"}
    for name, folder in folders.items():
        folder.mkdir(exist_ok=True)
        info = site / f"{name.replace(' ', '_')}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {info.name[:-12]}\nVersion: 1\n")
        told = {"url": folder.as_uri(), "dir_info": {"editable": name != "copied"}}
        (info / "direct_url.json").write_text(json.dumps(told))
    (site / "broken-1.dist-info").mkdir()
    (site / "broken-1.dist-info/direct_url.json").write_text("[")
    (tmp_path / "a b" / "module.py").touch()
    found = probe(top, str(tmp_path / "env/bin/python"))
    assert set(found.folders) == {BASE, tmp_path / "env", tmp_path / "a b" / "module.py"}


def test_of_another_project_only_what_python_imports_is_shown(
    top: Path, tmp_path: Path, make_environment: Make
) -> None:
    site, other = make_environment(tmp_path / "env"), tmp_path / "other"
    files = (
        *(".env", ".git/config", "secrets.txt", "data/table.csv", "notes/plan.md"),
        *("src/shop/__init__.py", "src/shop/page.html", "src/shop/sub/.key", "src/shop/sub/a.py"),
        *("src/plain/one.py", "src/spaced/deep/two.py", "src/.hidden/three.py", "src/read me.txt"),
    )
    for name in files:
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).touch()
    (site / "other.pth").write_text(f"{other / 'src'}\n")
    for path in (other / "src", other):  # on the path, or known by its metadata only
        told = made_up(prefixes=[str(tmp_path / "env")], paths=[str(site), str(path)])
        found = needed_folders(tmp_path / "env/bin/python", told, top, top)
        shown = {str(folder.relative_to(other)) for folder in found if folder.is_relative_to(other)}
        assert shown == {
            *("src/shop/__init__.py", "src/shop/page.html", "src/shop/sub/a.py"),
            *("src/plain", "src/spaced"),
        }


def test_the_home_folder_is_never_shown(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_environment: Make
) -> None:
    """Not even if it is an environment, or on the path; what is needed of it is."""
    home = tmp_path / "users/me"
    site = make_environment(home)
    (site / "paths.pth").write_text(f"{home}\n{tmp_path / 'users'}\n/\n")
    monkeypatch.setenv("HOME", str(home))
    found = probe(top, "~/bin/python")
    for folder in found.folders:
        assert not home.is_relative_to(folder)
    assert {home / "bin", home / "pyvenv.cfg"} <= set(found.folders)
    assert any(site.is_relative_to(folder) for folder in found.folders)


def test_a_project_that_is_itself_an_environment_is_not_shown(
    top: Path, make_environment: Make
) -> None:
    site = make_environment(top / "part")
    found = probe(top, "bin/python", "part")
    assert set(found.folders) >= {top / "part/bin", top / "part/pyvenv.cfg"}
    assert any(site.is_relative_to(folder) for folder in found.folders)
    for folder in found.folders:
        assert not (top / "part").is_relative_to(folder)


def test_nothing_of_the_project_and_of_the_user_is_imported(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "sitecustomize", "pathlib"):
        (top / f"{name}.py").write_text("raise SystemExit('imported')")
    monkeypatch.setenv("PYTHONPATH", str(top))
    monkeypatch.setenv("PYTHONSTARTUP", str(top / "json.py"))
    assert top not in probe(top).folders


def test_the_probe_gets_no_secrets_and_start_up_files_may_talk(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_environment: Make
) -> None:
    monkeypatch.setenv("SECRET_API_KEY", "abc")
    site = make_environment(tmp_path / "env")
    (site / "loud.pth").write_text("import sys; print('hello'); sys.stderr.write('{')\n")
    program = make_script(
        tmp_path / "python", f'env > "{tmp_path}/seen"\nexec "{tmp_path}/env/bin/python" "$@"'
    )
    assert probe(top, str(program)).version == sys.version_info[:3]
    seen = (tmp_path / "seen").read_text()
    assert "PATH=" in seen
    assert "SECRET" not in seen


def test_a_python_that_never_answers_is_refused_and_ended(
    top: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f'echo $$ > "{tmp_path}/told"\nmv "{tmp_path}/told" "{tmp_path}/pid"\nexec sleep 1000'
    program = make_script(tmp_path / "python", text)
    for limit_s in (0.3, 3, 30):  # on a busy machine it may not come to say who it is
        monkeypatch.setattr(interpreter, "PROBE_TIMEOUT_S", limit_s)
        assert "didn't answer within" in refusal(top, str(program))
        if (tmp_path / "pid").exists():
            break
    pid = int((tmp_path / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_what_is_no_usable_python_is_refused_with_what_to_do(top: Path, tmp_path: Path) -> None:
    old = {"fairtrial": 1, "version": [3, 7, 16], "executable": "/x"}
    scripts = {
        "old": (f"echo '{json.dumps(old)}'", "is Python 3.7.16; checks need 3.8 or newer"),
        "angry": ("echo 'no way' >&2; exit 3", "ended with status 3 and said: no way"),
        "mute": ("exit 0", "can't be used: it ended with status 0"),
    }
    for name, (text, message) in scripts.items():
        assert message in refusal(top, str(make_script(tmp_path / name, text)))
    (tmp_path / "data").write_text("x")
    assert "can't be run: Permission denied" in refusal(top, str(tmp_path / "data"))
    (tmp_path / "data").chmod(0o755)
    assert "can't be run: Exec format error" in refusal(top, str(tmp_path / "data"))
    assert "no program 'python9' on the path" in refusal(top, "python9")


def test_an_environment_that_is_missing_or_broken_is_named(
    top: Path, make_environment: Make
) -> None:
    told = refusal(top, ".venv/bin/python", "part")
    assert f"there is no {top}/part/.venv/bin/python or {top}/.venv/bin/python" in told
    assert "python -m venv .venv" in told
    make_environment(top / ".venv")
    assert f"is a folder, not a program; write {top}/.venv/bin/python" in refusal(top, ".venv")
    for link in (top / ".venv/bin").glob("python*"):
        link.unlink()
    (top / ".venv/bin/python").symlink_to("/gone/python3")
    for python in ("", ".venv/bin/python"):
        assert "is a link that leads nowhere; make that environment anew" in refusal(top, python)


def test_a_folder_to_start_in_that_is_not_there_is_named(top: Path) -> None:
    assert refusal(top, cwd="prat").startswith(f"cwd: no such folder: {top}/prat; it is relative")


# The folders by themselves, on made-up layouts.


def made_up(**told: list[str]) -> dict[str, Any]:
    return {"prefixes": [], "libraries": [], "paths": [], **told}


def test_an_environment_below_a_prefix_is_listed_where_the_slot_will_hide_it(
    tmp_path: Path,
) -> None:
    """A project inside of its Python's own folder: the slot lies over it, and over its .venv."""
    top = tmp_path / "conda/work/project"
    for folder in (top / ".venv/bin", top / "src", tmp_path / "conda/lib"):
        folder.mkdir(parents=True)
    told = made_up(
        prefixes=[str(top / ".venv"), str(tmp_path / "conda")],
        libraries=[f"{tmp_path}/conda/lib"],
        paths=[str(top / "src")],
    )
    found = needed_folders(top / ".venv/bin/python", told, top, top)
    assert set(found) == {tmp_path / "conda", top / ".venv"}


def test_no_folder_between_the_top_and_the_project_is_listed(tmp_path: Path) -> None:
    """It would lie over the slot."""
    project = tmp_path / "repo/packages/one"
    project.mkdir(parents=True)
    around = [str(tmp_path / "repo"), str(tmp_path / "repo/packages"), str(project)]
    told = made_up(prefixes=around, libraries=around, paths=around)
    assert needed_folders(Path("/gone/python"), told, tmp_path / "repo", project) == ()


NAMES = st.lists(st.sampled_from(["a", "b", "home", "repo", "part", ".venv", "lib"]), max_size=5)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data(), lists=st.lists(st.lists(NAMES, max_size=4), min_size=3, max_size=3))
def test_whatever_an_interpreter_names_the_list_is_short_and_safe(
    tmp_path: Path, data: st.DataObject, lists: list[list[list[str]]]
) -> None:
    home, top, project = tmp_path / "home", tmp_path / "repo", tmp_path / "repo/part/a"
    told: dict[str, list[str]] = {}
    for kind, paths in zip(("prefixes", "libraries", "paths"), lists, strict=True):
        told[kind] = [str(tmp_path.joinpath(*parts)) for parts in paths]
        for path in told[kind]:
            if data.draw(st.booleans()):
                Path(path).mkdir(parents=True, exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        found = needed_folders(tmp_path / "a/bin/python", told, top, project)
    named = {Path(path) for paths in told.values() for path in paths}
    environments = [Path(path) for path in told["prefixes"]]
    for path in found:
        assert path.exists()
        assert path in named | {tmp_path / "a/bin"}
        assert path not in (home, *home.parents, top, project, project.parent)
        around = [other for other in found if other != path and path.is_relative_to(other)]
        assert not any(path.is_relative_to(top) == other.is_relative_to(top) for other in around)
        if path.is_relative_to(top) and str(path) not in told["libraries"]:
            assert any(map(path.is_relative_to, environments))
    for path in map(Path, told["libraries"]):
        if path.exists() and path not in (home, *home.parents, top, project, project.parent):
            assert any(map(path.is_relative_to, found))


@pytest.mark.skipif(BWRAP is None, reason="needs bubblewrap")
@pytest.mark.parametrize("kind", ["venv", "chained", "system"])
def test_with_these_folders_alone_it_runs(
    top: Path, tmp_path: Path, kind: str, make_environment: Make
) -> None:
    python = ""
    if kind == "system":
        python = "/usr/bin/python3"
        if not Path(python).exists():
            pytest.skip("there is no system Python")
    else:
        site = make_environment(top / ".venv")
        (tmp_path / "other").mkdir()
        (tmp_path / "other/neighbour.py").touch()
        (site / "other.pth").write_text(str(tmp_path / "other"))
    if kind == "chained":
        (tmp_path / "link").symlink_to(top / ".venv")
        python = str(tmp_path / "link/bin/python")
    found = probe(top, python)
    mounts = [word for folder in found.folders for word in ("--ro-bind", str(folder), str(folder))]
    system = ["--ro-bind", "/usr", "/usr", "--proc", "/proc", "--dev", "/dev"]
    for name in ("lib", "lib64", "bin"):
        path = Path("/", name)
        if path.is_symlink():
            system += ["--symlink", str(path.readlink()), str(path)]
        elif path.exists():
            system += ["--ro-bind", str(path), str(path)]
    names = "json, ssl, ctypes, decimal, sqlite3" + ("" if kind == "system" else ", neighbour")
    tried = subprocess.run(
        [
            str(BWRAP),
            *system,
            *mounts,
            str(found.executable),
            "-c",
            f"import {names}; print('ran')",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if "bwrap: " in tried.stderr and "execvp" not in tried.stderr:
        pytest.skip(f"bubblewrap can't be used here: {tried.stderr.strip()}")
    assert tried.stdout == "ran\n", tried.stderr
