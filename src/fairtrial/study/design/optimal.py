"""The most informative rows out of all that the constraints leave: D-optimal designs."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairtrial.core import Mistake, Record, StudyError, spell_count
from fairtrial.study.design.constraints import Judge
from fairtrial.study.design.exchange import Found, bound_log_determinant, search
from fairtrial.study.design.existing_rows import read_earlier
from fairtrial.study.design.factorial import combinations, count_combinations
from fairtrial.study.design.rows import Assignment, block_assignments, free_factors, number_rows
from fairtrial.study.design.terms import Coding, Model, ModelName, confounded, rank
from fairtrial.study.model.conditions import DesignTable
from fairtrial.study.model.identity import hash_id
from fairtrial.study.model.study import Study

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MAX_WORK = 5 * 10**9
"""The most that rows × candidates × parameters × restarts may be: ten seconds or so."""
MAX_STEPS = 300_000
"""The most that rows × restarts may be, which takes as long where there are few candidates."""


@dataclass(frozen=True, slots=True)
class DOptimal(Record):
    """The rows, out of all admissible combinations of levels, that tell most about a linear model.

    For a number of runs that no standard design has, for factors with different numbers of levels,
    and for constraints that leave holes. `design_spec.n_samples` is the number of rows; a row may
    come more than once. A combination is admissible if it keeps the constraints in every block.
    Factors of one level and tied factors are not part of the model.

    The facts give three figures, n rows and p parameters:

    - `d_efficiency` = det(X'X)^(1/p) / n, for numeric factors scaled to ±1 and other factors coded
      by contrasts of the same length. 1 is a balanced design with all effects independent, which
      is the most that two-level factors allow; models with squares stay well below.
    - `d_efficiency_of_possible`: the same as a share of what no design of these combinations can
      exceed, for any n. What is missing is the price of n being what it is, or of the search.
    - `restarts_that_reached_best`: where it is 1, more restarts may find a better design.

    model: what is to be estimated: `main` effects; also `interactions` of two factors; or
        `quadratic`, which adds squares of numeric factors with three levels or more
    restarts: how many random starts are improved; the best end counts
    start_from: a CSV file with rows that exist already, relative to the study file, such as the
        conditions.csv of an earlier run; they come first, keep their ids if the file has them in
        the order of their numbers (`counterbalance` doesn't) and rows aren't randomised now, and
        count towards n_samples
    max_candidates: more combinations than this are refused
    """

    model: ModelName = "main"
    restarts: int = 20
    start_from: str | None = None
    max_candidates: int = 20_000

    def _mistakes(self) -> Iterator[Mistake]:
        for name in ("restarts", "max_candidates"):
            if getattr(self, name) < 1:
                yield Mistake((name,), f"must be 1 or more, got {getattr(self, name)}")

    def table(self, study: Study) -> DesignTable:
        runs, model = self._plan(study)
        unsearched = number_rows(study, runs, list)
        if unsearched.size > study.design_spec.max_conditions:
            # Too long to be searched for: whoever asked refuses it by its size.
            return unsearched
        _refuse_few_runs(runs, model.parameters)
        kept: list[Assignment] = []
        if self.start_from is not None:
            kept = read_earlier(study, self.start_from, model)
        candidates = _admissible(study)
        self._refuse_long_search(runs, len(candidates) * model.parameters)
        points, terms = model.matrix(candidates)
        existing, _ = model.matrix(kept)
        _refuse_confounded(points, existing, terms)
        if kept:
            _refuse_few_runs(runs, model.parameters, len(kept), rank(existing))
        rng = random.Random(hash_id("d_optimal", {"base_seed": study.seed_policy.base_seed}))
        found = search(points, existing, runs - len(kept), self.restarts, rng)
        if found is None:
            raise StudyError(
                Mistake(
                    ("design_spec", "options", "restarts"),
                    f"none of {self.restarts} searches ended at rows that estimate the model",
                    "raise it, or design_spec.n_samples",
                )
            )
        rows = kept + [candidates[row] for row in found.rows]
        facts = self._facts(model, points, existing, runs, found)
        return number_rows(study, runs, lambda: rows, facts)

    def _plan(self, study: Study) -> tuple[int, Model]:
        """How many rows for which model, once it is known that the search is bounded."""
        mistakes = []
        runs = study.design_spec.n_samples
        if runs is None:
            mistakes.append(
                Mistake(("design_spec", "n_samples"), "d_optimal needs a number of rows")
            )
        varied = [factor for factor in free_factors(study) if len(factor.levels) > 1]
        if not varied:
            mistakes.append(
                Mistake(("factors",), "d_optimal needs a factor with two levels or more")
            )
        count = count_combinations(study.factors, self.max_candidates)
        if count > self.max_candidates:
            mistakes.append(
                Mistake(
                    ("factors",),
                    f"d_optimal looks at every combination of levels: {self.max_candidates:,} at "
                    f"most, and there are {spell_count(count)} or more",
                    "use fewer levels, or raise design_spec.options.max_candidates",
                )
            )
        if mistakes:
            raise StudyError(mistakes)
        assert runs is not None
        return runs, Model(tuple(Coding.of(factor) for factor in varied), self.model)

    def _refuse_long_search(self, runs: int, width: int) -> None:
        steps = runs * self.restarts
        measures = (
            ("rows x combinations x parameters x restarts", steps * width, MAX_WORK),
            ("rows x restarts", steps, MAX_STEPS),
        )
        for what, size, most in measures:
            if size > most:
                raise StudyError(
                    Mistake(
                        ("design_spec", "options", "restarts"),
                        f"{what} is {spell_count(size)}; {most:,} is the most that is searched",
                        "use fewer rows, restarts or levels, or a smaller model",
                    )
                )

    def _facts(
        self, model: Model, points: Floats, existing: Floats, runs: int, found: Found
    ) -> dict[str, Any]:
        import numpy as np

        design = np.vstack([existing, points[list(found.rows)]])
        bound = bound_log_determinant(np.vstack([points, existing]), design)
        share = math.exp((found.log_determinant - bound) / model.parameters) / runs
        facts: dict[str, Any] = {
            "model": self.model,
            "parameters": model.parameters,
            "rows": runs,
            "kept_rows": len(existing),
            "candidates": len(points),
            "d_efficiency": round(math.exp(found.log_determinant / model.parameters) / runs, 6),
            "d_efficiency_of_possible": round(min(share, 1.0), 6),
            "restarts": self.restarts,
            "restarts_that_reached_best": found.reached,
        }
        if self.model == "quadratic":
            facts["squares_of"] = [coding.name for coding in model.codings if coding.curved]
        return facts


def _admissible(study: Study) -> list[Assignment]:
    """The combinations of levels that may run, whatever the block."""
    rows = list(combinations(study.factors))
    if study.constraints:
        judge, blocks = Judge(study.constraints, study.folder), block_assignments(study)
        rows = [row for row in rows if all(judge(row, block)[0] for block in blocks)]
    if not rows:
        where = " in every block" if study.blocks else ""
        raise StudyError(
            Mistake(("constraints",), f"no combination of levels keeps all of them{where}")
        )
    return rows


def _refuse_confounded(points: Floats, existing: Floats, terms: Sequence[str]) -> None:
    import numpy as np

    unknown = confounded(np.vstack([points, existing]), terms)
    if unknown:
        raise StudyError(
            Mistake(
                ("design_spec", "options", "model"),
                "no design of the admissible combinations can estimate " + ", ".join(unknown),
                "loosen the constraints, use a smaller model, or leave a factor out",
            )
        )


def _refuse_few_runs(runs: int, parameters: int, kept: int = 0, known: int = 0) -> None:
    """Refuse what can't work: each new row adds one parameter at most to the `known` ones."""
    least = kept + max(parameters - known, 1)
    if runs < least:
        after = f", {kept} in start_from among them" if kept else ""
        raise StudyError(
            Mistake(
                ("design_spec", "n_samples"),
                f"the model has {parameters} parameters, which takes {least} rows or more{after}; "
                f"got {runs}",
                f"set it to {least} or more, or use a smaller model",
            )
        )
