"""The host as a block: times of different machines are never compared.

If the runs of a comparison were on several machines, an outcome that is a time gets the differences
between machines removed, as estimated by least squares from what ran on more than one of them. If
machines and groups can't be told apart, the comparison is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairtrial.study.report.run_table import HOST, RunTable
from fairtrial.study.stats.finding import UntestableError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairtrial.study.stats.finding import Codes, Values

MOST_ROUNDS = 500
TOLERANCE = 1e-10
MAX_SHOWN = 3


def block_by_host(
    table: RunTable, outcome: str, values: Values, member: NDArray[np.bool_], group: Codes
) -> tuple[Values, tuple[str, ...]]:
    """Return values without the differences between machines, and notes about that.

    Raises `UntestableError` if no machine links the groups that are compared.

    values: of all runs of the table; NaN where a run has none
    member, group: which runs are compared, and the group of each
    """
    import numpy as np

    counted = member & ~np.isnan(values)
    hosts = table.column(HOST)[counted]
    if not table.readers[outcome].is_of_machine or len(np.unique(hosts)) < 2:
        return values, ()
    _refuse_unlinked(table, hosts, group[counted])
    cells = table.column("condition") * len(table.agents) + table.column("agent")
    effects = _estimate(values[counted], hosts, [cells[counted], table.column("problem")[counted]])
    adjusted = values.copy()
    adjusted[counted] -= effects
    count = len(np.unique(hosts))
    return adjusted, (f"times of {count} machines: the machine is a block",)


def _refuse_unlinked(table: RunTable, hosts: Codes, group: Codes) -> None:
    """Raise `UntestableError` if groups fall into sets that share no machine."""
    import numpy as np

    pairs = np.unique(np.stack([group, hosts]), axis=1)
    sets: list[tuple[set[int], set[int]]] = []
    for number, host in pairs.T.tolist():
        linked = [part for part in sets if number in part[0] or host in part[1]]
        joined = ({number}, {host})
        for part in linked:
            joined = (joined[0] | part[0], joined[1] | part[1])
            sets.remove(part)
        sets.append(joined)
    if len(sets) > 1:
        names = list(table.hosts)
        places = [
            ", ".join(str(names[host]) for host in sorted(part[1])[:MAX_SHOWN]) for part in sets
        ]
        raise UntestableError(
            f"the groups ran on different machines ({' / '.join(places[:MAX_SHOWN])}), whose times "
            "can't be compared; let all groups run on all machines"
        )


def _estimate(values: Values, hosts: Codes, others: list[Codes]) -> Values:
    """Return the effect of each run's machine, in an additive model with other variables.

    Backfitting: each variable in turn takes the mean of what the others leave.
    """
    import numpy as np

    columns = [np.unique(codes, return_inverse=True)[1] for codes in (hosts, *others)]
    counts = [np.bincount(codes) for codes in columns]
    fits = [np.zeros(len(count)) for count in counts]
    mean = values.mean()
    scale = np.abs(values - mean).max() or 1.0
    for _ in range(MOST_ROUNDS):
        largest = 0.0
        for index, codes in enumerate(columns):
            rest = (
                values
                - mean
                - sum(
                    fit[other]
                    for place, (fit, other) in enumerate(zip(fits, columns, strict=True))
                    if place != index
                )
            )
            fit = np.bincount(codes, rest) / counts[index]
            largest = max(largest, float(np.abs(fit - fits[index]).max()))
            fits[index] = fit
        if largest <= TOLERANCE * scale:
            break
    effects = fits[0][columns[0]]
    centered: Values = effects - effects.mean()
    return centered
