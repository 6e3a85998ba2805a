"""Code problems: a repository, what may be changed in it, and what a candidate must still do."""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from fairtrial.core import (
    NOT_IN_FILES,
    Mistake,
    Place,
    Record,
    StudyError,
    blank,
    command_mistakes,
    function_mistakes,
    maker_mistakes,
    path_mistakes,
    split_pattern,
    take_misspelt_commands,
    variable_mistakes,
)
from fairtrial.sandbox import Limits

MOST_CASES = 100_000
"""How many inputs a check may have made."""
LEAST_BUDGET_S = 0.1
"""No machine starts in less time the twelve processes that the fewest sessions need."""


@dataclass(frozen=True, slots=True)
class Check(Record):
    """One thing that must hold for a candidate: a command, or a function compared with the base.

    command: a program and its arguments; `{python}` stands for the problem's Python. Results of
        single tests are read where it runs pytest
    compare: what of another command is judged: its exit status (`exit`), or its output as well
        (`output`), which must equal the base's
    function: `module:function`, called with the same arguments in base and candidate; either may
        have dots
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

    @classmethod
    def _older_form(
        cls, data: dict[str, Any], path: Place, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        return take_misspelt_commands(data, ("command",), path, mistakes)

    def _mistakes(self) -> Iterator[Mistake]:
        if self.command and self.function:
            yield Mistake(("function",), "stands beside a command", "make two checks of it")
        elif not self.command and not self.function:
            yield Mistake((), "needs `command` or `function`")
        yield from command_mistakes(self.command, ("command",))
        yield from self._function_mistakes()
        if self.compare == "output" and (self.function or self.is_pytest):
            kind = "a function's results are" if self.function else "pytest's tests are"
            yield Mistake(("compare",), f"is for other commands: {kind} compared one by one")
        if not 1 <= self.cases <= MOST_CASES:
            yield Mistake(("cases",), f"must be 1 to {MOST_CASES:,}, got {self.cases:,}")
        for name in ("rel_tol", "abs_tol"):
            if getattr(self, name) < 0:
                yield Mistake((name,), f"must be 0 or more, got {getattr(self, name):g}")
        yield from _not_positive(self, "timeout_s")

    def _function_mistakes(self) -> Iterator[Mistake]:
        for name in ("inputs", "calls", "view"):
            if self.command and not self.function and getattr(self, name):
                yield Mistake((name,), "is for a check of a `function`, not of a command")
        if self.function:
            yield from function_mistakes(self.function, ("function",))
            if not self.inputs and not self.calls:
                yield Mistake(("function",), "needs `inputs` or `calls`: what to call it with")
        if self.inputs and self.calls:
            yield Mistake(("calls",), "stands beside `inputs`", "make two checks of it")
        if self.inputs:
            yield from maker_mistakes(self.inputs, ("inputs",))
        if self.calls:
            yield from path_mistakes(self.calls, ("calls",))
        if self.view:
            yield from function_mistakes(self.view, ("view",))


@dataclass(frozen=True, slots=True)
class Benchmark(Record):
    """One thing that is timed: a function's call, or a command.

    name: what reports call it
    call: `module:function`, called with inputs that are made for it, each used once
    inputs: `file.py:function`, a maker of arguments: `make(rng) -> (args, kwargs)`
    command: a program and its arguments, each sample a process of its own
    cores: how many cores it may use; with more than one, base and candidate still take turns
    """

    name: str
    call: str = ""
    inputs: str = ""
    command: tuple[str, ...] = ()
    cores: int = 1

    @classmethod
    def _older_form(
        cls, data: dict[str, Any], path: Place, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        return take_misspelt_commands(data, ("command",), path, mistakes)

    def _mistakes(self) -> Iterator[Mistake]:
        yield from blank(name=self.name)
        if self.call and self.command:
            yield Mistake(("call",), "stands beside a command", "make two benchmarks of it")
        elif not self.call and not self.command:
            yield Mistake((), "needs `call` or `command`")
        yield from command_mistakes(self.command, ("command",))
        if self.call:
            yield from function_mistakes(self.call, ("call",))
            if not self.inputs:
                yield Mistake(("call",), "needs `inputs`: what to call it with")
        if self.inputs:
            yield from maker_mistakes(self.inputs, ("inputs",))
            if self.command and not self.call:
                yield Mistake(("inputs",), "is for a benchmark of a `call`, not of a command")
        if self.cores < 1:
            yield Mistake(("cores",), f"must be 1 or more, got {self.cores}")


@dataclass(frozen=True, slots=True)
class CodeProblem(Record):
    """A repository, what may be changed in it, and what must still hold afterwards.

    The project's folder is `repo`/`cwd`; all other paths are relative to it.

    problem_id: its name
    family: `code`
    brief: what the agent is asked to do
    repo: the project, relative to the folder of the problem's file; the repository is the one that
        this folder lies in
    cwd: the folder in `repo` where commands start and that all paths are relative to
    editable: which files candidates may change, as git's glob pathspecs
    unprotect: which tests, conftest and configuration files they may change nevertheless
    include: ignored paths that slots need: built extensions, data
    largest_mb: the largest untracked file that belongs to the base; with a larger one it is refused
    git: whether candidates see a repository of one commit around them
    python: the Python that checks run with: a path, or a program's name; by default the project's
        .venv or venv if there is one, else our own
    import_roots: the folders that imports start from; found out if not given
    build: a command that is run for each candidate before its checks
    build_timeout_s: how long that may take, like the `timeout_s` of a check
    env: variables that commands get
    check: what must hold
    bench: what is timed
    min_effect: the smallest change of speed that is worth anything, as a share
    alpha: how often a difference may be claimed where there is none
    budget_s: how long each benchmark of a candidate may take
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
    largest_mb: int = 100
    git: bool = False
    python: str = ""
    import_roots: tuple[str, ...] | None = None
    build: tuple[str, ...] = ()
    build_timeout_s: float = 600.0
    env: Mapping[str, str] = field(default_factory=dict)
    check: tuple[Check, ...] = ()
    bench: tuple[Benchmark, ...] = ()
    min_effect: float = 0.02
    alpha: float = 0.05
    budget_s: float = 20.0
    limits: Limits = field(default_factory=Limits)
    sandbox: Literal["auto", "require", "plain"] = "auto"
    folder: Path = field(default=Path(), compare=False, repr=False, metadata=NOT_IN_FILES)
    file: str = field(default="problem.yaml", compare=False, repr=False, metadata=NOT_IN_FILES)

    @classmethod
    def _older_form(
        cls, data: dict[str, Any], path: Place, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        return take_misspelt_commands(data, ("build",), path, mistakes)

    def _mistakes(self) -> Iterator[Mistake]:
        yield from blank(problem_id=self.problem_id, repo=self.repo)
        for name in ("repo", "python"):
            if "\0" in getattr(self, name):
                yield Mistake((name,), "holds a null character, which no path can")
        yield from self._path_mistakes()
        yield from command_mistakes(self.build, ("build",))
        yield from variable_mistakes(self.env, ("env",))
        if not self.check:
            hint = "name at least one command or function"
            yield Mistake(("check",), "is empty: nothing would be judged", hint)
        counts = Counter(benchmark.name for benchmark in self.bench)
        for index, benchmark in enumerate(self.bench):
            if counts[benchmark.name] > 1:
                yield Mistake(("bench", index, "name"), f"'{benchmark.name}' stands here twice")
        if self.largest_mb < 1:
            yield Mistake(("largest_mb",), f"must be 1 or more, got {self.largest_mb}")
        for name in ("min_effect", "alpha"):
            if not 0 < getattr(self, name) < 1:
                yield Mistake((name,), f"must be above 0 and below 1, got {getattr(self, name):g}")
        if not self.budget_s >= LEAST_BUDGET_S:
            message = f"must be {LEAST_BUDGET_S:g} or more, got {self.budget_s:g}: the fewest"
            told = f"{message} sessions that can decide anything, six, start twelve processes"
            yield Mistake(("budget_s",), told, "the default is 20; small functions need 2 or more")
        yield from _not_positive(self, "build_timeout_s")

    def _path_mistakes(self) -> Iterator[Mistake]:
        yield from path_mistakes(self.cwd, ("cwd",))
        for name in ("editable", "unprotect", "include", "import_roots"):
            for index, path in enumerate(getattr(self, name) or ()):
                is_pattern = name in ("editable", "unprotect")
                yield from path_mistakes(path, (name, index), is_pattern=is_pattern)
        if all(split_pattern(pattern)[0] for pattern in self.editable):
            what = "only leaves files out" if self.editable else "is empty"
            yield Mistake(("editable",), f"{what}: no candidate could change anything")


def _not_positive(record: Record, name: str) -> Iterator[Mistake]:
    value = getattr(record, name)
    if value <= 0:
        yield Mistake((name,), f"must be above 0, got {value:g}")


def resolve_paths(problem: CodeProblem, top: Path) -> CodeProblem:
    """The problem with all its paths relative to the top of the repository; to be done once.

    Paths in a file are relative to the project's folder, which may lie anywhere below the top.
    Arguments of commands stay as they are, since commands start in that folder; so does `python`,
    which is looked for.
    """
    # Whoever finds the top has followed links; the file's folder may have been reached by one.
    project, real_top = (problem.folder / problem.repo).resolve(), top.resolve()
    if not project.is_relative_to(real_top):
        raise StudyError(Mistake(("repo",), f"{project} doesn't lie in the repository {top}"))
    cwd = PurePosixPath(project.relative_to(real_top).as_posix(), problem.cwd)

    def place(path: str) -> str:
        return str(cwd / path) if path else ""

    def place_pattern(pattern: str) -> str:
        mark, rest = split_pattern(pattern)
        return mark + "".join(_escape(part) + "/" for part in cwd.parts) + rest.removeprefix("./")

    roots = problem.import_roots
    return replace(
        problem,
        cwd=str(cwd),
        editable=tuple(map(place_pattern, problem.editable)),
        unprotect=tuple(map(place_pattern, problem.unprotect)),
        include=tuple(str(PurePosixPath(glob.escape(str(cwd)), path)) for path in problem.include),
        import_roots=None if roots is None else tuple(map(place, roots)),
        check=tuple(
            replace(check, inputs=place(check.inputs), calls=place(check.calls))
            for check in problem.check
        ),
        bench=tuple(replace(each, inputs=place(each.inputs)) for each in problem.bench),
    )


def _escape(name: str) -> str:
    """A folder's name as a pattern that fits nothing else."""
    return "".join(f"\\{char}" if char in "*?[]\\" else char for char in name)
