"""What on this machine disturbs a clock: cores, pinning, frequencies, load, other guests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from fairtrial.sandbox.capabilities import Fact

CPUS = Path("/sys/devices/system/cpu")
CLOCK = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
STAT = Path("/proc/stat")
STEADY = "base and candidate take turns, so that both bear it; it widens the intervals"
UNKNOWN = "unknown: this machine doesn't say, as is usual for virtual ones"
MUCH_STOLEN, SOME_STOLEN = 0.05, 0.01
STEAL = 7
"""Where the time that a hypervisor gave to others stands in a line of /proc/stat."""
SLOW_CLOCKS = ("hpet", "acpi_pm", "jiffies", "refined-jiffies")
FIXED = ("performance", "userspace")
PIN = """
import os
core = max(os.sched_getaffinity(0))
os.sched_setaffinity(0, {core})
raise SystemExit(os.sched_getaffinity(0) != {core})
"""


def survey_clock() -> tuple[Fact, ...]:
    """What matters for timing on this machine; takes a moment, since pinning is really tried."""
    return (
        look_at_pinning(),
        look_at_company(),
        look_at_governor(),
        look_at_turbo(),
        look_at_clock(),
        look_at_load(),
        look_at_steal(),
    )


def usable_cores() -> tuple[int, ...]:
    """The cores that we may use, by number."""
    affinity = getattr(os, "sched_getaffinity", None)
    return tuple(sorted(affinity(0))) if affinity else tuple(range(os.cpu_count() or 1))


def look_at_pinning() -> Fact:
    """Whether a process can be held on one core; tried in a child."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", PIN], capture_output=True, text=True, check=False
    )
    if done.returncode == 0:
        return Fact("pinning", "yes", "a child could be held on one core")
    told = (done.stderr.strip().splitlines() or ["it ran elsewhere nevertheless"])[-1]
    return Fact("pinning", "no", f"a child could not be held on one core: {told}; {STEADY}")


def look_at_company(cpus: Path = CPUS) -> Fact:
    """Whether a core is left for us, and for all others, beside the one that is timed."""
    name, cores = "core for us", usable_cores()
    if len(cores) == 1:
        detail = "there is one core: what times runs where what is timed runs"
        return Fact(name, "partly", f"{detail}; {STEADY}")
    siblings = {_siblings(cpus, core) for core in cores}
    if len(siblings) == 1 and None not in siblings:
        detail = f"{len(cores)} cores, which are threads of one: they slow each other down"
        return Fact(name, "partly", f"{detail}; {STEADY}")
    return Fact(name, "yes", f"one of {len(cores)} is timed, the others are left")


def _siblings(cpus: Path, core: int) -> str | None:
    return _read(cpus / f"cpu{core}" / "topology" / "thread_siblings_list")


def look_at_governor(cpus: Path = CPUS) -> Fact:
    """Whether frequencies stay as they are."""
    name = "governor"
    found = _values(cpus / f"cpu{core}" / "cpufreq" / "scaling_governor" for core in usable_cores())
    if not found:
        return Fact(name, "partly", UNKNOWN)
    told = ", ".join(sorted(found))
    if found <= set(FIXED):
        return Fact(name, "yes", told)
    remedy = "To keep frequencies high until the next start:\n"
    remedy += f"$ {_sudo()}cpupower frequency-set -g performance"
    return Fact(name, "partly", f"{told}: frequencies follow the load; {STEADY}", remedy)


def look_at_turbo(cpus: Path = CPUS) -> Fact:
    """Whether cores speed up while they are cool."""
    name = "turbo"
    for switch, off in ((cpus / "intel_pstate/no_turbo", "1"), (cpus / "cpufreq/boost", "0")):
        value = _read(switch)
        if value == off:
            return Fact(name, "yes", "off")
        if value is not None:
            remedy = "To turn it off until the next start:\n"
            remedy += f"$ echo {off} | {_sudo()}tee {switch}"
            detail = f"on: cores speed up while they are cool; {STEADY}"
            return Fact(name, "partly", detail, remedy)
    return Fact(name, "partly", UNKNOWN)


def look_at_clock(clock: Path = CLOCK) -> Fact:
    """Whether reading the time is cheap."""
    source = _read(clock)
    if source is None:
        return Fact("clock", "partly", UNKNOWN)
    if source in SLOW_CLOCKS:
        detail = f"{source}: reading the time takes microseconds; short calls need more of them"
        return Fact("clock", "partly", detail)
    return Fact("clock", "yes", source)


def look_at_load() -> Fact:
    """Whether there is room for what is timed, and for us."""
    load, cores = os.getloadavg()[0], len(usable_cores())
    detail = f"{load:.1f} in the last minute, {cores} core{'' if cores == 1 else 's'}"
    if load <= max(cores - 1, 0.5):
        return Fact("load", "yes", detail)
    others = "what is timed has to share its core with others: end them, or wait"
    return Fact("load", "partly" if load <= cores else "no", f"{detail}: {others}")


def look_at_steal(stat: Path = STAT) -> Fact:
    """Whether a hypervisor gives our cores to others."""
    name = "stolen time"
    words = (_read(stat) or "").partition("\n")[0].split()
    if len(words) <= STEAL + 1 or words[0] != "cpu":
        return Fact(name, "partly", UNKNOWN)
    ticks = [int(word) for word in words[1:9]]
    idle = ticks[3] + ticks[4]
    share = ticks[STEAL] / max(sum(ticks) - idle, 1)
    detail = f"{100 * share:.1f} % of the busy time since the start of this machine"
    if share < SOME_STOLEN:
        return Fact(name, "yes", detail)
    detail += f" went to other guests of its host; {STEADY}"
    return Fact(name, "partly" if share < MUCH_STOLEN else "no", detail)


def _values(paths: Iterable[Path]) -> set[str]:
    return {value for path in paths if (value := _read(path)) is not None}


def _read(path: Path) -> str | None:
    """What one of the kernel's files says; None where there is none."""
    try:
        return path.read_text("utf-8").strip() or None
    except (OSError, UnicodeDecodeError):
        return None


def _sudo() -> str:
    return "" if os.geteuid() == 0 else "sudo "
