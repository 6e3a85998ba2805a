"""D-optimal designs: the most informative rows among all that the constraints allow."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairtrial.core import Mistake, Record, StudyError
from fairtrial.study.design.constraints import ConstraintChecker
from fairtrial.study.design.exchange import ExchangeResult, bound_log_determinant, search_rows
from fairtrial.study.design.existing_rows import read_existing_rows
from fairtrial.study.design.factorial import combinations, count_combinations
from fairtrial.study.design.rows import Assignment, block_assignments, free_factors, number_rows
from fairtrial.study.design.terms import (
    Coding,
    Model,
    ModelName,
    compute_rank,
    find_confounded_terms,
)
from fairtrial.study.model.conditions import DesignTable
from fairtrial.study.model.identity import hash_id
from fairtrial.study.model.large_counts import format_large_count
from fairtrial.study.model.study import Study

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MAX_WORK = 5 * 10**9
"""The limit of rows × candidates × parameters × restarts: about ten seconds."""
MAX_STEPS = 300_000
"""The limit of rows × restarts, which takes about as long if there are few candidates."""


@dataclass(frozen=True, slots=True)
class DOptimal(Record):
    """The admissible combinations of levels that estimate a linear model most precisely.

    Useful for a number of runs that no standard design has, for factors with different numbers of
    levels, and for constraints that exclude combinations. `design_spec.n_samples` is the number of
    rows; a row may occur more than once. A combination is admissible if it satisfies the
    constraints in every block. Factors with one level and tied factors are not part of the model.

    The facts give three figures, for n rows and p parameters:

    - `d_efficiency` = det(X'X)^(1/p) / n, with numeric factors scaled to ±1 and other factors coded
      by contrasts of the same length. 1 is a balanced design with all effects independent, the
      maximum for two-level factors; models with squares have much lower values.
    - `d_efficiency_of_possible`: the same relative to an upper bound over all designs of these
      combinations with any n. The rest is lost by the choice of n, or by the search.
    - `restarts_that_reached_best`: if it is 1, more restarts may find a better design.

    model: the effects that are estimated: `main` effects; `interactions`, also of two factors;
        or `quadratic`, also squares of numeric factors with three levels or more
    restarts: how many random starts are improved; the best result is used
    start_from: a CSV file with existing rows, relative to the study file, such as the
        conditions.csv of an earlier run; they come first and count towards n_samples, and keep
        their ids if the file has them in the order of their row numbers (not with
        `counterbalance`) and `randomize` is not set
    max_candidates: a larger number of combinations is refused
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
        """Search for the rows and return their table; raises `StudyError` if there are none."""
        runs, model = self._plan_search(study)
        empty_table = number_rows(study, runs, list)
        if empty_table.size > study.design_spec.max_conditions:
            # Not searched: the caller refuses the table by its size.
            return empty_table
        _refuse_few_runs(runs, model.parameters)
        kept: list[Assignment] = []
        if self.start_from is not None:
            kept = read_existing_rows(study, self.start_from, model)
        candidates = _find_candidates(study)
        self._refuse_long_search(runs, len(candidates) * model.parameters)
        points, terms = model.make_matrix(candidates)
        existing, _ = model.make_matrix(kept)
        _refuse_confounded(points, existing, terms)
        if kept:
            _refuse_few_runs(runs, model.parameters, len(kept), compute_rank(existing))
        rng = random.Random(hash_id("d_optimal", {"base_seed": study.seed_policy.base_seed}))
        result = search_rows(points, existing, runs - len(kept), self.restarts, rng)
        if result is None:
            raise StudyError(
                Mistake(
                    ("design_spec", "options", "restarts"),
                    f"none of {self.restarts} searches ended at rows that estimate the model",
                    "raise it, or design_spec.n_samples",
                )
            )
        rows = kept + [candidates[row] for row in result.rows]
        facts = self._describe(model, points, existing, runs, result)
        return number_rows(study, runs, lambda: rows, facts)

    def _plan_search(self, study: Study) -> tuple[int, Model]:
        """Return the number of rows and the model; or raise `StudyError`."""
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
                    f"most, and there are {format_large_count(count)} or more",
                    "use fewer levels, or raise design_spec.options.max_candidates",
                )
            )
        if mistakes:
            raise StudyError(mistakes)
        assert runs is not None
        return runs, Model(tuple(Coding.from_factor(factor) for factor in varied), self.model)

    def _refuse_long_search(self, runs: int, width: int) -> None:
        steps = runs * self.restarts
        measures = (
            ("rows x combinations x parameters x restarts", steps * width, MAX_WORK),
            ("rows x restarts", steps, MAX_STEPS),
        )
        for product, size, limit in measures:
            if size > limit:
                raise StudyError(
                    Mistake(
                        ("design_spec", "options", "restarts"),
                        f"{product} is {format_large_count(size)}; at most {limit:,} is searched",
                        "use fewer rows, restarts or levels, or a smaller model",
                    )
                )

    def _describe(
        self, model: Model, points: Floats, existing: Floats, runs: int, result: ExchangeResult
    ) -> dict[str, Any]:
        """Return the facts of the design."""
        import numpy as np

        design = np.vstack([existing, points[list(result.rows)]])
        bound = bound_log_determinant(np.vstack([points, existing]), design)
        share = math.exp((result.log_determinant - bound) / model.parameters) / runs
        facts: dict[str, Any] = {
            "model": self.model,
            "parameters": model.parameters,
            "rows": runs,
            "kept_rows": len(existing),
            "candidates": len(points),
            "d_efficiency": round(math.exp(result.log_determinant / model.parameters) / runs, 6),
            "d_efficiency_of_possible": round(min(share, 1.0), 6),
            "restarts": self.restarts,
            "restarts_that_reached_best": result.reached,
        }
        if self.model == "quadratic":
            facts["squares_of"] = [coding.name for coding in model.codings if coding.curved]
        return facts


def _find_candidates(study: Study) -> list[Assignment]:
    """Return the combinations of levels that are admissible in every block."""
    rows = list(combinations(study.factors))
    if study.constraints:
        check, blocks = ConstraintChecker(study.constraints, study.folder), block_assignments(study)
        rows = [row for row in rows if all(check(row, block)[0] for block in blocks)]
    if not rows:
        where = " in every block" if study.blocks else ""
        raise StudyError(
            Mistake(("constraints",), f"no combination of levels keeps all of them{where}")
        )
    return rows


def _refuse_confounded(points: Floats, existing: Floats, terms: Sequence[str]) -> None:
    import numpy as np

    confounded = find_confounded_terms(np.vstack([points, existing]), terms)
    if confounded:
        raise StudyError(
            Mistake(
                ("design_spec", "options", "model"),
                "no design of the admissible combinations can estimate " + ", ".join(confounded),
                "loosen the constraints, use a smaller model, or leave a factor out",
            )
        )


def _refuse_few_runs(runs: int, parameters: int, kept: int = 0, kept_rank: int = 0) -> None:
    """Raise `StudyError` if there are too few rows to estimate the model.

    Each new row adds at most one to the rank of the kept rows.
    """
    minimum = kept + max(parameters - kept_rank, 1)
    if runs < minimum:
        including = f", {kept} in start_from among them" if kept else ""
        raise StudyError(
            Mistake(
                ("design_spec", "n_samples"),
                f"the model has {parameters} parameters, which takes {minimum} rows or "
                f"more{including}; got {runs}",
                f"set it to {minimum} or more, or use a smaller model",
            )
        )
