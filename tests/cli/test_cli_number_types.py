"""Invalid numbers are refused with the name of the option."""

import contextlib
import io

import click
import pytest

from fairtrial.cli.main import main
from fairtrial.cli.optimize import command

NUMERIC = [
    option
    for option in command.params
    if isinstance(option, click.Option)
    and isinstance(option.type, (type(click.INT), type(click.FLOAT)))
]
FLAGS = [option.opts[0] for option in NUMERIC]
AT_LEAST = {option.opts[0]: getattr(option.type, "min", None) for option in NUMERIC}


def refuse(flag, value):
    """Return the error of `fairtrial optimize` for these arguments."""
    err = io.StringIO()
    with contextlib.redirect_stderr(err), pytest.raises(SystemExit) as stop:
        main(["optimize", "nowhere.yaml", flag, value])
    assert stop.value.code == 2
    return err.getvalue().splitlines()[-1]


def test_these_are_all_numeric_flags():
    assert set(FLAGS) == {
        "--parallel-candidates",
        "--max-candidates",
        "--lineages",
        "--max-cost",
        "--max-seconds",
        "--max-tokens",
        "--repairs",
        "--refinements",
        "--batch-refine",
        "--patience",
        "--seed",
        "--hottest",
    }
    # Nothing may cost nothing, and there may be no repairs; a seed may be any whole number.
    unbounded = {"--max-cost", "--repairs", "--refinements", "--seed"}
    assert {flag for flag in FLAGS if not AT_LEAST[flag]} == unbounded


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999", "many"])
def test_what_is_no_finite_number_is_refused_by_its_flag(flag, value):
    assert refuse(flag, value).startswith(f"Error: Invalid value for '{flag}': ")


@pytest.mark.parametrize("flag", [flag for flag in FLAGS if flag != "--seed"])
def test_what_is_too_small_is_refused_by_its_flag(flag):
    message = refuse(flag, str(AT_LEAST[flag] - 1))
    assert message.startswith(f"Error: Invalid value for '{flag}': ")
    assert "is not in the range" in message
