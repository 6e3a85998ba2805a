"""Export of all tables of a study from its ledger: their content, and that other tools read it."""

import csv
import json
import math
import re
import sqlite3
import sys
import types

import pandas
import pyarrow.parquet
import pytest
from small_ledger_kit import (
    STARTED,
    LedgerLab,
    emitting,
    evaluation,
    event,
    failure,
    make_small_study,
    success,
)

from fairtrial import (
    AnalysisPlan,
    Factor,
    Hypothesis,
    RunBudget,
    RunResult,
    RunStatus,
    StudyError,
    build_design,
    load_study,
    plan_runs,
)
from fairtrial.study import export_analysis_tables
from fairtrial.study.executors import FailureKind
from fairtrial.study.ledger import LedgerReader
from fairtrial.study.tables import export_tables, parquet as parquet_module
from fairtrial.study.tables.canonical import EVENT_COLUMNS, RUN_COLUMNS
from fairtrial.study.tables.export import check_target
from fairtrial.study.tables.generation import file_sha256
from fairtrial.study.tables.integrity import check_set, validate_artifacts

EXPECTED = [
    "study.yaml",
    "conditions.csv",
    "runs.csv",
    "events.csv",
    "evaluations.csv",
    "hypotheses.json",
    "analysis_plan.json",
    "manifest.json",
    "outputs.csv",
]


@pytest.fixture
def make_lab(tmp_path):
    labs = []

    def make(study=None, **options):
        labs.append(LedgerLab(tmp_path / "out", study or make_small_study(), **options))
        return labs[-1]

    yield make
    for lab in labs:
        lab.ledger.close()


def table(folder, name):
    with (folder / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def read_manifest(folder):
    return json.loads((folder / "manifest.json").read_text("utf-8"))


def test_a_set_has_all_canonical_files_and_is_consistent(make_lab):
    study = make_small_study(
        hypotheses=(Hypothesis("h", "x matters", "it does", independent_vars=("x",)),),
        analysis_plans=(AnalysisPlan("ap", hypothesis_ids=("h",), tests=("difference_in_means",)),),
    )
    lab = make_lab(study).run()
    paths = export_tables(lab.reader, lab.folder)
    assert list(paths) == EXPECTED
    assert all(path == lab.folder / name and path.is_file() for name, path in paths.items())
    assert validate_artifacts(lab.folder) == []
    assert load_study(paths["study.yaml"]) == study
    assert json.loads(paths["hypotheses.json"].read_text())[0]["hypothesis_id"] == "h"
    assert json.loads(paths["analysis_plan.json"].read_text())[0]["hypothesis_ids"] == ["h"]
    assert [row["x"] for row in table(lab.folder, "conditions.csv")] == ["1", "2"]


def test_runs_are_in_plan_order_however_they_were_executed(make_lab):
    lab = make_lab(make_small_study(levels=range(5), replicates=4)).run()
    assert list(lab.order) != sorted(lab.order)
    export_tables(lab.reader, lab.folder)
    runs = [row["run_id"] for row in table(lab.folder, "runs.csv")]
    assert runs == [spec.run_id for spec in lab.plan.specs()]
    assert [row["run_id"] for row in table(lab.folder, "events.csv")] == runs


def test_the_manifest_says_what_is_there_and_where_it_came_from(make_lab):
    study = make_small_study(provenance_metadata={"grant": 12, "host": "mine"})
    lab = make_lab(study, provenance={"host": "first"})
    fields = {"provenance": {"model_name": "m-2"}}
    lab.add(0, success(**fields))
    lab.add(1, success(execution_metadata={"model_name": "m-1"}))
    lab.add(2, failure())
    lab.begin({"host": "second", "git_sha": "abc"})
    lab.add(3, success(**fields))
    export_tables(lab.reader, lab.folder)
    manifest = read_manifest(lab.folder)
    assert list(manifest)[:7] == [
        "schema_version",
        "study_id",
        "generated_at",
        "status_counts",
        "model_ids",
        "run_count",
        "provenance",
    ]
    assert (manifest["schema_version"], manifest["study_id"]) == ("0.2.0", "s")
    assert manifest["status_counts"] == {"failed": 1, "success": 3}
    assert manifest["model_ids"] == ["m-1", "m-2"]
    assert manifest["run_count"] == 4
    assert manifest["provenance"] == {
        "host": "second",
        "git_sha": "abc",
        "grant": 12,
        "provenance_metadata": {"host": "mine"},
    }
    assert [session["session"] for session in manifest["sessions"]] == [1, 2]
    assert manifest["left_out"]["pending"] == 0
    assert set(manifest["files"]) == set(EXPECTED) - {"manifest.json"}
    assert manifest["files"]["runs.csv"]["rows"] == 4


def test_a_repeated_export_gives_the_same_bytes_but_for_the_time(make_lab):
    lab = make_lab().run(
        run0=emitting(event(text="a"), evaluations=[evaluation(0.1)]), run1=failure()
    )

    def contents():
        export_tables(lab.reader, lab.folder, sqlite=True, parquet=True)
        manifest = read_manifest(lab.folder)
        del manifest["generated_at"]
        files = {name: (lab.folder / name).read_bytes() for name in manifest["files"]}
        return manifest, files

    assert contents() == contents()


def test_numbers_are_read_back_as_the_same_numbers(make_lab):
    values = [0.1, 1e-300, 2**53 + 1, -0.0, 12345678901234567890123, math.inf]
    metrics = {f"m{index}": value for index, value in enumerate(values)}
    lab = make_lab().run(run1=success(metrics={**metrics, "flag": True, "nan": math.nan}))
    export_tables(lab.reader, lab.folder)
    row = table(lab.folder, "runs.csv")[1]
    assert [row[name] for name in metrics] == [repr(value) for value in values]
    assert (row["flag"], row["nan"]) == ("True", "nan")
    frame = pandas.read_csv(lab.folder / "runs.csv")
    assert all(frame[name].dtype.kind in "fi" for name in ("m0", "m1", "nan", "seed", "latency_s"))


def test_metrics_that_appear_late_give_earlier_rows_an_empty_cell(make_lab):
    lab = make_lab(make_small_study(replicates=3))
    special = {
        "run0": success(metrics={"first": 'a, "b"\n'}),
        "run2": success(metrics={"late": 1, "first": "\r"}),
        "run5": success(metrics={"last": 2, "listed": [1]}),
    }
    lab.run(**special)
    export_tables(lab.reader, lab.folder)
    rows = table(lab.folder, "runs.csv")
    assert list(rows[0])[len(RUN_COLUMNS) :] == ["factor_x", "first", "late", "last"]
    assert [row["first"] for row in rows] == ['a, "b"\n', "", "\r", "", "", ""]
    assert [row["late"] for row in rows] == ["", "", "1", "", "", ""]
    assert [row["last"] for row in rows] == ["", "", "", "", "", "2"]
    assert read_manifest(lab.folder)["left_out"]["metrics_without_column"] == {"listed": 1}
    assert validate_artifacts(lab.folder) == []


def test_skipped_runs_have_rows_and_runs_still_to_come_have_none(make_lab):
    budget = RunBudget(replicates=3, max_runs=4, max_runs_policy="balanced")
    lab = make_lab(make_small_study(run_budget=budget))
    lab.add(0)
    lab.add(4, failure())
    export_tables(lab.reader, lab.folder)
    assert [row["status"] for row in table(lab.folder, "runs.csv")] == [
        "success",
        "skipped",
        "failed",
        "skipped",
    ]
    assert [row["replicate"] for row in table(lab.folder, "runs.csv")] == ["1", "3", "2", "3"]
    manifest = read_manifest(lab.folder)
    assert manifest["left_out"]["pending"] == 2
    assert manifest["status_counts"] == {"failed": 1, "skipped": 2, "success": 1}


def test_results_that_are_no_longer_in_the_plan_are_left_out_and_counted(make_lab):
    lab = make_lab(make_small_study(levels=(1, 2, 3), replicates=1)).run()
    order = lab.order[:]
    gone = list(order).index(2)
    order[gone] = 0xFFFFFFFF
    study = make_small_study(levels=(1, 2), replicates=1)
    lab.ledger.write_plan({"study": json.dumps(study.to_dict())}, build_design(study), order)
    reader = LedgerReader(lab.ledger.connection, lab.ledger.path)
    export_tables(reader, lab.folder)
    assert len(table(lab.folder, "runs.csv")) == 2
    assert read_manifest(lab.folder)["left_out"]["not_in_plan"] == 1


def test_complete_cases_leave_out_runs_with_gaps_and_say_how_many(make_lab):
    budget = RunBudget(replicates=3, max_runs=5, max_runs_policy="balanced")
    broken = failure(FailureKind.KILLED, RunStatus.BROKEN)
    lab = make_lab(make_small_study(run_budget=budget)).run(run0=failure(), run1=broken)
    paths = export_tables(lab.reader, lab.folder, complete_cases=True)
    subfolder = paths["complete-cases"]
    assert subfolder == lab.folder / "complete-cases"
    assert len(table(lab.folder, "runs.csv")) == 6
    assert [row["status"] for row in table(subfolder, "runs.csv")] == ["success"] * 3
    assert len(table(subfolder, "events.csv")) == 3
    assert len(table(subfolder, "conditions.csv")) == 2
    left_out = read_manifest(subfolder)["left_out"]
    assert {name: left_out[name] for name in ("failed", "broken", "skipped")} == {
        "failed": 1,
        "broken": 1,
        "skipped": 1,
    }
    assert validate_artifacts(subfolder) == []


def test_a_study_that_runs_is_exported_as_of_one_moment(make_lab, tmp_path, monkeypatch):
    lab = make_lab(make_small_study(replicates=20))
    for plan_index in range(10):
        lab.add(plan_index)
    lab.ledger.commit()
    reader = LedgerReader.open(lab.folder)
    read = LedgerReader.results

    def results(self):  # more is committed while the export goes on
        for index, result in enumerate(read(self)):
            if index == 0 and lab.ledger.committed == 10:
                lab.add(30)
                lab.ledger.commit()
            yield result

    monkeypatch.setattr(LedgerReader, "results", results)
    export_tables(reader, tmp_path / "tables", sqlite=True)
    reader.close()
    assert lab.ledger.committed == 11
    assert len(table(tmp_path / "tables", "runs.csv")) == 10
    with sqlite3.connect(tmp_path / "tables" / "study.sqlite") as mirror:
        assert mirror.execute("SELECT count(*) FROM runs").fetchone() == (10,)
    mirror.close()


# -- SQLite and Parquet --

ODD = ("order", "select", 'a "b" c', "group by", "x;--", "é")


def make_odd_lab(make_lab):
    factors = tuple(Factor(name, levels=(1, 2) if name == "order" else (1,)) for name in ODD)
    return make_lab(make_small_study(factors=factors, replicates=1)).run(
        run0=success(
            metrics={"table": 1, "mixed": 1, "half": 1, "huge": 2**70, "flag": True, "nul\0": 1},
            evaluations=[evaluation(1), evaluation("good")],
        ),
        run1=success(metrics={"table": 2, "mixed": "text", "half": 0.5, "flag": False}),
    )


def test_the_sqlite_file_has_the_same_rows_with_types_and_quoted_names(make_lab):
    lab = make_odd_lab(make_lab)
    export_tables(lab.reader, lab.folder, sqlite=True)
    mirror = sqlite3.connect(lab.folder / "study.sqlite")
    columns = mirror.execute("SELECT name, type FROM pragma_table_info('conditions')").fetchall()
    assert [name for name, _ in columns][5:] == list(ODD)
    assert mirror.execute('SELECT "order" FROM conditions').fetchall() == [(1,), (2,)]
    types = dict(mirror.execute("SELECT name, type FROM pragma_table_info('runs')"))
    shown = ("seed", "latency_s", "table", "mixed", "half", "huge", "flag", "primary_outcome")
    assert {name: types[name] for name in shown} == {
        "seed": "INTEGER",
        "latency_s": "REAL",
        "table": "INTEGER",
        "mixed": "TEXT",
        "half": "REAL",
        "huge": "TEXT",
        "flag": "BOOLEAN",
        "primary_outcome": "INTEGER",
    }
    rows = mirror.execute('SELECT "table", mixed, half, huge, flag FROM runs').fetchall()
    assert rows == [(1, "1", 1.0, str(2**70), 1), (2, "text", 0.5, None, 0)]
    values = mirror.execute("SELECT metric_value, typeof(metric_value) FROM evaluations")
    assert values.fetchall() == [("1", "text"), ("good", "text")]
    for name in ("conditions", "runs", "events", "evaluations"):
        (count,) = mirror.execute(f"SELECT count(*) FROM {name}").fetchone()
        assert count == len(table(lab.folder, f"{name}.csv"))
    mirror.close()


def test_parquet_files_have_the_same_rows_with_types(make_lab):
    lab = make_odd_lab(make_lab)
    export_tables(lab.reader, lab.folder, parquet=True)
    runs = pyarrow.parquet.read_table(lab.folder / "runs.parquet")
    types = {name: str(runs.schema.field(name).type) for name in ("seed", "mixed", "half", "flag")}
    assert types == {"seed": "int64", "mixed": "string", "half": "double", "flag": "bool"}
    assert runs.column("half").to_pylist() == [1.0, 0.5]
    assert runs.column("huge").to_pylist() == [str(2**70), None]
    assert runs.column_names == list(table(lab.folder, "runs.csv")[0])
    conditions = pyarrow.parquet.read_table(lab.folder / "conditions.parquet")
    assert conditions.column("admissible").to_pylist() == [True, True]


def test_parquet_is_written_in_batches(make_lab, monkeypatch):
    monkeypatch.setattr(parquet_module, "GROUP_ROWS", 2)
    lab = make_lab(make_small_study(replicates=150)).run()
    export_tables(lab.reader, lab.folder, parquet=True)
    file = pyarrow.parquet.ParquetFile(lab.folder / "runs.parquet")
    assert (file.metadata.num_rows, file.num_row_groups) == (300, 2)
    assert pyarrow.parquet.read_table(lab.folder / "evaluations.parquet").num_rows == 0


def test_without_pyarrow_parquet_is_refused_before_anything_is_written(make_lab, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    lab = make_lab().run()
    with pytest.raises(StudyError, match=r'pip install "fairtrial\[parquet\]"'):
        export_tables(lab.reader, lab.folder, parquet=True)
    with pytest.raises(StudyError, match="pyarrow"):
        check_target(lab.folder, parquet=True)
    assert not (lab.folder / "runs.csv").exists()


# -- validation of a set --


def edit(folder, name, change):
    path = folder / name
    text = path.read_text("utf-8")
    assert change(text) != text
    path.write_text(change(text), "utf-8")


def without_last_row(text):
    return text[: text.rindex("\n", 0, -1) + 1]


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("runs.csv", without_last_row, "runs.csv: has 3 rows, the manifest says 4"),
        (
            "runs.csv",
            lambda text: text.replace("success", "failed", 1),
            "differs from its checksum",
        ),
        ("runs.csv", lambda text: text[:-9], "row 4 has 25 cells instead of 27"),
        ("events.csv", without_last_row, "events.csv: differs from its checksum"),
        ("conditions.csv", without_last_row, "which is not in conditions.csv"),
        ("study.yaml", lambda text: text + "#", "study.yaml: differs from its checksum"),
        ("manifest.json", lambda text: text[:-20], "manifest.json: is not JSON"),
        ("manifest.json", lambda text: text.replace('"0.2.0"', '"9"', 1), "expected schema 0.2.0"),
        ("manifest.json", lambda text: text.replace("run_count", "runs"), "lacks run_count"),
        ("evaluations.csv", lambda text: "a\n" + text, "evaluations.csv: expected the columns"),
    ],
)
def test_changes_of_a_set_are_detected(make_lab, name, change, expected):
    lab = make_lab().run(run0=success(evaluations=[evaluation(1)]))
    export_tables(lab.reader, lab.folder)
    edit(lab.folder, name, change)
    problems = "\n".join(validate_artifacts(lab.folder))
    assert re.search(expected, problems), problems


def test_missing_files_and_folders_are_reported(make_lab, tmp_path):
    lab = make_lab().run()
    export_tables(lab.reader, lab.folder)
    (lab.folder / "events.csv").unlink()
    assert validate_artifacts(lab.folder) == ["events.csv: is missing"]
    assert validate_artifacts(tmp_path / "none") == ["manifest.json: No such file or directory"]


def test_duplicate_and_unknown_runs_are_detected_even_with_matching_checksums(make_lab):
    lab = make_lab().run(run0=success(evaluations=[evaluation(1)]))
    export_tables(lab.reader, lab.folder)
    runs = (lab.folder / "runs.csv").read_text().splitlines(keepends=True)
    (lab.folder / "runs.csv").write_text("".join([*runs, runs[1]]))
    edit(lab.folder, "evaluations.csv", lambda text: text.replace("\nrun-", "\nrun-x", 1))
    manifest = read_manifest(lab.folder)
    for name, facts in manifest["files"].items():
        path = lab.folder / name
        facts.update(sha256=file_sha256(path), bytes=path.stat().st_size)
    manifest["files"]["runs.csv"]["rows"] = manifest["run_count"] = 5
    problems = check_set(manifest, {name: lab.folder / name for name in manifest["files"]})
    run_id = runs[1].split(",")[2]
    assert problems == [
        f"runs.csv: {run_id} occurs twice",
        "evaluations.csv: refers 1 times to a run that is not in runs.csv",
    ]


def test_texts_of_any_length_are_written_and_checked(make_lab):
    lab = make_lab().run(run0=emitting(event(text="x" * 200_000)))
    limit = csv.field_size_limit()
    export_tables(lab.reader, lab.folder)
    assert validate_artifacts(lab.folder) == []
    assert csv.field_size_limit() == limit


# -- from Python objects --


def make_results(study):
    conditions = build_design(study)
    return conditions, [
        RunResult(
            spec.run_id,
            RunStatus.SUCCESS,
            outputs={"text": "t"},
            metrics={"score": index / 2},
            run_spec=spec,
            started_at=STARTED,
            ended_at=STARTED,
        )
        for index, spec in enumerate(plan_runs(study, conditions))
    ]


def test_results_given_as_objects_become_the_same_tables(tmp_path):
    study = make_small_study(output_dir=tmp_path / "mine")
    conditions, results = make_results(study)
    paths = export_analysis_tables(
        study, conditions=conditions, run_results=iter(results), include_sqlite=True
    )
    assert paths["runs.csv"] == tmp_path / "mine" / "runs.csv"
    assert validate_artifacts(tmp_path / "mine") == []
    rows = table(tmp_path / "mine", "runs.csv")
    assert [row["score"] for row in rows] == ["0.0", "0.5", "1.0", "1.5"]
    assert (tmp_path / "mine" / "study.sqlite").is_file()
    assert tuple(table(tmp_path / "mine", "events.csv")[0]) == EVENT_COLUMNS
    elsewhere = export_analysis_tables(
        study, conditions=conditions, run_results=results, output_dir=tmp_path / "other"
    )
    assert elsewhere["runs.csv"].read_bytes() == paths["runs.csv"].read_bytes()


def test_results_without_spec_or_condition_and_duplicates_are_refused(tmp_path):
    study = make_small_study()
    conditions, results = make_results(study)

    def export(conditions, results):
        export_analysis_tables(
            study, conditions=conditions, run_results=results, output_dir=tmp_path / "out"
        )

    with pytest.raises(StudyError, match=r"run_results\[0\]: run-x has no run_spec"):
        export(conditions, [RunResult("run-x", RunStatus.SUCCESS)])
    with pytest.raises(StudyError, match="occurs twice"):
        export(conditions, [*results, results[0]])
    with pytest.raises(StudyError, match=r"which is not in conditions\.csv"):
        export(conditions[:1], results)
    assert not (tmp_path / "out" / "runs.csv").exists()


def test_a_factor_named_like_a_key_column_is_refused(tmp_path):
    study = make_small_study(factors=(Factor("condition_id", levels=(1,)),))
    conditions, results = make_results(study)
    with pytest.raises(StudyError, match="'condition_id' is a key column of the tables"):
        export_analysis_tables(
            study, conditions=conditions, run_results=results, output_dir=tmp_path
        )


def test_half_a_surrogate_pair_in_a_result_is_refused(tmp_path):
    study = make_small_study()
    conditions, results = make_results(study)
    object.__setattr__(results[0], "outputs", {"text": "\ud800"})
    with pytest.raises(StudyError, match="half of a surrogate pair"):
        export_analysis_tables(
            study, conditions=conditions, run_results=results, output_dir=tmp_path / "out"
        )
    assert list((tmp_path / "out").iterdir()) == []


def test_the_analysis_package_validates_only_on_request(tmp_path, monkeypatch):
    study = make_small_study()
    conditions, results = make_results(study)

    def export():
        export_analysis_tables(
            study,
            conditions=conditions,
            run_results=results,
            output_dir=tmp_path,
            validate_with_analysis_package=True,
        )

    monkeypatch.setitem(sys.modules, "design_research_analysis", None)
    with pytest.raises(StudyError, match="pip install design-research-analysis"):
        export()
    validated = []
    package = types.ModuleType("design_research_analysis")

    def validate(path):
        validated.append(path)
        return types.SimpleNamespace(is_valid=len(validated) > 1, errors=("no rows",))

    package.validate_experiment_events = validate
    monkeypatch.setitem(sys.modules, "design_research_analysis", package)
    with pytest.raises(StudyError, match="no rows"):
        export()
    export()
    assert validated == [tmp_path / "events.csv"] * 2


def test_a_ledger_in_memory_can_be_exported(tmp_path):
    lab = LedgerLab(None, make_small_study()).run()
    export_tables(lab.reader, tmp_path / "out")
    assert len(table(tmp_path / "out", "runs.csv")) == 4
    lab.ledger.close()


def test_a_study_without_any_results_has_empty_tables(make_lab):
    lab = make_lab()
    export_tables(lab.reader, lab.folder, sqlite=True, parquet=True)
    assert validate_artifacts(lab.folder) == []
    assert table(lab.folder, "runs.csv") == []
    assert read_manifest(lab.folder)["left_out"]["pending"] == 4
