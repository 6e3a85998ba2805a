"""What the guides to optimizing list is what there is, and what they show can be read and run."""

import ast
import dataclasses
import random
import re
import shutil
from pathlib import Path

import click
import pytest
import yaml
from arena_fault_kit import WORKING
from clock_kit import simulate_clock
from repository_kit import run_git

from fairtrial import CodeProblem, Study, validate_study
from fairtrial.arena import Failure, Verdict
from fairtrial.arena.timing.samples_table import COLUMNS
from fairtrial.cli.main import cli
from fairtrial.core import build_record, plugins
from fairtrial.core.fields import field_docs, field_types
from fairtrial.llm.prices import PRICES, PRICES_DATE
from fairtrial.optimize import (
    Brief,
    OptimizationResult,
    Optimizer,
    Request,
    RequestKind,
    Tried,
)
from fairtrial.optimize.code_problem import UNITS
from fairtrial.study.extensions import extra_tables
from fairtrial.study.report import codebook

ROOT = Path(__file__).parents[2]
NAMES = ("optimizing", "connecting", "verdicts", "artifacts")
TUTORIALS = ("tutorial-researcher", "tutorial-engineer", "tutorial-builder")
GUIDES = {name: (ROOT / "docs" / f"{name}.md").read_text("utf-8") for name in (*NAMES, *TUTORIALS)}
PROPOSERS = sorted(plugins.names("proposers"))


def blocks(name, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDES[name], re.M | re.S)


def section(name, heading):
    found = re.search(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", GUIDES[name], re.M | re.S)
    assert found, heading
    return found[1]


def rows(text):
    """The rows of all tables in a text, without their heads."""
    found = []
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        lines = re.findall(r"^\|(.*)\|$", table, re.M)[2:]
        found += [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)] for line in lines]
    return found


def spell_default(field):
    """As YAML has it, on one line; nothing for what isn't given."""
    if field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
    elif field.default is dataclasses.MISSING:
        return "(needed)"
    else:
        value = field.default
    if value is None or value == "":
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(str(each) for each in value)}]"
    if dataclasses.is_dataclass(value):
        return f"{{memory_mb: {value.memory_mb}, processes: {value.processes}}}"
    return str(value)


def options_of(cls):
    fields = {field.name: field for field in dataclasses.fields(cls)}
    return [[f"`{name}`", spell_default(fields[name])] for name in field_types(cls)]


def test_the_options_of_the_agent_are_listed():
    told = rows(section("optimizing", "Options of `optimize`"))
    assert [row[:2] for row in told] == options_of(Optimizer)
    assert {row[0].strip("`"): row[2] for row in told} == field_docs(Optimizer)


@pytest.mark.parametrize("name", PROPOSERS)
def test_the_options_of_each_proposer_are_listed_as_they_say_themselves(name):
    guide = "optimizing" if name in ("codemod", "patches") else "connecting"
    told = rows(section(guide, f"Options of `{name}`"))
    cls = plugins.load("proposers", name)
    assert [row[:2] for row in told] == options_of(cls)
    assert {row[0].strip("`"): row[2] for row in told} == field_docs(cls)


def test_the_proposers_are_those_there_are():
    told = [row[0].strip("`") for row in rows(section("optimizing", "Who proposes"))]
    assert sorted(told) == PROPOSERS


def test_the_commands_options_are_those_there_are():
    command = cli.get_command(click.Context(cli), "optimize")
    known = {flag for each in command.params for flag in each.opts if flag.startswith("--")}
    told = rows(section("optimizing", "The command"))
    assert {row[0].strip("`").split()[0] for row in told} == known - {"--help"}


def test_the_keys_of_the_json_are_listed():
    told = rows(section("optimizing", "JSON and exit codes"))
    keys = {key for row in told for key in re.findall(r"`(\w+)`", row[0])}
    own = OptimizationResult().to_output().keys() - {"edits"}
    assert keys == own | {"ok", "output_dir", "is_new", "done"}


def test_the_prices_are_those_that_are_known():
    text = section("connecting", "Prices")
    assert PRICES_DATE in text
    told = {row[0].strip("`"): (float(row[1]), float(row[2])) for row in rows(text)}
    assert told == PRICES


@pytest.mark.parametrize(
    "name", ["conditions", "runs", "events", "evaluations", "outputs", "candidates"]
)
def test_the_columns_of_tables_are_those_of_the_codebook(name):
    told = rows(section("artifacts", f"`{name}.csv`"))
    extra = extra_tables().get(name)
    if extra is None:
        columns = getattr(codebook, name.upper())
    else:
        columns = [(key, column.unit, column.meaning) for key, column in extra.columns.items()]
    own = [[f"`{column}`", kind, text] for column, kind, text in columns]
    assert told[: len(own)] == own


def test_the_columns_of_samples_are_listed():
    told = rows(section("artifacts", "Files of `fairtrial evaluate`, `compare` and `aa`"))
    assert [row[0].strip("`") for row in told] == list(COLUMNS)


def test_the_evaluations_of_code_problems_are_listed():
    for guide, line in (
        ("optimizing", "A run has the evaluations"),
        ("artifacts", "has eleven, in"),
    ):
        (text,) = (each for each in GUIDES[guide].splitlines() if line in each)
        found = text.partition(line)[2]
        assert [name for name in re.findall(r"`(\w+)`", found) if name in UNITS][
            : len(UNITS)
        ] == list(UNITS)


def snippets():
    found = [(name, yaml.safe_load(each)) for name in GUIDES for each in blocks(name, "yaml")]
    guide = (ROOT / "docs" / "studies.md").read_text("utf-8")
    text = guide.partition("## Factors that set options\n")[2].partition("\n## ")[0]
    return [*found, ("studies", yaml.safe_load(re.search(r"```yaml\n(.*?)```", text, re.S)[1]))]


@pytest.mark.parametrize("snippet", [each for _, each in snippets() if "agents" in each])
def test_agents_and_their_proposers_can_be_made(snippet):
    for agent in snippet["agents"].values():
        mistakes = []
        made = build_record(Optimizer, agent["options"], (), mistakes)
        build_record(plugins.load("proposers", made.proposer), made.proposer_options, (), mistakes)
        assert mistakes == []
    if "study_id" in snippet:
        assert validate_study(Study.from_dict(snippet)) == []


def test_the_problem_of_the_tutorial_is_one():
    (snippet,) = (yaml.safe_load(each) for each in blocks("tutorial-engineer", "yaml"))
    mistakes = []
    build_record(CodeProblem, snippet, (), mistakes)
    assert mistakes == []


def code_of(name, first):
    return next(each for each in blocks(name, "python") if each.startswith(first))


@pytest.mark.parametrize("name", GUIDES)
def test_the_python_is_python_of_names_that_there_are(name):
    for code in blocks(name, "python"):
        for node in ast.walk(ast.parse(code)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("fairtrial"):
                exec(ast.unparse(node), {})


@pytest.fixture
def project(tmp_path):
    for folder in ("src", "candidates"):
        (tmp_path / folder).symlink_to(ROOT / "examples" / "toposort" / folder)
    return tmp_path


@pytest.mark.parametrize(
    ("guide", "module"), [("connecting", "my_model"), ("tutorial-researcher", "model")]
)
def test_functions_that_propose_do(project, guide, module):
    code = code_of(guide, f"# {module}.py\n")
    names = {"__file__": str(project / f"{module}.py"), "__name__": module}
    exec(compile(code, module, "exec"), names)
    path = names["PATH"]
    base = (project / path).read_text("utf-8")
    right = (project / "candidates/faster" / path).read_text("utf-8")
    brief = Brief("toposort", "Make it faster.", {path: base})
    failure = Failure("check[0]", "tests/test_sorting.py::test_the_smallest_goes_first", "fails")
    tried = Tried("0.0", "d", "a diff", Verdict.REJECTED, "tests: 1 of 11", (failure,))
    texts = set()
    for seed in random.Random(0).sample(range(1_000), 20):
        for request in (
            Request(RequestKind.INITIAL, 0, 0, seed=seed),
            Request(RequestKind.REPAIR, 0, 1, seed=seed, about=(tried,)),
        ):
            answer = names["propose"](brief, request)
            if not isinstance(answer, dict):
                (candidate,) = answer.candidates
                answer = {each: state.content.decode() for each, state in candidate.files.items()}
            texts.add(answer[path])
    assert base not in texts
    assert right in texts
    assert len(texts) > 1


@pytest.mark.slow
@pytest.mark.skipif(not WORKING, reason="there is no sandbox here, and guides use one")
def test_the_search_of_the_tutorial_finds_what_it_says(tmp_path, monkeypatch, capsys):
    """The clock is simulated; proposals, repairs, checks and delivery are real."""
    folder = tmp_path / "toposort"
    shutil.copytree(ROOT / "examples" / "toposort", folder)
    run_git(folder, "init", "-q")
    monkeypatch.chdir(folder)
    simulate_clock(monkeypatch, tmp_path)
    (code,) = (each for each in blocks("tutorial-builder", "python") if "# search.py" in each)
    (shown,) = (each for each in blocks("tutorial-builder", "console") if "search.py" in each)
    exec(compile(code, "search.py", "exec"), {"__name__": "__main__"})

    def without_figures(text):
        return re.sub(r"\d+\.\d+x .*", "", text)

    promised = shown.partition("\n")[2]
    assert without_figures(capsys.readouterr().out) == without_figures(promised)
    assert "heap" in (folder / "best.patch").read_text()
