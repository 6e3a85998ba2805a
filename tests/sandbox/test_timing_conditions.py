"""The survey of what disturbs timing on this machine, for `fairtrial doctor`."""

import os
import subprocess
import sys

import pytest

from fairtrial.sandbox import timing_conditions


@pytest.fixture
def cores(monkeypatch):
    """Return a function that sets the usable cores."""

    def cores(*numbers):
        monkeypatch.setattr(timing_conditions, "usable_cores", lambda: numbers)

    cores(0, 1)
    return cores


@pytest.fixture
def put(tmp_path):
    """Return a function that writes one of the kernel's files."""

    def put(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return put


def test_a_survey_says_something_of_everything_on_any_machine():
    facts = timing_conditions.survey_timing()
    assert [fact.name for fact in facts] == [
        "pinning", "core for fairtrial", "governor", "turbo", "clock", "load", "stolen time",
    ]  # fmt: skip
    assert all(fact.detail for fact in facts)
    assert {fact.status for fact in facts} <= {"yes", "partly", "no"}


def test_pinning_is_tried_in_a_child(monkeypatch):
    before = timing_conditions.usable_cores()
    assert timing_conditions.check_pinning().status in ("yes", "no")
    assert timing_conditions.usable_cores() == before  # ours is as it was
    refusing = "raise OSError('not here')"
    monkeypatch.setattr(timing_conditions, "PIN_SCRIPT", refusing)
    fact = timing_conditions.check_pinning()
    assert fact.status == "no"
    assert "OSError: not here" in fact.detail


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no pinning here")
def test_the_trial_notices_a_core_that_is_not_kept():
    lying = "import os\nos.sched_setaffinity = lambda *_: None\n"
    lying += "os.sched_getaffinity = lambda _: {0, 1}\n"
    done = subprocess.run([sys.executable, "-c", lying + timing_conditions.PIN_SCRIPT], timeout=60)
    assert done.returncode == 1


def test_a_core_is_left_for_us_unless_there_is_one_only(cores, tmp_path, put):
    assert (
        timing_conditions.check_spare_core(tmp_path).status == "yes"
    )  # a machine that doesn't say
    for core in (0, 1):
        put(f"cpu{core}/topology/thread_siblings_list", "0-1\n")
    fact = timing_conditions.check_spare_core(tmp_path)
    assert (fact.status, "threads of one" in fact.detail) == ("partly", True)
    put("cpu2/topology/thread_siblings_list", "2-3\n")
    cores(0, 1, 2)
    assert timing_conditions.check_spare_core(tmp_path).status == "yes"
    cores(1)
    assert "there is one core" in timing_conditions.check_spare_core(tmp_path).detail


@pytest.mark.parametrize(
    ("governors", "status", "detail"),
    [
        ([], "partly", "unknown"),
        (["performance", "performance"], "yes", "performance"),
        (["performance", "powersave"], "partly", "performance, powersave: frequencies follow"),
        (["schedutil"], "partly", "schedutil: frequencies follow"),
    ],
)
def test_governors(cores, put, tmp_path, governors, status, detail):
    for core, governor in enumerate(governors):
        put(f"cpu{core}/cpufreq/scaling_governor", f"{governor}\n")
    fact = timing_conditions.check_governor(tmp_path)
    assert fact.status == status
    assert fact.detail.startswith(detail)
    assert bool(fact.remedy) == detail.endswith("follow")


@pytest.mark.parametrize(
    ("switch", "value", "status", "detail"),
    [
        ("intel_pstate/no_turbo", "1", "yes", "off"),
        ("intel_pstate/no_turbo", "0", "partly", "on: "),
        ("cpufreq/boost", "0", "yes", "off"),
        ("cpufreq/boost", "1", "partly", "on: "),
        ("elsewhere", "1", "partly", "unknown"),
    ],
)
def test_turbo(put, tmp_path, monkeypatch, switch, value, status, detail):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    path = put(switch, f"{value}\n")
    fact = timing_conditions.check_turbo(tmp_path)
    assert fact.status == status
    assert fact.detail.startswith(detail)
    off = "1" if value == "0" else "0"
    command = f"$ echo {off} | sudo tee {path}" if detail == "on: " else ""
    assert fact.remedy.splitlines()[1:] == ([command] if command else [])


@pytest.mark.parametrize(
    ("source", "status"), [("tsc", "yes"), ("kvm-clock", "yes"), ("hpet", "partly")]
)
def test_clocks(put, tmp_path, source, status):
    fact = timing_conditions.check_clock(put("clock", f"{source}\n"))
    assert (fact.status, fact.detail.startswith(source)) == (status, True)
    assert timing_conditions.check_clock(tmp_path / "none").detail.startswith("unknown")


@pytest.mark.parametrize(
    ("load", "usable", "status"),
    [(0.2, 2, "yes"), (1.0, 2, "yes"), (1.5, 2, "partly"), (3.0, 2, "no"), (0.4, 1, "yes"),
     (0.9, 1, "partly"), (3.0, 8, "yes")],
)  # fmt: skip
def test_load_is_reported_relative_to_cores(cores, monkeypatch, load, usable, status):
    cores(*range(usable))
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0))
    fact = timing_conditions.check_load()
    assert fact.status == status
    assert fact.detail.startswith(f"{load:.1f} in the last minute, {usable} core")
    assert ("end them, or wait" in fact.detail) == (status != "yes")


@pytest.mark.parametrize(
    ("steal", "status", "share"), [(0, "yes", "0.0"), (30, "partly", "2.9"), (250, "no", "20.0")]
)
def test_stolen_time_is_a_share_of_the_busy_time(put, steal, status, share):
    # user nice system idle iowait irq softirq steal guest guest_nice
    path = put("stat", f"cpu  700 100 150 9000 500 10 40 {steal} 0 0\ncpu0 1 2 3\n")
    fact = timing_conditions.check_steal(path)
    assert fact.status == status
    assert fact.detail.startswith(f"{share} % of the busy time")


@pytest.mark.parametrize("text", ["", "cpu  700 100 150 9000\n", "intr 1 2 3 4 5 6 7 8 9 10\n"])
def test_a_kernel_that_does_not_report_steal_time(put, tmp_path, text):
    assert timing_conditions.check_steal(put("stat", text)).detail.startswith("unknown")
    assert timing_conditions.check_steal(tmp_path / "none").detail.startswith("unknown")
