"""A slot as a check uses it: which commands can be run on it, and what they see."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairtrial.arena.interpreter import Interpreter
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.sandbox import Command, Completed, Mount, Sandbox, View

HARNESS = Path(__file__).resolve().parent.parent / "sandbox" / "harness"
"""The files that run beside candidates."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_VARIABLES = {
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
    "PYTHONHASHSEED": "0",
    # There is one check for each core, and a process with one thread can be forked.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


def common_variables(problem: CodeProblem, interpreter: Interpreter) -> dict[str, str]:
    """What every command of a problem has in its environment, whatever slot it runs on."""
    path = f"{interpreter.executable.parent}{os.pathsep}{PATH}"
    return {"PATH": path, **_VARIABLES, **problem.env}


@dataclass(frozen=True, slots=True)
class Stage:
    """One slot, ready for a check. Every path is derived from it, at the time it is needed.

    problem: whose checks are run
    interpreter: the Python they run with
    sandbox: where they run
    slot: the slot's folder on disk
    seen: where commands see that folder: at the user's own path, if the sandbox can do that
    import_roots: the folders that imports start from, relative to the slot
    included: what of the user's tree lies in the slot read-only
    is_writable: whether commands may change the slot
    """

    problem: CodeProblem
    interpreter: Interpreter
    sandbox: Sandbox
    slot: Path
    seen: Path
    import_roots: tuple[str, ...]
    included: tuple[Mount, ...] = ()
    is_writable: bool = True

    def command(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        stdin: bytes = b"",
        channel_bytes: int = 0,
        env: Mapping[str, str] | None = None,
        path_tail: Sequence[Path] = (),
        output_bytes: int = 64 * 1024,
        line: int | None = None,
        cores: tuple[int, ...] = (),
    ) -> Command:
        """A command on this slot; ``{python}`` in `argv` stands for the problem's Python.

        path_tail: folders (of ours) that imports may come from after all others
        """
        python = str(self.interpreter.executable)
        roots = [str(self.seen / root) for root in self.import_roots]
        path = [*roots, *map(str, path_tail)]
        variables = {
            **common_variables(self.problem, self.interpreter),
            **(env or {}),
            "PYTHONPATH": os.pathsep.join(path),
        }
        return Command(
            argv=tuple(word.replace("{python}", python) for word in argv),
            cwd=self.seen / self.problem.cwd,
            env=variables,
            view=self.view(),
            limits=self.problem.limits,
            timeout_s=timeout_s,
            stdin=stdin,
            channel_bytes=channel_bytes,
            output_bytes=output_bytes,
            line=line,
            cores=cores,
        )

    def view(self) -> View:
        """The slot, the interpreter and our guests; nothing else of the user's."""
        here = Mount(self.slot, self.seen)
        folders = [*self.interpreter.folders, HARNESS]
        inside = [folder for folder in folders if folder.is_relative_to(self.seen)]
        outside = [folder for folder in folders if folder not in inside]
        return View(
            readable=tuple(Mount(folder, folder) for folder in outside)
            + (() if self.is_writable else (here,)),
            writable=(here,) if self.is_writable else (),
            over=tuple(Mount(folder, folder) for folder in inside) + self.included,
        )

    async def run(self, command: Command) -> Completed:
        """Run it where this slot's commands run."""
        return await self.sandbox.run(command)
