"""Tables as data frames, and records as notebooks show them."""

from html.parser import HTMLParser

import pytest
from page_kit import HOSTILE, make_hostile_study
from run_kit import make_study, run as run_one

from fairtrial import Judgement, OptimizationResult, Verdict, build_design
from fairtrial.arena import Reason, Rejection
from fairtrial.core import LabError
from fairtrial.study import DesignRow, DesignTable
from fairtrial.study.tables import table_view

ALLOWED = {
    "div", "strong", "small", "p", "table", "thead", "tbody", "tr", "th", "td", "ul", "li",
    "details", "summary", "pre",
}  # fmt: skip


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    with make_hostile_study(tmp_path_factory.mktemp("frames") / "out") as results:
        yield results


@pytest.mark.parametrize("table", ["runs", "events", "evaluations", "condition_table"])
@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_data_frame_has_all_rows_and_columns(results, table, kind):
    pytest.importorskip({"arrow": "pyarrow"}.get(kind, kind))
    view = getattr(results, table)
    columns = view.columns()
    frame = getattr(view, f"to_{kind}")()
    names = frame.column_names if kind == "arrow" else list(frame.columns)
    assert names == list(columns)
    assert len(frame) == len(next(iter(columns.values())))


def test_typed_frames_keep_numbers_and_mix_nothing(tmp_path):
    pytest.importorskip("pyarrow")
    answers = iter([1, 2.5, 10**30, "text", True, None])
    study = make_study(tmp_path / "out")
    with run_one(study, lambda task: {"x": 1, "metrics": {"odd": next(answers)}}) as results:
        frame = results.runs.to_arrow()
        assert frame["latency_s"].type == "double"
        assert frame["replicate"].type == "int64"
        assert frame["status"].type == "string"


def test_a_missing_library_is_named(results, monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(table_view, "import_module", missing)
    with pytest.raises(LabError, match="needs polars"):
        results.runs.to_polars()


class Tags(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], set()
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        assert attrs == []
        self.seen.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def shown(value):
    text = value._repr_html_()
    assert Tags(text).seen <= ALLOWED
    assert "\u202e" not in text
    text.encode("utf-8")
    return text


def test_results_studies_and_designs_are_shown(results):
    assert "48 of 48 runs" in shown(results)
    assert "&lt;script&gt;" in shown(results.study)
    conditions = shown(build_design(results.study))
    assert "4 conditions" in conditions
    assert "loud" in conditions


def test_rows_that_are_generated_on_demand_stay_unread():
    rows = (DesignRow({"x": HOSTILE}) for _ in range(3))
    table = DesignTable(3, rows, {"resolution": "III"})
    assert "resolution: III" in shown(table)
    assert len(list(rows)) == 3
    assert "&lt;/script&gt;" in shown(DesignTable(1, [DesignRow({"x": HOSTILE})]))


def test_judgements_and_optimizations_are_shown():
    judged = Judgement(HOSTILE, "", Verdict.REJECTED, rejection=Rejection(Reason.TESTS, HOSTILE))
    assert "rejected" in shown(judged)
    result = OptimizationResult(explanation=HOSTILE * 3, candidates=4, notes=(HOSTILE,) * 40)
    text = shown(result)
    assert "No candidate is worth adopting" in text
    assert "and 28 more" in text
    assert len(text) < 30_000
