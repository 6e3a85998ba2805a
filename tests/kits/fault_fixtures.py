"""Fixtures of the tests that inject faults."""

import pytest
from fault_stage_kit import Stage, Zygote


@pytest.fixture(scope="session")
def zygote():
    zygote = Zygote()
    yield zygote
    zygote.close()


@pytest.fixture
def stage(tmp_path, zygote):
    return Stage(tmp_path, zygote)
