"""A set of tables changes as one, whatever happens while it is written."""

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
from small_ledger_kit import Lab, small_study

from fairtrial import LedgerError, StudyError
from fairtrial.cli.main import main
from fairtrial.study import LedgerReader, export_tables
from fairtrial.study.tables import csv_tables as csv_set, generation
from fairtrial.study.tables.export import check_target
from fairtrial.study.tables.integrity import validate_artifacts


@pytest.fixture
def lab(tmp_path):
    """A study of 100 runs; as many of them are done as are told."""
    here = Lab(tmp_path / "out", small_study(replicates=50))
    here.done = 0

    def do(number):
        for place in range(here.done, number):
            here.add(place)
        here.done = number
        here.ledger.commit()

    here.do = do
    yield here
    here.ledger.close()


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
    """Do something in a process of its own; returns how it ended: a signal, or 0."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # nothing of ours runs in threads
        child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    try:
        os.fsync = lambda _: None  # a kill takes nothing from the kernel; this is for speed
        work()
        os._exit(0)
    finally:
        os._exit(1)


def die_in(line_number):
    """Be killed at the nth line of `generation` from now on."""
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
    """Export in a process that is killed at the nth line from a step of `generation` on.

    0 is while tables are being written. Returns how it ended: a signal, or 0 if it got through.
    """
    original = getattr(generation, step)

    def begin(*arguments):
        die_in(line_number)  # not before: it would slow the writing down
        return original(*arguments)

    def export():
        setattr(generation, step, begin)
        if line_number == 0:
            csv_set.GrowingCsvFile.finish = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        export_tables(LedgerReader.open(folder), folder, **settings)

    return fork(export)


def instants(folder, step="_publish", growth=5, **settings):
    """Kill exports at ever later instants until one gets through; says which do."""
    line_number = 0
    while True:
        ended = die_at(line_number, step, folder, **settings)
        assert ended in (0, signal.SIGKILL)
        yield ended == 0
        if ended == 0:
            return
        # By growing steps: what killed exports leave makes the next one's way longer.
        line_number += max(1, line_number // growth)


def runs_in_mirror(folder):
    with contextlib.closing(sqlite3.connect(folder / "study.sqlite")) as mirror:
        return mirror.execute("SELECT count(*) FROM runs").fetchone()[0]


def test_a_first_export_killed_at_any_instant_leaves_nothing_or_the_whole(lab, tmp_path):  # spec 24
    lab.do(5)
    export_tables(lab.reader, tmp_path / "warm")  # or every child imports numpy anew
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
    """Export to a folder; gives a copy of it at the instant before its set is published."""
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
def test_a_later_export_killed_at_any_instant_leaves_the_old_set_or_the_new(  # spec 24
    lab, stage, tmp_path
):
    lab.do(5)
    export_tables(lab.reader, lab.folder, sqlite=True)
    lab.do(8)
    assert die_at(0, "_publish", lab.folder) == signal.SIGKILL
    assert validate_artifacts(lab.folder) == []
    assert count(lab.folder) == 5
    clear(lab.folder)
    staged, name = stage(lab)
    seen, ended = [], None
    while ended != 0:  # every line of it, each time from the same beginning
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
        assert runs_in_mirror(whole) == 8  # a form that is there is not left behind
        assert len(hidden(whole)) == 2
    die_at(0, "_publish", lab.folder)
    assert len(hidden(lab.folder)) == 3
    export_tables(lab.reader, lab.folder)
    assert len(hidden(lab.folder)) == 2  # what was killed is gone


def test_links_that_were_copied_as_files_become_links_again_without_a_gap(lab, tmp_path):
    lab.do(5)
    export_tables(lab.reader, lab.folder, sqlite=True)
    plain = tmp_path / "plain"
    shutil.copytree(lab.folder, plain, ignore=shutil.ignore_patterns(".tables*", "ledger*"))
    assert not (plain / "runs.csv").is_symlink()
    lab.do(8)
    lab.ledger.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(lab.folder / "ledger.sqlite", plain)
    seen = []
    for _ in instants(plain):
        assert validate_artifacts(plain) == []
        seen.append(count(plain))
    assert set(seen) == {5, 8}
    assert (plain / "runs.csv").is_symlink()


def test_a_reader_never_sees_half_a_set(lab):
    lab.do(5)
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
            lab.do(number)
            # A set stays until the one after the next: nobody is to be that slow.
            looked.clear()
            assert looked.wait(60)
            export_tables(lab.reader, lab.folder)
    finally:
        stop.set()
        watcher.join()
    assert problems == []
    assert count(lab.folder) == 15


def test_a_slow_reader_keeps_the_set_it_began_with(lab):
    lab.do(5)
    export_tables(lab.reader, lab.folder)
    old = generation.locate(lab.folder, "events.csv")
    lab.do(6)
    export_tables(lab.reader, lab.folder)
    assert len(old.read_text().splitlines()) == 6
    export_tables(lab.reader, lab.folder)
    assert not old.exists()
    assert len(hidden(lab.folder)) == 2


def test_two_exports_at_once_leave_one_whole_set(lab):
    lab.do(10)
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
    lab.do(5)
    export_tables(lab.reader, lab.folder, sqlite=True)
    assert validate_artifacts(lab.folder) == []
    lab.do(6)
    export_tables(lab.reader, lab.folder)
    assert validate_artifacts(lab.folder) == []
    assert count(lab.folder) == 6
    assert runs_in_mirror(lab.folder) == 6
    assert hidden(lab.folder) == []
    assert not any(path.is_symlink() for path in lab.folder.iterdir())


def test_without_links_a_kill_half_way_is_found_out_and_mended(lab, no_links, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    lab.do(5)
    export_tables(lab.reader, lab.folder)
    lab.do(6)
    told = set()
    for _ in instants(lab.folder, "_move"):
        told.add(bool(validate_artifacts(lab.folder)))
        export_tables(lab.reader, lab.folder)  # not taken for somebody else's files
        assert validate_artifacts(lab.folder) == []
        lab.do(lab.done + 1)
    assert told == {True, False}


# -- what is not ours --


def test_files_of_somebody_else_are_not_replaced(lab):
    lab.do(5)
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
    lab.do(5)
    finish = csv_set.GrowingCsvFile.finish

    def finish_late(self, columns):
        (lab.folder / "runs.csv").write_text("mine")
        finish(self, columns)

    monkeypatch.setattr(csv_set.GrowingCsvFile, "finish", finish_late)
    with pytest.raises(StudyError, match=r"runs\.csv is to hold a table"):
        export_tables(lab.reader, lab.folder)
    assert (lab.folder / "runs.csv").read_text() == "mine"


def test_a_table_that_was_edited_into_a_file_of_its_own_is_not_replaced(lab):
    lab.do(5)
    export_tables(lab.reader, lab.folder)
    text = (lab.folder / "runs.csv").read_text()
    (lab.folder / "runs.csv").unlink()
    (lab.folder / "runs.csv").write_text(text + "mine\n")  # as editors do
    with pytest.raises(StudyError, match=r"runs\.csv is to hold a table, and was not written by"):
        export_tables(lab.reader, lab.folder)
    (lab.folder / "runs.csv").write_text(text)
    export_tables(lab.reader, lab.folder)
    assert validate_artifacts(lab.folder) == []


def test_a_link_to_elsewhere_is_left_alone(lab, tmp_path):
    lab.do(5)
    (tmp_path / "mine.csv").write_text("mine")
    (lab.folder / "runs.csv").symlink_to(tmp_path / "mine.csv")
    with pytest.raises(StudyError, match="is a link to somewhere else"):
        export_tables(lab.reader, lab.folder)
    assert (tmp_path / "mine.csv").read_text() == "mine"


def test_a_plan_that_was_written_there_is_replaced(lab, tmp_path, capsys):
    study = small_study(replicates=50)
    study.to_yaml(tmp_path / "study.yaml")
    out = [str(lab.folder / name) for name in ("conditions.csv", "runs.csv")]
    with pytest.raises(SystemExit) as stop:
        main(["plan", str(tmp_path / "study.yaml"), "--out", out[0], "--runs", out[1]])
    assert stop.value.code == 0
    lab.do(5)
    check_target(lab.folder)
    export_tables(lab.reader, lab.folder)
    assert count(lab.folder) == 5


# -- no room --


@pytest.mark.parametrize("call", [1, 4, 9])
def test_a_full_disk_leaves_the_old_set_and_says_what_to_do(lab, monkeypatch, call):
    lab.do(5)
    export_tables(lab.reader, lab.folder)
    lab.do(6)
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


def test_a_disk_that_is_really_full_is_survived(lab, tmp_path):
    """A child with a limit on the size of files gets what a full disk gives: a failing write."""
    lab.do(20)
    export_tables(lab.reader, lab.folder)
    told = tmp_path / "told"
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
                told.write_text(str(error))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert "the tables can't be written: File too large" in told.read_text()
    assert validate_artifacts(lab.folder) == []
    assert len(hidden(lab.folder)) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written_to_is_told(lab, tmp_path):
    lab.do(5)
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    with pytest.raises(StudyError, match="can't be written: Permission denied"):
        export_tables(lab.reader, closed)


def test_a_file_where_the_folder_should_be_is_told(lab, tmp_path):
    lab.do(5)
    (tmp_path / "file").write_text("")
    with pytest.raises(StudyError, match="can't be written"):
        export_tables(lab.reader, tmp_path / "file" / "below")


def test_files_have_the_mode_that_the_umask_gives(lab):
    lab.do(5)
    umask = os.umask(0o027)
    try:
        export_tables(lab.reader, lab.folder, sqlite=True, parquet=True)
    finally:
        os.umask(umask)
    names = json.loads((lab.folder / "manifest.json").read_text())["files"]
    assert {stat.S_IMODE((lab.folder / name).stat().st_mode) for name in names} == {0o640}
