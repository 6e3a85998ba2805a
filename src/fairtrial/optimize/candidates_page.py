"""The section of a study's page on candidates: verdicts, lineages, diffs, samples, the winner."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import fairtrial.optimize as optimize  # names are imported on first use: most studies need none
from fairtrial.core import plain_number
from fairtrial.optimize.candidates_table import COLUMNS, EVENT_TYPE, candidate_rows
from fairtrial.optimize.run_samples import find_samples, read_strips
from fairtrial.study import Results, RunResult, extensions, page

NAME = "candidates"
SCRIPT = Path(__file__).with_name("candidates_page.js")
WORKSPACES = "workspaces"
MOST_RUNS = 40
MOST_CANDIDATES = 400
DIFF_BYTES = 600_000
"""Length of all diffs together; later ones are left out."""
STRIP_SAMPLES = 40_000
"""Samples of all runs together."""
LONGEST_DIFF = 60_000
_SECTION = re.compile(r"^## (.+)$", re.MULTILINE)
_INVISIBLE = "\N{ZERO WIDTH SPACE}"


def has_candidates(result: RunResult) -> bool:
    """Return whether a run tried code candidates."""
    return any(event.get("event_type") == EVENT_TYPE for event in result.observations)


def make_page_part(results: Results) -> extensions.PagePart | None:
    """Return the section for all runs that tried candidates; None if there are none."""
    runs: list[dict[str, Any]] = []
    room = _Room()
    left_out = 0
    for result in results:
        if not has_candidates(result):
            continue
        if len(runs) >= MOST_RUNS or room.candidates <= 0:
            left_out += 1
            continue
        runs.append(_describe_run(results, result, room))
    if not runs:
        return None
    data = {"runs": runs, "left_out": left_out}
    return extensions.PagePart(NAME, "Candidates", data)


def read_page_script() -> str:
    """Return the JavaScript of the section."""
    return SCRIPT.read_text("utf-8")


class _Room:
    """What the page still has room for."""

    def __init__(self) -> None:
        self.candidates, self.diff, self.samples = MOST_CANDIDATES, DIFF_BYTES, STRIP_SAMPLES


def _describe_run(results: Results, result: RunResult, room: _Room) -> dict[str, Any]:
    facts = _read_events(result.observations)
    shown = list(candidate_rows(result))[: room.candidates]
    room.candidates -= len(shown)
    candidates = [_describe_candidate(row, facts, room) for row in shown]
    strips = {}
    path = find_samples(results.folder / WORKSPACES / result.run_id, result.attempt)
    for name, strip in read_strips(path).items():
        room.samples -= len(strip["arm"])
        if room.samples >= 0:
            strip["benchmarks"] = [page.clean_text(one, 200) for one in strip["benchmarks"]]
            strips[page.clean_text(name, 200)] = strip
    spec = result.run_spec
    return {
        "run": result.run_id,
        "problem": page.clean_text((spec and spec.problem_spec_ref) or "", 200),
        "candidates": candidates,
        "strips": strips,
        **_describe_result(result.outputs),
    }


def _read_events(observations: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return what events say of each candidate beyond the table: its diff and its failures."""
    facts: dict[str, dict[str, Any]] = {}
    for event in observations:
        meta = event.get("meta")
        if event.get("event_type") != EVENT_TYPE or not isinstance(meta, Mapping):
            continue
        one = facts.setdefault(str(meta.get("candidate_id")), {})
        if isinstance(event.get("text"), str) and event["text"]:
            one["diff"] = event["text"]
        one |= {key: meta[key] for key in ("failures", "min_effect") if meta.get(key)}
    return facts


def _describe_candidate(
    row: list[Any], facts: Mapping[str, Mapping[str, Any]], room: _Room
) -> dict[str, Any]:
    cells = dict(zip(COLUMNS, row, strict=True))
    del cells["run_id"], cells["digest"]
    more = facts.get(str(cells["candidate_id"]), {})
    diff = str(more.get("diff", ""))[:LONGEST_DIFF]
    room.diff -= len(diff)
    min_effect = plain_number(more.get("min_effect"))
    described: dict[str, Any] = page.clean_data(
        {**cells, "failures": more.get("failures", [])}, 3_000
    )
    for name in ("ratio", "low", "high"):
        value = cells[name]
        described[name] = page.round_number(value) if isinstance(value, float) else None
    described["diff"] = page.color_diff(diff) if diff and room.diff > 0 else []
    described["min_effect"] = None if min_effect is None else page.round_number(float(min_effect))
    return described


def _describe_result(output: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an optimization came to; nothing for the output of another agent."""
    try:
        result = optimize.OptimizationResult.from_output(output)
    except TypeError:
        result = None
    if result is None:
        return {"best": None, "speed": "", "explanation": [], "notes": [], "dropped": []}
    return {
        "best": result.best,
        "speed": result.speed_text,
        "why_over": page.clean_text(result.why_over, 500),
        "notes": [page.clean_text(note, 1_000) for note in result.notes[:50]],
        "dropped": [
            [page.clean_text(id, 100), page.clean_text(why, 1_000)]
            for id, why in result.dropped.items()
        ],
        "explanation": _split_explanation(result.explanation),
    }


def _split_explanation(text: str) -> list[dict[str, Any]]:
    """Return the sections of the winner's explanation."""
    parts = _SECTION.split(text.replace(_INVISIBLE, ""))[1:]
    return [
        {"title": page.clean_text(title, 200), "tree": page.parse_markdown(body[:50_000])}
        for title, body in zip(parts[::2], parts[1::2], strict=True)
    ]
