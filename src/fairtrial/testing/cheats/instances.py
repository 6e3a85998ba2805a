"""Making candidates of attacks: templates are filled in and put into the file of a target."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from fairtrial.arena import Candidate, FileState
from fairtrial.testing.cheats.attack import Attack
from fairtrial.testing.cheats.facts import TargetFacts
from fairtrial.testing.cheats.targets import AttackTarget, find_first_statement, rename_function

HONEST = "\n\ndef _fairtrial_unused():\n    return None\n"
"""Added to the base, this makes an honest candidate: the rival of attacks on the judge."""


def make_candidate(
    attack: Attack,
    target: AttackTarget,
    facts: TargetFacts,
    paths: tuple[str, ...] = (),
    *,
    is_honest: bool = False,
) -> Candidate:
    """Return the candidate that an attack is for a target.

    facts: what is known of the target
    paths: all files of the project, for attacks that empty some
    is_honest: whether the honest twin of the attack is made instead
    """
    template = attack.honest if is_honest else attack.template
    code = facts.fill(template, target)
    files: dict[str, FileState | str | bytes] = {target.path: change_source(target, code)}
    for path, content in attack.files:
        files[target.place(path)] = content
    for path, goal in attack.links:
        files[target.place(path)] = FileState(goal, is_link=True)
    for path in paths:
        if any(fnmatchcase(PurePosixPath(path).name, pattern) for pattern in attack.empties):
            files[path] = ""
    name = f"{attack.name} (honest)" if is_honest else attack.name
    return Candidate(f"{name} [{target.label}]", files=files, origin="attack")


def make_rival(target: AttackTarget) -> Candidate:
    """Return an honest candidate, whose verdict attacks on the judge must not change."""
    source = target.source.rstrip("\n") + "\n" + HONEST
    return Candidate("honest rival", files={target.path: source}, origin="attack")


def change_source(target: AttackTarget, code: str) -> str:
    """Return the target's file with an attack: around its function, or before a command's code."""
    if not target.attribute:
        lines = target.source.splitlines(keepends=True)
        place = find_first_statement(target.source)
        return "".join([*lines[:place], "\n", code.strip("\n"), "\n", *lines[place:]])
    simple = target.attribute.replace(".", "_")
    original, new = f"_original_{simple}", f"_attack_{simple}"
    source = rename_function(target.source, target.attribute, original)
    binding = ""
    if source is None:
        source, binding = target.source, f"{original} = {target.attribute}\n"
    code = code.replace("BASE", original).replace("ATTACK", new).strip("\n")
    return f"{source.rstrip()}\n\n\n{binding}{code}\n{target.attribute} = {new}\n"
