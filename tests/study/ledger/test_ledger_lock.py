"""The owner lock: one owner at a time, released with its process."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import warnings

import pytest
from ledger_kit import run_script

from fairtrial import LedgerError
from fairtrial.study.ledger import lock
from fairtrial.study.ledger.lock import LOCK_NAME, OwnerLock, owner_of

HOST = socket.gethostname()
TAKER = """
    import sys
    from pathlib import Path
    from fairtrial import LedgerError
    from fairtrial.study.ledger.lock import OwnerLock
    try:
        with OwnerLock(Path(sys.argv[1])):
            print("taken")
    except LedgerError as error:
        print(error)
"""


class Owner:
    """Another process that owns a folder, until it is killed."""

    def __init__(self, folder):
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # xdist's threads
            self.pid = os.fork()
        if not self.pid:
            try:
                with OwnerLock(folder):
                    os.write(writing, b"mine")
                    while True:
                        signal.pause()
            finally:
                os._exit(1)
        os.close(writing)
        said = os.read(reading, 4)
        os.close(reading)
        self._is_there = True
        assert said == b"mine"

    def kill(self):
        """End it, and wait until it is gone."""
        if self._is_there:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self._is_there = False


@pytest.fixture
def owner(tmp_path):
    """Another process that owns the folder."""
    owner = Owner(tmp_path)
    yield owner
    owner.kill()


def test_a_second_process_is_refused_with_the_name_of_the_owner(tmp_path, owner):  # a known trap
    with pytest.raises(LedgerError) as caught, OwnerLock(tmp_path):
        pass
    message = str(caught.value)
    assert f"{tmp_path} is in use by process {owner.pid} on {HOST}" in message
    assert "fairtrial cancel" in message
    assert "--output" in message
    assert owner_of(tmp_path) == {"pid": owner.pid, "host": HOST}


def test_asking_and_being_refused_do_not_disturb_the_owner(tmp_path, owner):
    for _ in range(3):
        assert owner_of(tmp_path) is not None
        with pytest.raises(LedgerError), OwnerLock(tmp_path):
            pass
    assert str(owner.pid) in run_script(TAKER, tmp_path)


def test_what_a_killed_owner_had_is_taken_over_at_once(tmp_path, owner):
    owner.kill()
    assert (tmp_path / LOCK_NAME).stat().st_size  # it had no time to tidy up
    assert owner_of(tmp_path) is None
    with OwnerLock(tmp_path):
        assert owner_of(tmp_path) == {"pid": os.getpid(), "host": HOST}
        assert str(os.getpid()) in run_script(TAKER, tmp_path)
    assert owner_of(tmp_path) is None
    assert run_script(TAKER, tmp_path) == "taken\n"


def test_this_process_is_refused_a_second_time_by_any_path(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with OwnerLock(tmp_path / "real"):
        with pytest.raises(LedgerError, match="this very process"), OwnerLock(tmp_path / "link"):
            pass
        assert owner_of(tmp_path / "link") == {"pid": os.getpid(), "host": HOST}
        assert str(os.getpid()) in run_script(TAKER, tmp_path / "real")  # still ours
    with OwnerLock(tmp_path / "link"):
        pass


FORKER = """
    import os, signal, sys
    from pathlib import Path
    from fairtrial import LedgerError
    from fairtrial.study.ledger.lock import OwnerLock, owner_of

    def look():
        assert owner_of(folder)["pid"] == parent, owner_of(folder)
        try:
            OwnerLock(folder).__enter__()
        except LedgerError as error:
            assert str(parent) in str(error), error
        else:
            raise AssertionError("a child got what its parent holds")
        lock.__exit__()  # as when a with block is left in the wrong process

    folder, parent = Path(sys.argv[1]), os.getpid()
    lock = OwnerLock(folder)
    lock.__enter__()
    child = os.fork()
    if child == 0:
        signal.alarm(300)  # if nobody ends it
        try:
            look()
            os.write(1, b"looked\\n")
        except Exception as error:
            os.write(1, f"{error!r}\\n".encode())
        signal.pause()
    sys.stdin.readline()
    os.write(1, f"{child}\\n".encode())
    os._exit(0)  # without letting go
"""


def test_a_forked_worker_neither_has_nor_keeps_its_parents_lock(tmp_path):  # a known trap
    command = [sys.executable, "-c", textwrap.dedent(FORKER), str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "looked\n"
        assert owner_of(tmp_path) == {"pid": process.pid, "host": HOST}
        assert json.loads((tmp_path / LOCK_NAME).read_text())["pid"] == process.pid
        process.stdin.write("\n")
        process.stdin.flush()
        child = int(process.stdout.readline())
        process.wait()
        try:
            os.kill(child, 0)  # lives on
            assert owner_of(tmp_path) is None
            assert run_script(TAKER, tmp_path) == "taken\n"
        finally:
            os.kill(child, signal.SIGKILL)


def test_who_asks_on_a_platform_without_a_way_to_ask_is_no_obstacle(tmp_path, owner, monkeypatch):
    monkeypatch.setattr(lock.sys, "platform", "other")
    assert owner_of(tmp_path) == {"pid": owner.pid, "host": HOST}
    with pytest.raises(LedgerError, match=str(owner.pid)), OwnerLock(tmp_path):
        pass
    owner.kill()
    assert owner_of(tmp_path) is None


def test_a_lock_that_was_held_for_a_moment_is_tried_again(tmp_path, monkeypatch):
    tries = []
    lockf = lock.fcntl.lockf

    def held_for_a_moment(handle, how):
        tries.append(how)
        if len(tries) < 4:
            raise BlockingIOError(lock.errno.EAGAIN, "held")
        return lockf(handle, how)

    monkeypatch.setattr(lock.fcntl, "lockf", held_for_a_moment)
    monkeypatch.setattr(lock, "RETRY_S", 0)
    with OwnerLock(tmp_path):
        assert len(tries) == 4


def test_a_file_system_without_locks_is_said_to_be_so(tmp_path, monkeypatch):
    def refuse(handle, how):
        raise OSError(lock.errno.ENOLCK, "No locks available")

    monkeypatch.setattr(lock.fcntl, "lockf", refuse)
    with pytest.raises(LedgerError, match=r"No locks available.*disk of this machine"):
        OwnerLock(tmp_path).__enter__()


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(LedgerError, match=r"missing can't be written to: No such file"):
        OwnerLock(tmp_path / "missing").__enter__()
    assert owner_of(tmp_path / "missing") is None
    assert owner_of(tmp_path) is None


@pytest.mark.parametrize("content", ["", "{", "[]", '"me"', '{"pid": 1', "\x00" * 50])
def test_an_owner_that_wrote_nothing_readable_is_known_by_the_kernel(tmp_path, owner, content):
    (tmp_path / LOCK_NAME).write_text(content)
    assert owner_of(tmp_path) == {"pid": owner.pid, "host": HOST}


def test_an_owner_on_another_host_is_named_as_it_wrote_down(tmp_path, owner):
    elsewhere = {"pid": 7, "host": "elsewhere"}
    (tmp_path / LOCK_NAME).write_text(json.dumps(elsewhere))
    assert owner_of(tmp_path) == elsewhere
    with pytest.raises(LedgerError, match="process 7 on elsewhere"):
        OwnerLock(tmp_path).__enter__()
