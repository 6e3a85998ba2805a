"""What runs have in common besides what is compared: pairs, circumstances, cautions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairtrial.core import StudyError
from fairtrial.study.design.constraints import Expression
from fairtrial.study.design.runs import AGENT_FACTORS, PROBLEM_FACTORS, SUBJECT
from fairtrial.study.model.factors import DesignKind, Factor
from fairtrial.study.model.study import Study
from fairtrial.study.power.hypothesis_power import FEW_PROBLEMS
from fairtrial.study.report.samples import Sample
from fairtrial.study.report.values import REPLICATE

if TYPE_CHECKING:
    from fairtrial.study.stats.finding import Codes, Values

UNEVEN = 0.1
"""Groups don't meet a circumstance evenly if their shares of one level differ by more than this."""


@dataclass(frozen=True, slots=True)
class Sets:
    """Runs put together that differ in nothing but their group.

    table: a row for each complete set, a column for each group
    shared: what the runs of a set have in common
    incomplete: how many sets lack a group
    averaged: whether some cells are means of several runs
    """

    table: Values
    shared: tuple[str, ...]
    incomplete: int
    averaged: bool

    @property
    def text(self) -> str:
        """A set in words."""
        return ", ".join(self.shared) or "nothing"


def circumstances(sample: Sample) -> dict[str, Codes]:
    """What varies besides what is compared: blocks, other factors, agents, problems.

    For each of them the levels of the sample's runs, as numbers from 0.
    """
    table = sample.question.table
    study = table.study
    taken = _follow(study, sample.question.comparison.variables)
    factors = {factor.name for factor in study.factors}
    names = [*(block.name for block in study.blocks), *(each.name for each in study.factors)]
    names += [] if factors & set(AGENT_FACTORS) else ["agent_id"]
    names += [] if factors & set(PROBLEM_FACTORS) else ["problem_id"]
    found = {}
    for name in names:
        variable, all_codes = table.variable(name)
        codes = all_codes[sample.rows]
        if variable.agents is not None and codes.min() < 0 and taken & set(AGENT_FACTORS):
            continue  # an option of some of the agents that are compared: averaged over
        if not is_taken(name, taken) and codes.min() != codes.max():
            found[name] = codes - codes.min()
    return found


def is_taken(name: str, taken: set[str]) -> bool:
    """Whether a variable is among those taken, under this name or another of its names."""
    alike = next((group for group in (AGENT_FACTORS, PROBLEM_FACTORS) if name in group), (name,))
    return bool({*alike, f"block_{name}", name.removeprefix("block_")} & taken)


def _follow(study: Study, compared: Sequence[str]) -> set[str]:
    """The compared variables, and the factors that move with them (`tied_to`, `when`)."""
    taken = set(compared)
    size = 0
    while len(taken) > size:
        size = len(taken)
        for factor in study.factors:
            if factor.tied_to and {factor.name, factor.tied_to} & taken:
                taken |= {factor.name, factor.tied_to}
            if _asks_about(factor) & taken:
                taken.add(factor.name)
    return taken


def _asks_about(factor: Factor) -> frozenset[str]:
    if factor.when is None:
        return frozenset()
    try:
        return frozenset(Expression(factor.when).names)
    except StudyError:
        return frozenset()


def put_together(sample: Sample, *, by_replicate: bool = True) -> Sets:
    """Sets of runs that share all circumstances, and the replicate's number if asked.

    Without the replicate, all replicates of a set are averaged; but where the replicate is the
    subject of repeated measures it always counts.
    """
    import numpy as np

    table = sample.question.table
    keys = circumstances(sample)
    if by_replicate or replicate_is_subject(table.study):
        keys[REPLICATE] = table.column(REPLICATE)[sample.rows]
    keys = {name: codes for name, codes in keys.items() if codes.min() != codes.max()}
    width = len(sample.names)
    if keys:
        _, which = np.unique(np.stack(list(keys.values())), axis=1, return_inverse=True)
        which = which.ravel()
    else:
        which = np.zeros(len(sample.rows), dtype=np.intp)
    cells = which * width + sample.group
    size = (int(which.max()) + 1) * width
    counts = np.bincount(cells, minlength=size).reshape(-1, width)
    sums = np.bincount(cells, weights=sample.y, minlength=size).reshape(-1, width)
    complete = (counts > 0).all(axis=1)
    return Sets(
        table=sums[complete] / counts[complete],
        shared=tuple(keys),
        incomplete=int((~complete).sum()),
        averaged=bool((counts[complete] > 1).any()),
    )


def replicate_is_subject(study: Study) -> bool:
    """Whether replicates stand for subjects: repeated measures without a block of that name."""
    has_subject = any(block.name == SUBJECT for block in study.blocks)
    return study.design_spec.kind == DesignKind.REPEATED_MEASURES and not has_subject


def cautions(sample: Sample, *, is_paired: bool, is_mixed: bool = False) -> list[str]:
    """What a test that takes runs (or pairs) as independent leaves out of account here."""
    table = sample.question.table
    found = circumstances(sample)
    notes = []
    if sample.question.comparison.shape == "levels":
        apart = [name for name, codes in found.items() if not _meets_evenly(sample, codes)]
        even = [name for name in found if name not in apart]
        even += ["subjects (the replicates)"] if replicate_is_subject(table.study) else []
        if apart and not is_paired and not is_mixed:
            notes.append(
                f"the groups don't meet {_and(apart)} evenly: a difference may be due to that"
            )
        elif even and not is_paired and not is_mixed:
            notes.append(
                f"runs are taken as independent though all groups met the same {_and(even)}: that "
                "is cautious for these, and paired_t or mixed_effects would be sharper"
            )
    problems = len({name for name in table.problems if name})
    if 0 < problems < FEW_PROBLEMS and not is_mixed:
        which = "the one problem" if problems == 1 else f"the {problems} problems"
        notes.append(f"it speaks for {which} of the study, not for others")
    elif problems and not is_paired and not is_mixed and _repeats(sample):
        notes.append(
            "runs of one problem count as independent: if the effect differs between problems, p "
            "is too small for others at large; mixed_effects allows for that"
        )
    return notes


def _repeats(sample: Sample) -> bool:
    """Whether a group has several runs of one of several problems that others meet too."""
    problem = sample.question.table.column("problem")[sample.rows]
    is_compared = is_taken("problem_id", set(sample.question.comparison.variables))
    pairs = set(zip(problem.tolist(), sample.group.tolist(), strict=True))
    return not is_compared and len(pairs) < len(sample.rows)


def _meets_evenly(sample: Sample, codes: Codes) -> bool:
    import numpy as np

    shares = []
    for group in range(len(sample.names)):
        counts = np.bincount(codes[sample.group == group], minlength=int(codes.max()) + 1)
        shares.append(counts / max(1, int(counts.sum())))
    return bool(np.ptp(np.stack(shares), axis=0).max() <= UNEVEN)


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
