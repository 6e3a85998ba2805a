"""The proposer `command`: any command-line agent (`claude -p`, `codex exec`, `aider`, a script).

Each request gets a private folder with the project's files, which the agent edits. The candidate is
the difference between these files and the base; commits, stashes and branches don't matter. The
folder is removed afterwards.

The agent runs in the sandbox of candidates, with what its options allow in addition: variables, the
network, a home folder. **Code that it runs there can see its key** and all else that it is given.
Use a key with narrow rights and a spending limit. A candidate that holds the key's value is
refused, and the value is removed from all records; the contents of `home` are not searched for.

Changes to files that aren't editable are left out of the candidate and named in its note: agents
leave logs and caches, and tests that they add prove nothing here. New files that the project's
.gitignore names, environments, bytecode and tool caches are left out silently, as in the base.

The agent holds the shared side of the host lock while it runs: nothing is timed meanwhile.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from fairtrial.arena import Workshop
from fairtrial.core import FieldPath, LabError, Mistake, Record, StudyError, syntax_checks
from fairtrial.llm import Secret
from fairtrial.optimize.proposals import Brief, Reply, Request
from fairtrial.optimize.proposer import PreflightContext, Proposer, run_checks
from fairtrial.optimize.proposers.command.agent_run import (
    PROMPT,
    CommandSettings,
    OpenCommandProposer,
    PromptMode,
    name_agent,
)
from fairtrial.optimize.proposers.command.program import (
    check_script,
    find_existing,
    find_program,
    follow_link,
    is_script,
    is_visible,
)
from fairtrial.optimize.proposers.command.secrets import AgentSecrets
from fairtrial.sandbox import Limits
from fairtrial.study import spell_cost

_KEY_OPTION = re.compile(r"--(?:[a-z]+[-_])*api[-_]key", re.IGNORECASE)
_KEY_VALUE = re.compile(
    r"(?:--(?:[a-z]+[-_])*api[-_]key|(?:[A-Z0-9]+_)*(?:KEY|TOKEN|SECRET|PASSWORD))=(.*)", re.DOTALL
)
_RESERVED = ("HOME", "TMPDIR", "TMP", "TEMP", "PWD")


@dataclass(frozen=True, slots=True)
class CommandProposer(Proposer, Record):
    """A command-line agent that edits files in a private folder.

    Code that it runs there can see its key: the values of `variables`, and the files in `home`.

    argv: the program and its arguments, optionally after `env` and settings; never a key.
        `{prompt}` stands for the prompt, or its file; `{python}` for the problem's Python. It
        starts in the project's folder
    prompt: how it gets its prompt: on `stdin`, as an `argument`, or in a `file` whose path it
        gets; by default as an argument if `{prompt}` stands in `argv`, else on stdin
    variables: the names of the environment variables that it gets; it gets no others. A value of 8
        characters or more counts as a secret: a candidate that holds it is refused
    network: whether it can use the network
    home: a folder whose contents its home starts with, a fresh copy each time: settings,
        credentials. Not your own home, all of which would be copied
    readable: folders that it may read besides the system's: where it is installed, if that is in
        your home
    git: whether the project's folder is a repository, of one commit
    timeout_s: how long it may take
    most_at_once: how many of them may run at the same time
    limits: what each may use of the machine
    cost_usd: the cost of one request (0 for a script); needed if there is a ceiling
    """

    argv: tuple[str, ...]
    prompt: Literal["stdin", "argument", "file"] | None = None
    variables: tuple[str, ...] = ()
    network: bool = False
    home: Path | None = None
    readable: tuple[Path, ...] = ()
    git: bool = True
    timeout_s: float = 1_800.0
    most_at_once: int = 1
    limits: Limits = field(default_factory=lambda: Limits(memory_mb=4_096, processes=512))
    cost_usd: float | None = None

    name = "command"

    @classmethod
    def _older_form(
        cls, data: dict[str, Any], path: FieldPath, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        kept = syntax_checks.drop_malformed_commands(data, ("argv",), path, mistakes)
        # A misspelt `argv` isn't missing as well: one mistake is enough.
        return {"argv": ["-"], **kept} if "argv" in data else kept

    def _mistakes(self) -> Iterator[Mistake]:
        yield from list_argv_mistakes(self.argv, self.prompt)
        yield from list_variable_mistakes(self.variables)
        if not (self.timeout_s > 0 and math.isfinite(self.timeout_s)):
            yield Mistake(("timeout_s",), f"must be more than 0 seconds, got {self.timeout_s:g}")
        if self.most_at_once < 1:
            yield Mistake(("most_at_once",), f"must be 1 or more, got {self.most_at_once}")
        if self.limits.network:
            yield Mistake(("limits", "network"), "has an option of its own", "network: true")
        if self.cost_usd is not None and not (self.cost_usd >= 0 and math.isfinite(self.cost_usd)):
            yield Mistake(("cost_usd",), f"must be 0 or more, got {self.cost_usd:g}")

    @property
    def program(self) -> str:
        """The agent's name."""
        return name_agent(self.argv)

    @property
    def prompt_mode(self) -> PromptMode:
        """How the agent gets its prompt."""
        has_place = any(PROMPT in word for word in self.argv)
        return self.prompt or ("argument" if has_place else "stdin")

    def preflight(self, context: PreflightContext) -> None:
        """Raise a `StudyError` for a missing variable, program or folder, or an unknown cost."""
        checks: list[Callable[[], object]] = [
            lambda: self._check_ceiling(context.max_cost_usd),
            lambda: AgentSecrets.read(self.variables),
            lambda: find_program(self.argv),
        ]
        if context.folder is not None:
            folder = context.folder
            checks += [lambda: self._find_readable(folder), lambda: self._find_home(folder)]
        if context.project is not None:
            project = context.project
            checks += [
                lambda: find_program(self.argv, project),
                lambda: check_script(self.argv, project),
            ]
        run_checks(*checks)

    def _check_ceiling(self, max_cost_usd: float | None) -> None:
        if max_cost_usd is not None and self.cost_usd is None:
            raise StudyError(
                Mistake(
                    ("cost_usd",),
                    f"nobody knows what {self.program} costs, so that a ceiling of "
                    f"{spell_cost(max_cost_usd)} can't be kept",
                    "say what one request costs at most (0 for a script), or leave out the ceiling",
                )
            )

    def _find_readable(self, folder: Path) -> list[Path]:
        return [
            find_existing(path, folder, ("readable", place))
            for place, path in enumerate(self.readable)
        ]

    def _find_home(self, folder: Path) -> Path | None:
        if self.home is None:
            return None
        home = find_existing(self.home, folder, ("home",))
        if not home.is_dir():
            raise StudyError(Mistake(("home",), f"{home} is not a folder"))
        if Path.home().resolve().is_relative_to(home):
            hint = "name a folder with what the agent needs, such as a copy of its settings"
            raise StudyError(Mistake(("home",), "your own home would be copied each time", hint))
        return home

    async def open(self, workshop: Workshop) -> OpenCommandProposer:
        """Return the proposer that works in a workshop; `StudyError` if something is missing."""
        agent_secrets = AgentSecrets.read(self.variables)
        program = find_program(self.argv, workshop.project)
        readable = self._find_readable(workshop.folder)
        is_alone = False
        if program is not None and not is_visible(program, readable):
            visible = follow_link(program, readable)
            if visible is None:
                readable.append(program)
                is_alone = is_script(program)
            program = visible or program
        settings = CommandSettings(
            argv=self.argv,
            prompt_mode=self.prompt_mode,
            timeout_s=self.timeout_s,
            limits=replace(self.limits, network=self.network),
            git=self.git,
            most_at_once=self.most_at_once,
            cost_usd=self.cost_usd,
            program=program,
            readable=tuple(readable),
            is_alone=is_alone,
            home=self._find_home(workshop.folder),
        )
        return OpenCommandProposer(settings, workshop, agent_secrets)

    async def propose(self, brief: Brief, request: Request) -> Reply:
        """Raise a `LabError`: the agent has to be opened first."""
        raise LabError("a command-line agent needs a workshop: await open(workshop) first")


# -- options --


def list_argv_mistakes(
    argv: tuple[str, ...], prompt: str | None, option: str = "prompt"
) -> Iterator[Mistake]:
    """Yield what is wrong with the words of a command, and with how it gets its prompt.

    option: the name of the option that `prompt` is from
    """
    if not argv or not argv[0].strip():
        yield Mistake(("argv",), "must name a program", 'for example ["claude", "-p"]')
        return
    for place in _find_keys(argv):
        message = "looks like a key, and `argv` is stored with the results"
        yield Mistake(("argv", place), message, "put it into a variable; name that in `variables`")
    if any("\0" in word for word in argv):
        yield Mistake(("argv",), "holds a null character, which no argument can")
    if "=" in argv[0] or (len(argv[0].split()) > 1 and "/" not in argv[0]):
        hint = f"write each word on its own: {syntax_checks.format_words(argv[0])}"
        if "=" in argv[0]:
            hint = "write each word on its own; variables are set by a first word `env`"
        yield Mistake(("argv", 0), f"expected a program, got '{argv[0]}'", hint)
    has_place = any(PROMPT in word for word in argv)
    if prompt == "stdin" and has_place:
        yield Mistake((option,), "is on stdin, but `{prompt}` stands in `argv`")
    if prompt in ("argument", "file") and not has_place:
        yield Mistake(("argv",), "must say where the prompt goes", "put `{prompt}` there")


def _find_keys(argv: tuple[str, ...]) -> Iterator[int]:
    """Yield the indices of arguments that are keys, by the name of their option or variable."""
    for place, (before, word) in enumerate(pairwise(("", *argv))):
        named = _KEY_VALUE.fullmatch(word)
        value = word if _KEY_OPTION.fullmatch(before) else named[1] if named else ""
        if len(value) >= Secret.MIN_CHARS:
            yield place


def list_variable_mistakes(names: tuple[str, ...]) -> Iterator[Mistake]:
    """Yield what is wrong with the names of environment variables that a command gets."""
    for place, name in enumerate(names):
        # What is no name may be the key itself, so it isn't repeated.
        if not (name.isascii() and name.isidentifier()):
            message = "must be the name of an environment variable, such as ANTHROPIC_API_KEY"
            yield Mistake(("variables", place), message, "the key itself goes into that variable")
        elif name in _RESERVED or name.startswith("FAIRTRIAL_"):
            yield Mistake(("variables", place), f"{name} is set by the sandbox")
