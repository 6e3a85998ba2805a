"""The plot of intervals: complete, readable and without overlaps."""

import importlib.util
import math
import random
import sys
from itertools import combinations, pairwise

import pytest

from fairtrial.arena import Estimate, Measurement, Timing, Verdict
from fairtrial.arena.timing import interval_plot as intervals
from fairtrial.arena.timing.interval_plot import IntervalRow, plot_intervals
from fairtrial.core import StudyError

TIMED = list(intervals.STYLES)


def row(label="one", ratio=1.2, width=1.05, verdict=Verdict.FASTER, **others):
    return IntervalRow(
        label, verdict, Estimate(ratio, ratio / width, ratio * width, 6, 0.95), **others
    )


def many(count):
    noise = random.Random(count)
    return [
        row(
            f"candidate-{'x' * noise.randrange(60)}-{number}",
            noise.lognormvariate(0, 0.2),
            noise.uniform(1.01, 1.06),
            TIMED[number % 4],
            is_part=number % 3 == 1,
        )
        for number in range(count)
    ]


def texts_of(rows, title="A title"):
    """All texts of a picture that can be seen, with the boxes that they take."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    figure = intervals._draw(rows, 0.02, title, len(rows))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    texts = [item for item in figure.findobj(Text) if item.get_text() and item.get_visible()]
    boxes = [(text.get_text(), text.get_window_extent(canvas.get_renderer())) for text in texts]
    return figure, boxes


@pytest.mark.parametrize("count", [1, 2, 40])
def test_texts_do_not_overlap_and_lie_inside(count):
    figure, boxes = texts_of(many(count))
    assert len(boxes) >= 2 * count + 4  # labels, figures; axis, title, legend
    for (text, box), (other, another) in combinations(boxes, 2):
        assert not box.overlaps(another), (text, other)
    for text, box in boxes:
        assert figure.bbox.x0 <= box.x0, text
        assert box.x1 <= figure.bbox.x1, text
        assert figure.bbox.y0 <= box.y0, text
        assert box.y1 <= figure.bbox.y1, text


def test_long_labels_keep_their_last_letters():
    _, boxes = texts_of([row("n" * 200 + "-0017.diff")])
    (label,) = (text for text, _ in boxes if text.startswith("nnn"))
    assert label.endswith("-0017.diff")
    assert len(label) == intervals.LONGEST_LABEL


def test_a_row_is_a_line_from_bound_to_bound_in_the_color_of_its_verdict():
    figure, _ = texts_of([row(ratio=1.2, width=1.1, verdict=Verdict.SLOWER)])
    (axes,) = figure.axes
    (line,) = (item for item in axes.lines if list(item.get_ydata()) == [0, 0])
    assert list(line.get_xdata()) == pytest.approx([1.2 / 1.1, 1.2 * 1.1])
    assert line.get_color() == intervals.STYLES[Verdict.SLOWER][0]
    assert axes.get_xscale() == "log"


def test_the_band_is_that_of_the_smallest_effect():
    figure = intervals._draw([row()], 0.05, "", 1)
    (band,) = figure.axes[0].patches
    assert band.get_x() == pytest.approx(1 / 1.05)
    assert band.get_x() + band.get_width() == pytest.approx(1.05)
    labels = [get_text.get_text() for get_text in figure.legends[0].get_texts()]
    assert labels == ["faster", "± 5 %"]


def test_verdicts_differ_in_color_and_in_shape():
    colours, markers = zip(*intervals.STYLES.values(), strict=True)
    assert len(set(colours)) == len(set(markers)) == len(TIMED)


def test_rows_of_benchmarks_follow_their_candidate_where_there_are_several():
    found = Estimate(1.2, 1.1, 1.3, 6, 0.95)
    parts = tuple(Timing(name, Verdict.FASTER, found) for name in ("a", "b"))
    rows = intervals.interval_rows(
        {
            "one": Measurement(Verdict.FASTER, found, timings=parts[:1]),
            "two": Measurement(Verdict.FASTER, found, timings=parts),
            "few": Measurement(Verdict.INCONCLUSIVE, None),
        }
    )
    assert [(item.label, item.is_part) for item in rows] == [
        ("one", False), ("two", False), ("a", True), ("b", True), ("few", False),
    ]  # fmt: skip
    assert "too few sessions" in [text for text, _ in texts_of(rows)[1]]


@pytest.mark.parametrize(
    ("low", "high"), [(0.95, 1.05), (0.9, 1.6), (0.5, 2), (0.97, 3), (0.05, 150), (0.001, 1000)]
)
def test_ticks_are_round_apart_and_include_1(low, high):
    ticks = intervals.choose_ticks(low, high)
    assert 1 in ticks
    assert 3 <= len(ticks) <= 12
    span = math.log(high / low)
    assert all(math.log(b / a) >= intervals.CLOSEST * span for a, b in pairwise(ticks))
    assert low <= ticks[0] < ticks[-1] <= high


def test_the_axis_holds_all_bounds_and_the_band_but_is_never_endless():
    low, high = intervals.find_range([row(ratio=1.5, width=1.1)], 0.02)
    assert low < 1 / 1.02**2 < 1.5 * 1.1 < high
    endless = IntervalRow("x", Verdict.INCONCLUSIVE, Estimate(1.0, 0.0, math.inf, 6, 0.95))
    low, high = intervals.find_range([endless], 0.02)
    assert low > 1e-4
    assert high < 1e4


@pytest.mark.parametrize(
    ("name", "start"), [("p.png", b"\x89PNG\r\n"), ("p.svg", b"<?xml version")]
)
def test_files_are_complete_and_the_same_for_the_same_rows(tmp_path, name, start):
    first, second = tmp_path / "a" / name, tmp_path / "b" / name
    rows = [*many(3), IntervalRow("none", Verdict.INCONCLUSIVE, None)]
    plot_intervals(first, rows, title="study")
    plot_intervals(second, rows, title="study")
    assert first.read_bytes().startswith(start)
    assert first.read_bytes() == second.read_bytes()
    assert [path.name for path in first.parent.iterdir()] == [name]


def test_no_rows_make_an_empty_picture(tmp_path):
    plot_intervals(tmp_path / "p.png", [])
    assert (tmp_path / "p.png").stat().st_size > 1_000


def test_names_are_names_not_formulas(tmp_path):
    hostile = ["$x_{", "a$b$c", "漢字", "two\nlines", "\x1b[2J", "\\frac{1}", "%s {0}"]
    plot_intervals(tmp_path / "p.svg", [row(item) for item in hostile], title="$_{")
    _, boxes = texts_of([row(entry) for entry in ("$x_{", "a$b$c", "two\nlines")], "$_{")
    assert {"$x_{", "a$b$c", "two\\nlines", "$_{"} <= {text for text, _ in boxes}


def test_very_many_rows_are_cut_and_that_is_said(monkeypatch, tmp_path):
    monkeypatch.setattr(intervals, "MOST_ROWS", 3)
    titles = []
    draw = intervals._draw

    def watch(rows, min_effect, title, total):
        figure = draw(rows, min_effect, title, total)
        titles.append(figure.axes[0].get_title())
        return figure

    monkeypatch.setattr(intervals, "_draw", watch)
    plot_intervals(tmp_path / "p.png", many(5), title="study")
    assert titles == ["study; the first 3 of 5"]


# -- bad input --


@pytest.mark.parametrize("name", ["p.pdf", "p", "p.PNG"])
def test_another_format_is_refused_before_any_work(tmp_path, name):
    with pytest.raises(StudyError, match=r"end the name in \.png or \.svg"):
        intervals.check_plot_path(tmp_path / name)


def test_a_folder_is_refused(tmp_path):
    (tmp_path / "p.png").mkdir()
    with pytest.raises(StudyError, match="is a directory"):
        plot_intervals(tmp_path / "p.png", [])


def test_without_its_library_the_extra_is_named(tmp_path, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        intervals, "find_spec", lambda name: None if name == "matplotlib" else find(name)
    )
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(StudyError, match=r'pip install "fairtrial\[report\]"'):
        plot_intervals(tmp_path / "p.png", [row()])
