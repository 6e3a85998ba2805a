"""Whole optimizations by a model behind a real endpoint: the key, the record, money, failures.

The clock is simulated (`optimize_kit`); the endpoint (`llm_kit`) answers by what it is asked, so
that it doesn't matter who comes first.
"""

import csv
import gc
import io
import json
import signal
import subprocess
import sys
import threading
from contextlib import closing, redirect_stderr, redirect_stdout

import pytest
from llm_kit import (
    KEY,
    KEY_VARIABLE,
    USAGE,
    echoes_key,
    events,
    hangs_up,
    says,
    serving,
    start_stream,
)
from optimize_desk import Desk
from optimize_kit import HERE, MODULE, PATIENCE_S, TREE, WORKING, OptimizeSite

from fairtrial.cli.main import main
from fairtrial.llm import Secret
from fairtrial.optimize import RequestKind
from fairtrial.optimize.optimizer import REPLIES
from fairtrial.study.ledger import LedgerReader

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WORKING, reason="no full sandbox works here"),
]

# It returns what it finds of the key, and so it fails: what it returned is told to who repairs it.
SPY = """\
def total(n):
    import glob, os
    texts = [repr(dict(os.environ))]
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            texts.append(open(path, errors="replace").read())
        except OSError:
            pass
    return f"keys: {sum('sk-kit' in each for each in texts)}, all of {len(texts) > 1}, and " + (
        "none is named" if 'LLM_KIT' not in str(texts) else "some are named"
    )
"""
SPIED = "keys: 0, all of True, and none is named"
CLEAR, COPIES = "Look for a better algorithm first", "Look first at what is copied"
"""What lineages 0 and 2 are told, and no others."""
WORDS = {
    RequestKind.INITIAL: "Propose one change",
    RequestKind.REPAIR: "This attempt is wrong",
    RequestKind.REFINE: "This attempt is right",
    RequestKind.ADAPT: "Several steps were made",
}
TOGETHER = "attempts are independent of each other"


def whole(text, note="Less work."):
    return f"{note}\n\nFILE: src/mod.py\n```python\n{text}```\n"


def prompt_of(seen):
    return seen.body["messages"][1]["content"]


def asked(server, words):
    """How often somebody was asked for that."""
    return sum(words in prompt_of(seen) for seen in server.seen)


def think(prompt):
    """Line 0 gets better and better, line 1 spies, is found out, and mends its ways."""
    if WORDS[RequestKind.INITIAL] in prompt:
        return whole(MODULE.format(16, 16) if CLEAR in prompt else SPY)
    if WORDS[RequestKind.REPAIR] in prompt:
        return whole(MODULE.format(24, 24))
    if WORDS[RequestKind.REFINE] in prompt and "range(16)" in prompt:
        return whole(MODULE.format(8, 8))
    return "NO CHANGE\nIt is as fast as it gets."


def think_together(prompt):
    """The same with a third line; of three that are to be refined it leaves out the second."""
    if TOGETHER in prompt:
        first, third = whole(MODULE.format(8, 8)), whole(MODULE.format(20, 20))
        return f"CANDIDATE 1\n{first}\nCANDIDATE 3\n{third}"
    if WORDS[RequestKind.INITIAL] in prompt and COPIES in prompt:
        return whole(MODULE.format(28, 28))
    if WORDS[RequestKind.REFINE] in prompt and "range(24)" in prompt:
        return whole(MODULE.format(12, 12))
    return think(prompt)


def model(usage=USAGE, think=think):
    def turn(handler, seen, server):
        says(think(prompt_of(seen)), usage)(handler, seen, server)

    return turn


def by_chat(server, *options):
    """The words of a command that asks this endpoint."""
    given = {
        "base_url": server.base_url,
        "model": "kit",
        "key_variable": KEY_VARIABLE,
        "backoff_s": 0.001,
        "longest_wait_s": 0.01,
        "retries": 1,
        "prices": {"kit": [2, 10]},
    }
    pairs = [f"{name}={json.dumps(value)}" for name, value in given.items()]
    return ("--agent", "chat", *(each for pair in pairs for each in ("--option", pair)), *options)


def make_desk(folder, patch):
    patch.setenv(KEY_VARIABLE, KEY)
    return Desk(OptimizeSite(folder, None), patch)


@pytest.fixture
def desk(tmp_path, monkeypatch):
    return make_desk(tmp_path, monkeypatch)


def cost_of_run(desk):
    """How the run ended, and what that has cost, by the table of runs."""
    with (desk.site.folder / "out/runs.csv").open(newline="") as file:
        [run] = csv.DictReader(file)
    return run["status"], float(run["cost_usd"])


def tree_of(folder):
    with (folder / "candidates.csv").open(newline="") as file:
        return [tuple(row[name] for name in TREE) for row in csv.DictReader(file)]


def assert_no_key(folder, *texts):
    """Neither in texts nor in any file, in whatever form."""
    forms = [form.encode() for form in {*Secret("", KEY)._forms(), KEY[:12]}]
    gc.collect()  # a ledger that is still open has files that come and go
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    assert any(path.name == "ledger.sqlite" for path in files)
    pieces = {str(path): path.read_bytes() for path in files}
    pieces |= {f"text {number}": text.encode() for number, text in enumerate(texts)}
    assert [name for name, data in pieces.items() if any(form in data for form in forms)] == []


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """An optimization by an endpoint that first repeats the key; what it said and was asked."""
    with pytest.MonkeyPatch.context() as patch:
        desk = make_desk(tmp_path_factory.mktemp("chat"), patch)
        with serving(echoes_key(500), otherwise=model()) as server:
            said = desk.optimize("--lineages", "2", asking=by_chat(server))
        patch.delenv(KEY_VARIABLE)
        yield desk, said, server


def test_a_model_repairs_and_refines(finished):
    desk, (code, out, err), server = finished
    assert code == 0, err
    assert "The best is 0.1: 3.999x [" in out
    tree = [(row[0], row[4], row[8]) for row in tree_of(desk.site.folder / "out")]
    assert tree == [
        ("0.0", "initial", "faster"),
        ("0.1", "refine", "faster"),
        ("1.0", "initial", "rejected"),
        ("1.1", "repair", "faster"),
    ]
    # The first was refused once; both lineages are refined, and lineage 0 is adapted at last.
    told = {kind.value: asked(server, words) for kind, words in WORDS.items()}
    assert told == {"initial": 3, "repair": 1, "refine": 2, "adapt": 1}
    assert cost_of_run(desk) == ("success", pytest.approx(6 * 0.004))


def test_the_key_is_nowhere(finished):
    desk, (_, out, err), server = finished
    assert all(seen.headers["authorization"] == f"Bearer {KEY}" for seen in server.seen)
    assert all(KEY not in json.dumps(seen.body) for seen in server.seen)
    [mended] = [
        prompt_of(seen) for seen in server.seen if WORDS[RequestKind.REPAIR] in prompt_of(seen)
    ]
    assert SPIED in mended, "this is what the candidate's process found"
    # All folders: results and ledger, the project, homes, temporary files, caches, locks.
    assert_no_key(desk.site.folder, out, err)
    [record] = desk.site.folder.glob(f"out/workspaces/*/*/{REPLIES}")
    assert "[key removed]" in record.read_text(), "what the endpoint repeated was there"


def test_the_record_of_it_says_the_same_without_a_request(finished):
    desk, _, server = finished
    before = len(server.seen)
    [record] = desk.site.folder.glob(f"out/workspaces/*/*/{REPLIES}")
    asking = ("--agent", "replay", "--option", f"path={record}", "--lineages", "2")
    code, out, err = desk.optimize("--json", asking=asking, output="replayed")
    assert code == 0, err
    assert json.loads(out)["tokens"] == 6 * 1_200
    assert tree_of(desk.site.folder / "replayed") == tree_of(desk.site.folder / "out")
    assert len(server.seen) == before


def test_a_ceiling_ends_the_asking(desk):
    usage = {"prompt_tokens": 4_000, "completion_tokens": 800}
    with serving(otherwise=model(usage)) as server:
        code, out, err = desk.optimize(
            "--json", "--lineages", "1", "--max-cost", "0.016", asking=by_chat(server)
        )
    assert code == 0, err
    found = json.loads(out)
    assert len(server.seen) == 1
    assert (found["candidates"], found["cost_usd"]) == (1, pytest.approx(0.016))
    assert "money is used up" in found["why_over"]


def test_neighbors_are_refined_in_one_request_and_a_missing_one_separately(desk):
    folder = desk.site.folder
    with serving(otherwise=model(think=think_together)) as server:
        words = by_chat(server)[2:]
        pairs = [pair.partition("=") for pair in words if pair != "--option"]
        options = {name: json.loads(value) for name, _, value in pairs}
        optimize = {"proposer": "chat", "proposer_options": options, "lineages": 3}
        optimize |= {"batch_refine": 3, "refinements": 1}
        study = {
            "study_id": "s",
            "title": "Two at once",
            "agents": {"opt": {"use": "optimize", "options": optimize}},
            "problems": {"total": {"use": "code", "options": {"path": "repo/problem.yaml"}}},
            "agent_specs": ["opt"],
            "problem_ids": ["total"],
        }
        (folder / "study.yaml").write_text(json.dumps(study))
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stop:
            main(["run", str(folder / "study.yaml"), "--output", "out"])
        assert stop.value.code == 0, err.getvalue()
    assert asked(server, TOGETHER) == 1
    assert (asked(server, WORDS[RequestKind.REFINE]), len(server.seen)) == (1, 6)
    refined = {row[0]: row for row in tree_of(folder / "out") if row[4] == "refine"}
    assert {name: row[1] for name, row in refined.items()} == {
        "0.1": "0.0",
        "1.2": "1.1",
        "2.1": "2.0",
    }
    ratios = [float(row[9]) for row in refined.values()]
    assert ratios == pytest.approx([32 / 8, 32 / 12, 32 / 20], rel=0.02), "each got its own"
    assert_no_key(folder, out.getvalue(), err.getvalue())


# The command in a process of its own, with the kit's clock and lock.
COMMAND = f"""
import os, pathlib, sys
sys.path[:0] = [{str(HERE)!r}]
import optimize_kit
optimize_kit.quiet.HOST_FOLDER = pathlib.Path(os.environ["KIT_FOLDER"], "locks")
optimize_kit.simulate_clock()
optimize_kit.main()
"""


def kill_while_it_answers(desk, server, asking, start):
    """kill -9 in the midst of a stream."""
    words = ["optimize", str(desk.site.top / "problem.yaml"), *asking, "--output", "out"]
    argv, begun = [sys.executable, "-c", COMMAND, *words], threading.Event()

    def turn(handler, seen, server):
        start_stream(handler)
        handler.wfile.write(start)
        begun.set()
        server.is_closing.wait(PATIENCE_S)

    server.otherwise = turn
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        assert begun.wait(PATIENCE_S)
        process.kill()
    assert process.returncode == -signal.SIGKILL


def test_an_endpoint_that_breaks_down_and_a_kill_are_gone_on_with(desk):
    with serving(says(think(f"{WORDS[RequestKind.INITIAL]} {CLEAR}"))) as server:
        asking = by_chat(server, "--option", "stream=true", "--lineages", "1")
        server.otherwise = echoes_key(429)
        code, _, err = desk.optimize(asking=asking)
        assert code == 4
        assert "gave no answer (2 attempts): 429" in err
        assert "the same command continues where it stopped" in err
        assert (len(server.seen), asked(server, WORDS[RequestKind.REFINE])) == (3, 2)
        assert cost_of_run(desk) == ("broken", pytest.approx(0.004)), "one was answered"
        assert_no_key(desk.site.folder, err)

        start = b"".join(list(events(think(WORDS[RequestKind.REFINE])))[:4])
        server.otherwise = hangs_up(after=start)
        code, _, err = desk.optimize(asking=asking)
        assert code == 4
        assert "the stream ended early" in err
        assert "may be on the bill" in err
        assert (len(server.seen), asked(server, WORDS[RequestKind.REFINE])) == (5, 4)

        kill_while_it_answers(desk, server, asking, start)
        assert (len(server.seen), asked(server, WORDS[RequestKind.REFINE])) == (6, 5)

        server.otherwise = model()
        code, out, err = desk.optimize("--json", asking=asking)
        assert code == 0, err
        assert (len(server.seen), asked(server, WORDS[RequestKind.REFINE])) == (8, 6)
    found = json.loads(out)
    assert asked(server, WORDS[RequestKind.INITIAL]) == 1, (
        "what was answered is not asked for again"
    )
    assert (found["best"], found["candidates"]) == ("0.1", 2)
    assert found["tokens"] == 3 * 1_200
    assert cost_of_run(desk) == ("success", pytest.approx(3 * 0.004))
    with closing(LedgerReader.open(desk.site.folder / "out")) as reader:
        assert reader.summary().cost_usd == pytest.approx(3 * 0.004), "each attempt paid its own"
