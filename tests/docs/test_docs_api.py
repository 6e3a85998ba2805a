"""The code in docs/api.md runs, and the plug-ins that it shows are found and used."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from arena_fault_kit import WORKING
from clock_kit import simulate_clock

from fairtrial import open_results
from fairtrial.core import plugins

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "api.md").read_text("utf-8")


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.M | re.S)


def write_modules(folder):
    for code in blocks("python"):
        if name := re.match(r"# (\w+\.py)\n", code):
            (folder / name[1]).write_text(code, "utf-8")


@pytest.mark.parametrize("code", blocks("python"), ids=lambda code: code.splitlines()[0])
def test_the_python_runs(code, installed, monkeypatch, tmp_path):
    if "optimize_code" in code and not WORKING:
        pytest.skip("there is no sandbox here, and guides use one")
    simulate_clock(monkeypatch, tmp_path)
    (installed / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(installed)
    exec(compile(code, "api.md", "exec"), {"__name__": "__main__"})


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The guide's package, as pip would install it."""
    write_modules(tmp_path)
    info = tmp_path / "my_lab-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my_lab\nVersion: 1.0\n")
    (toml,) = blocks("toml")
    lines = []
    for group, points in tomllib.loads(toml)["project"]["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {value}" for name, value in points.items())]
    (info / "entry_points.txt").write_text("\n".join([*lines, ""]))
    monkeypatch.syspath_prepend(tmp_path)
    plugins._find_entry_points.cache_clear()
    yield tmp_path
    plugins._find_entry_points.cache_clear()
    for name in ("my_lab", "my_designs"):
        sys.modules.pop(name, None)


@pytest.fixture
def study(installed):
    (bound,) = (yaml.safe_load(block) for block in blocks("yaml"))
    return {
        "study_id": "plugged",
        "title": "With plug-ins",
        "factors": [{"name": "x", "levels": [1, 2]}],
        "outcomes": [{"name": "gap", "source_table": "evaluations", "primary": True}],
        **bound,
    }


@pytest.mark.parametrize("executor", ["one_by_one", "processes"])
def test_agents_problems_and_executors_of_a_package_are_used_by_name(run, write, study, executor):
    write(study)
    code, _, err = run("run", "study.yaml", "--executor", executor)
    assert code == 0, err
    with open_results("artifacts/plugged") as results:
        guesses = [result.outputs["guess"] for result in results]
        gaps = [result.metrics["primary_outcome"] for result in results]
        assert {result.executor for result in results} == {executor}
    assert gaps == [abs(guess - 42.0) for guess in guesses]
    assert len(set(guesses)) == 2


@pytest.mark.parametrize(
    ("section", "change", "says"),
    [
        (
            "agents",
            {"bold": {"use": "guesser", "options": {"sprad": 1.0}}},
            "did you mean 'spread'",
        ),
        ("agents", {"bold": {"use": "gueser"}}, "did you mean 'guesser'"),
        ("problems", {"far": {"use": "target"}}, "problems.far"),
        ("problems", {"far": {"use": "target", "options": {"value": "42"}}}, "without quotes"),
    ],
)
def test_options_of_plug_ins_are_checked_before_anything_runs(
    run, write, study, section, change, says
):
    write({**study, section: change})
    code, _, err = run("run", "study.yaml", "--dry-run")
    assert code == 2
    assert says in err


def test_a_design_of_a_package_is_used_by_name(run, write, study):
    factors = [{"name": "x", "levels": [1, 2, 3]}, {"name": "y", "levels": ["a", "b"]}]
    write({**study, "factors": factors, "design_spec": {"kind": "one_at_a_time"}})
    code, _, err = run("run", "study.yaml")
    assert code == 0, err
    with open_results("artifacts/plugged") as results:
        assignments = [dict(item.factor_assignments) for item in results.conditions]
    assert sorted((row["x"], row["y"]) for row in assignments) == [
        (1, "a"),
        (1, "b"),
        (2, "a"),
        (3, "a"),
    ]


def test_no_section_of_the_guide_is_empty():
    headings = re.findall(r"^(#+) (.*)\n\s*^(#+) ", GUIDE, re.M)
    assert [title for mark, title, following in headings if len(following) <= len(mark)] == []


def test_an_executor_that_is_not_there_is_a_mistake_with_the_known_names(run, write, study):
    write(study)
    code, _, err = run("run", "study.yaml", "--executor", "one_by_two")
    assert code == 2
    assert "did you mean 'one_by_one'?" in err


def test_the_suite_finds_what_the_guide_says_it_finds(installed):
    shown = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_my_lab.py"],
        cwd=installed,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # only loading takes long
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    assert set(re.findall(r"^FAILED \S+::(\w+)", shown, re.M)) == {
        "test_too_many_events_are_dropped_and_counted",
        "test_too_much_printed_output_is_truncated",
    }
    assert re.search(r"\d\d passed", shown)
