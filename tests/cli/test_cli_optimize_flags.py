"""Flags of `fairtrial optimize`: every option of the optimizer has one, and it is read back."""

from pathlib import Path

import pytest

from fairtrial.cli.optimize import command
from fairtrial.cli.optimize_study import get_options, make_study, spell_flags
from fairtrial.core import plugins
from fairtrial.optimize import Optimizer

GIVEN = ["--repairs", "0", "--refinements", "5", "--batch-refine", "3", "--patience", "2"]


def read(*words):
    context = command.make_context("optimize", ["p.yaml", *words])
    names = ("problem", "seed", "output", "branch", "applies", "as_json")
    return get_options({k: v for k, v in context.params.items() if k not in names})


@pytest.mark.parametrize("tokens", [[], ["--max-tokens", "9000"]])
def test_options_of_the_loop_are_read_and_spelled_again(tokens):
    options = read(*GIVEN, *tokens)
    optimizer = Optimizer(**options)
    assert (optimizer.repairs, optimizer.refinements) == (0, 5)
    assert (optimizer.batch_refine, optimizer.patience) == (3, 2)
    assert optimizer.max_tokens == (9000 if tokens else None)
    again = read(*spell_flags(make_study(Path("p.yaml"), "p", options, 0)))
    assert again == options


def test_options_that_are_not_given_stay_out_so_that_earlier_folders_fit():
    later = {"audit", "repairs", "refinements", "batch_refine", "patience", "max_tokens"}
    assert not later & set(read())


def test_the_help_names_every_proposer_that_is_installed():
    (agent,) = (option for option in command.params if "--agent" in option.opts)
    assert all(name in agent.help for name in plugins.names("proposers"))
