"""Parts of a Ray cluster die while a study runs: nothing is lost, nothing is counted twice."""

import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import ray_kit as kit

from fairtrial import Study, open_results, run_study
from fairtrial.study import ledger
from fairtrial.study.runner.executors.ray_executor import Ray

ray = pytest.importorskip("ray")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def nodes():
    """One cluster for all tests of this module, with two working nodes."""
    nodes = kit.Nodes()
    yield nodes
    ray.shutdown()
    nodes.close()


@pytest.fixture
def study(tmp_path, monkeypatch):
    notes = tmp_path / "notes"
    notes.mkdir()
    monkeypatch.setenv("NOTES", str(notes))
    monkeypatch.setenv("PACE", "0.05")
    monkeypatch.chdir(tmp_path)
    yield kit.write_study(tmp_path / "study")
    sys.modules.pop("ray_agents", None)


@pytest.fixture
def serial_rows(study, tmp_path):
    """The rows of an undisturbed serial run."""
    list(run_study(Study.from_yaml(study), executor="serial", show_progress=False))
    rows = kit.read_rows(tmp_path / "artifacts" / "ray")
    shutil.rmtree(tmp_path / "artifacts")
    for note in (tmp_path / "notes").iterdir():
        note.unlink()
    return rows


def list_actors(tmp_path):
    return [int(path.name) for path in (tmp_path / "notes").iterdir()]


def run_with_fault(study, nodes, fault, **settings):
    """Run the study; after five results, `fault` is called with the fifth. Returns the results."""
    seen = []

    def watch(result):
        seen.append(result)
        if len(seen) == 5:
            fault(result)

    return list(
        run_study(
            Study.from_yaml(study),
            executor=Ray(nodes.address),
            on_result=watch,
            retry_wait_s=0.01,
            show_progress=False,
            **settings,
        )
    )


def check(tmp_path, serial_rows, folder="artifacts/ray"):
    """Check that the tables equal those of the serial run, and that no actor is left."""
    rows = kit.read_rows(tmp_path / folder)
    assert len({row[0] for row in rows}) == len(rows) == 40
    assert rows == serial_rows
    kit.wait_until(lambda: not any(map(kit.is_running, list_actors(tmp_path))))


@pytest.mark.parametrize("victim", ["worker", "actor"])
def test_a_process_that_is_killed_costs_the_runs_under_way_only(
    study, tmp_path, nodes, serial_rows, victim
):
    nodes.refill()

    def kill(result):
        with suppress(ProcessLookupError):
            os.kill(result.outputs[victim], signal.SIGKILL)

    results = run_with_fault(study, nodes, kill)
    assert all("/fairtrial-node-" in result.outputs["file"] for result in results), "copies"
    check(tmp_path, serial_rows)


def test_a_node_that_is_killed_is_replaced_by_one_that_joins_late(
    study, tmp_path, nodes, serial_rows
):
    nodes.refill()

    def replace(_):
        os.kill(kit.raylet_pid(nodes.nodes[0]), signal.SIGKILL)
        nodes.nodes.append(nodes.add())

    run_with_fault(study, nodes, replace)
    assert len(list_actors(tmp_path)) >= 3
    check(tmp_path, serial_rows)


def test_a_node_that_hangs_is_given_up_and_does_no_harm_when_it_wakes(
    study, tmp_path, nodes, serial_rows, monkeypatch
):
    monkeypatch.setenv("PACE", "0.5")
    nodes.refill()
    paused = kit.raylet_pid(nodes.nodes[0])
    try:
        run_with_fault(study, nodes, lambda _: os.kill(paused, signal.SIGSTOP))
    finally:
        os.kill(paused, signal.SIGCONT)
    check(tmp_path, serial_rows)
    kit.wait_until(lambda: not kit.is_running(paused))


def test_a_study_waits_for_its_first_node(study, tmp_path, nodes, serial_rows):
    nodes.refill()
    for node in nodes.nodes:
        nodes.cluster.remove_node(node, allow_graceful=False)
    nodes.nodes.clear()
    driver = kit.start(
        tmp_path, "run", study, "--address", nodes.address, "--parallel", 2, "--output", "out"
    )
    kit.wait_until(lambda: (tmp_path / "out" / "ledger.sqlite").exists())
    assert driver.poll() is None
    nodes.refill()
    kit.finish(driver)
    check(tmp_path, serial_rows, "out")


def test_a_node_whose_disk_is_full_is_left_out(study, tmp_path, nodes, serial_rows, monkeypatch):
    """A node in whose folder for copies nothing can be written, as on a full disk."""
    nodes.refill(1)
    full = tmp_path / "full"
    full.write_text("no folder")
    monkeypatch.setenv("TMPDIR", str(full))
    bad = nodes.add()
    monkeypatch.delenv("TMPDIR")
    nodes.nodes.append(bad)
    try:
        hosts = run_with_fault(study, nodes, lambda _: None)
        assert hosts
        check(tmp_path, serial_rows)
    finally:
        nodes.nodes.remove(bad)
        nodes.cluster.remove_node(bad, allow_graceful=False)


@pytest.mark.parametrize("how", ["kill -9", "Ctrl-C", "Ctrl-C twice", "cancel"])
def test_a_driver_that_ends_leaves_no_actor_and_is_resumed(
    study, tmp_path, nodes, serial_rows, how, monkeypatch
):
    monkeypatch.setenv("PACE", "1")  # a command takes seconds to start on a busy machine
    nodes.refill()
    driver = kit.start(tmp_path, "run", study, "--address", nodes.address, "--output", "out")
    kit.wait_until(lambda: len(list_actors(tmp_path)) >= 2)
    if how == "kill -9":
        driver.kill()
        driver.communicate()
    elif how == "cancel":
        kit.finish(kit.start(tmp_path, "cancel", "out"))
        driver.communicate(timeout=kit.PATIENCE_S)
    else:
        os.killpg(driver.pid, signal.SIGINT)  # as a terminal does
        if how == "Ctrl-C twice":
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGINT)
        driver.communicate(timeout=kit.PATIENCE_S)
        assert driver.returncode == 130
    kit.wait_until(lambda: not any(map(kit.is_running, list_actors(tmp_path))))
    reader = ledger.LedgerReader.open(tmp_path / "out")
    before = reader.summary().counts.get("success", 0)
    reader.close()
    assert before < 40
    monkeypatch.setenv("PACE", "0.01")
    assert f"--address {nodes.address}" in kit.finish(kit.start(tmp_path, "resume", "out"))
    check(tmp_path, serial_rows, "out")


def test_limit_pause_and_status_are_as_ever(study, tmp_path, nodes, serial_rows, monkeypatch):
    monkeypatch.setenv("PACE", "2")
    nodes.refill()
    given = ("--address", nodes.address, "--output", "out", "--progress")
    driver = kit.start(tmp_path, "run", study, *given, "--limit", 8)
    kit.wait_until(lambda: len(list_actors(tmp_path)) >= 2)
    kit.finish(kit.start(tmp_path, "pause", "out"))

    def status():
        process = kit.start(tmp_path, "status", "out")
        return process.communicate(timeout=kit.PATIENCE_S)[0]

    kit.wait_until(lambda: "paused" in status())
    assert "2 workers on 2 nodes" in status()
    kit.finish(kit.start(tmp_path, "resume", "out"))
    kit.finish(driver)
    assert len(list(open_results(tmp_path / "out"))) == 8
    monkeypatch.setenv("PACE", "0.01")
    kit.finish(kit.start(tmp_path, "resume", "out"))
    check(tmp_path, serial_rows, "out")


@pytest.mark.parametrize(
    ("part", "number"),
    [
        ("gcs_server", signal.SIGKILL),
        ("gcs_server", signal.SIGSTOP),
        ("raylet", signal.SIGKILL),
    ],
    ids=["head service dies", "head service hangs", "driver's node dies"],
)
def test_the_head_node_is_lost_and_the_study_goes_on_with_another_cluster(
    study, tmp_path, serial_rows, part, number, monkeypatch
):
    monkeypatch.setenv("PACE", "1.5")
    own = kit.Nodes()
    process = own.cluster.head_node.all_processes[part][0].process.pid
    try:
        driver = kit.start(tmp_path, "run", study, "--address", own.address, "--output", "out")
        kit.wait_until(lambda: len(list_actors(tmp_path)) >= 2)
        os.kill(process, number)
        _, err = driver.communicate(timeout=2 * kit.PATIENCE_S)
        assert driver.returncode not in (0, 130)
        if part == "gcs_server":  # said before Ray ends the process
            assert driver.returncode == 4, err
            assert "the head node of the cluster" in err
            assert "Traceback" not in err
    finally:
        if number == signal.SIGSTOP:
            os.kill(process, signal.SIGCONT)
        own.close()
    kit.wait_until(lambda: not any(map(kit.is_running, list_actors(tmp_path))))
    monkeypatch.setenv("PACE", "0.01")
    kit.finish(kit.start(tmp_path, "resume", "out", "--executor", "ray", "--parallel", 2))
    check(tmp_path, serial_rows, "out")
    assert Path(tmp_path / "out" / "runs.csv").exists()
