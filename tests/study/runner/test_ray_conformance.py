"""The executor `ray` keeps what the seam promises, on a cluster of this machine."""

import pytest

from fairtrial.core import LabError
from fairtrial.study.runner.executors.processes import Processes
from fairtrial.study.runner.executors.ray_executor import Ray
from fairtrial.testing.executor_driver import run_all
from fairtrial.testing.executor_work import assign
from fairtrial.testing.executors import ExecutorConformance

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """One cluster for all tests: they find this process connected."""
    ray.init(
        address="local",
        num_cpus=4,
        object_store_memory=80 * 1024**2,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
    )
    yield
    ray.shutdown()


class TestRay(ExecutorConformance):
    @pytest.fixture
    def executor(self):
        return Ray()


def test_forked_workers_leave_the_trace_of_a_crash_beside_a_cluster():
    """Ray installs signal handlers of its own, which forked workers would inherit."""
    finished = run_all(Processes("fork"), [assign(0, "die_of", name="SIGSEGV")])
    assert b"Segmentation fault" in finished[0].stderr


def test_another_cluster_than_the_one_joined_is_refused():
    """Else runs would go where nobody asked for."""
    with pytest.raises(LabError, match=r"has joined the Ray cluster at .*, not that at"):
        run_all(Ray("192.0.2.200:6379"), [assign(0)])
