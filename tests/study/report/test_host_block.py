"""The host as a block: times of different machines are never compared."""

import numpy as np
import pytest

from fairtrial.study.report.host_block import _estimate, _refuse_unlinked
from fairtrial.study.stats.finding import UntestableError


class Table:
    hosts = {"fast": 0, "slow": 1}  # noqa: RUF012


def test_what_a_machine_adds_is_removed_although_groups_share_it_unevenly():
    rng = np.random.default_rng(1)
    group, host = rng.integers(0, 2, 400), np.zeros(400, dtype=int)
    host = (rng.random(400) < np.where(group, 0.8, 0.3)).astype(int)
    values = 1.0 * group + 5.0 * host + rng.normal(0, 0.1, 400)
    adjusted = values - _estimate(values, host, [group])
    raw = values[group == 1].mean() - values[group == 0].mean()
    blocked = adjusted[group == 1].mean() - adjusted[group == 0].mean()
    assert raw > 2
    assert blocked == pytest.approx(1.0, abs=0.05)


def test_groups_that_share_no_machine_are_not_compared():
    with pytest.raises(UntestableError, match="ran on different machines"):
        _refuse_unlinked(Table, np.array([0, 0, 1, 1]), np.array([0, 0, 1, 1]))
    _refuse_unlinked(Table, np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1]))
