"""A record of the files whose module code was executed, kept by an audit hook.

What a process says about its own modules can be forged: `sys.modules` holds any object, with any
`__file__`. An audit hook is called by the interpreter, can't be removed, and keeps its record in a
closure. It still says only that a file's code was executed, not that a check depends on it: code
that wants a file to look imported can import it, or look for the closure with `gc`.
"""

from __future__ import annotations

import builtins
import os
import sys
from types import CodeType

globals()["__builtins__"] = dict(vars(builtins))  # candidates may replace the process's own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable


def record_imports() -> Callable[[], list[str]]:
    """Begin to record; return a function that lists the recorded files so far.

    Modules that were imported before aren't listed. Relative paths are those of the folder in which
    the record began.
    """
    files: set[str] = set()
    remember, start, code_type = files.add, os.getcwd(), CodeType

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "exec":
            code = arguments[0]
            if type(code) is code_type and code.co_name == "<module>":
                remember(code.co_filename)
        elif event == "import" and type(arguments[1]) is str:  # an extension module
            remember(arguments[1])

    sys.addaudithook(hook)
    return lambda: sorted(file if file[:1] == "/" else f"{start}/{file}" for file in files)
