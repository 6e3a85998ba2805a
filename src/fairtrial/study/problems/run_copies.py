"""Copies of problems, conditions and outputs, so that no run sees what another one changed.

Lists, mappings and sets are copied; texts, numbers and other immutable values are shared. A copy is
made when it is first asked for: a run that never reads a large payload pays nothing for it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.runs import RunSpec, make_spec, quick_maker
from fairtrial.study.problems.hooks import ProblemHooks
from fairtrial.study.problems.packet import ProblemPacket

_SHARED = frozenset((str, int, float, bool, complex, bytes, range, type(None)))
"""Types whose values can't be changed."""
_make_condition = quick_maker(Condition)


def copy_value(value: Any) -> Any:
    """Return a copy of a value that shares no list, mapping, set, bytearray or array with it.

    Objects of other classes are shared, and so are values that hold themselves or are nested too
    deeply to be copied.
    """
    if type(value) is dict and _SHARED.issuperset(map(type, value.values())):
        return value.copy()
    try:
        return _copy(value)
    except RecursionError:
        return value


def _copy(value: Any) -> Any:
    kind = type(value)
    if kind in _SHARED:
        return value
    if kind is dict:
        return {key: _copy(item) for key, item in value.items()}
    if kind is list:
        # A million numbers are copied at once rather than one by one.
        return value.copy() if _SHARED.issuperset(map(type, value)) else list(map(_copy, value))
    if kind is tuple:
        return value if _SHARED.issuperset(map(type, value)) else tuple(map(_copy, value))
    if kind is MappingProxyType:
        return MappingProxyType(_copy(dict(value)))
    if isinstance(value, (dict, list, set, bytearray)) or hasattr(value, "__array__"):
        return _try_copy(value)
    return value


def _try_copy(value: Any) -> Any:
    """Return a deep copy; the value itself if it can't be copied."""
    try:
        return copy.deepcopy(value)
    except Exception:  # whatever the copying methods of a user's class raise
        return value


class _PacketView(ProblemPacket):
    """A packet whose payload and metadata are copied when they are first read.

    It has neither the reference nor the hidden columns, which agents must not see.
    """

    __slots__ = ("_copies", "_packet")
    _copies: dict[str, Any]
    _packet: ProblemPacket

    def __init__(self, *args: Any, **fields: Any) -> None:
        """Take the fields of a packet, as `dataclasses.replace` passes them."""
        self._show(ProblemPacket(*args, **fields))

    @classmethod
    def of(cls, packet: ProblemPacket) -> _PacketView:
        """Return a view of a packet."""
        view = object.__new__(cls)
        view._show(packet)
        return view

    def _show(self, packet: ProblemPacket) -> None:
        for name in ("problem_id", "family", "brief", "evaluator"):
            object.__setattr__(self, name, getattr(packet, name))
        object.__setattr__(self, "reference", None)
        object.__setattr__(self, "hidden", {})
        if packet.reference is not None or packet.hidden:
            packet = replace(packet, reference=None, hidden={})
        object.__setattr__(self, "_packet", packet)
        object.__setattr__(self, "_copies", {})

    def __reduce__(self) -> tuple[Any, ...]:
        return ProblemPacket, _fields(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ProblemPacket) and _fields(self) == _fields(other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def payload(self) -> Mapping[str, Any]:
        """The data for the agent; the run's own copy."""
        own: Mapping[str, Any] = self._own("payload")
        return own

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Further facts; the run's own copy."""
        own: Mapping[str, Any] = self._own("metadata")
        return own

    def _own(self, name: str) -> Any:
        if name not in self._copies:
            self._copies[name] = copy_value(getattr(self._packet, name))
        return self._copies[name]


def _fields(packet: ProblemPacket) -> tuple[Any, ...]:
    names = ("problem_id", "family", "brief", "payload", "metadata", "evaluator")
    return tuple(getattr(packet, name) for name in names)


def copy_problem(problem: Any) -> Any:
    """Return a problem for one run.

    A packet's payload and metadata are copied when they are read. Of an object of another class the
    attributes that are lists, mappings, sets or arrays are copied. Problems with hooks, such as
    code problems, and objects that can't be copied are shared.
    """
    if isinstance(problem, ProblemPacket):
        return _PacketView.of(problem)
    attributes = getattr(problem, "__dict__", None)
    if isinstance(problem, (ProblemHooks, type)) or not attributes:
        return problem
    own = {name: copy_value(value) for name, value in attributes.items()}
    if all(own[name] is attributes[name] for name in own):
        return problem
    try:
        view = copy.copy(problem)
        view.__dict__.update(own)
    except Exception:  # whatever the copying methods of a user's class raise
        return problem
    return view


def copy_condition(condition: Condition) -> Condition:
    """Return a condition for one run."""
    return _make_condition(
        condition.condition_id,
        copy_value(condition.factor_assignments),
        copy_value(condition.block_assignments),
        copy_value(condition.metadata),
        condition.admissible,
        condition.constraint_messages,
    )


def copy_spec(spec: RunSpec) -> RunSpec:
    """Return the spec of a run with metadata of its own."""
    return make_spec(
        spec.run_id,
        spec.study_id,
        spec.condition_id,
        spec.problem_id,
        spec.replicate,
        spec.seed,
        spec.agent_spec_ref,
        spec.problem_spec_ref,
        copy_value(spec.execution_metadata),
    )
