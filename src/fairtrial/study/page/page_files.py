"""Writing the page of the study in a folder."""

from __future__ import annotations

from pathlib import Path

from fairtrial.core import atomic_write
from fairtrial.study.ledger.interim_looks import record_interim_look
from fairtrial.study.page.document import render_page
from fairtrial.study.page.page_data import collect_page
from fairtrial.study.tables.results import open_results


def write_page(folder: Path, target: Path) -> None:
    """Test the hypotheses of the study in a folder, and write its page to a file.

    Of an unfinished study this is an interim look, and is recorded as one. Raises `LedgerError` if
    the folder has no results, and `StudyError` if the file can't be written.
    """
    with open_results(folder) as results:
        text = render_page(collect_page(results))
        with atomic_write(target) as file:
            file.write(text)
        record_interim_look(folder, results.study, results.reader.summary())
