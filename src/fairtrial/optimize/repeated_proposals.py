"""Detection of replicates whose optimizers made the same proposals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from fairtrial.optimize.candidates_table import COLUMNS, candidate_rows
from fairtrial.study import RunResult

_DIGEST = tuple(COLUMNS).index("digest")


class RepeatedProposals:
    """Counts the groups of replicates in which all runs had the same candidates."""

    def __init__(self) -> None:
        self._first: dict[Hashable, int] = {}
        self._runs: Counter[Hashable] = Counter()
        self._differing: set[Hashable] = set()

    def add(self, group: Hashable, result: RunResult) -> None:
        """Read one run; `group`: condition, agent and problem, which its replicates share."""
        digests = [row[_DIGEST] for row in candidate_rows(result)]
        if not digests:
            return
        # Sorted, since the order of arrival depends on the machine. Without a digest two candidates
        # may differ.
        proposals = hash(tuple(sorted(digests))) if all(digests) else None
        self._runs[group] += 1
        if proposals is None or self._first.setdefault(group, proposals) != proposals:
            self._differing.add(group)

    @property
    def replicated(self) -> int:
        """The number of groups in which several runs had candidates."""
        return sum(runs > 1 for runs in self._runs.values())

    @property
    def copied(self) -> int:
        """The number of those in which all runs had the same candidates."""
        return sum(runs > 1 and group not in self._differing for group, runs in self._runs.items())

    def remark(self) -> str:
        """Return a remark for the report; empty if no replicates are copies."""
        if not self.copied:
            return ""
        every = self.copied == self.replicated
        part = (
            f"in {self.copied:,} of {self.replicated:,} groups (of one condition, agent, problem)"
        )
        return (
            f"Replicates are copies as far as proposals go: {'everywhere' if every else part} all "
            "runs had the same candidates. For what is proposed n is 1 there, and what these runs "
            "differ in is the noise of timing; other problems would say more than other replicates."
        )
