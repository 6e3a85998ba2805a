"""All built-in executors keep what the seam promises."""

import pytest

from fairtrial.core import plugins
from fairtrial.study.runner.executors import worker_pool as crew
from fairtrial.study.runner.executors.async_tasks import Async
from fairtrial.study.runner.executors.processes import Processes
from fairtrial.study.runner.executors.serial import Serial
from fairtrial.study.runner.executors.threads import Threads
from fairtrial.testing.executors import ExecutorConformance


@pytest.fixture(autouse=True)
def _patience(monkeypatch):
    """Workers that were killed are waited for, however busy the machine is."""
    monkeypatch.setattr(crew, "END_S", 60.0)


class TestSerial(ExecutorConformance):
    is_inline = True

    @pytest.fixture
    def executor(self):
        return Serial()


class TestThreads(ExecutorConformance):
    @pytest.fixture
    def executor(self):
        return Threads()


class TestAsync(ExecutorConformance):
    @pytest.fixture
    def executor(self):
        return Async()


class TestForkedProcesses(ExecutorConformance):
    @pytest.fixture
    def executor(self):
        return Processes(start_method="fork")


@pytest.mark.slow  # fresh interpreters; test_executor_processes has what is special about them
class TestSpawnedProcesses(ExecutorConformance):
    @pytest.fixture
    def executor(self):
        return Processes(start_method="spawn")


@pytest.mark.parametrize("kind", [Serial, Threads, Processes, Async])
def test_it_is_found_by_its_name(kind):
    assert plugins.load("executors", kind().name) is kind


def test_only_those_that_can_seed_for_each_run_promise_it():
    promises = {kind().name: kind().is_reproducible for kind in (Serial, Threads, Processes)}
    assert promises == {"serial": True, "threads": False, "processes": True}
