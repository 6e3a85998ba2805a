"""Random numbers: the same for the same seed, and the caller's own left alone."""

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from run_attempt_kit import assignment, do, run, study_of, work_for

from fairtrial.study import reproducible_seed
from fairtrial.study.runner.seeding import global_seeder, preserved_rng


def draw(task=None):
    numbers = [random.random() for _ in range(3)] + np.random.random(3).tolist()
    return {"numbers": numbers}


@given(st.integers(0, 2**64))
def test_the_same_seed_gives_the_same_numbers_and_gives_the_callers_back(seed):
    random.seed(1)
    np.random.seed(1)
    expected = draw()
    random.seed(1)
    np.random.seed(1)
    with reproducible_seed(seed):
        first = draw()
    with reproducible_seed(seed):
        assert draw() == first
    assert draw() == expected


def test_the_callers_numbers_are_given_back_after_an_error_too():
    state, numpy_state = random.getstate(), np.random.get_state()[1].tolist()

    @preserved_rng()
    def stumble():
        draw()
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        stumble()
    assert random.getstate() == state
    assert np.random.get_state()[1].tolist() == numpy_state


def test_each_run_seeds_random_and_numpy_with_its_own_seed():
    random.seed(5)
    work = work_for(draw)
    first, second = do(work), do(work)
    assert first.body["outputs"] == second.body["outputs"]
    with reproducible_seed(assignment().spec.seed):
        assert first.body["outputs"] == draw()
    study = study_of(run_budget={"replicates": 2})
    assert do(work, assignment(study, execution_index=1)).body["outputs"] != first.body["outputs"]


def test_the_evaluator_is_seeded_with_its_run():
    judge = {"evaluator": lambda output: random.random()}
    first, second = (run(lambda task: {}, judge).body["evaluations"] for _ in range(2))
    assert first == second


def test_without_global_seeding_no_generator_is_changed():
    state, numpy_state = random.getstate(), np.random.get_state()[1].tolist()
    run(lambda task: {"own": task.rng.random()}, seed_globals=False)
    assert random.getstate() == state
    assert np.random.get_state()[1].tolist() == numpy_state


def test_a_fresh_process_draws_the_same_numbers():
    """Also when the agent is the first to import numpy there: we have done so before."""
    code = """
import sys
sys.path.insert(0, sys.argv[1])
from run_attempt_kit import do, work_for
def draw(task):
    import random, numpy
    numbers = [random.random() for _ in range(3)] + numpy.random.random(3).tolist()
    return {"numbers": numbers}
print(do(work_for(draw)).body["outputs"]["numbers"])
"""
    here = str(Path(__file__).parents[2] / "kits")
    process = subprocess.run(
        [sys.executable, "-c", code, here], capture_output=True, text=True, check=True
    )
    assert process.stdout.strip() == str(run(draw).body["outputs"]["numbers"])


def test_a_seed_leaves_nothing_of_the_numbers_before_it():
    """`gauss` draws two numbers at once and keeps one for later: not for another run."""
    seed = global_seeder()
    with preserved_rng():
        random.seed(7)
        fresh = [random.gauss(0, 1) for _ in range(3)]
        random.seed(1)
        random.gauss(0, 1)
        seed(7)
        assert [random.gauss(0, 1) for _ in range(3)] == fresh
