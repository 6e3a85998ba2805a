"""The summary of a planned study: its conditions, runs, balance, tests and power."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from fairtrial.core import table_files
from fairtrial.study.design.balance import BalanceReport, balance_report
from fairtrial.study.design.build import design_table, make_conditions, paused_gc
from fairtrial.study.design.effect_correlations import ConditionAliasing, condition_aliasing
from fairtrial.study.design.runs import (
    count_replicates,
    count_runs,
    get_agents,
    get_problems,
    plan_runs,
    refuse_collisions,
)
from fairtrial.study.hypotheses.planned_tests import (
    PlannedTest,
    claim_warnings,
    planned_tests,
    untested_claims,
)
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.study import Study
from fairtrial.study.power.hypothesis_power import HypothesisPower, hypothesis_power
from fairtrial.study.power.power_curve import PowerCurve, power_curves
from fairtrial.study.report.pilot_variances import (
    PilotVariances,
    apply_pilot,
    estimate_variances,
)
from fairtrial.study.stopping.look_plan import LookPlan, plan_looks
from fairtrial.study.tables.canonical import (
    PLAN_COLUMNS,
    condition_columns,
    condition_rows,
    plan_rows,
)

Names = tuple[str | None, ...]


@dataclass(frozen=True)
class PlanSummary:
    """A study with its plan. Balance, tests and power are computed when they are first read.

    study: the study
    conditions: its conditions in plan order, including inadmissible ones
    facts: properties that the design reports, such as its resolution
    runs: how many runs are planned
    pilot: the variances of an earlier study, which the study's outcomes have now
    """

    study: Study
    conditions: list[Condition]
    facts: Mapping[str, Any]
    runs: int
    pilot: Sequence[PilotVariances] = ()

    @cached_property
    def admissible(self) -> list[Condition]:
        """The conditions that no constraint excludes."""
        return [condition for condition in self.conditions if condition.admissible]

    @cached_property
    def used_names(self) -> tuple[set[Names], set[Names]]:
        """The agents, and the problems, that conditions run with: a set for all conditions."""
        agents = {get_agents(self.study, condition) for condition in self.admissible}
        return agents, {get_problems(self.study, condition) for condition in self.admissible}

    @cached_property
    def replicates(self) -> int:
        """How often each combination of condition, agent and problem is run."""
        return count_replicates(self.study)

    @cached_property
    def balance(self) -> BalanceReport:
        """The balance of the design."""
        return balance_report(self.study, self.conditions)

    @cached_property
    def aliasing(self) -> ConditionAliasing | None:
        """How effects are correlated in the conditions that can run, for two-level designs."""
        return condition_aliasing(self.study, self.conditions)

    @cached_property
    def tests(self) -> list[PlannedTest]:
        """The planned tests of the study's hypotheses."""
        return planned_tests(self.study, self.conditions)

    @cached_property
    def power(self) -> list[HypothesisPower]:
        """The power for each hypothesis that states a minimum effect of interest."""
        return hypothesis_power(self.study, self.conditions)

    @cached_property
    def power_curves(self) -> list[PowerCurve]:
        """The power against the number of problems and of replicates, for each hypothesis."""
        return power_curves(self.study, self.conditions)

    @cached_property
    def looks(self) -> LookPlan | None:
        """The planned looks, if the study may stop early."""
        return plan_looks(self.study, self.conditions, self.power)

    @cached_property
    def warnings(self) -> list[str]:
        """Warnings about hypotheses that may be meant differently than they will be tested."""
        return claim_warnings(self.study, self.conditions)

    @cached_property
    def untested(self) -> dict[str, list[str]]:
        """The hypotheses that won't be tested, each with the reasons."""
        return untested_claims(self.tests)

    def compare_with(self, old: PlanSummary) -> dict[str, dict[str, int]]:
        """Return how many conditions and runs are kept, new and dropped, compared with `old`."""
        ids = {condition.condition_id for condition in self.conditions}
        old_ids = {condition.condition_id for condition in old.conditions}
        counts = {
            "conditions": (len(ids & old_ids), len(self.conditions), len(old.conditions)),
            "runs": (self._count_shared_runs(old), self.runs, old.runs),
        }
        return {
            name: {"kept": kept, "new": new - kept, "dropped": dropped - kept}
            for name, (kept, new, dropped) in counts.items()
        }

    def _count_shared_runs(self, old: PlanSummary) -> int:
        # Computed from what run ids are made of: there may be millions of runs.
        if self.study.study_id != old.study.study_id:
            return 0
        replicates = min(self.replicates, old.replicates)
        old_conditions = {condition.condition_id: condition for condition in old.admissible}
        shared = 0
        for condition in self.admissible:
            match = old_conditions.get(condition.condition_id)
            if match is not None:
                agents = {*get_agents(self.study, condition)} & {*get_agents(old.study, match)}
                problems = {*get_problems(self.study, condition)} & {
                    *get_problems(old.study, match)
                }
                shared += len(agents) * len(problems) * replicates
        return shared

    def write_conditions(self, path: Path) -> None:
        """Write the table of conditions in the format of the file's suffix."""
        rows = condition_rows(self.study, self.conditions)
        table_files.write_table(path, condition_columns(self.study), rows)

    def write_runs(self, path: Path) -> None:
        """Write the planned runs in the format of the file's suffix."""
        table_files.write_table(
            path, PLAN_COLUMNS, plan_rows(plan_runs(self.study, self.conditions))
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as plain data, with the table of conditions."""
        return {
            "study_id": self.study.study_id,
            "title": self.study.title,
            "design": str(self.study.design_spec.kind),
            "conditions": len(self.conditions),
            "admissible": len(self.admissible),
            "runs": self.runs,
            "replicates": self.replicates,
            "facts": dict(self.facts),
            "balance": self.balance.to_dict(),
            "aliasing": self.aliasing and self.aliasing.to_dict(),
            "tests": [test.to_dict() for test in self.tests],
            "power": [power.to_dict() for power in self.power],
            "looks": None if self.looks is None else self.looks.to_dict(),
            "condition_table": list(condition_rows(self.study, self.conditions)),
        }


def summarize_plan(
    study: Study, *, pilot: Path | None = None, check_run_ids: bool = True
) -> PlanSummary:
    """Build the design of a study and return its summary.

    pilot: the folder of an earlier study, from whose results the variances for the power are taken
    check_run_ids: also check that no two runs have the same id by chance; takes 8 bytes of memory
        for each run

    Raises `StudyError` if the study doesn't fit its design, or two runs have the same id.
    """
    variances = [] if pilot is None else estimate_variances(pilot, study)
    study = apply_pilot(study, variances)
    table = design_table(study)
    with paused_gc():
        conditions = make_conditions(study, table)
        runs = count_runs(study, conditions)
        if check_run_ids:
            refuse_collisions(study, conditions, runs)
    return PlanSummary(study, conditions, table.facts, runs, variances)
