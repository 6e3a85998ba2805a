"""`fairtrial optimize` as a study of one run: its options, its study, and the command again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import fairtrial.optimize as optimize  # names are imported on first use: `fairtrial run` needs none
from fairtrial.cli.number_types import FiniteRange
from fairtrial.core import Mistake, StudyError, fields, plugins
from fairtrial.study import (
    AgentBinding,
    OutcomeSpec,
    ProblemBinding,
    RunBudget,
    SeedPolicy,
    Study,
)

if TYPE_CHECKING:
    from fairtrial.optimize import OptionFlag

AGENT = "optimiser"
"""The name of the study's agent. Ids and seeds of runs follow from it, so it must not change."""
PLUGIN, OLDER_PLUGINS = "optimize", ("optimise",)
LATER_OPTIONS = (
    "audit",
    "repairs",
    "refinements",
    "batch_refine",
    "patience",
    "max_tokens",
    "minimize",
)
"""Options that came later: left out at their default, so that earlier folders still fit."""
PROPOSER_OPTIONS = ("proposer", "proposer_options")
"""The options that replies depend on; others may differ on resume."""


def _list_flags() -> dict[str, tuple[Field[Any], OptionFlag]]:
    return optimize.Optimizer.list_flags()


def optimizer_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add a click option for each option of the optimizer that has a flag, and ``--option``."""
    decorators = [_make_option(option, flag) for option, flag in _list_flags().values()]
    decorators.insert(
        1,
        click.option(
            "--option",
            "proposer_options",
            multiple=True,
            metavar="NAME=VALUE",
            callback=lambda context, parameter, given: read_options(given),
            help="An option of that agent: --option model=... ; a value that is valid JSON is read "
            "as such.",
        ),
    )
    for decorate in reversed(decorators):
        command = decorate(command)
    return command


def _make_option(option: Field[Any], flag: OptionFlag) -> Callable[..., Any]:
    kind = fields.field_types(optimize.Optimizer)[option.name]
    text = fields.field_docs(optimize.Optimizer)[option.name]
    if option.name == "proposer":
        text = f"the name of the proposer: {', '.join(plugins.names('proposers'))}"
    settings: dict[str, Any] = {"help": flag.help or f"{text[0].upper()}{text[1:]}."}
    if kind is bool:
        settings["is_flag"] = True
    elif kind is str:
        settings |= {"default": option.default, "show_default": True}
    elif kind in (int, int | None):
        settings["type"] = click.IntRange(flag.least, flag.most)
        if option.default:
            settings |= {"default": option.default, "show_default": True}
    else:
        settings["type"] = FiniteRange(flag.least)
    if flag.metavar:
        settings["metavar"] = flag.metavar
    return click.option(flag.name, option.name, **settings)


def get_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the optimizer's options for the values of the command's parameters."""
    options = {"proposer": given["proposer"], "proposer_options": given["proposer_options"]}
    for name, (option, flag) in _list_flags().items():
        value = given[name]
        if flag.name.startswith("--no-"):
            value = not value
        options[name] = option.default if value is None else value
    for name in LATER_OPTIONS:
        if options[name] == _list_flags()[name][0].default:
            del options[name]
    return options


def read_options(given: tuple[str, ...]) -> dict[str, Any]:
    """Return the options that NAME=VALUE pairs give; a value that is no JSON is text."""
    options: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise StudyError(Mistake(("--option",), f"expected NAME=VALUE, got {text!r}"))
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options


def make_study(path: Path, problem_id: str, options: Mapping[str, Any], seed: int) -> Study:
    """Return the study of one run that an optimization is.

    path: the problem's file
    options: the optimizer's
    """
    return Study(
        _make_study_id(problem_id),
        f"The fastest {problem_id} that {options['proposer']} finds",
        outcomes=(OutcomeSpec("speedup", source_table="evaluations", primary=True),),
        agents={AGENT: AgentBinding(use=PLUGIN, options=dict(options))},
        problems={problem_id: ProblemBinding(use="code", options={"path": str(path.resolve())})},
        agent_specs=(AGENT,),
        problem_ids=(problem_id,),
        run_budget=RunBudget(replicates=1, retries=0),
        seed_policy=SeedPolicy(base_seed=seed),
    )


def _make_study_id(problem_id: str) -> str:
    return f"optimize-{problem_id}"


def find_problem(study: Study) -> tuple[str, ProblemBinding] | None:
    """Return the problem of a study that `fairtrial optimize` made; None for any other study."""
    if [*study.agents] != [AGENT] or len(study.problems) != 1:
        return None
    ((problem_id, binding),) = study.problems.items()
    is_ours = study.agents[AGENT].use in (PLUGIN, *OLDER_PLUGINS) and binding.use == "code"
    return (
        (problem_id, binding) if is_ours and study.study_id == _make_study_id(problem_id) else None
    )


def spell_flags(study: Study) -> Iterator[str]:
    """Yield the command-line options that a study of `fairtrial optimize` was made with."""
    given = optimize.Optimizer.modernize_options(study.agents[AGENT].options)
    for name, (option, flag) in _list_flags().items():
        value = given.get(name, option.default)
        is_proposer = name == "proposer" and value is not None
        if isinstance(option.default, bool):
            if value != option.default:
                yield flag.name
        elif name in LATER_OPTIONS:
            if value != option.default:
                yield from (flag.name, str(value))
        elif is_proposer or (value is not None and (value or option.default is None)):
            yield from (flag.name, str(value))
    for name, value in (given.get("proposer_options") or {}).items():
        yield from ("--option", f"{name}={_spell_value(value)}")
    if study.seed_policy.base_seed:
        yield from ("--seed", str(study.seed_policy.base_seed))


def _spell_value(value: Any) -> str:
    """Return a value such that `read_options` reads it back."""
    try:
        json.loads(value)
    except (ValueError, TypeError):
        if isinstance(value, str):
            return value
    return json.dumps(value)
