"""A stage: a slot with the interpreter and sandbox that commands run with on it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairtrial.arena.interpreter import Interpreter
from fairtrial.arena.model.problem import CodeProblem
from fairtrial.sandbox import Command, Completed, Mount, Sandbox, View

HARNESS = Path(__file__).resolve().parent.parent / "sandbox" / "harness"
"""The folder of the files that run inside the sandbox."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_VARIABLES = {
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
    "PYTHONHASHSEED": "0",
    # There is one check for each core, and only a process with one thread can be forked safely.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


def common_variables(problem: CodeProblem, interpreter: Interpreter) -> dict[str, str]:
    """Return the environment variables of all commands of a problem, on any slot."""
    path = f"{interpreter.executable.parent}{os.pathsep}{PATH}"
    return {"PATH": path, **_VARIABLES, **problem.env}


@dataclass(frozen=True, slots=True)
class Stage:
    """A slot with all that is needed to run commands on it.

    problem: the code problem
    interpreter: the Python that commands run with
    sandbox: runs the commands
    slot: the slot's folder on disk
    seen: where commands see that folder: at the user's own path, if the sandbox can relocate it
    import_roots: the folders that imports start from, relative to the slot
    included: files of the user's tree that are mounted read-only into the slot
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
        """Return a command on this slot; ``{python}`` in `argv` is the problem's Python.

        path_tail: folders that are searched last for imports
        line: the descriptor of a worker channel that the process inherits
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
            channel_fd=line,
            cores=cores,
        )

    def view(self) -> View:
        """Return the mounts that commands see: the slot, the interpreter and the harness."""
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
        """Run a command in this stage's sandbox."""
        return await self.sandbox.run(command)
