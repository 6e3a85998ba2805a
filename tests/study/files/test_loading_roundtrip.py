"""Study files are written atomically, and read back without loss."""

from __future__ import annotations

import copy
import json
import os
import stat
import warnings
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from fairtrial.core import Mistake, StudyError
from fairtrial.core.canonical import DEPTH_LIMIT
from fairtrial.study import (
    AgentBinding,
    AnalysisPlan,
    Block,
    Constraint,
    ConstraintSeverity,
    Contrast,
    DesignKind,
    DesignSpec,
    Factor,
    FactorKind,
    Hypothesis,
    HypothesisDirection,
    HypothesisKind,
    Level,
    Mediator,
    Moderator,
    OutcomeSpec,
    ProblemBinding,
    RunBudget,
    SeedPolicy,
    Study,
    load_study,
)
from fairtrial.study.files import read_study, write_study
from fairtrial.study.files.brief import dump_brief
from fairtrial.study.model.factors import MOVED_OPTIONS

STUDIES = Path(__file__).parents[2] / "data" / "studies"
OLD = "study_id: old\ntitle: old\n"


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def old_file(folder: Path, name: str = "study.yaml") -> Path:
    path = folder / name
    path.write_text(OLD)
    return path


# --- random studies -----------------------------------------------------------------------------

# fmt: off
TRICKY = [
    "", " ", "1", "-1.5", "1e3", "1e300", ".5", "0x1f", "010", "0o7", "1_000", "12:30", "1.",
    "true", "False", "no", "Yes", "on", "y", "N", "null", "~", "NULL", ".nan", ".inf", "nan",
    "2024-01-01", "2024-01-01T00:00:00Z", "=", "<<", "*a", "&a", "!a", "%a", "@a", "`a", "-",
    "- a", "? a", ": a", "a: b", "a #b", "#a", "a:", "[a", "{a}", "a, b", '"a"', "'a'", "|", ">",
    "a\nb", "a\nb\n", "a\n\n\nb\n\n", "\na", " a\nb", "a \nb", "a\n  b", "a\r\nb", "\ta\tb", "\n",
    "é日本😀", "\x00\x07\x1b\x7f", "\x85", "a\u2028b\u2029c", "\ufeff", "\ufffe", "\U0010ffff",
    "a#\x85b\n", "\xa0\n\u2029\x85b:",
    "---", "...", "--- a\n... b\n", "a" * 300, "word " * 60, "\\", "a\\nb", "é " * 80 + "\n x",
]
# fmt: on
TEXT = st.one_of(
    st.sampled_from(TRICKY), st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
)
NAME = TEXT.filter(lambda text: text.strip() != "")
NUMBER = st.one_of(
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([1e300, 1e-7, -0.0, 1e16, 5e-324, 10**40, -(10**400), 1.0]),
)
SCALAR = st.one_of(st.none(), st.booleans(), NUMBER, TEXT)
VALUE = st.recursive(
    SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
MAPPING = st.dictionaries(TEXT, VALUE, max_size=3)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
ABOVE_ZERO = st.floats(min_value=1e-300, max_value=1e300)
COUNT = st.integers(1, 10**20)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def some(strategy: st.SearchStrategy[Any], **limits: Any) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=2, **limits).map(tuple)


def unlike(values: list[Any]) -> list[Any]:
    """Those of the values whose JSON differs, which is what levels must."""
    return list({json.dumps(value, sort_keys=True): value for value in values}.values())


def levels(pairs: list[Any]) -> tuple[Level, ...]:
    names, values = [name for name, _ in pairs], unlike([value for _, value in pairs])
    made = zip(dict.fromkeys(names), values, strict=False)
    return tuple(
        Level(name, value, label=name + "!", metadata={"v": value}) for name, value in made
    )


REFERENCE = st.tuples(NAME, NAME).map(lambda pair: f"{pair[0].replace(':', '')}x:{pair[1]}")
FACTOR = st.builds(
    Factor,
    name=NAME,
    description=TEXT,
    kind=st.sampled_from(FactorKind),
    levels=st.lists(st.tuples(NAME, VALUE), min_size=1, max_size=3).map(levels),
    dtype=st.sampled_from([None, "str", "int"]),
    default=VALUE,
    metadata=MAPPING,
    tied_to=maybe(TEXT),
    when=maybe(TEXT),
)
HYPOTHESIS = st.builds(
    Hypothesis,
    hypothesis_id=NAME,
    label=NAME,
    statement=NAME,
    kind=st.sampled_from(HypothesisKind),
    independent_vars=TEXTS,
    moderators=some(st.builds(Moderator, name=NAME, levels=TEXTS)),
    mediators=some(st.builds(Mediator, name=NAME, description=TEXT)),
    contrast=maybe(st.builds(Contrast, label=TEXT, left=NAME, right=NAME)),
    direction=st.sampled_from(HypothesisDirection),
    minimum_effect_of_interest=maybe(ABOVE_ZERO),
)
STUDY = st.builds(
    Study,
    study_id=NAME,
    title=NAME,
    description=TEXT,
    authors=TEXTS,
    hypotheses=some(HYPOTHESIS),
    factors=some(FACTOR),
    blocks=some(
        st.builds(
            Block,
            name=NAME,
            levels=st.lists(VALUE, min_size=1, max_size=3).map(unlike),
            metadata=MAPPING,
        )
    ),
    constraints=some(
        st.builds(
            Constraint,
            constraint_id=NAME,
            expression=maybe(TEXT),
            callable_ref=REFERENCE,
            severity=st.sampled_from(ConstraintSeverity),
        )
    ),
    design_spec=st.builds(
        DesignSpec,
        kind=st.sampled_from(DesignKind) | NAME,
        replicates=COUNT,
        randomize=st.booleans(),
        matrix_path=maybe(TEXT),
        n_samples=maybe(COUNT),
        options=MAPPING.filter(lambda given: not given.keys() & set(MOVED_OPTIONS)),
    ),
    outcomes=some(
        st.builds(OutcomeSpec, name=NAME, column=TEXT, primary=st.booleans(), sd=maybe(ABOVE_ZERO))
    ),
    analysis_plans=some(
        st.builds(
            AnalysisPlan,
            analysis_plan_id=NAME,
            hypothesis_ids=some(TEXT, min_size=1),
            tests=some(TEXT, min_size=1),
            filters=MAPPING,
        )
    ),
    run_budget=st.builds(
        RunBudget, replicates=COUNT, max_runs=maybe(COUNT), timeout_s=maybe(ABOVE_ZERO)
    ),
    seed_policy=st.builds(SeedPolicy, base_seed=st.integers()),
    output_dir=maybe(TEXT.filter(lambda text: "\0" not in text)),
    provenance_metadata=MAPPING,
    notes=TEXT,
    agents=st.dictionaries(TEXT, st.builds(AgentBinding, use=NAME, options=MAPPING), max_size=2),
    problems=st.dictionaries(
        TEXT, st.builds(ProblemBinding, brief=NAME, payload=MAPPING), max_size=2
    ),
    condition_runner=maybe(REFERENCE),
)


# --- writing ------------------------------------------------------------------------------------


@settings(max_examples=50, deadline=None)
@given(study=STUDY)
def test_any_study_survives_every_format(
    tmp_path_factory: pytest.TempPathFactory, study: Study
) -> None:
    # Equality alone would let -0.0 and 1 == 1.0 == True pass
    expected = repr(study)
    folder = tmp_path_factory.getbasetemp()
    assert repr(Study.from_dict(study.to_dict())) == expected
    for format in ("yaml", "json"):
        path = write_study(study, folder / f"round-trip.{format}", format)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            back = load_study(path)
        assert not [w for w in said if "is read as" in str(w.message)]
        assert back == study
        assert repr(back) == expected


@pytest.mark.parametrize("parser", ["c", "python"])
def test_tricky_texts_survive_as_keys_and_values_with_either_parser(
    tmp_path: Path, parser: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if parser == "python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    metadata = {text: [text, {"nested": {text: text}}] for text in TRICKY}
    study = Study("s", "t", provenance_metadata=metadata, notes="\n".join(TRICKY))
    for format in ("yaml", "json"):
        back = load_study(write_study(study, tmp_path / f"s.{format}", format))
        assert back.provenance_metadata == metadata
        assert back.notes == study.notes


@settings(max_examples=30, deadline=None)
@given(study=STUDY)
def test_a_brief_study_is_the_same_study(study: Study) -> None:
    assert Study.from_dict(dump_brief(study)) == study


def test_a_brief_file_holds_no_defaults_and_short_forms(tmp_path: Path) -> None:
    study = Study(
        "s",
        "t",
        factors=(Factor("x", levels=(1, 2)), Factor("y", levels=(Level("low", 0.1),))),
        agents={"a": AgentBinding("m:f")},
        outcomes=(OutcomeSpec("o", primary=True),),
    )
    path = write_study(study, tmp_path / "s.yaml", "yaml", brief=True)
    assert yaml.safe_load(path.read_text("utf-8")) == {
        "study_id": "s",
        "title": "t",
        "factors": [
            {"name": "x", "levels": [1, 2]},
            {"name": "y", "levels": [{"name": "low", "value": 0.1}]},
        ],
        "outcomes": [{"name": "o", "primary": True}],
        "agents": {"a": "m:f"},
    }
    assert load_study(path) == study


def test_written_yaml_is_readable(tmp_path: Path) -> None:
    study = Study(
        "s",
        "Größe: 1",
        description="First line.\n\n  - indented: yes\nLast line.\n",
        tags=("1e3", "no", "y", "word"),
        factors=(Factor("f", levels=(Level("a", 1e300),)),),
    )
    text = study.to_yaml(tmp_path / "s.yaml").read_text("utf-8")
    assert text.startswith(
        "schema_version: 0.2.0\n"
        "study_id: s\n"
        "title: 'Größe: 1'\n"
        "description: |\n"
        "  First line.\n"
        "\n"
        "    - indented: yes\n"
        "  Last line.\n"
        "authors: []\n"
        "rationale: ''\n"
        "tags:\n"
        "  - '1e3'\n"
        "  - 'no'\n"
        "  - 'y'\n"
        "  - word\n"
        "hypotheses: []\n"
        "factors:\n"
        "  - name: f\n"
        "    description: ''\n"
        "    kind: manipulated\n"
        "    levels:\n"
        "      - name: a\n"
        "        value: 1.0e+300\n"
    )
    data = yaml.safe_load(text)
    assert list(data) == list(study.to_dict())
    assert data == study.to_dict()


def test_written_json_is_readable(tmp_path: Path) -> None:
    study = Study("s", "Größe", provenance_metadata={"a": 1e300})
    text = study.to_json(tmp_path / "s.json").read_text("utf-8")
    assert text.startswith(
        '{\n  "schema_version": "0.2.0",\n  "study_id": "s",\n  "title": "Größe"'
    )
    assert text.endswith("}\n")
    assert json.loads(text) == study.to_dict()


def test_writing_makes_folders_and_returns_the_path(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "study.yaml"
    assert write_study(Study("s", "t"), str(path), "yaml") == path
    assert names_in(path.parent) == ["study.yaml"]
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~umask


def test_writing_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    real = old_file(tmp_path, "real.yaml")
    link = tmp_path / "link.yaml"
    link.symlink_to(real)
    write_study(Study("s", "t"), link, "yaml")
    assert link.is_symlink()
    assert load_study(real).title == "t"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = old_file(tmp_path)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StudyError, match=r"study\.yaml: can't be written: No space left"):
        write_study(Study("new", "new"), path, "yaml")
    assert path.read_text() == OLD
    assert names_in(tmp_path) == ["study.yaml"]


def test_the_old_file_stands_until_the_new_one_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = old_file(tmp_path)
    seen = []
    replace = Path.replace

    def look_first(self: Path, target: Path) -> Path:
        seen.append((path.read_text(), load_study(self, "yaml").study_id, self.parent))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", look_first)
    write_study(Study("new", "new"), path, "yaml")
    assert seen == [(OLD, "new", tmp_path)]
    assert load_study(path).study_id == "new"


@pytest.mark.parametrize("format", ["yaml", "json"])
def test_what_no_file_can_hold_is_refused_before_writing(tmp_path: Path, format: str) -> None:
    deep: list[Any] = []
    for _ in range(DEPTH_LIMIT - 3):  # what a level can hold by itself is too deep in a file
        deep = [deep]
    study = Study(
        "s",
        "t",
        factors=(Factor("x", levels=(Level("l", 1, metadata={"c": deep}),)),),
        notes="half \ud83d",
        provenance_metadata={"a": {"k\udc00": 1}, "b": 10**5000},
    )
    path = tmp_path / f"s.{format}"
    with pytest.raises(StudyError) as caught:
        write_study(study, path, format)
    assert str(caught.value).splitlines() == [
        f"{path}: factors[0].levels: lists and mappings are nested more than 100 deep",
        f"{path}: provenance_metadata.a.k?: holds half of a surrogate pair, "
        "which no file can hold; remove it",
        f"{path}: provenance_metadata.b: has too many digits for a number; make it a text",
        f"{path}: notes: holds half of a surrogate pair, which no file can hold; remove it",
    ]
    assert names_in(tmp_path) == []


def test_writing_refuses_unknown_formats_and_places(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="expected yaml or json as the format, got 'toml'"):
        write_study(Study("s", "t"), tmp_path / "s.toml", "toml")
    old_file(tmp_path, "file")
    with pytest.raises(StudyError, match=r"a\.yaml: can't be written: "):
        write_study(Study("s", "t"), tmp_path / "file" / "a.yaml", "yaml")


# --- robustness ---------------------------------------------------------------------------------

WHOLE = yaml.safe_load((STUDIES / "full.yaml").read_text()) | {
    "primary_outcomes": ["accuracy"],
    "secondary_outcomes": [],
}
WHOLE["hypotheses"][0]["linked_analysis_plan_id"] = "p1"


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    result = [path] if path else []
    if isinstance(data, (dict, list)):
        for key, item in data.items() if isinstance(data, dict) else enumerate(data):
            result += places(item, (*path, key))
    return result


@settings(max_examples=100, deadline=None)
@given(
    changes=st.lists(
        st.tuples(
            st.sampled_from(places(WHOLE)),
            st.sampled_from([None, True, -1, 0.5, 10**400, "", "x", "a:b", [], [[]], [{}], {}])
            | VALUE,
        ),
        min_size=1,
        max_size=4,
    )
)
def test_whatever_stands_in_a_file_is_read_or_refused_with_a_line(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[tuple[Any, ...], Any]]
) -> None:
    data = copy.deepcopy(WHOLE)
    for path, value in changes:
        holder = data
        for step in path[:-1]:
            try:
                holder = holder[step]
            except (KeyError, IndexError, TypeError):
                holder = None
                break
        if isinstance(holder, (dict, list)) and (
            isinstance(holder, dict) or path[-1] in range(len(holder))
        ):
            holder[path[-1]] = copy.deepcopy(value)
    path = tmp_path_factory.getbasetemp() / "changed.json"
    path.write_text(json.dumps(data, indent=1))
    try:
        read_study(path)
        mistakes: tuple[Mistake, ...] = ()
    except StudyError as error:
        mistakes = error.mistakes
    lines = [mistake.line or 0 for mistake in mistakes]
    assert 0 not in lines
    assert lines == sorted(lines)


@settings(max_examples=100, deadline=None)
@given(
    text=st.one_of(
        st.text(st.characters(exclude_categories=["Cs"])),
        st.text(st.sampled_from("abc:-#&*!|>'\"%@`{}[],?= \n\t<01.~e_")),
    ),
    format=st.sampled_from(["yaml", "json"]),
)
def test_any_text_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: str, format: str
) -> None:
    path = tmp_path_factory.getbasetemp() / f"noise.{format}"
    path.write_text(text, "utf-8")
    with pytest.raises(StudyError):
        read_study(path)


@settings(max_examples=100, deadline=None)
@given(value=VALUE)
def test_json_is_read_as_the_standard_library_reads_it(
    tmp_path_factory: pytest.TempPathFactory, value: Any
) -> None:
    path = tmp_path_factory.getbasetemp() / "value.json"
    data = {"study_id": "s", "title": "t", "provenance_metadata": {"value": value}}
    path.write_text(json.dumps(data, indent=None))
    read = load_study(path).provenance_metadata["value"]
    assert repr(read) == repr(json.loads(json.dumps(value)))
