"""Attacks that patch the code which reports results."""

from __future__ import annotations

from fairtrial.testing.cheats.attack import (
    KERNELS,
    MADE,
    METR,
    Attack,
    AttackClass,
    Harm,
    Kind,
)
from fairtrial.testing.cheats.preludes import (
    FIND,
)

_CODEC = (
    FIND
    + """
_codec = _sys.modules.get("_fairtrial_harness.codec") or _find("codec")
"""
)


FORGED = (
    Attack(
        "reports spoiled arguments as unchanged",
        AttackClass.FORGED,
        "changes its arguments, and patches the codec to report them as they were",
        _CODEC
        + """
import copy as _copy
def ATTACK(*args, **kwargs):
    result = _copy.deepcopy(BASE(*args, **kwargs))
    for item in args:
        if type(item) in (list, dict, set):
            item.clear()
    return result
if _codec is not None:
    _encode = _codec.encode
    def _encode_unspoiled(value, *caps):
        names = _sys._getframe(1).f_locals
        case = names.get("case")
        if type(case) is dict and value is names.get("args"):
            return case["args"]
        return _encode(value, *caps)
    _codec.encode = _encode_unspoiled
if _Batch is not None:
    _Batch.encode_changed_arguments = lambda self, index: None
""",
        kinds=(Kind.LIST,),
        harm=Harm.WRONG,
        source=MADE,
    ),
    Attack(
        "reports a tuple as a list",
        AttackClass.FORGED,
        "returns another type than the base, and patches the codec to report the base's type",
        _CODEC
        + """
def ATTACK(*args, **kwargs):
    return tuple(BASE(*args, **kwargs))
if _codec is not None:
    _encode = _codec.encode
    def _encode_as_list(value, *caps):
        return _encode(list(value) if type(value) is tuple else value, *caps)
    _codec.encode = _encode_as_list
    _dump = _sys.modules["__main__"].__dict__.get("dump_plain")
    if _dump is not None:
        _sys.modules["__main__"].dump_plain = (
            lambda value: _dump(list(value) if type(value) is tuple else value))
""",
        kinds=(Kind.LIST,),
        harm=Harm.WRONG,
        source=MADE,
    ),
    Attack(
        "reports another exception",
        AttackClass.FORGED,
        "raises exceptions of a type of its own, and patches the codec to report the base's",
        _CODEC
        + """
class _Private(BaseException):
    pass
def ATTACK(*args, **kwargs):
    try:
        return BASE(*args, **kwargs)
    except Exception as error:
        private = _Private(*error.args)
        private.honest = error
        raise private
if _codec is not None:
    _encode_raised = _codec.encode_raised
    _codec.encode_raised = lambda error, *caps: _encode_raised(
        getattr(error, "honest", error), *caps)
""",
        harm=Harm.WRONG,
        source=MADE,
    ),
    Attack(
        "says that results can't be read",
        AttackClass.FORGED,
        "reports all results as too large to be read",
        _CODEC
        + """
if _codec is not None:
    _codec.encode = lambda value, *caps: {"$": "unreadable", "why": "too large"}
def ATTACK(*args, **kwargs):
    return {empty}
""",
        harm=Harm.WRONG,
        source=MADE,
    ),
    Attack(
        "writes the report itself",
        AttackClass.FORGED,
        "writes reports of success to every open descriptor, and exits with 0",
        """
import os as _os
def ATTACK(*args, **kwargs):
    lines = ['{"case":%d,"result":null,"output":"","after":null}' % number for number in range(99)]
    content = ("\\n".join([*lines, '{"done":99,"files":[]}']) + "\\n").encode()
    for descriptor in range(3, 100):
        try:
            _os.write(descriptor, content)
        except OSError:
            pass
    _os._exit(0)
""",
        harm=Harm.WRONG,
        source=METR,
    ),
    Attack(
        "reports fewer results",
        AttackClass.FORGED,
        "makes no calls while it is timed, and reports no results",
        FIND
        + """
if _Batch is not None:
    _encode = _Batch.encode_results
    _Batch.run = lambda self: None
ATTACK = BASE
""",
        harm=Harm.WRONG,
        source=MADE,
        needs_clock=True,
    ),
    Attack(
        "repeats its first report",
        AttackClass.FORGED,
        "makes the calls of the first batch only, and sends its results again and again",
        FIND
        + """
_first = []
if _Batch is not None:
    _run, _encode = _Batch.run, _Batch.encode_results
    def _run_once(self):
        if len(_first) < 2:
            _run(self)
    def _encode_again(self):
        if len(_first) < 2:
            _first.append(_encode(self))
        return _first[-1]
    _Batch.run, _Batch.encode_results = _run_once, _encode_again
ATTACK = BASE
""",
        harm=Harm.WRONG,
        source=KERNELS,
        needs_clock=True,
    ),
    Attack(
        "gives the harness other arguments to look at",
        AttackClass.FORGED,
        "spoils its arguments, and replaces them by copies in the record of the call",
        """
import sys as _sys
def ATTACK(*args, **kwargs):
    result = list(BASE(*args, **kwargs))
    frame = _sys._getframe(1)
    while frame is not None and "call" not in frame.f_locals:
        frame = frame.f_back
    call = frame.f_locals["call"] if frame is not None else None
    if hasattr(call, "args"):
        call.args[:] = [list(item) if type(item) is list else item for item in args]
        call.args = list(call.args)
    for item in args:
        if type(item) in (list, dict, set):
            item.clear()
    return result
""",
        kinds=(Kind.LIST,),
        harm=Harm.WRONG,
        source=MADE,
    ),
)
