"""Atomicity of exports: readers see the old or the new set, also after kills and full disks."""

import contextlib
import csv
import errno
import json
import os
import shutil
import signal
import sqlite3
import stat
import sys
import threading
import warnings

import pytest
from small_ledger_kit import LedgerLab, make_small_study

from fairtrial import LedgerError, StudyError
from fairtrial.cli.main import main
from fairtrial.study.ledger import LedgerReader
from fairtrial.study.tables import export_tables, generation, run_tables
from fairtrial.study.tables.export import check_target
from fairtrial.study.tables.integrity import validate_artifacts


@pytest.fixture
def lab(tmp_path):
    """A study of 100 runs; `run_until(n)` adds results until n runs are done."""
    lab = LedgerLab(tmp_path / "out", make_small_study(replicates=50))
    lab.done = 0

    def run_until(number):
        for plan_index in range(lab.done, number):
            lab.add(plan_index)
        lab.done = number
        lab.ledger.commit()

    lab.run_until = run_until
    yield lab
    lab.ledger.close()


def count(folder):
    with (folder / "runs.csv").open(encoding="utf-8", newline="") as file:
        return len(list(csv.reader(file))) - 1


def hidden(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith(".tables-"))


def clear(folder):
    """Remove all sets but the current one."""
    link = folder / ".tables"
    current = str(link.readlink()) if link.is_symlink() else None
    for path in [folder / name for name in hidden(folder) if name != current]:
        path.unlink() if path.is_symlink() else shutil.rmtree(path)


def fork(work):
    """Call a function in a forked process; returns its wait status: a signal, or 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # no thread of ours is running
        child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        os.fsync = lambda _: None  # for speed: data in the kernel survive a kill
        work()
        os._exit(0)
    finally:
        os._exit(1)


def die_in(line_number):
    """Kill this process at the nth executed line of `generation` from now on."""
    left = line_number

    def trace(frame, what, _):
        nonlocal left
        if frame.f_code.co_filename != generation.__file__:
            return None
        if what == "line":
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    sys.settrace(trace)


def die_at(line_number, step, folder, **settings):
    """Export in a process that is killed at the nth line of a step of `generation`.

    0 kills while tables are being written. Returns the wait status: a signal, or 0 if it finished.
    """
    original = getattr(generation, step)

    def begin(*arguments):
        die_in(line_number)  # not earlier: tracing would slow down the writing
        return original(*arguments)

    def export():
        setattr(generation, step, begin)
        if line_number == 0:
            run_tables.RunTables.finish = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        export_tables(LedgerReader.open(folder), folder, **settings)

    return fork(export)


def instants(folder, step="_publish", growth=5, **settings):
    """Kill exports at ever later lines until one finishes; yields whether each did."""
    line_number = 0
    while True:
        ended = die_at(line_number, step, folder, **settings)
        assert ended in (0, signal.SIGKILL)
        yield ended == 0
        if ended == 0:
            return
        # By growing steps: leftovers of killed exports make the next export longer.
        line_number += max(1, line_number // growth)


def runs_in_mirror(folder):
    with contextlib.closing(sqlite3.connect(folder / "study.sqlite")) as mirror:
        return mirror.execute("SELECT count(*) FROM runs").fetchone()[0]


def test_a_first_export_killed_at_any_instant_leaves_no_set_or_a_complete_one(lab, tmp_path):
    lab.run_until(5)
    export_tables(lab.reader, tmp_path / "warm")  # so that children don't import numpy again
    seen = []
    for got_through in instants(lab.folder):
        if (lab.folder / "runs.csv").exists():
            assert validate_artifacts(lab.folder) == []
            assert count(lab.folder) == 5
        seen.append((lab.folder / "runs.csv").exists())
        if not got_through:
            shutil.rmtree(lab.folder / ".tables", ignore_errors=True)
            for path in lab.folder.iterdir():
                if path.name.startswith(".tables") or path.is_symlink():
                    shutil.rmtree(
                        path
                    ) if path.is_dir() and not path.is_symlink() else path.unlink()
    assert seen[0] is False
    assert seen[-1] is True


@pytest.fixture
def stage(monkeypatch, tmp_path):
    """Export to a folder; returns a copy of it from the moment before its set is published."""
    publish = generation._publish

    def stage(lab):
        names = []

        def copy(folder, path):
            ledger = shutil.ignore_patterns("ledger*")
            shutil.copytree(folder, tmp_path / "staged", symlinks=True, ignore=ledger)
            names.append(path.name)
            publish(folder, path)

        with monkeypatch.context() as patch:
            patch.setattr(generation, "_publish", copy)
            export_tables(lab.reader, lab.folder)
        return tmp_path / "staged", *names

    return stage


@pytest.mark.slow
def test_a_later_export_killed_at_any_instant_leaves_the_old_set_or_the_new(lab, stage, tmp_path):
    lab.run_until(5)
    export_tables(lab.reader, lab.folder, sqlite=True)
    lab.run_until(8)
    assert die_at(0, "_publish", lab.folder) == signal.SIGKILL
    assert validate_artifacts(lab.folder) == []
    assert count(lab.folder) == 5
    clear(lab.folder)
    staged, name = stage(lab)
    seen, ended = [], None
    while ended != 0:  # every line, each time from the same state
        folder = tmp_path / f"killed-{len(seen)}"
        shutil.copytree(staged, folder, symlinks=True)

        def publish(folder=folder):
            die_in(len(seen) + 1)
            generation._publish(folder, folder / name)

        ended = fork(publish)
        assert ended in (0, signal.SIGKILL)
        assert validate_artifacts(folder) == []
        seen.append(count(folder))
    assert set(seen) == {5, 8}
    assert seen == sorted(seen)
    assert len(seen) > 50
    for whole in (folder, lab.folder):
        assert runs_in_mirror(whole) == 8  # existing formats are exported again
        assert len(hidden(whole)) == 2
    die_at(0, "_publish", lab.folder)
    assert len(hidden(lab.folder)) == 3
    export_tables(lab.reader, lab.folder)
    assert len(hidden(lab.folder)) == 2  # leftovers of the killed export are removed


def test_links_that_were_copied_as_files_become_links_again_without_a_gap(lab, tmp_path):
    lab.run_until(5)
    export_tables(lab.reader, lab.folder, sqlite=True)
    plain = tmp_path / "plain"
    shutil.copytree(lab.folder, plain, ignore=shutil.ignore_patterns(".tables*", "ledger*"))
    assert not (plain / "runs.csv").is_symlink()
    lab.run_until(8)
    lab.ledger.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(lab.folder / "ledger.sqlite", plain)
    seen = []
    for _ in instants(plain):
        assert validate_artifacts(plain) == []
        seen.append(count(plain))
    assert set(seen) == {5, 8}
    assert (plain / "runs.csv").is_symlink()


def test_a_reader_never_sees_half_a_set(lab):
    lab.run_until(5)
    export_tables(lab.reader, lab.folder)
    problems, stop, looked = [], threading.Event(), threading.Event()

    def look():
        while not stop.is_set():
            problems.extend(validate_artifacts(lab.folder))
            looked.set()

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        for number in range(6, 16):
            lab.run_until(number)
            # A set is kept until the second export after it: the reader must not be slower.
            looked.clear()
            assert looked.wait(60)
            export_tables(lab.reader, lab.folder)
    finally:
        stop.set()
        watcher.join()
    assert problems == []
    assert count(lab.folder) == 15


def test_a_slow_reader_can_finish_the_set_it_started_to_read(lab):
    lab.run_until(5)
    export_tables(lab.reader, lab.folder)
    old = generation.locate_file(lab.folder, "events.csv")
    lab.run_until(6)
    export_tables(lab.reader, lab.folder)
    assert len(old.read_text().splitlines()) == 6
    export_tables(lab.reader, lab.folder)
    assert not old.exists()
    assert len(hidden(lab.folder)) == 2


def test_concurrent_exports_leave_one_complete_set(lab):
    lab.run_until(10)
    failures = []

    def export():
        reader = LedgerReader.open(lab.folder)
        try:
            for _ in range(5):
                export_tables(reader, lab.folder)
        except Exception as error:
            failures.append(error)
        finally:
            reader.close()

    threads = [threading.Thread(target=export) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert validate_artifacts(lab.folder) == []
    assert len(hidden(lab.folder)) == 2


# -- file systems without links --


@pytest.fixture
def no_links(monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "symlink", refuse)


def test_without_links_files_are_moved_one_by_one(lab, no_links):
    lab.run_until(5)
    export_tables(lab.reader, lab.folder, sqlite=True)
    assert validate_artifacts(lab.folder) == []
    lab.run_until(6)
    export_tables(lab.reader, lab.folder)
    assert validate_artifacts(lab.folder) == []
    assert count(lab.folder) == 6
    assert runs_in_mirror(lab.folder) == 6
    assert hidden(lab.folder) == []
    assert not any(path.is_symlink() for path in lab.folder.iterdir())


def test_without_links_a_kill_half_way_is_detected_and_repaired(lab, no_links, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    lab.run_until(5)
    export_tables(lab.reader, lab.folder)
    lab.run_until(6)
    had_problems = set()
    for _ in instants(lab.folder, "_move"):
        had_problems.add(bool(validate_artifacts(lab.folder)))
        export_tables(lab.reader, lab.folder)  # half a set does not count as foreign files
        assert validate_artifacts(lab.folder) == []
        lab.run_until(lab.done + 1)
    assert had_problems == {True, False}


# -- foreign files --


def test_foreign_files_are_not_replaced(lab):
    lab.run_until(5)
    (lab.folder / "runs.csv").write_text("study_id,condition_id,run_id,score\ns,c,r,1\n")
    (lab.folder / "study.yaml").write_text("my: own\n")
    (lab.folder / "events.csv").mkdir()
    with pytest.raises(StudyError) as caught:
        check_target(lab.folder)
    assert len(caught.value.mistakes) == 3
    with pytest.raises(StudyError, match="move it away, or choose another output directory"):
        export_tables(lab.reader, lab.folder)
    assert (lab.folder / "study.yaml").read_text() == "my: own\n"
    assert hidden(lab.folder) == []


def test_a_file_that_appears_while_tables_are_written_is_not_replaced(lab, monkeypatch):
    lab.run_until(5)
    finish = run_tables.RunTables.finish

    def finish_late(self):
        (lab.folder / "runs.csv").write_text("mine")
        finish(self)

    monkeypatch.setattr(run_tables.RunTables, "finish", finish_late)
    with pytest.raises(StudyError, match=r"runs\.csv can't be replaced by a table"):
        export_tables(lab.reader, lab.folder)
    assert (lab.folder / "runs.csv").read_text() == "mine"


def test_a_table_that_was_edited_into_a_file_of_its_own_is_not_replaced(lab):
    lab.run_until(5)
    export_tables(lab.reader, lab.folder)
    text = (lab.folder / "runs.csv").read_text()
    (lab.folder / "runs.csv").unlink()
    (lab.folder / "runs.csv").write_text(text + "mine\n")  # as editors do
    with pytest.raises(StudyError, match=r"can't be replaced by a table: it was not written by"):
        export_tables(lab.reader, lab.folder)
    (lab.folder / "runs.csv").write_text(text)
    export_tables(lab.reader, lab.folder)
    assert validate_artifacts(lab.folder) == []


def test_a_link_to_another_place_is_not_replaced(lab, tmp_path):
    lab.run_until(5)
    (tmp_path / "mine.csv").write_text("mine")
    (lab.folder / "runs.csv").symlink_to(tmp_path / "mine.csv")
    with pytest.raises(StudyError, match="is a link to another place"):
        export_tables(lab.reader, lab.folder)
    assert (tmp_path / "mine.csv").read_text() == "mine"


def test_a_plan_that_was_written_there_is_replaced(lab, tmp_path, capsys):
    study = make_small_study(replicates=50)
    study.to_yaml(tmp_path / "study.yaml")
    out = [str(lab.folder / name) for name in ("conditions.csv", "runs.csv")]
    with pytest.raises(SystemExit) as stop:
        main(["plan", str(tmp_path / "study.yaml"), "--out", out[0], "--runs", out[1]])
    assert stop.value.code == 0
    lab.run_until(5)
    check_target(lab.folder)
    export_tables(lab.reader, lab.folder)
    assert count(lab.folder) == 5


# -- full disks and permissions --


@pytest.mark.parametrize("call", [1, 4, 9])
def test_a_full_disk_leaves_the_old_set_and_says_what_to_do(lab, monkeypatch, call):
    lab.run_until(5)
    export_tables(lab.reader, lab.folder)
    lab.run_until(6)
    sync, calls = os.fsync, 0

    def full(descriptor):
        nonlocal calls
        calls += 1
        if calls == call:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(LedgerError, match="No space left on device") as caught:
            export_tables(lab.reader, lab.folder)
    assert "make room" in str(caught.value)
    assert caught.value.exit_code == 3
    assert count(lab.folder) == 5
    assert validate_artifacts(lab.folder) == []
    assert len(hidden(lab.folder)) == 1
    export_tables(lab.reader, lab.folder)
    assert count(lab.folder) == 6


def test_a_write_that_really_fails_leaves_the_old_set(lab, tmp_path):
    """In a child process with a limit on file sizes, writes fail as on a full disk."""
    lab.run_until(20)
    export_tables(lab.reader, lab.folder)
    message = tmp_path / "message"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        try:
            import resource

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            reader = LedgerReader.open(lab.folder)
            resource.setrlimit(resource.RLIMIT_FSIZE, (2_000, 2_000))
            try:
                export_tables(reader, lab.folder)
            except LedgerError as error:
                message.write_text(str(error))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert "the tables can't be written: File too large" in message.read_text()
    assert validate_artifacts(lab.folder) == []
    assert len(hidden(lab.folder)) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission_is_reported(lab, tmp_path):
    lab.run_until(5)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(StudyError, match="can't be written: Permission denied"):
        export_tables(lab.reader, closed)


def test_a_file_in_place_of_the_folder_is_reported(lab, tmp_path):
    lab.run_until(5)
    (tmp_path / "file").write_text("")
    with pytest.raises(StudyError, match="can't be written"):
        export_tables(lab.reader, tmp_path / "file" / "below")


def test_files_have_the_mode_that_the_umask_gives(lab):
    lab.run_until(5)
    umask = os.umask(0o027)
    try:
        export_tables(lab.reader, lab.folder, sqlite=True, parquet=True)
    finally:
        os.umask(umask)
    names = json.loads((lab.folder / "manifest.json").read_text())["files"]
    assert {stat.S_IMODE((lab.folder / name).stat().st_mode) for name in names} == {0o640}
