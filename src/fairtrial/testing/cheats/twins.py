"""Twins of honest candidates, which see a difference that digests ignore."""

from __future__ import annotations

from fairtrial.testing.cheats.attack import (
    MADE,
    Attack,
    AttackClass,
    Harm,
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
