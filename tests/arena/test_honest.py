"""Honest but unusual candidates: none is rejected."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def honest():
    spec = importlib.util.spec_from_file_location("honest", ROOT / "benchmarks" / "honest.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(spec.origin.rpartition("/")[0])
        spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("file", ["light.yaml", "numpy.yaml"])
def test_no_honest_candidate_is_rejected(honest, file):
    if file == "numpy.yaml":
        pytest.importorskip("numpy")
    judgements = honest.judge(file, [], timed=False)
    assert len(judgements) == len(honest.GROUPS[file][1])
    assert [judgement.rejection for judgement in judgements] == [None] * len(judgements)


def test_a_doubt_is_no_accusation(honest):
    assert honest.is_accusation("work equal to 30% of the base's time is done while ...")
    assert not honest.is_accusation("... and nothing is held against the candidate, but ...")
