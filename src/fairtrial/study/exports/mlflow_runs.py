"""Runs in MLflow: an experiment for the study, and in it a run for each run of the study."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from fairtrial.core import LabError
from fairtrial.study.exports.records import ExportedRun, read_runs, read_time
from fairtrial.study.model.runs import RunStatus
from fairtrial.study.tables.results import Results
from fairtrial.study.tables.rows import as_cell, as_json

RUN_TAG, ATTEMPT_TAG = "fairtrial.run_id", "fairtrial.attempt"
LONGEST_VALUE = 5_000
PAGE = 1_000
MOST_AT_ONCE = 100
"""How many parameters and tags MLflow takes at once."""


def export_mlflow(results: Results, target: str) -> tuple[int, str]:
    """Add the runs that are done to MLflow; returns how many were added, and where.

    target: a tracking URI (`http://...`, `sqlite:///...`), or a folder, which gets a database
        `mlflow.db` and the artifacts

    A run that is there already, with the same attempt, isn't added again. Needs the extra `mlflow`;
    raises `LabError` if it isn't installed, or MLflow reports an error.
    """
    try:
        from mlflow.tracking import MlflowClient
    except ImportError:
        hint = "`pip install 'fairtrial[mlflow]'`"
        raise LabError(f"mlflow is not installed, and this export needs it: {hint}") from None
    # MLflow reports each step of making its database.
    logging.getLogger("alembic").setLevel(logging.WARNING)
    uri, artifacts = _locate(target)
    try:
        client = MlflowClient(tracking_uri=uri)
        name = results.study.study_id
        experiment = client.get_experiment_by_name(name)
        if experiment is not None:
            experiment_id = experiment.experiment_id
        else:
            experiment_id = client.create_experiment(name, artifact_location=artifacts)
        known = _known_runs(client, experiment_id)
        added = 0
        for run in read_runs(results):
            if (run.result.run_id, str(run.result.attempt)) not in known:
                _add(client, experiment_id, run)
                added += 1
    except Exception as error:  # of many types: of MLflow, its database, its HTTP client
        raise LabError(f"MLflow at {uri}: {type(error).__name__}: {error}") from error
    return added, uri


def _locate(target: str) -> tuple[str, str | None]:
    """Return the tracking URI of a target, and where artifacts are put."""
    if ":" in target or target == "databricks":
        return target, None
    folder = Path(target).expanduser().absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LabError(f"{folder}: can't be made: {error.strerror or error}") from error
    return f"sqlite:///{folder / 'mlflow.db'}", (folder / "artifacts").as_uri()


def _known_runs(client: Any, experiment_id: str) -> set[tuple[str, str]]:
    known: set[tuple[str, str]] = set()
    token = None
    while True:
        page = client.search_runs([experiment_id], max_results=PAGE, page_token=token)
        known |= {(run.data.tags.get(RUN_TAG), run.data.tags.get(ATTEMPT_TAG)) for run in page}
        token = page.token
        if not token:
            return known


def _add(client: Any, experiment_id: str, run: ExportedRun) -> None:
    from mlflow.entities import Metric, Param, RunTag

    result, spec = run.result, run.spec
    start, end = _milliseconds(result.started_at), _milliseconds(result.ended_at)
    name = " ".join(filter(None, (run.agent, spec.problem_id, str(spec.replicate))))
    made = client.create_run(experiment_id, start_time=start, run_name=name)
    facts = {
        "agent": run.agent,
        "problem": spec.problem_id,
        "replicate": spec.replicate,
        "seed": spec.seed,
        "condition_id": spec.condition_id,
        "model": run.model or None,
        **{f"factor_{name}": value for name, value in run.factors.items()},
    }
    tags = {
        RUN_TAG: result.run_id,
        ATTEMPT_TAG: str(result.attempt),
        "fairtrial.status": result.status.value,
        "fairtrial.error": result.error_info,
    }
    figures = {**run.scores, "latency_s": result.latency, "cost_usd": result.cost}
    params = [Param(_key(k), _text(value)) for k, value in facts.items() if value is not None]
    metrics = [Metric(_key(k), float(value), end or 0, 0) for k, value in figures.items()]
    marks = [RunTag(key, _text(value)) for key, value in tags.items() if value is not None]
    for first in range(0, max(len(params), len(metrics)), MOST_AT_ONCE):
        part = slice(first, first + MOST_AT_ONCE)
        client.log_batch(made.info.run_id, metrics=metrics[part], params=params[part])
    client.log_text(made.info.run_id, as_json(result.outputs), "outputs.json")
    if result.observations:
        lines = "".join(f"{as_json(event)}\n" for event in result.observations)
        client.log_text(made.info.run_id, lines, "events.jsonl")
    # Last, with the tag that says it is there: an export that was cut off adds the run again.
    client.log_batch(made.info.run_id, tags=marks)
    ended = "FINISHED" if result.status is RunStatus.SUCCESS else "FAILED"
    client.set_terminated(made.info.run_id, ended, end)


def _milliseconds(text: str | None) -> int | None:
    time = read_time(text)
    return None if time is None else int(time.timestamp() * 1000)


def _key(name: str) -> str:
    """Return a name that MLflow takes for parameters and metrics."""
    return "".join(char if char.isalnum() or char in "_-. :/" else "_" for char in name)[:250]


def _text(value: Any) -> str:
    return str(as_cell(value))[:LONGEST_VALUE]
