"""Files that are full, torn, foreign, out of reach (spec 20, 21; traps)."""

import hashlib
import os
import random
import shutil
import sqlite3
import subprocess
import sys

import pytest

from fairtrial.study.tables.integrity import validate_artifacts

pytest_plugins = ("fault_fixtures",)
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

BIG, BIG_RUNS = {"replicates": 100}, 300


def assert_refused(ended, *says):
    """One clear message, exit code 3."""
    assert ended.code == 3, (ended.code, ended.err)
    assert len(ended.errors) == 1, ended.err
    for words in says:
        assert words in ended.errors[0]


# -- no room --


def test_a_full_disk_stops_the_study_and_loses_nothing(stage):
    stage.write(run_budget=BIG)
    faults = {"file_bytes": 300_000, "group_runs": 10}
    ended = stage.run("--parallel", 2, faults=faults)
    assert_refused(ended, "disk", f"fairtrial resume {stage.output}")
    done = stage.done()
    assert 0 < len(done) == len(set(done)) < BIG_RUNS
    assert stage.query("PRAGMA integrity_check") == [("ok",)]
    before = stage.calls()
    assert stage.run("--resume", "--parallel", 2).code == 0
    assert len(stage.table()) == BIG_RUNS
    assert not set(stage.calls() - before) & set(done)


@pytest.mark.parametrize(
    ("most_bytes", "more"), [(10_000, ()), (100_000, ("--sqlite",))], ids=["csv", "sqlite"]
)
def test_a_full_disk_while_tables_are_written_leaves_the_old_ones(stage, most_bytes, more):
    stage.write(run_budget=BIG)
    assert stage.run("--limit", 3).code == 0
    ended = stage.run("--resume", "--parallel", 2, *more, faults={"full_in_export": most_bytes})
    assert_refused(ended, "tables can't be written", "fairtrial export")
    assert len(stage.done()) == BIG_RUNS
    assert validate_artifacts(stage.output) == []
    assert len(stage.table()) == 3
    calls = stage.calls()
    assert stage.run("--resume", *more).code == 0
    assert len(stage.table()) == BIG_RUNS
    assert stage.calls() == calls
    assert len(list(stage.output.glob(".tables-*"))) <= 2


SMALL_DISK = 'mount -t tmpfs -o size=8m none disk && exec "$@"'


def test_a_disk_that_is_really_full(stage):
    """On a small disk of its own, where mounting one is allowed."""
    stage.write(run_budget=BIG)
    (stage.folder / "disk").mkdir()
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    prefix = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", SMALL_DISK, "sh"]
    tried = subprocess.run([*prefix, "true"], cwd=stage.folder, capture_output=True, check=False)
    if tried.returncode:
        pytest.skip(f"no disk of its own: {tried.stderr.decode()}")
    end = ("disk/out", "--parallel", 2, "--no-progress")
    fill = "dd if=/dev/zero of=disk/ballast bs=1k"
    ended = stage.several(
        ("sh", "-c", f"{fill} count=7850"),
        ("run", "study.yaml", "--output", *end),
        ("sh", "-c", "rm disk/ballast"),
        ("resume", *end),
        ("sh", "-c", f"{fill} || true"),  # all that there is
        ("resume", "--sqlite", *end),
        ("sh", "-c", "rm disk/ballast"),
        ("resume", *end),
        ("sh", "-c", "cp -a disk/out out"),
        prefix=prefix,
    )
    errors = [each.err for each in ended]
    assert [each.code for each in ended] == [0, 3, 0, 0, 0, 3, 0, 0, 0], errors
    assert "no room" in errors[1]
    assert "Traceback" not in "".join(errors)
    assert len(stage.table()) == len(set(stage.done())) == BIG_RUNS
    assert validate_artifacts(stage.output) == []


# -- what is no ledger --


def truncate(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3 + 7])


def tear(path):
    data = bytearray(path.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 3 * 4096] = random.Random(1).randbytes(3 * 4096)
    path.write_bytes(data)


def empty(path):
    path.write_bytes(b"")


def replace_by_text(path):
    path.write_text("dear diary,\n" * 1000)


def replace_by_foreign(path):
    path.unlink()
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE results (turn INTEGER)")
    connection.commit()
    connection.close()


def make_newer(path):
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.commit()
    connection.close()


def replace_by_folder(path):
    path.unlink()
    path.mkdir()


DAMAGES = {
    truncate: "damaged",
    tear: "damaged",
    empty: "empty",
    replace_by_text: "no ledger",
    replace_by_foreign: "no ledger of fairtrial's",
    make_newer: "newer fairtrial",
    replace_by_folder: "is no file",
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_what_is_no_sound_ledger_is_refused_and_left_alone(stage, damage):
    stage.write(run_budget={"replicates": 30})
    assert stage.run().code == 0
    path = stage.output / "ledger.sqlite"
    for log in stage.output.glob("ledger.sqlite-*"):
        log.unlink()
    damage(path)
    before = _content(path)
    calls = stage.calls()
    for words in (
        ("run", stage.study_file, "--output", stage.output, "--resume"),
        ("run", stage.study_file, "--output", stage.output),
        ("resume", stage.output),
        ("retry", stage.output, "--failed"),
    ):
        ended = stage.call(*words)
        assert_refused(ended, str(path), DAMAGES[damage])
        assert "move it away" in ended.err or "choose another --output" in ended.err
    if damage not in (truncate, tear):  # then what is left may be read
        assert_refused(stage.call("status", stage.output), DAMAGES[damage])
    assert _content(path) == before
    assert stage.calls() == calls
    assert validate_artifacts(stage.output) == []


def _content(path):
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None


# -- out of reach --


@pytest.mark.parametrize("words", [("--parallel", 1), ("--parallel", 2, "--resume")])
def test_an_output_directory_that_cant_be_made(stage, words):
    stage.write()
    (stage.folder / "file").write_text("x")
    stage.output = stage.folder / "file" / "out"
    assert_refused(stage.run(*words), str(stage.output), "can't be made")
    stage.output = stage.folder / "file"
    ended = stage.run(*words)
    assert ended.code in (2, 3)
    assert len(ended.errors) == 1
    assert stage.calls() == {}


def test_an_output_directory_that_is_read_only(stage):
    """As somebody whom permissions bind: root without the right to go past them."""
    stage.write()
    assert stage.run("--limit", 2).code == 0
    shut = stage.folder / "shut"
    shut.mkdir()
    for path in (stage.output, stage.output / "ledger.sqlite", stage.output / "owner.lock", shut):
        path.chmod(path.stat().st_mode & ~0o222)
    prefix = []
    if os.geteuid() == 0:
        without = "-dac_override,-dac_read_search"
        prefix = ["setpriv", f"--bounding-set={without}", f"--inh-caps={without}"]
        if shutil.which("setpriv") is None:
            pytest.skip("setpriv is not installed")
    if subprocess.run([*prefix, "test", "-w", str(shut)], check=False).returncode == 0:
        pytest.skip("permissions bind nobody here")
    outputs = (stage.output, shut, shut / "out")
    words = [("run", "study.yaml", "--resume", "--output", output) for output in outputs]
    for output, ended in zip(outputs, stage.several(*words, prefix=prefix), strict=True):
        assert_refused(ended, str(output))
        assert "Traceback" not in ended.err
    assert len(stage.calls()) == 2


def test_a_read_only_disk(stage):
    """Mounted so, where that is allowed: even root can't write then."""
    stage.write()
    assert stage.run("--limit", 2).code == 0
    script = (
        "mount --bind out out && mount -o remount,ro,bind out || exit 77; "
        '"$PYTHON" -m fairtrial run study.yaml --output out --resume --no-progress'
    )
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed")
    ended = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
        cwd=stage.folder,
        env=stage.environment() | {"PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode == 77 or "unshare" in ended.stderr:
        pytest.skip(f"no such disk: {ended.stderr}")
    assert ended.returncode == 3, ended.stderr
    assert "can't be written to: Read-only file system" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(stage.calls()) == 2
