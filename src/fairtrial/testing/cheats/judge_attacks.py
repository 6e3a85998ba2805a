"""Attacks on the judge itself: its time, its memory, its other candidates."""

from __future__ import annotations

from fairtrial.testing.cheats.attack import (
    COMMON,
    MADE,
    Attack,
    AttackClass,
    Harm,
    Kind,
    Place,
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


_NEST = """
_nested = 0
for _ in range(60):
    _nested = {"$": "dict", "items": [[_nested, 0]]}
"""


JUDGE = (
    Attack(
        "a comparison that never ends",
        AttackClass.JUDGE,
        "reports nested mappings whose comparison takes exponential time",
        _CODEC
        + _NEST
        + """
if _codec is not None:
    _dump = _codec.dump_encoded
    def _dump_nested(report):
        if type(report) is dict and "case" in report:
            report = dict(report)
            report["after"] = {"args": [], "kwargs": {"$": "dict", "items": [[_nested, 1]]}}
        return _dump(report)
    _codec.dump_encoded = _dump_nested
ATTACK = BASE
""",
        harm=Harm.JUDGE,
        source=MADE,
    ),
    Attack(
        "very large replies",
        AttackClass.JUDGE,
        "adds tens of megabytes to every report",
        _CODEC
        + """
if _codec is not None:
    _dump = _codec.dump_encoded
    _large = "[" + "0," * 30_000_000 + "0]"
    def _dump_large(report):
        if type(report) is dict and "case" in report:
            return '{"case":%d,"result":%s}' % (report["case"], _large)
        return _dump(report)
    _codec.dump_encoded = _dump_large
ATTACK = BASE
""",
        harm=Harm.JUDGE,
        source=MADE,
    ),
    Attack(
        "a very deep report",
        AttackClass.JUDGE,
        "reports a list that is nested a hundred thousand levels deep",
        _CODEC
        + """
if _codec is not None:
    _dump = _codec.dump_encoded
    def _dump_deep(report):
        text = _dump(report)
        if type(report) is dict and "case" in report:
            return '{"case":%d,"result":' % report["case"] + "[" * 10**5 + "]" * 10**5 + "}"
        return text
    _codec.dump_encoded = _dump_deep
ATTACK = BASE
""",
        harm=Harm.JUDGE,
        source=MADE,
    ),
    Attack(
        "leases on the harness's files",
        AttackClass.JUDGE,
        "takes write leases on files that later processes open, so that they wait",
        """
import fcntl as _fcntl, os as _os, sys as _sys, time as _time
_main = getattr(_sys.modules.get("__main__"), "__file__", None)
_kept = []
for _folder in {_os.path.dirname(_main or __file__), _os.path.dirname(__file__)}:
    for _name in _os.listdir(_folder):
        try:
            _file = open(_os.path.join(_folder, _name), "rb")
            _fcntl.fcntl(_file, _fcntl.F_SETLEASE, _fcntl.F_RDLCK)
            _fcntl.fcntl(_file, _fcntl.F_SETLEASE, _fcntl.F_WRLCK)
            _kept.append(_file)
        except OSError:
            pass
_kept and _time.sleep(5)
ATTACK = BASE
""",
        harm=Harm.JUDGE,
        source=MADE,
    ),
    Attack(
        "many processes",
        AttackClass.JUDGE,
        "starts a few hundred processes that only wait",
        """
import os as _os, time as _time
def ATTACK(*args, **kwargs):
    for _ in range(300):
        try:
            if _os.fork() == 0:
                _time.sleep(3)
                _os._exit(0)
        except OSError:
            break
    return BASE(*args, **kwargs)
""",
        kinds=(Kind.FUNCTION,),
        harm=Harm.JUDGE,
        source=COMMON,
    ),
    Attack(
        "more memory than allowed",
        AttackClass.JUDGE,
        "fills memory until it is beyond the limit of the problem",
        """
_blocks = []
def ATTACK(*args, **kwargs):
    while len(_blocks) < {memory_mb} // 64 + 8:
        _blocks.append(bytearray(b"x") * (64 << 20))
    return BASE(*args, **kwargs)
""",
        harm=Harm.JUDGE,
        source=COMMON,
    ),
    Attack(
        "endless output",
        AttackClass.JUDGE,
        "prints hundreds of megabytes in every call",
        """
import os as _os
def ATTACK(*args, **kwargs):
    block = b"x" * (1 << 20)
    for _ in range(300):
        try:
            _os.write(2, block)
        except OSError:
            break
    return BASE(*args, **kwargs)
""",
        harm=Harm.JUDGE,
        source=COMMON,
    ),
    Attack(
        "a command that prints without end",
        AttackClass.JUDGE,
        "prints hundreds of megabytes before it does its work",
        """
import os as _os
for _ in range(300):
    _os.write(1, b"x" * (1 << 20))
""",
        kinds=(Kind.COMMAND,),
        harm=Harm.JUDGE,
        source=COMMON,
        place=Place.START,
    ),
    Attack(
        "locks on shared files",
        AttackClass.JUDGE,
        "locks the files of the interpreter and the standard library while the rival runs",
        """
import fcntl as _fcntl, glob as _glob, os as _os, sys as _sys, time as _time
_held = []
for _path in [_sys.executable, *_glob.glob(_os.path.dirname(_os.__file__) + "/*.py")]:
    try:
        _file = open(_path, "rb")
        _fcntl.flock(_file, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
        _held.append(_file)
    except OSError:
        pass
def ATTACK(*args, **kwargs):
    _time.sleep(0.05)
    return BASE(*args, **kwargs)
""",
        harm=Harm.JUDGE,
        source=MADE,
    ),
    Attack(
        "very many differences",
        AttackClass.JUDGE,
        "returns a hundred thousand parts, each of which differs",
        """
def ATTACK(*args, **kwargs):
    return [{"a": [0]}] * 100_000
""",
        harm=Harm.JUDGE,
        source=MADE,
    ),
    Attack(
        "a result that writes to the terminal",
        AttackClass.JUDGE,
        "returns and raises texts with control sequences and halves of characters",
        """
def ATTACK(*args, **kwargs):
    text = "\\x1b]0;owned\\x07\\x1b[2J\\u202e\\ud800"
    if len(args) % 2:
        raise ValueError(text)
    return [text] * 30
""",
        harm=Harm.JUDGE,
        source=MADE,
    ),
)
