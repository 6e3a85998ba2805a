"""A study with all that can be said of it before anything is run."""

from __future__ import annotations

from fairtrial.design.build import conditions_of, design_table
from fairtrial.design.schedule import count_runs, plan_runs, refuse_collisions
from fairtrial.model.conditions import Condition
from fairtrial.model.study import Study


class Plan:
    """A study with its conditions, and what can be said of them before anything is run."""

    def __init__(self, study: Study) -> None:
        self.study = study
        table = design_table(study)
        self.conditions = conditions_of(study, table)
        self.facts = table.facts
        self.runs = count_runs(study, self.conditions)
        refuse_collisions(study, self.conditions)

    @property
    def admissible(self) -> list[Condition]:
        return [condition for condition in self.conditions if condition.admissible]

    def condition_ids(self) -> set[str]:
        return {condition.condition_id for condition in self.conditions}

    def run_ids(self) -> set[str]:
        return {run.run_id for run in plan_runs(self.study, self.conditions)}

    def changes_from(self, old: Plan) -> dict[str, dict[str, int]]:
        """How many conditions and runs of `old` stay, go, and are added."""
        pairs = {
            "conditions": (self.condition_ids(), old.condition_ids()),
            "runs": (self.run_ids(), old.run_ids()),
        }
        return {
            what: {"kept": len(now & then), "new": len(now - then), "dropped": len(then - now)}
            for what, (now, then) in pairs.items()
        }
