"""Text for people: table widths, names, hints, and files that must not be overwritten."""

import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from fairtrial import load_study
from fairtrial.cli import table
from fairtrial.cli.output import print_facts
from fairtrial.study.files import read_study

SCRIPT = Path(sys.executable).with_name("fairtrial")
PROMPTS = {
    "study_id": "s",
    "title": "t",
    "factors": [
        {
            "name": "prompt",
            "levels": [
                {"name": "bare", "value": "Summarise this."},
                {
                    "name": "role",
                    "value": "You are an editor.\nSummarise this " + "at length " * 20,
                },
            ],
        },
        {"name": "model", "levels": ["tiny", "大きい"]},
    ],
    "constraints": [{"constraint_id": "rule", "expression": "prompt[0] != 'Y' or model != 'tiny'"}],
    "blocks": [{"name": "language", "levels": ["en", "de"]}],
}


@pytest.fixture
def terminal(monkeypatch):
    """Make standard output a terminal of a given width."""

    def terminal(columns):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)

    return terminal


def wide_study(factors):
    names = [f"switch_number_{i:02}" for i in range(factors)]
    listed = [{"name": name, "levels": ["off", "on"]} for name in names]
    return {"study_id": "s", "title": "t", "factors": listed, "design_spec": {"kind": "pb"}}


def test_levels_go_by_their_names_in_the_table_and_in_the_balance(run, write):
    code, out, _ = run("plan", write(PROMPTS))
    assert code == 0
    assert "You are an editor" not in out
    assert re.search(r"^cond-\w+  en        role    大きい$", out, re.M)
    assert "prompt: bare in 4 conditions, role in 2" in out
    assert "prompt=role with model=tiny never runs (rule)" in out


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
@pytest.mark.parametrize("factors", [3, 30])
def test_no_line_of_a_plan_is_wider_than_the_terminal(run, write, terminal, columns, factors):
    path = write(wide_study(factors))
    terminal(columns)
    code, out, _ = run("plan", path)
    assert code == 0
    assert max(map(len, out.splitlines())) <= columns
    header = next(line for line in out.splitlines() if "switch" in line)
    # Names are cut in the middle: their ends tell them apart.
    assert len(set(header.split())) == len(header.split())
    if factors == 30:
        assert "columns that don't fit (condition, switch_number_" in " ".join(out.split())


def test_the_remark_stays_where_other_columns_go(run, write, terminal):
    study = wide_study(12)
    rule = {"constraint_id": "only-off", "expression": 'switch_number_00 == "off"'}
    path = write({**study, "constraints": [rule]})
    terminal(60)
    code, out, _ = run("plan", path)
    assert code == 0
    assert "remark" in out
    assert "never ru" in out
    assert "switch_number_11" not in out


def test_wide_letters_take_two_columns(capsys):
    table.print_table(["a", "b"], [["大きい", 1], ["tiny", 2]], total=2)
    assert capsys.readouterr().out.splitlines()[2:] == ["大きい  1", "tiny    2"]


def test_long_fractions_are_rounded_for_people_only(run, tmp_path):
    arguments = ["doe", "--kind", "lhs", "--factors", '{"x": [0, 1]}', "--n", 3]
    _, shown, _ = run(*arguments)
    assert not re.search(r"\d\.\d{7}", shown)
    run(*arguments, "--out", "d.csv")
    assert re.search(r"\d\.\d{12}", (tmp_path / "d.csv").read_text())


def test_colours_are_for_terminals_that_want_them(tmp_path):
    def ask(**environment):
        parent, child = pty.openpty()
        env = {**os.environ, "TERM": "xterm", **environment}
        subprocess.run([SCRIPT, "check", "nowhere.yaml"], stderr=child, env=env, check=False)
        os.close(child)
        shown = b""
        with suppress(OSError):  # nothing more, and the other end is closed
            while data := os.read(parent, 4096):
                shown += data
        os.close(parent)
        assert b"no such file" in shown
        return shown

    assert b"\x1b[" in ask(NO_COLOR="")
    assert b"\x1b[" not in ask(NO_COLOR="1")


def test_python_m_is_the_same_command():
    shown = subprocess.run(
        [sys.executable, "-m", "fairtrial", "--version"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.startswith("fairtrial, version")


def test_a_reader_that_leaves_in_the_middle_is_no_error(write):
    path = write(wide_study(3))
    pipeline = f"'{SCRIPT}' plan '{path}' | exec 0<&-; exit ${{PIPESTATUS[0]}}"
    shown = subprocess.run(["bash", "-c", pipeline], capture_output=True, check=False)
    assert (shown.returncode, shown.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux only")
def test_a_full_disk_is_not_our_bug(write):
    with Path("/dev/full").open("w") as full:
        shown = subprocess.run(
            [SCRIPT, "plan", write(wide_study(3))], stdout=full, stderr=-1, text=True, check=False
        )
    assert shown.returncode == 2
    assert shown.stderr.startswith("error: the output can't be written")


def test_plan_never_replaces_what_it_reads_or_what_it_has_written(run, write, tmp_path):
    study = '{"study_id": "s", "title": "t"}'
    path, old = write(study, "study.json"), write(study, "old.json")
    for option in ("--out", "--runs"):
        for target in (path, tmp_path / "../" / tmp_path.name / "study.json"):
            code, _, err = run("plan", path, option, target)
            assert code == 2
            assert f"{option}: {target} is an input of this command" in err
        assert run("plan", path, "--against", old, option, old)[0] == 2
    code, _, err = run("plan", path, "--out", "x.csv", "--runs", "./x.csv")
    assert code == 2
    assert "--runs: x.csv is also the file of --out" in err
    assert path.read_text() == old.read_text() == study
    write('{"x": [1, 2]}', "f.json")
    assert run("doe", "--kind", "full", "--factors", "@f.json", "--out", "f.json")[0] == 2


def test_doe_speaks_of_what_was_typed(run, write):
    def error(*arguments):
        code, _, err = run("doe", *arguments)
        assert code == 2
        return err

    x = '{"x": [0, 1]}'
    assert "error: --n: latin_hypercube needs" in error("--kind", "lhs", "--factors", x)
    assert "error: --kind: there is no" in error("--kind", "nope", "--factors", x)
    assert "error: --option y: unknown" in error(
        "--kind", "full", "--factors", x, "--option", "y=1"
    )
    assert "error: --factors x: " in error("--kind", "pb", "--factors", '{"x": [0, 1, 2]}')
    assert "@f.json reads a file" in error("--kind", "full", "--factors", "f.json")
    assert "f.json: no such file" in error("--kind", "full", "--factors", "@f.json")


def test_one_of_a_thing_is_not_many(run, write):
    path = write({"study_id": "s", "title": "t"})
    assert run("check", path)[1].endswith("no mistakes; 1 condition, 1 run\n")
    shown = run("plan", path)[1]
    assert "full_factorial: 1 condition\n" in shown
    assert "balance" not in shown


def test_a_tie_takes_one_line_of_the_balance(run, write):
    factors = [
        {"name": "model", "levels": ["a", "b"]},
        {"name": "limit", "levels": [1, 2], "tied_to": "model"},
        {"name": "style", "levels": ["x", "y"]},
    ]
    rule = {"constraint_id": "r", "expression": 'not (model == "a" and style == "x")'}
    study = {"study_id": "s", "title": "t", "factors": factors}
    shown = run("plan", write({**study, "constraints": [rule]}))[1]
    lines = [line for line in shown.splitlines() if "limit" in line and "balance" in line]
    assert lines == ["balance  limit moves with model: their effects can't be told apart"]
    shown = run("plan", write(study))[1]
    assert "every level occurs equally often; no others go together" in shown


def test_power_is_said_in_plain_words_or_what_it_needs(run, write):
    claim = {"hypothesis_id": "h", "label": "l", "statement": "s", "independent_vars": ["x"]}
    study = {
        "study_id": "s",
        "title": "t",
        "factors": [{"name": "x", "levels": ["a", "b"]}],
        "outcomes": [{"name": "y"}],
        "run_budget": {"replicates": 20},
    }
    shown = run("plan", write({**study, "hypotheses": [claim]}))[1]
    assert "power    h: unknown without a minimum_effect_of_interest" in shown
    claim |= {"minimum_effect_of_interest": 0.5, "dependent_vars": ["y"]}
    shown = run("plan", write({**study, "hypotheses": [claim]}))[1]
    assert "power    h (x on y): 0.34 by" in shown
    assert "about 34 of 100 such studies would find it" in shown
    assert "runs: 20 with a, 20 with b" in shown


def test_facts_are_explained_and_folded(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    print_facts({"runs": 8, "resolution": "IV", "aliases": ["a × b = c × d"], "words": []})
    shown = capsys.readouterr().out
    assert re.search(r"^rows +8$", shown, re.M)
    assert "IV: main effects are clear of" in shown
    assert re.search(r"^can't be told apart  a × b = c × d$", shown, re.M)
    assert re.search(r"^words +none$", shown, re.M)
    assert max(map(len, shown.splitlines())) <= 60


def test_a_recipe_may_be_json_and_the_starter_not(run):
    assert run("init", "r.json", "--recipe", "prompt-framing")[0] == 0
    assert run("check", "r.json")[0] == 0
    code, _, err = run("init", "s.json")
    assert code == 2
    assert "end the name in .yaml" in err


RULES = {
    'prompt != "role"': "'role' is the name of a level of 'prompt'",
    'prompt in ["Do it.", "x"]': "'prompt' never is the text 'x'",
    '"Small" != model': "'model' never is the text 'Small'; did you mean 'small'?",
    'factors["size"] != "1"': "'size' never is the text '1'; write 1 unquoted",
    "factors.version != 2": "'version' never is the number 2; write '2' in quotes",
    "size != 3": "'size' never is the number 3; known: 1, 2",
    'blocks.language != "fr"': "'language' never is the text 'fr'; known: en, de",
}
FACTORS = (
    "study_id: s\ntitle: t\nfactors:\n"
    "- name: prompt\n  levels: [{name: bare, value: Do it.}, {name: role, value: Act as one.}]\n"
    "- {name: model, levels: [small, large]}\n"
    "- {name: size, levels: [1, 2]}\n"
    "- {name: version, levels: ['1', '2']}\n"
    "- {name: extra, levels: [true, false], when: size != 2, default: none}\n"
    "blocks: [{name: language, levels: [en, de]}]\n"
    "design_spec: {kind: DESIGN}\n"
)


@pytest.mark.parametrize("rule", RULES)
def test_a_comparison_that_is_never_met_gets_a_warning_with_its_line(write, rule):
    rules = [{"constraint_id": "c", "expression": rule}]
    text = FACTORS.replace("DESIGN", "full") + yaml.safe_dump({"constraints": rules}, width=999)
    loaded = read_study(write(text))
    warnings = [line for line in loaded.warning_lines() if RULES[rule] in line]
    assert len(warnings) == 1
    assert re.search(r"study\.yaml:\d+: constraints\[0\]\.expression: ", warnings[0])
    with pytest.warns(UserWarning, match=re.escape(RULES[rule])):
        load_study(write(text))


@pytest.mark.parametrize(
    "rule",
    [
        'prompt != "Do it." or model == "small"',
        "size != 1.0 and size < 5 and size in [1, 2]",
        'extra is None or extra == True or extra == "none"',
        'len(prompt) == 6 or size * 2 == 7 or language == "en"',
    ],
)
def test_a_comparison_that_can_be_met_gets_none(write, rule):
    rules = [{"constraint_id": "c", "expression": rule, "severity": "warning"}]
    text = FACTORS.replace("DESIGN", "full") + yaml.safe_dump({"constraints": rules})
    assert not [line for line in read_study(write(text)).warning_lines() if "constraints" in line]


def test_a_range_may_be_compared_with_anything_between(write):
    text = (
        "study_id: s\ntitle: t\nfactors: [{name: x, levels: [0, 1]}]\n"
        "design_spec: {kind: lhs, n_samples: 4}\n"
        "constraints: [{constraint_id: c, expression: x != 0.5}]\n"
    )
    assert read_study(write(text)).warning_lines() == []


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("outcomes: accuracy", "expected a list, got the text 'accuracy'; put it in [ ]"),
        ("outcomes: {name: a}", "expected a list, got a mapping; each item of a list begins with"),
        ("run_budget: {timeout_s: 10m}", "got the text '10m'; a number stands without a unit"),
        ("run_budget: {replicates: '5'}", "got the text '5'; a number stands without quotes"),
        ("tags: [*.py]", "a text that begins with * needs quotes"),
        ("run_budget: {replicates: 5\ntags: [a]", "a bracket is not closed"),
        ("constraints: [{constraint_id: c, expression: x = 1}]", "for `=` write `==`"),
        ("constraints: [{constraint_id: c, expression: x >= 1 && x}]", "for `&&` write `and`"),
        ("constraints: [{constraint_id: c, expression: x == a}]", 'a text needs quotes: "a"'),
    ],
)
def test_common_mistakes_have_a_hint_that_corrects_them(run, write, line, says):
    path = write(f"study_id: s\ntitle: t\nfactors: [{{name: x, levels: [1, 2]}}]\n{line}\n")
    code, _, err = run("check", path)
    assert code == 2
    assert says in err


def test_an_unknown_word_of_few_is_answered_once(run, write):
    text = "study_id: s\ntitle: t\nhypotheses: [{hypothesis_id: h, label: l, statement: s, "
    _, _, err = run("check", write(text + "direction: bigger}]\n"))
    assert err.count("equivalent") == 1


@pytest.mark.parametrize(("mark", "called"), [(";", "semicolons"), ("\t", "tabs")])
def test_a_matrix_from_a_spreadsheet_has_a_hint_about_separators(run, write, mark, called):
    text = "study_id: s\ntitle: t\nfactors: [{name: x, levels: [1]}, {name: y, levels: [1]}]\n"
    path = write(text + "design_spec: {kind: custom_matrix, matrix_path: m.csv}\n")
    _, _, err = run("check", path)
    assert err.rstrip().endswith("or in the working directory")
    write(f"\ufeffx{mark}y\n1{mark}1\n", "m.csv")
    _, _, err = run("check", path)
    assert f"separate the columns by commas, not by {called}" in err


def test_a_constraints_whole_id_is_in_the_remark(run, write):
    rules = [
        {"constraint_id": "v2:big: no", "description": "a: b", "expression": "model != 'tiny'"},
        {"constraint_id": "rule", "expression": "model != 'tiny'"},
    ]
    _, out, _ = run("plan", write({**PROMPTS, "constraints": rules}))
    assert "never runs: v2:big: no, rule" in out
