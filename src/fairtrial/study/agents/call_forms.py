"""Call an agent according to its signature, which is inspected once, when the agent is bound.

1. A callable with one parameter gets the `Task`. So does a parameter named `task`; required
   parameters beside it that have one of the keyword names are passed, too.
2. A callable that has any of the keyword names among its parameters gets those, by name.
3. A callable with two positional parameters of other names gets the problem and the seed.
4. An object with a `run` method is called through that method.

The keyword names are those of `fairtrial.study.extensions.keyword_arguments`. A required parameter
without a value is a mistake, reported before anything runs. Optional parameters with other names
keep their defaults.
"""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

from fairtrial.core import Mistake, StudyError, did_you_mean
from fairtrial.study.agents.task import Task
from fairtrial.study.extensions import keyword_arguments
from fairtrial.study.model.conditions import Condition

Call = Callable[[Task], Any]
_async_calls: weakref.WeakSet[Call] = weakref.WeakSet()
"""The calls of coroutine functions."""
NAMED_KIND, VARIADIC_KINDS = (
    Parameter.POSITIONAL_OR_KEYWORD,
    (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD),
)
FACTORY_NAMES = ("condition", "_condition")


def _problem(task: Task) -> Any:
    return task.problem


def _seed(task: Task) -> int:
    return task.run_spec.seed


def _task_itself(task: Task) -> Task:
    return task


@dataclass(frozen=True, slots=True)
class ForCondition:
    """A function that makes a new agent for each run from the run's condition.

    factory: takes the condition, returns an agent of any form
    """

    factory: Callable[..., Any]

    def __call__(self, condition: Condition) -> Any:
        return self.factory(condition)


def for_condition(factory: Callable[..., Any]) -> ForCondition:
    """Bind a function that makes an agent, rather than an agent.

    `factory(condition)` is called for each run, with the run's condition; it returns an agent of
    any form.
    """
    if not callable(factory):
        raise StudyError(f"for_condition takes a function, not {type(factory).__name__}")
    return ForCondition(factory)


def bind_agent(agent: Any, options: Mapping[str, Any] | None = None) -> Call:
    """Return a function that calls the agent with a task and returns its output or an awaitable.

    Raises `StudyError` if the value is no agent or can't be called with a task.

    options: keyword arguments for the agent, or for the constructor of an agent that is a class
    """
    if isinstance(agent, ForCondition):
        factory = preset(agent.factory, options)
        return lambda task: bind_agent(factory(task.condition))(task)
    if isinstance(agent, type):
        agent, options = construct(agent, options), None
    method = getattr(agent, "run", None)
    target = method if callable(method) else agent
    if not callable(target):
        raise StudyError(
            Mistake(
                (),
                f"a value of type {type(agent).__qualname__} is no agent",
                "an agent is a callable that takes a Task, or has a `run` method that does",
            )
        )
    return _adapt(preset(target, options), is_method=target is not agent)


def construct(cls: type[Any], options: Mapping[str, Any] | None) -> Any:
    """Return an instance of a class that was bound as an agent or a problem.

    Raises `StudyError` if an option is unknown or missing, or the constructor fails.
    """
    options = options or {}
    check_options(cls, options)
    missing = [
        name
        for name, parameter in (_signature(cls) or {}).items()
        if parameter.default is Parameter.empty
        and parameter.kind not in VARIADIC_KINDS
        and name not in options
    ]
    if missing:
        raise StudyError(
            Mistake(
                (),
                f"{cls.__qualname__} is a class, and can't be made without {', '.join(missing)}",
                "give an instance of it, or options; for_condition(...) makes one for each run",
            )
        )
    try:
        return cls(**options)
    except StudyError:
        raise
    except Exception as error:
        message = f"{cls.__qualname__} can't be made: {type(error).__name__}: {error}"
        raise StudyError(Mistake((), message)) from error


def preset(target: Callable[..., Any], options: Mapping[str, Any] | None) -> Callable[..., Any]:
    """Return `target` with options filled in; `StudyError` for options that it doesn't take."""
    if not options:
        return target
    check_options(target, options)
    return functools.partial(target, **options)


def check_options(target: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise one `StudyError` that names all options that `target` has no parameter for."""
    parameters = _signature(target)
    if parameters is None or any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values()):
        return
    names = [
        name
        for name, parameter in parameters.items()
        if parameter.kind in (NAMED_KIND, Parameter.KEYWORD_ONLY)
    ]
    mistakes = [
        Mistake(
            ("options", name),
            f"{callable_name(target)} has no parameter of that name",
            did_you_mean(name, names),
        )
        for name in options
        if name not in names
    ]
    if mistakes:
        raise StudyError(mistakes)


def callable_name(target: Any) -> str:
    """Return the name of a callable for messages."""
    while isinstance(target, functools.partial):
        target = target.func
    return str(getattr(target, "__qualname__", type(target).__qualname__))


def _signature(target: Callable[..., Any]) -> Mapping[str, Parameter] | None:
    try:
        return inspect.signature(target).parameters
    except (TypeError, ValueError):
        return None


def _adapt(target: Callable[..., Any], *, is_method: bool) -> Call:
    """Return a function of a task that calls `target` with the arguments it takes."""
    parameters = _signature(target)
    if parameters is None:
        raise StudyError(
            Mistake(
                (),
                f"{callable_name(target)} doesn't say which parameters it takes",
                "wrap it: def agent(task): ...",
            )
        )
    preset_names = _preset_names(target)
    unset = {name: value for name, value in parameters.items() if name not in preset_names}
    named = _assignable_parameters(unset)
    kinds = {parameter.kind for parameter in unset.values()}
    if not is_method:
        _refuse_factory(target, named)
    arguments = _choose_arguments(target, named, kinds)
    first, *rest = arguments
    if arguments[first] is _task_itself and not rest and _takes_first_argument(first, named):
        return target
    return _make_call(target, named, arguments)


def _takes_first_argument(name: str, named: Mapping[str, Parameter]) -> bool:
    """Return whether a single positional argument is assigned to that parameter."""
    if name == "*":
        return True
    return name == next(iter(named)) and named[name].kind is not Parameter.KEYWORD_ONLY


def _assignable_parameters(parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Return the parameters that can be passed individually.

    Positional-only parameters after one that keeps its default can't be.
    """
    named: dict[str, Parameter] = {}
    has_gap = False
    for name, parameter in parameters.items():
        is_positional = parameter.kind is Parameter.POSITIONAL_ONLY
        if parameter.kind in VARIADIC_KINDS or (is_positional and has_gap):
            continue
        named[name] = parameter
        has_default = parameter.default is not Parameter.empty
        has_gap |= is_positional and has_default and name not in keyword_arguments()
    return named


def _required_names(named: Mapping[str, Parameter]) -> list[str]:
    return [name for name, value in named.items() if value.default is Parameter.empty]


def _preset_names(target: Callable[..., Any]) -> set[str]:
    """Return the keyword arguments that `functools.partial` has filled in; they stay."""
    names: set[str] = set()
    while isinstance(target, functools.partial):
        names |= target.keywords.keys()
        target = target.func
    return names


def _refuse_factory(target: Callable[..., Any], named: Mapping[str, Parameter]) -> None:
    """Raise `StudyError` for a function of a condition alone: it may be an agent or make one."""
    candidates = _required_names(named) or list(named)
    only = candidates[0] if len(candidates) == 1 else None
    # A function that also takes one of the keywords can only be an agent.
    if only in FACTORY_NAMES and not named.keys() & {*keyword_arguments(), "task"} - {only}:
        raise StudyError(
            Mistake(
                (),
                f"{callable_name(target)}({only}) may be an agent, or may make one",
                "if it makes one for each condition: for_condition(...); "
                "if it is one: def agent(task), and task.condition",
            )
        )


def _choose_arguments(
    target: Callable[..., Any], named: Mapping[str, Parameter], kinds: set[Any]
) -> dict[str, Callable[[Task], Any]]:
    """Return what each parameter gets; `*` stands for the first of `*args`.

    Raises `StudyError` if a required parameter gets nothing, or no parameter takes the task.
    """
    keywords = keyword_arguments()
    required = _required_names(named)
    candidates = required or list(named)
    if "task" in named:
        arguments: dict[str, Callable[[Task], Any]] = {"task": _task_itself}
        arguments |= {name: keywords[name] for name in required if name in keywords}
    elif len(candidates) == 1 and candidates[0] not in keywords:
        return {candidates[0]: _task_itself}
    elif named.keys() & keywords.keys():
        arguments = {name: keywords[name] for name in named if name in keywords}
    elif len(required) == 2 and all(named[n].kind is not Parameter.KEYWORD_ONLY for n in required):
        return dict(zip(required, (_problem, _seed), strict=True))
    elif not required and Parameter.VAR_POSITIONAL in kinds:
        return {"*": _task_itself}
    elif not required and Parameter.VAR_KEYWORD in kinds:
        return dict(keywords)
    else:
        arguments = {}
    missing = [name for name in required if name not in arguments]
    if missing or not arguments:
        reason = f"nothing fills {', '.join(missing)}" if missing else "it takes no task"
        raise StudyError(
            Mistake(
                (),
                f"{callable_name(target)} can't be called: {reason}",
                f"take one Task, or some of {', '.join(keywords)}; "
                "others need a default, or a value under `options`",
            )
        )
    return arguments


def _like(target: Callable[..., Any]) -> Callable[[Call], Call]:
    """Return a decorator that marks a call as one of a coroutine function, if `target` is one."""
    function = target if inspect.isroutine(target) else getattr(target, "__call__", target)  # noqa: B004

    def mark(call: Call) -> Call:
        if inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(function):
            _async_calls.add(call)
        return call

    return mark


def returns_at_once(call: Call) -> bool:
    """Return whether a call only makes a coroutine, so that it can't block an event loop."""
    return call in _async_calls


def _make_call(
    target: Callable[..., Any],
    named: Mapping[str, Parameter],
    arguments: Mapping[str, Callable[[Task], Any]],
) -> Call:
    """Return a function of a task that calls `target` with these arguments."""
    positional_names = [name for name in arguments if _is_positional(name, named)]
    positional = tuple(arguments[name] for name in positional_names)
    by_name = tuple((name, get) for name, get in arguments.items() if name not in positional_names)

    @_like(target)
    def call(task: Task) -> Any:
        return target(
            *[get(task) for get in positional], **{name: get(task) for name, get in by_name}
        )

    return call


def _is_positional(name: str, named: Mapping[str, Parameter]) -> bool:
    """Return whether a parameter is passed by position: it must be, or its name is unknown."""
    if name not in named or named[name].kind is Parameter.KEYWORD_ONLY:
        return False
    return named[name].kind is Parameter.POSITIONAL_ONLY or name not in {
        *keyword_arguments(),
        "task",
    }
