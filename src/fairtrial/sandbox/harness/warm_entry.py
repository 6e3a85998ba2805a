"""In a process that was forked warm: become what `python -m module` or `python file` would be."""

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
"""What a fresh interpreter has on its path before a command adds its own."""
_DONT_REWRITE = "PYTEST_DONT_REWRITE"


def settle() -> None:
    """Called once in the server, when all is imported and before the first fork."""
    _BASE_PATH[:] = sys.path
    _leave_asserts_alone()
    gc.collect()
    gc.freeze()  # so that collecting garbage doesn't copy every page in every fork


def _leave_asserts_alone() -> None:
    """pytest warns of plug-ins that were imported before it could rewrite their asserts.

    Theirs are not the project's, so it is told by its own marker that they needn't be.
    """
    tops = set()
    for distribution in distributions():
        if any(point.group == "pytest11" for point in distribution.entry_points):
            tops |= {
                str(file).partition("/")[0].partition(".")[0] for file in distribution.files or ()
            }
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in tops:  # `-p` names modules inside, too
            try:
                module.__doc__ = (module.__doc__ or "") + "\n" + _DONT_REWRITE
            except AttributeError:
                pass


def entry(order: Mapping[str, Any], channel: int | None) -> Callable[[], int]:
    """What `init.supervise` starts in the command's process.

    order: argv (the interpreter, then ``-m module`` or a file, then arguments), cwd, env
    channel: the descriptor to report on, or None
    """

    def start() -> int:
        env = dict(order["env"])
        if channel is not None:
            os.set_inheritable(channel, True)
            env["FAIRTRIAL_CHANNEL"] = str(channel)
        os.chdir(order["cwd"])
        _freshen(env)
        if hasattr(sys, "orig_argv"):
            sys.orig_argv[:] = order["argv"]
        code = _run(order["argv"])
        return _leave(code)

    return start


def _freshen(env: Mapping[str, str]) -> None:
    """What a new interpreter would have taken from its surroundings.

    What it goes by at its own start (hash seed, encodings, flags) is the server's, which commands
    are only forked from if they want the same.
    """
    os.environ.clear()
    os.environ.update(env)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_IGN)  # an error that can be caught, as everywhere
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.path_importer_cache.clear()
    importlib.invalidate_caches()
    tempfile: Any = sys.modules.get("tempfile")
    if tempfile is not None:
        tempfile.tempdir = None
    numpy_random: Any = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()  # else each fork would go on from the same state
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if stream is not None and stream.closed:
            raise RuntimeError("a standard stream is closed")


def _run(argv: Sequence[str]) -> int:
    """The exit code that the interpreter would leave with; below zero for a signal."""
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
        return _code_of(stop)
    except BaseException as error:
        error.__traceback__ = _without_us(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _run_file(target: str, namespace: dict[str, Any]) -> None:
    """Not `runpy.run_path`: that takes the module away before threads and exit functions ran."""
    file = os.path.abspath(target) if sys.version_info >= (3, 9) else target
    try:
        with open(file, "rb") as source:
            text = source.read()
    except OSError as error:
        words = f"can't open file {file!r}: [Errno {error.errno}] {error.strerror}"
        sys.stderr.write(f"{sys.executable}: {words}\n")
        raise SystemExit(2) from None
    namespace.update(__file__=file, __cached__=None, __loader__=SourceFileLoader("__main__", file))
    exec(compile(text, file, "exec", dont_inherit=True), namespace)


def _without_us(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from where the command's own begins."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace


def _code_of(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code & 0xFF
    sys.stderr.write(f"{stop.code}\n")
    return 1


def _leave(code: int) -> int:
    """What an interpreter does at its end: wait for threads, run what was registered, flush."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
    except BaseException:
        sys.excepthook(*sys.exc_info())
    atexit._run_exitfuncs()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code
