"""Settings of the last session, for a session that continues it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from json import loads
from pathlib import Path
from typing import Any

from fairtrial.core import LedgerError, plugins
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.schema import LEDGER_NAME
from fairtrial.study.model.study import Study
from fairtrial.study.protocols import Executor
from fairtrial.study.runner.preparation import choose_executor
from fairtrial.study.runner.run_settings import RunSettings

EXECUTOR_OPTIONS = "executor_options"
"""The name by which a session's provenance has the options that its executor was given."""
EXECUTOR_ADDRESS = "executor_address"
"""The name by which provenance of earlier versions has the address of a cluster."""


def given_options(executor: object) -> dict[str, Any]:
    """Return the options of an executor that differ from their defaults, as plain data."""
    if not is_dataclass(executor):
        return {}
    return {
        field.name: value
        for field in fields(executor)
        if (value := getattr(executor, field.name)) != field.default
        and isinstance(value, (str, int, float, bool))
    }


def restore_settings(study: Study, settings: RunSettings) -> RunSettings:
    """Return settings with executor and parallelism of the last session where they have none.

    Values that the last session took from the study are not restored: the study may have others
    now. A ledger that can't be read is ignored here; opening it to write reports the error.
    """
    folder = Path(settings.apply(study).output_dir or ".")
    if not (folder / LEDGER_NAME).exists():
        return settings
    try:
        reader = LedgerReader.open(folder)
        try:
            last = next(reversed(reader.sessions.values()), None)
            executor, slots = (None, None) if last is None else _find_given(reader.study, last)
        finally:
            reader.close()
    except LedgerError:
        return settings
    if settings.executor == "serial" or settings.parallelism is not None:
        slots = settings.parallelism
    return replace(settings, executor=settings.executor or executor, parallelism=slots)


def _find_given(
    study: Study, session: Mapping[str, Any]
) -> tuple[str | Executor | None, int | None]:
    """Return the executor and number of slots that a session had instead of the study's own."""
    name, slots = session["executor"], session["slots"]
    if name not in plugins.names("executors"):
        return None, None  # an object passed from Python, which has no name to restore it by
    used, _ = choose_executor(study, RunSettings(executor=name), [])
    defaults = (study.run_budget.parallelism, used.default_slots if used else None)
    given_slots = None if slots in defaults else slots
    provenance = loads(session["provenance"] or "{}")
    address = provenance.get(EXECUTOR_ADDRESS)
    options = provenance.get(EXECUTOR_OPTIONS) or ({"address": address} if address else {})
    known = {field.name for field in fields(plugins.load("executors", name))}
    if options and known.issuperset(options):
        return plugins.load("executors", name)(**options), given_slots
    default, _ = choose_executor(study, RunSettings(parallelism=slots), [])
    return None if default is not None and default.name == name else name, given_slots
