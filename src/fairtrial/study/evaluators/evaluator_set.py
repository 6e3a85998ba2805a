"""The evaluators of a problem as one: built from their names, their scores as rows."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairtrial.core import Mistake, PluginError, StudyError, build_record, plugins
from fairtrial.study.evaluators.case import EvaluationCase, EvaluationRun, Evaluator
from fairtrial.study.model.problems import EvaluatorBinding
from fairtrial.study.model.study import RunBudget
from fairtrial.study.problems.packet import ProblemPacket
from fairtrial.study.problems.scoring import DEFAULT_METRIC, Row, read_verdict

EXTRA_ARGUMENTS = ("reference", "problem", "output", "row")
"""What an evaluator function may take beside the answer, by name."""


@dataclass(frozen=True, slots=True)
class NamedEvaluator:
    """An evaluator with the names that its rows get.

    name: the name of its metric; empty for a function, whose own names stay
    use: what it is, for the column `evaluator_id`
    evaluate: returns its verdict on a case
    needs_reference: whether it can judge nothing without a reference
    """

    name: str
    use: str
    evaluate: Callable[[EvaluationCase], Any]
    needs_reference: bool = False


@dataclass(frozen=True, slots=True)
class EvaluatorSet:
    """The evaluators of a problem, called one after the other."""

    evaluators: tuple[NamedEvaluator, ...]

    def __call__(self, answer: Any) -> Any:
        """Refuse: evaluators that a study names need problem and output, not the answer alone."""
        raise TypeError("this problem's evaluators need its reference, which agents don't have")

    @property
    def needs_reference(self) -> bool:
        """Whether one of them can judge nothing without a reference."""
        return any(evaluator.needs_reference for evaluator in self.evaluators)

    def require_reference(self, has_reference: bool) -> None:
        """Raise `StudyError` if an evaluator needs a reference, and problems have none."""
        for evaluator in self.evaluators:
            if evaluator.needs_reference and not has_reference:
                message = f"'{evaluator.use}' needs the right answer"
                hint = "`reference` says it: a column of a dataset, or the answer itself"
                raise StudyError(Mistake(("evaluator",), message, hint))

    def evaluate(
        self, problem: ProblemPacket, output: Mapping[str, Any], run: EvaluationRun | None
    ) -> list[Row] | Awaitable[list[Row]]:
        """Return the rows of all evaluators, or an awaitable of them."""
        case = EvaluationCase(problem, output, run)
        verdicts = [evaluator.evaluate(case) for evaluator in self.evaluators]
        if any(inspect.isawaitable(verdict) for verdict in verdicts):
            return self._await_rows(verdicts)
        return self._rows(verdicts)

    async def _await_rows(self, verdicts: Sequence[Any]) -> list[Row]:
        return self._rows(
            [await verdict if inspect.isawaitable(verdict) else verdict for verdict in verdicts]
        )

    def _rows(self, verdicts: Sequence[Any]) -> list[Row]:
        pairs = zip(self.evaluators, verdicts, strict=True)
        return [
            _renamed(row, evaluator)
            for evaluator, verdict in pairs
            for row in read_verdict(verdict)
        ]


def _renamed(row: Row, evaluator: NamedEvaluator) -> Row:
    """Return a row with the evaluator's name: that of its main metric, else in front of it."""
    metric = str(row["metric_name"])
    if evaluator.name:
        metric = evaluator.name if metric == DEFAULT_METRIC else f"{evaluator.name}_{metric}"
    return {**row, "metric_name": metric, "evaluator_id": evaluator.use}


def build_evaluators(
    bindings: Sequence[EvaluatorBinding], folder: Path | None, budget: RunBudget | None = None
) -> Callable[[Any], Any] | None:
    """Return the evaluators that a study names as one, or a function of the answer as it is.

    Raises one `StudyError` with all mistakes.

    folder: the study's folder
    budget: the limits of the study, for evaluators that check them before anything runs
    """
    if not bindings:
        return None
    mistakes: list[Mistake] = []
    built: list[NamedEvaluator] = []
    for index, binding in enumerate(bindings):
        at = ("evaluator",) if len(bindings) == 1 else ("evaluator", index)
        try:
            made = _build(binding, folder, budget)
        except StudyError as error:
            mistakes.extend(mistake.under(at) for mistake in error.mistakes)
            continue
        if not isinstance(made, NamedEvaluator):
            if len(bindings) == 1:
                return made
            made = NamedEvaluator("", binding.use, _of_case(made, ()))
        built.append(made)
    names = [evaluator.name for evaluator in built if evaluator.name]
    mistakes += [
        Mistake(("evaluator",), f"two evaluators are called '{name}'", "give one a `name`")
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    if mistakes:
        raise StudyError(mistakes)
    return EvaluatorSet(tuple(built))


def _build(
    binding: EvaluatorBinding, folder: Path | None, budget: RunBudget | None
) -> NamedEvaluator | Callable[[Any], Any]:
    if ":" in binding.use:
        function = plugins.load_reference(binding.use, folder)
        extra = _extra_arguments(function, binding)
        if not (extra or binding.options or binding.name):
            return function
        return NamedEvaluator(binding.name, binding.use, _of_case(function, extra, binding.options))
    evaluator = _load_plugin(binding).in_folder(folder)
    if budget is not None:
        try:
            evaluator.check_start(budget)
        except StudyError as error:
            raise StudyError([mistake.under(("options",)) for mistake in error.mistakes]) from error
    name = binding.name or binding.use
    return NamedEvaluator(name, binding.use, evaluator.evaluate, evaluator.needs_reference)


def _load_plugin(binding: EvaluatorBinding) -> Any:
    try:
        plugin = plugins.load("evaluators", binding.use)
    except PluginError as error:
        more = "a function of your own is written module:callable"
        raise PluginError(
            [Mistake((), item.message, f"{item.hint}; {more}") for item in error.mistakes]
        ) from error
    mistakes: list[Mistake] = []
    evaluator = build_record(plugin, binding.options, ("options",), mistakes)
    if mistakes:
        raise StudyError(mistakes)
    if not isinstance(evaluator, Evaluator):
        raise PluginError(
            Mistake((), f"'{binding.use}' is no fairtrial.study.evaluators.Evaluator")
        )
    return evaluator


def _extra_arguments(function: Callable[..., Any], binding: EvaluatorBinding) -> tuple[str, ...]:
    """Return which of `EXTRA_ARGUMENTS` a function takes beside the answer."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return ()
    own = parameters[1:]
    unfilled = [
        parameter.name
        for parameter in own
        if parameter.default is parameter.empty
        and parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
        and parameter.name not in (*EXTRA_ARGUMENTS, *binding.options)
    ]
    if unfilled:
        known = ", ".join(EXTRA_ARGUMENTS)
        message = f"{binding.use} takes '{unfilled[0]}', which nothing gives"
        hint = f"an evaluator takes the answer, then any of {known}, and its `options`"
        raise StudyError(Mistake((), message, hint))
    return tuple(item.name for item in own if item.name in EXTRA_ARGUMENTS)


def _of_case(
    function: Callable[..., Any], extra: Sequence[str], options: Mapping[str, Any] | None = None
) -> Callable[[EvaluationCase], Any]:
    def evaluate(case: EvaluationCase) -> Any:
        given = {name: getattr(case, name) for name in extra}
        return function(case.answer, **given, **(options or {}))

    return evaluate
