"""Single tables as files: written atomically, in several formats, without loss."""

import csv
import json
import os
import stat
import threading

import pytest

from fairtrial import Block, Constraint, Factor, Study, StudyError, build_design, plan_runs
from fairtrial.core import atomic_write
from fairtrial.core.table_files import check_format, write_table
from fairtrial.study.tables.canonical import (
    PLAN_COLUMNS,
    condition_columns,
    condition_rows,
    plan_rows,
)

ROWS = [
    {"a": 1, "b": 'x, "y"\nz', "c": None},
    {"a": 0.1, "b": "ü", "c": [1, {"k": True}]},
    {"a": True, "b": "", "c": "null"},
]


def test_csv_cells_are_text_and_none_is_an_empty_one(tmp_path):
    path = tmp_path / "t.csv"
    assert write_table(path, ["a", "b", "c", "d"], ROWS) == 3
    assert b"\r" not in path.read_bytes()
    with path.open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [
            ["a", "b", "c", "d"],
            ["1", 'x, "y"\nz', "", ""],
            ["0.1", "ü", '[1,{"k":true}]', ""],
            ["True", "", "null", ""],
        ]


@pytest.mark.parametrize("rows", [ROWS, []])
def test_json_and_json_lines_keep_types(tmp_path, rows):
    write_table(tmp_path / "t.json", ["a", "b", "c"], iter(rows))
    assert json.loads((tmp_path / "t.json").read_text("utf-8")) == rows
    write_table(tmp_path / "t.jsonl", ["a", "b", "c"], iter(rows))
    lines = (tmp_path / "t.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == rows


def test_conditions_and_runs_have_the_canonical_columns():
    study = Study(
        "s",
        "t",
        factors=(Factor("x", levels=(1, 2)), Factor("agent_id", levels=("a",))),
        blocks=(Block("site", ("n",)),),
        constraints=(Constraint("c", "not two", expression="x != 2"),),
        problem_ids=("p",),
    )
    conditions = build_design(study)
    rows = list(condition_rows(study, conditions))
    assert [list(row) for row in rows] == [condition_columns(study)] * 2
    assert condition_columns(study)[-3:] == ["x", "agent_id", "block_site"]
    fingerprint = '{"blocks":{"site":"n"},"factors":{"agent_id":"a","x":2}}'
    assert rows[1] == {
        "study_id": "s",
        "condition_id": conditions[1].condition_id,
        "admissible": False,
        "constraint_messages": '["c: not two"]',
        "assignment_meta_json": json.dumps({"fingerprint": fingerprint}, separators=(",", ":")),
        "x": 2,
        "agent_id": "a",
        "block_site": "n",
    }
    assert rows[0]["constraint_messages"] == "[]"
    (run,) = plan_runs(study, conditions)
    (row,) = plan_rows([run])
    assert tuple(row) == PLAN_COLUMNS
    assert row == {
        "study_id": "s",
        "condition_id": conditions[0].condition_id,
        "run_id": run.run_id,
        "problem_id": "p",
        "agent_id": "a",
        "seed": run.seed,
        "replicate": 1,
    }


def test_other_endings_and_folders_are_refused(tmp_path):
    with pytest.raises(StudyError, match=r"end the name in \.csv, \.json, \.jsonl"):
        check_format(tmp_path / "t.xlsx")
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(StudyError, match="is a directory; name a file in it"):
        check_format(tmp_path / "t.csv")


def test_rows_that_fail_half_way_leave_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("old")

    def rows():
        yield from ROWS
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        write_table(path, ["a"], rows())
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_an_error_with_the_files_name(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StudyError, match=r"t\.csv: can't be written: No space left on device"):
        write_table(tmp_path / "t.csv", ["a"], ROWS)
    assert list(tmp_path.iterdir()) == []


def test_a_new_files_mode_is_the_umasks_and_an_old_ones_stays(tmp_path):
    path = tmp_path / "new" / "t.csv"
    umask = os.umask(0o027)
    try:
        write_table(path, ["a"], ROWS)
    finally:
        os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o600)
    write_table(path, ["a"], ROWS)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link.csv"
    link.symlink_to("real/t.csv")  # to a file that is yet to come
    write_table(link, ["a"], ROWS)
    assert link.is_symlink()
    assert (tmp_path / "real" / "t.csv").read_text().startswith("a\n1\n")


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    with atomic_write(pipe) as file:
        file.write("through")
    reader.join(timeout=60)
    assert read == ["through"]
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def test_long_names_leave_room_for_the_temporary_one(tmp_path):
    path = tmp_path / f"{'表' * 83}.csv"
    write_table(path, ["a"], ROWS)
    assert path.is_file()


def test_a_name_that_no_file_can_have_is_refused(tmp_path):
    with pytest.raises(StudyError, match="is no file name"):
        write_table(tmp_path / "nul\0.csv", ["a"], [])


NASTY = ["\r", "a\rb", "\r\n", "\n", '"', ",", "=1+1", " x ", "\u2028", "\x00", "é", "", "'"]


@pytest.mark.parametrize("text", NASTY)
def test_special_characters_in_names_and_values_are_read_back_from_csv(tmp_path, text):
    path = tmp_path / "t.csv"
    write_table(path, ["a", f"name{text}"], [{"a": text, f"name{text}": 1}, {"a": 2}])
    with path.open(encoding="utf-8", newline="") as file:
        assert list(csv.reader(file)) == [["a", f"name{text}"], [text, "1"], ["2", ""]]


@pytest.mark.parametrize("name", ["t.csv", "t.json", "t.jsonl"])
def test_half_a_surrogate_pair_is_refused_and_the_old_file_stays(tmp_path, name):
    (tmp_path / name).write_text("old")
    with pytest.raises(StudyError, match="half of a surrogate pair"):
        write_table(tmp_path / name, ["a"], [{"a": "\ud800"}])
    assert (tmp_path / name).read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == [name]
