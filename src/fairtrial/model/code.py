"""Code problems: a repository, what may be changed in it, and what a candidate must still do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from fairtrial.errors import Mistake
from fairtrial.model.commands import Limits
from fairtrial.model.fields import NOT_IN_FILES
from fairtrial.model.record import Record, blank


@dataclass(frozen=True, slots=True)
class Check(Record):
    """One thing that must hold for a candidate: a command, or a function compared with the base.

    command: a program and its arguments; `{python}` stands for the problem's Python. Results of
        single tests are read where it runs pytest
    compare: what of another command is judged: its exit status, or its output as well, which must
        equal the base's
    function: `module:function`, called with the same arguments in base and candidate
    inputs: `file.py:function`, a maker of arguments: `make(rng) -> (args, kwargs)`
    cases: how many inputs are made
    calls: a JSON file of recorded calls with their results
    view: `module:function` that turns a result into plain data
    rel_tol: how far floats may differ, relative to the larger
    abs_tol: how far floats may differ in any case
    timeout_s: how much CPU time, and how long a time in which it could have run, the check may take
    """

    command: tuple[str, ...] = ()
    compare: Literal["exit", "output"] = "exit"
    function: str = ""
    inputs: str = ""
    cases: int = 50
    calls: str = ""
    view: str = ""
    rel_tol: float = 1e-9
    abs_tol: float = 0.0
    timeout_s: float = 120.0

    @property
    def is_pytest(self) -> bool:
        """Whether it is a command whose tests are read one by one."""
        names = [Path(word).name for word in self.command]
        return names[:1] in (["pytest"], ["py.test"]) or names[1:3] == ["-m", "pytest"]


@dataclass(frozen=True, slots=True)
class CodeProblem(Record):
    """A repository, what may be changed in it, and what must still hold afterwards.

    problem_id: its name
    family: `code`
    brief: what the agent is asked to do
    repo: the repository, relative to the problem's file
    cwd: the folder in it where commands start; for repositories of several projects
    editable: which files candidates may change, as git's glob pathspecs
    unprotect: which tests, conftest and configuration files they may change nevertheless
    include: ignored paths that slots need: built extensions, data
    git: whether candidates see a repository of one commit around them
    python: the Python that checks run with; the project's .venv if there is one, else our own
    import_roots: the folders that imports start from; found out if not given
    build: a command that is run for each candidate before its checks
    env: variables that commands get
    check: what must hold
    bench: what is timed
    limits: what one check may use of the machine
    sandbox: `auto` takes the best there is, `require` refuses to go on without one, `plain` takes
        none
    """

    problem_id: str
    family: Literal["code"] = "code"
    brief: str = ""
    repo: str = "."
    cwd: str = "."
    editable: tuple[str, ...] = ("**/*.py",)
    unprotect: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    git: bool = False
    python: str = ""
    import_roots: tuple[str, ...] | None = None
    build: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    check: tuple[Check, ...] = ()
    bench: tuple[Mapping[str, Any], ...] = ()
    limits: Limits = field(default_factory=Limits)
    sandbox: Literal["auto", "require", "plain"] = "auto"
    folder: Path = field(default=Path(), compare=False, metadata=NOT_IN_FILES)

    def _mistakes(self) -> Iterator[Mistake]:
        yield from blank(problem_id=self.problem_id)
