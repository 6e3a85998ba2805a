"""Noise models of recorded sessions (`benchmarks/recorded_noise.py`): false claims under them."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from fairtrial.arena.timing.stats.sequential import LOOKS
from kits.simulated_clock import judge

SCRIPT = Path(__file__).parents[3] / "benchmarks" / "recorded_noise.py"
RUNS = 3_000
MOST_FALSE = 0.055


def load_script():
    spec = importlib.util.spec_from_file_location("recorded_noise", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


noise = load_script()
MODELS = noise.read_models()


def test_the_shipped_models_are_those_of_the_shipped_recordings():
    assert [noise.fit(recording) for recording in noise.read_recordings()] == MODELS


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model["workload"])
@pytest.mark.parametrize("min_effect", [0.02, 0.0])
def test_equal_code_with_recorded_noise_is_rarely_called_different(model, min_effect):
    drawn = noise.draw(model, RUNS, LOOKS[-1], seed=3)
    found = judge(drawn, 1.0, alpha=0.05, min_effect=min_effect)
    assert found.false <= MOST_FALSE
    assert found.coverage >= 0.95


@pytest.mark.parametrize("df", [5.0, 30.0])
def test_a_fit_finds_the_figures_of_the_model_that_was_drawn_from(df):
    model = {"df": df, "rho": 0.4, "spread": 0.02}
    (values,) = noise.draw(model, 1, 20_000, seed=1)
    recording = {"workload": "w", "load_before": 1.0, "session_s": [0.2], "values": list(values)}
    fitted = noise.fit(recording)
    assert fitted["spread"] == pytest.approx(0.02, rel=0.05)
    assert fitted["rho"] == pytest.approx(0.4, abs=0.03)
    assert fitted["df"] < 10 if df == 5.0 else fitted["df"] > 10
    assert abs(fitted["mean"]) < 4 * fitted["standard_error"] + 1e-4


def test_drawing_again_keeps_neighbors_and_swaps_versions_by_chance():
    drawn = noise.draw_again([1.0, 2.0, 3.0, 4.0], 50, 6, 3, seed=2)
    assert drawn.shape == (50, 6)
    assert set(np.abs(drawn).ravel()) <= {1.0, 2.0, 3.0, 4.0}
    steps = np.abs(drawn[:, 1]) - np.abs(drawn[:, 0])
    assert set(steps) <= {1.0, -3.0}
    assert {-1.0, 1.0} == set(np.sign(drawn[:, 0]))
