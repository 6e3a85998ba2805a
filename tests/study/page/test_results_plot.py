"""Figures of results: axes for papers, and files."""

import sys
from types import SimpleNamespace

import pytest
from page_kit import make_hostile_study
from run_kit import make_study, run as run_one

from fairtrial import StudyError

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    with make_hostile_study(tmp_path_factory.mktemp("plots") / "out") as results:
        yield results


def dots(axes):
    return [line for line in axes.get_lines() if line.get_marker() == "o"]


def test_effects_are_drawn_with_interval_and_smallest_effect_of_interest(results):
    axes = results.plot.effects()
    (estimate,) = dots(axes)
    assert estimate.get_xdata()[0] == pytest.approx(1.01, abs=0.05)
    assert axes.collections  # the band
    assert "script" in axes.get_yticklabels()[0].get_text()


def test_every_run_is_a_dot_of_its_condition(results):
    axes = results.plot.conditions(outcome="score")
    drawn = [len(line.get_xdata()) for line in dots(axes)]
    succeeded = sum(result.status == "success" for result in results)
    assert len(drawn) == 4
    assert sum(drawn) == succeeded


def test_figures_are_drawn_into_given_axes(results):
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    assert results.plot.latencies(axes) is axes


def test_a_notebook_shows_a_new_figure_below_its_cell(results, monkeypatch):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")  # which would ask IPython for more
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    figure = results.plot.effects().figure
    try:
        assert figure.number in pyplot.get_fignums()
    finally:
        pyplot.close(figure)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    results.plot.effects()
    assert pyplot.get_fignums() == []


def test_unknown_outcomes_and_missing_candidates_are_errors(results):
    with pytest.raises(StudyError, match="there is no outcome 'scor'"):
        results.plot.conditions(outcome="scor")
    with pytest.raises(StudyError, match="no candidate was timed"):
        results.plot.timings()


def test_results_without_claims_have_no_effects(tmp_path):
    with (
        run_one(make_study(tmp_path / "out")) as results,
        pytest.raises(StudyError, match="no tested outcome"),
    ):
        results.plot.effects()


def test_the_command_writes_the_same_files_each_time(tmp_path, run):
    make_hostile_study(tmp_path / "out").close()
    contents = []
    for name in ("first", "second"):
        code, _, text = run("report", tmp_path / "out", "--figures", tmp_path / name)
        assert code == 0, text
        files = sorted((tmp_path / name).iterdir())
        contents.append({path.name: path.read_bytes() for path in files})
    assert {"effects-score.svg", "effects-score.pdf", "conditions-score.svg"} <= contents[0].keys()
    assert contents[0] == contents[1]
    assert b"<script>" not in contents[0]["effects-score.svg"]
