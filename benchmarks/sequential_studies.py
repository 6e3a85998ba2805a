"""Studies that stop when they know: error, saving and coverage, by simulation.

Each simulated study has problems with their own level and their own effect (normal), two styles and
replicates. Its results go through the same functions as those of a real study: the looks decide as
the run loop does. Measured, for each number of looks and each rule:

- error: the share of studies without an effect whose one claim is "supported" or "contradicted"
- supported: the share of studies with an effect whose claim is "supported"
- saved: the mean share of planned runs that are not made
- coverage: the share of studies whose final (repeated) confidence interval holds the true effect

With `--bounds`, only the bounds are measured, with very many studies.

Usage::

    python benchmarks/sequential_studies.py [--studies N] [--looks 1 5 20] [--seed S]
    python benchmarks/sequential_studies.py --bounds --studies 100000
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy import special

from fairtrial.study import RunResult, RunStatus, Study, build_design
from fairtrial.study.design.look_schedule import schedule_looks
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.ledger.planned_looks import FUTILE
from fairtrial.study.power.hypothesis_power import ALPHA
from fairtrial.study.report.look_levels import LookLevel, find_look_claims
from fairtrial.study.stopping.decisions import decide_claims

PROBLEMS, REPLICATES = 24, 1
SLOPE_SD = 0.5
"""How much the effect varies between problems; runs of a problem vary by 1."""
EFFECT = 0.9
RULES = ("obrien_fleming", "pocock", "anytime")


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    spending: str
    looks: int
    effect: float
    studies: int
    supported: float
    contradicted: float
    futile: float
    saved: float
    coverage: float


def make_study(looks: int, spending: str, test: str, direction: str = "different") -> Study:
    """Return a study of two styles with planned looks."""
    levels = [{"name": name, "value": name} for name in ("plain", "worked")]
    return Study.from_dict(
        {
            "study_id": "sequential",
            "title": "Sequential",
            "factors": [{"name": "style", "levels": levels}],
            "outcomes": [{"name": "score", "primary": True}],
            "hypotheses": [
                {
                    "hypothesis_id": "h1",
                    "label": "styles differ",
                    "statement": "worked examples change the score",
                    "independent_vars": ["style"],
                    "dependent_vars": ["score"],
                    "direction": direction,
                    "contrast": {"left": "worked", "right": "plain"},
                }
            ],
            "analysis_plans": [
                {
                    "analysis_plan_id": "main",
                    "hypothesis_ids": ["h1"],
                    "tests": [test],
                    "stopping": {"looks": looks, "spending": spending},
                }
            ],
            "run_budget": {"replicates": REPLICATES},
            "agent_specs": ["agent"],
            "problem_ids": [f"problem-{number}" for number in range(PROBLEMS)],
        }
    )


def simulate_results(plan: RunPlan, effect: float, rng: np.random.Generator) -> list[RunResult]:
    """Return the results of all runs of a plan, in plan order."""
    levels = dict(zip(plan.study.problem_ids, rng.normal(0, 1, PROBLEMS), strict=True))
    slopes = dict(zip(plan.study.problem_ids, rng.normal(effect, SLOPE_SD, PROBLEMS), strict=True))
    results = []
    for index, spec in enumerate(plan.specs()):
        is_worked = plan.condition_at(index).factor_assignments["style"] == "worked"
        value = levels[spec.problem_id] + rng.normal() + is_worked * slopes[spec.problem_id]
        metrics = {"score": float(value)}
        results.append(RunResult(spec.run_id, RunStatus.SUCCESS, run_spec=spec, metrics=metrics))
    return results


def run_one(plan: RunPlan, effect: float, rng: np.random.Generator) -> tuple[str, float, bool]:
    """Return the decision of one study, the share of runs saved, and whether it covers."""
    results = simulate_results(plan, effect, rng)
    claims = {*find_look_claims(plan.study, plan.conditions)}
    schedule, batches = plan.schedule, plan.batches
    assert schedule is not None
    for number in range(1, schedule.looks + 1):
        seen = [result for result, batch in zip(results, batches, strict=True) if batch <= number]
        (claim,) = decide_claims(plan, number, seen, claims)
        if claim.is_decided:
            break
    low, high = claim.interval or (-math.inf, math.inf)
    return claim.decision, 1 - len(seen) / len(results), low <= effect <= high


def measure(looks: int, spending: str, effect: float, studies: int, seed: int, test: str) -> Row:
    """Return the row of one cell of the table."""
    study = make_study(looks, spending, test)
    plan = RunPlan(study, build_design(study))
    rng = np.random.default_rng([seed, looks, RULES.index(spending), round(100 * effect)])
    outcomes = [run_one(plan, effect, rng) for _ in range(studies)]
    decisions = [decision for decision, _, _ in outcomes]
    shares = {
        name: sum(decision == value for decision in decisions) / studies
        for name, value in (
            ("supported", "supported"),
            ("contradicted", "contradicted"),
            ("futile", FUTILE),
        )
    }
    return Row(
        spending,
        looks,
        effect,
        studies,
        **shares,
        saved=float(np.mean([saved for _, saved, _ in outcomes])),
        coverage=float(np.mean([covers for _, _, covers in outcomes])),
    )


def measure_bounds(looks: int, spending: str, studies: int, seed: int) -> float:
    """Return the share of studies without an effect that cross a bound at any look.

    The t tests of the problems' differences are computed for all studies at once, so that there can
    be very many. It is also the share in which any repeated confidence interval misses the truth.
    """
    study = make_study(looks, spending, "paired_t")
    schedule = schedule_looks(study, build_design(study))
    assert schedule is not None
    values = np.random.default_rng([seed, looks, RULES.index(spending)]).normal(
        size=(studies, PROBLEMS)
    )
    sums, squares = np.cumsum(values, axis=1), np.cumsum(values**2, axis=1)
    crossed = np.zeros(studies, dtype=bool)
    for number, count in enumerate(schedule.units, 1):
        mean = sums[:, count - 1] / count
        error = np.sqrt((squares[:, count - 1] / count - mean**2) / (count - 1))
        tail = LookLevel(schedule, number, ALPHA).tail(is_one_sided=False, df=count - 1)
        if tail > 0:
            crossed |= np.abs(mean / error) > -special.stdtrit(count - 1, tail)
    return float(crossed.mean())


def print_bounds(looks: Sequence[int], rules: Sequence[str], studies: int, seed: int) -> None:
    """Print the error of the bounds alone, without futility."""
    print(f"| rule | looks | any bound crossed without an effect ({studies:,} studies) |")
    print("|---|--:|--:|")
    for spending in rules:
        for number in looks:
            error = measure_bounds(number, spending, studies, seed)
            print(f"| {spending} | {number} | {error:.4f} |", flush=True)


def main() -> None:
    """Print the table, and each row as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--studies", type=int, default=1_000)
    parser.add_argument("--looks", type=int, nargs="+", default=[1, 5, 20])
    parser.add_argument("--rules", nargs="+", choices=RULES, default=list(RULES))
    parser.add_argument("--effects", type=float, nargs="+", default=[0.0, EFFECT])
    parser.add_argument("--test", default="paired_t")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--bounds", action="store_true", help="only the error of the bounds")
    options = parser.parse_args()
    if options.bounds:
        print_bounds(options.looks, options.rules, options.studies, options.seed)
        return
    print("| rule | looks | effect | supported | contradicted | futile | saved | coverage |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for spending in options.rules:
        for looks in options.looks:
            for effect in options.effects:
                began = time.monotonic()
                row = measure(looks, spending, effect, options.studies, options.seed, options.test)
                print(
                    f"| {spending} | {looks} | {effect:g} | {row.supported:.3f} | "
                    f"{row.contradicted:.3f} | {row.futile:.3f} | {row.saved:.0%} | "
                    f"{row.coverage:.3f} |",
                    flush=True,
                )
                if options.json:
                    seconds = round(time.monotonic() - began, 1)
                    print(json.dumps({**asdict(row), "seconds": seconds}))


if __name__ == "__main__":
    main()
