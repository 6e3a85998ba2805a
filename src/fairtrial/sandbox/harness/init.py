"""The init process: starts one command, watches its process tree, ends it as a whole, and reports.

It is pid 1 of a full sandbox, or (plain) the subreaper of processes that the command leaves behind.
A warm server calls `supervise` in a forked process, after `namespaces.enter`.
"""

from __future__ import annotations

import errno
import os
import resource
import sys
import time

from . import kernel, syscall_filter
from .watcher import CommandWatch

TYPE_CHECKING = False  # typing takes longer to import than many commands to run
if TYPE_CHECKING:
    import signal
    from typing import Any, Callable, Iterable, Mapping, NoReturn, Sequence
else:
    import _signal as signal  # `signal` adds enum only, which is slow to import, too

_CPU_BACKSTOP_S = 10
_MB = 1 << 20


LAYOUT_VARIABLE = "FAIRTRIAL_LAYOUT"
"""Set for a timed worker: what it arranges its memory by; see `layout`."""


def make_exec_start(argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> Callable[[], int]:
    """Return a `start` for `supervise` that executes a program; exits with 127 if there is none."""

    def start() -> int:
        try:
            os.chdir(cwd)
            if LAYOUT_VARIABLE in env:  # the command arranges its memory by itself
                kernel.fix_addresses()
            _exec_program(argv, env)
        except OSError as error:
            os.write(2, f"cannot run {argv[0]} in {cwd}: {error.strerror}\n".encode())
        return 127

    return start


def _exec_program(argv: Sequence[str], env: Mapping[str, str]) -> None:
    # Not os.execvpe: it imports modules, whose files may not be visible any more.
    folders = env.get("PATH", os.defpath).split(":")
    files = [argv[0]] if "/" in argv[0] else [f"{folder or '.'}/{argv[0]}" for folder in folders]
    denied = None
    for file in files:
        try:
            os.execve(file, list(argv), dict(env))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:  # another folder may hold one that can be executed
            denied = error
    raise denied or FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))


def supervise(
    start: Callable[[], Any],
    limits: Mapping[str, Any],
    *,
    report: int,
    life: int,
    is_first: bool,
    private: Sequence[str] = (),
    close: Iterable[int] = (),
    cores: Sequence[int] = (),
    usage: int | None = None,
) -> bool:
    """Run `start` in a forked child, and return when its whole process tree has ended.

    Call it in the main thread of a process that has no other threads and no children. Processes of
    the same user can't trace this process from then on, or read its descriptors.

    start: what the child does; it returns the exit code (None: 0), unless it executes another
        program. Its standard streams are this process's
    limits: timeout_s, memory_mb, processes, file_mb, and poll_s if it isn't the default
    report: the descriptor to report on, one JSON document per line: {"started": pid}, then ending,
        exit_code, signal, wall_s, cpu_s, own_cpu_s (what the control group's count contains besides
        the command: this process, and all before the command's start), peak_rss_mb
    life: a descriptor that reads end-of-file when the caller is gone, or wants the command to stop
    is_first: whether this is pid 1 of a pid namespace with its own /proc
    private: folders in memory whose contents count as the command's memory
    close: further descriptors to close in the child
    cores: the cores that the child may use; this process avoids them if there are others
    usage: the descriptor of the file in which the control group counts CPU time; closed here

    Returns False if the command was stopped by `life`; the report says "stopped" then, or
    "processes" if there were too many.
    """
    if kernel.IS_LINUX:
        kernel.set_dumpable(False)
        kernel.join_new_keyring()
        if not is_first:
            kernel.become_subreaper()
    _avoid_cores(cores)
    wake = _open_child_pipe()
    used_before_s = _read_usage(usage)
    began = time.monotonic()
    main = os.fork()
    if main == 0:
        # The child reports its start, since it might kill this process before it could.
        _send(report, b'{"started": %d}\n' % os.getpid())
        _pin_to_cores(cores)
        _run_child(start, limits, (report, life, *wake, *close), is_first, bool(cores))
    watch = CommandWatch(main, limits, is_first, private, used_before_s)
    try:
        is_wanted = watch.run(life, wake[0])
    finally:
        watch.end_all()
    _send(report, watch.make_report(began).encode())
    return is_wanted


def _read_usage(descriptor: int | None) -> float:
    """Return the seconds that a control group has counted beside this process; closes the file."""
    if descriptor is None:
        return 0.0
    words = os.read(descriptor, 4096).split()  # "NANOSECONDS", or "usage_usec MICROSECONDS ..."
    os.close(descriptor)
    counted_s = int(words[1]) / 1e6 if words[0] == b"usage_usec" else int(words[0]) / 1e9
    return counted_s - time.process_time()


def _avoid_cores(cores: Sequence[int]) -> None:
    """Run this process on other cores than these, if there are any."""
    if cores and hasattr(os, "sched_setaffinity"):
        remaining = os.sched_getaffinity(0).difference(cores)
        if remaining:
            os.sched_setaffinity(0, remaining)


def _pin_to_cores(cores: Sequence[int]) -> None:
    if cores and hasattr(os, "sched_setaffinity"):
        try:
            os.sched_setaffinity(0, cores)
        except OSError as error:
            os.write(2, f"can't use cores {cores}: {error.strerror}\n".encode())
            os._exit(126)


def _open_child_pipe() -> tuple[int, int]:
    """Return a pipe that becomes readable whenever the state of a child changes."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)  # only `life` stops this process
    wake = os.pipe()
    for descriptor in wake:
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(wake[1], warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return wake


def _run_child(
    start: Callable[[], Any],
    limits: Mapping[str, Any],
    close: Iterable[int],
    is_first: bool,
    is_pinned: bool,
) -> NoReturn:
    """In the forked child: reset signals and descriptors, set limits, call `start`, and exit."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for descriptor in close:
            os.close(descriptor)
        os.setsid()
        os.umask(0o022)
        _set_limits(limits, is_first)
        if kernel.IS_LINUX:
            kernel.die_with_parent(signal.SIGKILL)
            kernel.set_dumpable(True)
            _raise_oom_score()
            kernel.drop_privileges()
            syscall_filter.install(is_pinned)
        result = start()
        code = result if isinstance(result, int) else 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                pass
        os._exit(code & 0xFF)


def _set_limits(limits: Mapping[str, Any], is_first: bool) -> None:
    """Set the kernel's limits for single processes; sums over the tree are polled."""
    cpu_s = int(limits["timeout_s"]) + _CPU_BACKSTOP_S
    resource_limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits["file_mb"] * _MB,
        resource.RLIMIT_CPU: cpu_s,
    }
    if is_first:
        # It counts threads, and doesn't apply to root. Outside of a new user namespace it would
        # count all processes of the user.
        resource_limits[resource.RLIMIT_NPROC] = 1024 + 16 * limits["processes"]
    for kind, limit in resource_limits.items():
        hard = resource.getrlimit(kind)[1]
        allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (allowed, allowed))


def _raise_oom_score() -> None:
    """Let the kernel kill the command first when the host's memory runs out."""
    try:
        descriptor = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    except OSError:
        return
    try:
        os.write(descriptor, b"1000")
    except OSError:
        pass
    finally:
        os.close(descriptor)


def _send(report: int, line: bytes) -> None:
    try:
        os.write(report, line)
    except BrokenPipeError:  # the caller is gone, which `life` reports, too
        pass
