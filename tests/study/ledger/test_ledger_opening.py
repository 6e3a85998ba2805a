"""Opening: files that are no ledger are detected and left unchanged."""

import os
import random
import shutil
import sqlite3
import stat
import tempfile
from pathlib import Path

import pytest
from ledger_kit import SOUND, add, begin, finished, make_plan, run_script

from fairtrial import LedgerError
from fairtrial.study.ledger import LEDGER_NAME, LedgerReader, ledger_file, schema
from fairtrial.study.ledger.schema import APPLICATION_ID, VERSION
from fairtrial.study.ledger.volumes import network_file_system
from fairtrial.study.ledger.writer import open_ledger


def sqlite_file(path, script="CREATE TABLE t (a); INSERT INTO t VALUES (1);"):
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()


def foreign(path):
    sqlite_file(path)


def foreign_with_a_log(path):
    sqlite_file(path, "PRAGMA journal_mode = WAL; CREATE TABLE t (a);")


def text(path):
    path.write_text("run_id,status\nrun-1,success\n" * 100)


def a_few_bytes(path):
    path.write_bytes(b"SQLite")


def zeros(path):
    path.write_bytes(bytes(20_000))


def empty(path):
    path.touch()


def folder(path):
    path.mkdir()


def pipe(path):
    os.mkfifo(path)


def dead_link(path):
    path.symlink_to(path.parent / "nowhere")


def newer(path):
    sqlite_file(
        path,
        f"{schema.TABLES} PRAGMA application_id = {APPLICATION_ID}; "
        f"PRAGMA user_version = {VERSION + 1};",
    )


def older_than_any(path):
    sqlite_file(path, f"{schema.TABLES} PRAGMA application_id = {APPLICATION_ID};")


def without_tables(path):
    sqlite_file(path, f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {VERSION};")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (foreign, "no ledger of fairtrial's"),
        (foreign_with_a_log, "no ledger of fairtrial's"),
        (text, "no ledger"),
        (a_few_bytes, "no ledger"),
        (zeros, "no ledger"),
        (empty, "is empty"),
        (folder, "is no file"),
        (pipe, "is no file"),
        (dead_link, "link to nothing"),
        (newer, f"newer fairtrial .format {VERSION + 1}"),
        (older_than_any, "format 0|older format"),
        (without_tables, "damaged"),
    ],
)
@pytest.mark.parametrize("open_it", [open_ledger, LedgerReader.open])
def test_what_is_no_ledger_is_refused_and_left_as_it_is(tmp_path, make, says, open_it):
    path = tmp_path / LEDGER_NAME
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(LedgerError, match=says) as caught:
        open_it(tmp_path)
    message = str(caught.value)
    assert str(path) in message
    assert any(word in message for word in ("--output", "fairtrial resume"))
    assert (path.read_bytes() if path.is_file() else None) == before
    assert [path.name for path in tmp_path.iterdir()] == [LEDGER_NAME]


def test_a_folder_that_is_not_there_is_named(tmp_path):
    missing = tmp_path / "missing"
    for open_it in (open_ledger, LedgerReader.open):
        with pytest.raises(LedgerError, match="missing"):
            open_it(missing)
    with pytest.raises(LedgerError, match="holds no study"):
        LedgerReader.open(tmp_path)
    open_ledger(tmp_path).close()
    reader = LedgerReader.open(tmp_path)
    with pytest.raises(LedgerError, match="stopped before it began"):
        _ = reader.study
    reader.close()


def test_a_start_that_was_cut_off_is_no_obstacle(tmp_path):
    (tmp_path / f"{LEDGER_NAME}.new").write_bytes(b"half a file")
    open_ledger(tmp_path).close()
    assert [path.name for path in tmp_path.iterdir()] == [LEDGER_NAME]


def test_the_log_of_a_ledger_that_is_gone_is_never_mixed_into_a_new_one(tmp_path):
    ledger, plan, order = begin(tmp_path)
    add(ledger, plan, order, 0)
    ledger.commit()
    shutil.copy(tmp_path / f"{LEDGER_NAME}-wal", tmp_path / "kept")
    ledger.close()
    (tmp_path / LEDGER_NAME).unlink()
    log = tmp_path / f"{LEDGER_NAME}-wal"
    (tmp_path / "kept").rename(log)
    before = log.read_bytes()
    with pytest.raises(LedgerError, match="gone, but"):
        open_ledger(tmp_path)
    assert log.read_bytes() == before
    assert not (tmp_path / LEDGER_NAME).exists()


# -- torn files --


def read_all(folder):
    """All that can be read; only a LedgerError may come of it."""
    reader = LedgerReader.open(folder)
    try:
        reader.summary()
        return [result.outputs for result in reader.results()]
    finally:
        reader.close()


def explain(open_it, folder):
    """What comes of it; None if it is refused, and no other exception."""
    try:
        return open_it(folder)
    except LedgerError:
        return None


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """The bytes of a ledger of a finished study, and what its results are."""
    folder = tmp_path_factory.mktemp("sound")
    finished(folder, make_plan(replicates=80), outputs="x" * 500)
    return (folder / LEDGER_NAME).read_bytes(), read_all(folder)


def test_a_ledger_cut_at_any_byte_is_refused_and_left_as_it_is(tmp_path, sound):  # a known trap
    data, _ = sound
    rng = random.Random(0)
    cuts = {1, 15, 16, 99, 100, 511, 512, 8191, 8192, 8193, len(data) - 8192, len(data) - 1}
    cuts |= {rng.randrange(1, len(data)) for _ in range(40)}
    path = tmp_path / LEDGER_NAME
    for cut in cuts:
        path.write_bytes(data[:cut])
        with pytest.raises(LedgerError, match=r"damaged|no ledger") as caught:
            open_ledger(tmp_path).close()
        assert str(path) in str(caught.value)
        assert path.read_bytes() == data[:cut]


def test_garbage_in_a_page_is_refused_or_explained_but_never_a_result(tmp_path, sound):
    data, results = sound
    rng = random.Random(1)
    refused = 0
    for _ in range(60):
        page = rng.randrange(len(data) // 8192)
        start = 8192 * page + rng.choice([0, 0, rng.randrange(8000)])
        length = rng.choice([16, 500, 8192])
        torn = bytearray(data)
        torn[start : start + length] = rng.randbytes(min(length, len(data) - start))
        (tmp_path / LEDGER_NAME).write_bytes(torn)
        read = explain(read_all, tmp_path)
        opened = explain(open_ledger, tmp_path)
        refused += (read is None) + (opened is None)
        if opened is not None:
            opened.close()
        # Nothing strikes those that touch what no run needs; a row may be lost to a reader, who
        # takes no close look, but not to whoever would write.
        assert read in (None, results) or (set(read) <= set(results) and opened is None)
    assert refused > 60


def test_one_other_letter_in_a_result_is_found(tmp_path, sound):
    data, _ = sound
    torn = bytearray(data)
    torn[data.rindex(b"x" * 100) + 50] = ord("y")
    (tmp_path / LEDGER_NAME).write_bytes(torn)
    with pytest.raises(LedgerError, match="not those that were written"):
        read_all(tmp_path)


def test_a_page_torn_while_the_ledger_is_open_is_explained_at_the_next_read(tmp_path, monkeypatch):
    plan = finished(tmp_path, make_plan(replicates=200), outputs="x" * 500)
    monkeypatch.setattr(ledger_file, "CHECK_LIMIT_BYTES", 0)  # as for a large file
    path = tmp_path / LEDGER_NAME
    with path.open("r+b") as file:
        for page in range(12, path.stat().st_size // ledger_file.PAGE_BYTES):  # not the roots
            file.seek(ledger_file.PAGE_BYTES * page)
            file.write(b"\xff" * 100)
    ledger = open_ledger(tmp_path)  # finds nothing, since it doesn't look
    reader = LedgerReader(ledger.connection, path)
    with pytest.raises(LedgerError, match="damaged") as caught:
        list(reader.results())
    assert "move it away" in str(caught.value)
    ledger.reruns = dict.fromkeys(range(len(plan)), "failed")
    with pytest.raises(LedgerError, match="damaged"), ledger._transaction():
        ledger._move_to_attempts(range(len(plan)))
    assert not ledger.connection.in_transaction
    ledger.close()


def test_a_large_file_is_checked_only_after_a_crash(tmp_path, monkeypatch):
    finished(tmp_path)
    looked = []
    monkeypatch.setattr(ledger_file, "CHECK_LIMIT_BYTES", 1000)

    def looks():
        ledger = open_ledger(tmp_path)
        ledger.connection.set_trace_callback(None)
        ledger.close()
        return len(looked)

    connect = ledger_file._connect

    def watched(*arguments):
        connection = connect(*arguments)
        connection.set_trace_callback(
            lambda statement: looked.append(statement) if "quick_check" in statement else None
        )
        return connection

    monkeypatch.setattr(ledger_file, "_connect", watched)
    assert looks() == 0
    crash(tmp_path)
    assert looks() == 1
    monkeypatch.setattr(ledger_file, "CHECK_LIMIT_BYTES", 10**9)
    assert looks() == 2


CRASH = """
    import os, sys
    from pathlib import Path
    from fairtrial.study.ledger.writer import open_ledger
    ledger = open_ledger(Path(sys.argv[1]))
    ledger.begin_session({"host": "crashed"})
    os._exit(0)
"""


def crash(folder):
    """End a process that has the ledger open, with a commit that is in the log alone."""
    run_script(CRASH, folder)
    assert (folder / f"{LEDGER_NAME}-wal").stat().st_size


def test_a_torn_log_costs_at_most_what_was_not_yet_folded_back(tmp_path):
    finished(tmp_path)
    results = read_all(tmp_path)
    crash(tmp_path)
    log = tmp_path / f"{LEDGER_NAME}-wal"
    whole, ledger_bytes = log.read_bytes(), (tmp_path / LEDGER_NAME).read_bytes()
    rng = random.Random(2)
    torn = [whole[:cut] for cut in (0, 1, 31, 32, 33, 4000, len(whole) - 1)]
    torn += [whole[:place] + rng.randbytes(64) + whole[place + 64 :] for place in (0, 40, 2000)]
    for data in torn:
        log.write_bytes(data)
        (tmp_path / LEDGER_NAME).write_bytes(ledger_bytes)
        (tmp_path / f"{LEDGER_NAME}-shm").unlink(missing_ok=True)
        ledger = open_ledger(tmp_path)
        assert ledger.connection.execute(SOUND).fetchall() == [("ok",)]
        ledger.close()
        assert read_all(tmp_path) == results


# -- older files --


def test_an_older_file_becomes_a_newer_one_or_stays_unchanged(tmp_path, monkeypatch):
    plan = finished(tmp_path)
    monkeypatch.setattr(ledger_file, "VERSION", VERSION + 2)
    with pytest.raises(LedgerError, match="older format"):
        LedgerReader.open(tmp_path)
    with pytest.raises(LedgerError, match="can't bring up to date"):
        open_ledger(tmp_path)
    broken = {
        VERSION: "ALTER TABLE results ADD COLUMN mood TEXT;",
        VERSION + 1: "UPDATE results SET no_such_column = 1;",
    }
    monkeypatch.setattr(ledger_file, "MIGRATIONS", broken)
    with pytest.raises(LedgerError):
        open_ledger(tmp_path)
    connection = sqlite3.connect(tmp_path / LEDGER_NAME)
    assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    columns = connection.execute("SELECT name FROM pragma_table_info('results')").fetchall()
    assert ("mood",) not in columns
    connection.close()
    monkeypatch.setitem(broken, VERSION + 1, "UPDATE results SET mood = 'fine';")
    ledger = open_ledger(tmp_path)
    moods = ledger.connection.execute("SELECT mood, count(*) FROM results GROUP BY mood").fetchall()
    assert moods == [("fine", len(plan))]
    assert ledger.connection.execute("PRAGMA user_version").fetchone() == (VERSION + 2,)
    ledger.close()
    LedgerReader.open(tmp_path).close()


# -- where nothing may be written --


@pytest.fixture
def open_folder():
    """A folder that any user can reach."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755)
    shutil.rmtree(folder)


AS_NOBODY = """
    import os, sys
    from pathlib import Path
    from fairtrial.core.errors import LedgerError
    from fairtrial.study.ledger.lock import OwnerLock
    from fairtrial.study.ledger.reader import LedgerReader
    from fairtrial.study.ledger.writer import open_ledger
    import msgspec, json, sqlite3
    from fairtrial.study.extensions import extensions
    extensions()
    Path.cwd().as_uri()  # imports what it needs: nobody may not be able to
    if os.getuid() == 0:
        os.setuid(65534)
    folder = Path(sys.argv[2])
    try:
        if sys.argv[1] == "lock":
            OwnerLock(folder).__enter__()
        elif sys.argv[1] == "write":
            open_ledger(folder)
        else:
            reader = LedgerReader.open(folder)
            print(reader.summary().done, len(list(reader.results())))
    except LedgerError as error:
        print(error)
"""


def as_nobody(what, folder):
    return run_script(AS_NOBODY, what, folder)


def test_a_folder_that_is_read_only_is_said_to_be_so(open_folder):
    open_folder.chmod(0o555)
    for what in ("lock", "write"):
        said = as_nobody(what, open_folder)
        assert str(open_folder) in said
        assert "Permission denied" in said
        assert "--output" in said


def test_a_ledger_that_is_read_only_is_said_to_be_so(open_folder):
    finished(open_folder)
    (open_folder / LEDGER_NAME).chmod(0o444)
    for mode in (0o777, 0o555):
        open_folder.chmod(mode)
        said = as_nobody("write", open_folder)
        assert str(open_folder / LEDGER_NAME) in said
        assert "read-only" in said


def test_a_finished_study_can_be_read_where_nothing_can_be_written(open_folder):
    plan = finished(open_folder)
    (open_folder / LEDGER_NAME).chmod(0o444)
    open_folder.chmod(0o555)
    assert as_nobody("read", open_folder).split() == [str(len(plan))] * 2
    assert [path.name for path in open_folder.iterdir()] == [LEDGER_NAME]


def test_where_nothing_can_be_written_a_study_that_was_cut_off_is_not_half_read(open_folder):
    finished(open_folder)
    crash(open_folder)
    (open_folder / f"{LEDGER_NAME}-shm").unlink()
    for path in open_folder.iterdir():
        path.chmod(0o444)
    open_folder.chmod(0o555)
    said = as_nobody("read", open_folder)
    assert "copy the whole folder" in said


def test_a_ledger_that_may_not_be_read_is_said_to_be_out_of_reach(open_folder):
    finished(open_folder)
    (open_folder / LEDGER_NAME).chmod(0)
    assert "can't be opened" in as_nobody("read", open_folder)


# -- volumes --

MOUNTS = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:27 / /home rw,relatime - nfs4 server:/home rw,vers=4.2
31 30 254:1 / /home/local rw - ext4 /dev/vdb rw
32 22 0:28 / /mnt/with\040space rw - cifs //server/share rw
33 22 0:29 / /mnt/over rw - ext4 /dev/vdc rw
34 22 0:30 / /mnt/over rw shared:2 master:3 - fuse.sshfs me@host: rw
35 22 0:31 / /scratch rw - lustre mds@tcp:/scratch rw
a line that makes no sense
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/me/study", "nfs4"),
        ("/home", "nfs4"),
        ("/homely/study", None),
        ("/home/local/study", None),
        ("/mnt/with space/study", "cifs"),
        ("/mnt/over/study", "fuse.sshfs"),
        ("/scratch/x", "lustre"),
        ("/srv/study", None),
    ],
)
def test_a_network_file_system_is_known_by_its_mount(path, kind):
    assert network_file_system(Path(path), MOUNTS) == kind
    assert network_file_system(Path(path), "") is None


def test_this_machine_says_what_it_is_mounted_on(tmp_path):
    assert network_file_system(tmp_path / "not" / "yet" / "there") in (None, "9p")


def test_on_a_network_file_system_the_ledger_says_so_and_is_as_safe(tmp_path, monkeypatch):
    monkeypatch.setattr(ledger_file, "network_file_system", lambda path: "nfs4")
    ledger, plan, order = begin(tmp_path)
    assert "nfs4" in ledger.notice
    assert ledger.connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert ledger.connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
    add(ledger, plan, order, 0)
    ledger.commit()
    assert len(read_all(tmp_path)) == 1
    ledger.close()
    monkeypatch.undo()
    ledger = open_ledger(tmp_path)  # and back on a disk of one's own
    assert ledger.notice is None
    assert ledger.connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert ledger.connection.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL
    ledger.close()


class WithoutLog:
    """A connection that, like one to a file system without shared memory, can't have a log."""

    def __init__(self, connection):
        self.connection = connection

    def execute(self, statement, *values):
        wanted = statement.replace("= WAL", "= DELETE")
        return self.connection.execute(wanted, *values)

    def __getattr__(self, name):
        return getattr(self.connection, name)


def test_where_there_can_be_no_log_the_ledger_says_so(tmp_path, monkeypatch):
    connect = ledger_file._connect
    monkeypatch.setattr(ledger_file, "_connect", lambda *of: WithoutLog(connect(*of)))
    ledger = open_ledger(tmp_path)
    assert "write-ahead log" in ledger.notice
    assert ledger.connection.execute("PRAGMA synchronous").fetchone() == (3,)
    ledger.close()


def test_a_new_ledger_has_the_rights_of_any_new_file(tmp_path):
    open_ledger(tmp_path).close()
    (tmp_path / "other").touch()
    modes = {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert len(modes) == 1
