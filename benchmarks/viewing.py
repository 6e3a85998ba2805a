"""What a live page costs: CPU of `fairtrial view` by number of browsers, and spread of timing.

    python benchmarks/viewing.py cpu [SECONDS]
    python benchmarks/viewing.py timing [COMPARISONS]

cpu: a study ends about 100 runs a second; for 0, 1, 3 and 10 clients that read the live page's
events, the CPU time of the viewer as a share of one core. It counts only if each client got the
rows of the runs that ended.

timing: `fairtrial aa --builtin --only words` in turn without and with a viewer of a running study
whose page is open in the tests' browser (if there is one), and the spread of its sessions. On a
busy machine the spread says nothing: the load is printed beside it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

CLIENTS = (0, 1, 3, 10)
BROWSER = "chromium-headless-shell"
FAIRTRIAL = [sys.executable, "-m", "fairtrial"]
STUDY = """
import sys, time
from fairtrial import Factor, OutcomeSpec, ProblemPacket, RunBudget, Study, run_study

def agent(task):
    time.sleep(0.04)
    return task.rng.random()

problems = {
    f"p{i}": ProblemPacket(f"p{i}", "f", "b", {}, {}, lambda output: {"score": output})
    for i in range(10)
}
study = Study(
    "viewing", "A study that is watched", output_dir=sys.argv[1],
    factors=(Factor("x", levels=(1, 2)),), agent_specs=("a",), problem_ids=tuple(problems),
    outcomes=(OutcomeSpec("score", "evaluations", primary=True),),
    run_budget=RunBudget(replicates=5_000),
)
run_study(
    study, agent_bindings={"a": agent}, problem_registry=problems, parallelism=4,
    executor="threads",
)
"""


@contextmanager
def process(command: list[str], **options) -> Iterator[subprocess.Popen]:
    """Run a program within the block."""
    started = subprocess.Popen(command, **options)
    try:
        yield started
    finally:
        started.kill()
        started.communicate()


@contextmanager
def watched_study() -> Iterator[tuple[subprocess.Popen, str]]:
    """Yield the process of a viewer and its address; a study runs meanwhile."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "out"
        environment = {**os.environ, "DISPLAY": "", "WAYLAND_DISPLAY": ""}
        with process([sys.executable, "-c", STUDY, str(folder)]):
            view = [*FAIRTRIAL, "view", str(folder), "--no-open"]
            while not (folder / "ledger.sqlite").exists():
                time.sleep(0.1)
            with process(
                view,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=environment,
            ) as viewer:
                yield viewer, viewer.stdout.readline().strip()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def follow(address: str, counts: list[int], place: int, over: threading.Event) -> None:
    """Read the events of the study until it is over; counts the rows."""
    with httpx.Client(base_url=address.partition("/?")[0], timeout=60) as client:
        page = client.get(address, follow_redirects=True).url
        if "/study/" not in str(page):
            page = client.get("/", follow_redirects=True).url
        data = client.get(f"{page}data").json()
        live = data["live"]
        source = f"{page}events?from={live['key']}/{live['number']}"
        with suppress(httpx.HTTPError), client.stream("GET", source) as response:
            for line in response.iter_lines():
                if over.is_set():
                    return
                if line.startswith("data: "):
                    rows = json.loads(line[6:]).get("rows")
                    counts[place] += len(rows["id"]) if rows else 0


def measure_cpu(seconds: float) -> None:
    print(f"load {os.getloadavg()[0]:.1f}")
    print("clients  CPU of a core  rows per client and second")
    for clients in CLIENTS:
        with watched_study() as (viewer, address):
            counts, over = [0] * clients, threading.Event()
            readers = [
                threading.Thread(target=follow, args=(address, counts, i, over), daemon=True)
                for i in range(clients)
            ]
            for reader in readers:
                reader.start()
            time.sleep(6)
            before, began = cpu_seconds(viewer.pid), time.perf_counter()
            seen = list(counts)
            time.sleep(seconds)
            used = cpu_seconds(viewer.pid) - before
            took = time.perf_counter() - began
            rates = [(now - then) / took for now, then in zip(counts, seen, strict=True)]
            over.set()
        for reader in readers:
            reader.join(5)
        shown = f"{min(rates):.0f} to {max(rates):.0f}" if rates else "-"
        print(f"{clients:<7}  {100 * used / took:11.1f} %  {shown}", flush=True)
        if rates and min(rates) == 0:
            sys.exit("a client got no rows: something is being timed on this machine")
    print(f"load {os.getloadavg()[0]:.1f}")


def time_equal_code(comparisons: int) -> str:
    """Return the spread of the sessions of `aa`."""
    command = [*FAIRTRIAL, "aa", "--builtin", "--only", "words", "--comparisons", str(comparisons)]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip()
    facts = json.loads(done.stdout)
    return (
        f"spread {100 * facts['spread']:.2f} %, {facts['sessions']} sessions of "
        f"{facts['session_s']:.2f} s, {facts['false_positives']} false positives"
    )


@contextmanager
def open_page(address: str) -> Iterator[None]:
    """Have the live page open in a browser within the block; without one, a client reads it."""
    executable = shutil.which(BROWSER)
    if executable is None:
        over = threading.Event()
        threading.Thread(target=follow, args=(address, [0], 0, over), daemon=True).start()
        yield
        over.set()
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(address)
        page.locator("#lead").wait_for()
        yield
        browser.close()


def measure_timing(comparisons: int) -> None:
    for _ in range(3):
        print(
            f"load {os.getloadavg()[0]:.1f}  no page:   {time_equal_code(comparisons)}", flush=True
        )
        with paused_study() as address, open_page(address):
            shown = time_equal_code(comparisons)
        print(f"load {os.getloadavg()[0]:.1f}  open page: {shown}", flush=True)


@contextmanager
def paused_study() -> Iterator[str]:
    """Yield the address of a viewer of a study that is paused, so that it takes no CPU itself."""
    with watched_study() as (viewer, address):
        time.sleep(3)
        folder = Path(viewer.args[-2])
        subprocess.run([*FAIRTRIAL, "pause", str(folder)], capture_output=True, check=True)
        time.sleep(1)
        yield address


def main() -> None:
    what, *amount = sys.argv[1:] or ["cpu"]
    if what == "cpu":
        measure_cpu(float(amount[0]) if amount else 20.0)
    elif what == "timing":
        measure_timing(int(amount[0]) if amount else 10)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
