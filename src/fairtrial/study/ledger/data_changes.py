"""Changes of the data after results were known: other runs, repeated runs, other scores.

A claim whose runs were changed in this way is exploratory, even if its words are the same: whoever
has seen results can drop the problem that spoils them, or add runs until a difference shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from fairtrial.core import dump_record
from fairtrial.study.design.run_plan import RunPlan
from fairtrial.study.design.runs import count_replicates, get_agents, get_problems
from fairtrial.study.hypotheses.comparisons import plan_comparisons
from fairtrial.study.hypotheses.groups import Variable
from fairtrial.study.hypotheses.planned_tests import apply_filters
from fairtrial.study.ledger.amendments import (
    StudyVersion,
    read_amendments,
    read_code_changes,
)
from fairtrial.study.ledger.fingerprint import EXCLUDED_FIELDS, without_pace
from fairtrial.study.ledger.first_results import (
    find_changed_scores,
    find_repeated_runs,
    read_first_plan,
)
from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.ledger.schema import REMOVED
from fairtrial.study.ledger.sqlite_errors import explained
from fairtrial.study.ledger.study_lock import read_lock
from fairtrial.study.model.conditions import Condition
from fairtrial.study.model.hypotheses import AnalysisPlan, Hypothesis
from fairtrial.study.model.study import Study

DataChangeKind = Literal["replicates", "runs", "repeated", "rescored", "made otherwise"]
MAX_NAMES = 3


class ChangedRuns(NamedTuple):
    """All replicates of one agent on one problem under one condition."""

    condition: Condition
    agent: str | None
    problem: str | None


@dataclass(frozen=True, slots=True)
class DataChange:
    """One change of a study's data after results were known.

    kind: what kind of change it is
    what: the change as a noun phrase, such as `the added replicates`
    is_plural: whether that phrase is a plural
    known: how many results were known; None if it was not recorded
    can_undo: whether the results without it are still in the ledger
    plan: the plan that the changed runs belong to
    runs: the changed runs
    """

    kind: DataChangeKind
    what: str
    is_plural: bool
    known: int | None
    can_undo: bool
    plan: RunPlan = field(compare=False, repr=False)
    runs: Sequence[ChangedRuns] = field(compare=False, repr=False, default=())


def find_data_changes(
    reader: LedgerReader, first: StudyVersion | None, later: Sequence[StudyVersion]
) -> tuple[DataChange, ...]:
    """Return all changes of a study's data after results were known.

    first, later: the versions of the study
    """
    base = base_version(first, later)
    changes = [
        *_find_plan_changes(reader, base, later),
        *_find_other_making(reader, base, later),
        *_find_other_code(reader),
    ]
    if runs := _runs_at(reader, find_repeated_runs(reader)):
        what = "the repetition of failed runs"
        changes.append(DataChange("repeated", what, False, None, True, reader.plan, runs))
    if runs := _runs_at(reader, find_changed_scores(reader)):
        changes.append(
            DataChange("rescored", "the new scores", True, None, True, reader.plan, runs)
        )
    return tuple(changes)


def base_version(first: StudyVersion | None, later: Sequence[StudyVersion]) -> StudyVersion | None:
    """Return the last version before the first result: the plan that data are compared with."""
    return next((version for version in reversed(later) if not version.runs_done), first)


def has_planned_looks(plan: AnalysisPlan) -> bool:
    """Return whether an analysis plan provides for interim looks."""
    return plan.stopping is not None


def is_planned(change: DataChange, plan: AnalysisPlan) -> bool:
    """Return whether an analysis plan provides for a change of data.

    Confidence sequences allow for any number of runs. Planned looks with alpha spending don't:
    their last look is at all replicates of the first plan.
    """
    is_open_ended = plan.stopping is not None and plan.stopping.spending == "anytime"
    return change.kind == "replicates" and is_open_ended


def touches(change: DataChange, hypothesis: Hypothesis, plan: AnalysisPlan | None) -> bool:
    """Return whether a change concerns runs that a hypothesis compares."""
    study = change.plan.study
    for comparison in plan_comparisons(study, change.plan.conditions, hypothesis):
        if not comparison.levels:
            return True
        variables = {name: Variable(study, name) for name in comparison.variables}
        levels = apply_filters(variables, plan, hypothesis, comparison).levels
        for condition, agent, problem in change.runs:
            if comparison.agents and agent not in comparison.agents:
                continue
            assigned = (
                variable.get_level(variable.get_assigned_level(condition), agent, problem)
                for variable in variables.values()
            )
            if all(level in wanted for level, wanted in zip(assigned, levels, strict=False)):
                return True
    return False


# -- other runs --


def _find_plan_changes(
    reader: LedgerReader, base: StudyVersion | None, later: Sequence[StudyVersion]
) -> Iterator[DataChange]:
    """Yield the changes of which runs there are."""
    amendments = read_amendments(reader)
    counts = [amendment.runs_done for amendment in amendments]
    counts += [version.runs_done for version in later if version.runs_done and version.accepted]
    if not counts:
        return
    known, present = min(counts), reader.plan
    plan = None if base is None else read_first_plan(reader, base.study)
    if plan is None:
        what = "the added replicates" if amendments else "the accepted changes"
        runs = list(_all_runs(present).values())
        yield DataChange("replicates", what, True, known, False, present, runs)
        return
    before, after = _all_runs(plan), _all_runs(present)
    removed = [before[key] for key in before if key not in after]
    added = [after[key] for key in after if key not in before]
    if removed:
        what = f"the removal of {_name_runs(removed, after.values())}"
        yield DataChange("runs", what, False, known, True, plan, removed)
    if added:
        what = f"the addition of {_name_runs(added, before.values())}"
        yield DataChange("runs", what, False, known, True, present, added)
    kept = [after[key] for key in after if key in before]
    for kind, what, is_plural in _find_other_repetitions(plan, present) if kept else ():
        yield DataChange(kind, what, is_plural, known, True, present, kept)


def _find_other_repetitions(
    plan: RunPlan, present: RunPlan
) -> Iterator[tuple[DataChangeKind, str, bool]]:
    """Yield how the runs of a condition changed: their replicates, seeds or limit."""
    before, after = count_replicates(plan.study), count_replicates(present.study)
    if after > before:
        yield "replicates", "the added replicates", True
    elif after < before:
        yield "runs", "the dropped replicates", True
    seeds, old_seeds = present.study.seed_policy, plan.study.seed_policy
    if seeds != old_seeds or present.study.study_id != plan.study.study_id:
        yield "runs", "the other seeds", True
    limits = [
        (study.run_budget.max_runs, study.run_budget.max_runs_policy)
        for study in (plan.study, present.study)
    ]
    is_limited = any(one.runnable < len(one) for one in (plan, present))
    if is_limited and limits[0] != limits[1]:
        yield "runs", "the other max_runs", False


def _all_runs(plan: RunPlan) -> dict[tuple[str, str | None, str | None], ChangedRuns]:
    return {
        (condition.condition_id, agent, problem): ChangedRuns(condition, agent, problem)
        for condition in plan.conditions
        if condition.admissible
        for agent in get_agents(plan.study, condition)
        for problem in get_problems(plan.study, condition)
    }


def _name_runs(runs: Sequence[ChangedRuns], others: Iterable[ChangedRuns]) -> str:
    """Return what runs have in common and others don't have: problems, agents or conditions."""
    others = list(others)
    for kind in ("problem", "agent"):
        names = {getattr(run, kind): None for run in runs}
        if None not in names and not any(getattr(run, kind) in names for run in others):
            return list_names(kind, list(names))
    return "conditions"


def list_names(kind: str, names: Sequence[str]) -> str:
    """Return names with their kind: `problems p1, p2, p3 and 4 more`."""
    more = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
    return f"{kind}{'s' if len(names) > 1 else ''} {', '.join(names[:MAX_NAMES])}{more}"


# -- runs that were made otherwise --


def _find_other_making(
    reader: LedgerReader, base: StudyVersion | None, later: Sequence[StudyVersion]
) -> Iterator[DataChange]:
    """Yield changes of agents, problems and time limits, with the runs that were made since."""
    for version, following in zip(later, [*later[1:], None], strict=False):
        if base is None or not version.runs_done or version.session is None:
            continue
        last = None if following is None else following.session
        for what, names in _compare_making(base.study, version.study):
            runs = [
                run
                for run in _runs_at(reader, _indexes_between(reader, version.session, last))
                if names is None or run.agent in names or run.problem in names
            ]
            if runs:
                known = version.runs_done
                yield DataChange("made otherwise", what, False, known, False, reader.plan, runs)


def _find_other_code(reader: LedgerReader) -> Iterator[DataChange]:
    """Yield changes of the code after the first result, with the runs that were made since."""
    recorded = read_code_changes(reader)
    lock = read_lock(reader)
    before = [change.digest for change in recorded if not change.runs_done]
    first = before[-1] if before else "" if lock is None else lock.parts["code"]
    changes = [change for change in recorded if change.runs_done and change.session is not None]
    for change, following in zip(changes, [*changes[1:], None], strict=False):
        if change.session is None or change.digest == first:
            continue
        last = None if following is None else following.session
        runs = _runs_at(reader, _indexes_between(reader, change.session, last))
        if runs:
            files = [line.removeprefix("code ").partition(":")[0] for line in change.changes]
            what = f"the change of code in {', '.join(files[:MAX_NAMES]) or 'the locked files'}"
            known = change.runs_done
            yield DataChange("made otherwise", what, False, known, False, reader.plan, runs)


def _compare_making(old: Study, new: Study) -> Iterator[tuple[str, set[str] | None]]:
    """Yield what decides how runs are made and has changed, with the names that it concerns."""
    for kind, before, after in (
        ("agent", old.agents, new.agents),
        ("problem", old.problems, new.problems),
    ):
        names = {
            name
            for name in before
            if name in after and _binding(before[name]) != _binding(after[name])
        }
        if names:
            yield f"the change of {list_names(kind, sorted(names))}", names
    if old.condition_runner != new.condition_runner:
        yield "the change of condition_runner", None
    if old.run_budget.timeout_s != new.run_budget.timeout_s:
        yield "the other timeout_s", None


def _binding(binding: Any) -> dict[str, Any]:
    data = without_pace(dump_record(binding))
    return {key: data[key] for key in data if key not in EXCLUDED_FIELDS["agents"]}


def _indexes_between(reader: LedgerReader, first: int, last: int | None) -> list[int]:
    """Return the execution indexes of results from the sessions after `first` up to `last`."""
    query = "SELECT turn FROM results WHERE session > ? AND (? IS NULL OR session <= ?)"
    with explained(reader.path):
        return [index for (index,) in reader.connection.execute(query, (first, last, last))]


def _runs_at(reader: LedgerReader, indexes: Iterable[int]) -> list[ChangedRuns]:
    """Return the runs of the plan at some execution indexes, replicates counted once."""
    runs = {}
    for index in indexes:
        plan_index = reader.order[index] if index < len(reader.order) else REMOVED
        if plan_index != REMOVED:
            spec = reader.plan.spec(plan_index)
            key = (spec.condition_id, spec.agent_spec_ref, spec.problem_spec_ref)
            condition = reader.plan.condition_at(plan_index)
            runs[key] = ChangedRuns(condition, spec.agent_spec_ref, spec.problem_spec_ref)
    return list(runs.values())
