"""Code problems: a repository, the files that may be changed, checks and benchmarks."""

from __future__ import annotations

import glob
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from fairtrial.arena.model.memory import PEAK_MEMORY, TIME
from fairtrial.arena.model.problem_syntax import (
    command_mistakes,
    file_function_mistakes,
    path_mistakes,
    split_pattern,
    variable_mistakes,
)
from fairtrial.core import (
    FieldPath,
    Mistake,
    Record,
    StudyError,
    dump_record,
    fields,
    syntax_checks,
)
from fairtrial.sandbox import Limits

MOST_CASES = 100_000
"""The largest allowed value of `Check.cases`."""
MAX_STARTUP_RATIO = 1.2
"""The default of `Benchmark.max_startup_ratio`."""
MIN_BUDGET_S = 0.1
"""The smallest allowed time budget of a benchmark: no machine starts the twelve processes of a
minimal comparison in less."""
BESIDE = ".fairtrial"
"""The folder of the project where candidates' copies hold files that lie beside the problem's."""
INPUTS_FOLDER = "{inputs}"
"""Stands for the folder of generated files in a benchmark's command."""
Strictness = Literal["strict", "any"]
_STRICTNESSES = ("dict_order", "array_layout", "attributes", "aliasing", "process_state")


@dataclass(frozen=True, slots=True)
class Check(Record):
    """A condition for candidates: a command succeeds, or a function's results equal the base's.

    command: a program and its arguments; `{python}` stands for the problem's Python. If it runs
        pytest, the result of each test is compared with the base's
    compare: for commands other than pytest: whether only the exit status counts (`exit`), or the
        output must equal the base's as well (`output`)
    function: `module:function`, called with the same arguments in base and candidate; both parts
        may be dotted names
    inputs: `file.py:function` that generates arguments: `make(rng) -> (args, kwargs)`
    cases: the number of inputs to generate
    calls: a JSON file of recorded calls with their results
    prepare: `file.py:function` that makes the arguments of each call from those of its input, in
        the process of the candidate: `prepare(args, kwargs) -> (args, kwargs)`
    view: `module:function` that converts a result to plain data before it is compared
    accept: `file.py:function` that judges results instead of a comparison with the base's:
        `accept(args, kwargs, result) -> True`, or the reason why not
    must_pass: tests that fail on the base and must pass in candidates, by pytest's names; a name
        without parameters stands for all of them
    fails_on_base: for commands other than pytest: whether it must fail on the base and succeed in
        candidates
    rel_tol: relative tolerance for floats
    abs_tol: absolute tolerance for floats
    dict_order: whether dictionaries must have the base's order (`strict`), or may have any (`any`)
    array_layout: whether arrays must be as contiguous and as writable as the base's (`strict`), or
        may have any layout (`any`)
    attributes: whether objects must have the attributes of the base's and no others (`strict`), or
        may have more (`any`); attributes of exceptions are compared with `strict` only, as far as
        the base's have them
    aliasing: whether results must be as independent of later calls, of each other and of the
        arguments as the base's (`strict`), or may share objects with them (`any`)
    process_state: whether a candidate must leave alone the settings of its process that the base
        leaves alone (`strict`): garbage collector, working folder, signals, environment, functions
        of standard modules; or may change them (`any`)
    timeout_s: limit of the check's CPU time, and of its wall time without time spent waiting for a
        free core
    """

    command: tuple[str, ...] = ()
    compare: Literal["exit", "output"] = "exit"
    function: str = ""
    inputs: str = ""
    cases: int = 50
    calls: str = ""
    prepare: str = ""
    view: str = ""
    accept: str = ""
    must_pass: tuple[str, ...] = ()
    fails_on_base: bool = False
    rel_tol: float = 1e-9
    abs_tol: float = 0.0
    dict_order: Strictness = "strict"
    array_layout: Strictness = "strict"
    attributes: Strictness = "strict"
    aliasing: Strictness = "strict"
    process_state: Strictness = "strict"
    timeout_s: float = 120.0

    @property
    def command_text(self) -> str:
        """The command as people write it, without the placeholder for Python."""
        return spell_command(self.command)

    @property
    def is_pytest(self) -> bool:
        """Whether the command runs pytest, so that tests are judged one by one."""
        names = [Path(word).name for word in self.command]
        return names[:1] in (["pytest"], ["py.test"]) or names[1:3] == ["-m", "pytest"]

    @classmethod
    def _older_form(
        cls, data: dict[str, Any], path: FieldPath, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        return syntax_checks.drop_malformed_commands(data, ("command",), path, mistakes)

    def _mistakes(self) -> Iterator[Mistake]:
        if self.command and self.function:
            yield Mistake(
                ("function",), "can't be combined with `command`", "split it into two checks"
            )
        elif not self.command and not self.function:
            yield Mistake((), "needs `command` or `function`")
        yield from command_mistakes(self.command, ("command",))
        yield from self._function_mistakes()
        yield from self._base_failure_mistakes()
        if self.compare == "output" and (self.function or self.is_pytest):
            kind = "a function's results are" if self.function else "pytest's tests are"
            yield Mistake(("compare",), f"is for other commands: {kind} compared one by one")
        if not 1 <= self.cases <= MOST_CASES:
            yield Mistake(("cases",), f"must be 1 to {MOST_CASES:,}, got {self.cases:,}")
        for name in ("rel_tol", "abs_tol"):
            if getattr(self, name) < 0:
                yield Mistake((name,), f"must be 0 or more, got {getattr(self, name):g}")
        yield from _positive_mistakes(self, "timeout_s")

    def _base_failure_mistakes(self) -> Iterator[Mistake]:
        if self.must_pass and not self.is_pytest:
            hint = "fails_on_base: true is for other commands"
            yield Mistake(("must_pass",), "is for a command that runs pytest", hint)
        for index, name in enumerate(self.must_pass):
            if not name.strip():
                yield Mistake(("must_pass", index), "is empty")
        if self.fails_on_base and (self.function or self.is_pytest):
            hint = "name the tests in must_pass" if self.is_pytest else ""
            yield Mistake(("fails_on_base",), "is for commands other than pytest", hint)
        elif self.fails_on_base and self.compare == "output":
            yield Mistake(("fails_on_base",), "can't be combined with `compare: output`")

    def _function_mistakes(self) -> Iterator[Mistake]:
        if self.command and not self.function:
            given = [
                name
                for name in ("inputs", "calls", "prepare", "view", "accept")
                if getattr(self, name)
            ]
            given += [name for name in _STRICTNESSES if getattr(self, name) != "strict"]
            for name in given:
                yield Mistake((name,), "is for a check of a `function`, not of a command")
        if self.function:
            yield from syntax_checks.function_mistakes(self.function, ("function",))
            if not self.inputs and not self.calls:
                yield Mistake(("function",), "needs `inputs` or `calls`: what to call it with")
        if self.inputs and self.calls:
            yield Mistake(("calls",), "can't be combined with `inputs`", "split it into two checks")
        if self.inputs:
            yield from file_function_mistakes(self.inputs, ("inputs",))
        if self.calls:
            yield from path_mistakes(self.calls, ("calls",))
        if self.prepare:
            yield from file_function_mistakes(self.prepare, ("prepare",))
        if self.view:
            yield from syntax_checks.function_mistakes(self.view, ("view",))
        if self.accept:
            yield from file_function_mistakes(self.accept, ("accept",))


@dataclass(frozen=True, slots=True)
class Benchmark(Record):
    """A function call or a command to be timed.

    name: the benchmark's name in reports
    call: `module:function`, called with generated arguments, each used once
    inputs: `file.py:function` that generates inputs: arguments of a call,
        `make(rng) -> (args, kwargs)`, or files of a command, `make(rng, folder)`
    prepare: for a call: `file.py:function` that makes the arguments of each call from those of its
        input, in the process of the candidate, while the clock doesn't run:
        `prepare(args, kwargs) -> (args, kwargs)`
    command: a program and its arguments; each sample is a new process. `{inputs}` stands for the
        folder with the files that `inputs` has written, new ones for each pair of processes
    cores: the number of cores it may use; base and candidate take turns also with several
    max_startup_ratio: for a call: how many times as long as the base a candidate may take to start
        (interpreter, imports, one-time work) and still be adopted; raise it for code that compiles
        itself
    trust: for a call: whether the process that is timed is believed when it says that it begins and
        ends a batch of calls (`some`), or only the first byte of inputs and the last byte of
        results start and stop the clock (`none`). `all`, also for a suite: candidates are trusted
        not to know inputs that repeat, so that gains on them are adopted
    suite: benchmarks that were written for pytest-benchmark or asv: a file, `FILE::NAME` (a test, a
        function, a class, or `Class.method`), or a folder
    measure: what is judged: `time`, or `time` and `peak_memory`
    """

    name: str
    call: str = ""
    inputs: str = ""
    prepare: str = ""
    command: tuple[str, ...] = ()
    cores: int = 1
    max_startup_ratio: float = MAX_STARTUP_RATIO
    trust: Literal["some", "none", "all"] = "some"
    suite: str = ""
    measure: tuple[Literal["time", "peak_memory"], ...] = ("time",)

    @property
    def command_text(self) -> str:
        """The command as people write it, without the placeholder for Python."""
        return spell_command(self.command)

    @property
    def subject(self) -> str:
        """What is timed, for people: a function, a benchmark of a suite, or a command."""
        return self.call or self.suite or self.command_text

    @property
    def measures_memory(self) -> bool:
        """Whether peak memory is judged, too."""
        return PEAK_MEMORY in self.measure

    @classmethod
    def _older_form(
        cls, data: dict[str, Any], path: FieldPath, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        return syntax_checks.drop_malformed_commands(data, ("command",), path, mistakes)

    def _mistakes(self) -> Iterator[Mistake]:
        yield from self._blank_mistakes("name")
        if self.call and self.command:
            yield Mistake(
                ("call",), "can't be combined with `command`", "split it into two benchmarks"
            )
        elif not self.call and not self.command and not self.suite:
            yield Mistake((), "needs `call`, `command` or `suite`")
        yield from command_mistakes(self.command, ("command",))
        if TIME not in self.measure:
            yield Mistake(("measure",), "must name `time`: a benchmark is always timed")
        if self.suite:
            yield from self._suite_mistakes()
        if self.call:
            yield from syntax_checks.function_mistakes(self.call, ("call",))
            if not self.inputs:
                yield Mistake(("call",), "needs `inputs`: what to call it with")
        if self.inputs:
            yield from file_function_mistakes(self.inputs, ("inputs",))
        if self.prepare:
            yield from file_function_mistakes(self.prepare, ("prepare",))
        if self.command and not self.call:
            yield from self._file_mistakes()
            if self.prepare:
                yield Mistake(("prepare",), "is for a `call`, not for a command")
            if self.trust != "some":
                yield Mistake(("trust",), "is for a `call`: a command is always timed as a whole")
        if self.cores < 1:
            yield Mistake(("cores",), f"must be 1 or more, got {self.cores}")
        if not self.max_startup_ratio >= 1:
            mistake = f"must be 1 or more, got {self.max_startup_ratio:g}"
            yield Mistake(("max_startup_ratio",), mistake)

    def _suite_mistakes(self) -> Iterator[Mistake]:
        for name in ("call", "command", "inputs"):
            if getattr(self, name):
                hint = "the suite says what is called, and with what"
                yield Mistake(("suite",), f"can't be combined with `{name}`", hint)
        if self.trust == "none":
            yield Mistake(
                ("trust",), "can't be `none` for a suite: its own code calls", "use a call"
            )
        yield from path_mistakes(self.suite.partition("::")[0], ("suite",))

    def _file_mistakes(self) -> Iterator[Mistake]:
        uses_files = any(INPUTS_FOLDER in word for word in self.command)
        if self.inputs and not uses_files:
            hint = f"let it read files in {INPUTS_FOLDER}, the folder that `inputs` writes to"
            yield Mistake(("command",), "doesn't use the files that `inputs` makes", hint)
        elif uses_files and not self.inputs:
            yield Mistake(("command",), f"uses {INPUTS_FOLDER}, but there are no `inputs`")


@dataclass(frozen=True, slots=True)
class CodeProblem(Record):
    """A code problem: a repository, the files that candidates may change, checks and benchmarks.

    The project's folder is `repo`/`cwd`; all other paths are relative to it.

    problem_id: the problem's name
    family: `code`
    brief: the task, as given to the agent
    repo: the project's folder, relative to the folder of the problem's file; may lie anywhere
        inside its git repository
    base: a git revision that is the base, instead of the tree as it is: a branch, a tag, a commit
    cwd: the folder in `repo` where commands start and that all other paths are relative to
    editable: files that candidates may change, as git's glob pathspecs
    unprotect: tests, conftest and configuration files that candidates may change as well
    include: ignored paths that checks need: built extensions, data
    largest_mb: limit of the total size of untracked files; if they are larger, the repository is
        refused
    git: whether candidates run inside a git repository of one commit
    python: the Python that runs the checks: a path, or a program's name; by default the project's
        .venv or venv if there is one, else the Python that runs fairtrial
    import_roots: the folders that imports start from; detected if not given
    build: a command that is run for each candidate before its checks
    build_timeout_s: time limit of the build, like the `timeout_s` of a check
    env: environment variables of all commands
    check: the conditions that candidates must meet
    bench: what is timed
    min_effect: the smallest speed-up that is worth adopting, as a share
    alpha: the accepted probability of claiming a difference where there is none
    budget_s: time budget of each benchmark of a candidate, in seconds
    limits: resource limits of one check
    sandbox: `auto` uses the best sandbox available, `require` fails if there is none, `plain` uses
        none
    """

    problem_id: str
    family: Literal["code"] = "code"
    brief: str = ""
    repo: str = "."
    base: str = ""
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
    folder: Path = field(default=Path(), compare=False, repr=False, metadata=fields.NOT_IN_FILES)
    file: str = field(
        default="problem.yaml", compare=False, repr=False, metadata=fields.NOT_IN_FILES
    )
    copy: Path | None = field(default=None, compare=False, repr=False, metadata=fields.NOT_IN_FILES)

    @property
    def project(self) -> Path:
        """The project's folder: the file's folder and `repo`, or its copy on another machine."""
        return self.copy or self.folder / self.repo

    @property
    def can_time(self) -> bool:
        """Whether there is a benchmark, or tests that can be timed."""
        return bool(self.bench) or any(check.is_pytest for check in self.check)

    @property
    def timing_budget_s(self) -> float:
        """How long one candidate may be timed: `budget_s` for each benchmark."""
        return self.budget_s * max(len(self.bench), 1)

    @property
    def checks_files(self) -> tuple[str, ...]:
        """The files that its checks name, and those of `prepare` steps.

        These are makers of inputs, judges of results, and recorded calls.
        """
        functions = (name for check in self.check for name in (check.inputs, check.accept))
        makers = (function.partition(":")[0] for function in functions)
        names = (*makers, *(check.calls for check in self.check), *self._prepare_files())
        return tuple(dict.fromkeys(filter(None, names)))

    def _prepare_files(self) -> Iterator[str]:
        """Yield the files of `prepare` steps, which stay relative to the project's folder."""
        steps = (*(check.prepare for check in self.check), *(bench.prepare for bench in self.bench))
        for step in filter(None, steps):
            yield str(PurePosixPath(self.cwd, step.rpartition(":")[0]))

    @property
    def named_files(self) -> tuple[str, ...]:
        """The files and folders that its checks and benchmarks name: they belong to it, not to the
        base.
        """
        makers = (benchmark.inputs.partition(":")[0] for benchmark in self.bench)
        return tuple(dict.fromkeys((*self.checks_files, *filter(None, makers), *self.suite_paths)))

    @property
    def suite_paths(self) -> tuple[str, ...]:
        """The files and folders with suites of benchmarks."""
        paths = (benchmark.suite.partition("::")[0] for benchmark in self.bench)
        return tuple(dict.fromkeys(filter(None, paths)))

    def find_named_files(self, top: Path) -> dict[str, Path]:
        """Return where the named files are on disk, by their path in the repository.

        top: the top of the repository; the problem's paths are relative to it (`resolve_paths`)
        """
        beside = f"{PurePosixPath(self.cwd, BESIDE)}/"
        return {
            path: self.folder / path.removeprefix(beside) if path.startswith(beside) else top / path
            for path in self.named_files
        }

    def identity(self) -> dict[str, Any]:
        """Return the problem as the plain data that its fingerprints are made of.

        Fields that records got later are left out while they have their defaults, so that the
        fingerprints of earlier problems stay what they were.
        """
        data: dict[str, Any] = dump_record(self)
        for group, later in _LATER_FIELDS.items():
            for record in data[group] if group else [data]:
                for name, default in later.items():
                    if record[name] == default:
                        del record[name]
        return data

    @classmethod
    def _older_form(
        cls, data: dict[str, Any], path: FieldPath, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        return syntax_checks.drop_malformed_commands(data, ("build",), path, mistakes)

    def _mistakes(self) -> Iterator[Mistake]:
        yield from self._blank_mistakes("problem_id", "repo")
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
                yield Mistake(("bench", index, "name"), f"'{benchmark.name}' is used twice")
        yield from self._prepare_mistakes()
        if self.largest_mb < 1:
            yield Mistake(("largest_mb",), f"must be 1 or more, got {self.largest_mb}")
        for name in ("min_effect", "alpha"):
            if not 0 < getattr(self, name) < 1:
                yield Mistake((name,), f"must be above 0 and below 1, got {getattr(self, name):g}")
        if not self.budget_s >= MIN_BUDGET_S:
            message = (
                f"must be {MIN_BUDGET_S:g} or more, got {self.budget_s:g}: the fewest sessions "
                "that can decide anything, six, start twelve processes"
            )
            hint = "the default is 20; small functions need 2 or more"
            yield Mistake(("budget_s",), message, hint)
        yield from _positive_mistakes(self, "build_timeout_s")

    def _prepare_mistakes(self) -> Iterator[Mistake]:
        """Yield `prepare` steps in files that candidates don't see."""
        hidden = {item.inputs.rpartition(":")[0] for item in self.bench}
        for check in self.check:
            hidden |= {check.inputs.rpartition(":")[0], check.accept.rpartition(":")[0]}
        steps = [(("check", index), check.prepare) for index, check in enumerate(self.check)]
        steps += [(("bench", index), item.prepare) for index, item in enumerate(self.bench)]
        for place, step in steps:
            file = step.rpartition(":")[0]
            if file and file in hidden:
                message = f"{file} also holds inputs or an accept function: candidates don't see it"
                hint = "put the step into a file of its own"
                yield Mistake((*place, "prepare"), message, hint)

    def _path_mistakes(self) -> Iterator[Mistake]:
        yield from path_mistakes(self.cwd, ("cwd",))
        for name in ("editable", "unprotect", "include", "import_roots"):
            for index, path in enumerate(getattr(self, name) or ()):
                is_pattern = name in ("editable", "unprotect")
                yield from path_mistakes(path, (name, index), is_pattern=is_pattern)
        if all(split_pattern(pattern)[0] for pattern in self.editable):
            what = "only excludes files" if self.editable else "is empty"
            yield Mistake(("editable",), f"{what}: no candidate could change anything")


def _positive_mistakes(record: Record, name: str) -> Iterator[Mistake]:
    value = getattr(record, name)
    if value <= 0:
        yield Mistake((name,), f"must be above 0, got {value:g}")


_LATER_FIELDS: Mapping[str, Mapping[str, Any]] = {
    "": {"base": ""},
    "check": {
        "accept": "",
        "prepare": "",
        "must_pass": [],
        "fails_on_base": False,
        "dict_order": "strict",
        "array_layout": "strict",
        "attributes": "strict",
        "aliasing": "strict",
        "process_state": "strict",
    },
    "bench": {
        "max_startup_ratio": MAX_STARTUP_RATIO,
        "trust": "some",
        "prepare": "",
        "suite": "",
        "measure": [TIME],
    },
}


def spell_command(command: Sequence[str]) -> str:
    """Return a problem's command as people write it, without the placeholder for Python."""
    return " ".join(command).replace("{python}", "python")


def resolve_paths(problem: CodeProblem, top: Path) -> CodeProblem:
    """Return the problem with all paths relative to `top`, the top of its repository.

    Paths in a file are relative to the project's folder, which may lie anywhere below the top.
    Arguments of commands are not changed, since commands start in that folder; neither is `python`,
    which is searched for. Must be called only once per problem. Raises `StudyError` if the project
    lies outside of `top`.
    """
    # Links were followed to find the top, while the path of the file's folder may hold one.
    project, real_top = problem.project.resolve(), top.resolve()
    if not project.is_relative_to(real_top):
        raise StudyError(Mistake(("repo",), f"{project} doesn't lie in the repository {top}"))
    cwd = PurePosixPath(project.relative_to(real_top).as_posix(), problem.cwd)

    def rebase(path: str) -> str:
        return str(cwd / path) if path else ""

    def rebase_file(path: str) -> str:
        file = path.partition(":")[0]
        is_beside = path and not (project / problem.cwd / file).is_file()
        if is_beside and (problem.folder / file).is_file():
            return str(cwd / BESIDE / path)
        return rebase(path)

    def rebase_pattern(pattern: str) -> str:
        mark, rest = split_pattern(pattern)
        return mark + "".join(_escape(part) + "/" for part in cwd.parts) + rest.removeprefix("./")

    roots = problem.import_roots
    return replace(
        problem,
        cwd=str(cwd),
        editable=tuple(map(rebase_pattern, problem.editable)),
        unprotect=tuple(map(rebase_pattern, problem.unprotect)),
        include=tuple(str(PurePosixPath(glob.escape(str(cwd)), path)) for path in problem.include),
        import_roots=None if roots is None else tuple(map(rebase, roots)),
        check=tuple(
            replace(
                check,
                inputs=rebase_file(check.inputs),
                calls=rebase_file(check.calls),
                accept=rebase_file(check.accept),
            )
            for check in problem.check
        ),
        bench=tuple(
            replace(benchmark, inputs=rebase_file(benchmark.inputs), suite=rebase(benchmark.suite))
            for benchmark in problem.bench
        ),
    )


def _escape(name: str) -> str:
    """Return a pattern that matches exactly this folder name."""
    return "".join(f"\\{char}" if char in "*?[]\\" else char for char in name)
