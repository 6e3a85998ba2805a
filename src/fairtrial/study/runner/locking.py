"""Lock a study: record what is planned, before anything is run."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from fairtrial.core import LedgerError, StudyError, canonical_json
from fairtrial.study.design.build import build_design
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.ledger.amendments import count_known_results
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.study_lock import (
    StudyLock,
    describe_lock_changes,
    digest_parts,
    lock_facts,
    lockable_study,
    read_lock,
    total_digest,
)
from fairtrial.study.ledger.writer import Ledger, open_ledger
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.problems import named_code
from fairtrial.study.model.study import Study
from fairtrial.study.problems.hooks import ProblemHooks
from fairtrial.study.runner.bound_objects import make_problem
from fairtrial.study.runner.output_folder import lock_output_folder
from fairtrial.study.runner.run_settings import RunSettings
from fairtrial.study.tables import provenance
from fairtrial.study.validation import find_study_mistakes

MAX_CODE_FILES = 500
MAX_SHOWN = 20


def lock_study(
    study: Study,
    *,
    output_dir: str | Path | None = None,
    conditions: Sequence[Condition] | None = None,
    condition_runner: Callable[..., Any] | None = None,
    timestamp: str = "",
    note: str = "",
    relock: bool = False,
) -> StudyLock:
    """Lock a study before its first run, in the ledger of its output directory; return the lock.

    `run_study` picks it up, and reports name what differs from it. A study that is locked already
    keeps its lock. Raises `StudyError` for mistakes in the study, and `LedgerError` if the
    directory holds the lock of a different study, or results without a lock.

    output_dir: the directory, if not the study's own
    conditions: the conditions, if not those of the study's design
    condition_runner: the function that will be passed to `run_study`, if one will be
    timestamp: a token or an address by which others can check the time
    note: any text to keep with the lock
    relock: whether to replace the lock of a different study, as long as no result is known
    """
    settings = RunSettings(
        output_dir=None if output_dir is None else Path(output_dir),
        condition_runner=condition_runner,
    )
    study = settings.apply(study)
    mistakes = find_study_mistakes(study)
    if mistakes:
        raise StudyError(mistakes)
    plan = RunPlan(study, build_design(study) if conditions is None else list(conditions))
    problems = _build_hooked_problems(study)
    fingerprints = {name: problem.fingerprint() for name, problem in problems.items()}
    lock = make_lock(plan, fingerprints, "lock", timestamp=timestamp, note=note)
    folder = Path(study.output_dir or ".").absolute()
    needs_own = any(problem.needs_own_folder for problem in problems.values())
    with lock_output_folder(folder, needs_own=needs_own):
        ledger = open_ledger(folder)
        try:
            return _store_lock(ledger, lock, relock=relock)
        finally:
            ledger.close()


def _build_hooked_problems(study: Study) -> dict[str, ProblemHooks]:
    """Return the problems that are plug-ins with hooks; user code is not imported for a lock."""
    named = {
        name: binding
        for name, binding in study.problems.items()
        if binding.use is not None and ":" not in binding.use
    }
    problems = {name: make_problem(name, named[name], study.folder) for name in named}
    return {
        name: problem for name, problem in problems.items() if isinstance(problem, ProblemHooks)
    }


def _store_lock(ledger: Ledger, lock: StudyLock, *, relock: bool) -> StudyLock:
    """Store a lock unless the ledger has the same one; returns the lock that holds."""
    reader = LedgerReader(ledger.connection, ledger.path)
    folder = ledger.path.parent if ledger.path is not None else None
    old, known = read_lock(reader), count_known_results(reader)
    results = f"{known:,} result{'s are' if known != 1 else ' is'} known"
    if old is None and known:
        raise LedgerError(
            f"{folder} holds no lock, and {results}: a lock would come too late; choose another "
            "--output and other seeds (seed_policy.base_seed)"
        )
    if old is not None and old.digest == lock.digest and (old.is_explicit or known):
        return old
    if old is not None and old.digest != lock.digest and (known or not relock):
        changes = describe_lock_changes(old, lock)
        more = [f"and {len(changes) - MAX_SHOWN:,} more"] if len(changes) > MAX_SHOWN else []
        advice = (
            f"{results}, so the lock stays; choose another --output"
            if known
            else "no result is known: --relock replaces the lock (in Python: relock=True)"
        )
        raise LedgerError(
            f"{folder} was locked {old.at} ({old.short_digest}) with a different study:"
            "\n  " + "\n  ".join([*changes[:MAX_SHOWN], *more]) + f"\n{advice}"
        )
    if old is not None and old.is_explicit:
        lock = replace(lock, replaces=(*old.replaces, {"digest": old.digest, "at": old.at}))
    ledger.write_facts(lock_facts(lock))
    return lock


def make_lock(
    plan: RunPlan,
    problem_fingerprints: Mapping[str, Mapping[str, Any] | None],
    made_by: Literal["lock", "run"],
    *,
    timestamp: str = "",
    note: str = "",
    with_commit: bool = True,
) -> StudyLock:
    """Return the lock of a plan at this moment.

    problem_fingerprints: what results depend on beyond the study file, by problem
    with_commit: whether to ask git for the commit
    """
    study = plan.study
    code = {
        **_digest_files(study),
        **{
            f"problem {name}": hashlib.sha256(canonical_json(fingerprint).encode()).hexdigest()
            for name, fingerprint in sorted(problem_fingerprints.items())
            if fingerprint is not None
        },
    }
    if study.dataset is not None:
        code[f"data of {study.dataset.source}"] = str(study.dataset.table.facts.get("digest"))
    parts = digest_parts(plan, code)
    commit, is_dirty = (
        provenance.read_commit(study.folder or Path.cwd()) if with_commit else (None, None)
    )
    return StudyLock(
        digest=total_digest(parts),
        parts=parts,
        at=datetime.now(UTC).isoformat(timespec="milliseconds"),
        made_by=made_by,
        runs=plan.runnable,
        study=lockable_study(study),
        code=code,
        git_commit=commit,
        git_dirty=is_dirty,
        timestamp=timestamp,
        note=note,
    )


def _digest_files(study: Study) -> dict[str, str]:
    """Return the SHA-256 of the modules in the study's folder that the study refers to.

    Modules that these import, and installed packages, are not covered; their versions are recorded
    with each session.
    """
    folder = study.folder
    if folder is None:
        return {}
    digests = {}
    for path in sorted(
        {path for name in _module_names(study) for path in _find_files(folder, name)}
    ):
        try:
            content = path.read_bytes()
        except OSError:  # binding the agent will say so
            continue
        digests[path.relative_to(folder).as_posix()] = hashlib.sha256(content).hexdigest()
    return digests


def _module_names(study: Study) -> set[str]:
    references = [
        study.condition_runner,
        *(agent.use for agent in study.agents.values()),
        *(constraint.callable_ref for constraint in study.constraints),
    ]
    references += named_code(study.problems)
    return {text.partition(":")[0].partition(".")[0] for text in references if text and ":" in text}


def _find_files(folder: Path, module: str) -> Iterator[Path]:
    """Yield the files of a module, or of a package, in a folder."""
    if (folder / f"{module}.py").is_file():
        yield folder / f"{module}.py"
    elif (folder / module).is_dir():
        yield from islice(sorted((folder / module).rglob("*.py")), MAX_CODE_FILES)
