"""The table of candidates: there if a run tells of any, one row for each, typed, and checked."""

import csv
import io
import json
import math
import sqlite3

import pytest
from hypothesis import given, strategies as st
from run_kit import make_study, run

from fairtrial import open_results
from fairtrial.core.table_files import format_csv
from fairtrial.optimize.candidates_table import COLUMNS, CandidatesTable, candidate_rows, fit
from fairtrial.study import RunResult, RunStatus, Study, render_codebook
from fairtrial.study.tables import export_tables
from fairtrial.study.tables.integrity import find_invalid_column, validate_artifacts

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=3,
)
FULL = {
    "candidate_id": "1.2",
    "parent_id": "1.1",
    "lineage": 1,
    "step": 2,
    "kind": "refine",
    "name": "hoisted",
    "digest": "abc",
    "verdict": "faster",
    "basis": "compared results",
    "reason": None,
    "ratio": 1.5,
    "low": 1.4,
    "high": 1.6,
    "sessions": 16,
    "adopt": True,
    "duplicate_of": None,
    "tokens": 1200,
    "cost_usd": 0.25,
    "diff_bytes": 5,
    "note": 'a loop\r\nless, "quoted"',
}


def told(*events):
    """A result whose run told of these."""
    made = [{"event_type": kind, "text": text, "meta": meta} for kind, text, meta in events]
    return RunResult("run-1", RunStatus.SUCCESS, observations=tuple(made))


def rows_of(*events):
    rows = candidate_rows(told(*events))
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def optimize(task):
    """Tells of three candidates, one of them twice; the second run of none."""
    if task.run_spec.replicate == 2:
        return {"x": 0}
    first = {"candidate_id": "0.0", "lineage": 0, "step": 0, "kind": "initial", "verdict": "passed"}
    task.emit("candidate", text="é diff", **first)
    task.emit("candidate", text="x" * 5, **FULL)
    task.emit("candidate", candidate_id="1.3", parent_id="1.2", duplicate_of="base", ratio="?")
    task.emit("candidate", text="é diff", **{**first, "verdict": "faster", "ratio": 2})
    task.emit("candidate", text="somebody's own", colour="red")
    return {"x": 1}


def test_events_of_the_version_before_fill_the_column_of_the_lineage():
    older = {"candidate_id": "1.0", "line": 1}
    assert rows_of(("candidate", "", older))[0]["lineage"] == 1
    assert rows_of(("candidate", "", {**older, "lineage": 2}))[0]["lineage"] == 2


def study_of(folder, **fields):
    return make_study(folder, levels=(1,), replicates=2, **fields)


def read(folder, name="candidates.csv"):
    with (folder / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


# -- rows --


def test_a_row_has_what_the_event_says():
    (row,) = rows_of(("candidate", "x" * 99, FULL))
    assert row == {"run_id": "run-1", **FULL}


def test_other_events_are_none_of_it():
    assert rows_of(("step", "", FULL), ("candidate", "", {}), ("candidate", "", None)) == []


def test_a_later_event_of_a_candidate_adds_to_the_earlier_one():
    first = {"candidate_id": 7, "verdict": "passed", "note": "a"}
    later = {"candidate_id": "7", "verdict": "faster", "note": None, "ratio": 2}
    other = {"candidate_id": "8"}
    rows = rows_of(("candidate", "é", first), ("candidate", "", other), ("candidate", "", later))
    assert [row["candidate_id"] for row in rows] == ["7", "8"]
    seven = {name: value for name, value in rows[0].items() if value is not None}
    expected = {"verdict": "faster", "note": "a", "ratio": 2.0, "diff_bytes": 2}
    assert seven == {"run_id": "run-1", "candidate_id": "7", **expected}


@given(ANYTHING, st.sampled_from(sorted({str, int, float, bool}, key=str)))
def test_a_cell_is_of_its_columns_type_or_blank(value, kind):
    cell = fit(value, kind)
    assert cell is None or type(cell) is kind
    if kind is not str and type(value) is kind and cell is None:
        assert kind is int
        assert not -(2**63) <= value < 2**63


@given(st.dictionaries(st.sampled_from(list(FULL)), ANYTHING))
def test_whatever_an_event_says_makes_a_row_that_is_sound(meta):
    rows = list(candidate_rows(told(("candidate", "", {"candidate_id": "1", **meta}))))
    for row in rows:
        (read_back,) = csv.reader(io.StringIO(format_csv([row]), newline=""))
        assert find_invalid_column(CandidatesTable(), read_back) is None


@pytest.mark.parametrize(
    ("column", "cell"),
    [("ratio", "fast"), ("lineage", "1.5"), ("adopt", "yes"), ("tokens", "many")],
)
def test_a_cell_that_makes_no_sense_is_noticed(column, cell):
    row = dict.fromkeys(COLUMNS, "") | {column: cell}
    assert find_invalid_column(CandidatesTable(), list(row.values())) == column


def test_infinite_bounds_stay():
    assert fit(math.inf, float) == math.inf
    assert fit(math.inf, int) is None


# -- the set --


def test_a_study_without_candidates_has_no_such_table(tmp_path):
    run(study_of(tmp_path), include_sqlite=True)
    assert not (tmp_path / "candidates.csv").exists()
    assert "candidates.csv" not in json.loads((tmp_path / "manifest.json").read_text())["files"]
    with sqlite3.connect(tmp_path / "study.sqlite") as mirror:
        tables = {name for (name,) in mirror.execute("SELECT name FROM sqlite_master")}
    mirror.close()
    assert "candidates" not in tables
    assert validate_artifacts(tmp_path) == []


def test_the_table_is_part_of_the_set(tmp_path):
    results = run(study_of(tmp_path), optimize, include_sqlite=True)
    rows = read(tmp_path)
    assert list(rows[0]) == list(COLUMNS)
    assert [row["candidate_id"] for row in rows] == ["0.0", "1.2", "1.3"]
    assert {row["run_id"] for row in rows} == {results[0].run_id}
    assert (rows[0]["verdict"], rows[0]["ratio"], rows[0]["diff_bytes"]) == ("faster", "2.0", "7")
    assert (rows[1]["adopt"], rows[1]["note"]) == ("True", FULL["note"])
    assert (rows[2]["duplicate_of"], rows[2]["ratio"]) == ("base", "")
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["files"]["candidates.csv"]["rows"] == 3
    assert validate_artifacts(tmp_path) == []
    # What doesn't fit a column is in the event, and so is the diff.
    assert [row["text"] for row in read(tmp_path, "events.csv")][:2] == ["é diff", "xxxxx"]


def test_python_sees_the_same_table(tmp_path):
    run(study_of(tmp_path), optimize)
    with open_results(tmp_path) as results:
        rows = list(results.candidates)
        assert [row["ratio"] for row in rows] == [2.0, 1.5, None]
        assert list(results.candidates.columns()) == list(COLUMNS)


def test_mirrors_have_the_table_with_its_types(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    results = run(study_of(tmp_path), optimize)
    written = export_tables(results, tmp_path, sqlite=True, parquet=True)
    assert {"candidates.csv", "candidates.parquet"} <= set(written)
    table = parquet.read_table(tmp_path / "candidates.parquet")
    arrow = {
        str: pyarrow.string(),
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        bool: pyarrow.bool_(),
    }
    expected = [(name, arrow[column.type]) for name, column in COLUMNS.items()]
    assert list(zip(table.schema.names, table.schema.types, strict=True)) == expected
    with sqlite3.connect(tmp_path / "study.sqlite") as mirror:
        found = mirror.execute('SELECT * FROM "candidates"').fetchall()
    mirror.close()
    assert found == [tuple(row.values()) for row in results.candidates]
    assert table.to_pylist() == list(results.candidates)


def test_the_table_goes_when_there_are_no_candidates_any_more(tmp_path):
    def agent(task):
        if not task.journal.entries():
            task.emit("candidate", candidate_id="1")
            task.journal.append("told", {})
            raise ValueError
        return {"x": 0}

    study = study_of(tmp_path)
    run(study, agent)
    assert len(read(tmp_path)) == 2
    run(study, agent, resume=True, retry="failed")
    assert not (tmp_path / "candidates.csv").is_symlink()
    assert validate_artifacts(tmp_path) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace("run-", "run-x", 1), "to a run that is not in runs.csv"),
        (lambda text: text.replace(",1.3,", ",1.2,", 1), "has the candidate 1.2 twice"),
        (lambda text: text.replace(",2.0,", ",fast,", 1), "ratio of"),
        (lambda text: text.replace("parent_id", "parent", 1), "expected the columns run_id"),
        (lambda text: text + " ", "can't be read"),
    ],
)
def test_what_doesnt_hold_together_is_noticed(tmp_path, change, words):
    run(study_of(tmp_path), optimize)
    path = (tmp_path / "candidates.csv").resolve()
    text = path.read_bytes().decode()
    assert change(text) != text
    path.write_bytes(change(text).encode())
    problems = validate_artifacts(tmp_path)
    assert any(each.startswith("candidates.csv: ") and words in each for each in problems), problems
    assert any("checksum" in each or "can't be read" in each for each in problems)


def test_a_table_that_is_gone_is_missed(tmp_path):
    run(study_of(tmp_path), optimize)
    (tmp_path / "candidates.csv").resolve().unlink()
    assert validate_artifacts(tmp_path) == ["candidates.csv: is missing"]


def test_a_file_of_another_user_is_refused_only_if_it_is_in_the_way(tmp_path):
    (tmp_path / "candidates.csv").write_text("mine")
    run(study_of(tmp_path))
    assert (tmp_path / "candidates.csv").read_text() == "mine"


# -- the codebook --


def test_the_codebook_has_every_column_for_studies_of_code():
    fields = {"study_id": "s", "title": "t"}
    problems = {"p": {"use": "code", "options": {"path": "p.yaml"}}}
    text = render_codebook(Study.from_dict({**fields, "problems": problems}), [])
    table = text.partition("candidates.csv")[2]
    assert [name for name in COLUMNS if f"| `{name}` " not in table] == []
    assert "candidates.csv" not in render_codebook(Study.from_dict(fields), [])
