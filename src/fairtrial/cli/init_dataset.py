"""`fairtrial init --from`: draft a study of a dataset, with guesses about its columns."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtrial.core import StudyError, atomic_write
from fairtrial.study import Dataset

LOOKED_AT = 200
"""How many rows the guesses look at."""
MOST_RUNS = 100
RUNS_AT_ONCE = 8
"""Few enough for the rate limits of a new account, and for a server at home, which queues them."""
LONG_ANSWER = 60
_IDS = ("id", "task_id", "problem_id", "question_id", "uid", "uuid", "key", "name")
_BRIEFS = ("question", "prompt", "instruction", "problem", "query", "task", "input", "text")
_REFERENCES = (
    *("answer", "reference", "target", "expected", "gold", "label", "solution", "output"),
    *("response", "correct", "final_answer", "answers", "expected_output"),
)
_FAMILIES = ("topic", "category", "subject", "family", "domain", "type", "difficulty", "level")
_TESTS = ("test", "tests", "test_list", "unit_tests")


@dataclass(frozen=True, slots=True)
class DraftedStudy:
    """A study that was drafted for a dataset.

    text: the study file
    guesses: what was guessed, a line each
    """

    text: str
    guesses: tuple[str, ...]


def draft_study(source: str, study: Path) -> DraftedStudy:
    """Return a draft for a dataset; raises `StudyError` if it can't be read.

    source: the dataset as the study will name it, or a path relative to the current folder
    study: where the study will be
    """
    path = Path(source)
    folder = study.absolute().parent
    named = os.path.relpath(path.absolute(), folder) if path.exists() else source
    dataset = Dataset(named, folder=folder)
    if dataset.table.mistakes:
        raise StudyError([mistake.under(()) for mistake in dataset.table.mistakes])
    names = dataset.first_names(LOOKED_AT)
    rows = [dataset.table.parts(name).payload for name in names]
    return _Drafter(named, folder, study, dataset.table.columns, rows, len(dataset)).draft()


class _Drafter:
    """Guesses what columns are, and writes the study."""

    def __init__(
        self,
        source: str,
        folder: Path,
        study: Path,
        columns: Sequence[str],
        rows: Sequence[Mapping[str, Any]],
        count: int,
    ) -> None:
        self._source, self._folder, self._study = source, folder, study
        self._columns, self._rows, self._count = columns, rows, count
        self._guesses: list[str] = []

    def draft(self) -> DraftedStudy:
        id_column = self._find_id()
        brief = self._find(_BRIEFS) or self._longest_text(id_column)
        reference = self._find(_REFERENCES, without=brief)
        family = self._find(_FAMILIES, without=reference)
        tests = self._find(_TESTS)
        lines = [f"  from: {json.dumps(self._source)}"]
        lines += self._line("id", id_column, "names of problems", "named by their content")
        lines += self._line("brief", brief and f"{{{brief}}}", "what agents are asked", "empty")
        lines += self._line("family", family, "groups of problems", "one group")
        lines += self._line("reference", reference, "right answer, which agents don't see", "none")
        evaluator = self._evaluator(reference, tests)
        lines.append(f"  evaluator: {evaluator}" if evaluator else "  # evaluator: exact")
        if not evaluator:
            self._guesses.append("evaluator: none; docs/evaluators.md lists them")
        if self._count > MOST_RUNS:
            lines.append(f"  sample: {MOST_RUNS}                 # of {self._count:,} rows")
            self._guesses.append(f"sample: {MOST_RUNS} of {self._count:,} rows, to begin with")
        self._guesses.append(f"parallelism: {RUNS_AT_ONCE} runs at once")
        return DraftedStudy(self._fill("\n".join(lines)), tuple(self._guesses))

    def _find(self, known: Sequence[str], without: str = "") -> str:
        """Return the first column with one of these names, in any case; empty if none has."""
        by_name = {name.lower().strip(): name for name in self._columns if name != without}
        return next((by_name[name] for name in known if name in by_name), "")

    def _find_id(self) -> str:
        for known in _IDS:
            name = self._find((known,))
            if name and not Dataset(self._source, id=name, folder=self._folder).table.mistakes:
                return name
        return ""

    def _longest_text(self, without: str) -> str:
        def length(name: str) -> float:
            texts = [row.get(name) for row in self._rows]
            return sum(len(text) for text in texts if isinstance(text, str))

        names = [name for name in self._columns if name != without and length(name)]
        return max(names, key=length, default="")

    def _line(self, field: str, value: str, meaning: str, otherwise: str) -> list[str]:
        if not value:
            self._guesses.append(f"{field}: no column found; {otherwise}")
            return []
        self._guesses.append(f"{field}: {value} ({meaning})")
        return [f"  {field}: {json.dumps(value, ensure_ascii=False)}"]

    def _evaluator(self, reference: str, tests: str) -> str:
        """Return the evaluator that fits the references, as YAML in one line."""
        if tests:
            self._guesses.append(f"evaluator: tests, from the column {tests}")
            return json.dumps({"use": "tests", "name": "score", "options": {"tests_column": tests}})
        values = [row.get(reference) for row in self._rows if row.get(reference) not in (None, "")]
        if not values:
            return ""
        use, options = _choose_evaluator(values)
        self._guesses.append(f"evaluator: {use}" + (f" with {options}" if options else ""))
        return json.dumps({"use": use, "name": "score", "options": options}, ensure_ascii=False)

    def _fill(self, problems: str) -> str:
        name = re.sub(r"\W+", "-", self._study.stem).strip("-") or "study"
        text = _TEMPLATE.replace("@ID@", name).replace("@FILE@", self._study.name)
        text = text.replace("@AT_ONCE@", str(RUNS_AT_ONCE))
        return text.replace("@PROBLEMS@", problems)


def _choose_evaluator(values: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    texts = [str(value) for value in values]
    if all(isinstance(value, (int, float)) for value in values):
        return "numeric", {}
    if all("#### " in text for text in texts):
        return "numeric", {"extract_reference": r"#### (.+)"}
    if all(re.fullmatch(r"[-+$€£]?[\d,]*\.?\d+%?", text.strip()) for text in texts):
        return "numeric", {}
    last_line = r"(?:.*Answer:)?[ \t]*(.+)"
    if all(isinstance(value, (list, tuple)) for value in values):
        return "one_of", {"ignore_case": True, "extract": last_line}
    if max(map(len, texts)) <= LONG_ANSWER:
        return "exact", {"ignore_case": True, "ignore_punctuation": True, "extract": last_line}
    return "overlap", {"separator": " ", "ignore_case": True, "ignore_punctuation": True}


_TEMPLATE = """# A study of two instructions on the rows of a dataset. Look over what was guessed.
#   fairtrial check @FILE@      find every mistake
#   fairtrial plan @FILE@       show conditions, runs, planned tests, power
#   fairtrial run @FILE@        run it; --limit 10 for a pilot

study_id: @ID@
title: Does thinking step by step help?

problems:                             # guessed from the columns
@PROBLEMS@

factors:
  - name: instruction
    levels:
      - {name: plain, value: Give the final answer only.}
      - {name: steps, value: "Think step by step. End with a line `Answer: ...`."}

agents:
  assistant:
    use: chat
    options:
      base_url: http://127.0.0.1:11434/v1   # any chat-completions endpoint
      model: my-model
      # key_variable: OPENAI_API_KEY        # the environment variable that holds the key
      prompt: "{brief}\\n\\n{instruction}"

outcomes:
  - {name: score, source_table: evaluations, primary: true}
hypotheses:
  - hypothesis_id: h1
    label: Steps help
    statement: Thinking step by step raises the score.
    independent_vars: [instruction]
    contrast: {left: steps, right: plain}
    direction: greater
    minimum_effect_of_interest: 0.3     # in standard deviations
analysis_plans:
  - {analysis_plan_id: main, hypothesis_ids: [h1], tests: [difference_in_means]}
run_budget:
  parallelism: @AT_ONCE@                        # runs at once; more for an endpoint that allows it
  max_tokens: 2000000                   # stops before it costs more
"""


def write_draft(draft: DraftedStudy, study: Path) -> None:
    """Write the drafted study."""
    with atomic_write(study) as file:
        file.write(draft.text)
