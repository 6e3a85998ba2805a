"""A server of live pages in a process of its own, and studies that go on when they are told to."""

import os
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import anyio
import httpx
from page_kit import make_hostile_study, talk

from fairtrial import open_results
from fairtrial.sandbox import HostLock

SERVE = """
import sys
from pathlib import Path
from fairtrial.cli.main import main
from fairtrial.sandbox import host_lock
host_lock.HOST_FOLDER = Path(sys.argv[1])
main(["view", *sys.argv[2:], "--no-open"])
"""


class Server:
    """A process of `fairtrial view`.

    locks: the folder of the host lock
    address: what it printed: the address with the token
    """

    def __init__(self, folder, locks, *options):
        locks.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVE, str(locks), str(folder), *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "DISPLAY": "", "WAYLAND_DISPLAY": ""},
        )
        self.address = self.process.stdout.readline().strip()
        self.base = self.address.partition("/?")[0]
        self.port = self.base.rpartition(":")[2]

    @contextmanager
    def client(self):
        """Yield a client that has the cookie."""
        with httpx.Client(base_url=self.base, follow_redirects=True, timeout=60) as client:
            client.get(self.address).raise_for_status()
            yield client

    def kill(self):
        """Kill it, if it still runs; it must not have met a bug."""
        if self.process.returncode is None:
            self.process.kill()
            text = self.process.communicate()[1]
            assert "Traceback" not in text, text

    def stop(self):
        """Interrupt it like Ctrl-C; returns its exit code and what it wrote to stderr."""
        self.process.send_signal(2)
        _, text = self.process.communicate(timeout=60)
        return self.process.returncode, text


@contextmanager
def serve(folder, locks, *options):
    """Serve a folder within the block."""
    server = Server(folder, locks, *options)
    try:
        yield server
    finally:
        server.kill()


def wait_for_runs(folder, runs):
    """Wait until a study that runs has this many results."""
    deadline = time.monotonic() + 60
    with open_results(folder) as results:
        while results.reader.summary().done < runs:
            assert time.monotonic() < deadline
            threading.Event().wait(0.02)


@contextmanager
def timing(locks):
    """Hold the host lock, as a process that times does, within the block."""
    held, over = threading.Event(), threading.Event()

    async def hold():
        async with HostLock(locks).exclusive():
            held.set()
            await anyio.to_thread.run_sync(over.wait)

    thread = threading.Thread(target=lambda: anyio.run(hold))
    thread.start()
    held.wait(60)
    try:
        yield
    finally:
        over.set()
        thread.join()


class GatedStudy:
    """A study that runs in a thread, and does as many runs as it is told to."""

    def __init__(self, folder, agent=talk, **settings):
        self._gate = threading.Semaphore(0)

        def wait(task):
            self._gate.acquire()
            return agent(task)

        self._thread = threading.Thread(
            target=lambda: make_hostile_study(
                folder, agent=wait, executor="threads", parallelism=2, **settings
            ).close(),
            daemon=True,
        )

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.let_run(10_000)
        self._thread.join(60)

    def let_run(self, runs):
        self._gate.release(runs)
