"""Learning about a target before it is attacked."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import PurePosixPath

from fairtrial.arena import (
    Arena,
    Bench,
    Changes,
    Rejection,
    Verdict,
    time_candidate,
)
from fairtrial.sandbox import Command
from fairtrial.testing.cheats.attack import Kind
from fairtrial.testing.cheats.facts import PROBE, TargetFacts, read_probe
from fairtrial.testing.cheats.instances import make_candidate
from fairtrial.testing.cheats.targets import AttackTarget

COMMAND_S = 60.0
"""How long a command may take."""


async def learn(arena: Arena, bench: Bench | None, target: AttackTarget) -> TargetFacts:
    """Find out what an attacker could know of a target, by a probe or by running a command."""
    makers = [check.inputs.partition(":")[0] for check in arena.problem.check if check.inputs]
    calls = [check.calls for check in arena.problem.check if check.calls]
    facts = TargetFacts(
        hidden=tuple(dict.fromkeys((*makers, *calls))),
        memory_mb=arena.problem.limits.memory_mb,
        is_sandboxed=arena.sandbox_name != "plain",
    )
    if target.command:
        output, digests = await run_command(arena, target), digest_files(arena, target)
        return replace(facts, kinds=frozenset((Kind.COMMAND,)), output=output, digests=digests)
    probe = make_candidate(PROBE, target, facts)
    judgement = await arena.judge(probe)
    learned = read_probe(judgement, facts)
    changes = await arena.resolve(probe)
    is_passed = judgement.verdict == Verdict.PASSED
    if not learned.result_type and is_passed and bench and isinstance(changes, Changes):
        timed = await time_candidate(arena, bench, probe.name, changes)
        learned = read_probe(timed if isinstance(timed, Rejection) else None, facts)
    return learned


def digest_files(arena: Arena, target: AttackTarget) -> tuple[str, ...]:
    """Return the digests of the files of the project that a command names."""
    paths = [arena.top / arena.problem.cwd / word for word in target.command[1:]]
    contents = [path.read_bytes() for path in paths if path.is_file()]
    return tuple(hashlib.sha256(content).hexdigest() for content in contents)


async def run_command(arena: Arena, target: AttackTarget) -> bytes:
    """Return what a command prints on the base, as an agent in its own slot would see it.

    Empty if it fails there, or prints more than a megabyte.
    """
    workshop, cwd = arena.make_workshop(), PurePosixPath(arena.problem.cwd)
    async with workshop.slot(git=False) as slot:
        top = slot.cwd.parents[len(cwd.parts) - 1] if cwd.parts else slot.cwd
        roots = [str(top / root) for root in arena.resources.import_roots]
        command = Command(
            argv=tuple(word.replace("{python}", slot.python) for word in target.command),
            cwd=slot.cwd,
            env={**slot.variables(), "PYTHONPATH": os.pathsep.join(roots)},
            view=slot.view(),
            limits=arena.problem.limits,
            timeout_s=COMMAND_S,
            output_bytes=2**20,
        )
        done = await workshop.sandbox.run(command)
    if done.exit_code != 0 or done.stdout.dropped:
        return b""
    return done.stdout.head + done.stdout.tail
