"""Our init: starts one command, watches all that comes of it, ends it as a whole, and reports.

Pid 1 of a sandbox, or (plain) the adoptive parent of whatever the command leaves behind. A warm
server calls `supervise` in a process of its own, after `namespaces.enter`.
"""

from __future__ import annotations

import errno
import os
import resource
import sys
import time

from . import kernel
from .watcher import Watch

TYPE_CHECKING = False  # importing typing takes longer than many a command
if TYPE_CHECKING:
    import signal
    from typing import Any, Callable, Iterable, Mapping, NoReturn, Sequence
else:
    import _signal as signal  # so does enum, which is all that `signal` adds

_CPU_BACKSTOP_S = 10
_MB = 1 << 20


def execution(argv: Sequence[str], cwd: str, env: Mapping[str, str]) -> Callable[[], int]:
    """A `start` for `supervise` that becomes a program; 127 if there is none, like a shell."""

    def start() -> int:
        try:
            os.chdir(cwd)
            _become(argv, env)
        except OSError as error:
            os.write(2, f"cannot run {argv[0]} in {cwd}: {error.strerror}\n".encode())
        return 127

    return start


def _become(argv: Sequence[str], env: Mapping[str, str]) -> None:
    # Not os.execvpe: it imports, and there may be nothing left to import from.
    folders = env.get("PATH", os.defpath).split(":")
    files = [argv[0]] if "/" in argv[0] else [f"{folder or '.'}/{argv[0]}" for folder in folders]
    denied = None
    for file in files:
        try:
            os.execve(file, list(argv), dict(env))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError as error:  # another folder may have one that can be run
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
) -> bool:
    """Run `start` in a forked child and return when nothing of it is left.

    Call it in the main thread of a process that has no other threads and no children. Nobody of
    the same user can trace this process from then on, or read what it has open.

    start: what the child does; what it returns is its exit code (None: 0), unless it becomes
        another program. Its standard streams are this process's
    limits: timeout_s, memory_mb, processes, file_mb
    report: the descriptor to report on, one JSON document per line: {"started": pid}, then ending,
        exit_code, signal, wall_s, cpu_s, peak_rss_mb
    life: a descriptor that reads end-of-file when whoever asked is gone, or wants it to stop
    is_first: whether this is pid 1 of a pid namespace with a /proc of its own
    private: folders in memory whose contents count as the command's memory
    close: further descriptors that are none of the child's business
    cores: those that the child may use; this process keeps away from them if there are others

    Returns False if `life` ended it; the report says "stopped" then, or "processes" if there were
    too many.
    """
    if kernel.IS_LINUX:
        kernel.set_dumpable(False)
        kernel.leave_keyring()
        if not is_first:
            kernel.adopt_orphans()
    _keep_away_from(cores)
    wake = _hear_of_children()
    began = time.monotonic()
    main = os.fork()
    if main == 0:
        # It tells so itself, and first: it may end us before we come to it.
        _tell(report, b'{"started": %d}\n' % os.getpid())
        _take_cores(cores)
        _be_the_command(start, limits, (report, life, *wake, *close), is_first, bool(cores))
    watch = Watch(main, limits, is_first, private)
    try:
        is_wanted = watch.go_on(life, wake[0])
    finally:
        watch.end_all()
    _tell(report, watch.result(began).encode())
    return is_wanted


def _keep_away_from(cores: Sequence[int]) -> None:
    """Leave these cores to others, if there are more."""
    if cores and hasattr(os, "sched_setaffinity"):
        elsewhere = os.sched_getaffinity(0).difference(cores)
        if elsewhere:
            os.sched_setaffinity(0, elsewhere)


def _take_cores(cores: Sequence[int]) -> None:
    if cores and hasattr(os, "sched_setaffinity"):
        try:
            os.sched_setaffinity(0, cores)
        except OSError as error:
            os.write(2, f"can't use cores {cores}: {error.strerror}\n".encode())
            os._exit(126)


def _hear_of_children() -> tuple[int, int]:
    """A pipe that can be read from whenever a child has changed."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)  # `life` is how we are told to stop
    wake = os.pipe()
    for descriptor in wake:
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(wake[1], warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return wake


def _be_the_command(
    start: Callable[[], Any],
    limits: Mapping[str, Any],
    close: Iterable[int],
    is_first: bool,
    is_pinned: bool,
) -> NoReturn:
    """The forked child: nothing of its supervisor's, all limits, then the work."""
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
        _limit(limits, is_first)
        if kernel.IS_LINUX:
            kernel.die_with_parent(signal.SIGKILL)
            kernel.set_dumpable(True)
            _be_first_to_go()
            kernel.drop_privileges()
            if is_pinned:
                kernel.stay_on_cores()
        returned = start()
        code = returned if isinstance(returned, int) else 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (AttributeError, OSError, ValueError):
                pass
        os._exit(code & 0xFF)


def _limit(limits: Mapping[str, Any], is_first: bool) -> None:
    """What the kernel bounds for each process; sums are watched."""
    cpu_s = int(limits["timeout_s"]) + _CPU_BACKSTOP_S
    bounds = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits["file_mb"] * _MB,
        resource.RLIMIT_CPU: cpu_s,
    }
    if is_first:
        # Threads count here, and for root nothing does. Outside of a user namespace of its own
        # all that the user runs would count.
        bounds[resource.RLIMIT_NPROC] = 1024 + 16 * limits["processes"]
    for kind, bound in bounds.items():
        hard = resource.getrlimit(kind)[1]
        allowed = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(kind, (allowed, allowed))


def _be_first_to_go() -> None:
    """When memory runs out, the command goes, not its supervisor or the user's programs."""
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


def _tell(report: int, line: bytes) -> None:
    try:
        os.write(report, line)
    except BrokenPipeError:  # nobody is left to be told; `life` says so, too
        pass
