"""Survey of what disturbs timing on this machine: cores, pinning, frequencies, load, steal time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from fairtrial.sandbox.capabilities import HostFact

CPUS = Path("/sys/devices/system/cpu")
CLOCK = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
STAT = Path("/proc/stat")
EFFECT = "base and candidate take turns, so that both bear it; it widens the intervals"
UNKNOWN = "unknown: this machine doesn't say, as is usual for virtual ones"
MAX_STEAL, MIN_STEAL = 0.05, 0.01
STEAL_COLUMN = 7
"""The column of /proc/stat for steal time, which a hypervisor gave to other guests."""
SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies")
FIXED_GOVERNORS = ("performance", "userspace")
PIN_SCRIPT = """
import os
core = max(os.sched_getaffinity(0))
os.sched_setaffinity(0, {core})
raise SystemExit(os.sched_getaffinity(0) != {core})
"""


def survey_timing() -> tuple[HostFact, ...]:
    """Survey what matters for timing on this machine; takes a moment, since pinning is tried."""
    return (
        check_pinning(),
        check_spare_core(),
        check_governor(),
        check_turbo(),
        check_clock(),
        check_load(),
        check_steal(),
    )


def usable_cores() -> tuple[int, ...]:
    """Return the numbers of the cores that this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return tuple(sorted(affinity(0))) if affinity else tuple(range(os.cpu_count() or 1))


def check_pinning() -> HostFact:
    """Check, in a child process, whether a process can be pinned to one core."""
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PIN_SCRIPT], capture_output=True, text=True, check=False
    )
    if result.returncode == 0:
        return HostFact("pinning", "yes", "a child could be held on one core")
    reason = (result.stderr.strip().splitlines() or ["it ran elsewhere nevertheless"])[-1]
    return HostFact("pinning", "no", f"a child could not be held on one core: {reason}; {EFFECT}")


def check_spare_core(cpus: Path = CPUS) -> HostFact:
    """Check whether a core is left for other work beside the one on which code is timed."""
    name, cores = "core for fairtrial", usable_cores()
    if len(cores) == 1:
        detail = "there is one core: what times runs where what is timed runs"
        return HostFact(name, "partly", f"{detail}; {EFFECT}")
    siblings = {_siblings(cpus, core) for core in cores}
    if len(siblings) == 1 and None not in siblings:
        detail = f"{len(cores)} cores, which are threads of one: they slow each other down"
        return HostFact(name, "partly", f"{detail}; {EFFECT}")
    return HostFact(name, "yes", f"one of {len(cores)} times, the others do the rest")


def _siblings(cpus: Path, core: int) -> str | None:
    return _read(cpus / f"cpu{core}" / "topology" / "thread_siblings_list")


def check_governor(cpus: Path = CPUS) -> HostFact:
    """Check whether the governors keep frequencies fixed."""
    name = "governor"
    files = (cpus / f"cpu{core}" / "cpufreq" / "scaling_governor" for core in usable_cores())
    governors = _read_values(files)
    if not governors:
        return HostFact(name, "partly", UNKNOWN)
    listed = ", ".join(sorted(governors))
    if governors <= set(FIXED_GOVERNORS):
        return HostFact(name, "yes", listed)
    remedy = "To keep frequencies high until the next start:\n"
    remedy += f"$ {_sudo()}cpupower frequency-set -g performance"
    return HostFact(name, "partly", f"{listed}: frequencies follow the load; {EFFECT}", remedy)


def check_turbo(cpus: Path = CPUS) -> HostFact:
    """Check whether turbo is off, by which cores speed up while they are cool."""
    name = "turbo"
    for switch, off in ((cpus / "intel_pstate/no_turbo", "1"), (cpus / "cpufreq/boost", "0")):
        value = _read(switch)
        if value == off:
            return HostFact(name, "yes", "off")
        if value is not None:
            remedy = "To turn it off until the next start:\n"
            remedy += f"$ echo {off} | {_sudo()}tee {switch}"
            detail = f"on: cores speed up while they are cool; {EFFECT}"
            return HostFact(name, "partly", detail, remedy)
    return HostFact(name, "partly", UNKNOWN)


def check_clock(clock: Path = CLOCK) -> HostFact:
    """Check whether reading the clock is cheap."""
    source = _read(clock)
    if source is None:
        return HostFact("clock", "partly", UNKNOWN)
    if source in SLOW_CLOCKS:
        detail = f"{source}: reading the time takes microseconds; short calls need more of them"
        return HostFact("clock", "partly", detail)
    return HostFact("clock", "yes", source)


def check_load() -> HostFact:
    """Check whether the machine has a free core for what is timed."""
    load, cores = os.getloadavg()[0], len(usable_cores())
    detail = f"{load:.1f} in the last minute, {cores} core{'' if cores == 1 else 's'}"
    if load <= max(cores - 1, 0.5):
        return HostFact("load", "yes", detail)
    advice = "what is timed has to share its core with others: end them, or wait"
    return HostFact("load", "partly" if load <= cores else "no", f"{detail}: {advice}")


def check_steal(stat: Path = STAT) -> HostFact:
    """Check how much CPU time a hypervisor gave to other guests."""
    name = "stolen time"
    words = (_read(stat) or "").partition("\n")[0].split()
    if len(words) <= STEAL_COLUMN + 1 or words[0] != "cpu":
        return HostFact(name, "partly", UNKNOWN)
    ticks = [int(word) for word in words[1:9]]
    idle = ticks[3] + ticks[4]
    share = ticks[STEAL_COLUMN] / max(sum(ticks) - idle, 1)
    detail = f"{100 * share:.1f} % of the busy time since the start of this machine"
    if share < MIN_STEAL:
        return HostFact(name, "yes", detail)
    detail += f" went to other guests of its host; {EFFECT}"
    return HostFact(name, "partly" if share < MAX_STEAL else "no", detail)


def _read_values(paths: Iterable[Path]) -> set[str]:
    return {value for path in paths if (value := _read(path)) is not None}


def _read(path: Path) -> str | None:
    """Read one of the kernel's files; None if it is missing or empty."""
    try:
        return path.read_text("utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _sudo() -> str:
    return "" if os.geteuid() == 0 else "sudo "
