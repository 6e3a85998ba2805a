"""Matched sets of runs, nuisance factors, and caveats about independence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairtrial.core import StudyError
from fairtrial.study.design.expressions import Expression
from fairtrial.study.design.runs import AGENT_FACTORS, PROBLEM_FACTORS, SUBJECT
from fairtrial.study.model.factors import DesignKind, Factor
from fairtrial.study.model.study import Study
from fairtrial.study.report.run_table import REPLICATE
from fairtrial.study.report.samples import ComparisonSample

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Codes, Values

MAX_IMBALANCE = 0.1
"""A nuisance factor is balanced if the groups' shares of each level differ by no more than this."""


@dataclass(frozen=True, slots=True)
class MatchedSets:
    """Runs matched so that those of a set differ only in their group.

    table: values: a row for each complete set, a column for each group
    shared: names of the variables that the runs of a set have in common
    incomplete: number of sets that lack a group
    averaged: whether some cells are means of several runs
    """

    table: Values
    shared: tuple[str, ...]
    incomplete: int
    averaged: bool

    @property
    def text(self) -> str:
        """The shared variables, as text."""
        return ", ".join(self.shared) or "nothing"


def nuisance_factors(sample: ComparisonSample) -> dict[str, Codes]:
    """Return the variables that vary besides the compared ones, with the level of each run.

    These are blocks, other factors, agents and problems. Levels are numbered from 0.
    """
    table = sample.request.table
    study = table.study
    compared = _find_dependent(study, sample.request.comparison.variables)
    factors = {factor.name for factor in study.factors}
    names = [*(block.name for block in study.blocks), *(factor.name for factor in study.factors)]
    names += [] if factors & set(AGENT_FACTORS) else ["agent_id"]
    names += [] if factors & set(PROBLEM_FACTORS) else ["problem_id"]
    nuisance = {}
    for name in names:
        variable, all_codes = table.variable(name)
        codes = all_codes[sample.rows]
        if variable.agents is not None and codes.min() < 0 and compared & set(AGENT_FACTORS):
            continue  # an option of only some of the compared agents: averaged over
        if not has_variable(compared, name) and codes.min() != codes.max():
            nuisance[name] = codes - codes.min()
    return nuisance


def has_variable(variables: set[str], name: str) -> bool:
    """Return whether a set of variable names has a variable, under any of its names."""
    synonyms = next((group for group in (AGENT_FACTORS, PROBLEM_FACTORS) if name in group), (name,))
    return bool({*synonyms, f"block_{name}", name.removeprefix("block_")} & variables)


def _find_dependent(study: Study, compared: Sequence[str]) -> set[str]:
    """Return the compared variables and all factors that depend on them by `tied_to` or `when`."""
    dependent = set(compared)
    size = 0
    while len(dependent) > size:
        size = len(dependent)
        for factor in study.factors:
            if factor.tied_to and {factor.name, factor.tied_to} & dependent:
                dependent |= {factor.name, factor.tied_to}
            if _condition_names(factor) & dependent:
                dependent.add(factor.name)
    return dependent


def _condition_names(factor: Factor) -> frozenset[str]:
    """Return the names in a factor's `when` expression."""
    if factor.when is None:
        return frozenset()
    try:
        return frozenset(Expression(factor.when).names)
    except StudyError:
        return frozenset()


def match_runs(sample: ComparisonSample, *, by_replicate: bool = True) -> MatchedSets:
    """Match runs that share all nuisance factors.

    by_replicate: runs of a set also share the replicate number; else all replicates are averaged,
        unless the replicate is the subject of repeated measures
    """
    import numpy as np

    table = sample.request.table
    keys = nuisance_factors(sample)
    if by_replicate or replicate_is_subject(table.study):
        keys[REPLICATE] = table.column(REPLICATE)[sample.rows]
    keys = {name: codes for name, codes in keys.items() if codes.min() != codes.max()}
    width = len(sample.names)
    if keys:
        _, set_index = np.unique(np.stack(list(keys.values())), axis=1, return_inverse=True)
        set_index = set_index.ravel()
    else:
        set_index = np.zeros(len(sample.rows), dtype=np.intp)
    cells = set_index * width + sample.group
    size = (int(set_index.max()) + 1) * width
    counts = np.bincount(cells, minlength=size).reshape(-1, width)
    sums = np.bincount(cells, weights=sample.y, minlength=size).reshape(-1, width)
    complete = (counts > 0).all(axis=1)
    return MatchedSets(
        table=sums[complete] / counts[complete],
        shared=tuple(keys),
        incomplete=int((~complete).sum()),
        averaged=bool((counts[complete] > 1).any()),
    )


def replicate_is_subject(study: Study) -> bool:
    """Return whether replicates are the subjects: repeated measures without a subject block."""
    has_subject = any(block.name == SUBJECT for block in study.blocks)
    return study.design_spec.kind == DesignKind.REPEATED_MEASURES and not has_subject


def find_caveats(sample: ComparisonSample, *, is_paired: bool, is_mixed: bool = False) -> list[str]:
    """Return notes on dependence between runs that a test does not account for.

    is_paired: whether the test compares matched pairs
    is_mixed: whether the test is a mixed model
    """
    table = sample.request.table
    nuisance = nuisance_factors(sample)
    notes = [] if is_paired or is_mixed else find_imbalance(sample)
    if sample.request.comparison.shape == "levels" and not notes and not is_paired and not is_mixed:
        balanced = [name for name in nuisance if name != "problem_id"]
        balanced += ["subjects (the replicates)"] if replicate_is_subject(table.study) else []
        if balanced:
            notes.append(
                f"runs are treated as independent although all groups share {_join(balanced)}; "
                "paired_t or mixed_effects compares within that"
            )
    if len({name for name in table.problems if name}) == 1 and not is_mixed:
        notes.append("the claim is about the one problem of the study, not about others")
    return notes


def find_imbalance(sample: ComparisonSample) -> list[str]:
    """Return a note on nuisance factors that are not balanced between the groups.

    Problems are not among them if the test accounts for them.
    """
    if sample.request.comparison.shape != "levels":
        return []
    is_compared = has_variable(set(sample.request.comparison.variables), "problem_id")
    unbalanced = [
        name
        for name, codes in nuisance_factors(sample).items()
        if not _is_balanced(sample, codes) and (is_compared or name not in PROBLEM_FACTORS)
    ]
    if not unbalanced:
        return []
    verb = "is" if len(unbalanced) == 1 else "are"
    return [
        f"{_join(unbalanced)} {verb} not balanced between the groups: a difference may be due to "
        "that"
    ]


def _is_balanced(sample: ComparisonSample, codes: Codes) -> bool:
    """Return whether a nuisance factor has about the same distribution in all groups."""
    import numpy as np

    shares = []
    for group in range(len(sample.names)):
        counts = np.bincount(codes[sample.group == group], minlength=int(codes.max()) + 1)
        shares.append(counts / max(1, int(counts.sum())))
    return bool(np.ptp(np.stack(shares), axis=0).max() <= MAX_IMBALANCE)


def _join(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
