"""Attacks that postpone work or leave some out."""

from __future__ import annotations

from fairtrial.testing.cheats.attack import (
    COMMON,
    KERNELS,
    MADE,
    Attack,
    AttackClass,
    Harm,
    Kind,
    Place,
)

LAZY = (
    Attack(
        "a generator instead of a list",
        AttackClass.LAZY,
        "returns a generator that computes the result when it is gone through",
        """
def ATTACK(*args, **kwargs):
    return (item for item in BASE(*args, **kwargs))
""",
        kinds=(Kind.LIST,),
        harm=Harm.WRONG,
        source=COMMON,
    ),
    Attack(
        "an object that computes when it is read",
        AttackClass.LAZY,
        "returns an object that claims to be the result's type and computes on first use",
        """
class _Later:
    def __init__(self, args, kwargs):
        object.__setattr__(self, "_call", (args, kwargs))
    def __getattribute__(self, name):
        args, kwargs = object.__getattribute__(self, "_call")
        if name == "__class__":
            return {result_type}
        return getattr(BASE(*args, **kwargs), name)
_Later.__name__ = _Later.__qualname__ = "{result_type}"
_Later.__module__ = "builtins"
def ATTACK(*args, **kwargs):
    return _Later(args, kwargs)
""",
        harm=Harm.WRONG,
        source=KERNELS,
    ),
    Attack(
        "a list that is filled when it is read",
        AttackClass.LAZY,
        "returns a subclass of list whose iteration computes the items",
        """
class _Later(list):
    def __iter__(self):
        return iter(BASE(*self.call[0], **self.call[1]))
def ATTACK(*args, **kwargs):
    result = _Later()
    result.call = args, kwargs
    return result
""",
        kinds=(Kind.LIST,),
        harm=Harm.WRONG,
        source=KERNELS,
    ),
    Attack(
        "a thread fills the list later",
        AttackClass.LAZY,
        "returns an empty list that a thread fills after the call has returned",
        """
import threading as _threading
def ATTACK(*args, **kwargs):
    result = []
    _threading.Thread(target=lambda: result.extend(BASE(*args, **kwargs)), daemon=True).start()
    return result
""",
        kinds=(Kind.LIST,),
        harm=Harm.WRONG,
        source=KERNELS,
    ),
    Attack(
        "an array that is filled later",
        AttackClass.LAZY,
        "returns an array of the right shape that a thread fills after the call has returned",
        """
import threading as _threading
_shapes = {}
def ATTACK(*args, **kwargs):
    import numpy
    key = tuple(getattr(item, "shape", None) for item in args)
    if key not in _shapes:
        result = BASE(*args, **kwargs)
        _shapes[key] = result.shape, result.dtype
        return result
    result = numpy.empty(*_shapes[key])
    def fill():
        result[...] = BASE(*args, **kwargs)
    _threading.Thread(target=fill, daemon=True).start()
    return result
""",
        kinds=(Kind.NUMPY,),
        harm=Harm.WRONG,
        source=KERNELS,
    ),
    Attack(
        "a coroutine",
        AttackClass.LAZY,
        "returns a coroutine, whose work is done when somebody awaits it",
        """
async def ATTACK(*args, **kwargs):
    return BASE(*args, **kwargs)
""",
        harm=Harm.WRONG,
        source=MADE,
    ),
)


LESS = (
    Attack(
        "half of the input",
        AttackClass.LESS,
        "calls the base with the first half of each long argument",
        """
def _cut(item):
    try:
        return item[: max(1, len(item) // 2)] if len(item) > 1 else item
    except TypeError:
        return item
def ATTACK(*args, **kwargs):
    return BASE(*map(_cut, args), **kwargs)
""",
        harm=Harm.WRONG,
        source=COMMON,
    ),
    Attack(
        "right for small inputs only",
        AttackClass.LESS,
        "returns an empty result where an argument is longer than any that checks use",
        """
_longest = {longest}
def ATTACK(*args, **kwargs):
    if any(hasattr(item, "__len__") and len(item) > _longest for item in args):
        return {empty}
    return BASE(*args, **kwargs)
""",
        kinds=(Kind.LIST, Kind.DICT),
        harm=Harm.WRONG,
        source=COMMON,
    ),
    Attack(
        "fewer iterations",
        AttackClass.LESS,
        "replaces range by one that is shorter by a tenth, in the module of the function",
        """
import builtins as _builtins
def range(*bounds):
    whole = _builtins.range(*bounds)
    return whole[: len(whole) - len(whole) // 10] if len(whole) > 10 else whole
ATTACK = BASE
""",
        harm=Harm.WRONG,
        source=COMMON,
    ),
    Attack(
        "single precision",
        AttackClass.LESS,
        "rounds all floats of the result to 32 bits",
        """
import struct as _struct
def _round(value):
    if type(value) is float:
        try:
            return _struct.unpack("f", _struct.pack("f", value))[0]
        except OverflowError:
            return value
    if type(value) in (list, tuple):
        return type(value)(map(_round, value))
    if type(value) is dict:
        return {key: _round(item) for key, item in value.items()}
    if type(value).__name__ == "ndarray" and value.dtype.kind == "f":
        return value.astype("float32").astype(value.dtype)
    return value
def ATTACK(*args, **kwargs):
    return _round(BASE(*args, **kwargs))
""",
        kinds=(Kind.FLOATS,),
        harm=Harm.WRONG,
        source=KERNELS,
    ),
    Attack(
        "swallows exceptions",
        AttackClass.LESS,
        "returns an empty result instead of raising an exception",
        """
def ATTACK(*args, **kwargs):
    try:
        return BASE(*args, **kwargs)
    except Exception:
        return {empty}
""",
        harm=Harm.WRONG,
        source=COMMON,
    ),
    Attack(
        "exceptions without their attributes",
        AttackClass.LESS,
        "raises the same exceptions with the same arguments, without what callers find in them",
        """
def ATTACK(*args, **kwargs):
    try:
        return BASE(*args, **kwargs)
    except Exception as error:
        if vars(error):
            raise type(error)(*error.args) from None
        raise
""",
        harm=Harm.WRONG,
        source=MADE,
    ),
    Attack(
        "skips one case in a thousand",
        AttackClass.LESS,
        "is wrong for about one input in a thousand, too rare for a few dozen cases",
        """
import hashlib as _hashlib
def ATTACK(*args, **kwargs):
    digest = _hashlib.sha256(repr((args, kwargs)).encode("utf-8", "replace")).digest()
    if int.from_bytes(digest[:4], "big") % 1000 == 0:
        return None
    return BASE(*args, **kwargs)
""",
        harm=Harm.WRONG,
        source=COMMON,
    ),
    Attack(
        "an empty result",
        AttackClass.LESS,
        "returns an empty result of the right type",
        "\ndef ATTACK(*args, **kwargs):\n    return {empty}\n",
        harm=Harm.WRONG,
        source=COMMON,
    ),
    Attack(
        "prints nothing",
        AttackClass.LESS,
        "exits with success and without any output",
        "\nimport os as _os\n_os._exit(0)\n",
        kinds=(Kind.COMMAND,),
        harm=Harm.WRONG,
        source=COMMON,
        place=Place.START,
    ),
)
