"""The winner in words: Markdown that can stand in a pull request.

Names, lines of code and what a proposer says come from others: they are quoted as code, where
neither links nor mentions nor tags mean anything.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fairtrial.arena.delivery.coverage import Coverage
from fairtrial.arena.delivery.edits import Edit, Edits
from fairtrial.arena.delivery.evidence import tell_coverage, tell_profile
from fairtrial.arena.delivery.markdown_quoting import (
    ASSUMES,
    cells,
    code,
    plain,
    quote,
    spell_command,
    spell_time,
    word,
)
from fairtrial.arena.delivery.profile import Profile
from fairtrial.arena.model.judgements import Judgement
from fairtrial.arena.model.problem import Check, CodeProblem
from fairtrial.arena.model.timings import Estimate, Measurement, Timing
from fairtrial.arena.model.verdicts import Basis
from fairtrial.arena.timing.stats.ratio_text import estimate_text, ratio_text

MOST_FILES = 50
OWN_RULES = "codemod"
"""The proposer whose words are ours: it says what its rules take for granted."""
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
class Finding:
    """All that is told of a winner.

    problem: what it was looked for in
    name: what it is called
    edits: its change
    judgement: what its checks said
    measurement: what the clock said in the end: only this is told
    note: what its proposer says of it
    origin: who proposed it
    is_rechecked: whether its checks were done again by themselves, with other inputs
    coverage: how much of the change the checks run; None if nobody looked
    profile: where the time goes; None if nobody looked
    notes: what else people should know
    patch_file: what to call the patch in commands
    """

    problem: CodeProblem
    name: str
    edits: Edits
    judgement: Judgement
    measurement: Measurement
    note: str = ""
    origin: str = ""
    is_rechecked: bool = False
    coverage: Coverage | None = None
    profile: Profile | None = None
    notes: tuple[str, ...] = ()
    patch_file: str = "best.patch"


def explain(finding: Finding) -> str:
    """What changed, what it gains, what that rests on, what could still be wrong."""
    sections = [
        [f"# {_title(finding)}"],
        _tell_change(finding),
        _tell_speed(finding),
        _tell_checks(finding),
        _tell_costs(finding),
        tell_profile(finding.profile),
        _tell_doubts(finding),
        _tell_notes(finding),
        _tell_commands(finding),
    ]
    return "\n\n".join("\n".join(lines) for lines in sections if lines) + "\n"


def _title(finding: Finding) -> str:
    estimate = finding.measurement.estimate
    what = code(finding.problem.problem_id)
    return f"{what}: {_figures(estimate)[0]} times as fast" if estimate else f"{what}: a candidate"


def _tell_change(finding: Finding) -> list[str]:
    lines = ["## What changes", ""]
    counts = finding.edits.count_lines()
    for path, (added, removed) in list(counts.items())[:MOST_FILES]:
        lines.append(f"- {code(path)} ({_tell_size(finding.edits.files[path], added, removed)})")
    if len(counts) > MOST_FILES:
        lines.append(f"- and {len(counts) - MOST_FILES} files more")
    by = f" by {code(finding.origin)}" if finding.origin else ""
    lines += ["", f"The candidate {code(finding.name)} was proposed{by}."]
    note, _ = _read_note(finding)
    if note:
        said = "What its proposer says of it; nobody has checked these words:"
        if finding.origin == OWN_RULES:
            said = "What its rules did, one after the other; lines are those that each of them met:"
        lines += [said, "", *quote(note[:LONGEST_NOTE])]
    return lines


def _read_note(finding: Finding) -> tuple[str, list[str]]:
    """What a proposer says, and apart from that what our own rules take for granted."""
    if finding.origin != OWN_RULES:
        return finding.note.strip(), []
    lines = finding.note.strip().splitlines()
    kept = [line for line in lines if not line.startswith(ASSUMES)]
    return "\n".join(kept), [line.removeprefix(ASSUMES) for line in lines if line not in kept]


def _tell_size(edit: Edit, added: int, removed: int) -> str:
    what = "new, " if edit.before is None else "removed, " if edit.after is None else ""
    return what + (f"+{added} -{removed}" if added or removed else "not by lines")


def _tell_speed(finding: Finding) -> list[str]:
    measured, problem = finding.measurement, finding.problem
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
    if measured.timings:
        head = "| benchmark | times as fast | interval | verdict | by CPU time | unchanged takes |"
        lines += ["", head, "|---|---|---|---|---|---|"]
        lines += map(_row, measured.timings)
    return lines


def _row(timing: Timing) -> str:
    return cells(
        code(timing.benchmark),
        *_row_figures(timing.estimate),
        timing.verdict.value,
        ratio_text(timing.cpu_ratio).rstrip("x") if timing.cpu_ratio else "not known",
        spell_time(timing.base_s),
    )


def _row_figures(estimate: Estimate | None) -> tuple[str, str]:
    if estimate is None:
        return "not known", ""
    ratio, low, high = _figures(estimate)
    return ratio, f"{low} to {high}"


def _tell_checks(finding: Finding) -> list[str]:
    basis = finding.judgement.basis
    lines = ["## What the verdict rests on", ""]
    lines.append(f"**{basis.value.capitalize()}**: {_RESTS_ON[basis]}. These checks hold:")
    lines += ["", *(f"- {_tell_check(check)}" for check in finding.problem.check)]
    if finding.is_rechecked:
        lines += [
            "",
            "All of them were made again at the end, for this candidate alone, and functions with "
            "inputs that no candidate had seen.",
        ]
    return [*lines, "", *tell_coverage(finding.coverage, finding.edits)]


def _tell_check(check: Check) -> str:
    if not check.function:
        what = "every test that passed before passes" if check.is_pytest else "it succeeds"
        if check.compare == "output":
            what = "it prints the same"
        return f"{code(spell_command(check.command))}: {what}"
    source = f"{check.cases} made inputs" if check.inputs else "recorded calls"
    return (
        f"{code(check.function)} gives and raises the same, and does the same to its arguments, "
        f"for {source}; floats within {check.rel_tol:g} of each other"
    )


def _tell_costs(finding: Finding) -> list[str]:
    """Memory and start-up, benchmark by benchmark."""
    lines = []
    for timing in finding.measurement.timings:
        told = []
        if timing.peak_rss_mb is not None:
            memory = timing.peak_rss_mb
            told.append(f"memory {memory.base:.0f} MB before, {memory.candidate:.0f} MB with it")
        if timing.startup is not None:
            told.append(f"start-up {timing.startup:.2f} times as long as before")
        if timing.outside is not None:
            told.append(f"work outside of what is timed: {timing.outside:+.1%} of what is")
        if told:
            lines.append(f"- {code(timing.benchmark)}: {'; '.join(told)}")
    return ["## What else it costs", "", *lines] if lines else []


def _tell_doubts(finding: Finding) -> list[str]:
    judgement, measured, found = finding.judgement, finding.measurement, finding.coverage
    doubts = []
    if judgement.basis in (Basis.TESTS, Basis.EXIT_STATUS):
        doubts.append(
            "No result was compared outside of the candidate's reach. Read the change, or add a "
            "check of a function or of a command's output."
        )
    assumed = dict.fromkeys(_read_note(finding)[1])
    doubts += (f"The change takes for granted that {plain(each)}." for each in assumed)
    doubts.append("What no check tries may behave differently: other inputs, threads, platforms.")
    if found is None or found.missed or found.notes or found.share is None:
        doubts.append("Changed lines that no check runs are unproven.")
    doubts.append("Another machine, another Python or other inputs may give another ratio.")
    if not finding.is_rechecked:
        doubts.append("Its checks were not made again with inputs that no candidate had seen.")
    if judgement.not_exercised:
        names = ", ".join(map(code, judgement.not_exercised))
        doubts.append(f"No check loaded {names}.")
    told = (*measured.vetoes, *judgement.notes, *measured.notes)
    doubts += map(plain, dict.fromkeys(told))
    doubts += (
        f"{code(timing.benchmark)}: {plain(note)}"
        for timing in measured.timings
        for note in dict.fromkeys(timing.notes)
    )
    return ["## What could still be wrong", "", *(f"- {doubt}" for doubt in doubts)]


def _tell_notes(finding: Finding) -> list[str]:
    notes = [f"- {plain(note)}" for note in finding.notes]
    return ["## What else to know", "", *notes] if notes else []


def _tell_commands(finding: Finding) -> list[str]:
    problem, patch = map(word, (finding.problem.file, finding.patch_file))
    commands = (
        "# check and time it again, against the code without it",
        f"fairtrial evaluate {problem} {patch}",
        "# take it",
        f"git apply {patch}",
    )
    file, change = code(finding.problem.file), code(finding.patch_file)
    where = (
        f"In the folder of {file}, with {change} there. Neither they nor what {file} names (what "
        "makes inputs, for instance) are part of the change: they must be there already."
    )
    return ["## How to reproduce", "", where, "", *quote("\n".join(commands), "sh")]


def _ratio(estimate: Estimate) -> str:
    ratio, low, high = _figures(estimate)
    return f"{ratio} times as fast ({low} to {high})"


def _figures(estimate: Estimate) -> list[str]:
    """The ratio and its bounds, with as many digits as the interval supports."""
    return re.findall(r"[^\sx\[\],]+", estimate_text(estimate))
