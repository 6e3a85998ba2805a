"""`fairtrial list`: the studies below a folder."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from fairtrial.cli.output import count, json_option, note, print_json, print_wrapped, shown_path
from fairtrial.cli.run_summary import ENDED_WORDS
from fairtrial.cli.table import print_table
from fairtrial.study import report, spell_cost

COLUMNS = ("folder", "state", "runs", "cost", "verdicts", "tags")


@click.command(
    name="list",
    epilog="Example: fairtrial list artifacts --tag pilot",
    short_help="List studies: state, progress, cost, verdicts.",
)
@click.argument("folder", type=click.Path(path_type=Path), metavar="[FOLDER]", default=Path())
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Only studies with this tag.")
@click.option(
    "--verdicts",
    "judge",
    is_flag=True,
    help="Test the hypotheses of finished studies that were not reported yet, which takes longer.",
)
@json_option
def command(folder: Path, tags: tuple[str, ...], judge: bool, as_json: bool) -> None:
    """List the studies in FOLDER (by default here) and below it, with state, progress and cost.

    Verdicts are those of the last report, as long as no results came since.
    """
    studies = [
        study
        for study in report.list_studies(folder, judge=judge)
        if set(tags) <= set(study.tags) or study.error
    ]
    if as_json:
        print_json([study.to_dict() for study in studies])
        return
    readable = [study for study in studies if not study.error]
    if readable:
        rows = [_row(study) for study in readable]
        used = [i for i in range(len(COLUMNS)) if i < 3 or any(row[i] for row in rows)]
        columns = [COLUMNS[i] for i in used]
        print_table(columns, [[row[i] for i in used] for row in rows], total=len(rows))
    elif not studies:
        note(f"there are no studies in {folder.absolute()}")
    for study in studies:
        if study.error:
            print_wrapped(f"{_shown(study)}: can't be read: {study.error}", "", "  ")
    unknown = sum(bool(_is_untested(study)) for study in readable)
    if unknown and not judge:
        note(
            f"{count(unknown, 'finished study').replace('studys', 'studies')} without verdicts: "
            "`fairtrial list --verdicts` tests them"
        )


def _row(study: report.ListedStudy) -> list[str]:
    state = study.state
    if study.ended_how:
        state += f": {ENDED_WORDS.get(study.ended_how, study.ended_how)}"
    runs = f"{study.done:,}/{study.planned:,}"
    for number, what in ((study.failed, "failed"), (study.broken, "broken")):
        runs += f", {number:,} {what}" if number else ""
    cost = spell_cost(study.cost_usd) if study.cost_usd else ""
    if study.tokens and not cost:
        cost = count(study.tokens, "token")
    return [_shown(study), state, runs, cost, _verdict_text(study), ", ".join(study.tags)]


def _shown(study: report.ListedStudy) -> str:
    return shown_path(Path(study.folder).absolute())


def _verdict_text(study: report.ListedStudy) -> str:
    if study.verdicts is None:
        return "not reported" if _is_untested(study) else ""
    counts = Counter(verdict.verdict for verdict in study.verdicts)
    return ", ".join(f"{number:,} {verdict}" for verdict, number in counts.most_common())


def _is_untested(study: report.ListedStudy) -> bool:
    """Return whether a finished study has hypotheses without known verdicts."""
    is_finished = study.state in ("finished", "decided")
    return bool(study.hypotheses) and study.verdicts is None and is_finished
