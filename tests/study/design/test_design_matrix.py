"""Custom matrices: values of cells, ids, and messages about invalid files."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from fairtrial.core import StudyError
from fairtrial.study import Block, Constraint, DesignSpec, Factor, Level, Study, build_design
from fairtrial.study.design import design_table, matrix
from fairtrial.study.design.matrix_cells import MatrixColumn
from fairtrial.study.model.identity import fingerprint, hash_condition

FACTORS = (
    Factor(name="dose", levels=(Level(name="half", value=0.5), Level(name="full", value=1))),
    Factor(name="mode", levels=("fast", "slow")),
)


def make_study(folder: Path | None, file: str | None = "m.csv", **fields: Any) -> Study:
    spec = fields.pop("design_spec", DesignSpec(kind="custom_matrix", matrix_path=file))
    fields.setdefault("factors", FACTORS)
    return Study(study_id="m", title="m", design_spec=spec, folder=folder, **fields)


def write(folder: Path, text: str | bytes, name: str = "m.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def values(study: Study) -> list[dict[str, Any]]:
    return [dict(condition.factor_assignments) for condition in build_design(study)]


def messages(study: Study) -> list[str]:
    with pytest.raises(StudyError) as caught:
        build_design(study)
    assert {m.path for m in caught.value.mistakes} == {("design_spec", "matrix_path")}
    return [mistake.message for mistake in caught.value.mistakes]


# --- what cells stand for


def test_rows_stand_in_file_order_with_typed_values(tmp_path: Path) -> None:
    write(tmp_path, "mode,dose\nslow,1\nfast,0.5\nslow,1\n")
    result = values(make_study(tmp_path))
    assert result == [
        {"dose": 1, "mode": "slow"},
        {"dose": 0.5, "mode": "fast"},
        {"dose": 1, "mode": "slow"},
    ]
    assert [type(row["dose"]) for row in result] == [int, float, int]


def test_ids_are_of_the_text_and_the_row_number(tmp_path: Path) -> None:
    write(tmp_path, "dose,mode,day\n0.50, fast,1\n0.5,fast,1\n0.5,fast,1\n")
    study = make_study(tmp_path, blocks=(Block(name="day", levels=(1, 2)),))
    conditions = build_design(study)
    assert [c.condition_id for c in conditions] == [
        hash_condition(
            fingerprint({"dose": dose, "mode": mode}, {"day": "1"}),
            {"design_kind": "custom_matrix", "matrix_row": index},
        )
        for index, (dose, mode) in enumerate([("0.50", " fast"), ("0.5", "fast"), ("0.5", "fast")])
    ]
    assert {c.factor_assignments["dose"] for c in conditions} == {0.5}
    assert [c.block_assignments for c in conditions] == [{"day": 1}] * 3
    assert [c.metadata["matrix_row"] for c in conditions] == [0, 1, 2]


def test_constraints_see_numbers(tmp_path: Path) -> None:
    write(tmp_path, "dose,mode\n0.5,fast\nfull,fast\n")
    rule = Constraint(constraint_id="weak", expression="dose < 1")
    conditions = build_design(make_study(tmp_path, constraints=(rule,)))
    assert [c.admissible for c in conditions] == [True, False]


def read_cell(factor: Factor, cell: str) -> Any:
    return MatrixColumn.from_factor(factor).read_text(cell)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("0.5", 0.5),
        ("half", 0.5),
        (" half ", 0.5),
        ("1", 1),
        ("1.0", 1),
        ("1e0", 1),
        ("full", 1),
        ("TRUE", True),
        ("true", True),
        (" False ", False),
        ("null", None),
        ("None", None),
        (" padded ", " padded "),
        ("", "standard"),
        ("  ", "standard"),
        ("standard", "standard"),
    ],
)
def test_a_cell_is_the_level_whose_value_or_name_it_spells(cell: str, value: Any) -> None:
    levels = (
        *FACTORS[0].levels,
        *(Level(name=name, value=v) for name, v in (("on", True), ("off", False))),
        Level(name="nothing", value=None),
        Level(name="spaced", value=" padded "),
    )
    result = read_cell(Factor(name="x", levels=levels, default="standard"), cell)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("dtype", "cell", "value"),
    [
        (None, "12", "12"),
        (None, " a ", " a "),
        ("str", "12", "12"),
        ("int", " 12", 12),
        ("float", "12", 12.0),
        ("float", "1e3", 1000.0),
        ("bool", "True", True),
        ("bool", "0", False),
        ("int", "", 7),
    ],
)
def test_without_levels_the_dtype_decides(dtype: str | None, cell: str, value: Any) -> None:
    result = read_cell(Factor(name="x", dtype=dtype, default=7), cell)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("dtype", "cell"),
    [("int", "1.5"), ("int", "x"), ("float", "nan"), ("float", "1_0"), ("bool", "yes")],
)
def test_what_the_dtype_can_not_read_is_an_error(dtype: str, cell: str) -> None:
    with pytest.raises(ValueError, match=f"expected .*, got the text '{cell}'"):
        read_cell(Factor(name="x", dtype=dtype, default=7), cell)


def test_a_text_that_fits_two_levels_needs_a_name() -> None:
    levels = (Level(name="number", value=1), Level(name="text", value="1"))
    factor = Factor(name="x", levels=levels)
    with pytest.raises(ValueError, match="'1' fits two levels; write the name of one"):
        read_cell(factor, "1")
    assert read_cell(factor, "text") == "1"
    assert read_cell(factor, "number") == 1


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1),
)


@given(st.lists(scalars, min_size=1, max_size=6, unique_by=lambda v: str(v).strip().lower()))
def test_every_level_is_read_back_from_its_text(levels: list[Any]) -> None:
    named = tuple(Level(name=f"level {i}", value=value) for i, value in enumerate(levels))
    column = MatrixColumn.from_factor(Factor(name="x", levels=named))
    for value in levels:
        # Two texts may spell one number ("1.0", "01"): those may be refused, never mistaken.
        try:
            result = column.read_text(str(value))
        except ValueError as error:
            assert "fits two levels" in str(error)  # noqa: PT017
        else:
            assert result == value
            assert type(result) is type(value)


@given(
    st.lists(
        st.tuples(
            st.text(st.characters(codec="utf-8", exclude_characters="\0")), st.text('ab,"\n')
        ),
        min_size=1,
        max_size=8,
    )
)
def test_whatever_text_a_csv_holds_is_what_the_ids_are_of(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("csv")
    rows = [(f"x{one}", two) for one, two in rows]  # no row is empty
    file = io.StringIO(newline="")
    csv.writer(file).writerows([("one", "two"), *rows])
    write(folder, file.getvalue())
    factors = tuple(Factor(name=name, default="-") for name in ("one", "two"))
    conditions = build_design(make_study(folder, factors=factors))
    assert [json.loads(c.metadata["fingerprint"])["factors"] for c in conditions] == [
        {"one": one, "two": two} for one, two in rows
    ]


# --- JSON


def test_json_values_are_taken_and_hashed_as_they_are(tmp_path: Path) -> None:
    rows = [{"dose": 1.0, "mode": "fast"}, {"mode": "slow", "dose": 0.5, "why": "check"}]
    write(tmp_path, json.dumps(rows), "m.json")
    study = make_study(tmp_path, "m.json")
    conditions = build_design(study)
    assert [c.condition_id for c in conditions] == [
        hash_condition(
            fingerprint({"dose": row["dose"], "mode": row["mode"]}, {}),
            {"design_kind": "custom_matrix", "matrix_row": index},
        )
        for index, row in enumerate(rows)
    ]
    assert type(conditions[0].factor_assignments["dose"]) is float
    assert design_table(study).facts == {"file": "m.json", "ignored_columns": ["why"]}


def test_all_that_is_wrong_with_a_json_file_is_reported_at_once(tmp_path: Path) -> None:
    text = (
        '[{"dose": 2, "mode": "fast", "n": 1}, {"dose": 1, "n": 1.5}, 7,'
        ' {"dose": true, "mode": "fast", "n": NaN}, {"dose": 1, "mode": null, "n": true}]'
    )
    write(tmp_path, text, "m.json")
    study = make_study(
        tmp_path, "m.json", factors=(*FACTORS, Factor(name="n", dtype="int", default=0))
    )
    assert messages(study) == [
        "m.json: row 3: expected an object, got the number 7",
        "m.json: row 1, column 'dose': the number 2 is not a level; there are half, full",
        "m.json: row 2, column 'mode': is missing",
        "m.json: row 2, column 'n': expected a whole number, got the number 1.5",
        "m.json: row 4, column 'dose': true is not a level; there are half, full",
        "m.json: row 4, column 'n': nan is not a finite number",
        "m.json: row 5, column 'n': expected a whole number, got true",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "this is not JSON"),
        ("[1,", "this is not JSON"),
        ("[" * 100_000, "this is not JSON"),
        ("[" + "1" * 5000 + "]", "this is not JSON"),
        ('{"dose": 1}', "expected a list of rows, got a mapping"),
        ("[]", "there are no rows"),
        ('[{"dose": 1, "dose": 2, "mode": "fast"}]', "the key 'dose' stands twice in a row"),
    ],
)
def test_a_json_file_that_holds_no_rows_is_refused(tmp_path: Path, text: str, message: str) -> None:
    write(tmp_path, text, "m.json")
    assert message in messages(make_study(tmp_path, "m.json"))[0]


# --- bad CSV files


def test_all_that_is_wrong_with_a_csv_file_is_reported_at_once(tmp_path: Path) -> None:
    write(
        tmp_path,
        "Dose,mode,n,mode,day\n"
        "1,fast,1,fast,mon\n"
        "\n"
        '"two\nlines",fast,1,warp,\n'
        "1,fast,x\n"
        ", ,,,\n"
        "1,fast,x,fast,tue\n",
    )
    study = make_study(
        tmp_path,
        factors=(*FACTORS, Factor(name="n", dtype="int", default=0)),
        blocks=(Block(name="day", levels=("mon", "tue")),),
    )
    assert messages(study) == [
        "m.csv: line 6: 3 cells, but 5 columns",
        "m.csv: line 1: two columns are named 'mode'",
        "m.csv: there is no column for the factor 'dose'; did you mean 'Dose'?",
        "m.csv: line 4, column 'mode': the text 'warp' is not a level; there are fast, slow",
        "m.csv: line 4, column 'day': the text '' is not a level; there are mon, tue",
        "m.csv: line 7: the row is empty; leave it out",
        "m.csv: line 8, column 'n': expected a whole number, got the text 'x'",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "m.csv: the file is empty; its first line must name the columns"),
        (b"\n\n", "m.csv: the file is empty; its first line must name the columns"),
        (b"dose,mode\n", "m.csv: there are no rows"),
        (b"dose,mode\n1,fast\n\xff,slow\n", "m.csv line 3 is not UTF-8 text"),
        (b'dose,mode\n1,"fast\n', "m.csv: line 2: this is not CSV: unexpected end of data"),
        (b"mode\nfast\n", "m.csv: there is no column for the factor 'dose'; add it"),
    ],
)
def test_a_csv_file_that_holds_no_rows_is_refused(
    tmp_path: Path, text: bytes, message: str
) -> None:
    write(tmp_path, text)
    assert message in messages(make_study(tmp_path))


def test_semicolons_are_recognized(tmp_path: Path) -> None:
    write(tmp_path, "dose;mode\n1;fast\n")
    assert messages(make_study(tmp_path))[0] == (
        "m.csv: there is no column for the factor 'dose'; "
        "separate the columns by commas, not by semicolons"
    )


def test_a_spreadsheets_marks_and_empty_columns_do_no_harm(tmp_path: Path) -> None:
    write(tmp_path, b"\xef\xbb\xbfdose, mode ,note,,\r\n1,fast,a,,\r\n0.5,slow,b,,\r\n")
    study = make_study(tmp_path)
    assert [row["mode"] for row in values(study)] == ["fast", "slow"]
    assert design_table(study).facts["ignored_columns"] == ["note"]


def test_very_many_mistakes_are_counted_not_listed(tmp_path: Path) -> None:
    write(tmp_path, "dose,mode\n" + "9,fast\n" * 2_000)
    result = messages(make_study(tmp_path))
    assert len(result) == matrix.MAX_MISTAKES + 1
    assert result[-1] == "m.csv: and 1,950 more mistakes"


def test_a_factor_of_many_levels_shows_some(tmp_path: Path) -> None:
    write(tmp_path, "dose\n99\n")
    study = make_study(tmp_path, factors=(Factor(name="dose", levels=tuple(range(50))),))
    assert messages(study)[0].endswith("there are 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ...")


# --- finding and reading the file


def test_the_studys_folder_comes_before_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, here = tmp_path / "study", tmp_path / "here"
    for place, dose in ((folder, "1"), (here, "0.5")):
        place.mkdir()
        write(place, f"dose,mode\n{dose},fast\n")
    monkeypatch.chdir(here)
    assert values(make_study(folder))[0]["dose"] == 1
    assert values(make_study(None))[0]["dose"] == 0.5
    (folder / "m.csv").unlink()
    assert values(make_study(folder))[0]["dose"] == 0.5
    absolute = make_study(folder, str(here / "m.csv"))
    assert values(absolute)[0]["dose"] == 0.5


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (None, "custom_matrix needs a file of rows; name a .csv or .json file here"),
        ("rows.xlsx", "'rows.xlsx' is neither a .csv nor a .json file"),
        ("sub/row.csv", "did you mean 'rows.csv'?"),
    ],
)
def test_a_file_that_is_not_there_is_reported(
    tmp_path: Path, path: str | None, message: str
) -> None:
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub", "", "rows.csv")
    with pytest.raises(StudyError) as caught:
        build_design(make_study(tmp_path, path))
    assert str(caught.value).startswith("design_spec.matrix_path: ")
    assert message in str(caught.value)


def test_a_file_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "dose,mode\n1,fast\n")
    monkeypatch.setattr(matrix, "MAX_BYTES", 10)
    assert messages(make_study(tmp_path)) == ["m.csv has 17 bytes; a matrix may have 10"]


def test_more_rows_than_conditions_allowed_are_refused_unread(tmp_path: Path) -> None:
    write(tmp_path, "dose,mode\n" + "1,fast\n" * 40)
    spec = DesignSpec(kind="custom_matrix", matrix_path="m.csv", max_conditions=3)
    with pytest.raises(StudyError, match=r"4 conditions, more than max_conditions \(3\)"):
        build_design(make_study(tmp_path, design_spec=spec))


@pytest.mark.parametrize(
    ("name", "text"),
    [("m.csv", "dose,mode\n" + "1\n" * 40), ("m.json", json.dumps([1] * 40))],
)
def test_a_file_that_is_all_wrong_is_not_read_to_its_end(
    tmp_path: Path, name: str, text: str
) -> None:
    write(tmp_path, text, name)
    spec = DesignSpec(kind="custom_matrix", matrix_path=name, max_conditions=3)
    assert len(messages(make_study(tmp_path, design_spec=spec))) == 4


def test_randomize_and_counterbalance_leave_the_files_order_alone(tmp_path: Path) -> None:
    write(tmp_path, "dose,mode\n1,fast\n0.5,slow\n1,slow\n0.5,fast\n")
    spec = DesignSpec(
        kind="custom_matrix", matrix_path="m.csv", randomize=True, counterbalance=True
    )
    assert build_design(make_study(tmp_path, design_spec=spec)) == build_design(
        make_study(tmp_path)
    )


def test_a_path_among_the_options_works_as_in_older_files(tmp_path: Path) -> None:
    write(tmp_path, "dose,mode\n1,fast\n")
    spec = DesignSpec(kind="custom_matrix", matrix_path="m.csv", options={"matrix_path": "m.csv"})
    assert len(build_design(make_study(tmp_path, design_spec=spec))) == 1


@pytest.mark.parametrize("name", ["x" * 5_000 + ".csv", "nul\0.csv", "folder.csv", "pipe.csv"])
def test_a_name_that_is_no_file_is_refused_and_not_suggested(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(StudyError, match="there is no file") as caught:
        build_design(make_study(tmp_path, name))
    assert caught.value.mistakes[0].hint == ""


@pytest.mark.parametrize(
    ("cell", "says"),
    [
        ('"\\ud800"', "half of a surrogate pair"),
        ("[" * 900 + "]" * 900, "nested more than 100 deep"),
        ("[" * 110 + "]" * 110, "nested more than 100 deep"),
        ("9" * 5_000, "this is not JSON"),
        ("1e999", "not a finite number"),
    ],
)
def test_a_json_cell_that_could_not_be_written_down_is_refused(
    tmp_path: Path, cell: str, says: str
) -> None:
    write(tmp_path, f'[{{"x": {cell}}}]', "m.json")
    study = make_study(tmp_path, "m.json", factors=(Factor("x", default="d"),))
    assert any(says in message for message in messages(study))
