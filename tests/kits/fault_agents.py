"""The agents of the fault studies: each test copies this file beside its study.

Every call is witnessed, outside of the product: a line in the file that WITNESS names.
"""

import asyncio
import ctypes
import gc
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from fairtrial import AgentOutput, Broken

WITNESS = os.environ.get("WITNESS", "/nowhere")
HERE = Path(WITNESS).parent
"""Where tests and agents leave each other messages."""
LONGEST_S = 60.0


def _witness(task):
    """Note a call; returns the number of it, from 1."""
    line = f"{task.run_spec.run_id} {os.getpid()}\n".encode()
    handle = os.open(WITNESS, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    os.write(handle, line)
    end = os.lseek(handle, 0, os.SEEK_CUR)
    before = os.pread(handle, end, 0)
    os.close(handle)
    return before.count(b"\n")


def _wait_for(path):
    until = time.monotonic() + LONGEST_S
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.005)


def score(answer):
    """What a problem makes of an answer."""
    return {"score": answer}


def steady(task, *, wait_s=0.0, cost_usd=0.0, tokens=0):
    """Does what it should."""
    _witness(task)
    task.emit("thought", "so be it", weight=task.rng.random())
    time.sleep(wait_s)
    metrics = {"cost_usd": cost_usd, "input_tokens": tokens}
    return AgentOutput({"answer": task.rng.random()}, metrics=metrics)


def held(task):
    """Does what it should; from the third call on only once there is a file named `go`."""
    if _witness(task) > 2:
        _wait_for(HERE / "go")
    return {"answer": task.run_spec.replicate}


def held_back_by_excepts(task):
    """Goes on whatever `Exception` comes."""
    _witness(task)
    while not (HERE / "go").exists():
        try:
            time.sleep(0.01)
        except Exception:
            continue
    return {"answer": 1}


async def awaits(task):
    """Sleeps on an event loop, beside a task of its own, until there is a file named `go`."""
    _witness(task)
    beside = asyncio.create_task(asyncio.sleep(LONGEST_S))
    while not (HERE / "go").exists():
        await asyncio.sleep(0.01)
    beside.cancel()
    return {"answer": 1}


def raises_interrupt(task):
    """For dose 2, raises what Ctrl-C raises."""
    _witness(task)
    if task.condition.factor_assignments["dose"] == 2:
        raise KeyboardInterrupt
    return {"answer": 1}


def fails(task):
    """For dose 2, fails; dose 3 waits for ever."""
    _witness(task)
    dose = task.condition.factor_assignments["dose"]
    if dose == 2:
        raise ValueError("no good")
    if dose == 3:
        _wait_for(HERE / "go")
    return {"answer": 1}


def judged_late(answer):
    """Costs money, and breaks the first time."""
    mark = HERE / "broke"
    if not mark.exists():
        mark.touch()
        raise Broken("the judge is ill")
    return {"score": answer}


# -- deeds: what may befall a worker --


def doer(task):
    """Does the deed that the condition names."""
    _witness(task)
    deed = task.condition.factor_assignments["deed"]
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0), "an earlier run's alarm is set"
    task.emit("thought", f"now {deed}")
    print(f"about to {deed}")
    return globals()[f"_do_{deed}"](task) or {"answer": task.rng.random()}


def _do_nothing(task):
    time.sleep(0.01)


def _first(task, name):
    path = HERE / f"{name}-{task.run_spec.run_id}"
    is_first = not path.exists()
    path.touch()
    return is_first


def _do_die_once(task):
    if _first(task, "died"):
        os.kill(os.getpid(), signal.SIGKILL)


def _do_die_always(task):
    os.kill(os.getpid(), signal.SIGKILL)


def _do_segfault(task):
    ctypes.string_at(0)


def _do_leave(task):
    os._exit(3)


def _do_abort(task):
    os.abort()


def _do_quit(task):
    sys.exit("that's it")


def _do_raise(task):
    raise LookupError("nothing here")


def _do_hang(task):
    while True:
        time.sleep(1)


def _do_spin(task):
    while True:
        pass


def _do_flood_stdout(task):
    for _ in range(30):
        os.write(1, b"x" * 1_000_000)


def _do_flood_events(task):
    for number in range(15_000):
        task.emit("thought", f"number {number}")


def _do_unwritable(task):
    return {"answer": 0.5, "thing": object()}


def _do_out_of_memory(task):
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), before[1]))
    try:
        return {"answer": len(bytearray(1 << 30))}
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
        gc.collect()


# -- and how it may leave its process behind --


def _do_delete_workspace(task):
    folder = task.workspace
    (folder / "draft").write_text("x")
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def _do_use_workspace(task):
    (task.workspace / "draft").write_text("x")
    here = Path("relative")
    (here if here.is_dir() else HERE).joinpath("seen").touch()


def _do_change_folder(task):
    os.chdir(tempfile.mkdtemp())


def _do_lose_folder(task):
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    Path(folder).rmdir()


def _do_close_standard_files(task):
    for number in (0, 1, 2):
        os.close(number)


def _do_close_streams(task):
    sys.stdout.close()
    sys.stderr.close()


def _do_mask(task):
    os.umask(0o777)


def _do_locale(task):
    import locale

    for name in ("de_DE.UTF-8", "C.UTF-8", "C"):
        try:
            locale.setlocale(locale.LC_ALL, name)
            return
        except locale.Error:
            continue


def _do_handle_signals(task):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
        signal.signal(number, lambda *_: None)


def _do_set_alarm(task):
    signal.setitimer(signal.ITIMER_REAL, LONGEST_S)  # later than this run can end; see `doer`


def _do_start_thread(task):
    threading.Thread(target=lambda: [time.sleep(1) for _ in range(3600)]).start()


def _do_leave_zombie(task):
    if not os.fork():
        os._exit(0)


def _do_leave_child(task):
    subprocess.Popen(["sleep", "10"])


def _do_fork(task):
    os.fork()  # and both go on


def _do_environment(task):
    os.environ.clear()


def _do_path(task):
    sys.path.clear()
    sys.modules.pop("json", None)


def _do_trace(task):
    sys.settrace(lambda *_: None)


def _do_recurse(task):
    return _do_recurse(task)
