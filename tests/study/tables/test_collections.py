"""Writing tables changes nothing about the garbage collector of the program around it."""

import gc

import pytest

from fairtrial.study.tables import export


@pytest.mark.parametrize("thresholds", [(700, 10, 10), (0, 10, 10), (500_000, 5, 7)])
def test_the_collector_is_as_before_once_tables_are_written(thresholds):
    before = gc.get_threshold()
    gc.set_threshold(*thresholds)
    try:
        with export.rare_collections():
            now = gc.get_threshold()[0]
        assert now == (max(thresholds[0], export.RARELY) if thresholds[0] else 0)
        assert gc.get_threshold() == thresholds
    finally:
        gc.set_threshold(*before)
