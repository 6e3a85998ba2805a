"""Whatever happens to an evaluation, nothing of it is left, and nobody is blamed for it (7-9, 17)."""

import os
import random
import signal
import time

import pytest
from fault_kit import WORKING, Site
from trees import fingerprint

COUNT = int(os.environ.get("FAIRTRIAL_FAULTS", "24"))


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def has_pool(*parts):
    return lambda run: (pool := run.pool()) is not None and pool.joinpath(*parts).exists()


STAGES = {
    "start": lambda run: True,
    "snapshot": has_pool(),
    "checkout": has_pool("base"),
    "slots": has_pool("1"),
    "base": lambda run: "running the checks" in run.err,
    "input makers": lambda run: run.find("maker.py"),
    "base at work": lambda run: run.find("worker.py"),
    "warm start": lambda run: run.find("warm.py"),
    "canary": lambda run: "making sure" in run.err,
    "candidates": lambda run: run.begun(),
    "end": lambda run: run.begun() and (run.let_go() or True),
}
HOW = [(each, to_group) for to_group in (False, True) for each in ("SIGINT", "SIGTERM", "SIGKILL")]


def choose_instants(count):
    """Every stage with every signal in turn, each a little later than it begins."""
    rng = random.Random(4)
    pairs = [(stage, *how) for stage in STAGES for how in HOW]
    rng.shuffle(pairs)
    for number in range(count):
        delay_s = rng.choice([0.0, rng.uniform(0, 0.05), rng.uniform(0, 0.3)])
        sandbox = rng.choice([*WORKING, *WORKING, "plain"])
        yield *pairs[number % len(pairs)], delay_s, sandbox


@pytest.mark.parametrize(
    ("stage", "name", "to_group", "delay_s", "sandbox"), [*choose_instants(COUNT)]
)
def test_nothing_is_left_after(site, stage, name, to_group, delay_s, sandbox):
    before = fingerprint(site.top)
    if sandbox == "plain" and stage == "warm start":
        sandbox = WORKING[0]
    with site.evaluate("right", "waits", sandbox=sandbox) as run:
        run.await_true(STAGES[stage])
        time.sleep(delay_s)
        run.send(getattr(signal, name), to_group=to_group)
        code = run.end()
        assert site.locked() == []
        run.await_nobody()
        if name == "SIGKILL":
            assert code == -signal.SIGKILL
            with site.start(["clean"]) as clean:
                assert clean.end() == 0
        else:
            assert code in allowed(stage, name), run.err
    assert site.files() == []
    assert run.groups() == []
    assert fingerprint(site.top) == before


def allowed(stage, name):
    if stage == "start":
        return {130, -getattr(signal, name)}
    return {130, 0, -getattr(signal, name)} if stage == "end" else {130}
