"""An explanation of the winner in Markdown, suitable for a pull request.

Names, lines of code and a proposer's notes are untrusted: they are quoted as code, where links,
mentions and tags have no effect.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from fairtrial.arena.delivery.coverage import Coverage
from fairtrial.arena.delivery.edits import FileEdit, FileEdits
from fairtrial.arena.delivery.evidence import describe_coverage, describe_profile
from fairtrial.arena.delivery.markdown_quoting import (
    ASSUMES,
    cells,
    code,
    plain,
    quote,
    word,
)
from fairtrial.arena.delivery.profile import Profile
from fairtrial.arena.model.figures import seconds_text
from fairtrial.arena.model.judgements import Judgement
from fairtrial.arena.model.problem import Check, CodeProblem
from fairtrial.arena.model.timings import Estimate, Measurement, Timing
from fairtrial.arena.model.verdicts import Basis
from fairtrial.arena.timing.stats.ratio_text import estimate_text, ratio_text
from fairtrial.arena.timing.total_checks import describe_total_check

MOST_FILES = 50
OWN_RULES = "codemod"
"""The built-in proposer, whose notes are trusted: they say what its changes assume."""
LONGEST_NOTE = 4_000
_RESTS_ON = {
    Basis.NOTHING: "nothing: no check was made",
    Basis.EXIT_STATUS: "the exit status of a command that the candidate's own code takes part in",
    Basis.TESTS: (
        "tests that run in the candidate's own process: they guard against mistakes, not against "
        "code that means to deceive them"
    ),
    Basis.COMPARED: (
        "results that were compared with those of the unchanged code, or with recorded ones, "
        "outside of the candidate's reach"
    ),
}


@dataclass(frozen=True, slots=True)
class WinnerEvidence:
    """All that the explanation of a winner is made from.

    problem: the code problem
    name: the winner's name
    edits: its changes
    judgement: the result of its checks
    measurement: its last measurement; only this is reported
    note: its proposer's note
    origin: the proposer's name
    is_rechecked: whether its checks were repeated alone, with other inputs
    coverage: how much of the change the checks run; None if it wasn't examined
    profile: where the time goes; None if it wasn't examined
    notes: further remarks for people
    patch_file: the name of the patch in commands
    """

    problem: CodeProblem
    name: str
    edits: FileEdits
    judgement: Judgement
    measurement: Measurement
    note: str = ""
    origin: str = ""
    is_rechecked: bool = False
    coverage: Coverage | None = None
    profile: Profile | None = None
    notes: tuple[str, ...] = ()
    patch_file: str = "best.patch"

    def explain(self) -> str:
        """Return Markdown on the change, its gain, the evidence, and what could still be wrong."""
        sections = [
            [f"# {_title(self)}"],
            _describe_change(self),
            _describe_speed(self),
            _describe_checks(self),
            _describe_costs(self),
            describe_profile(self.profile),
            _describe_doubts(self),
            _describe_notes(self),
            _describe_commands(self),
        ]
        return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _title(evidence: WinnerEvidence) -> str:
    estimate = evidence.measurement.estimate
    what = code(evidence.problem.problem_id)
    return f"{what}: {_figures(estimate)[0]} times as fast" if estimate else f"{what}: a candidate"


def _describe_change(evidence: WinnerEvidence) -> list[str]:
    lines = ["## What changes", ""]
    counts = evidence.edits.count_lines()
    for path, (added, removed) in list(counts.items())[:MOST_FILES]:
        lines.append(
            f"- {code(path)} ({_describe_size(evidence.edits.files[path], added, removed)})"
        )
    if len(counts) > MOST_FILES:
        lines.append(f"- and {len(counts) - MOST_FILES} files more")
    by = f" by {code(evidence.origin)}" if evidence.origin else ""
    lines += ["", f"The candidate {code(evidence.name)} was proposed{by}."]
    note, _ = _read_note(evidence)
    if note:
        heading = "What its proposer says of it, unchecked:"
        if evidence.origin == OWN_RULES:
            heading = "What its rules did, in order; each names the lines that it was applied to:"
        lines += [heading, "", *quote(note[:LONGEST_NOTE])]
    return lines


def _read_note(evidence: WinnerEvidence) -> tuple[str, list[str]]:
    """Return the proposer's note and, if it is the built-in one, its assumptions separately."""
    if evidence.origin != OWN_RULES:
        return evidence.note.strip(), []
    lines = evidence.note.strip().splitlines()
    kept = [line for line in lines if not line.startswith(ASSUMES)]
    return "\n".join(kept), [line.removeprefix(ASSUMES) for line in lines if line not in kept]


def _describe_size(edit: FileEdit, added: int, removed: int) -> str:
    what = "new, " if edit.before is None else "removed, " if edit.after is None else ""
    return what + (f"+{added} -{removed}" if added or removed else "not by lines")


def _describe_speed(evidence: WinnerEvidence) -> list[str]:
    measured, problem = evidence.measurement, evidence.problem
    lines = ["## What it gains", ""]
    if measured.estimate is None:
        return [*lines, "It was not timed long enough to say."]
    many = len(measured.timings) > 1
    mean = "the geometric mean over all benchmarks of " if many else ""
    lines += [
        f"**{_ratio(measured.estimate)}**: {mean}the unchanged code's time by the candidate's. "
        f"The bounds are a {measured.estimate.confidence:.0%} confidence interval for that ratio "
        f"on the machine that measured it, from {measured.estimate.sessions} sessions of fresh "
        "processes in which both took turns; they hold whenever one stops to measure.",
        f"The smallest gain that counts here is {problem.min_effect:.1%}. "
        + (
            "These are fresh sessions, taken after it had been found."
            if measured.is_confirmed
            else "These are the sessions it was chosen by, so the ratio may be a little too good."
        ),
    ]
    lines += _describe_totals(measured.timings)
    if measured.timings:
        head = "| benchmark | times as fast | interval | verdict | by CPU time | unchanged takes |"
        lines += ["", head, "|---|---|---|---|---|---|"]
        lines += map(_row, measured.timings)
    if measured.total_checks:
        shares = (
            f"- {code(check.benchmark)}: {describe_total_check(check)}"
            for check in measured.total_checks
        )
        lines += ["", "Run again in whole processes, one at a time:", "", *shares]
    return lines


def _describe_totals(timings: Sequence[Timing]) -> list[str]:
    """Return one line with the ratios by the median and in total, where totals are known."""
    ratios = [
        f"{code(timing.benchmark)}: {timing.estimate.ratio_text()} by the median, "
        f"{timing.total.ratio_text()} in total"
        for timing in timings
        if timing.estimate is not None and timing.total is not None
    ]
    return [f"{'; '.join(ratios)} (all times added up)."] if ratios else []


def _row(timing: Timing) -> str:
    return cells(
        code(timing.benchmark),
        *_row_figures(timing.estimate),
        timing.verdict.value,
        ratio_text(timing.cpu_ratio).rstrip("x") if timing.cpu_ratio else "not known",
        seconds_text(timing.base_s),
    )


def _row_figures(estimate: Estimate | None) -> tuple[str, str]:
    if estimate is None:
        return "not known", ""
    ratio, low, high = _figures(estimate)
    return ratio, f"{low} to {high}"


def _describe_checks(evidence: WinnerEvidence) -> list[str]:
    basis = evidence.judgement.basis
    lines = ["## What the verdict rests on", ""]
    lines.append(f"**{basis.value.capitalize()}**: {_RESTS_ON[basis]}. These checks hold:")
    lines += ["", *(f"- {_describe_check(check)}" for check in evidence.problem.check)]
    if evidence.is_rechecked:
        lines += [
            "",
            "All of them were made again at the end, for this candidate alone, and functions with "
            "inputs that no candidate had seen.",
        ]
    return [*lines, "", *describe_coverage(evidence.coverage, evidence.edits)]


def _describe_check(check: Check) -> str:
    if not check.function:
        what = "every test that passed before passes" if check.is_pytest else "it succeeds"
        if check.must_pass:
            what += f", and so do tests that failed before: {', '.join(map(code, check.must_pass))}"
        if check.fails_on_base:
            what += ", and failed before"
        if check.compare == "output":
            what = "it prints the same"
        return f"{code(check.command_text)}: {what}"
    source = f"{check.cases} made inputs" if check.inputs else "recorded calls"
    if check.accept:
        return (
            f"{code(check.function)} gives results that {code(check.accept)} accepts, and raises "
            f"and does the same to its arguments, for {source}"
        )
    return (
        f"{code(check.function)} gives and raises the same, and does the same to its arguments, "
        f"for {source}; floats within {check.rel_tol:g} of each other"
    )


def _describe_costs(evidence: WinnerEvidence) -> list[str]:
    """List memory and start-up of each benchmark."""
    lines = []
    for timing in evidence.measurement.timings:
        costs = []
        if timing.peak_rss_mb is not None:
            memory = timing.peak_rss_mb
            costs.append(f"memory {memory.base:.0f} MB before, {memory.candidate:.0f} MB with it")
        if timing.startup is not None:
            costs.append(f"start-up {timing.startup:.2f} times as long as before")
        if timing.outside is not None:
            costs.append(f"work outside of what is timed: {timing.outside:+.1%} of what is")
        if costs:
            lines.append(f"- {code(timing.benchmark)}: {'; '.join(costs)}")
    return ["## What else it costs", "", *lines] if lines else []


def _describe_doubts(evidence: WinnerEvidence) -> list[str]:
    judgement, measured, coverage = evidence.judgement, evidence.measurement, evidence.coverage
    doubts = []
    if judgement.basis in (Basis.TESTS, Basis.EXIT_STATUS):
        doubts.append(
            "No result was compared outside of the candidate's reach. Read the change, or add a "
            "check of a function or of a command's output."
        )
    assumed = dict.fromkeys(_read_note(evidence)[1])
    doubts += (f"The change assumes that {plain(assumption)}." for assumption in assumed)
    doubts.append("What no check tries may behave differently: other inputs, threads, platforms.")
    if coverage is None or coverage.missed or coverage.notes or coverage.share is None:
        doubts.append("Changed lines that no check runs are unproven.")
    doubts.append("Another machine, another Python or other inputs may give another ratio.")
    if not evidence.is_rechecked:
        doubts.append("Its checks were not made again with inputs that no candidate had seen.")
    if judgement.not_exercised:
        names = ", ".join(map(code, judgement.not_exercised))
        doubts.append(f"No check loaded {names}.")
    remarks = (*measured.vetoes, *judgement.notes, *measured.notes)
    doubts += map(plain, dict.fromkeys(remarks))
    doubts += (
        f"{code(timing.benchmark)}: {plain(note)}"
        for timing in measured.timings
        for note in dict.fromkeys(timing.notes)
    )
    return ["## What could still be wrong", "", *(f"- {doubt}" for doubt in doubts)]


def _describe_notes(evidence: WinnerEvidence) -> list[str]:
    notes = [f"- {plain(note)}" for note in evidence.notes]
    return ["## What else to know", "", *notes] if notes else []


def _describe_commands(evidence: WinnerEvidence) -> list[str]:
    problem, patch = map(word, (evidence.problem.file, evidence.patch_file))
    commands = (
        "# check and time it again, against the code without it",
        f"fairtrial evaluate {problem} {patch}",
        "# take it",
        f"git apply {patch}",
    )
    file, change = code(evidence.problem.file), code(evidence.patch_file)
    where = (
        f"In the folder of {file}, with {change} there. Neither they nor what {file} names (what "
        "makes inputs, for instance) are part of the change: they must be there already."
    )
    return ["## How to reproduce", "", where, "", *quote("\n".join(commands), "sh")]


def _ratio(estimate: Estimate) -> str:
    ratio, low, high = _figures(estimate)
    return f"{ratio} times as fast ({low} to {high})"


def _figures(estimate: Estimate) -> list[str]:
    """Return the ratio and its bounds, with as many digits as the interval supports."""
    return re.findall(r"[^\sx\[\],]+", estimate_text(estimate))
