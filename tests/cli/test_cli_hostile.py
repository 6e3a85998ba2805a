"""Hostile or malformed input gives one error message and exit code 2."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fault_stage_kit import Stage

pytest_plugins = ("fault_fixtures",)
STUDY = "study_id: s\ntitle: t\nfactors:\n- {name: x, levels: [1, 2]}\n"
COMMAND = [sys.executable, "-c", "from fairtrial.cli.main import main; main()"]
# The same, but that it gets a signal when it has begun to write.
STOPPED = """
import os, signal
from fairtrial.cli.main import main
from fairtrial.study.report import plan_summary
plan_rows = plan_summary.plan_rows
def stop_in_the_middle(*given):
    for number, row in enumerate(plan_rows(*given)):
        if number == 1000:
            assert any(name.endswith(".part") for name in os.listdir())
            os.kill(os.getpid(), signal.Signals[os.environ["STOP"]])
        yield row
plan_summary.plan_rows = stop_in_the_middle
main()
"""
LONG = "x" * 300
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs what Linux has")


@pytest.fixture
def run(tmp_path, zygote, tmp_path_factory):
    """Run the command in its own process: a new interpreter if its streams are given."""
    (tmp_path / "s.yaml").write_text(STUDY)
    stage = Stage(tmp_path_factory.mktemp("stage"), zygote)

    def run(*arguments, **settings):
        if not settings:
            ended = stage.start(*arguments, folder=tmp_path).wait()
            assert "Traceback" not in ended.err
            return subprocess.CompletedProcess(arguments, ended.code, ended.out, ended.err)
        settings = {"timeout": 60, "cwd": tmp_path, "stdin": subprocess.DEVNULL, **settings}
        settings = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **settings}
        shown = subprocess.run([*COMMAND, *arguments], check=False, text=True, **settings)
        assert "Traceback" not in (shown.stderr or "")
        return shown

    return run


def doe(factors, *more):
    return ["doe", "--kind", "full", "--factors", factors, *more]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["plan", "s.yaml", "--out", f"{LONG}.csv"], "File name too long"),
        (["init", f"{LONG}.yaml"], "File name too long"),
        (["schema", "--out", LONG], "File name too long"),
        (["schema", "--out", "/"], "/: can't be written"),
        (["schema", "--out", "s.yaml/x.json"], "is not a folder"),
        (["plan", "s.yaml", "--out", "loop.csv"], ""),
        (doe("@/dev/zero"), "larger than 50 MB"),
        (doe('{"a": ["\\ud800"]}'), "half of a surrogate pair"),
        (doe('{"\\ud800": [1]}', "--json"), "half of a surrogate pair"),
        (doe('{"a": [' + "[" * 900 + "]" * 900 + "]}"), "nested more than 100 deep"),
        (doe('{"a": [' + "9" * 5_000 + "]}"), "too many digits"),
        (doe('{"a": [1]}', "--option", "y=" + "[" * 100_000), "unknown key"),
        (doe(json.dumps({f"f{i}": [0, 1] for i in range(5_000)})), "some 10^1505 conditions"),
    ],
)
def test_hostile_arguments_are_bad_input_and_nothing_else(run, tmp_path, arguments, says):
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    before = sorted(tmp_path.iterdir())
    shown = run(*arguments)
    assert shown.returncode == (2 if says else 0)
    assert says in shown.stderr + shown.stdout
    assert sorted(tmp_path.iterdir()) == before


def test_of_very_many_mistakes_the_first_are_shown(run, tmp_path):
    (tmp_path / "s.yaml").write_text(STUDY + "".join(f"k{i}: 1\n" for i in range(5_000)))
    shown = run("check", "s.yaml")
    assert shown.returncode == 2
    assert shown.stderr.endswith("5,000 mistakes; the first 100 are shown\n")
    assert len(shown.stderr.splitlines()) == 101
    assert len(json.loads(run("check", "s.yaml", "--json").stdout)["mistakes"]) == 5_000


def test_a_file_can_not_write_to_the_terminal_beyond_its_line(run, tmp_path):
    text = STUDY.replace("title: t", r'title: "a\e[2J\nb"').replace("name: x", r'name: "x\e[1m"')
    (tmp_path / "s.yaml").write_text(text)
    shown = run("plan", "s.yaml")
    assert shown.returncode == 0
    assert r"s: a\x1b[2J\nb" in shown.stdout
    assert "\x1b" not in shown.stdout
    (tmp_path / "s.yaml").write_text(STUDY + '"a\\e[2J\\nerror: b": 1\n')
    shown = run("check", "s.yaml")
    assert shown.returncode == 2
    assert len(shown.stderr.splitlines()) == 1
    assert "\x1b" not in shown.stderr


def test_a_level_of_a_million_characters_is_shown_by_its_beginning(run, tmp_path):
    (tmp_path / "s.yaml").write_text(STUDY.replace("[1, 2]", f"[{'y' * 1_000_000}, 2]"))
    shown = run("plan", "s.yaml")
    assert shown.returncode == 0
    assert len(shown.stdout) < 10_000


@linux
def test_a_plan_too_large_for_the_memory_is_refused(run, tmp_path):
    resource = pytest.importorskip("resource")
    text = "design_spec: {kind: lhs, n_samples: 10000000, max_conditions: 10000000}\n"
    (tmp_path / "s.yaml").write_text(STUDY + text)
    limit = 256 * 1024**2
    shown = run(
        "plan",
        "s.yaml",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert shown.returncode == 2
    assert "more memory than there is" in shown.stderr


@pytest.mark.parametrize("arguments", [["plan", "s.yaml"], ["plan", "s.yaml", "--json"]])
def test_closed_output_is_no_crash(run, arguments):
    assert run(*arguments, preexec_fn=lambda: os.close(1)).returncode == 0
    assert run("check", "nowhere.yaml", preexec_fn=lambda: os.close(2)).returncode == 2


@linux
def test_a_full_disk_behind_the_output_is_no_crash(run):
    with Path("/dev/full").open("w") as full:
        assert run("check", "nowhere.yaml", stderr=full).returncode == 2
        assert run("check", "nowhere.yaml", "--json", stdout=full).returncode == 2
        assert run("plan", "s.yaml", stdout=full).returncode == 2


@pytest.mark.parametrize(
    ("stop", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_a_plan_that_is_stopped_while_it_writes_leaves_the_old_file(tmp_path, stop, code):
    (tmp_path / "s.yaml").write_text(f"{STUDY}run_budget: {{replicates: 2000}}\n")
    (tmp_path / "runs.csv").write_text("old")
    arguments = ["plan", "s.yaml", "--runs", "runs.csv"]
    child = subprocess.run(
        [sys.executable, "-c", STOPPED, *arguments],
        cwd=tmp_path,
        env={**os.environ, "STOP": stop.name},
        capture_output=True,
        timeout=60,
    )
    assert (child.returncode, b"Traceback" in child.stderr) == (code, False)
    assert (tmp_path / "runs.csv").read_text() == "old"
    left = [path.suffix for path in tmp_path.iterdir() if path.name not in ("s.yaml", "runs.csv")]
    assert left == ([] if stop == signal.SIGINT else [".part"])
