"""Notice that the first runs of an agent all fail in the same way: the rest would, too."""

from __future__ import annotations

import re

from fairtrial.study.ledger.packing import unpack
from fairtrial.study.model.runs import FailureKind, Outcome, RunSpec, RunStatus

FIRST_RUNS = 10
MAX_SHOWN = 200
_VARYING = re.compile(r"0x[0-9a-f]+|(?:/[\w.\-~]+){2,}|\b[0-9a-f]{8,}\b|\d+(?:\.\d+)?", re.I)
"""Parts of messages that differ between equal failures: addresses, paths, ids, numbers."""


class FailureWatch:
    """Watches the first runs of each agent in one session."""

    def __init__(self) -> None:
        self._counts: dict[str | None, int] = {}
        self._kinds: dict[str | None, tuple[FailureKind, str]] = {}

    def add(self, spec: RunSpec, outcome: Outcome) -> str:
        """Add a finished run; returns what is wrong if it settles the matter, else an empty text.

        An agent with one run that ends in another way is watched no more.
        """
        agent = spec.agent_spec_ref
        count = self._counts.get(agent, 0)
        if count < 0:
            return ""
        if outcome.failure_kind is None or outcome.status is RunStatus.SUCCESS:
            self._counts[agent] = -1
            return ""
        message = str(unpack(outcome.body).get("error_info") or "").partition("\n")[0]
        kind = outcome.failure_kind, normalize(message)
        if self._kinds.setdefault(agent, kind) != kind:
            self._counts[agent] = -1
            return ""
        self._counts[agent] = count + 1
        if count + 1 < FIRST_RUNS:
            return ""
        whose = f"of '{agent}'" if agent is not None else "of the study"
        verb = "broke" if outcome.status is RunStatus.BROKEN else "failed"
        shown = message if len(message) <= MAX_SHOWN else f"{message[: MAX_SHOWN - 1]}…"
        return (
            f"the first {FIRST_RUNS} runs {whose} in this session all {verb} in the same way "
            f"({outcome.failure_kind}: {shown})"
        )


def normalize(message: str) -> str:
    """Return a message without what differs between equal failures."""
    return _VARYING.sub("#", message)
