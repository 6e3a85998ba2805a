"""The same seeds, replies and verdicts: however many slots, whoever comes first, the same tree."""

import pytest
from optimize_kit import ASKING, WORKING, OptimizeNursery, OptimizeSite

pytestmark = pytest.mark.skipif(not WORKING, reason="no full sandbox works here")

LINES = (*ASKING[:-1], "8", "--option", "most_at_once=8", "--max-candidates", "24")


@pytest.mark.slow
def test_slots_and_arrivals_change_no_decision(tmp_path):
    found = {}
    with OptimizeNursery() as nursery:
        for slots in (1, 2, 8):
            site = OptimizeSite(tmp_path / str(slots), nursery)
            more = ("--parallel-candidates", str(slots))
            outcome = site.finish(*more, asking=LINES, KIT_ORDER=f"order {slots}")
            assert "candidate `refine-0`" in outcome["explanation"]  # and not whose equal it is
            kept = {name: outcome[name] for name in outcome if name not in ("notes", "explanation")}
            found[slots] = (site.tree(), kept, site.calls())
            assert set(site.calls().values()) == {1}
            assert len(set(checked(site))) == len(checked(site)) < len(site.tree())
    assert found[1] == found[2] == found[8]
    tree, kept, _ = found[1]
    originals = {row[0]: row[7] for row in tree}
    assert kept["best"] == "0.1"
    # Of equals the first in the tree is the original, not the first that came.
    assert (originals["0.0"], originals["1.1"], originals["3.0"]) == ("", "0.0", "0.0")
    assert (originals["1.0"], originals["4.0"]) == ("", "1.0")
    assert (originals["6.0"], originals["1.2"], originals["3.1"]) == ("", "6.0", "6.0")
    assert (originals["0.1"], originals["6.1"]) == ("", "0.1")
    assert originals["7.0"] == originals["2.1"] == "base"


def checked(site):
    return [place for place in site.places() if place.startswith("checking ")]
