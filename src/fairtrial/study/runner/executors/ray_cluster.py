"""The connection to a Ray cluster: starting or joining it, starting actors, waiting for answers."""

from __future__ import annotations

import atexit
import importlib.util
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from fairtrial.core import LabError
from fairtrial.study.model.resources import Demand, count_fitting, describe_amounts
from fairtrial.study.runner.executors.node_files import Luggage
from fairtrial.study.runner.executors.pickling import PickledWork
from fairtrial.study.runner.executors.ray_address import (
    AUTO,
    FORMS,
    find_silence,
    is_same_place,
)
from fairtrial.study.runner.executors.ray_worker import RayWorker

OBJECT_STORE_BYTES = 200 * 1024**2
"""The memory for objects of a cluster that is started here: it holds the pickled work only."""

CONNECT_S = 2.0
LEAVE_S = 5.0
KNOWN_S, SILENT_S = 0.2, 2.0
"""How long it is taken as known that the head node answers, or that it doesn't."""


class RayCluster:
    """A connection to a cluster.

    address: where it is: `auto` or `host:port`; None for one that is started here, and ended
    window: how many assignments may be under way
    cpus: how many runs at once a cluster that is started here has room for; None for all cores
    packages: what pip installs for workers
    """

    def __init__(
        self,
        address: str | None,
        window: int,
        cpus: int | None = None,
        packages: Sequence[str] = (),
    ) -> None:
        ray = _import_ray()
        self._ray = ray
        self.errors: type[Exception] = ray.exceptions.RayError
        self.window = window
        self._is_own = not ray.is_initialized()
        self.is_abandoned = False
        if self._is_own:
            self._connect(address, cpus)
        else:
            _refuse_another(address, ray.get_runtime_context().gcs_address)
        self._actor_class = ray.remote(
            num_cpus=1,
            max_restarts=0,
            max_task_retries=0,
            concurrency_groups={"control": 1},
        )(_make_actor_class(ray))
        self._arguments: tuple[Any, ...] = ()
        self._packages = list(packages)
        self._avoided: list[str] = []
        self._known: list[dict[str, Any]] = []
        self._answered, self._asked_at = True, float("-inf")
        context = ray.get_runtime_context()
        self._head, self._own_node = context.gcs_address, context.get_node_id()

    def _connect(self, address: str | None, cpus: int | None) -> None:
        ray = self._ray
        if address not in (None, AUTO) and (silence := find_silence(address)) is not None:
            raise LabError(f"no Ray at {address}: {silence}; {FORMS}")
        settings: dict[str, Any] = {"log_to_driver": False, "configure_logging": False}
        if address is None:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            cores = os.cpu_count() or 1
            settings |= {
                "num_cpus": cores if cpus is None else max(cpus, cores),
                "include_dashboard": False,
                "object_store_memory": OBJECT_STORE_BYTES,
            }
        try:
            with _quiet_start(), _own_signals():
                ray.init(address=address or "local", **settings)
        except Exception as error:  # Ray raises many kinds, plain `Exception` among them
            where = "no local Ray cluster starts" if address is None else f"no Ray at {address}"
            raise LabError(f"{where}: {' '.join(str(error).split())}") from error
        _keep_errors_off_stdout(ray)

    def close(self) -> None:
        """Leave the cluster, unless this process had joined it before; end it if it is our own."""
        self._arguments = ()
        if self._is_own and not self.is_abandoned:
            self._ray.shutdown()
        elif self._is_own:  # without its head, Ray may wait forever; a command doesn't wait for it
            atexit.unregister(self._ray.shutdown)
            leaving = threading.Thread(target=self._ray.shutdown, name="fairtrial-leave-ray")
            leaving.start()
            leaving.join(LEAVE_S)

    def abandon_lost(self) -> bool:
        """Abandon the cluster if its head node doesn't answer; returns whether it is abandoned."""
        self.is_abandoned = self.is_abandoned or not self._answers()
        return self.is_abandoned

    def abandon(self) -> None:
        """Make no more calls about actors: without its head, Ray would wait for a minute."""
        self.is_abandoned = True

    def find_loss(self) -> str | None:
        """Return what of the cluster is out of reach that this process can't do without, or None.

        That is the head node, and the Ray node of this machine.
        """
        if not self._answers():
            return f"the head node of the cluster, {self._head}, doesn't answer"
        alive = {node["NodeID"] for node in self._living()}
        return None if self._own_node in alive else "the Ray node of this machine is gone"

    def _answers(self) -> bool:
        """Return whether the head node answers; else Ray's calls would wait for a minute."""
        now = time.monotonic()
        if now - self._asked_at >= (KNOWN_S if self._answered else SILENT_S):
            self._answered = find_silence(self._head, CONNECT_S) is None
            self._asked_at = time.monotonic()
        return self._answered

    def _living(self) -> list[dict[str, Any]]:
        """Return the living nodes as Ray describes them; the last known ones without its head."""
        if self._answers():
            with suppress(self.errors):
                self._known = [node for node in self._ray.nodes() if node["Alive"]]
        return self._known

    def avoid(self, node_id: str) -> bool:
        """Start no more workers on a node; returns whether there is another."""
        self._avoided.append(node_id)
        usable = [node for node in self._living() if node["NodeID"] not in self._avoided]
        return any(node["Resources"].get("CPU") for node in usable)

    def load(
        self, pickled: PickledWork, environment: Mapping[str, str], folder: str, luggage: Luggage
    ) -> None:
        """Make the work and the study's files available to all nodes; they reach each node once.

        So do the values of environment variables, as an object, which no dashboard or log shows.
        """
        put = self._ray.put
        self._arguments = (put(pickled), put(dict(environment)), folder, put(luggage))

    def refuse_impossible(self, demands: Sequence[Demand]) -> None:
        """Raise `LabError` if there is a demand that no node can ever meet."""
        nodes = self._nodes()
        for demand in demands:
            if not any(count_fitting(demand, node) >= 1 for node in nodes):
                largest = max(nodes, key=lambda node: node.get("cpus", 0.0), default={})
                raise LabError(
                    f"no node of the cluster can ever run what needs "
                    f"{describe_amounts(dict(demand))}: the largest of {len(nodes)} has "
                    f"{describe_amounts(largest)}"
                )

    def start_worker(self, demand: Demand = ()) -> tuple[Any, Any]:
        """Start an actor as soon as there is room; returns it, and the reference to its facts."""
        options = _actor_options(demand)
        if self._packages:
            options["runtime_env"] = {"pip": self._packages}
        if self._avoided:
            options["label_selector"] = {"ray.io/node-id": f"!in({','.join(self._avoided)})"}
        actor = self._actor_class.options(**options).remote(*self._arguments)
        return actor, actor.describe.remote()

    def capacity(self, demands: Sequence[Demand] = ()) -> int:
        """Return how many workers there would be room for if nobody else used the cluster.

        demands: those of the workers; of several, the one that most workers have room with counts
        """
        nodes = self._nodes()
        shapes = [demand or ONE_CPU for demand in demands] or [ONE_CPU]
        counts = (sum(count_fitting(shape, node) for node in nodes) for shape in shapes)
        return int(max(counts))

    def _nodes(self) -> list[dict[str, float]]:
        """Return what each living node has that isn't avoided, by name of the resource."""
        return [
            _read_totals(node["Resources"])
            for node in self._living()
            if node["NodeID"] not in self._avoided
        ]

    def wait(self, answers: Sequence[Any], wait_s: float, count: int) -> list[Any]:
        """Return all answers that are there, after `count` of them are, or `wait_s` seconds."""
        if not answers or self.is_abandoned:
            return []
        ready, rest = self._ray.wait(
            list(answers), num_returns=min(count, len(answers)), timeout=wait_s
        )
        if ready and rest:
            more, _ = self._ray.wait(rest, num_returns=len(rest), timeout=0)
            ready += more
        return list(ready)

    def get(self, answer: Any) -> Any:
        """Return an answer that is there; raises one of `errors` if the actor is lost."""
        return self._ray.get(answer)

    def kill(self, actor: Any) -> None:
        """Kill an actor; its worker process dies with it."""
        if self.is_abandoned or not self._answers():
            return
        with suppress(self.errors):
            self._ray.kill(actor, no_restart=True)


ONE_CPU: Demand = (("cpus", 1.0),)
"""What a worker takes for runs that state no demand."""


def _read_totals(resources: Mapping[str, float]) -> dict[str, float]:
    """Return the resources of a Ray node by our names."""
    names = {"CPU": "cpus", "GPU": "gpus"}
    totals = {
        names.get(name, name): amount
        for name, amount in resources.items()
        if not name.startswith(("node:", "object_store_memory"))
    }
    return {**totals, "memory_gb": totals.pop("memory", 0.0) / 1024**3}


def _actor_options(demand: Demand) -> dict[str, Any]:
    """Return a demand as options of a Ray actor."""
    amounts = dict(demand or ONE_CPU)
    options: dict[str, Any] = {
        "num_cpus": amounts.pop("cpus", 0.0),
        "num_gpus": amounts.pop("gpus", 0.0),
        "memory": int(amounts.pop("memory_gb", 0.0) * 1024**3) or None,
    }
    return {**options, "resources": amounts or None}


NEEDS_RAY = "the executor `ray` needs the package ray"
INSTALL_RAY = "pip install 'fairtrial[ray]'"


def is_ray_installed() -> bool:
    """Return whether the package ray is there; it isn't imported."""
    return importlib.util.find_spec("ray") is not None


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise LabError(f"{NEEDS_RAY}: {INSTALL_RAY}") from error
    return ray


def _refuse_another(address: str | None, joined: str) -> None:
    """Raise `LabError` if this process has joined another cluster than that at `address`."""
    if address not in (None, AUTO) and not is_same_place(address, joined):
        raise LabError(
            f"this process has joined the Ray cluster at {joined}, not that at {address}: call "
            "ray.shutdown() first"
        )


@contextmanager
def _quiet_start() -> Iterator[None]:
    """Keep notices that Ray logs at every start, such as on its authentication, off the screen."""
    logger = logging.getLogger("ray")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep the handlers of signals, which Ray replaces; one that Ray got goes to ours.

    SIGHUP waits meanwhile, and so it always does in the processes of a cluster that is started:
    when a terminal is closed, the study ends them, not the terminal.
    """
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGHUP,))
    is_ended = False
    try:
        yield
    except SystemExit:  # by Ray's handler of SIGTERM
        is_ended = True
    finally:
        for number, handler in before.items():
            with suppress(ValueError, TypeError):  # not in the main thread, or not of Python
                signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if is_ended:
        signal.raise_signal(signal.SIGTERM)
        raise KeyboardInterrupt


def _keep_errors_off_stdout(ray: Any) -> None:
    """Have errors of the cluster logged, which Ray prints to stdout, where `--json` goes.

    Ray has no option for that. What they mean for the study, its own messages say.
    """
    module: Any = getattr(getattr(ray, "_private", None), "worker", None)
    if hasattr(module, "print_to_stdstream"):
        module.print_to_stdstream = _log_cluster_error


def _log_cluster_error(data: Mapping[str, Any], *_: Any, **__: Any) -> None:
    logging.getLogger("ray").debug("%s", "\n".join(map(str, data.get("lines", ()))))


def _make_actor_class(ray: Any) -> type:
    """Return the class of actors: `stop` has a thread of its own, so that it never waits."""

    class StudyWorker(RayWorker):
        @ray.method(concurrency_group="control")  # type: ignore[untyped-decorator]
        def stop(self) -> None:
            super().stop()

    return StudyWorker
