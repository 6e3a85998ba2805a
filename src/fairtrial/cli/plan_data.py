"""A study with all that can be said of it before anything is run."""

from __future__ import annotations

from fairtrial.study import (
    Condition,
    Study,
    agents_of,
    conditions_of,
    count_runs,
    design_table,
    problems_of,
    refuse_collisions,
    replicates_of,
)


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

    def changes_from(self, old: Plan) -> dict[str, dict[str, int]]:
        """How many conditions and runs of `old` stay, go, and are added."""
        counts = {
            "conditions": (
                len(self.condition_ids() & old.condition_ids()),
                len(self.conditions),
                len(old.conditions),
            ),
            "runs": (self._shared_runs(old), self.runs, old.runs),
        }
        return {
            what: {"kept": kept, "new": now - kept, "dropped": then - kept}
            for what, (kept, now, then) in counts.items()
        }

    def _shared_runs(self, old: Plan) -> int:
        """How many runs are in both, by what ids are made of: there may be millions."""
        if self.study.study_id != old.study.study_id:
            return 0
        replicates = min(replicates_of(self.study), replicates_of(old.study))
        theirs = {condition.condition_id: condition for condition in old.admissible}
        shared = 0
        for condition in self.admissible:
            other = theirs.get(condition.condition_id)
            if other is not None:
                agents = {*agents_of(self.study, condition)} & {*agents_of(old.study, other)}
                problems = {*problems_of(self.study, condition)} & {*problems_of(old.study, other)}
                shared += len(agents) * len(problems) * replicates
        return shared
