"""kill -9 during an optimization, and the same command again: the same decisions, paid for once.

The instants are places in the code, not times (`optimize_kit.mark_places`). One optimization dies
several times, each time further on, before it may finish. Three lineages are under way at once, and
nobody knows how far the others are when it dies: so an instant has to come after the one before it,
whatever the others do. Those of one lineage do; and the proposer is asked for one answer at a time,
in the order of lineages. Of 0.0 and 1.1, which are equal, the first that comes is judged, and where
the answers are known already that may be either: neither is an instant.
"""

import signal

import pytest
from optimize_kit import NOTHING, WORKING, OptimizeNursery, OptimizeSite

from fairtrial.cli.optimize import KEPT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WORKING, reason="no full sandbox works here"),
]

CHAINS = {
    "opening, asking and mending": [
        "say taking a snapshot of the tree",
        "say running the checks on the unchanged base",
        "say making sure that it is the candidates' code that runs",
        "before setting",
        "asking initial/0",
        "committed reply initial/0",
        "before reply initial/1",
        "entered 1.0",
        "before verdict initial-1",
        "committed verdict initial-1",
        "committed reply repair/1",
    ],
    "judging and handing over": [
        "checking 2.0",
        "waiting 2.0",
        "timing /2.0",
        "committed verdict initial-2",
        "timing final/0.1",
        "rechecking",
        "profile",
        "tables written",
        "patch",
    ],
}
CUT_OFF = {"asking initial/0": "initial/0", "before reply initial/1": "initial/1"}
"""Where an answer was there and nobody had written it down: that one has to be asked for again."""
EXPLAINED = "explanation"
assert sum(map(len, CHAINS.values())) == 20


@pytest.fixture(scope="module")
def nursery():
    with OptimizeNursery() as nursery:
        yield nursery


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, nursery):
    """What comes of it if nothing happens."""
    site = OptimizeSite(tmp_path_factory.mktemp("undisturbed"), nursery)
    return site, site.finish()


def die(site, instant, *options, **more):
    """Let it die there; nothing of it runs on, or holds a lock."""
    with site.optimize("--json", *options, instant=instant, **more) as running:
        assert running.end() == -signal.SIGKILL, f"{instant} never came: {running.err}"
        running.await_nobody()
        assert site.locked() == []
        return running


def assert_nothing_left(site, died):
    """What a dead one left behind, the next one took away."""
    assert site.files() == []
    assert site.locked() == []
    assert [group for each in died for group in each.groups()] == []


def told(outcome):
    """All that it says of itself but for what is drawn, timed or profiled anew each time."""
    kept = {name: outcome[name] for name in outcome if name not in ("is_new", "notes", EXPLAINED)}
    if "adequacy" in kept:
        kept["adequacy"] = {**kept["adequacy"], "seconds": None}
    return kept


def read_result(site, name):
    return (site.folder / "out" / name).read_text()


@pytest.mark.parametrize("chain", CHAINS)
def test_a_killed_optimization_continues_where_it_stopped(tmp_path, nursery, undisturbed, chain):
    site, instants = OptimizeSite(tmp_path, nursery), CHAINS[chain]
    first, expected = undisturbed
    died = [die(site, instant) for instant in instants]
    outcome = site.finish()
    assert site.tree() == first.tree()
    assert outcome["is_new"] == ("patch" not in instants)  # else it was done before it died
    assert told(outcome) == told(expected)
    assert read_result(site, "best.patch") == expected["patch"]
    assert read_result(site, "best.md") == outcome[EXPLAINED]
    assert_nothing_is_paid_twice(site, first, instants)
    assert_verdicts_are_final(site.places())
    assert_nothing_left(site, died)


def assert_nothing_is_paid_twice(site, first, instants):
    """What was committed is not asked for again; one answer at most was lost at each instant."""
    committed = set()
    for place in site.places():
        what, _, name = place.rpartition(" ")
        if what == "committed reply":
            assert name not in committed
            committed.add(name)
        assert not (what == "asking" and name in committed), place
    again = site.calls() - first.calls()
    assert again.keys() >= {CUT_OFF[each] for each in instants if each in CUT_OFF}
    assert again.total() <= len(instants)
    assert committed == first.calls().keys() == site.calls().keys()


def assert_verdicts_are_final(places):
    """What was committed is neither checked nor timed again; the winner is, by itself."""
    ids = {"initial-0": "0.0", "initial-1": "1.0", "initial-2": "2.0"}
    ids |= {"refine-0": "0.1", "refine-1": "1.2"}
    committed = set()
    for place in places:
        what, _, name = place.replace("1.1", "0.0").partition(" ")  # they are equal
        if place.startswith("committed verdict "):
            committed.add(ids[place.split()[-1].replace("repair-1", "initial-0")])
        assert not (what in ("checking", "waiting") and name in committed), place
        assert not (what == "timing" and name.removeprefix("/") in committed), place
    assert committed == set(ids.values())


def test_an_undisturbed_optimization_passes_all_instants(undisturbed):
    site, outcome = undisturbed
    assert {place for chain in CHAINS.values() for place in chain} <= set(site.places())
    assert set(site.calls().values()) == {1}
    assert outcome["cost_usd"] == pytest.approx(0.01 * site.calls().total())
    assert outcome["best"] == "0.1"


def test_with_real_sessions(tmp_path, nursery):
    # There is no end to how long a session may take on a busy machine.
    site = OptimizeSite(tmp_path, nursery, {"budget_s": 600})
    few = ("--lineages", "1", "--max-candidates", "1")
    instants = ("calibrating", "session 1 of /0.0", "session 0 of final/0.0")
    died = [die(site, instant, *few, timer="real") for instant in instants]
    outcome = site.finish(*few, timer="real")
    assert (outcome["best"], outcome["candidates"]) == ("0.0", 1)
    assert site.calls() == {"initial/0": 1}
    assert site.places().count("committed verdict initial-0") == 1
    # Cut off, both were timed from the start.
    assert site.places().count("session 0 of /0.0") == 2
    assert site.places().count("session 0 of final/0.0") == 2
    assert_nothing_left(site, died)


def test_an_interrupted_optimization_cleans_up_and_can_continue(tmp_path, nursery, undisturbed):
    site, instant = OptimizeSite(tmp_path, nursery), "timing /2.0"
    with site.optimize(instant=instant, KIT_SIGNAL="SIGINT") as running:
        assert running.end() == 130, running.err
        running.await_nobody()
        assert running.err.endswith(f"interrupted; {KEPT}\n")
        assert_nothing_left(site, [running])
    assert "committed verdict initial-2" not in site.places()
    outcome = site.finish(
        "--parallel-candidates", "1"
    )  # which takes nothing away from what is known
    assert (outcome["best"], outcome["is_new"]) == ("0.1", True)
    assert_nothing_is_paid_twice(site, undisturbed[0], [instant])
    assert site.files() == []


def test_a_cancelled_one_ends_though_its_proposer_does_not_answer(tmp_path, nursery):
    site = OptimizeSite(tmp_path, nursery)
    (tmp_path / "cancel").touch()
    with site.optimize(asking=NOTHING) as running:
        assert running.end() == 130, running.err
        running.await_nobody()
        assert running.err.endswith(f"interrupted; {KEPT}\n")
        assert_nothing_left(site, [running])
