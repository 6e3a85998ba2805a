"""Settings for all tests, and fixtures for those of the command."""

import gc
import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, settings

from fairtrial.cli.main import main
from fairtrial.study.tables import provenance

# Some of the tests start hundreds of interpreters: where the environment says that Python may not
# keep what it has compiled, each of them would compile the package, and pytest all of its tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# What a shell starts in the background ignores interrupts, what `nohup` does that the line is gone;
# and so would all that tests start.
for number, usual in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGQUIT, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)
# Tests replace parts of what is recorded; those of recordings turn them on again.
os.environ["FAIRTRIAL_NO_CACHE"] = "1"
# Tests run beside each other: a library that takes all cores for small matrices only wastes them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# No deadlines: a busy machine is no reason to fail. The examples are the same every time: who has
# changed nothing meets no new failure. `pytest --hypothesis-profile exploring` looks for others.
for name, is_random in (("fairtrial", False), ("exploring", True)):
    settings.register_profile(
        name,
        deadline=None,
        derandomize=not is_random,
        max_examples=50,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
settings.load_profile("fairtrial")
# Nor may they depend on which of our modules tests before have loaded: their constants are drawn.
with suppress(ImportError, AttributeError):  # no part of its API: another version may have none
    from hypothesis.internal.conjecture import providers

    known = providers._local_constants
    if callable(providers._get_local_constants):
        providers._get_local_constants = lambda: known
TEMPORARY = "fts"  # short: paths of sockets have a limit
ROOM_BYTES = 2 * 10**9  # seven times what all tests leave behind


def pytest_configure(config):
    """Put temporary folders into memory where there is room; whole projects stay on disk.

    Ledgers are flushed to disk again and again, as they should be, and a disk takes its time. No
    test pulls the plug: what `kill -9` leaves is the same in memory. The folder is this run's own:
    pytest removes old folders of its usual place, and with them those of runs beside this one.
    """
    memory = Path("/dev/shm")
    is_worker = hasattr(config, "workerinput")
    if is_worker or any("real" in Path(argument).parts for argument in config.args):
        return
    if os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > ROOM_BYTES:
        for folder in memory.glob(f"{TEMPORARY}-*"):  # of runs that were killed
            if not Path("/proc", folder.name.rpartition("-")[2]).exists():
                shutil.rmtree(folder, ignore_errors=True)
        folder = memory / f"{TEMPORARY}-{os.getpid()}"
        folder.mkdir(mode=0o700)
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(folder))
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))


def pytest_collection_finish():
    """Thousands of tests stay until the end: there is nothing in them for the collector."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def unchanged_working_folder():
    """Fail the test that leaves another working folder behind, rather than those after it."""
    before = Path.cwd()
    yield
    try:
        after = Path.cwd()
    except FileNotFoundError:
        after = "a folder that is gone"
    if after != before:
        os.chdir(before)
        pytest.fail(f"the test left the working folder {after} instead of {before}")


@pytest.fixture(scope="session", autouse=True)
def temporary_folders(tmp_path_factory):
    """Choose the place for them now; a pytest that a test starts has to choose its own."""
    tmp_path_factory.getbasetemp()
    os.environ.pop("PYTEST_DEBUG_TEMPROOT", None)


@pytest.fixture(scope="session", autouse=True)
def commit():
    """Studies that run in this process don't ask which commit this checkout is at.

    They would hear of every change to it meanwhile, and of none where git takes too long.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provenance, "read_commit", lambda folder: (None, None))
        yield


@pytest.fixture
def tmp_path(tmp_path):
    """Give each test a folder without neighbors: studies look for their own results beside them."""
    folder = tmp_path / "alone"
    folder.mkdir()
    return folder


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """Run a command in an empty folder; gives (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        shown = capsys.readouterr()
        assert "Traceback" not in shown.err or stop.value.code == 1
        return stop.value.code, shown.out, shown.err

    return run


@pytest.fixture
def write(tmp_path):
    """Write a file, given as text or as data, and give its path."""

    def write(content, name="study.yaml"):
        path = tmp_path / name
        text = content if isinstance(content, str) else yaml.safe_dump(content, allow_unicode=True)
        path.write_text(text, "utf-8")
        return path

    return write
