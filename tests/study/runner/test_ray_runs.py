"""Studies on a Ray cluster: same tables as on one machine, whatever dies meanwhile."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from fairtrial import Study, open_results, run_study
from fairtrial.core import LabError
from fairtrial.study import ledger
from fairtrial.study.runner.executors import ray_cluster, ray_executor, ray_pool
from fairtrial.study.runner.executors.processes import Processes
from fairtrial.study.runner.executors.ray_executor import Ray
from fairtrial.study.runner.run_settings import RunSettings
from fairtrial.study.runner.session_settings import restore_settings
from fairtrial.testing.executor_driver import is_alive, run_all
from fairtrial.testing.executor_work import assign

ray = pytest.importorskip("ray")
PATIENCE_S = 60.0
SMALL = {"object_store_memory": 80 * 1024**2, "include_dashboard": False}
AGENTS = """
import os, pathlib, time

def draw(task):
    folder = pathlib.Path(__file__).parent / "pids"
    folder.mkdir(exist_ok=True)
    (folder / str(os.getppid())).touch()
    time.sleep(0.05)
    return {"value": task.rng.random(), "actor": os.getppid()}

def score(output):
    return output["value"]
"""
NEEDY = """
def tell(task):
    parent = pathlib.Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1]
    has_secret = os.environ.get("STUDY_SECRET", "") == "-".join(("hush", "9271"))
    return {"value": 1.0, "has_secret": has_secret, "node": parent}  # the raylet's pid
"""
ELSEWHERE = """
import socket
if os.environ["DRIVER"] != str(os.getpid()):  # in a worker
    socket.gethostname = lambda: "elsewhere"
"""
STUDY = """
study_id: ray
title: Ray
agents: {draw: "ray_agents:draw"}
problems: {p: {family: f, evaluator: "ray_agents:score"}}
agent_specs: [draw]
problem_ids: [p]
factors: [{name: x, levels: [{name: a, value: 1}, {name: b, value: 2}]}]
run_budget: {replicates: 20, retries: 20}
"""


class Elsewhere(Ray):
    """The executor `ray` as the ledger sees it, without a cluster."""

    def execute(self, work, feed, slots):
        return Processes("spawn").execute(work, feed, slots)


@pytest.fixture
def study(tmp_path):
    """A study of 40 runs; its agent leaves the pid of its actor in a folder."""
    (tmp_path / "ray_agents.py").write_text(AGENTS)
    (tmp_path / "ray.yaml").write_text(STUDY)
    yield tmp_path / "ray.yaml"
    sys.modules.pop("ray_agents", None)


@pytest.fixture
def cluster():
    """A head node without CPUs and two nodes with one each."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **SMALL})
    cluster.nodes = [
        cluster.add_node(num_cpus=1, object_store_memory=80 * 1024**2) for _ in range(2)
    ]
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def read_rows(folder):
    """Return run, seed, status and drawn value of each result, in the order of the tables."""
    return [
        (result.run_id, result.run_spec.seed, result.status, result.outputs["value"])
        for result in open_results(folder)
    ]


def wait_until(condition):
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.02)


def start(folder, *arguments):
    """Start a command in a process of its own."""
    program = "import sys; from fairtrial.cli.main import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", program, *map(str, arguments)]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, cwd=folder, start_new_session=True
    )


def finish(process):
    """Wait for a command that must succeed; returns its stderr."""
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    return err


def test_a_missing_ray_is_reported_before_anything_runs(run, study, monkeypatch):
    monkeypatch.setattr(ray_executor, "is_ray_installed", lambda: False)
    code, _, err = run("run", study, "--executor", "ray", "--dry-run")
    assert code == 2
    assert "pip install 'fairtrial[ray]'" in err


def test_results_equal_those_of_a_serial_run(study, tmp_path):
    for name in ("ray", "serial"):
        finish(start(tmp_path, "run", study, "--executor", name, "--output", tmp_path / name))
    rows = read_rows(tmp_path / "ray")
    assert len(rows) == 40
    assert rows == read_rows(tmp_path / "serial")


@pytest.mark.parametrize("option", ["--address=auto", "--shared-files", "--requirements=a.txt"])
def test_options_of_a_cluster_are_for_ray_only(run, study, option):
    code, _, err = run("run", study, "--executor", "serial", option)
    assert code == 2
    assert f"{option.partition('=')[0]} goes with --executor ray" in err


def test_mistakes_in_the_files_for_nodes_are_reported_before_anything_runs(run, study, tmp_path):
    (tmp_path / "huge.bin").write_bytes(b"")
    os.truncate(tmp_path / "huge.bin", 600_000_000)
    given = ("--address", "nowhere:1", "--requirements", tmp_path / "none.txt", "--dry-run")
    code, _, err = run("run", study, *given)
    assert code == 2
    assert "there is no file" in err
    code, _, err = run("run", study, "--address", "nowhere:1", "--dry-run")
    assert code == 2
    assert "more than the 500 MB that go to nodes" in err
    assert "huge.bin (600.0 MB)" in err


def test_a_result_names_the_machine_of_its_worker(study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRIVER", str(os.getpid()))
    with (tmp_path / "ray_agents.py").open("a") as file:
        file.write(ELSEWHERE)
    results = run_study(Study.from_yaml(study), executor=Processes("spawn"), limit=1)
    assert [result.host for result in results if result.status == "success"] == ["elsewhere"]


def test_a_session_on_a_cluster_is_resumed_at_its_address(study, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    loaded = Study.from_yaml(study)
    run_study(loaded, executor=Elsewhere(address="somewhere:6379"), limit=1)
    restored = restore_settings(loaded, RunSettings())
    assert restored.executor == Ray(address="somewhere:6379")
    run_study(
        loaded, executor=Elsewhere(address="there:1", shared_files=True), limit=1, resume=True
    )
    restored = restore_settings(loaded, RunSettings())
    assert restored.executor == Ray(address="there:1", shared_files=True)
    assert restored.parallelism is None, "as many as there is room for"


def test_errors_of_the_cluster_stay_off_stdout(capsys, monkeypatch):
    from ray._private import worker

    monkeypatch.setattr(worker, "print_to_stdstream", worker.print_to_stdstream)
    ray_cluster._keep_errors_off_stdout(ray)
    worker.print_to_stdstream({"lines": ["Raylet is terminated."], "pid": "raylet", "is_err": 0})
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_a_worker_with_another_version_is_refused_in_one_line(cluster, monkeypatch):
    monkeypatch.setattr(ray_pool, "read_versions", lambda: {"fairtrial": "99.0"})
    with pytest.raises(LabError, match=r"has fairtrial \d.*, the driver has fairtrial 99\.0"):
        run_all(Ray(cluster.address), [assign(0)])


@pytest.mark.slow
def test_runs_get_the_resources_and_the_environment_that_they_need(
    study, tmp_path, cluster, monkeypatch
):
    """One node has the custom resource; agents with and without it share the CPUs."""
    cluster.add_node(num_cpus=1, resources={"tpu": 1}, object_store_memory=80 * 1024**2)
    with (tmp_path / "ray_agents.py").open("a") as file:
        file.write(NEEDY)
    data = yaml.safe_load(STUDY)
    resources = {"custom": {"tpu": 1}}
    data["agents"]["needy"] = {"use": "ray_agents:tell", "resources": resources}
    data |= {"agent_specs": ["needy", "draw"], "environment": ["STUDY_SECRET"]}
    data["run_budget"]["replicates"] = 3
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STUDY_SECRET", "hush-9271")
    needy = replace(Study.from_dict(data), folder=tmp_path)
    results = list(run_study(needy, executor=Ray(cluster.address)))
    assert [result.status for result in results] == ["success"] * 12
    told = [result for result in results if result.run_spec.agent_spec_ref == "needy"]
    assert {result.outputs["has_secret"] for result in told} == {True}
    assert len({result.outputs["node"] for result in told}) == 1, "the only node that has one"
    logs = Path(cluster.head_node.get_session_dir_path(), "logs")
    kept = [path for folder in (tmp_path, logs) for path in folder.rglob("*") if path.is_file()]
    assert len(kept) > 10
    assert not [path for path in kept if b"hush-9271" in path.read_bytes()]
    impossible = replace(needy.agents["needy"], resources={"custom": {"tpu": 2}})
    with pytest.raises(LabError, match="no node of the cluster can ever run what needs"):
        run_study(
            replace(
                needy, agents={**needy.agents, "needy": impossible}, output_dir=tmp_path / "never"
            ),
            executor=Ray(cluster.address),
        )


@pytest.mark.slow
@pytest.mark.parametrize("how", ["kill -9", "Ctrl-C"])
def test_a_driver_that_ends_leaves_no_actor_and_loses_nothing(study, tmp_path, how):
    folder, pids = tmp_path / "out", tmp_path / "pids"
    driver = start(tmp_path, "run", study, "--executor", "ray", "--output", folder)
    wait_until(lambda: pids.exists() and len(list(pids.iterdir())) >= 2)
    if how == "kill -9":
        driver.kill()
        driver.communicate()
    else:
        os.killpg(driver.pid, signal.SIGINT)  # as a terminal does
        _, err = driver.communicate(timeout=PATIENCE_S)
        assert driver.returncode == 130, err
    actors = [int(path.name) for path in pids.iterdir()]
    wait_until(lambda: not any(map(is_alive, actors)))
    reader = ledger.LedgerReader.open(folder)
    before = reader.summary().counts.get("success", 0)
    reader.close()
    assert before < 40
    assert "--executor ray" in finish(start(tmp_path, "resume", folder))
    rows = read_rows(folder)
    assert len({row[0] for row in rows}) == len(rows) == 40
    finish(start(tmp_path, "run", study, "--executor", "serial", "--output", tmp_path / "serial"))
    assert rows == read_rows(tmp_path / "serial")
