"""The `Study` record, with its budget, seed policy, and agent and problem bindings."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from fairtrial.core import FieldPath, Mistake, Record, StudyError, build_record, dump_record, fields
from fairtrial.study.extensions import extensions
from fairtrial.study.model.factors import Block, Constraint, DesignSpec, Factor
from fairtrial.study.model.hypotheses import AnalysisPlan, Hypothesis, OutcomeSpec
from fairtrial.study.model.identity import seed_maker
from fairtrial.study.model.problems import Dataset, ProblemBinding, named_code
from fairtrial.study.model.resources import Resources
from fairtrial.study.model.study_html import study_html

SCHEMA_VERSION = "0.2.0"
SEED_STRATEGIES = ("condition_replicate",)


@dataclass(frozen=True, slots=True)
class RunBudget(Record):
    """Limits on the number of runs, and on time, cost and tokens.

    replicates: how often each agent runs on each problem under each condition
    max_runs: the largest number of runs in the plan
    max_runs_policy: what happens to a plan with more runs than max_runs: `refuse` rejects it,
        `balanced` leaves out runs evenly over the conditions
    parallelism: how many runs are executed at once
    fail_fast: whether the first failure stops the study
    timeout_s: the longest that a run may take, in seconds
    retries: how often a run is repeated that failed through no fault of the agent
    max_cost_usd: the most that the study may cost, in US dollars
    max_tokens: the most tokens that the study may use
    strict: whether the ceilings on cost and tokens are kept even by runs that take more than usual:
        what a run can take at most is reserved before it starts
    """

    replicates: int = 1
    max_runs: int | None = None
    parallelism: int = 1
    fail_fast: bool = False
    timeout_s: float | None = None
    retries: int = 2
    max_cost_usd: float | None = None
    max_tokens: int | None = None
    max_runs_policy: Literal["refuse", "balanced"] = "refuse"
    strict: bool = field(default=False, metadata=fields.ONLY_IF_SET)

    @property
    def is_balanced(self) -> bool:
        """Whether a plan of more than `max_runs` runs is reduced evenly rather than refused."""
        return self.max_runs_policy == "balanced"

    def _mistakes(self) -> Iterator[Mistake]:
        minima = {"replicates": 1, "max_runs": 1, "parallelism": 1, "retries": 0, "max_tokens": 1}
        for name, minimum in minima.items():
            value = getattr(self, name)
            if value is not None and value < minimum:
                yield Mistake((name,), f"must be {minimum} or more, got {value}")
        for name in ("timeout_s", "max_cost_usd"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                yield Mistake((name,), f"must be above 0, got {value:g}")


@dataclass(frozen=True, slots=True)
class SeedPolicy(Record):
    """How the seed of each run is derived.

    base_seed: the study's seed; change it to repeat the study with other random numbers
    strategy: how seeds are derived; `condition_replicate` is the only strategy
    per_run_offset: a number that is hashed into every seed
    """

    base_seed: int = 0
    strategy: str = "condition_replicate"
    per_run_offset: int = 9973

    def _mistakes(self) -> Iterator[Mistake]:
        if self.strategy not in SEED_STRATEGIES:
            expected = ", ".join(SEED_STRATEGIES)
            yield Mistake(("strategy",), f"expected {expected}; got '{self.strategy}'")

    def derive_seed(self, study_id: str, condition_id: str, replicate: int, salt: str = "") -> int:
        """Return the seed of one run; `salt` is ``agent:problem``."""
        return seed_maker(dump_record(self), study_id, condition_id, salt)(replicate)


@dataclass(frozen=True, slots=True)
class AgentBinding(Record):
    """The implementation behind an agent's name. In files a bare text is short for `use`.

    use: a plug-in's name, or `module:callable`
    options: the plug-in's options, or keyword arguments for the callable
    max_parallel: how many runs of this agent may be executed at once
    max_per_minute: how many runs of this agent may start within a minute
    resources: what each of its runs needs of the machine
    max_cost_usd: the most that one of its runs can cost, in US dollars; what a ceiling reserves
    max_tokens: the most tokens that one of its runs can use; what a ceiling reserves
    """

    use: str
    options: Mapping[str, Any] = field(default_factory=dict)
    max_parallel: int | None = None
    max_per_minute: float | None = None
    resources: Resources | None = field(default=None, metadata=fields.ONLY_IF_SET)
    max_cost_usd: float | None = field(default=None, metadata=fields.ONLY_IF_SET)
    max_tokens: int | None = field(default=None, metadata=fields.ONLY_IF_SET)

    _short_field: ClassVar[str] = "use"

    def _mistakes(self) -> Iterator[Mistake]:
        yield from self._blank_mistakes("use")
        for name in ("max_cost_usd", "max_tokens"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                yield Mistake((name,), f"must be above 0, got {value:g}")
        if self.max_parallel is not None and self.max_parallel < 1:
            yield Mistake(("max_parallel",), f"must be 1 or more, got {self.max_parallel}")
        if self.max_per_minute is not None and self.max_per_minute <= 0:
            yield Mistake(("max_per_minute",), f"must be above 0, got {self.max_per_minute:g}")


@dataclass(frozen=True, slots=True)
class Study(Record):
    """A designed set of runs, and the hypotheses that they test.

    study_id: a short name; it is hashed into every run's id
    title: the title of the study
    description: what the study is about
    authors: the authors of the study
    rationale: why the study is made
    tags: keywords
    hypotheses: the claims that are tested
    factors: the variables that the study sets
    blocks: the variables that runs are grouped by
    constraints: rules that exclude combinations of levels
    design_spec: the design that generates the conditions
    outcomes: what is measured
    analysis_plans: how the hypotheses are tested
    run_budget: limits on runs, time, cost and tokens
    seed_policy: how seeds are derived
    output_dir: the folder for results; by default artifacts/<study_id>
    provenance_metadata: your own data, added to the recorded provenance
    notes: any further text
    problem_ids: the problems used under every condition
    agent_specs: the agents used under every condition
    agents: the implementation behind each agent's name
    problems: the problem behind each problem's name; or a dataset, `{from: tasks.jsonl, ...}`,
        whose rows are the problems
    condition_runner: a function, `module:callable`, that runs a condition without agent and problem
    environment: names of environment variables that runs need, such as keys; they must be set, and
        workers on other machines get their values, which are never stored
    folder: the folder of the study's file, where files and modules that it names are looked up
        first; not part of the study itself
    """

    study_id: str
    title: str
    description: str = ""
    authors: tuple[str, ...] = ()
    rationale: str = ""
    tags: tuple[str, ...] = ()
    hypotheses: tuple[Hypothesis, ...] = ()
    factors: tuple[Factor, ...] = ()
    blocks: tuple[Block, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    design_spec: DesignSpec = field(default_factory=DesignSpec)
    outcomes: tuple[OutcomeSpec, ...] = ()
    analysis_plans: tuple[AnalysisPlan, ...] = ()
    run_budget: RunBudget = field(default_factory=RunBudget)
    seed_policy: SeedPolicy = field(default_factory=SeedPolicy)
    output_dir: Path | None = None
    provenance_metadata: Mapping[str, Any] = field(default_factory=dict)
    notes: str = ""
    problem_ids: tuple[str, ...] = ()
    agent_specs: tuple[str, ...] = ()
    agents: Mapping[str, AgentBinding] = field(default_factory=dict)
    problems: Dataset | Mapping[str, ProblemBinding] = field(default_factory=dict)
    condition_runner: str | None = None
    environment: tuple[str, ...] = field(default=(), metadata=fields.ONLY_IF_SET)
    folder: Path | None = field(
        default=None, compare=False, repr=False, metadata=fields.NOT_IN_FILES
    )

    def _derive(self) -> None:
        if self.output_dir is None:
            self._set("output_dir", Path("artifacts") / re.sub(r"[/\\]", "_", self.study_id))

    def _mistakes(self) -> Iterator[Mistake]:
        yield from self._blank_mistakes("study_id", "title")
        if self.condition_runner is not None and not all(self.condition_runner.partition(":")):
            yield Mistake(("condition_runner",), "expected module:callable")

    @classmethod
    def _older_form(
        cls, data: dict[str, Any], path: FieldPath, mistakes: list[Mistake]
    ) -> dict[str, Any]:
        for extension in extensions():
            data = extension.modernize(data, path, mistakes)
        problems = data.get("problems")
        # Read here, so that mistakes in it are those of a dataset.
        if isinstance(problems, Mapping) and isinstance(problems.get("from"), str):
            dataset = build_record(Dataset, problems, (*path, "problems"), mistakes)
            data = {**data, "problems": dataset}
        return data

    def set_folder(self, folder: Path | None) -> None:
        """Set the folder that paths are relative to, of a study that was just read."""
        self._set("folder", folder)
        if self.dataset is not None:
            self.dataset._set("folder", folder)

    @property
    def dataset(self) -> Dataset | None:
        """The dataset whose rows are the problems; None if there is none."""
        return self.problems if isinstance(self.problems, Dataset) else None

    @property
    def problem_names(self) -> tuple[str, ...]:
        """The names of the problems that it binds."""
        return tuple(self.problems) if self.dataset is None else self.dataset.table.names

    @property
    def names_problem_code(self) -> bool:
        """Whether problems, or their evaluators, are given as `module:callable`."""
        return bool(named_code(self.problems))

    @property
    def primary_outcomes(self) -> tuple[str, ...]:
        """The names of the primary outcomes."""
        return tuple(outcome.name for outcome in self.outcomes if outcome.primary)

    @property
    def secondary_outcomes(self) -> tuple[str, ...]:
        """The names of the other outcomes."""
        return tuple(outcome.name for outcome in self.outcomes if not outcome.primary)

    def _repr_html_(self) -> str:
        """Return the study for a notebook: factors, outcomes, claims."""
        return study_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the whole study as plain data; `from_dict` reads it back."""
        return {"schema_version": SCHEMA_VERSION, **dump_record(self)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Study:
        """Return the study in plain data; raises one `StudyError` with all mistakes."""
        mistakes: list[Mistake] = []
        study = build_record(cls, data, (), mistakes)
        if mistakes:
            raise StudyError(mistakes, source="study")
        return study

    def to_yaml(self, path: str | Path) -> Path:
        """Write the study as YAML and return the path."""
        from fairtrial.study.files.writing import write_study

        return write_study(self, path, "yaml")

    def to_json(self, path: str | Path) -> Path:
        """Write the study as JSON and return the path."""
        from fairtrial.study.files.writing import write_study

        return write_study(self, path, "json")

    @classmethod
    def from_yaml(cls, path: str | Path) -> Study:
        """Read a study from a YAML file; raises one `StudyError` with all mistakes."""
        from fairtrial.study.files.reading import load_study

        return load_study(path, "yaml")

    @classmethod
    def from_json(cls, path: str | Path) -> Study:
        """Read a study from a JSON file; raises one `StudyError` with all mistakes."""
        from fairtrial.study.files.reading import load_study

        return load_study(path, "json")
