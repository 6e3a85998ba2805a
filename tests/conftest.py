"""Settings for all tests, and fixtures for those of the command."""

import gc
import os
import sys

import pytest
import yaml
from hypothesis import HealthCheck, settings

from fairtrial.cli.main import main

# Some of the tests start hundreds of interpreters: where the environment says that Python may not
# keep what it has compiled, each of them would compile the package, and pytest all of its tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# Tests run beside each other: a library that takes all cores for small matrices only wastes them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# No deadlines: a busy machine is no reason to fail. In CI the examples are the same every time.
settings.register_profile(
    "fairtrial",
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("fairtrial")


def pytest_collection_finish():
    """Thousands of tests stay until the end: there is nothing in them for the collector."""
    gc.collect()
    gc.freeze()


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
