"""Candidates from any command-line agent: `claude -p`, `codex exec`, `aider`, a script.

Each request gets a folder of its own with the project's files, and the agent edits them there. The
candidate is what the files have become, compared with the base: commits, stashes and branches make
no difference. The folder is removed afterwards and never used again.

The agent runs in the sandbox that candidates run in, but with what its options name: variables, a
network, a home folder. **Code that it runs there can see its key**, and all else that it was
given: that is how such agents work. Use a key that can do no more than it has to, with a limit. A
candidate that holds the key's value is refused, and it is removed from all that is kept; what lies
in `home` is not looked for.

What the agent changes beside the editable files is left out of the candidate, and named in its
note: agents leave logs and caches, and tests that they added prove nothing here. The rest is judged
without it. New files that the project's .gitignore names, environments, bytecode and the caches of
tools are left out without a word: they aren't part of the base either.

It holds the shared side of the host's lock for as long as it runs: nothing is timed meanwhile.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from fairtrial.arena import Workshop
from fairtrial.core import (
    LabError,
    Mistake,
    Place,
    Record,
    StudyError,
    spell_words,
    take_misspelt_commands,
)
from fairtrial.llm import SHORTEST_SECRET
from fairtrial.optimize.proposals import Brief, Reply, Request, RequestKind
from fairtrial.optimize.proposer import Proposer
from fairtrial.optimize.proposers.command.agent_run import (
    PROMPT,
    CommandAgent,
    Terms,
    Way,
    name_agent,
)
from fairtrial.optimize.proposers.command.program import (
    find_existing,
    find_program,
    follow,
    is_script,
    is_shown,
    refuse_missing_script,
)
from fairtrial.optimize.proposers.command.secrets import Keys
from fairtrial.sandbox import Limits
from fairtrial.study import spell_cost

__all__ = ["CommandProposer", "Workshop"]

_KEY_OPTION = re.compile(r"--(?:[a-z]+[-_])*api[-_]key", re.IGNORECASE)
_KEY_VALUE = re.compile(
    r"(?:--(?:[a-z]+[-_])*api[-_]key|(?:[A-Z0-9]+_)*(?:KEY|TOKEN|SECRET|PASSWORD))=(.*)", re.DOTALL
)
_OURS = ("HOME", "TMPDIR", "TMP", "TEMP", "PWD")


@dataclass(frozen=True, slots=True)
class CommandProposer(Record):
    """A command-line agent that edits files in a folder of its own.

    Code that it runs there can see its key: the values of `variables`, and what lies in `home`.

    argv: the program and its arguments, if need be after `env` and settings; never a key.
        `{prompt}` stands for the prompt, or its file; `{python}` for the problem's Python. It
        starts in the project's folder
    prompt: how it is told what to do: on `stdin`, as an `argument`, or in a `file` whose path it
        gets; by default as an argument if `{prompt}` stands in `argv`, else on stdin
    variables: the names of environment variables that are passed on, and nothing else is. A value
        of 8 characters or more counts as a secret: a candidate that holds it is refused
    network: whether it can use the network
    home: a folder whose contents its home starts with, a fresh copy each time: settings,
        credentials. Not your own home: all of that would be copied
    readable: folders that it may read beside the system's: where it is installed, if that is in
        your home
    git: whether the project's folder is a repository, of one commit
    timeout_s: how long it may take
    most_at_once: how many of them may run at the same time
    limits: what each may use of the machine
    cost_usd: what one request costs, as you know it (0 for a script); a ceiling needs it
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
    can_batch = False

    @classmethod
    def _older_form(
        cls, data: dict[str, Any], path: Place, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        kept = take_misspelt_commands(data, ("argv",), path, mistakes)
        # It is misspelt, not missing: one mistake is enough.
        return {"argv": ["-"], **kept} if "argv" in data else kept

    def _mistakes(self) -> Iterator[Mistake]:
        yield from _argv_mistakes(self.argv, self.prompt)
        yield from _variable_mistakes(self.variables)
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
        """What it is called."""
        return name_agent(self.argv)

    @property
    def way(self) -> Way:
        """How it is told what to do."""
        has_place = any(PROMPT in word for word in self.argv)
        return self.prompt or ("argument" if has_place else "stdin")

    def can(self, kind: RequestKind) -> bool:
        """It takes whatever comes."""
        return True

    def check_ceiling(self, max_cost: float | None) -> None:
        """Refuse to start under a ceiling that nobody could keep: raises `StudyError`."""
        if max_cost is not None and self.cost_usd is None:
            raise StudyError(
                Mistake(
                    ("cost_usd",),
                    f"nobody knows what {self.program} costs, so that a ceiling of "
                    f"{spell_cost(max_cost)} can't be kept",
                    "say what one request costs at most (0 for a script), or leave out the ceiling",
                )
            )

    def check_here(self) -> None:
        """Whether variables and program are there: raises `StudyError`."""
        Keys.of(self.variables)
        find_program(self.argv)

    def check_ready(self, folder: Path = Path()) -> None:
        """Whether folders are there, too: raises `StudyError`.

        folder: where relative paths start
        """
        self.check_here()
        for place, each in enumerate(self.readable):
            find_existing(each, folder, ("readable", place))
        self._seed(folder)

    def check_project(self, project: Path) -> None:
        """Whether the project has the program, if it comes with it: raises `StudyError`."""
        find_program(self.argv, project)
        refuse_missing_script(self.argv, project)

    def _seed(self, folder: Path) -> Path | None:
        if self.home is None:
            return None
        home = find_existing(self.home, folder, ("home",))
        if not home.is_dir():
            raise StudyError(Mistake(("home",), f"{home} is not a folder"))
        if Path.home().resolve().is_relative_to(home):
            hint = "name a folder with what the agent needs, such as a copy of its settings"
            raise StudyError(Mistake(("home",), "your own home would be copied each time", hint))
        return home

    async def prepared(self, workshop: Workshop) -> Proposer:
        """The same with a place to work; raises `StudyError` where something is missing."""
        self.check_ready(workshop.folder)
        program = find_program(self.argv, workshop.project)
        readable = [
            find_existing(each, workshop.folder, ("readable", place))
            for place, each in enumerate(self.readable)
        ]
        is_alone = False
        if program is not None and not is_shown(program, readable):
            shown = follow(program, readable)
            if shown is None:
                readable.append(program)
                is_alone = is_script(program)
            program = shown or program
        terms = Terms(
            argv=self.argv,
            way=self.way,
            timeout_s=self.timeout_s,
            limits=replace(self.limits, network=self.network),
            git=self.git,
            most_at_once=self.most_at_once,
            cost_usd=self.cost_usd,
            program=program,
            readable=tuple(readable),
            is_alone=is_alone,
            seed=self._seed(workshop.folder),
        )
        return CommandAgent(terms, workshop, Keys.of(self.variables))

    async def propose(self, brief: Brief, request: Request) -> Reply:
        """Not without a place to work."""
        raise LabError("a command-line agent needs a workshop: await prepared(workshop) first")


# -- options --


def _argv_mistakes(argv: tuple[str, ...], prompt: str | None) -> Iterator[Mistake]:
    if not argv or not argv[0].strip():
        yield Mistake(("argv",), "must name a program", 'for example ["claude", "-p"]')
        return
    for place in _find_given_keys(argv):
        message = "looks like a key, and `argv` is stored with the results"
        yield Mistake(("argv", place), message, "put it into a variable; name that in `variables`")
    if any("\0" in word for word in argv):
        yield Mistake(("argv",), "holds a null character, which no argument can")
    if "=" in argv[0] or (len(argv[0].split()) > 1 and "/" not in argv[0]):
        hint = f"write each word on its own: {spell_words(argv[0])}"
        if "=" in argv[0]:
            hint = "write each word on its own; variables are set by a first word `env`"
        yield Mistake(("argv", 0), f"expected a program, got '{argv[0]}'", hint)
    has_place = any(PROMPT in word for word in argv)
    if prompt == "stdin" and has_place:
        yield Mistake(("prompt",), "is on stdin, but `{prompt}` stands in `argv`")
    if prompt in ("argument", "file") and not has_place:
        yield Mistake(("argv",), "must say where the prompt goes", "put `{prompt}` there")


def _find_given_keys(argv: tuple[str, ...]) -> Iterator[int]:
    """Where a key stands among the arguments, by what is said about it there."""
    for place, (before, word) in enumerate(pairwise(("", *argv))):
        named = _KEY_VALUE.fullmatch(word)
        value = word if _KEY_OPTION.fullmatch(before) else named[1] if named else ""
        if len(value) >= SHORTEST_SECRET:
            yield place


def _variable_mistakes(names: tuple[str, ...]) -> Iterator[Mistake]:
    for place, name in enumerate(names):
        # What is no name may be the key itself: it is not repeated.
        if not (name.isascii() and name.isidentifier()):
            message = "must be the name of an environment variable, such as ANTHROPIC_API_KEY"
            yield Mistake(("variables", place), message, "the key itself goes into that variable")
        elif name in _OURS or name.startswith("FAIRTRIAL_"):
            yield Mistake(("variables", place), f"{name} is set by the sandbox")
