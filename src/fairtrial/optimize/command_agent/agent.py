"""The agent `command`: any command-line program, run on a task in a workspace of its own.

It sees its workspace, the system's programs and what `readable` names; nothing of the study's
folder unless `files` copies it. **Code that it runs can see its key.** The values of `variables`
are removed from all that is recorded.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from fairtrial.core import FieldPath, Mistake, Record, StudyError, syntax_checks
from fairtrial.optimize.command_agent.files import fill_workspace, find_place, find_source
from fairtrial.optimize.command_agent.result import ENTRY, ResultOptions, read_result
from fairtrial.optimize.option_paths import resolve_option_path
from fairtrial.optimize.proposers.command.agent_run import PROMPT, find_program_word, name_agent
from fairtrial.optimize.proposers.command.program import find_existing, find_program, is_visible
from fairtrial.optimize.proposers.command.proposer import list_argv_mistakes, list_variable_mistakes
from fairtrial.optimize.proposers.command.secrets import AgentSecrets
from fairtrial.sandbox import Command, Limits, Mount, Sandbox, View, find_sandbox, system
from fairtrial.study import AgentOutput, RunBudget, Task, agents

PROMPT_FILE = "prompt.md"
HOME = Path("/home/fairtrial-agent")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LONGEST_ARGUMENT_BYTES = 120_000


@dataclass(frozen=True, slots=True)
class CommandAgent(Record, agents.AgentHooks):
    """A command-line program that gets a task as its prompt, and a folder to work in.

    Texts in `argv`, `env`, `files` and `texts`, and `prompt`, have placeholders for the problem and
    the factors, as the prompts of `chat` have: `{brief}`, `{question}`, `{model}`; also `{seed}`,
    `{replicate}`, `{workspace}` and `{python}`, the Python that fairtrial runs in. A word of `argv`
    that is nothing but a placeholder is left out for null and an empty text, and is several words
    for a list: so a factor sets flags.

    argv: the program and its arguments; never a key. `{prompt}` stands for the prompt, or its file
    prompt: the template of the prompt
    prompt_by: how it gets the prompt: on `stdin`, as an `argument`, or in a `file` whose path it
        gets; by default as an argument if `{prompt}` stands in `argv`, else on stdin
    env: environment variables that it gets: templates, by name. Never a key
    variables: the names of environment variables that are passed on: keys
    files: what is copied into the workspace, such as skills or instructions: by its path there, the
        path of a file or folder, relative to the study's folder. The path `.` takes a folder's
        content. Null or empty: nothing
    texts: what is written into the workspace: templates, by path
    collect: which of its files become part of the output: patterns such as `*.md` or `src/**`
    answer_path: where the answer is in the JSON that it prints; all that it prints if empty
    answer: a regular expression that finds the answer there: its group 1, or all of it; the last
        match counts
    metrics: where figures are in the JSON that it prints, by name: `cost_usd`, `input_tokens`,
        `output_tokens`, which count against ceilings, or any others
    cost_usd: what one run costs, if it doesn't print that; 0 for a script
    exit_codes: the exit codes that don't count as a failure
    model: the template of the model's name in tables
    network: whether it can use the network
    home: a folder whose contents its home starts with, a new copy for each run: settings,
        credentials. Not your own home, all of which would be copied
    readable: folders that it may read besides the system's: where it is installed, if that is in
        your home
    timeout_s: how long it may take
    limits: what it may use of the machine
    sandbox: `auto` takes the best sandbox of the machine, and none where none works; `require`
        refuses that; `plain` uses none
    folder: the study's folder
    """

    argv: tuple[str, ...]
    prompt: str = "{brief}"
    prompt_by: Literal["stdin", "argument", "file"] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    files: Mapping[str, str | None] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    collect: tuple[str, ...] = ()
    answer_path: str = ""
    answer: str = ""
    metrics: Mapping[str, str] = field(default_factory=dict)
    cost_usd: float | None = None
    exit_codes: tuple[int, ...] = (0,)
    model: str = ""
    network: bool = False
    home: Path | None = None
    readable: tuple[Path, ...] = ()
    timeout_s: float = 1_800.0
    limits: Limits = field(default_factory=lambda: Limits(memory_mb=4_096, processes=512))
    sandbox: Literal["auto", "require", "plain"] = "auto"
    folder: Path | None = None

    @classmethod
    def _older_form(
        cls, data: dict[str, Any], path: FieldPath, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        kept = syntax_checks.drop_malformed_commands(data, ("argv",), path, mistakes)
        return {"argv": ["-"], **kept} if "argv" in data else kept

    def _mistakes(self) -> Iterator[Mistake]:
        yield from list_argv_mistakes(self.argv, self.prompt_by, "prompt_by")
        yield from list_variable_mistakes(self.variables)
        yield from agents.answer_reading.list_mistakes(self.answer_path, self.answer, self.metrics)
        for option, names in (("files", self.files), ("texts", self.texts)):
            for name in names:
                try:
                    find_place(name, option)
                except StudyError as error:
                    yield from error.mistakes
        if not (self.timeout_s > 0 and math.isfinite(self.timeout_s)):
            yield Mistake(("timeout_s",), f"must be more than 0 seconds, got {self.timeout_s:g}")
        if self.limits.network:
            yield Mistake(("limits", "network"), "has an option of its own", "network: true")
        if self.cost_usd is not None and not 0 <= self.cost_usd < math.inf:
            yield Mistake(("cost_usd",), f"must be 0 or more, got {self.cost_usd:g}")

    @property
    def prompt_mode(self) -> str:
        """How it gets its prompt."""
        has_place = any(PROMPT in word for word in self.argv)
        return self.prompt_by or ("argument" if has_place else "stdin")

    def in_folder(self, folder: Path | None) -> CommandAgent:
        """Return the agent with paths relative to the study's folder."""
        return self if self.folder is not None else replace(self, folder=folder)

    def check_start(self, budget: RunBudget) -> None:
        """Raise `StudyError` for a missing variable, program or folder, or an unknown cost."""
        AgentSecrets.read(self.variables)
        self._find_home()
        self._find_readable()
        self._find_sandbox()
        knows_cost = self.cost_usd is not None or "cost_usd" in self.metrics
        if budget.max_cost_usd is not None and not knows_cost:
            message = f"nobody knows what {name_agent(self.argv)} costs: a ceiling can't be kept"
            hint = "give `cost_usd` of a run (0 for a script), or where it prints it: `metrics`"
            raise StudyError(Mistake(("cost_usd",), message, hint))

    def check_task(self, problem: Any, factors: Mapping[str, Any]) -> None:
        """Raise `StudyError` for a placeholder that stands for nothing, or a file that is missing.

        Also for a program that isn't there.
        """
        values = {**agents.template_values(problem, factors), "seed": 0, "replicate": 1}
        place = Path("/workspace")
        self._find_sources(values)
        self._fill("texts", self.texts, values)
        self._fill("env", self.env, values)
        self._fill("model", self.model, values)
        self._fill("prompt", self.prompt, values)
        words = self._words(values, place, "")
        find_program(tuple(words))

    async def run(self, task: Task) -> AgentOutput:
        """Run the program in the task's workspace, and return what it printed and left there."""
        values = agents.template_values(task.problem, task.factors)
        values |= {"seed": task.seed, "replicate": task.run_spec.replicate}
        prompt = self._fill("prompt", self.prompt, values)
        secrets = AgentSecrets.read(self.variables)
        task.record(agents.message_event("user", secrets.redact(prompt)))
        options = ResultOptions(
            name_agent(self.argv),
            self._fill("model", self.model, values),
            self.answer_path,
            self.answer,
            self.metrics,
            self.cost_usd,
            self.exit_codes,
            self.collect,
            self.timeout_s,
            self.network,
        )
        earlier = next((entry for entry in task.journal.entries() if entry.kind == ENTRY), None)
        if earlier is not None:  # it was paid for by an attempt that was cut off later
            return AgentOutput(**earlier.data["output"])
        sandbox = self._find_sandbox()
        fill_workspace(
            task.workspace, self._find_sources(values), self._fill("texts", self.texts, values)
        )
        with tempfile.TemporaryDirectory(prefix="fairtrial-home-") as place:
            home = Path(place).resolve()
            command = self._command(values, task.workspace, home, prompt, sandbox, secrets)
            done = await sandbox.run(command)
        return read_result(task, done, options, secrets, sandbox.name)

    # -- what it is given --

    def _command(
        self,
        values: Mapping[str, Any],
        workspace: Path,
        home: Path,
        prompt: str,
        sandbox: Sandbox,
        secrets: AgentSecrets,
    ) -> Command:
        seed = self._find_home()
        if seed is not None:
            fill_workspace(home, {".": seed}, {})
        home_seen = HOME if sandbox.relocates else home
        stdin, argument = b"", prompt
        if self.prompt_mode == "stdin":
            stdin = prompt.encode("utf-8", "replace")
        elif self.prompt_mode == "file":
            (home / PROMPT_FILE).write_text(prompt, "utf-8")
            argument = str(home_seen / PROMPT_FILE)
        elif len(prompt.encode("utf-8", "replace")) > LONGEST_ARGUMENT_BYTES:
            message = f"the prompt has {len(prompt):,} characters, too many for an argument"
            raise StudyError(Mistake(("prompt_by",), message, "set it to stdin or file"))
        words = self._words(values, workspace, argument)
        program = find_program(tuple(words))
        readable = self._find_readable()
        if program is not None:
            words[find_program_word(words)] = str(program)
            if not is_visible(program, readable):
                readable.append(program)
        folders = [] if program is None else [str(program.parent)]
        variables = {"LANG": "C.UTF-8", **self._fill("env", self.env, values)}
        path = os.pathsep.join([variables.pop("PATH", PATH), *folders])
        return Command(
            # Sandboxes set HOME themselves, last of all.
            argv=("/usr/bin/env", f"HOME={home_seen}", *words),
            cwd=workspace,
            env={"PATH": path, **variables, **secrets.values},
            view=View(
                tuple(Mount(part, part) for part in readable),
                (Mount(home, home_seen), Mount(workspace, workspace)),
            ),
            limits=replace(self.limits, network=self.network),
            timeout_s=self.timeout_s,
            stdin=stdin,
            output_bytes=4 << 20,
        )

    def _words(self, values: Mapping[str, Any], workspace: Path, prompt: str) -> list[str]:
        """Return the words of the command, with their placeholders filled in."""
        own = {"prompt": prompt, "workspace": str(workspace), "python": sys.executable}
        words: list[str] = []
        for filled in self._fill("argv", list(self.argv), {**values, **own}, keeps_types=True):
            if isinstance(filled, (list, tuple)):
                words += map(str, filled)
            elif filled is not None and filled != "":
                words.append(
                    filled if isinstance(filled, str) else agents.fill("{x}", {"x": filled})
                )
        return words

    def _fill(
        self, option: str, template: Any, values: Mapping[str, Any], *, keeps_types: bool = False
    ) -> Any:
        try:
            return agents.fill(template, values, keeps_types=keeps_types)
        except StudyError as error:
            raise StudyError([mistake.under((option,)) for mistake in error.mistakes]) from None

    def _find_sources(self, values: Mapping[str, Any]) -> dict[str, Path]:
        filled = self._fill("files", self.files, values, keeps_types=True)
        folder = self.folder or Path()
        return {name: find_source(str(text), folder, name) for name, text in filled.items() if text}

    def _find_readable(self) -> list[Path]:
        folder = self.folder or Path()
        folders = [
            find_existing(path, folder, ("readable", place))
            for place, path in enumerate(self.readable)
        ]
        if any("{python}" in word for word in self.argv):
            folders += [
                Path(sys.prefix),
                *(Path(source) for source, _ in system.own_python_mounts()),
            ]
        return folders

    def _find_home(self) -> Path | None:
        if self.home is None:
            return None
        home = resolve_option_path(self.home, self.folder or Path(), "home").resolve()
        if not home.is_dir():
            raise StudyError(Mistake(("home",), f"{home} is not a folder"))
        if Path.home().resolve().is_relative_to(home):
            hint = "name a folder with what the agent needs, such as a copy of its settings"
            raise StudyError(Mistake(("home",), "your own home would be copied each time", hint))
        return home

    def _find_sandbox(self) -> Sandbox:
        return find_sandbox(self.sandbox, unsandboxed=self.sandbox != "require")
