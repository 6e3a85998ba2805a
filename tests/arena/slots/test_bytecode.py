"""The base's bytecode is imported, except for modules that a candidate changed."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from pool_kit import make_mixed_repository, memory_folder, read_contents
from repository_kit import write_files

from fairtrial.arena import Changes, FileState
from fairtrial.arena.slots import bytecode
from fairtrial.arena.slots.bytecode import compile_files
from fairtrial.arena.slots.pool import WorktreePool

PYTHON = Path(sys.executable)


@pytest.fixture(autouse=True)
def home(monkeypatch):
    with memory_folder() as folder:
        monkeypatch.setenv("FAIRTRIAL_HOME", str(folder))
        yield


def run_python(top, code):
    """Return what a Python program in `top` prints, without writing bytecode."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", code],
        cwd=top,
        env={"PYTHONPATH": str(top / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def in_slots(repo, *works, **options):
    async def run():
        async with WorktreePool(repo, 1, python=PYTHON, **options) as pool:
            results = []
            for work in works:
                async with pool.acquire() as slot:
                    results.append(await work(slot))
            return results

    return anyio.run(run)


def test_slots_hold_bytecode_that_is_used_and_a_users_own_is_not_taken_along(tmp_path):
    repo = make_mixed_repository(tmp_path / "repo")
    write_files(repo, {"src/pkg/__pycache__/mod.cpython-399.pyc": "the user's own"})

    async def work(slot):
        caches = [path for path in read_contents(slot.path) if path.endswith(".pyc")]
        output = run_python(
            slot.path, "import pkg.mod; print(pkg.mod.__cached__, pkg.mod.__file__)"
        )
        header = (slot.path / "src/pkg/__pycache__").glob("mod.*.pyc")
        return caches, output.split(), [path.read_bytes()[4] for path in header], slot.path

    [(caches, (cached, source), flags, path)] = in_slots(repo, work)
    tag = sys.implementation.cache_tag
    assert f"src/pkg/__pycache__/mod.{tag}.pyc" in caches
    assert not any("399" in cache for cache in caches)
    assert flags == [0b11]  # by hash, and checked
    assert cached == str(path / f"src/pkg/__pycache__/mod.{tag}.pyc")
    assert source == str(path / "src/pkg/mod.py")


def test_a_rewrite_of_the_same_size_in_the_same_second_is_what_python_imports(tmp_path):
    """By default, Python would reuse stale bytecode."""
    repo = make_mixed_repository(tmp_path / "repo")
    show = "import pkg.mod; print(pkg.mod.VALUE)"

    async def forged(slot):
        await slot.write_candidate(Changes({"src/pkg/mod.py": FileState(b"VALUE = 2\n")}))
        place = slot.path / "src/pkg/mod.py"
        os.utime(place, (0, 0))
        first = run_python(slot.path, show)
        place.write_bytes(b"VALUE = 3\n")
        os.utime(place, (0, 0))
        return first, run_python(slot.path, show)

    async def fresh(slot):
        return run_python(slot.path, show)

    assert in_slots(repo, forged, fresh) == [("2", "3"), "1"]


def test_forged_bytecode_does_not_outlive_a_reset(tmp_path):
    repo = make_mixed_repository(tmp_path / "repo")
    show = "import pkg.mod; print(pkg.mod.VALUE)"

    async def forge(slot):
        [place] = (slot.path / "src/pkg/__pycache__").glob("mod.*.pyc")
        code = compile("VALUE = 666\n", "mod.py", "exec")
        hashed = importlib.util.source_hash(b"VALUE = 1\n")
        import importlib._bootstrap_external as loader

        place.write_bytes(bytes(loader._code_to_hash_pyc(code, hashed, True)))
        return run_python(slot.path, show)

    async def fresh(slot):
        return run_python(slot.path, show)

    assert in_slots(repo, forge, fresh) == ["666", "1"]


def compiled(top, files, python=PYTHON):
    notes = anyio.run(compile_files, top, files, python)
    return notes, sorted(path.name.split(".")[0] for path in top.rglob("*.pyc"))


def test_files_that_can_not_be_compiled_cost_nothing_else(tmp_path):
    files = {"good.py": "x = 1", "bad.py": "def", "other.txt": "", "sp ace.py": "", "ümlaut.py": ""}
    write_files(tmp_path, files)
    (tmp_path / "bytes.py").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "gone.py").symlink_to("nowhere")
    notes, compiled_names = compiled(tmp_path, [*files, "bytes.py", "gone.py"])
    assert notes == []
    assert compiled_names == ["good", "sp ace", "ümlaut"]


def test_without_files_nothing_is_compiled(tmp_path):
    assert compiled(tmp_path, []) == ([], [])


def test_the_callers_variables_are_ignored(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path / "elsewhere"))
    write_files(tmp_path, {"m.py": "", "compileall.py": "raise SystemExit"})
    assert compiled(tmp_path, ["m.py"]) == ([], ["m"])
    assert (tmp_path / "__pycache__").is_dir()


def test_a_python_that_does_not_start_is_noted(tmp_path):
    write_files(tmp_path, {"m.py": ""})
    notes, compiled_names = compiled(tmp_path, ["m.py"], tmp_path / "no-python")
    assert compiled_names == []
    assert "no-python" in notes[0]


def test_a_python_that_takes_too_long_is_stopped(tmp_path, monkeypatch):
    slow = tmp_path / "slow"
    slow.write_text(f"#!{sys.executable}\nimport time\ntime.sleep(600)\n")
    slow.chmod(0o755)
    monkeypatch.setattr(bytecode, "TIMEOUT_S", 0.2)
    write_files(tmp_path, {"m.py": "", "__pycache__/m.cpython-311.pyc.12345": "half"})
    notes, _ = compiled(tmp_path, ["m.py"], slow)
    assert "took more than" in notes[0]
    assert list((tmp_path / "__pycache__").iterdir()) == []
