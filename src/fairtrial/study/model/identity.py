"""Ids of conditions and runs, and seeds of runs.

The recipes are those of *design-research-experiments* 0.3, to the byte, so that a study that moves
over keeps its condition ids, run ids and seeds. They are a file format: change nothing here that
changes an id.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from fairtrial.core import canonical_json

ID_DIGITS = 12
SEED_MODULUS = 2**31 - 1


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
