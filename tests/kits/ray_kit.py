"""Studies on local Ray clusters of several nodes, for tests that kill parts of them."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from fairtrial import open_results

PATIENCE_S = 60.0
STORE = {"object_store_memory": 80 * 1024**2}
HEALTH = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 500,
    "health_check_timeout_ms": 1500,
    "health_check_failure_threshold": 3,
}
"""So that a node that hangs is given up after seconds."""
AGENTS = """
import os, pathlib, time

NOTES = pathlib.Path(os.environ["NOTES"])

def draw(task):
    (NOTES / str(os.getppid())).touch()
    time.sleep(float(os.environ.get("PACE", "0.05")))
    value = task.rng.random()
    return {"value": value, "actor": os.getppid(), "worker": os.getpid(), "file": __file__}

def score(output):
    return output["value"]
"""
STUDY = """
study_id: ray
title: Ray
agents: {draw: "ray_agents:draw"}
problems: {p: {family: f, evaluator: "ray_agents:score"}}
agent_specs: [draw]
problem_ids: [p]
factors: [{name: x, levels: [{name: a, value: 1}, {name: b, value: 2}]}]
environment: [NOTES, PACE]
run_budget: {replicates: 20, retries: 20}
"""


class Nodes:
    """A head node without CPUs, and nodes with one CPU each."""

    def __init__(self, count=2):
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 0, "include_dashboard": False, "_system_config": HEALTH, **STORE}
        self.cluster = Cluster(initialize_head=True, head_node_args=head)
        self.nodes = [self.add() for _ in range(count)]

    @property
    def address(self):
        return self.cluster.address

    def add(self, **resources):
        return self.cluster.add_node(num_cpus=1, **STORE, **resources)

    def refill(self, count=2):
        """Add nodes for those that died."""
        self.nodes = [node for node in self.nodes if is_running(raylet_pid(node))]
        self.nodes += [self.add() for _ in range(count - len(self.nodes))]

    def close(self):
        self.cluster.shutdown()


def raylet_pid(node):
    return node.all_processes["raylet"][0].process.pid


def is_running(pid):
    """Whether a process is there and no zombie."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def write_study(folder):
    """Write the study of 40 runs into a folder; returns its file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ray_agents.py").write_text(AGENTS)
    (folder / "ray.yaml").write_text(STUDY)
    return folder / "ray.yaml"


def wait_until(condition):
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, "it never happened"
        time.sleep(0.02)


def start(folder, *arguments, **variables):
    """Start a command in a process of its own."""
    program = "from fairtrial.cli.main import main; main()"
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdout=pipe,
        stderr=pipe,
        text=True,
        cwd=folder,
        start_new_session=True,
        env={**os.environ, **variables},
    )


def finish(process, code=0):
    """Wait for a command that must end with this exit code; returns its stderr."""
    try:
        _, err = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    assert process.returncode == code, err
    return err


def read_rows(folder):
    """Return what doesn't depend on times, hosts and retries, in the order of the tables."""
    return [
        (result.run_id, result.run_spec.seed, result.status, result.outputs.get("value"))
        for result in open_results(folder)
    ]
