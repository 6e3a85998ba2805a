"""A study as HTML for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtrial.core import notebook_html

if TYPE_CHECKING:
    from fairtrial.study.model.study import Study


def study_html(study: Study) -> str:
    """Return factors, outcomes and claims of a study as HTML for a notebook."""
    factors = [(one.name, ", ".join(level.name for level in one.levels)) for one in study.factors]
    outcomes = [(one.name, one.source_table, one.primary) for one in study.outcomes]
    claims = [
        (
            one.label or one.hypothesis_id,
            ", ".join(one.independent_vars),
            ", ".join(one.dependent_vars),
        )
        for one in study.hypotheses
    ]
    return notebook_html.compose(
        study.title or study.study_id,
        notebook_html.facts(
            [
                ("id", study.study_id),
                ("agents", ", ".join(map(str, study.agent_specs))),
                ("problems", len(study.problem_ids) or None),
                ("replicates", study.run_budget.replicates),
            ]
        ),
        notebook_html.table(("factor", "levels"), factors) if factors else "",
        notebook_html.table(("outcome", "from", "primary"), outcomes) if outcomes else "",
        notebook_html.table(("claim", "of", "on"), claims) if claims else "",
        kind="study",
    )
