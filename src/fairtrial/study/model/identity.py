"""Ids of conditions and runs, and seeds of runs.

Ids and seeds are hashes of canonical JSON, computed exactly as by *design-research-experiments*
0.3, so that a study that moves over keeps them. They are a file format: nothing here may change in
a way that changes an id.
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
    """Return ``prefix-`` and the first 12 hex digits of the SHA-256 of the canonical JSON."""
    return _hash_text(prefix, canonical_json(payload))


def _hash_text(prefix: str, text: str) -> str:
    return f"{prefix}-{hashlib.sha256(text.encode()).hexdigest()[:ID_DIGITS]}"


def fingerprint(factors: Mapping[str, Any], blocks: Mapping[str, Any]) -> str:
    """Return the canonical JSON of a condition's assignments, which its id is a hash of."""
    return canonical_json({"factors": factors, "blocks": blocks})


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
