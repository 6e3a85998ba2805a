"""The documentation says what the code does."""

import re
import runpy
from pathlib import Path

import pytest
import yaml

from fairtrial import DesignKind, Study, load_study, validate_study
from fairtrial.core import Record, plugins
from fairtrial.core.fields import field_docs, field_types
from fairtrial.study.model import factors, hypotheses as claims, problems, study
from fairtrial.study.report import outcome_reader
from fairtrial.study.stats import multiplicity
from fairtrial.study.stats.multiplicity import is_policy
from fairtrial.study.stats.named_tests import MISSING_DATA_POLICIES, NAMED_TESTS

ROOT = Path(__file__).parents[2]
RECORDS = [
    value
    for module in (study, factors, claims, problems)
    for value in vars(module).values()
    if isinstance(value, type) and issubclass(value, Record) and value.__module__ == module.__name__
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.__name__)
def test_every_field_is_documented_in_the_record_and_in_the_guide(record):
    guide = (ROOT / "docs/studies.md").read_text("utf-8")
    section = guide.partition(f"### {record.__name__}\n")[2].partition("\n### ")[0]
    docs = field_docs(record)
    assert set(docs) == set(field_types(record)) or record.__name__ == "Study"
    for name in field_types(record):
        key = record._file_keys.get(name, name)
        assert re.search(rf"^\| `{key}` \| .* \| {re.escape(docs[name])} \|$", section, re.M), name


QUICK_START = ROOT / "docs" / "quickstart.md"


def quick_start_study():
    text = QUICK_START.read_text("utf-8")
    return re.search(r"```yaml\n(.*?)```", text, re.S).group(1)


def test_the_first_study_is_valid_and_about_30_lines():
    assert validate_study(Study.from_dict(yaml.safe_load(quick_start_study()))) == []
    assert len([line for line in quick_start_study().splitlines() if line.strip()]) <= 34


def test_the_first_study_is_the_example():
    example = yaml.safe_load((ROOT / "examples/prompt-style.yaml").read_text("utf-8"))
    ours = yaml.safe_load(quick_start_study())
    assert {**ours, "description": example["description"]} == example


def test_the_example_in_python_is_the_one_in_yaml():
    made = runpy.run_path(str(ROOT / "examples/prompt_style.py"))["STUDY"]
    assert made == load_study(ROOT / "examples/prompt-style.yaml")


def test_the_quick_start_shows_what_plan_really_prints(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(ROOT)
    code, shown, _ = run("plan", "examples/prompt-style.yaml")
    assert code == 0
    assert shown.strip()
    assert shown.strip() in QUICK_START.read_text("utf-8")


def test_the_first_python_runs_and_runs_again(tmp_path, monkeypatch, capsys):
    text = QUICK_START.read_text("utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.S).group(1)
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        exec(compile(code, "quickstart.md", "exec"), {"__name__": "__main__"})
        assert re.match(r"40 run-\w{12} -\d", capsys.readouterr().out)
    assert (tmp_path / "artifacts" / "sums" / "runs.csv").exists()


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("`kind` of a factor", factors.FactorKind),
        ("`severity` of a constraint", factors.ConstraintSeverity),
        ("`kind` of a hypothesis", claims.HypothesisKind),
        ("`direction` of a hypothesis", claims.HypothesisDirection),
    ],
)
def test_the_guide_lists_the_words_that_a_field_takes(field, words):
    guide = (ROOT / "docs/studies.md").read_text("utf-8")
    assert f"| {field} | {', '.join(words)} |" in guide


@pytest.mark.parametrize("kind", DesignKind)
def test_every_design_and_its_options_are_documented(kind):
    guide = (ROOT / "docs/designs.md").read_text("utf-8")
    section = guide.partition(f"## `{kind.value}`\n")[2].partition("\n## ")[0]
    assert section, kind
    for name, text in field_docs(plugins.load("designs", kind.value)).items():
        assert re.search(rf"^\| `{name}` \| .* \| {re.escape(text)} \|$", section, re.M), name


def test_yaml_snippets_in_the_guides_can_be_read():
    for path in (ROOT / "docs").glob("*.md"):
        for snippet in re.findall(r"```yaml\n(.*?)```", path.read_text("utf-8"), re.S):
            assert isinstance(yaml.safe_load(snippet), dict), path


def slugs(text):
    """What the headings of a document are linked by."""
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {
        re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings
    }


def test_no_link_between_documents_is_broken():
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("*/README.md")]:
        text = path.read_text("utf-8")
        for name, heading in re.findall(r"\]\(([^)#:]*)(?:#([^)]*))?\)", text):
            target = path.parent / name if name else path
            assert target.exists(), f"{path.name}: {name}"
            if heading:
                assert heading in slugs(target.read_text("utf-8")), f"{path.name}: {name}#{heading}"


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("`source_table` of an outcome", claims.SOURCE_TABLES),
        ("`aggregation` of an outcome", claims.AGGREGATIONS),
        ("`missing_data_policy` of an outcome", MISSING_DATA_POLICIES),
        ("`multiple_comparison_policy` of a plan", claims.COMPARISON_POLICIES),
    ],
)
def test_the_guide_lists_the_words_that_analysis_knows(field, words):
    guide = (ROOT / "docs/studies.md").read_text("utf-8")
    assert f"| {field} | {', '.join(words)} |" in guide


def test_the_guide_lists_every_test_by_all_its_names():
    guide = (ROOT / "docs/studies.md").read_text("utf-8")
    listed = guide.partition("| test | what it is | also called |\n|---|---|---|\n")[2]
    assert listed.partition("\n\n")[0].splitlines() == [
        f"| `{word.name}` | {word.meaning} | {', '.join(word.aliases)} |" for word in NAMED_TESTS
    ]


def test_words_that_analysis_knows_are_those_it_works_with():
    assert set(claims.AGGREGATIONS) == set(outcome_reader._AGGREGATIONS)
    assert all(map(is_policy, claims.COMPARISON_POLICIES))
    assert len(claims.COMPARISON_POLICIES) == len(multiplicity._POLICIES)


def test_the_demo_runs_a_study_and_ends_with_where_the_results_are(run, tmp_path, monkeypatch):
    lines = (ROOT / "Makefile").read_text("utf-8").partition("\ndemo:")[2].split("\n\n")[0]
    commands = [line.split()[1:] for line in lines.splitlines() if "\t$(BIN)/fairtrial " in line]
    names = [command[0] for command in commands]
    assert names == ["plan", "run", "report", "optimize", "run", "report", *["report"] * 3]
    assert all(command[-1] == "--html" for command in commands[-3:])
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    for command in (*commands[:3], commands[-3]):  # the others are in test_demo_project.py
        assert run(*command)[0] == 0
    readme = (ROOT / "README.md").read_text("utf-8")
    verdicts = re.findall(r"^- `\w+` .*: \*\*.*$", readme, re.M)
    assert len(verdicts) == 3
    report = Path("artifacts/demo/search/report.md").read_text("utf-8")
    assert all(verdict in report for verdict in verdicts)
    assert Path("artifacts/demo/search/report.html").exists()
    named = re.findall(r'echo "  \d\. (\S+)', lines)
    assert len(named) == 3
    assert Path(named[0]).exists()


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= 1_000


def test_the_plan_that_stops_early_is_valid():
    guide = (ROOT / "docs" / "studies.md").read_text("utf-8")
    section = guide.partition("### Studies that stop when they know\n")[2]
    snippet = yaml.safe_load(re.search(r"```yaml\n(.*?)```", section, re.S).group(1))
    study = yaml.safe_load((ROOT / "examples/prompt-style.yaml").read_text("utf-8"))
    study |= {"problem_ids": [f"p{number}" for number in range(12)], "problems": {}}
    study["run_budget"]["replicates"] = 2
    study["hypotheses"][0]["hypothesis_id"] = "h1"
    assert validate_study(Study.from_dict({**study, **snippet})) == []
