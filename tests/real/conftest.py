"""Tests on real projects: `make test-real`, not part of `make test`."""

import sys
from pathlib import Path

import pytest

from fairtrial.core import FairtrialError
from fairtrial.sandbox import find_sandbox

sys.path.append(str(Path(__file__).parent.parent / "kits"))  # for its repositories' fingerprints


@pytest.fixture(scope="session", autouse=True)
def _sandbox():
    """These candidates are not to be let loose on anybody's machine."""
    try:
        find_sandbox("require")
    except FairtrialError as error:
        pytest.skip(f"no sandbox for hostile candidates: {error}")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Where pools live during a test."""
    monkeypatch.setenv("FAIRTRIAL_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
