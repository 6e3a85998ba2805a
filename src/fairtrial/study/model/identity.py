"""Ids of conditions and runs, and seeds of runs.

Ids and seeds are hashes of canonical JSON, computed exactly as by *design-research-experiments*
0.3, so that a study that moves over keeps them. They are a file format: nothing here may change in
a way that changes an id.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from json.encoder import encode_basestring_ascii
from math import isfinite
from typing import Any

from fairtrial.core import canonical_json

ID_DIGITS = 12
SEED_MODULUS = 2**31 - 1
MAX_KNOWN = 10_000
"""How many values' texts are kept while conditions are made."""
MAX_SHORT = 10**100
"""Longer integers may have more digits than Python writes."""


def hash_id(prefix: str, payload: Any) -> str:
    """Return ``prefix-`` and the first 12 hex digits of the SHA-256 of the canonical JSON."""
    return _hash_text(prefix, canonical_json(payload))


def _hash_text(prefix: str, text: str) -> str:
    return f"{prefix}-{hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]}"


def fingerprint(factors: Mapping[str, Any], blocks: Mapping[str, Any]) -> str:
    """Return the canonical JSON of a condition's assignments, which its id is a hash of."""
    return canonical_json({"factors": factors, "blocks": blocks})


FingerprintMaker = Callable[[Mapping[str, Any], Mapping[str, Any]], str]


def fingerprint_maker() -> FingerprintMaker:
    """Return a function like `fingerprint` that is faster for many conditions of one design.

    Conditions of a design assign the same names, mostly scalars, so the text around the values is
    made once.
    """
    known: dict[type, dict[Any, str]] = {str: {}, int: {}}
    """The texts of values that were seen; 0.0 and -0.0 are equal, and have two."""
    forms: dict[tuple[tuple[str, ...], tuple[str, ...]], tuple[str, list[str], list[str]]] = {}

    def make(factors: Mapping[str, Any], blocks: Mapping[str, Any]) -> str:
        key = tuple(factors), tuple(blocks)
        form = forms.get(key)
        if form is None:
            if not all(type(name) is str for names in key for name in names):
                return fingerprint(factors, blocks)
            form = forms[key] = _fingerprint_form(*key)
        text, factor_names, block_names = form
        values = [blocks[name] for name in block_names] if block_names else []
        values += [factors[name] for name in factor_names]
        cells = []
        for value in values:
            texts = known.get(type(value))
            cell = None if texts is None else texts.get(value)
            if cell is None:
                cell = _scalar_json(value)
                if cell is None:
                    return fingerprint(factors, blocks)
                if texts is not None and len(texts) < MAX_KNOWN:
                    texts[value] = cell
            cells.append(cell)
        return text % tuple(cells)

    return make


def _fingerprint_form(
    factors: Sequence[str], blocks: Sequence[str]
) -> tuple[str, list[str], list[str]]:
    """Return a format of the fingerprint, and the names whose values it takes, in order."""
    names = sorted(factors), sorted(blocks)
    parts = [
        ",".join(f"{json.dumps(name).replace('%', '%%')}:%s" for name in group) for group in names
    ]
    return f'{{"blocks":{{{parts[1]}}},"factors":{{{parts[0]}}}}}', *names


def _scalar_json(value: Any) -> str | None:
    """Return the canonical JSON of a scalar; None for other values, and for those without."""
    kind = type(value)
    if kind is str:
        return encode_basestring_ascii(value)
    if kind is int:
        return str(value) if -MAX_SHORT <= value <= MAX_SHORT else None
    if kind is float:
        return repr(value) if isfinite(value) else None
    if kind is bool:
        return "true" if value else "false"
    return "null" if value is None else None


def hash_condition(fingerprint: str, metadata: Mapping[str, Any] | None = None) -> str:
    """Return the id of a condition.

    fingerprint: what it assigns, as text
    metadata: distinguishes rows with equal assignments, in designs that number their rows
    """
    # The keys of canonical JSON are sorted, and "metadata" comes last.
    text = (
        f'{fingerprint[:-1]},"metadata":{canonical_json(metadata)}}}' if metadata else fingerprint
    )
    return _hash_text("cond", text)


def run_id_maker(
    study_id: str, condition_id: str, agent_id: str | None, problem_id: str | None
) -> Callable[[int], str]:
    """Return a function that gives the id of a run for a replicate.

    The id is a hash of study, condition, agent, problem and replicate. Runs of a plan differ in
    little more than the replicate, so the JSON around it is built only once; that is much faster
    than a call of `json.dumps` for each run.
    """
    head = (
        f'{{"agent_id":{_name_json(agent_id)},"condition_id":{_name_json(condition_id)},'
        f'"problem_id":{_name_json(problem_id)},"replicate":'
    )
    tail = f',"study_id":{_name_json(study_id)}}}'
    start = hashlib.sha256(head.encode())

    def make(replicate: int) -> str:
        digest = start.copy()
        digest.update(f"{replicate}{tail}".encode())
        return f"run-{digest.hexdigest()[:ID_DIGITS]}"

    return make


def run_id_numbers(
    study_id: str,
    names: Iterable[tuple[str, Iterable[tuple[str | None, str | None]]]],
    replicates: Sequence[int],
) -> Iterator[int]:
    """Yield the digits of the ids of many runs (`run_id_maker`) as numbers.

    names: ids of conditions, each with its pairs of agent and problem
    """
    name_json = functools.lru_cache(10_000)(_name_json)
    tail = f',"study_id":{_name_json(study_id)}}}'
    for condition_id, pairs in names:
        middle = f',"condition_id":{encode_basestring_ascii(condition_id)},"problem_id":'
        for agent_id, problem_id in pairs:
            head = f'{{"agent_id":{name_json(agent_id)}{middle}{name_json(problem_id)},"replicate":'
            for replicate in replicates:
                digest = hashlib.sha256(f"{head}{replicate}{tail}".encode()).digest()
                yield int.from_bytes(digest[: ID_DIGITS // 2], "big")


def _name_json(name: str | None) -> str:
    """Return `json.dumps(name)`, faster for texts."""
    return encode_basestring_ascii(name) if type(name) is str else json.dumps(name)


def seed_maker(
    policy: Mapping[str, Any], study_id: str, condition_id: str, salt: str
) -> Callable[[int], int]:
    """Return a function that gives a run's seed for a replicate.

    `policy` holds the fields of a `SeedPolicy`; `salt` is ``agent:problem``.
    """
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
