"""The `fairtrial` command: output, files, and exit codes."""

import csv
import itertools
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from fairtrial import Constraint, Factor, RunBudget, Study, build_design, load_study, plan_runs
from fairtrial.cli import init, main as cli_main
from fairtrial.cli.main import COMMANDS
from fairtrial.study import files
from fairtrial.study.report import summarize_plan

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/prompt-style.yaml"
HEAVY = ("msgspec", "yaml", "rich", "anyio", "httpx", "numpy", "scipy")


def test_help_lists_every_command_without_importing_it():
    code = (
        "import sys; from fairtrial.cli.main import main\n"
        "try: main(['--help'])\n"
        f"except SystemExit as stop: print(stop.code, [m for m in {HEAVY} if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.splitlines()[-1] == "0 []"
    for name, (_, summary) in COMMANDS.items():
        assert name in shown.stdout
        assert summary in shown.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example_and_json(run, name):
    code, out, _ = run(name, "--help")
    assert code == 0
    assert "Example" in out
    assert f"fairtrial {name}" in out
    assert "--json" in out
    assert COMMANDS[name][1].rstrip(".").split()[0] in out


def test_the_summaries_in_the_table_are_those_of_the_commands():
    for name, (_, summary) in COMMANDS.items():
        command = cli_main.cli.get_command(None, name)
        assert command.name == name
        assert command.get_short_help_str(200) == summary


def test_an_unknown_command_gets_a_suggestion(run):
    code, _, err = run("chekc")
    assert code == 2
    assert "there is no command 'chekc'; did you mean 'check'?" in err


def test_check_says_how_to_have_own_functions_imported(run, tmp_path):
    run("init", tmp_path / "my study.yaml")
    code, out, _ = run("check", tmp_path / "my study.yaml")
    assert code == 0
    *_, line = out.splitlines()
    assert re.match(r"next:    fairtrial run '.*my study\.yaml' --dry-run  # also imports", line)
    assert "next:" not in run("check", EXAMPLE)[1]  # names no functions


def test_check_says_that_all_is_well(run):
    code, out, _ = run("check", EXAMPLE)
    assert code == 0
    assert "no mistakes; 24 conditions, 200 runs" in out
    code, out, _ = run("check", EXAMPLE, "--json")
    assert json.loads(out) == {
        "ok": True,
        "study_id": "prompt-style",
        "conditions": 24,
        "runs": 200,
        "warnings": [],
        "untested": [],
    }


def test_check_reports_all_mistakes_with_their_lines(run, write):
    path = write(
        "study_id: s\n"
        "titel: t\n"
        "factors:\n"
        "  - name: x\n"
        "    levels: [1, 1]\n"
        "hypotheses:\n"
        "  - {hypothesis_id: h, label: l, statement: s, independent_vars: [xx]}\n"
        "run_budget: {replicates: none}\n"
    )
    code, out, err = run("check", path)
    assert code == 2
    assert out == ""
    for line in [
        f"{path}:2: titel: unknown key; did you mean 'title'?",
        f"{path}:5: factors[0].levels[1]",
        f"{path}:7: hypotheses[0].independent_vars[0]: hypothesis 'h' refers to an unknown factor",
        f"{path}:8: run_budget.replicates: expected a whole number",
    ]:
        assert line in err
    code, out, _ = run("check", path, "--json")
    report = json.loads(out)
    assert code == 2
    assert report["ok"] is False
    assert {mistake["line"] for mistake in report["mistakes"]} >= {2, 5, 7, 8}
    assert all(mistake["file"] == str(path) for mistake in report["mistakes"])


GOOD = "study_id: s\ntitle: t\nfactors:\n- {name: x, levels: [1, 2]}\n"
BAD_FILES = {
    "empty": ("", "empty"),
    "not yaml": ("a: [1, 2\n", "YAML"),
    "not a mapping": ("- 1\n- 2\n", "mapping"),
    "unknown key": (GOOD + "nots: x\n", "did you mean 'notes'?"),
    "wrong type": (GOOD + "run_budget: 3\n", "expected a mapping"),
    "duplicate key": (GOOD + "title: u\n", "title"),
    "duplicate name": (GOOD + "- {name: x, levels: [1]}\n", "used twice"),
    "too many conditions": (
        "study_id: s\ntitle: t\nfactors:\n"
        + "".join(f"- {{name: f{i}, levels: {list(range(10))}}}\n" for i in range(9)),
        "1,000,000,000 conditions",
    ),
    "all excluded": (
        GOOD + "constraints:\n- {constraint_id: c, expression: x > 9}\n",
        "no condition is left to run",
    ),
    "matrix without a column": (
        GOOD + "design_spec: {kind: custom_matrix, matrix_path: m.csv}\n",
        "there is no column for the factor 'x'",
    ),
    "matrix that isn't there": (
        GOOD + "design_spec: {kind: custom_matrix, matrix_path: nowhere.csv}\n",
        "nowhere.csv",
    ),
    "nan": ("study_id: s\ntitle: t\nfactors:\n- {name: x, levels: [.nan]}\n", "finite"),
    "infinity": ("study_id: s\ntitle: t\nfactors:\n- {name: x, levels: [.inf]}\n", "finite"),
    "alias bomb": (
        "a: &a [x,x,x,x,x,x,x,x,x]\n"
        + "".join(
            f"{n}: &{n} [{','.join(['*' + p] * 9)}]\n" for p, n in itertools.pairwise("abcdefghi")
        ),
        "alias",
    ),
    "alias loop": ("study_id: &a [*a]\n", "alias"),
}


@pytest.mark.parametrize("case", BAD_FILES)
@pytest.mark.parametrize("command", ["check", "plan"])
def test_bad_files_get_one_clear_report_and_exit_2(run, write, case, command):
    text, says = BAD_FILES[case]
    write("y,z\n1,2\n", "m.csv")
    code, out, err = run(command, write(text))
    assert code == 2
    assert says in err
    assert "study.yaml" in err
    assert out == ""


@pytest.mark.parametrize("command", ["check", "plan"])
def test_a_missing_file_and_a_directory_are_distinguished(run, tmp_path, command):
    code, _, err = run(command, "nowhere.yaml")
    assert code == 2
    assert "nowhere.yaml" in err
    code, _, err = run(command, tmp_path)
    assert code == 2
    assert "director" in err


def test_plan_shows_conditions_runs_balance_and_power(run):
    code, out, _ = run("plan", EXAMPLE)
    assert code == 0
    assert "randomized_block: 24 conditions, 4 of them excluded by constraints" in out
    assert "200 = 20 conditions × 2 replicates × 1 agent × 5 problems" in out
    assert "never runs: greedy-small" in out
    assert "balance  temperature: 0.0 in 4 conditions, 0.5 in 8, 1.0 in 8" in out
    assert "power    h1 (style on accuracy): 0.35 by t test by problem" in out
    assert "0.39 if the effect were the same in every problem" in out
    assert "Assumes a difference of 0.05 in accuracy" in out
    assert "... and 8 more; --out FILE writes them all" in out


def test_plan_shows_what_is_aliased(run, write):
    factors = [{"name": name, "levels": [0, 1]} for name in "abcde"]
    study = {"study_id": "s", "title": "t", "factors": factors, "design_spec": {"kind": "frac2"}}
    code, out, _ = run("plan", write(yaml.safe_dump(study)))
    assert code == 0
    assert "resolution" in out
    assert "e = a × c" in out


def test_plan_as_json_holds_all_of_it(run):
    code, out, _ = run("plan", EXAMPLE, "--json")
    plan = json.loads(out)
    assert code == 0
    assert (plan["conditions"], plan["admissible"], plan["runs"]) == (24, 20, 200)
    assert len(plan["condition_table"]) == 24
    assert 0.3 < plan["power"][0]["power"] < plan["power"][0]["constant_power"] < 0.45
    assert plan["power"][0]["assumption"]
    assert plan["balance"]["excluded"] == 4


@pytest.mark.parametrize("ending", ["csv", "json", "jsonl"])
def test_plan_writes_conditions_and_runs(run, tmp_path, ending):
    out, runs = tmp_path / f"deep/er/conditions.{ending}", tmp_path / f"runs.{ending}"
    code, _, _ = run("plan", EXAMPLE, "--out", out, "--runs", runs)
    assert code == 0

    def read(path):
        text = path.read_text("utf-8")
        if ending == "csv":
            return list(csv.DictReader(text.splitlines()))
        return json.loads(text) if ending == "json" else [*map(json.loads, text.splitlines())]

    conditions, planned = read(out), read(runs)
    assert list(conditions[0]) == [
        "study_id",
        "condition_id",
        "admissible",
        "constraint_messages",
        "assignment_meta_json",
        "style",
        "temperature",
        "model",
        "block_language",
    ]
    assert len(conditions) == 24
    assert sum(str(row["admissible"]) == "True" for row in conditions) == 20
    assert len(planned) == 200
    study = load_study(EXAMPLE)
    expected = list(plan_runs(study, build_design(study)))
    assert [row["run_id"] for row in planned] == [spec.run_id for spec in expected]
    assert [int(row["seed"]) for row in planned] == [spec.seed for spec in expected]
    assert [path.name for path in tmp_path.iterdir()] in (
        [["deep", f"runs.{ending}"], [f"runs.{ending}", "deep"]]
    )


def test_plan_refuses_a_file_it_cannot_write_before_it_does_anything(run, tmp_path):
    code, out, err = run("plan", EXAMPLE, "--out", tmp_path / "conditions.xlsx")
    assert code == 2
    assert ".csv, .json, .jsonl" in err
    assert out == ""
    (tmp_path / "file").write_text("")
    code, _, err = run("plan", EXAMPLE, "--out", tmp_path / "file/conditions.csv")
    assert code == 2
    assert "can't be written" in err


def test_plan_says_what_a_change_of_the_study_keeps(run, write):
    old = write(EXAMPLE.read_text("utf-8"), "old.yaml")
    changed = EXAMPLE.read_text("utf-8").replace("[en, de]", "[en, de, fr]")
    new = write(changed.replace("replicates: 2", "replicates: 3"), "new.yaml")
    code, out, _ = run("plan", new, "--against", old, "--json")
    assert code == 0
    assert json.loads(out)["changes"] == {
        "conditions": {"kept": 24, "new": 12, "dropped": 0},
        "runs": {"kept": 200, "new": 250, "dropped": 0},
    }
    code, out, _ = run("plan", new, "--against", old)
    assert "200 kept, 250 new, 0 dropped" in out


def test_plan_says_when_no_run_can_stay_because_the_study_has_another_name(run, write):
    old = write(GOOD, "old.yaml")
    new = write(GOOD.replace("study_id: s", "study_id: z"), "new.yaml")
    code, out, _ = run("plan", new, "--against", old)
    assert code == 0
    assert "2 kept, 0 new" in out
    assert "'s' became 'z', so no run is kept" in out


def test_plan_says_which_agent_and_problem_stand_in_for_none(run, write):
    _, out, _ = run("plan", write(GOOD))
    assert "the study names none, so default-agent is used" in out
    assert "the study names none, so default-problem is used" in out
    _, out, _ = run("plan", EXAMPLE)
    assert "the study names none" not in out


def test_doe_prints_or_writes_a_table(run, tmp_path):
    factors = '{"rate": [0.1, 0.9], "depth": [1, 5]}'
    code, out, _ = run("doe", "--kind", "lhs", "--factors", factors, "--n", 6)
    assert code == 0
    assert len([line for line in out.splitlines() if line.startswith("0.")]) == 6
    target = tmp_path / "design.csv"
    code, out, _ = run(
        "doe", "--kind", "lhs", "--factors", factors, "--n", 6, "--seed", 3, "--out", target
    )
    assert code == 0
    with target.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6
    assert {int((float(row["rate"]) - 0.1) / 0.8 * 6) for row in rows} == set(range(6))
    code, out, _ = run("doe", "--kind", "frac2", "--factors", factors, "--json")
    design = json.loads(out)
    assert design["ok"] is True
    assert design["summary"]["n_runs"] == 4


def test_doe_reads_factors_from_a_file_and_options_by_name(run, write):
    write(json.dumps({name: [0, 1] for name in "abcdef"}), "factors.json")
    arguments = ["doe", "--kind", "frac2", "--factors", "@factors.json"]
    code, out, _ = run(*arguments, "--option", "resolution=V", "--json")
    assert code == 0
    assert json.loads(out)["summary"]["n_runs"] == 32


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--kind", "lhs", "--factors", "{"], "--factors: not valid JSON"),
        (["--kind", "lhs", "--factors", "[1]", "--n", 3], "factors"),
        (["--kind", "lhs", "--factors", '{"x": [0, 1]}'], "n"),
        (["--kind", "lhs", "--factors", '{"x": ["a", "b"]}', "--n", 3], "x"),
        (["--kind", "nope", "--factors", '{"x": [0, 1]}'], "nope"),
        (["--kind", "lsh", "--factors", '{"x": [0, 1]}'], "lsh"),
        (["--kind", "full", "--factors", '{"x": [1, 2], "x": [3]}'], "the key stands here twice"),
        (["--kind", "full", "--factors", "@nowhere.json"], "nowhere.json: no such file"),
        (["--kind", "full", "--factors", '{"x": [1]}', "--option", "y"], "expected NAME=VALUE"),
        (["--kind", "full", "--factors", '{"x": [1]}', "--option", "y=1"], "unknown key"),
        (["--kind", "full", "--factors", '{"x": [1]}', "--seed", "one"], "--seed"),
        (["--kind", "full", "--factors", '{"x": [NaN]}'], "finite"),
        (["--factors", '{"x": [1]}'], "--kind"),
    ],
)
def test_doe_refuses_bad_input_with_exit_2(run, arguments, says):
    code, out, err = run("doe", *arguments)
    assert code == 2
    assert says in err
    assert out == ""
    code, out, _ = run("doe", *arguments, "--json")
    assert code == 2
    assert json.loads(out)["ok"] is False


def test_init_gives_a_study_that_is_checked_planned_run_and_reported(run, tmp_path):
    code, out, _ = run("init")
    assert code == 0
    assert "wrote study.yaml and study_agents.py" in out
    assert "fairtrial run study.yaml" in out
    text = (tmp_path / "study.yaml").read_text("utf-8")
    assert text.count("#") > 10
    code, _, err = run("check", "study.yaml")
    assert (code, err) == (0, "")
    code, out, _ = run("plan", "study.yaml", "--json")
    power = json.loads(out)["power"][0]["power"]
    assert power > 0.8, "a starter should show a plan that can find what it looks for"
    assert run("run", "study.yaml")[0] == 0
    folder = re.search(r"fairtrial report (\S+)", text)[1]
    code, out, _ = run("report", folder)
    assert code == 0
    assert "**supported**" in out


def test_init_never_overwrites(run, tmp_path):
    study, agents = tmp_path / "study.yaml", tmp_path / "study_agents.py"
    run("init")
    study.write_text("mine")
    agents.write_text("mine")
    code, _, err = run("init")
    assert code == 2
    assert "--force" in err
    assert study.read_text() == "mine"
    code, out, _ = run("init", "--force")
    assert code == 0
    assert "study_agents.py exists already" in out
    assert agents.read_text() == "mine"
    assert study.read_text() != "mine"


def test_init_names_the_agents_after_the_study(run, tmp_path):
    _, out, _ = run("init", "other/my study-2.yaml", "--json")
    expected = {"written": "other/my study-2.yaml", "agents": "other/my_study_2_agents.py"}
    assert json.loads(out) == {"ok": True, **expected}
    assert "my study-2.yaml" in (tmp_path / expected["agents"]).read_text("utf-8")
    assert "study_agents:" not in (tmp_path / expected["written"]).read_text("utf-8")
    assert run("run", expected["written"], "--limit", "2")[0] == 0
    _, out, _ = run("init", "other/my study-2.yaml", "--force", "--json")
    assert json.loads(out)["agents"] is None


def test_the_starters_agents_are_well_formed():
    source = (Path(init.__file__).parent / "starter_agents.txt").read_text("utf-8")
    compile(source, "study_agents.py", "exec")
    assert max(map(len, source.splitlines())) <= 100


@pytest.mark.parametrize(("path", "says"), [(".", "is a directory"), ("x.txt", ".yaml")])
def test_init_refuses_a_place_it_cannot_use(run, path, says):
    code, _, err = run("init", path)
    assert code == 2
    assert says in err


def test_init_can_start_from_every_recipe(run):
    assert len(init.RECIPES) == 9
    for name in init.RECIPES:
        assert run("init", f"{name}.yaml", "--recipe", name)[0] == 0
        assert "null" not in Path(f"{name}.yaml").read_text("utf-8")
        assert run("check", f"{name}.yaml")[0] == 0


def test_schema_prints_and_writes_the_same_schema(run, tmp_path):
    code, out, _ = run("schema")
    assert code == 0
    schema = json.loads(out)
    assert run("schema", "--out", "study.schema.json")[0] == 0
    assert json.loads((tmp_path / "study.schema.json").read_text("utf-8")) == schema


def test_a_bug_in_fairtrial_is_exit_1_with_a_request_to_report_it(run, monkeypatch):
    def explode(*args, **kwargs):
        raise RuntimeError("kaboom")

    monkeypatch.setattr(files, "read_study", explode)
    code, _, err = run("check", EXAMPLE)
    assert code == 1
    assert "kaboom" in err
    assert "bug in fairtrial" in err


def test_an_interrupt_is_exit_130(run, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "read_study", interrupt)
    code, _, err = run("check", EXAMPLE)
    assert code == 130
    assert err.endswith("interrupted\n")


def test_the_message_of_an_interrupt_is_wrapped_on_a_terminal(run, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt("what was done is kept")

    monkeypatch.setattr(files, "read_study", interrupt)
    assert run("check", EXAMPLE)[2].endswith("interrupted; what was done is kept\n")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "25")
    assert run("check", EXAMPLE)[2].endswith("interrupted; what was\n  done is kept\n")


def test_a_reader_that_leaves_early_is_no_error():
    script = Path(sys.executable).with_name("fairtrial")
    pipeline = f"'{script}' plan '{EXAMPLE}' --json | head -1; exit ${{PIPESTATUS[0]}}"
    shown = subprocess.run(["bash", "-c", pipeline], capture_output=True, text=True, check=False)
    assert shown.stdout == "{\n"
    assert shown.stderr == ""
    assert shown.returncode in (0, -13, 141)


def test_the_starter_study_shows_ties_constraints_and_hypotheses(run, tmp_path):
    run("init")
    study = Study.from_yaml(tmp_path / "study.yaml")
    assert study.factors[3].tied_to == "model"
    assert study.constraints
    assert study.hypotheses[0].minimum_effect_of_interest


def test_kept_runs_are_counted_as_by_their_ids():
    def plan(**change):
        fields = {
            "factors": (Factor("x", levels=(1, 2, 3)), Factor("agent", levels=("a", "b"))),
            "constraints": (Constraint("c", "", expression="x != 3"),),
            "problem_ids": ("p", "q"),
            "run_budget": RunBudget(replicates=3),
        }
        return summarize_plan(Study("s", "t", **{**fields, **change}))

    def ids(plan):
        return {run.run_id for run in plan_runs(plan.study, plan.conditions)}

    plans = [
        plan(),
        plan(run_budget=RunBudget(replicates=2)),
        plan(problem_ids=("q", "r")),
        plan(constraints=()),
        plan(factors=(Factor("x", levels=(2, 1)), Factor("agent", levels=("b", "c")))),
        plan(factors=(Factor("x", levels=(1, 2)),), agent_specs=("a",)),
        plan(condition_runner="m:f"),
        summarize_plan(replace(plan().study, study_id="other")),
    ]
    for new, old in itertools.product(plans, repeat=2):
        assert new.compare_with(old)["runs"] == {
            "kept": len(ids(new) & ids(old)),
            "new": len(ids(new) - ids(old)),
            "dropped": len(ids(old) - ids(new)),
        }
