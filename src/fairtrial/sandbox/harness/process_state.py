"""Settings of a process that its functions share: what a function has changed and not restored.

A function that switches the garbage collector off, replaces `time.sleep` or ignores signals changes
the program of its caller. Only what is left behind counts: settings that are restored don't show.
"""

from __future__ import annotations

import builtins
import gc
import os
import sys
from typing import Any, Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal  # `signal` is Python code, which candidates may replace

globals()["__builtins__"] = dict(vars(builtins))  # candidates may replace the process's own

_MODULES = ("builtins", "time", "os", "json", "math", "gc", "io", "marshal", "_thread", "functools")
_SIGNALS = ("SIGINT", "SIGTERM", "SIGALRM", "SIGCHLD")
_NUMPY_ERRORS = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
# Bound early, before candidates can replace them.
_modules: Any = sys.modules
_environ: Any = getattr(os.environ, "_data", {})  # the mapping around it is Python code
_is_enabled, _get_threshold = gc.isenabled, gc.get_threshold
_get_depth, _get_interval = sys.getrecursionlimit, sys.getswitchinterval
_get_folder, _get_handler = os.getcwd, _signal.getsignal
_get_trace, _get_profile = sys.gettrace, sys.getprofile


def record_state() -> Callable[[], list[str]]:
    """Remember the state of this process; return a function that names what has changed since."""
    settings, environment = _read_settings(), dict(_environ)
    functions = {
        name: {key: item for key, item in vars(_modules[name]).items() if callable(item)}
        for name in _MODULES
        if name in _modules
    }

    def list_changes() -> list[str]:
        now, variables = _read_settings(), dict(_environ)
        changes = [name for name, value in settings.items() if now[name] != value]
        changes += [
            f"environment variable {name.decode('utf-8', 'replace')}"
            for name in {*environment, *variables}
            if environment.get(name) != variables.get(name)
        ]
        for module, items in functions.items():
            names = vars(_modules[module]) if module in _modules else {}
            changes += [f"{module}.{key}" for key in items if names.get(key) is not items[key]]
        return sorted([*changes, *_list_loaded()])

    return list_changes


def _read_settings() -> dict[str, Any]:
    handlers = {
        f"handler of {name}": _get_handler(getattr(_signal, name))
        for name in _SIGNALS
        if hasattr(_signal, name)
    }
    return {
        "garbage collector": (_is_enabled(), _get_threshold()),
        "recursion limit": _get_depth(),
        "switch interval of threads": _get_interval(),
        "working folder": _read_folder(),
        "trace function": (_get_trace(), _get_profile()),
        **handlers,
    }


def _read_folder() -> str:
    try:
        return _get_folder()
    except OSError:
        return ""


def _list_loaded() -> list[str]:
    """Return the settings of optional modules that aren't their defaults."""
    changes = []
    try:
        if "decimal" in _modules and _modules["decimal"].getcontext().prec != 28:
            changes.append("precision of decimal")
        if "numpy" in _modules and dict(_modules["numpy"].geterr()) != _NUMPY_ERRORS:
            changes.append("error handling of numpy")
    except Exception:
        changes.append("a standard module, which can't be asked")
    return changes
