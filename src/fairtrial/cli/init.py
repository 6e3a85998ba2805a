"""`fairtrial init`: a study to start from."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from fairtrial import recipes
from fairtrial.cli.output import json_option, print_json
from fairtrial.errors import StudyError
from fairtrial.files import replacing
from fairtrial.loading import write_study

RECIPES = {
    name.removeprefix("build_").removesuffix("_study").replace("_", "-"): name
    for name in recipes.__all__
    if name.startswith("build_")
}


@click.command(
    name="init",
    epilog="Example: fairtrial init studies/prompts.yaml --recipe prompt-framing",
    short_help="Write a commented starter study.",
)
@click.argument(
    "path", type=click.Path(path_type=Path), default=Path("study.yaml"), metavar="[FILE]"
)
@click.option(
    "--recipe",
    type=click.Choice(sorted(RECIPES)),
    metavar="NAME",
    help=f"Start from a ready-made study instead: {', '.join(sorted(RECIPES))}.",
)
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@json_option
def command(path: Path, recipe: str | None, force: bool, as_json: bool) -> None:
    """Write a commented starter study to FILE (study.yaml)."""
    if path.is_dir():
        raise StudyError(f"{path} is a directory; name a file in it: {path / 'study.yaml'}")
    if path.suffix == ".json" and recipe is None:
        raise StudyError(f"{path}: the starter's comments need YAML; end the name in .yaml")
    if path.suffix not in (".yaml", ".yml", ".json"):
        raise StudyError(f"{path}: the file's name must end in .yaml")
    if path.exists() and not force:
        raise StudyError(f"{path} exists already; --force replaces it")
    if recipe is not None:
        format = "json" if path.suffix == ".json" else "yaml"
        write_study(getattr(recipes, RECIPES[recipe])(), path, format, brief=True)
    else:
        with replacing(path) as file:
            file.write(files("fairtrial.cli").joinpath("starter.yaml").read_text("utf-8"))
    if as_json:
        print_json({"ok": True, "written": str(path)})
    else:
        click.echo(f"wrote {path}; next: fairtrial check {path}")
