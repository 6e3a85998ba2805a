"""The lock of a study: a dated record of what was planned, made before the first result.

Its digest covers the study, its design, its seeds, its code and its analysis. The git commit is
recorded beside it and not covered: committing the lock itself would change it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fairtrial.core import canonical_json, dump_record
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.ledger.fingerprint import differences, digest_conditions
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.sqlite_errors import damaged
from fairtrial.study.model.study import Study

LOCK_FACT = "lock"
PARTS = ("study", "design", "seeds", "code", "analysis")
ANALYSIS_FIELDS = ("hypotheses", "outcomes", "analysis_plans")
EXECUTION_FIELDS = ("parallelism", "fail_fast", "retries", "max_cost_usd", "max_tokens")
"""Fields of the budget that say how runs are executed, not which runs there are."""
MAX_HASHED_RUNS = 2_000
"""Of longer plans, the ids and seeds of this many evenly spaced runs are hashed: all of them follow
from the seed policy and the conditions, which are hashed too."""
SHORT_DIGITS = 12


@dataclass(frozen=True, slots=True)
class StudyLock:
    """The lock of a study.

    digest: the SHA-256 of `parts`
    parts: the SHA-256 of the study, its design, seeds, code and analysis
    at: when it was made, in UTC
    made_by: `lock` if it was asked for, `run` if the first run made it
    runs: the number of planned runs
    study: the study as plain data, without what only concerns its execution
    code: the SHA-256 of each file of code in the study's folder, and of each problem's file
    git_commit: the commit of the study's folder; None without a repository
    git_dirty: whether tracked files differed from it
    timestamp: a token or an address by which others can check the time
    note: any text
    replaces: digest and time of the locks that this one replaced
    """

    digest: str
    parts: Mapping[str, str]
    at: str
    made_by: Literal["lock", "run"]
    runs: int
    study: Mapping[str, Any]
    code: Mapping[str, str] = field(default_factory=dict)
    git_commit: str | None = None
    git_dirty: bool | None = None
    timestamp: str = ""
    note: str = ""
    replaces: tuple[Mapping[str, str], ...] = ()

    @property
    def is_explicit(self) -> bool:
        """Whether it was asked for, so that changes before the first result count, too."""
        return self.made_by == "lock"

    @property
    def short_digest(self) -> str:
        """The beginning of the digest, enough to recognize it."""
        return self.digest[:SHORT_DIGITS]

    def describe(self) -> list[str]:
        """Return who made the lock and when, its digest, commit and timestamp, as short phrases."""
        maker = "fairtrial lock" if self.is_explicit else "the first run"
        phrases = [f"locked {self.at} by {maker}", f"SHA-256 {self.digest}"]
        if self.git_commit:
            changes = " with uncommitted changes" if self.git_dirty else ""
            phrases.append(f"commit {self.git_commit[:SHORT_DIGITS]}{changes}")
        if self.timestamp:
            phrases.append(f"timestamp {self.timestamp}")
        if self.note:
            phrases.append(f"note: {self.note}")
        phrases += [
            f"replaces the lock {earlier['digest'][:SHORT_DIGITS]} of {earlier['at']}"
            for earlier in self.replaces
        ]
        return phrases

    def to_dict(self) -> dict[str, Any]:
        """Return the lock as plain data."""
        data: dict[str, Any] = dump_record(self)
        return data


def digest_parts(plan: RunPlan, code: Mapping[str, str]) -> dict[str, str]:
    """Return the digests that a lock consists of.

    code: the digests of the study's files
    """
    study = lockable_study(plan.study)
    return {
        "study": _digest(study),
        "design": digest_conditions(plan.conditions),
        "seeds": _digest([dump_record(plan.study.seed_policy), len(plan), _digest_runs(plan)]),
        "code": _digest(code),
        "analysis": _digest_analysis(study),
    }


def total_digest(parts: Mapping[str, str]) -> str:
    """Return the digest of a lock from those of its parts."""
    return _digest({name: parts[name] for name in PARTS})


def lockable_study(study: Study) -> dict[str, Any]:
    """Return what a lock covers of a study: all but its folder and how runs are executed."""
    data = study.to_dict()
    del data["output_dir"]
    budget = data["run_budget"]
    data["run_budget"] = {key: budget[key] for key in budget if key not in EXECUTION_FIELDS}
    return data


def _digest_analysis(study: Mapping[str, Any]) -> str:
    return _digest({name: study[name] for name in ANALYSIS_FIELDS})


def _digest_runs(plan: RunPlan) -> str:
    digest, length = hashlib.sha256(), len(plan)
    count = min(length, MAX_HASHED_RUNS)
    for number in range(count):
        spec = plan.spec(number * length // count)
        digest.update(f"{spec.run_id} {spec.seed}\n".encode())
    return digest.hexdigest()


def _digest(data: Any) -> str:
    return hashlib.sha256(canonical_json(data).encode()).hexdigest()


def read_lock(reader: LedgerReader) -> StudyLock | None:
    """Return the lock in a ledger; None if none was recorded; `LedgerError` if it is damaged."""
    text = reader.fact(LOCK_FACT)
    if text is None:
        return None
    try:
        data = json.loads(text)
        return StudyLock(**{**data, "replaces": tuple(data["replaces"])})
    except (ValueError, TypeError, KeyError) as error:
        raise damaged(reader.path, f"the lock of the study can't be read: {error}") from error


def lock_facts(lock: StudyLock) -> dict[str, str]:
    """Return the facts that store a lock in a ledger."""
    return {LOCK_FACT: json.dumps(lock.to_dict())}


def describe_lock_changes(old: StudyLock, new: StudyLock) -> list[str]:
    """Return in what a study differs from its lock, one line each; empty if in nothing."""
    lines = [*differences(old.study, new.study), *describe_code_changes(old, new)]
    if not lines and old.parts["design"] != new.parts["design"]:
        lines.append("the design gives other conditions (a matrix file or a rule has changed)")
    if not lines and old.digest != new.digest:
        lines.append("the digests differ")
    return lines


def describe_code_changes(old: StudyLock, new: StudyLock) -> list[str]:
    """Return which files of code differ from those of a lock, one line each."""
    lines = []
    for name in dict.fromkeys([*old.code, *new.code]):
        if name not in new.code or name not in old.code:
            lines.append(f"code {name}: {'added' if name in new.code else 'removed'}")
        elif old.code[name] != new.code[name]:
            lines.append(f"code {name}: changed")
    return lines


def find_lock_problems(data: Any) -> list[str]:
    """Return in what a lock, as plain data, contradicts itself; empty if it is consistent."""
    try:
        study, parts = data["study"], data["parts"]
        expected = {
            "study": _digest(study),
            "analysis": _digest_analysis(study),
            "code": _digest(data["code"]),
        }
        problems = [
            f"the lock's digest of the {name} is not that of the {name} in it"
            for name, digest in expected.items()
            if parts[name] != digest
        ]
        if data["digest"] != total_digest(parts):
            problems.append("the lock's digest is not that of its parts")
    except (KeyError, TypeError, ValueError) as error:
        return [f"the lock can't be read: {type(error).__name__}: {error}"]
    return problems
