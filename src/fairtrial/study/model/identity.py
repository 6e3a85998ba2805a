"""Ids, seeds and the canonical JSON beneath them.

The recipes are those of *design-research-experiments* 0.3, to the byte, so that a study that moves
over keeps its condition ids, run ids and seeds. They are a file format: change nothing here that
changes an id.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import PurePath
from typing import Any

from fairtrial.core.errors import Mistake, Place, StudyError

ID_DIGITS = 12
DEPTH_LIMIT = 100
"""How deep lists and mappings may be nested: a limit of our own, since Python's own differs from
version to version, and a study is to be good or bad everywhere."""
TOO_DEEP = f"lists and mappings are nested more than {DEPTH_LIMIT} deep"
SEED_MODULUS = 2**31 - 1
SAME_KEY = "two keys are the same once written as text"


def plain(value: Any, path: Place = ()) -> Any:
    """`value` in the types that JSON has; anything else is refused, never turned into its text.

    Enums become their value, paths their text, tuples lists, sets sorted lists, keys text.
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return plain(value.value, path)
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise StudyError(Mistake(path, f"{value} is not a finite number"))
        return float(value)
    if isinstance(value, PurePath):
        return str(value)
    if len(path) > DEPTH_LIMIT:
        raise StudyError(Mistake(path[:3], TOO_DEEP))
    if isinstance(value, Mapping):
        return _plain_mapping(value, path)
    if isinstance(value, (list, tuple)):
        return [plain(item, (*path, index)) for index, item in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        items = [plain(item, path) for item in value]
        try:
            return sorted(items)
        except TypeError:
            return sorted(items, key=canonical_json)
    kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    raise StudyError(
        Mistake(
            path,
            f"a value of type {kind} can't be written down",
            "use text, a number, true/false, null, a list or a mapping",
        )
    )


def key_text(key: Any) -> str:
    """A mapping's key as the text that files have in its place."""
    return str(key.value) if isinstance(key, Enum) else str(key)


def _plain_mapping(value: Mapping[Any, Any], path: Place) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, item in value.items():
        text = key_text(key)
        if text in result:
            raise StudyError(Mistake((*path, text), SAME_KEY))
        result[text] = plain(item, (*path, text))
    return result


def canonical_json(value: Any) -> str:
    """The one text that a value is hashed as."""
    try:
        return json.dumps(plain(value), sort_keys=True, separators=(",", ":"))
    except StudyError:
        raise
    except ValueError:
        raise StudyError("a number has too many digits to be written down") from None
    except RecursionError:
        raise StudyError(TOO_DEEP) from None


def hash_id(prefix: str, payload: Any) -> str:
    """``prefix-`` and the first 12 hex digits of the SHA-256 of the canonical JSON."""
    return _short(prefix, canonical_json(payload))


def _short(prefix: str, text: str) -> str:
    return f"{prefix}-{hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]}"


def fingerprint(factors: Mapping[str, Any], blocks: Mapping[str, Any]) -> str:
    """What a condition assigns, as the text that its id is made of."""
    return canonical_json({"factors": factors, "blocks": blocks})


def condition_id(
    factors: Mapping[str, Any],
    blocks: Mapping[str, Any],
    keyed: Mapping[str, Any] | None = None,
) -> str:
    """The id of a condition; `keyed` tells the rows of a design that comes as rows apart."""
    return condition_id_of(fingerprint(factors, blocks), keyed)


def condition_id_of(print_: str, keyed: Mapping[str, Any] | None = None) -> str:
    """The id of a condition by its fingerprint; "metadata" is the last of its keys."""
    text = f'{print_[:-1]},"metadata":{canonical_json(keyed)}}}' if keyed else print_
    return _short("cond", text)


def run_id(
    *,
    study_id: str,
    condition_id: str,
    replicate: int,
    agent_id: str | None,
    problem_id: str | None,
) -> str:
    """The id of a run: one agent on one problem under one condition, once."""
    return run_id_maker(study_id, condition_id, agent_id, problem_id)(replicate)


def run_id_maker(
    study_id: str, condition_id: str, agent_id: str | None, problem_id: str | None
) -> Callable[[int], str]:
    """`run_id` with all but the replicate fixed.

    A plan differs from run to run in little more than the replicate, so the JSON around it is
    written once: a million ids then cost less than a million calls of `json.dumps`.
    """
    head = (
        f'{{"agent_id":{json.dumps(agent_id)},"condition_id":{json.dumps(condition_id)},'
        f'"problem_id":{json.dumps(problem_id)},"replicate":'
    )
    tail = f',"study_id":{json.dumps(study_id)}}}'
    start = hashlib.sha256(head.encode())

    def make(replicate: int) -> str:
        digest = start.copy()
        digest.update(f"{replicate}{tail}".encode())
        return f"run-{digest.hexdigest()[:ID_DIGITS]}"

    return make


def seed_maker(
    policy: Mapping[str, Any], study_id: str, condition_id: str, salt: str
) -> Callable[[int], int]:
    """A run's seed as a function of its replicate; `policy` holds the fields of a SeedPolicy."""
    head = (
        f'{{"base_seed":{json.dumps(policy["base_seed"])},"condition_id":{json.dumps(condition_id)},'
        f'"per_run_offset":{json.dumps(policy["per_run_offset"])},"replicate":'
    )
    tail = (
        f',"salt":{json.dumps(salt)},"strategy":{json.dumps(policy["strategy"])},'
        f'"study_id":{json.dumps(study_id)}}}'
    )
    start = hashlib.sha256(head.encode())

    def make(replicate: int) -> int:
        digest = start.copy()
        digest.update(f"{replicate}{tail}".encode())
        return int(digest.hexdigest()[:16], 16) % SEED_MODULUS

    return make


def same_text(values: Sequence[Any]) -> list[tuple[int, int]]:
    """Pairs of positions whose values hash alike, the earlier one first."""
    first: dict[str, int] = {}
    pairs = []
    for index, value in enumerate(values):
        text = canonical_json(value)
        if text in first:
            pairs.append((first[text], index))
        first.setdefault(text, index)
    return pairs
