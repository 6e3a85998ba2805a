"""Error, saving and coverage of studies that stop early, simulated as the run loop decides."""

import importlib.util
import sys
from pathlib import Path

import pytest

from fairtrial.study import build_design
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.report import summarize_plan

PATH = Path(__file__).parents[3] / "benchmarks" / "sequential_studies.py"


@pytest.fixture(scope="module")
def simulation():
    spec = importlib.util.spec_from_file_location("sequential_studies", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules["sequential_studies"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["sequential_studies"]


def test_most_studies_without_an_effect_find_none(simulation):
    row = simulation.measure(4, "pocock", 0.0, 15, 3, "paired_t")
    assert row.supported + row.contradicted <= 0.2  # more have a probability below 1 in 100
    assert row.futile > 0


def test_a_large_effect_is_found_with_fewer_runs(simulation):
    row = simulation.measure(4, "pocock", 3.0, 15, 3, "paired_t")
    assert row.supported == 1.0
    assert row.saved > 0.5


@pytest.mark.slow
@pytest.mark.parametrize("looks", [1, 5, 20])
@pytest.mark.parametrize("spending", ["obrien_fleming", "pocock", "anytime"])
def test_the_error_stays_below_alpha(simulation, looks, spending):
    row = simulation.measure(looks, spending, 0.0, 400, 11, "paired_t")
    assert row.supported + row.contradicted <= 0.05 + 3 * 0.011  # three standard errors
    assert row.coverage >= 0.95 - 3 * 0.011


@pytest.mark.slow
def test_the_plan_predicts_the_saving(simulation):
    study = simulation.make_study(5, "obrien_fleming", "paired_t")
    plan = RunPlan(study, build_design(study))
    looks = summarize_plan(study).looks
    row = simulation.measure(5, "obrien_fleming", 0.0, 300, 12, "paired_t")
    expected = 1 - looks.without_effect / len(plan)
    assert row.saved == pytest.approx(expected, abs=0.05)
