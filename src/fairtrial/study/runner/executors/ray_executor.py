"""The executor `ray`: each run in a worker process on some node of a Ray cluster."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fairtrial.core import Mistake, StudyError
from fairtrial.study.model.resources import WorkNeeds
from fairtrial.study.model.runs import Report
from fairtrial.study.protocols import Executor, Feed, Work
from fairtrial.study.runner.executors.assignment_source import AssignmentSource
from fairtrial.study.runner.executors.node_files import Luggage
from fairtrial.study.runner.executors.pickling import pickle_work
from fairtrial.study.runner.executors.ray_address import FORMS, find_address_mistake
from fairtrial.study.runner.executors.ray_cluster import (
    INSTALL_RAY,
    NEEDS_RAY,
    RayCluster,
    is_ray_installed,
)
from fairtrial.study.runner.executors.ray_pool import RayPool
from fairtrial.study.runner.executors.study_files import (
    MB,
    FilesPacked,
    StudyFiles,
    find_study_files,
    spell_size,
)

WINDOW = 256
MOST_MB = 500.0


@dataclass(frozen=True)
class Ray(Executor):
    """Runs assignments on a Ray cluster, each in a worker process that a Ray actor keeps.

    address: where the cluster is: `auto`, or the `host:port` of its head node; by default a
        cluster on this machine is started, and ended with the study
    window: the largest number of runs under way; with this many slots or more, as many runs are
        under way as the cluster has CPUs
    shared_files: whether nodes see the driver's files under the same paths; if not, the study's
        folder, its modules and the repositories of code problems are copied to each node
    requirements: a file of packages that pip installs for the workers, in Ray's way
    most_mb: the largest size of what is copied to a node
    """

    address: str | None = None
    window: int = WINDOW
    shared_files: bool = False
    requirements: str | None = None
    most_mb: float = MOST_MB

    @property
    def name(self) -> str:
        return "ray"

    @property
    def is_reproducible(self) -> bool:
        return True

    @property
    def is_isolated(self) -> bool:
        return True

    @property
    def is_forking(self) -> bool:
        """False: the work must pass `check_reachable`."""
        return False

    @property
    def is_distributed(self) -> bool:
        """True: Ray sees to it that runs have the resources that they need."""
        return True

    @property
    def default_slots(self) -> int:
        """How many slots a study has that doesn't say."""
        return self.window

    def find_mistakes(self) -> list[Mistake]:
        """Return why this executor can't work here."""
        mistakes = [] if is_ray_installed() else [Mistake(("executor",), NEEDS_RAY, INSTALL_RAY)]
        if self.address is not None and (wrong := find_address_mistake(self.address)) is not None:
            mistakes.append(Mistake(("address",), wrong, FORMS))
        if self.requirements is not None and not Path(self.requirements).is_file():
            mistakes.append(Mistake(("requirements",), f"there is no file {self.requirements}"))
        return mistakes

    def find_study_mistakes(self, needs: WorkNeeds) -> list[Mistake]:
        """Return why a study's files can't go to nodes; called before anything runs."""
        if not self._copies_files:
            return []
        return list(find_study_files(needs.folder, needs.output).find_mistakes(self.most_mb))

    @property
    def _copies_files(self) -> bool:
        """Whether files are copied: not on a cluster that is only this machine."""
        return self.address is not None and not self.shared_files

    def execute(self, work: Work, feed: Feed, slots: int) -> Iterator[Report | None]:
        """Yield reports of up to `slots` workers, started as the cluster has room for them."""
        pickled = pickle_work(work)
        needs = work.needs
        is_free = slots < self.window and not needs.demands
        files = find_study_files(needs.folder, needs.output)
        luggage = self._pack(work, needs, files)
        packages = _read_requirements(self.requirements)
        cluster = RayCluster(self.address, self.window, slots if is_free else None, packages)
        try:
            cluster.refuse_impossible(needs.demands)
            variables = {name: os.environ[name] for name in needs.environment}
            cluster.load(pickled, variables, str(Path.cwd()), luggage)
            pool = RayPool(work, AssignmentSource(feed), slots, cluster, files.digest())
            try:
                yield from pool.run()
            finally:
                pool.end()
        finally:
            cluster.close()

    def _pack(self, work: Work, needs: WorkNeeds, files: StudyFiles) -> Luggage:
        """Return what goes to nodes, and tell the user how much it is."""
        session, code = uuid.uuid4().hex[:16], files.code_paths()
        if not self._copies_files:
            return Luggage(session, files.roots, code=code)
        mistakes = list(files.find_mistakes(self.most_mb))
        if mistakes:
            raise StudyError(mistakes)
        parcels = tuple(parcel for pack in needs.packers if (parcel := pack()) is not None)
        size_bytes = sum(parcel.size_bytes for parcel in parcels)
        if size_bytes > self.most_mb * MB:
            message = f"the repositories of code problems are {spell_size(size_bytes)}, packed; at "
            message += f"most {self.most_mb:,.0f} MB go to nodes"
            raise StudyError(Mistake(("executor",), message, "use --shared-files, or `most_mb`"))
        text = f"to each node go the study's files: {files.describe()}"
        if parcels:
            text += f"; repositories: {len(parcels)}, {spell_size(size_bytes)}"
        work.emit_progress(FilesPacked(text))
        return Luggage(session, files.roots, files.archive(), parcels, code)


def _read_requirements(path: str | None) -> tuple[str, ...]:
    """Return the lines of a file of requirements, without comments."""
    if path is None:
        return ()
    lines = (line.strip() for line in Path(path).read_text("utf-8").splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))
