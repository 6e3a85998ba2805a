"""`fairtrial init`: write a starter study."""

from __future__ import annotations

import re
import shlex
from importlib import resources
from pathlib import Path

import click

from fairtrial.cli.compare_arguments import CommandAfterDashes, words_after_dashes
from fairtrial.cli.init_dataset import draft_study, write_draft
from fairtrial.cli.output import json_option, print_json
from fairtrial.cli.problem_commands import unsandboxed_option
from fairtrial.cli.target_options import draft_problem, record_option, show_draft
from fairtrial.compat import recipes
from fairtrial.core import Mistake, StudyError, atomic_write
from fairtrial.study import files

RECIPES = {
    name.removeprefix("build_").removesuffix("_study").replace("_", "-"): name
    for name in recipes.__all__
    if name.startswith("build_")
}
STUDY, MODULE = "study.yaml", "study_agents"
"""The names in the starter files of the study's file and of the module with its agent."""


@click.command(
    name="init",
    cls=CommandAfterDashes,
    epilog="Example: fairtrial init studies/prompts.yaml --recipe prompt-framing",
    short_help="Write a commented starter study.",
)
@click.argument("path", type=click.Path(path_type=Path), default=Path(STUDY), metavar="[FILE]")
@click.option(
    "--recipe",
    type=click.Choice(sorted(RECIPES)),
    metavar="NAME",
    help=f"Start from a ready-made study instead: {', '.join(sorted(RECIPES))}.",
)
@click.option(
    "--from",
    "source",
    metavar="DATA",
    help="Draft a study of a dataset: a CSV, JSONL or Parquet file, a folder, hf:NAME.",
)
@click.option(
    "--problem",
    "target",
    metavar="TARGET",
    help="Write a problem for a function instead of a study: src/shop/cart.py::Cart.total.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="With --problem: where its files go; default: artifacts/targets/NAME.",
)
@record_option
@unsandboxed_option("the base")
@click.option("--force", is_flag=True, help="Replace files that exist.")
@json_option
def command(
    path: Path,
    recipe: str | None,
    source: str | None,
    target: str | None,
    output: Path | None,
    records: bool,
    unsandboxed: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Write a commented starter study to FILE (default: study.yaml), with an agent for it.

    The agent is written to a module next to it (study_agents.py), unless that exists. A recipe is
    written without agents: those are yours to write. With --from the rows of a dataset are the
    problems, and a language model is the agent; what was guessed about the columns is printed.

    With --problem TARGET, a problem for a function is drafted instead: its tests are found, its
    calls recorded, and a commented problem file is written with an input maker and the recorded
    calls. `fairtrial optimize TARGET` uses the same files.
    """
    ways = {"--recipe": recipe, "--from": source, "--problem": target}
    given = [name for name, value in ways.items() if value is not None]
    if len(given) > 1:
        message = f"{' and '.join(given)} are different ways to start"
        raise StudyError(Mistake((), message, "give one of them"))
    if target is not None:
        _write_problem(target, output, records, unsandboxed, force, as_json)
        return
    if output is not None or records or words_after_dashes():
        message = "--output, --record and words after `--` are for --problem"
        raise StudyError(Mistake((), message, "leave them out"))
    _check_path(path, recipe, force)
    if source is not None:
        _draft(source, path, as_json=as_json)
        return
    agents = None
    if recipe is not None:
        format = "json" if path.suffix == ".json" else "yaml"
        files.write_study(getattr(recipes, RECIPES[recipe])(), path, format, brief=True)
    else:
        agents = path.with_name(re.sub(r"\W+", "_", path.stem) + "_agents.py")
        _write("starter.yaml", path, path, agents)
    is_new = agents is not None and not agents.exists()
    if agents is not None and is_new:
        _write("starter_agents.txt", agents, path, agents)
    if as_json:
        print_json({"ok": True, "written": str(path), "agents": str(agents) if is_new else None})
        return
    shown = shlex.quote(str(path))
    if agents is None:
        click.echo(f"wrote {path}; next: fairtrial check {shown}")
        return
    agents_text = f" and {agents}" if is_new else f"; {agents} exists already and was not changed"
    click.echo(f"wrote {path}{agents_text}")
    click.echo(f"next:    fairtrial plan {shown}\n         fairtrial run {shown}")


def _write_problem(
    target: str,
    output: Path | None,
    records: bool,
    unsandboxed: bool,
    force: bool,
    as_json: bool,
) -> None:
    """Draft the problem of a target, and say what was written."""
    draft = draft_problem(
        target, output, records=records, unsandboxed=unsandboxed, as_json=as_json, replaces=force
    )
    if as_json:
        print_json({"ok": True, **draft.as_dict()})
        return
    show_draft(draft)
    click.echo(f"next:    fairtrial optimize {shlex.quote(str(draft.problem))}")


def _draft(source: str, path: Path, *, as_json: bool) -> None:
    """Write a study of a dataset, and say what was guessed."""
    draft = draft_study(source, path)
    write_draft(draft, path)
    if as_json:
        print_json({"ok": True, "written": str(path), "guesses": list(draft.guesses)})
        return
    shown = shlex.quote(str(path))
    click.echo(f"wrote {path}, with these guesses:")
    for guess in draft.guesses:
        click.echo(f"  {guess}")
    click.echo(f"next:    set base_url and model of the agent in {path}, then")
    click.echo(f"         fairtrial plan {shown}\n         fairtrial run {shown} --limit 10")


def _check_path(path: Path, recipe: str | None, force: bool) -> None:
    """Raise `StudyError` if the study can't be written to the path."""
    if path.is_dir():
        raise StudyError(f"{path} is a directory; name a file in it: {path / STUDY}")
    if path.suffix == ".json" and recipe is None:
        raise StudyError(f"{path}: the starter's comments need YAML; end the name in .yaml")
    if path.suffix not in (".yaml", ".yml", ".json"):
        raise StudyError(f"{path}: the file's name must end in .yaml")
    if path.exists() and not force:
        raise StudyError(f"{path} exists already; --force replaces it")


def _write(starter: str, target: Path, study: Path, agents: Path) -> None:
    """Write a starter file, with the names of the study and of its module put in."""
    text = resources.files("fairtrial.cli").joinpath(starter).read_text("utf-8")
    with atomic_write(target) as file:
        file.write(text.replace(STUDY, study.name).replace(MODULE, agents.stem))
