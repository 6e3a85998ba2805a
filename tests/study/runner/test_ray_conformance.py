"""The executor `ray` keeps what the seam promises, on a cluster of this machine."""

import pytest

from fairtrial.study.runner.executors.ray_executor import Ray
from fairtrial.testing.executors import ExecutorConformance

ray = pytest.importorskip("ray")


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
