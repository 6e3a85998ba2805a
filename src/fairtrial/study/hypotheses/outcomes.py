"""Outcomes that no report can read, whatever the runs give."""

from __future__ import annotations

from fairtrial.core import did_you_mean
from fairtrial.study.model.hypotheses import AGGREGATIONS, SOURCE_TABLES, OutcomeSpec
from fairtrial.study.model.study import Study

YES_OR_NO = frozenset({"bool", "boolean", "binary"})
"""The expected types of outcomes whose values are yes and no."""
NUMERIC_TYPES = frozenset(
    {"", "float", "int", "integer", "number", "numeric", "double", "bool", "boolean", "binary"}
)


def why_unreadable(study: Study, spec: OutcomeSpec) -> str:
    """Why an outcome can't be read from any result; empty if it can."""
    table = spec.source_table.strip().lower()
    how = spec.aggregation.strip().lower()
    if spec.derivation:
        return (
            f"outcome '{spec.name}' is derived ({spec.derivation}), which fairtrial doesn't "
            "compute; let the agent or the evaluator give it as a number"
        )
    if table not in SOURCE_TABLES:
        hint = did_you_mean(table, SOURCE_TABLES)
        return f"outcome '{spec.name}': there is no table '{spec.source_table}'; {hint}"
    if how not in AGGREGATIONS:
        hint = did_you_mean(how, AGGREGATIONS)
        return f"outcome '{spec.name}': no such aggregation: '{spec.aggregation}'; {hint}"
    if spec.expected_type.strip().lower() not in NUMERIC_TYPES:
        return f"outcome '{spec.name}' is {spec.expected_type}, not a number"
    if table == "conditions":
        names = [factor.name for factor in study.factors]
        names += [name for block in study.blocks for name in (block.name, f"block_{block.name}")]
        if spec.column not in names:
            hint = did_you_mean(spec.column, names)
            return f"outcome '{spec.name}': conditions have no column '{spec.column}'; {hint}"
    return ""
