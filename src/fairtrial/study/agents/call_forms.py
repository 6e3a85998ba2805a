"""How an agent is called: decided once, by its signature, when it is bound.

1. A callable with one parameter gets the `Task`. So does a parameter named `task`, and with it
   whatever of the ten keywords the callable can't do without.
2. A callable that has any of the ten keywords among its parameters gets those, by name.
3. A callable with two positional parameters of other names gets the problem and the seed.
4. An object with a `run` method is called by that.

A parameter that nothing fills is a mistake, found before anything runs. Parameters with defaults
that are none of the ten keep them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

from fairtrial.core import Mistake, StudyError, did_you_mean
from fairtrial.study.agents.task import Task
from fairtrial.study.extensions import keyword_arguments
from fairtrial.study.model.conditions import Condition

Call = Callable[[Task], Any]
NAMED, VARIADIC = Parameter.POSITIONAL_OR_KEYWORD, (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
FACTORY_NAMES = ("condition", "_condition")


def _problem(task: Task) -> Any:
    return task.problem


def _seed(task: Task) -> int:
    return task.run_spec.seed


def _itself(task: Task) -> Task:
    return task


@dataclass(frozen=True, slots=True)
class ForCondition:
    """An agent that is made anew for each run, by a function of the run's condition."""

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
    """A function from task to what the agent returns, or to an awaitable of it.

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
    return _fit(preset(target, options), is_method=target is not agent)


def construct(cls: type[Any], options: Mapping[str, Any] | None) -> Any:
    """An instance of a class that stands for an agent or a problem."""
    options = options or {}
    check_options(cls, options)
    missing = [
        name
        for name, each in (_signature(cls) or {}).items()
        if each.default is Parameter.empty and each.kind not in VARIADIC and name not in options
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
    """`target` with options filled in, checked against its parameters."""
    if not options:
        return target
    check_options(target, options)
    return functools.partial(target, **options)


def check_options(target: Callable[..., Any], options: Mapping[str, Any]) -> None:
    """Raise all options that `target` has no parameter for."""
    parameters = _signature(target)
    if parameters is None or any(p.kind is Parameter.VAR_KEYWORD for p in parameters.values()):
        return
    known = [
        name for name, each in parameters.items() if each.kind in (NAMED, Parameter.KEYWORD_ONLY)
    ]
    unknown = [
        Mistake(
            ("options", name),
            f"{name_of(target)} has no parameter of that name",
            did_you_mean(name, known),
        )
        for name in options
        if name not in known
    ]
    if unknown:
        raise StudyError(unknown)


def name_of(target: Any) -> str:
    """What to call a callable in a message."""
    while isinstance(target, functools.partial):
        target = target.func
    return str(getattr(target, "__qualname__", type(target).__qualname__))


def _signature(target: Callable[..., Any]) -> Mapping[str, Parameter] | None:
    try:
        return inspect.signature(target).parameters
    except (TypeError, ValueError):
        return None


def _fit(target: Callable[..., Any], *, is_method: bool) -> Call:
    """`target` as a function of a task."""
    parameters = _signature(target)
    if parameters is None:
        raise StudyError(
            Mistake(
                (),
                f"{name_of(target)} doesn't say which parameters it takes",
                "wrap it: def agent(task): ...",
            )
        )
    settled = _settled(target)
    open_ones = {name: each for name, each in parameters.items() if name not in settled}
    named = _reachable(open_ones)
    kinds = {each.kind for each in open_ones.values()}
    if not is_method:
        _refuse_factory(target, named)
    fill = _fill(target, named, kinds)
    first, *others = fill
    if fill[first] is _itself and not others and _comes_first(first, named):
        return target
    return _caller(target, named, fill)


def _comes_first(name: str, named: Mapping[str, Parameter]) -> bool:
    """Whether a single argument ends up in that parameter."""
    if name == "*":
        return True
    return name == next(iter(named)) and named[name].kind is not Parameter.KEYWORD_ONLY


def _reachable(parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """The parameters that can be given one by one.

    Not those behind a positional-only one that keeps its default.
    """
    named: dict[str, Parameter] = {}
    is_cut = False
    for name, each in parameters.items():
        by_place = each.kind is Parameter.POSITIONAL_ONLY
        if each.kind in VARIADIC or (by_place and is_cut):
            continue
        named[name] = each
        is_cut |= (
            by_place and each.default is not Parameter.empty and name not in keyword_arguments()
        )
    return named


def _required(named: Mapping[str, Parameter]) -> list[str]:
    return [name for name, each in named.items() if each.default is Parameter.empty]


def _settled(target: Callable[..., Any]) -> set[str]:
    """The keyword arguments that `functools.partial` has filled in: nobody overrides those."""
    names: set[str] = set()
    while isinstance(target, functools.partial):
        names |= target.keywords.keys()
        target = target.func
    return names


def _refuse_factory(target: Callable[..., Any], named: Mapping[str, Parameter]) -> None:
    candidates = _required(named) or list(named)
    only = candidates[0] if len(candidates) == 1 else None
    # One with further keywords of ours can only be an agent.
    if only in FACTORY_NAMES and not named.keys() & {*keyword_arguments(), "task"} - {only}:
        raise StudyError(
            Mistake(
                (),
                f"{name_of(target)}({only}) may be an agent, or may make one",
                "if it makes one for each condition: for_condition(...); "
                "if it is one: def agent(task), and task.condition",
            )
        )


def _fill(
    target: Callable[..., Any], named: Mapping[str, Parameter], kinds: set[Any]
) -> dict[str, Callable[[Task], Any]]:
    """What each parameter gets; `*` stands for the first of `*args`."""
    required = _required(named)
    candidates = required or list(named)
    if "task" in named:
        fill: dict[str, Callable[[Task], Any]] = {"task": _itself}
        fill |= {
            name: keyword_arguments()[name] for name in required if name in keyword_arguments()
        }
    elif len(candidates) == 1 and candidates[0] not in keyword_arguments():
        return {candidates[0]: _itself}
    elif named.keys() & keyword_arguments().keys():
        fill = {name: keyword_arguments()[name] for name in named if name in keyword_arguments()}
    elif len(required) == 2 and all(named[n].kind is not Parameter.KEYWORD_ONLY for n in required):
        return dict(zip(required, (_problem, _seed), strict=True))
    elif not required and Parameter.VAR_POSITIONAL in kinds:
        return {"*": _itself}
    elif not required and Parameter.VAR_KEYWORD in kinds:
        return dict(keyword_arguments())
    else:
        fill = {}
    unfilled = [name for name in required if name not in fill]
    if unfilled or not fill:
        what = f"nothing fills {', '.join(unfilled)}" if unfilled else "it takes no task"
        raise StudyError(
            Mistake(
                (),
                f"{name_of(target)} can't be called: {what}",
                f"take one Task, or some of {', '.join(keyword_arguments())}; "
                "others need a default, or a value under `options`",
            )
        )
    return fill


def _caller(
    target: Callable[..., Any],
    named: Mapping[str, Parameter],
    fill: Mapping[str, Callable[[Task], Any]],
) -> Call:
    """Calls `target` with what its parameters get."""
    by_place = [name for name in fill if _is_by_place(name, named)]
    first = tuple(fill[name] for name in by_place)
    others = tuple((name, make) for name, make in fill.items() if name not in by_place)

    def call(task: Task) -> Any:
        return target(
            *[make(task) for make in first], **{name: make(task) for name, make in others}
        )

    return call


def _is_by_place(name: str, named: Mapping[str, Parameter]) -> bool:
    """Whether a parameter is given by its place: it must be, or its name means nothing to us."""
    if name not in named or named[name].kind is Parameter.KEYWORD_ONLY:
        return False
    return named[name].kind is Parameter.POSITIONAL_ONLY or name not in {
        *keyword_arguments(),
        "task",
    }
