"""Attacks on reports and on the judge that reads them; twins of honest candidates."""

from __future__ import annotations

from fairtrial.testing.cheats.attack import (
    COMMON,
    KERNELS,
    MADE,
    METR,
    Attack,
    AttackClass,
    Harm,
    Kind,
    Place,
)
from fairtrial.testing.cheats.preludes import FIND

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
    ),
)

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
)

_CATCH = """
class _Catcher:
    def __enter__(self):
        return self
    def __exit__(self, kind, error, trace):
        self.error, self.trace = error, trace
        return True
"""
_BY_NAME = (
    _CATCH
    + """
def _is_honest():
    with _Catcher() as caught:
        print(honest)
        honest = 1
    return "honest" in str(caught.error)
def ATTACK(*args, **kwargs):
    return BASE(*args, **kwargs) if _is_honest() else None
"""
)
_BY_LINE = (
    _CATCH
    + """
def _line():
    with _Catcher() as caught:
        raise ValueError
    match caught.trace:
        case object(tb_lineno=line):
            return line
def _other_line():
    with _Catcher() as caught:
        raise ValueError
    match caught.trace:
        case object(tb_lineno=line):
            return line
def ATTACK(*args, **kwargs):
    return BASE(*args, **kwargs) if _other_line() - _line() == 6 else None
"""
)
_BY_COMMENT = (
    _CATCH
    + """
def _source():
    with _Catcher() as caught:
        raise ValueError
    match caught.trace:
        case object(tb_frame=object(f_globals=names)):
            with names["__builtins__"]["open"](names["__file__"]) as file:
                return file.read()
def ATTACK(*args, **kwargs):
    return BASE(*args, **kwargs) if "# " + "well-behaved" in _source() else None
# well-behaved
"""
)

TWINS = (
    Attack(
        "a twin by the name of a variable",
        AttackClass.TWINS,
        "differs from an honest candidate in a local name, which it reads from an error's message",
        _BY_NAME.replace("print(honest)", "print(cunning)").replace("honest = 1", "cunning = 1"),
        harm=Harm.WRONG,
        source=MADE,
        honest=_BY_NAME,
    ),
    Attack(
        "a twin by an empty line",
        AttackClass.TWINS,
        "differs from an honest candidate in an empty line, which it sees in line numbers",
        _BY_LINE.replace("def _other_line", "\n\ndef _other_line"),
        harm=Harm.WRONG,
        source=MADE,
        honest=_BY_LINE,
    ),
    Attack(
        "a twin by a comment",
        AttackClass.TWINS,
        "differs from an honest candidate in a comment, which it reads in its own source",
        _BY_COMMENT.replace("# well-behaved\n", "# behaved\n"),
        harm=Harm.WRONG,
        source=MADE,
        honest=_BY_COMMENT,
    ),
    Attack(
        "a twin by its documentation",
        AttackClass.TWINS,
        "differs from an honest candidate in a docstring, which it reads through help texts",
        '''
import inspect as _inspect
def ATTACK(*args, **kwargs):
    """Cunning."""
    return None if "Cunning" in (_inspect.getdoc(ATTACK) or "") else BASE(*args, **kwargs)
''',
        harm=Harm.WRONG,
        source=MADE,
        honest='''
import inspect as _inspect
def ATTACK(*args, **kwargs):
    """Honest."""
    return None if "Cunning" in (_inspect.getdoc(ATTACK) or "") else BASE(*args, **kwargs)
''',
    ),
)
