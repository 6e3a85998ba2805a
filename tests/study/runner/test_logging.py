"""What happens is logged by the standard module; nothing is shown unless somebody asks."""

import logging
import subprocess
import sys

from run_kit import make_study, run


def test_runs_and_sessions_are_logged(tmp_path, caplog):
    with caplog.at_level(logging.DEBUG, logger="fairtrial"):
        run(make_study(tmp_path, (1, 2), 1))
    text = "\n".join(record.getMessage() for record in caplog.records)
    assert "study s: 0 of 2 runs done; serial, 1 at once" in text
    assert text.count("(a on p): success in") == 2
    assert "the session ended: done" in text
    assert {record.name.partition(".")[0] for record in caplog.records} == {"fairtrial"}


def test_the_library_installs_no_handlers():
    code = (
        "import logging; from fairtrial import run_study, open_results, compare_candidates\n"
        "print(logging.getLogger('fairtrial').handlers, logging.getLogger().handlers)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[] []"
