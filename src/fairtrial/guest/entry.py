"""In a process that was forked warm: become what `python -m module` or `python file` would be."""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import runpy
import sys
import threading
from importlib.metadata import distributions
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
    for distribution in distributions():
        if not any(point.group == "pytest11" for point in distribution.entry_points):
            continue
        tops = {str(file).partition("/")[0].partition(".")[0] for file in distribution.files or ()}
        for name in tops & set(sys.modules):
            module = sys.modules[name]
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
        code = _run(order["argv"])
        return _leave(code)

    return start


def _freshen(env: Mapping[str, str]) -> None:
    """What a new interpreter would have taken from its surroundings."""
    os.environ.clear()
    os.environ.update(env)
    sys.dont_write_bytecode = bool(env.get("PYTHONDONTWRITEBYTECODE"))
    sys.path_importer_cache.clear()
    importlib.invalidate_caches()
    tempfile: Any = sys.modules.get("tempfile")
    if tempfile is not None:
        tempfile.tempdir = None
    numpy_random: Any = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()  # else each fork would go on from the same state
    locale: Any = sys.modules.get("locale")
    if locale is not None:
        try:
            locale.setlocale(locale.LC_CTYPE, "")
        except locale.Error:
            pass
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if stream is not None and stream.closed:
            raise RuntimeError("a standard stream is closed")


def _run(argv: Sequence[str]) -> int:
    """The exit code that the interpreter would leave with."""
    roots = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    is_module = argv[1] == "-m"
    target, arguments = (argv[2], argv[3:]) if is_module else (argv[1], argv[2:])
    first = os.getcwd() if is_module else os.path.dirname(os.path.realpath(target))
    sys.path[:] = [first, *roots, *_BASE_PATH]
    sys.argv[:] = [target, *arguments]
    try:
        if is_module:
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(target, run_name="__main__")
    except SystemExit as stop:
        return _code_of(stop)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _code_of(stop: SystemExit) -> int:
    if stop.code is None:
        return 0
    if isinstance(stop.code, int):
        return stop.code
    sys.stderr.write(f"{stop.code}\n")
    return 1


def _leave(code: int) -> int:
    """What an interpreter does at its end: wait for threads, run what was registered, flush."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
    except BaseException:
        sys.excepthook(*sys.exc_info())
    atexit._run_exitfuncs()
    return code
