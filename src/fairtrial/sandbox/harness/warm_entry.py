"""Running of `python -m module` or `python file` in a process forked from a warm server."""

from __future__ import annotations

import atexit
import builtins
import gc
import importlib
import os
import runpy
import signal
import sys
import threading
from importlib.machinery import SourceFileLoader
from importlib.metadata import distributions
from types import TracebackType
from typing import Any, Callable, Mapping, Sequence

_BASE_PATH: list[str] = []
"""The path of a fresh interpreter, to which each command adds its own folders."""
_DONT_REWRITE = "PYTEST_DONT_REWRITE"


def prepare_for_forks() -> None:
    """Prepare the server's state after all imports and before the first fork."""
    _BASE_PATH[:] = sys.path
    _mark_pytest_plugins()
    gc.collect()
    gc.freeze()  # so that garbage collection doesn't copy every page in every fork


def _mark_pytest_plugins() -> None:
    """Mark loaded pytest plug-ins, so that pytest doesn't warn that it can't rewrite their asserts.

    Their asserts are not the project's, so they needn't be rewritten.
    """
    top_names = set()
    for distribution in distributions():
        if any(point.group == "pytest11" for point in distribution.entry_points):
            top_names |= {
                str(file).partition("/")[0].partition(".")[0] for file in distribution.files or ()
            }
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in top_names:  # submodules, too, which `-p` may name
            try:
                module.__doc__ = (module.__doc__ or "") + "\n" + _DONT_REWRITE
            except AttributeError:
                pass


def make_start(order: Mapping[str, Any], channel: int | None) -> Callable[[], int]:
    """Return the `start` of `init.supervise` that runs a command in the forked process.

    order: argv (the interpreter, then ``-m module`` or a file, then arguments), cwd, env
    channel: the descriptor to report on, or None
    """

    def start() -> int:
        env = dict(order["env"])
        if channel is not None:
            os.set_inheritable(channel, True)
            env["FAIRTRIAL_CHANNEL"] = str(channel)
        os.chdir(order["cwd"])
        _reset_interpreter(env)
        if hasattr(sys, "orig_argv"):
            sys.orig_argv[:] = order["argv"]
        code = _run(order["argv"])
        return _finalize_interpreter(code)

    return start


def _reset_interpreter(env: Mapping[str, str]) -> None:
    """Set up the interpreter's state from the command's environment, like a new interpreter.

    Settings that are fixed at its start (hash seed, encodings, flags) are the server's; commands
    that need others are not forked.
    """
    os.environ.clear()
    os.environ.update(env)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)  # as in any Python, which raises an error instead
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path_importer_cache.clear()
    importlib.invalidate_caches()
    tempfile: Any = sys.modules.get("tempfile")
    if tempfile is not None:
        tempfile.tempdir = None
    numpy_random: Any = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()  # otherwise each fork would continue from the same state
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if stream is not None and stream.closed:
            raise RuntimeError("a standard stream is closed")


def _run(argv: Sequence[str]) -> int:
    """Run a module or file, and return the interpreter's exit code; below zero for a signal."""
    roots = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    is_module = argv[1] == "-m"
    target, arguments = (argv[2], argv[3:]) if is_module else (argv[1], argv[2:])
    first = os.getcwd() if is_module else os.path.dirname(os.path.realpath(target))
    firsts = [] if getattr(sys.flags, "safe_path", False) else [first]
    sys.path[:] = [*firsts, *roots, *_BASE_PATH]
    sys.argv[:] = ["-m" if is_module else target, *arguments]
    xdist: Any = sys.modules.get("xdist.plugin")
    if isinstance(getattr(xdist, "_sys_path", None), list):
        xdist._sys_path[:] = sys.path  # a copy made at import, for its workers
    main = sys.modules["__main__"] = type(sys)("__main__")
    main.__dict__.update(__builtins__=builtins, __annotations__={})
    try:
        if is_module:
            runpy._run_module_as_main(target)  # type: ignore[attr-defined]
        else:
            _run_file(target, main.__dict__)
    except SystemExit as stop:
        return _get_exit_code(stop)
    except BaseException as error:
        error.__traceback__ = _strip_own_frames(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _run_file(target: str, namespace: dict[str, Any]) -> None:
    """Run a file as `__main__`.

    `runpy.run_path` would remove the module before threads and exit functions have run.
    """
    file = os.path.abspath(target) if sys.version_info >= (3, 9) else target
    try:
        with open(file, "rb") as source:
            text = source.read()
    except OSError as error:
        message = f"can't open file {file!r}: [Errno {error.errno}] {error.strerror}"
        sys.stderr.write(f"{sys.executable}: {message}\n")
        raise SystemExit(2) from None
    namespace.update(__file__=file, __cached__=None, __loader__=SourceFileLoader("__main__", file))
    exec(compile(text, file, "exec", dont_inherit=True), namespace)


def _strip_own_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return a traceback without the leading frames of this file."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace


def _get_exit_code(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    sys.stderr.write(f"{stop.code}\n")
    return 1


def _finalize_interpreter(code: int) -> int:
    """Do what an interpreter does at its end: wait for threads, and run exit functions."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
    except BaseException:
        sys.excepthook(*sys.exc_info())
    atexit._run_exitfuncs()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code
