"""The demo's project: what its study and its record hold; real checks, a simulated clock."""

import csv
import json
import math
import random
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from clock_kit import make_session
from demo_recording import ANSWERS, EXAMPLE, LINEAGES, MOST_CANDIDATES, RECORD, copy_example
from llm_kit import KEY

from fairtrial import load_study
from fairtrial.arena import Arena, delivery
from fairtrial.arena.delivery import winner
from fairtrial.arena.timing.bench import SessionBatch
from fairtrial.optimize.proposers.replay import read_records
from fairtrial.sandbox import host_lock as quiet

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow
# By what a candidate's files hold: how long it takes, as a share of the base's time.
SHARES = {b"kept_set": 0.4, b"dict.fromkeys": 0.4, b"Counter(": 0.8, b"items_counts": 0.8}


class SimBench:
    """A bench whose sessions are a function of the candidate alone."""

    notes = ()

    async def run(self, changes, label, first, count, budget_s):
        text = b"".join(state.content for _, state in sorted(changes.files.items()))
        share = math.prod(each for sign, each in SHARES.items() if sign in text)
        batch = SessionBatch(seconds=0.01)
        for number in range(first, first + count):
            rng = random.Random(f"{changes.digest}/{label}/{number}")
            ratio = share * math.exp(rng.gauss(0, 0.005))
            batch.replicates.append((make_session(ratio, benchmark="summary", number=number),))
        return batch


@pytest.fixture
def project(tmp_path, monkeypatch):
    """The project in a repository of its own, with a change that isn't committed; no clock."""

    @asynccontextmanager
    async def bench(arena):
        yield SimBench()

    async def look(arena, changes):
        return None

    monkeypatch.setattr(quiet, "HOST_FOLDER", tmp_path)  # nothing is timed here
    monkeypatch.setattr(Arena, "bench", bench)
    monkeypatch.setattr(delivery, "check_again", look)  # these have tests of their own
    monkeypatch.setattr(winner, "measure_coverage", look)
    monkeypatch.setattr(winner, "profile_winner", look)
    return make_dirty(copy_example(tmp_path / "tidy"))


def make_dirty(folder):
    """What the demo does, by its own words."""
    (line,) = (line for line in demo_lines() if "__init__.py" in line)
    subprocess.run(
        ["sh", "-c", line.replace("artifacts/tidy/", "")], cwd=folder, check=True, timeout=60
    )
    return folder


def demo_lines():
    text = (ROOT / "Makefile").read_text("utf-8").partition("\ndemo:")[2].split("\n\n")[0]
    return [line.strip() for line in text.splitlines()[1:]]


def demo_commands(name):
    """The words after `fairtrial` of the demo's commands of that name."""
    words = [line.split()[1:] for line in demo_lines() if line.startswith("$(BIN)/fairtrial ")]
    return [each for each in words if each[0] == name]


def read_table(folder, name):
    with (folder / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_repair_and_combinations_each_find_what_the_other_cannot(run, project, tmp_path):
    study, problem = project / "study.yaml", project / "problem.yaml"
    study.write_text(study.read_text("utf-8").replace("replicates: 2", "replicates: 1"), "utf-8")
    text = problem.read_text("utf-8")  # the functions' checks find the same as the tests, sooner
    head, tests = text.split("  - command:")
    problem.write_text(head + tests.partition("timeout_s: 10\n")[2], "utf-8")
    code, _, shown = run("run", study, "--output", tmp_path / "out")
    assert code == 0, shown

    results = read_table(tmp_path / "out", "runs.csv")
    assert [row["status"] for row in results] == ["success"] * 4
    conditions = {
        row["condition_id"]: tuple(
            row[f"agents.opt.options.{name}"].lower() == "true"
            for name in ("repair", "proposer_options.combinations")
        )
        for row in read_table(tmp_path / "out", "conditions.csv")
    }
    where = {row["run_id"]: conditions[row["condition_id"]] for row in results}
    speedups = {
        where[row["run_id"]]: float(row["metric_value"])
        for row in read_table(tmp_path / "out", "evaluations.csv")
        if row["metric_name"] == "speedup"
    }
    neither, combined, repaired, both = (
        speedups[each] for each in ((False, False), (False, True), (True, False), (True, True))
    )
    assert neither == pytest.approx(1 / 0.8, rel=0.02)
    assert combined == pytest.approx(1 / 0.8, rel=0.02)
    assert repaired == pytest.approx(1 / 0.4, rel=0.02)
    assert both == pytest.approx(1 / 0.32, rel=0.02)

    best = subprocess.run(
        [sys.executable, project / "winner.py", tmp_path / "out"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert "+    kept_set = set()" in best
    assert "+    items_counts = {}" in best
    assert f"{both:.2f} times as fast as before, 95% interval" in best


def test_the_record_answers_all_that_is_asked_and_its_mistake_is_repaired(run, project, tmp_path):
    (words,) = demo_commands("optimize")
    assert words[words.index("--lineages") + 1] == str(LINEAGES)
    assert words[words.index("--max-candidates") + 1] == str(MOST_CANDIDATES)
    given = [word.replace("artifacts/tidy/", f"{project}/") for word in words]
    given[given.index("--output") + 1] = tmp_path / "out"
    code, shown, told = run(*given)
    assert code == 0, told
    assert "holds no answer" not in told
    assert "The best is 0.2" in shown

    rows = {row["candidate_id"]: row for row in read_table(tmp_path / "out", "candidates.csv")}
    assert rows["0.0"]["verdict"] == "rejected"
    assert (rows["0.1"]["kind"], rows["0.1"]["verdict"]) == ("repair", "faster")
    assert (rows["0.2"]["kind"], rows["0.2"]["parent_id"]) == ("refine", "0.1")
    assert (rows["1.0"]["kind"], rows["1.0"]["verdict"]) == ("initial", "faster")
    patch = (tmp_path / "out" / "best.patch").read_text("utf-8")
    assert "+    return list(dict.fromkeys(names))" in patch
    assert "__version__" not in patch  # what wasn't committed is part of the base
    git = ["git", "-C", project, "status", "--short"]
    status = subprocess.run(git, capture_output=True, text=True, timeout=60, check=True).stdout
    assert status == " M src/tidy/__init__.py\n"  # nobody else has touched the project
    subprocess.run(
        ["git", "-C", project, "apply", "--check", tmp_path / "out" / "best.patch"],
        timeout=60,
        check=True,
    )


def test_the_record_is_what_the_script_says():
    said = set()
    for record in read_records(RECORD).values():
        exchange = record["reply"]["exchange"]
        assert exchange
        said |= {
            text for text in ANSWERS.values() if json.dumps(text)[1:-1] in json.dumps(exchange)
        }
    assert said == set(ANSWERS.values())
    text = RECORD.read_text("utf-8")
    assert KEY not in text
    assert "Authorization" not in text
    assert str(ROOT) not in text


def test_the_study_is_two_by_two_with_two_replicates_and_four_slots():
    study = load_study(EXAMPLE / "study.yaml")
    assert [[level.value for level in factor.levels] for factor in study.factors] == [
        [False, True],
        [False, True],
    ]
    assert study.run_budget.replicates == 2
    assert study.agents["opt"].options["slots"] == 4
    assert {hypothesis.hypothesis_id for hypothesis in study.hypotheses} == {
        "repair",
        "combinations",
    }


def test_the_demo_ends_with_a_table_the_patch_and_where_the_reports_are():
    lines = demo_lines()
    ((_, study, *_),) = [each for each in demo_commands("run") if "tidy" in each[1]]
    assert study == "artifacts/tidy/study.yaml"
    places = [
        next(place for place, line in enumerate(lines) if sign in line)
        for sign in ("run artifacts/tidy/study.yaml", "report artifacts/tidy-study", "winner.py")
    ]
    assert places == sorted(places)
    assert any("artifacts/tidy-study/report.md" in line for line in lines[-4:])
    assert "artifacts/tidy-replayed/report.html" in lines[-2]
    assert "view artifacts" in lines[-1]
    assert all("--unsandboxed" in each for each in demo_commands("optimize"))
    assert load_study(EXAMPLE / "study.yaml").agents["opt"].options["unsandboxed"] is True
