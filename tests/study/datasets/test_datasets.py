"""Datasets: rows of files and tables as the problems of a study."""

import json
import os
import tracemalloc
from collections import Counter

import pytest
from hypothesis import given, strategies as st
from run_kit import make_study, read_table

from fairtrial import Factor, Study, StudyError, run_study
from fairtrial.core import LedgerError
from fairtrial.study import Dataset, load_study, open_results, rescore_study
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.files import read_study, write_study

ROWS = [
    {"id": "q1", "question": "1 + 1?", "answer": 2, "topic": "add", "level": 1},
    {"id": "q2", "question": "2 * 3?", "answer": 6, "topic": "mul", "level": 2},
    {"id": "q3", "question": "7 - 9?", "answer": -2, "topic": "sub", "level": 3},
    {"id": "q4", "question": "9 + 9?", "answer": 18, "topic": "add", "level": 4},
]
HEADER = "id,question,answer,topic,level\n"
CSV = HEADER + "".join(",".join(map(str, row.values())) + "\n" for row in ROWS)


def write(path, rows=ROWS):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def table(source, **fields):
    """The problems of a dataset; a `StudyError` with its mistakes if there are any."""
    dataset = Dataset(str(source) if hasattr(source, "parts") else source, **fields)
    if dataset.table.mistakes:
        raise StudyError(dataset.table.mistakes)
    return dataset.table


def mistakes(source, **fields):
    with pytest.raises(StudyError) as caught:
        table(source, **fields)
    return str(caught.value)


def payloads(source, **fields):
    found = table(source, **fields)
    return [dict(found.parts(name).payload) for name in found.names]


# -- a study of a dataset --


def dataset_study(tmp_path, rows=ROWS, replicates=1, **fields):
    path = tmp_path / "tasks.jsonl"
    if rows is not None:
        write(path, rows)
    fields = {"id": "id", "brief": "{question}", "family": "topic", **fields}
    fields = {"reference": "answer", "evaluator": "numeric", **fields}
    return make_study(
        tmp_path / "out",
        levels=(0, 1),
        replicates=replicates,
        problem_ids=(),
        problems=Dataset(str(path), **fields),
    )


def solve(task):
    payload = task.problem.payload
    assert task.problem.reference is None
    assert "answer" not in payload
    assert "answer" not in repr(task.problem)
    return {"answer": f"{task.problem.brief} {eval(payload['question'][:-1])}", "x": 1}


def test_rows_are_problems_of_runs_and_references_reach_evaluators_only(tmp_path):
    results = run_study(dataset_study(tmp_path), agent_bindings={"a": solve})
    assert [str(result.status) for result in results] == ["success"] * 8
    assert [row["metric_value"] for r in results for row in r.evaluator_outputs] == [1] * 8
    runs = read_table(tmp_path / "out", "runs.csv")
    assert {row["problem_id"] for row in runs} == {"q1", "q2", "q3", "q4"}
    assert {row["problem_family"] for row in runs} == {"add", "mul", "sub"}


def test_worker_processes_give_the_same_results(tmp_path):
    plain = run_study(dataset_study(tmp_path), agent_bindings={"a": solve})
    (tmp_path / "2").mkdir()
    study = dataset_study(tmp_path / "2")
    parallel = run_study(study, agent_bindings={"a": solve}, parallelism=2)
    assert [(r.run_id, r.outputs) for r in plain] == [(r.run_id, r.outputs) for r in parallel]


def test_a_study_file_names_its_dataset(tmp_path):
    (tmp_path / "tasks.csv").write_text(CSV)
    text = """
study_id: s
title: t
problems:
  from: tasks.csv
  id: id
  brief: "What is {question}"
  family: topic
  where: level > 1
  sample: 2
  reference: answer
  evaluator: [exact, {use: numeric, options: {tolerance: 0.1}}]
"""
    (tmp_path / "study.yaml").write_text(text)
    study = read_study(tmp_path / "study.yaml").study
    assert len(study.problems) == 2
    assert isinstance(study.problems, Dataset)
    assert study.problems.sample.n == 2
    for brief in (False, True):
        copy = write_study(study, tmp_path / f"copy-{brief}.yaml", "yaml", brief=brief)
        again = load_study(copy)
        assert again == study
        assert list(again.problems) == list(study.problems)
    assert Study.from_dict(json.loads(json.dumps(study.to_dict()))) == study


def test_names_and_seeds_do_not_depend_on_other_rows(tmp_path):
    few = RunPlan(*designed(dataset_study(tmp_path, ROWS[:2])))
    many = RunPlan(*designed(dataset_study(tmp_path, ROWS)))
    known = {spec.run_id: spec.seed for spec in many.specs()}
    assert all(known[spec.run_id] == spec.seed for spec in few.specs())


def designed(study):
    from fairtrial import build_design

    return study, build_design(study)


def test_a_changed_file_is_refused_on_resume_in_one_line(tmp_path):
    run_study(dataset_study(tmp_path), agent_bindings={"a": solve})
    more = [*ROWS, {**ROWS[0], "id": "q5"}]
    study = dataset_study(tmp_path, more)
    with pytest.raises(LedgerError) as caught:
        run_study(study, agent_bindings={"a": solve}, resume=True)
    (line,) = [line for line in str(caught.value).splitlines() if "problems" in line]
    assert "the content of" in line
    assert "4 rows, 4 used -> 5 rows, 5 used" in line
    results = run_study(study, agent_bindings={"a": solve}, resume=True, accept_changes=True)
    assert len(results) == 10
    edited = [{**ROWS[0], "answer": 3}, *more[1:]]
    with pytest.raises(LedgerError, match="still 5 rows, 5 used"):
        run_study(dataset_study(tmp_path, edited), agent_bindings={"a": solve}, resume=True)


def test_results_can_be_read_when_the_file_is_gone(tmp_path):
    run_study(dataset_study(tmp_path), agent_bindings={"a": solve})
    (tmp_path / "tasks.jsonl").unlink()
    results = open_results(tmp_path / "out")
    assert [result.run_spec.problem_id for result in results][:2] == ["q1", "q2"]
    with pytest.raises(StudyError, match="there is no file"):
        rescore_study(tmp_path / "out")


def test_stored_outputs_are_scored_again_by_the_rows_of_now(tmp_path):
    run_study(dataset_study(tmp_path), agent_bindings={"a": solve})
    write(tmp_path / "tasks.jsonl", [{**row, "answer": 2} for row in ROWS])
    rescore_study(tmp_path / "out")
    rows = read_table(tmp_path / "out", "evaluations.csv")
    assert Counter(row["metric_value"] for row in rows) == {"1": 2, "0": 6}


def test_a_file_that_changes_during_the_study_breaks_its_runs(tmp_path):
    path = tmp_path / "tasks.jsonl"

    def spoil(task):
        path.write_text(path.read_text() + "\n" * 3)
        return {"answer": 1}

    study = dataset_study(tmp_path)
    results = run_study(study, agent_bindings={"a": spoil}, retry_wait_s=0.0)
    assert Counter(str(result.status) for result in results) == {"success": 1, "broken": 7}
    assert any("changed while it was in use" in (r.error_info or "") for r in results)


def test_rows_given_in_python_run_and_ask_for_python_afterwards(tmp_path):
    rows = ({**row, "when": object} for row in ROWS)
    dataset = Dataset(rows, id="id", reference="answer", evaluator="numeric")
    study = make_study(tmp_path / "out", problem_ids=(), problems=dataset)
    results = run_study(study, agent_bindings={"a": solve_silently}, parallelism=2)
    assert len(results) == 3 * 2 * 4
    stored = open_results(tmp_path / "out").study
    assert list(stored.problems) == ["q1", "q2", "q3", "q4"]
    with pytest.raises(StudyError, match="the rows were given in Python"):
        run_study(stored, agent_bindings={"a": solve_silently}, resume=True)


def solve_silently(task):
    return {"answer": eval(task.problem.payload["question"][:-1])}


# -- sources --


def test_all_formats_hold_the_same_rows(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    write(tmp_path / "t.jsonl")
    (tmp_path / "t.json").write_text(json.dumps(ROWS))
    (tmp_path / "t.csv").write_text(CSV)
    (tmp_path / "t.tsv").write_text(CSV.replace(",", "\t"))
    (tmp_path / "semicolons.csv").write_text(CSV.replace(",", ";"))
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), tmp_path / "t.parquet")
    (tmp_path / "own_rows.py").write_text(f"def rows(top=9):\n    yield from {ROWS}[:top]\n")
    for path in sorted(tmp_path.iterdir()):
        if path.suffix != ".py":
            assert payloads(path, id="id") == ROWS, path
    assert payloads("own_rows:rows", id="id", folder=tmp_path) == ROWS
    assert len(payloads("own_rows:rows", options={"top": 2}, folder=tmp_path)) == 2
    assert payloads(ROWS) == ROWS


@pytest.mark.parametrize(
    "data",
    [
        CSV.encode("utf-8-sig"),
        CSV.encode("utf-16"),
        CSV.replace("\n", "\r\n").encode(),
        CSV.replace("\n", "\r").encode(),
        CSV.rstrip("\n").encode(),
        CSV.replace("1 + 1?", '"1 + 1?"').encode(),
        ("\n" + CSV + "\n\n").encode(),
    ],
)
def test_csv_files_of_other_programs_hold_the_same_rows(tmp_path, data):
    (tmp_path / "t.csv").write_bytes(data)
    assert payloads(tmp_path / "t.csv") == ROWS


def test_cells_keep_their_text_in_briefs_and_codes_are_no_numbers(tmp_path):
    (tmp_path / "t.csv").write_text(
        'zip,price,text\n00501,1.50,"a ""quote"",\nand a line\u2028 break"\n10001,,é\n'
    )
    found = table(tmp_path / "t.csv", brief="{price}|{text}|{{zip}}|{not a column!}")
    first, second = [found.parts(name) for name in found.names]
    assert first.payload["zip"] == "00501"
    assert first.payload["price"] == 1.5
    assert first.brief == '1.50|a "quote",\nand a line\u2028 break|{zip}|{not a column!}'
    assert second.payload["price"] is None
    assert second.brief == "|é|{zip}|{not a column!}"


CELL_CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")


@given(
    st.lists(
        st.lists(
            st.text(
                st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=9
            ),
            min_size=2,
            max_size=2,
        ),
        min_size=1,
        max_size=9,
    )
)
def test_any_text_survives_csv_and_json_lines(tmp_path_factory, cells):
    from fairtrial.core.table_files import format_csv

    folder = tmp_path_factory.mktemp("rows")
    (folder / "t.csv").write_text(format_csv([["a", "x"], *cells]), "utf-8", newline="")
    write(folder / "t.jsonl", [{"a": a, "x": x} for a, x in cells])
    found = table(folder / "t.csv", brief="{a}\0{x}")
    assert [found.parts(name).brief.split("\0") for name in found.names] == cells
    assert [list(row.values()) for row in payloads(folder / "t.jsonl")] == cells


def test_each_file_of_a_folder_is_a_row(tmp_path):
    for name in ("b/two.txt", "one.txt", ".hidden", "b/skip.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"text of {name}")
    found = table(tmp_path, id="file", brief="{text}", options={"pattern": "**/*.txt"})
    assert found.names == ("b/two.txt", "one.txt")
    assert found.parts("b/two.txt").brief == "text of b/two.txt"
    assert found.parts("b/two.txt").payload["folder"] == "b"


def test_hugging_face_datasets_are_read_from_disk(tmp_path, monkeypatch):
    library = pytest.importorskip("datasets")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    plain = library.Dataset.from_list(ROWS)
    plain.save_to_disk(os.fspath(tmp_path / "one"))
    library.DatasetDict({"test": plain, "train": plain}).save_to_disk(os.fspath(tmp_path / "two"))
    assert payloads("hf:one", folder=tmp_path) == ROWS
    assert payloads("hf:two", folder=tmp_path, options={"split": "test"}) == ROWS
    assert "choose one of its parts" in mistakes("hf:two", folder=tmp_path)
    same, other = (
        table(f"hf:{n}", folder=tmp_path, options=o).facts["digest"]
        for n, o in (("one", {}), ("two", {"split": "train"}))
    )
    assert same == other


# -- names --


def test_rows_without_names_are_named_by_their_content(tmp_path):
    write(tmp_path / "a.jsonl")
    write(tmp_path / "b.jsonl", [*reversed([dict(reversed(r.items())) for r in ROWS]), ROWS[0]])
    names, others = table(tmp_path / "a.jsonl").names, table(tmp_path / "b.jsonl")
    assert set(others.names) == {*names, f"{names[0]}-2"}
    assert "1 row is a copy of another" in others.warnings[0]


def test_a_column_that_turns_into_text_changes_no_name_of_other_rows(tmp_path):
    (tmp_path / "t.csv").write_text(CSV)
    before = table(tmp_path / "t.csv").names
    (tmp_path / "t.csv").write_text(CSV + "q5,x?,unknown,add,9\n")
    assert table(tmp_path / "t.csv").names[:4] == before


# -- selection --


def test_where_selects_rows_by_an_expression(tmp_path):
    path = write(tmp_path / "t.jsonl")
    assert table(path, id="id", where="level > 2 or topic == 'mul'").names == ("q2", "q3", "q4")


def many(count):
    return [{"id": f"r{n}", "topic": "ab"[n % 4 == 0], "n": n} for n in range(count)]


def test_a_split_is_stable_when_rows_are_added():
    split = {"train": 0.5, "dev": 0.2, "test": 0.3, "seed": 1}
    parts = {
        part: set(table(many(500), id="id", split=split, use=part).names)
        for part in ("train", "dev", "test")
    }
    assert sum(map(len, parts.values())) == 500
    assert len(set.union(*parts.values())) == 500
    assert 200 < len(parts["train"]) < 300
    assert 60 < len(parts["dev"]) < 140
    grown = set(table(many(900), id="id", split=split, use="test").names)
    assert grown & {f"r{n}" for n in range(500)} == parts["test"]
    other = set(table(many(500), id="id", split={**split, "seed": 2}, use="test").names)
    assert other != parts["test"]


def test_copies_of_a_row_are_in_the_same_part():
    rows = [{"q": n % 50} for n in range(100)]
    split = {"train": 0.5, "test": 0.5}
    parts = [
        {row["q"] for row in payloads(rows, split=split, use=part)} for part in ("train", "test")
    ]
    assert not parts[0] & parts[1]


def test_a_sample_is_drawn_by_name_and_keeps_shares():
    found = table(many(400), id="id", sample={"n": 40, "stratify": "topic", "seed": 3})
    topics = Counter(found.parts(name).payload["topic"] for name in found.names)
    assert topics == {"a": 30, "b": 10}
    again = table(
        list(reversed(many(400))), id="id", sample={"n": 40, "stratify": "topic", "seed": 3}
    )
    assert set(again.names) == set(found.names)
    assert set(table(many(400), id="id", sample=40).names) != set(found.names)


# -- mistakes --


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": "idd"}, "problems.id: there is no column 'idd'; did you mean 'id'?"),
        ({"brief": "{quesion}"}, "problems.brief: there is no column 'quesion'; did you mean 'q"),
        ({"family": "kind"}, "problems.family: there is no column 'kind'"),
        ({"reference": "anser"}, "problems.reference: there is no column 'anser'; did you mean"),
        ({"hide": ("x",)}, "problems.hide[0]: there is no column 'x'"),
        (
            {"where": "levle > 2"},
            "problems.where: there is no column 'levle'; did you mean 'level'",
        ),
        ({"where": "level >"}, "problems.where: the expression"),
        ({"where": "level > 99"}, "none of the 4 rows fulfills `level > 99`; level is 1, 2, 3, 4"),
        ({"where": "topic > 1"}, "problems.where: line 1: the expression"),
        ({"sample": 5}, "problems.sample.n: asks for 5 of 4 rows"),
        ({"sample": {"n": 1, "stratify": "z"}}, "problems.sample.stratify: there is no column 'z'"),
        ({"id": "twice"}, "line 2: 'x' is also the name of line 1"),
        ({"id": "hollow"}, "line 1 has no name in 'hollow'"),
        ({"reference": "answer", "brief": "{answer}"}, "shows agents the column 'answer'"),
        (
            {"evaluator": {"use": "tests", "options": {"tests_column": "tsts"}}},
            "problems.evaluator: there is no column 'tsts'",
        ),
        ({"options": {"pattern": "x"}}, "problems.options.pattern: unknown option"),
        ({"split": {"a": 1e-9}, "use": "a"}, "none of the 4 rows is in the part 'a'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path, fields, message):
    rows = [{**row, "twice": "x", "hollow": None} for row in ROWS]
    assert message in mistakes(write(tmp_path / "t.jsonl", rows), **fields)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("t.jsonl", b'{"a": 1}\n{"a": \n[1]\n', "line 2 is not JSON"),
        ("t.jsonl", b'{"a": 1}\n{"a": \n[1]\n', "line 3 is not a mapping: [1]"),
        ("t.jsonl", b"", "has no rows"),
        ("t.csv", b"", "is empty"),
        ("t.csv", b"a,b\n", "has no rows"),
        ("t.csv", b"a,b\n1,2\n1,2,3\n", "line 3 has 3 cells; the header has 2"),
        ("t.csv", b'a,b\n1,"2\n3,4\n', "record of line 2"),
        ("t.csv", b"a,a\n1,2\n", "two columns are called 'a'"),
        ("t.csv", b"a\nx\n\xe9t\xe9\n", "line 3 is not UTF-8"),
        ("t.json", b"{}", "holds a mapping, not a list"),
        ("t.json", b"[1]", "row 1 is the number 1"),
        ("t.json", b"[", "is not JSON"),
        ("t.parquet", b"no", "is no Parquet file"),
        ("t.xlsx", b"", "can't tell the format"),
    ],
)
def test_files_that_can_not_be_read_are_explained(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    assert message in mistakes(tmp_path / name)


def test_a_missing_file_suggests_the_right_name_and_an_encoding_can_be_named(tmp_path):
    (tmp_path / "tasks.csv").write_bytes("a\nété\n".encode("latin-1"))
    assert "did you mean 'tasks.csv'?" in mistakes(tmp_path / "task.csv")
    assert payloads(tmp_path / "tasks.csv", encoding="latin-1") == [{"a": "été"}]
    assert "Python knows no 'latin-99'" in mistakes(tmp_path / "tasks.csv", encoding="latin-99")


def test_a_row_without_a_column_of_the_brief_is_named(tmp_path):
    write(tmp_path / "t.jsonl", [{"q": 1}, {"p": 2}])
    assert "line 2 has no q" in mistakes(tmp_path / "t.jsonl", brief="{q}")


def test_mistakes_stand_at_their_line_of_the_study_file(tmp_path):
    write(tmp_path / "tasks.jsonl")
    text = "study_id: s\ntitle: t\nproblems:\n  from: tasks.jsonl\n  brief: '{quesion}'\n"
    (tmp_path / "study.yaml").write_text(text)
    with pytest.raises(StudyError, match=r"study\.yaml:5: problems\.brief: there is no column"):
        read_study(tmp_path / "study.yaml")
    (tmp_path / "study.yaml").write_text(text.replace("brief", "breif"))
    with pytest.raises(StudyError, match=r"problems\.breif: unknown key; did you mean 'brief'"):
        read_study(tmp_path / "study.yaml")


# -- size --


def test_many_rows_cost_little_memory_and_are_planned_lazily(tmp_path):
    path = tmp_path / "t.jsonl"
    with path.open("w") as file:
        for number in range(10_000):
            file.write(json.dumps({"id": f"r{number}", "q": "x" * 1_000}) + "\n")
    study = Study(
        "s",
        "t",
        factors=(Factor("x", levels=(1, 2)),),
        agent_specs=("a",),
        problems=Dataset(str(path), id="id", brief="{q}"),
    )
    tracemalloc.start()
    try:
        plan = RunPlan(*designed(study))
        assert len(plan) == 20_000
        assert plan.spec(12_345).problem_id == "r2345"
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < path.stat().st_size / 3


def dataset_of(tmp_path, source, **fields):
    dataset = Dataset(str(source), **fields)
    return Study("d", "t", problems=dataset, agent_specs=("a",), output_dir=str(tmp_path / "out"))


def test_a_row_without_an_answer_is_refused_before_anything_is_paid(tmp_path):
    source = write(tmp_path / "t.jsonl", [{"q": "a", "answer": 1}, {"q": "b"}, {"q": "c"}])
    fields = {"brief": "{q}", "reference": "answer", "evaluator": "exact"}
    with pytest.raises(StudyError, match="no 'answer' in line 2 and 1 more"):
        run_study(dataset_of(tmp_path, source, **fields), agent_bindings={"a": solve})
    selected = dataset_of(tmp_path, source, where="answer is not None", **fields)
    assert len(run_study(selected, agent_bindings={"a": lambda task: {"answer": 1}})) == 1


def test_a_text_with_half_of_a_surrogate_pair_is_named(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"q": "fine \\ud83d\\ude00"}\n{"q": "half \\ud83d"}\n')
    message = mistakes(tmp_path / "t.jsonl", brief="{q}")
    assert "line 2: 'q' holds half of a surrogate pair" in message


def test_another_sample_of_the_same_file_is_not_called_a_changed_file(tmp_path):
    write(tmp_path / "t.jsonl", [{"q": str(number)} for number in range(9)])
    studies = [
        dataset_of(tmp_path, tmp_path / "t.jsonl", brief="{q}", where=f"int(q) < {limit}")
        for limit in (4, 6)
    ]
    run_study(studies[0], agent_bindings={"a": solve_silently})
    with pytest.raises(LedgerError) as caught:
        run_study(studies[1], agent_bindings={"a": solve_silently})
    assert "other rows of" in str(caught.value)
    assert "9 rows, 4 used -> 9 rows, 6 used" in str(caught.value)
    assert "content" not in str(caught.value)
