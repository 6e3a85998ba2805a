"""Reading of study files: values, refusals with their messages, warnings."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml

from fairtrial.core import Mistake, StudyError
from fairtrial.core.documents import StudyWarning
from fairtrial.core.documents.nodes import DEPTH_LIMIT
from fairtrial.study import Study, load_study
from fairtrial.study.files import LoadedStudy, read_study

STUDIES = Path(__file__).parents[1] / "data" / "studies"
HEAD = "study_id: s\ntitle: t\n"
FACTORS = HEAD + "factors:\n- name: f\n  levels: "  # levels stand on line 5


@pytest.fixture(params=["c", "python"])
def both_parsers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with PyYAML's parser in C, if there is one, and with the one in Python."""
    if request.param == "python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)


def save(folder: Path, content: str | bytes, name: str = "study.yaml") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def mistakes_in(folder: Path, content: str | bytes, name: str = "study.yaml") -> list[Mistake]:
    """Return the mistakes of `read_study` for a file; `load_study` must refuse it too."""
    path = save(folder, content, name)
    with pytest.raises(StudyError) as caught:
        load_study(path)
    assert caught.value.source == str(path)
    with pytest.raises(StudyError) as caught:
        read_study(path)
    return list(caught.value.mistakes)


def the_mistake(folder: Path, content: str | bytes, name: str = "study.yaml") -> Mistake:
    (mistake,) = mistakes_in(folder, content, name)
    return mistake


# --- what is read -------------------------------------------------------------------------------


@pytest.mark.usefixtures("both_parsers")
@pytest.mark.parametrize("path", sorted(STUDIES.iterdir()), ids=lambda path: path.name)
def test_a_good_file_is_read_without_mistake_or_warning(path: Path) -> None:
    loaded = read_study(path)
    assert loaded.warnings == ()
    assert loaded.source == str(path)
    assert load_study(path) == loaded.study


def test_every_field_of_a_file_reaches_the_study() -> None:
    study = load_study(STUDIES / "full.yaml")
    written = yaml.safe_load((STUDIES / "full.yaml").read_text())
    dumped = study.to_dict()
    assert dumped.keys() == written.keys()

    def subset(small: Any, large: Any) -> bool:
        if isinstance(small, dict):
            return all(key in large and subset(small[key], large[key]) for key in small)
        if isinstance(small, list):
            return len(small) == len(large) and all(map(subset, small, large))
        # A bare level stands for one of that name and value.
        return bool(small == large) or (isinstance(large, dict) and large["value"] == small)

    assert subset(written, dumped)


def test_merge_keys_and_aliases_are_followed() -> None:
    a, b, c = load_study(STUDIES / "merged.yaml").factors
    assert (b.name, b.description, b.levels) == ("b", "shared", a.levels)
    # Own keys come before merged ones, earlier merged mappings before later ones.
    assert (c.name, c.dtype, c.description) == ("c", "str", "shared")
    assert c.iter_values() == ("mid",)


def test_json_values_are_those_of_json() -> None:
    study = load_study(STUDIES / "plain.json")
    values = study.factors[0].iter_values()
    assert values == (1000.0, 10, "1e3", "no", True)
    assert [type(value) for value in values] == [float, int, str, str, bool]
    assert study.title == "JSON 😀"


def test_the_ending_names_the_format_and_an_argument_overrules_it(tmp_path: Path) -> None:
    for name in ("a.yml", "b.YAML"):
        assert load_study(save(tmp_path, HEAD, name)).title == "t"
    odd = save(tmp_path, HEAD, "c.txt")
    assert load_study(odd, "yaml").title == "t"
    assert read_study(odd, "yaml").study.title == "t"
    with pytest.raises(StudyError, match="not valid JSON"):
        load_study(odd, "json")
    with pytest.raises(StudyError, match="expected yaml or json as the format, got 'toml'"):
        load_study(odd, "toml")


def test_the_methods_of_a_study_read_and_write_files(tmp_path: Path) -> None:
    study = load_study(STUDIES / "full.yaml")
    assert Study.from_yaml(study.to_yaml(tmp_path / "a.txt")) == study
    assert Study.from_json(study.to_json(tmp_path / "b.txt")) == study


def test_a_study_knows_the_folder_of_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, HEAD + "factors: [{name: f, levels: [1]}]")
    monkeypatch.chdir(tmp_path)
    assert load_study("study.yaml").folder == tmp_path
    assert read_study("study.yaml").study.folder == tmp_path
    assert load_study("study.yaml") == Study.from_dict(load_study("study.yaml").to_dict())


def test_references_are_looked_up_next_to_the_file(tmp_path: Path) -> None:
    save(tmp_path, "def keep(factors, blocks):\n    return True\n", "rules_next_to_study.py")
    rule = "constraints: [{constraint_id: c, callable_ref: 'rules_next_to_study:keep'}]"
    study = read_study(save(tmp_path, f"{FACTORS}[1]\n{rule}")).study
    assert study.constraints[0].callable_ref == "rules_next_to_study:keep"


def test_a_byte_order_mark_and_windows_lines_are_no_matter(tmp_path: Path) -> None:
    text = b"\xef\xbb\xbf" + HEAD.replace("\n", "\r\n").encode()
    assert load_study(save(tmp_path, text)).title == "t"
    assert load_study(save(tmp_path, b'\xef\xbb\xbf{"study_id": "s", "title": "t"}', "s.json"))


# --- the report ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("both_parsers")
def test_one_report_holds_all_mistakes_in_the_order_of_lines(tmp_path: Path) -> None:
    # The file, the line, the field and what was expected, for all mistakes at once.
    path = save(
        tmp_path,
        "study_id: s\n"
        "titel: t\n"  # 2: unknown key; title is missing (1)
        "factors:\n"
        "  - name: f\n"
        "    kind: manipulatd\n"  # 5: enum
        "    levels: [1, 2024-01-01]\n"  # 6: date
        "    levels: [3]\n"  # 7: duplicate
        "hypotheses:\n"
        "  - hypothesis_id: h\n"
        "    label: l\n"
        "    statement: s\n"
        "    independent_vars: [g]\n"  # 12: points at nothing
        "    minimum_effect_of_interest: large\n"  # 13: type
        "run_budget: {replicates: 0}\n",  # 14: bound
    )
    expected = [
        "1: 'title' is missing",
        "2: titel: unknown key; did you mean 'title'?",
        "5: factors[0].kind: expected one of manipulated, measured, blocked, nuisance; "
        "got the text 'manipulatd'; did you mean 'manipulated'?",
        "6: factors[0].levels[1]: `2024-01-01` is read as a date, which a study can't hold; "
        "put it in quotes",
        "7: factors[0].levels: the key stands here twice, first on line 6; remove one of them",
        "12: hypotheses[0].independent_vars[0]: hypothesis 'h' refers to an unknown factor 'g'; "
        "known: f, agent_id, problem_id",
        "13: hypotheses[0].minimum_effect_of_interest: expected a number, got the text 'large'",
        "14: run_budget.replicates: must be 1 or more, got 0",
    ]
    for read in (load_study, read_study):
        with pytest.raises(StudyError) as caught:
            read(path)
        assert str(caught.value).splitlines() == [f"{path}:{line}" for line in expected]


def test_mistakes_across_records_stop_read_study_but_not_load_study(tmp_path: Path) -> None:
    path = save(tmp_path, f"{FACTORS}[1]\n- name: f\n  levels: [2]\n")
    assert len(load_study(path).factors) == 2
    with pytest.raises(StudyError, match=r"study\.yaml:6: factors\[1\]\.name: duplicate: 'f'"):
        read_study(path)


def test_a_plan_that_does_not_fit_is_reported_with_mistakes_that_leave_it_alone(
    tmp_path: Path,
) -> None:
    text = "study_id: s\nfactors: [{name: f, levels: [1, 2]}]\nrun_budget: {max_runs: 1}\n"
    mistakes = mistakes_in(tmp_path, text)
    assert [(m.line, m.path) for m in mistakes] == [(1, ()), (3, ("run_budget", "max_runs"))]
    mistakes = mistakes_in(tmp_path, text + "blocks: [{name: b}]\n")
    assert [(m.line, m.message) for m in mistakes] == [
        (1, "'title' is missing"),
        (4, "'levels' is missing"),
    ]


def test_a_value_that_cannot_be_read_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def second_thoughts(study: Study, known: list[Mistake]) -> list[Mistake]:
        assert known
        return [Mistake(("tags", 0), "too short"), Mistake(("notes",), "too long")]

    monkeypatch.setattr("fairtrial.study.files.reading.find_study_mistakes", second_thoughts)
    mistakes = mistakes_in(tmp_path, HEAD + "tags: [5]\nnotes: x\nrun_budget: {timeout_s: .nan}\n")
    assert [(m.line, m.message.split(",")[0]) for m in mistakes] == [
        (3, "expected text"),
        (4, "too long"),
        (5, "`.nan` is not a finite number"),
    ]


def test_the_same_mistake_found_twice_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "fairtrial.study.files.reading.find_study_mistakes",
        lambda _, plan: [Mistake(("notes",), "no")] * 2,
    )
    path = save(tmp_path, HEAD + "notes: x\n")
    with pytest.raises(StudyError) as caught:
        read_study(path)
    assert caught.value.mistakes == (Mistake(("notes",), "no", line=3),)


def test_json_mistakes_have_lines_too(tmp_path: Path) -> None:
    mistakes = mistakes_in(
        tmp_path,
        '{"study_id": "s",\n'
        ' "title": "a [ b \\" {",\n'
        ' "factors": [\n'
        '   {"name": "f", "levels": [1, NaN,\n'
        "     -Infinity]},\n"
        '   {"nam": "g",\n'
        '    "levels": ["\\ud800"]}],\n'
        ' "tags": [1e3],\n'
        ' "notes": "x",\n'
        ' "notes": "y"\n'
        "}",
        "study.json",
    )
    assert [(m.line, m.path, m.message) for m in mistakes] == [
        (4, ("factors", 0, "levels", 1), "`NaN` is not a finite number"),
        (5, ("factors", 0, "levels", 2), "`-Infinity` is not a finite number"),
        (6, ("factors", 1, "nam"), "unknown key"),
        (6, ("factors", 1), "'name' is missing"),
        (
            7,
            ("factors", 1, "levels", 0),
            "holds half of a surrogate pair, which is no character",
        ),
        (8, ("tags", 0), "expected text, got the number 1000.0"),
        (10, ("notes",), "the key stands here twice, first on line 9"),
    ]


def test_a_mistake_is_shown_at_its_key_or_at_its_item(tmp_path: Path) -> None:
    mistakes = mistakes_in(tmp_path, HEAD + "nots:\n\n  x\ntags:\n  - a\n\n  -\n    5\n")
    assert [(m.line, m.path) for m in mistakes] == [(3, ("nots",)), (10, ("tags", 1))]


def test_a_mistake_in_a_merged_mapping_is_shown_where_it_stands(tmp_path: Path) -> None:
    text = (
        HEAD + "factors:\n- &a\n  name: a\n  levels: [1]\n  dtyp: int\n- name: b\n  <<: *a\n"
        "  <<: 5\n"
    )
    mistakes = mistakes_in(tmp_path, text)
    assert [(m.line, m.path, m.message) for m in mistakes] == [
        (7, ("factors", 0, "dtyp"), "unknown key"),
        (7, ("factors", 1, "dtyp"), "unknown key"),
        (10, ("factors", 1, "<<"), "expected a mapping to merge, or a list of them"),
    ]


# --- YAML's own mistakes ------------------------------------------------------------------------


@pytest.mark.usefixtures("both_parsers")
@pytest.mark.parametrize(
    ("level", "message", "hint"),
    [
        ("2024-01-01", "`2024-01-01` is read as a date", "put it in quotes"),
        ("2024-01-01 10:00:00", "is read as a date", "put it in quotes"),
        (".nan", "`.nan` is not a finite number", "put it in quotes"),
        ("-.INF", "`-.INF` is not a finite number", "put it in quotes"),
        ("1.0e+999", "`1.0e+999` is not a finite number", "put it in quotes"),
        ("9" * 5000, "9...` can't be read as a number", "put it in quotes"),
        ("0x" + "f" * 4200, "f...` can't be read as a number", "put it in quotes"),
        ("1" + ":1" * 5000, ":1...` can't be read as a number", "put it in quotes"),
        ("0b_", "`0b_` can't be read as a number", "put it in quotes"),
        ("!!int x", "`x` can't be read as a number", "put it in quotes"),
        ("!!bool x", "`x` can't be read as true or false", "put it in quotes"),
        ("!mine x", "the tag !mine is not allowed", "remove the tag"),
        ("!mine {a: 1}", "the tag !mine is not allowed", "remove the tag"),
        ("!mine [a]", "the tag !mine is not allowed", "remove the tag"),
        ("!<int> 5", "the tag int is not allowed", "remove the tag"),
        ("!!binary aGk=", "the tag !!binary is not allowed", "put the value in quotes"),
        ("!!set {a, b}", "the tag !!set is not allowed", "remove the tag"),
        ("!!omap [a: 1]", "the tag !!omap is not allowed", "remove the tag"),
        ("!!map [a]", "the tag !!map is not allowed", "remove the tag"),
        ("!!python/name:os.system ''", "the tag !!python/name:os.system is not", "remove the tag"),
        (
            "!!python/object/apply:os.system [id]",
            "the tag !!python/object/apply:os.system is not allowed",
            "remove the tag",
        ),
    ],
    ids=lambda text: text[:30],
)
def test_values_that_a_study_cannot_hold_are_reported_with_their_line(
    tmp_path: Path, level: str, message: str, hint: str
) -> None:
    text = f"{HEAD}provenance_metadata:\n  a:\n  - x\n  - {level}\n"
    mistake = the_mistake(tmp_path, text)
    assert mistake.path == ("provenance_metadata", "a", 1)
    assert mistake.line == 6
    assert message in mistake.message
    assert hint in mistake.hint


@pytest.mark.usefixtures("both_parsers")
def test_explicit_core_tags_and_odd_plain_texts_are_read(tmp_path: Path) -> None:
    odd = "[!!str 5, !!int '7', !!float 1, ! 5, =, <<, !!null '', !!seq [], !!map {}, *x]"
    text = f"{HEAD}provenance_metadata: {{n: &x 3, odd: {odd}}}"
    study = load_study(save(tmp_path, text))
    assert study.provenance_metadata["odd"] == ["5", 7, 1.0, 5, "=", "<<", None, [], {}, 3]


@pytest.mark.usefixtures("both_parsers")
@pytest.mark.parametrize(
    ("key", "path", "message"),
    [
        ("1", ("1",), "expected text as a key; `1` is read as the number 1"),
        ("on", ("on",), "expected text as a key; `on` is read as true"),
        ("~", ("~",), "expected text as a key; `~` is read as nothing (null)"),
        ("2024-01-01", ("2024-01-01",), "`2024-01-01` is read as a date"),
        ("? [a]\n  ", (), "expected text as a key, got a list"),
        ("? {a: b}\n  ", (), "expected text as a key, got a mapping"),
    ],
)
def test_keys_must_be_text(tmp_path: Path, key: str, path: tuple[str, ...], message: str) -> None:
    mistake = the_mistake(tmp_path, f"{HEAD}provenance_metadata:\n  a: 1\n  {key}: 2\n")
    assert mistake.path == ("provenance_metadata", *path)
    assert mistake.line == 5
    assert message in mistake.message
    assert "quotes" in mistake.hint


@pytest.mark.usefixtures("both_parsers")
@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: b: c\n", 1, ["column 5", "mapping values are not allowed", "': ' needs quotes"]),
        ("a:\n\t- b\n", 2, ["column 1", "cannot start any token", "spaces, not tabs"]),
        ("a: @me\n", 1, ["column 4", "cannot start any token", "begins with @ needs quotes"]),
        ("a: [1,\n  2\n", 3, ["flow sequence that begins on line 1"]),
        ("a: 'b\n", 2, ["quoted scalar that begins on line 1", "is not closed"]),
        ("a:\n  - b\n - c\n", 3, ["column 2", "check the indentation"]),
        ("a: 1\n---\nb: 2\n", 2, ["a second document begins here", "one file holds one study"]),
        ("a: *b\n", 1, ["the alias *b has no anchor &b"]),
        ("a: &b\n- *b\n", 2, ["the alias *b stands inside of what it stands for"]),
        ("a: 1\nb: x\x07\n", 2, ["column 5", "U+0007", "YAML does not allow", '"\\u0007"']),
        ("a: 1\nb:" + " [" * 5000, 2, ["nested more than 100 deep"]),
        ("a:\n  " + "- " * 5000, 2, ["nested more than 100 deep"]),
        ("just text", 1, ["expected a mapping (study_id, title, ...), got the text 'just text'"]),
        ("- a\n- b\n", 1, ["expected a mapping", "got a list of 2"]),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_file_that_is_no_study_gets_one_clear_line(
    tmp_path: Path, text: str, line: int, words: list[str]
) -> None:
    mistake = the_mistake(tmp_path, text)
    # The parsers differ in where they notice the end of a file.
    assert mistake.line in ({line, line - 1} if text.endswith(("2\n", "'b\n")) else {line})
    for word in words:
        assert word in str(mistake)
    assert "\n" not in str(mistake)


def test_a_bomb_of_aliases_is_refused_before_it_goes_off(tmp_path: Path) -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 90)
    )
    mistake = the_mistake(tmp_path, bomb)
    assert mistake.line == 7
    assert mistake.message == (
        "holds 3,111,111 values once aliases are written out; 1,000,000 are allowed"
    )
    merged = "a0: &a0 {x: [1, 2, 3]}\n" + "".join(
        f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 100)}]}}\n" for i in range(1, 50)
    )
    assert "values once aliases are written out" in the_mistake(tmp_path, merged).message
    # One step may multiply by as much as the file has room for.
    wide = f"a: &a [{'x,' * 10_000}]\nb: &b [{'*a,' * 10_000}]"
    assert "holds 100,010,001 values" in the_mistake(tmp_path, wide).message


def test_a_chain_of_aliases_is_as_deep_as_it_is_long(tmp_path: Path) -> None:
    chain = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 300))
    mistake = the_mistake(tmp_path, chain)
    assert (mistake.line, mistake.message) == (
        DEPTH_LIMIT + 1,
        "lists and mappings are nested more than 100 deep",
    )


@pytest.mark.parametrize("name", ["s.yaml", "s.json"])
def test_a_file_of_too_many_values_is_refused_without_reading_on(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairtrial.core.documents.nodes.VALUE_LIMIT", 1000)
    mistake = the_mistake(tmp_path, "[\n" + "0,\n" * 5000 + "0]", name)
    assert "holds more than 1,000 values" in mistake.message
    assert mistake.line == 1002


@pytest.mark.parametrize("name", ["s.yaml", "s.json"])
def test_nesting_is_read_up_to_the_limit(tmp_path: Path, name: str) -> None:
    def text(depth: int) -> str:
        nested = "[" * depth + "]" * depth
        return f'{{"study_id": "s", "title": "t", "provenance_metadata": {{"a": {nested}}}}}'

    study = load_study(save(tmp_path, text(DEPTH_LIMIT - 2), name))
    assert load_study(study.to_yaml(tmp_path / "again.yaml")) == study
    for depth in (DEPTH_LIMIT - 1, 100_000):
        mistake = the_mistake(tmp_path, text(depth), name)
        assert mistake.message == "lists and mappings are nested more than 100 deep"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("{'a': 1}", 1, ["column 2", "double quotes"]),
        ('{\n"a": 1,\n}', 3, ["remove the comma"]),
        ('{"a": 1, // b\n"c": 2}', 1, ["column 10", "JSON has no comments"]),
        ('{"a": 1\n"b": 2}', 2, ["column 1", "expecting ',' delimiter"]),
        ('{"a": "b\n"}', 1, ["control character"]),
        ('{"a": 1} {}', 1, ["column 10", "extra data"]),
        ("[1]", 1, ["expected a mapping", "got a list of 1"]),
        ("7", 1, ["expected a mapping", "got the number 7"]),
    ],
)
def test_json_that_is_no_study_gets_one_clear_line(
    tmp_path: Path, text: str, line: int, words: list[str]
) -> None:
    mistake = the_mistake(tmp_path, text, "s.json")
    # Python 3.13 points at the comma, earlier versions at what follows it.
    assert mistake.line in ({line, line - 1} if "comma" in words[0] else {line})
    for word in words:
        assert word in str(mistake)


def test_json_numbers_beyond_measure_are_refused(tmp_path: Path) -> None:
    mistakes = mistakes_in(
        tmp_path,
        '{"study_id": "s", "title": "t", "provenance_metadata":\n'
        f'{{"a": {"9" * 5000},\n"b": 1e999, "c": {"9" * 4000}}}}}',
        "s.json",
    )
    assert [(m.line, m.message[-40:]) for m in mistakes] == [
        (2, "9999...` has too many digits for a number"[-40:]),
        (3, "`1e999` is not a finite number"),
    ]


# --- the file itself ----------------------------------------------------------------------------


def file_mistake(path: Path) -> str:
    messages = set()
    for read in (load_study, read_study):
        with pytest.raises(StudyError) as caught:
            read(path)
        assert caught.value.source == str(path)
        messages.add(str(caught.value).removeprefix(str(path)))
    (message,) = messages
    return message


def test_a_missing_file_is_reported_with_the_likeliest_one(tmp_path: Path) -> None:
    for name in ("prompt-study.yaml", "prompt-study.json", "other.yaml", "prompt.py"):
        save(tmp_path, "", name)
    expected = tmp_path / "prompt-study.yaml"
    for name in ("promt-study.yaml", "prompt-study.yml", "prompt-study"):
        assert file_mistake(tmp_path / name) == f": no such file; did you mean '{expected}'?"
    assert file_mistake(tmp_path / "zzz.yaml") == ": no such file"
    missing = tmp_path / "nowhere"
    assert file_mistake(missing / "a.yaml") == f": no such file: there is no folder '{missing}'"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert file_mistake(tmp_path) == ": is a directory; name a file in it"
    path = save(tmp_path, HEAD, "only.yaml")
    assert file_mistake(tmp_path) == f": is a directory; did you mean '{path}'?"
    save(tmp_path, "problem_id: p\ncheck: []", "problem.yaml")
    assert file_mistake(tmp_path) == f": is a directory; did you mean '{path}'?"
    path.unlink()
    assert file_mistake(tmp_path) == ": is a directory; name a file in it"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("s.yaml", text) for text in ("", " \n\n", "# only a comment\n", "---\n", "null\n")),
        *(("s.json", text) for text in ("", " \n\n", "null\n")),
    ],
)
def test_an_empty_file_is_reported_as_empty(tmp_path: Path, name: str, text: str) -> None:
    message = file_mistake(save(tmp_path, text, name))
    assert message == ": the file is empty; `fairtrial init` writes one to start from"


def test_bytes_that_are_not_utf8_are_reported_with_place(tmp_path: Path) -> None:
    latin = save(tmp_path, HEAD.encode() + b"notes: caf\xe9\n")
    assert file_mistake(latin) == ":3: not UTF-8 text: byte 0xe9 at offset 31; save it as UTF-8"
    utf16 = save(tmp_path, HEAD.encode("utf-16"))
    assert "save it as UTF-8, it looks like UTF-16" in file_mistake(utf16)


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    with path.open("wb") as file:
        file.truncate(50 * 1024**2 + 1)
    assert file_mistake(path) == ": is larger than 50 MB"


def test_a_file_that_may_not_be_read_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path, HEAD)

    def refuse(*_: Any) -> Any:  # whoever runs the tests may be allowed to read everything
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert file_mistake(path) == ": can't be read: Permission denied"


def test_odd_names_are_reported_clearly(tmp_path: Path) -> None:
    endings = "end the name in .yaml, .yml, .json"
    odd = file_mistake(save(tmp_path, HEAD, "study.txt"))
    assert odd == f": can't tell the format from the ending '.txt'; {endings}"
    bare = file_mistake(save(tmp_path, HEAD, "study"))
    assert bare == f": can't tell the format from a name without an ending; {endings}"
    assert "is no file name" in file_mistake(tmp_path / "a\0b.yaml")


# --- warnings -----------------------------------------------------------------------------------

SURPRISES = {
    "no": "`no` is read as false; write 'no' in quotes for the text, or false if that is meant",
    "Yes": "`Yes` is read as true; write 'Yes' in quotes for the text, or true if that is meant",
    "ON": "`ON` is read as true; write 'ON' in quotes for the text, or true if that is meant",
    "off": "`off` is read as false; write 'off' in quotes for the text, or false if that is meant",
    "1e3": "`1e3` is read as text, not as a number; write 1000 (or 1000.0) for the number, "
    "or '1e3' in quotes for the text",
    "1e-7": "`1e-7` is read as text, not as a number; write 1.0e-07 for the number, "
    "or '1e-7' in quotes for the text",
    "-.5": "`-.5` is read as text, not as a number; write -0.5 for the number, "
    "or '-.5' in quotes for the text",
    "089": "`089` is read as text, not as a number; write 89 for the number, "
    "or '089' in quotes for the text",
    "010": "`010` is read as 8 (base 8); write '010' in quotes for the text, "
    "or whichever of 8 and 10 is meant",
    "-010": "`-010` is read as -8 (base 8); write '-010' in quotes for the text, "
    "or whichever of -8 and -10 is meant",
    "00": "`00` is read as 0 (base 8); write '00' in quotes for the text, or 0 if that is meant",
    "0o17": "`0o17` is read as text, not as a number; write 15 for the number, "
    "or '0o17' in quotes for the text",
    "1_000": "`1_000` is read as 1000; write '1_000' in quotes for the text, "
    "or 1000 if that is meant",
    "12:30": "`12:30` is read as 750 (base 60); write '12:30' in quotes for the text, "
    "or 750 if that is meant",
    "~": "`~` is read as null; write '~' in quotes for the text, or null if that is meant",
    "NULL": "`NULL` is read as null; write 'NULL' in quotes for the text, or null if that is meant",
    "": "nothing stands here, which is read as null; write a value, or null if that is meant",
}
PLACES = {
    "factors[0].levels[0]": "factors:\n- name: f\n  levels:\n  - {}\n",
    "factors[0].levels[0].value": "factors:\n- name: f\n  levels:\n  - name: x\n    value: {}\n",
    "factors[0].default": "factors:\n- name: f\n  levels: [a]\n\n  default: {}\n",
    "blocks[0].levels[0]": "blocks:\n- name: f\n  levels:\n  - {}\n",
}


@pytest.mark.usefixtures("both_parsers")
@pytest.mark.parametrize("place", PLACES)
def test_levels_that_yaml_reads_otherwise_are_warned_of(tmp_path: Path, place: str) -> None:
    for written, message in SURPRISES.items():
        text = HEAD + PLACES[place].format(written)
        path = save(tmp_path, text)
        with pytest.warns(StudyWarning) as caught:
            load_study(path)
        line = next(
            number
            for number, content in enumerate(text.splitlines(), start=1)
            if content.endswith((f"- {written}", f": {written}")) and number > 5
        )
        assert [str(warning.message) for warning in caught] == [
            f"{path}:{line}: {place}: {message}"
        ]
        assert caught[0].filename == __file__


@pytest.mark.parametrize("place", PLACES)
def test_clear_levels_are_not_warned_of(tmp_path: Path, place: str) -> None:
    clear = ["'no'", '"1e3"', "true", "False", "5", "-7", "0", "0.5", "1.0e+3", "0x1F", "word"]
    clear += [
        "1.2.3",
        "1e",
        "e3",
        "'010'",
        "'null'",
        "+1",
        "1.",
        "NaN",
        "1e400",
        "0" + "9" * 50,
        "|-\n      no",
    ]
    for written in clear:
        load_study(save(tmp_path, HEAD + PLACES[place].format(written)))


def test_null_is_warned_of_only_where_it_names_a_level(tmp_path: Path) -> None:
    for place, text in PLACES.items():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            load_study(save(tmp_path, HEAD + text.format("null")))
        messages = [str(warning.message).partition("levels[0]: ")[2] for warning in caught]
        assert messages == (
            [
                "`null` is read as null; write 'null' in quotes for the text, "
                "or {name: none, value: null} for null"
            ]
            if place == "factors[0].levels[0]"
            else []
        )


def test_names_and_nested_values_of_levels_are_warned_of_too(tmp_path: Path) -> None:
    path = save(tmp_path, FACTORS + "\n  - {name: no, value: [1, {a: yes}]}\n")
    loaded = read_study(path)
    assert [warning.path[4:] for warning in loaded.warnings] == [("name",), ("value", 1, "a")]
    assert loaded.warning_lines()[0].startswith(f"{path}:6: factors[0].levels[0].name: `no`")


def test_elsewhere_only_misread_numbers_are_warned_of(tmp_path: Path) -> None:
    path = save(
        tmp_path,
        FACTORS + "[1, 2]\n"
        "design_spec: {randomize: yes}\n"
        "run_budget: {timeout_s: 12:30, replicates: 010}\n"
        "provenance_metadata: {a: no, b: 1e-3, c: ~, d: 1_000}\n",
    )
    loaded = read_study(path)
    assert [(w.line, w.path) for w in loaded.warnings] == [
        (7, ("run_budget", "timeout_s")),
        (7, ("run_budget", "replicates")),
        (8, ("provenance_metadata", "b")),
    ]
    assert loaded.study.run_budget.timeout_s == 750


def test_a_mistake_caused_by_such_a_value_explains_it(tmp_path: Path) -> None:
    text = "study_id: no\ntitle: 010\nrun_budget: {timeout_s: 1e3}\n"
    mistakes = mistakes_in(tmp_path, text + "blocks: [{name: b, levels: [no, off]}]\n")
    assert [str(mistake) for mistake in mistakes] == [
        "study_id: expected text, got false; "
        "`no` is read as false: write 'no' in quotes for the text",
        "title: expected text, got the number 8; "
        "`010` is read as 8 (base 8): write '010' in quotes for the text",
        "run_budget.timeout_s: expected a number, got the text '1e3'; "
        "`1e3` is read as text, not as a number: write 1000 (or 1000.0) for the number",
        "blocks[0].levels[1]: is the same as level 1 of the block; "
        "`off` is read as false: write 'off' in quotes for the text",
    ]


def test_json_has_no_surprises(tmp_path: Path) -> None:
    levels = '["no", "1e3", "010", "12:30", null, "~", 1e3]'
    text = f'{{"study_id": "s", "title": "t", "factors": [{{"name": "f", "levels": {levels}}}]}}'
    loaded = read_study(save(tmp_path, text, "s.json"))
    assert isinstance(loaded, LoadedStudy)
    assert loaded.warnings == ()


def test_words_that_analysis_does_not_know_get_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text(
        "study_id: s\ntitle: t\nfactors:\n- {name: x, levels: [1, 2]}\n"
        "outcomes:\n- {name: o, source_table: run, aggregation: Mean, missing_data_policy: dorp}\n"
        "hypotheses:\n- {hypothesis_id: h, label: l, statement: s}\n"
        "analysis_plans:\n- analysis_plan_id: p\n  hypothesis_ids: [h]\n  tests: [T-test, anvoa]\n"
        "  multiple_comparison_policy: bonferoni\n"
        "- {analysis_plan_id: q, hypothesis_ids: [h], tests: [anova], "
        "multiple_comparison_policy: FDR-BH}\n"
    )
    assert read_study(path).warning_lines() == [
        f"{path}:6: outcomes[0].source_table: 'run' is not a term that fairtrial knows; "
        "did you mean 'runs'?",
        f"{path}:6: outcomes[0].missing_data_policy: 'dorp' is not a term that fairtrial knows; "
        "did you mean 'drop'?",
        f"{path}:12: analysis_plans[0].tests[1]: 'anvoa' is not a term that fairtrial knows; "
        "did you mean 'anova'?",
        f"{path}:13: analysis_plans[0].multiple_comparison_policy: 'bonferoni' is not a term that "
        "fairtrial knows; did you mean 'bonferroni'?",
    ]
