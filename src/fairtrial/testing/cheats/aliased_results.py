"""Attacks whose results share objects, or differ in what comparisons may ignore."""

from __future__ import annotations

from fairtrial.testing.cheats.attack import (
    COMMON,
    KERNELS,
    MADE,
    Attack,
    AttackClass,
    Harm,
    Kind,
)

ALIASED = (
    Attack(
        "the same list again",
        AttackClass.ALIASED,
        "returns one list object from all calls, so that a later call changes earlier results",
        """
_kept = []
def ATTACK(*args, **kwargs):
    _kept[:] = BASE(*args, **kwargs)
    return _kept
""",
        kinds=(Kind.LIST,),
        harm=Harm.WRONG,
        source=MADE,
    ),
    Attack(
        "one list and a copy while judged",
        AttackClass.ALIASED,
        "returns one list from all calls, which a judge that encodes each result at once can't see",
        """
_kept = []
def ATTACK(*args, **kwargs):
    result = BASE(*args, **kwargs)
    if len(result) % 2:
        return result
    _kept[:] = result
    return _kept
""",
        kinds=(Kind.LIST,),
        harm=Harm.WRONG,
        source=MADE,
    ),
    Attack(
        "a memo hands out what it keeps",
        AttackClass.ALIASED,
        "remembers results by arguments and returns the kept object, which callers may change",
        """
_memo = {}
def ATTACK(*args, **kwargs):
    key = repr((args, kwargs))
    if key not in _memo:
        _memo[key] = BASE(*args, **kwargs)
    return _memo[key]
""",
        kinds=(Kind.LIST, Kind.DICT, Kind.NUMPY),
        harm=Harm.WRONG,
        source=COMMON,
    ),
    Attack(
        "a read-only array",
        AttackClass.ALIASED,
        "returns arrays that can't be written to",
        """
def ATTACK(*args, **kwargs):
    result = BASE(*args, **kwargs)
    result.flags.writeable = False
    return result
""",
        kinds=(Kind.NUMPY,),
        harm=Harm.WRONG,
        source=MADE,
    ),
    Attack(
        "another memory order",
        AttackClass.ALIASED,
        "returns arrays in Fortran order, or with negative strides",
        """
def ATTACK(*args, **kwargs):
    import numpy
    result = BASE(*args, **kwargs)
    if result.ndim > 1:
        return numpy.asfortranarray(result)
    return numpy.ascontiguousarray(result[::-1])[::-1]
""",
        kinds=(Kind.NUMPY,),
        harm=Harm.WRONG,
        source=MADE,
    ),
    Attack(
        "a view of one buffer",
        AttackClass.ALIASED,
        "returns views of a single buffer, so that a later call changes earlier results",
        """
_buffers = {}
def ATTACK(*args, **kwargs):
    result = BASE(*args, **kwargs)
    key = (result.shape, result.dtype.str)
    buffer = _buffers.setdefault(key, result)
    buffer[...] = result
    return buffer[...]
""",
        kinds=(Kind.NUMPY,),
        harm=Harm.WRONG,
        source=KERNELS,
    ),
    Attack(
        "a dict in another order",
        AttackClass.ALIASED,
        "returns dictionaries whose keys come in the reverse order",
        """
def ATTACK(*args, **kwargs):
    return dict(reversed(list(BASE(*args, **kwargs).items())))
""",
        kinds=(Kind.DICT,),
        harm=Harm.WRONG,
        source=MADE,
    ),
    Attack(
        "keeps and changes earlier results",
        AttackClass.ALIASED,
        "empties the list that the call before the last returned",
        """
_earlier = []
def ATTACK(*args, **kwargs):
    _earlier.append(BASE(*args, **kwargs))
    if len(_earlier) > 2:
        _earlier.pop(0).clear()
    return _earlier[-1]
""",
        kinds=(Kind.LIST, Kind.DICT),
        harm=Harm.WRONG,
        source=MADE,
    ),
)
