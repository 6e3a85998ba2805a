"""Call the user's functions with results as they are committed."""

from __future__ import annotations

from collections.abc import Callable

from fairtrial.study.ledger.reader import LedgerReader
from fairtrial.study.model.runs import RunResult, RunStatus
from fairtrial.study.runner.progress import Progress
from fairtrial.study.runner.run_settings import EARLY_RESULT_COUNT, RunSettings


def make_result_callback(
    reader: LedgerReader, settings: RunSettings, progress: Progress
) -> Callable[[int], None] | None:
    """Return a function of the execution index that calls `on_result` and `check_early_results`."""
    on_result, check_early_results = settings.on_result, settings.check_early_results
    if on_result is None and check_early_results is None:
        return None
    early: list[RunResult] = []

    def on_committed(execution_index: int) -> None:
        is_early = check_early_results is not None and len(early) < EARLY_RESULT_COUNT
        if on_result is None and not is_early:
            return
        result = reader.result(reader.order[execution_index])
        assert result is not None
        if on_result is not None:
            on_result(result)
        if is_early and result.status is RunStatus.SUCCESS:
            early.append(result)
            if len(early) == EARLY_RESULT_COUNT and check_early_results is not None:
                messages = check_early_results(early)
                if messages:
                    with progress.hidden_bar():
                        for message in messages:
                            settings.notify(message)

    return on_committed
