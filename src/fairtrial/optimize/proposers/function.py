"""Candidates from a Python function of the user's own."""

from __future__ import annotations

import inspect
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairtrial.arena import Candidate, FileState, Workshop
from fairtrial.core import (
    NOT_IN_FILES,
    Broken,
    LabError,
    Mistake,
    PluginError,
    Record,
    StudyError,
    function_mistakes,
    on_one_line,
    plugins,
)
from fairtrial.optimize.proposals import Brief, Reply, Request, RequestKind, Usage
from fairtrial.sandbox import HostLock

LONGEST_LINE = 1_000
_WHAT = (
    "a Candidate, a diff as text, a mapping of paths to contents, a list of those, a Reply or None"
)


class _WrongError(Exception):
    """What a function returned is nothing that we know."""


@dataclass(frozen=True, slots=True)
class FunctionProposer(Record):
    """A Python function, called as ``function(brief, request)``; sync (in a thread) or async.

    It returns a `Candidate`, a diff as text, a mapping of paths to new contents, a list of those
    (one for each candidate that is wanted, None where there is none), a `Reply`, or None. What it
    raises is a refusal, unless it is a `LabError` or `Broken`: then it is nobody's answer.

    use: `module:callable`; looked for in the folder of the problem's file first
    kinds: which requests it takes; all of them unless said otherwise
    batch: whether one request may be about several candidates
    waits: whether it mostly waits for somebody else's answer, and uses next to no CPU here: then
        it may run while something is timed
    most_at_once: how many calls may be under way at the same time
    """

    use: str
    kinds: tuple[RequestKind, ...] = tuple(RequestKind)
    batch: bool = False
    waits: bool = False
    most_at_once: int = 1
    folder: Path | None = field(default=None, compare=False, repr=False, metadata=NOT_IN_FILES)

    name = "function"

    def _mistakes(self) -> Iterator[Mistake]:
        yield from function_mistakes(self.use, ("use",))
        if self.most_at_once < 1:
            yield Mistake(("most_at_once",), f"must be 1 or more, got {self.most_at_once}")

    @property
    def can_batch(self) -> bool:
        """Whether one request may be about several candidates."""
        return self.batch

    def can(self, kind: RequestKind) -> bool:
        """As its options say."""
        return kind in self.kinds

    def check_ceiling(self, max_cost: float | None) -> None:
        """Any ceiling will do: what it pays for it tells in its replies, or not at all."""

    def check_code(self, folder: Path | None = None) -> None:
        """Whether there is such a function, before anything starts: raises `StudyError`."""
        replace(self, folder=folder or self.folder).load()

    async def prepared(self, workshop: Workshop) -> _Ready:
        """The same with the function found."""
        target = replace(self, folder=self.folder or workshop.folder).load()
        return _Ready(self, target, workshop.lock)

    def load(self) -> Callable[[Brief, Request], Any]:
        """The function; raises `StudyError` where there is none that takes two arguments."""
        try:
            target = plugins.load_reference(self.use, self.folder)
        except PluginError as error:
            raise PluginError([each.under(("use",)) for each in error.mistakes]) from error
        try:
            inspect.signature(target).bind(None, None)
        except TypeError:
            message = f"{self.use} must take two arguments: brief and request"
            raise StudyError(Mistake(("use",), message)) from None
        except ValueError:  # one that doesn't say what it takes
            pass
        return target

    async def propose(self, brief: Brief, request: Request) -> Reply:
        """What the function returns, as a reply."""
        return await _Ready(self, self.load(), HostLock()).propose(brief, request)


@dataclass(frozen=True, slots=True)
class _Ready:
    """The function itself.

    options: what the study says of it
    target: what is called
    lock: the host's
    """

    options: FunctionProposer
    target: Callable[[Brief, Request], Any]
    lock: HostLock

    name = "function"

    @property
    def most_at_once(self) -> int:
        return self.options.most_at_once

    @property
    def can_batch(self) -> bool:
        return self.options.batch

    def can(self, kind: RequestKind) -> bool:
        return self.options.can(kind)

    async def propose(self, brief: Brief, request: Request) -> Reply:
        """What the function returns, as a reply; what it raises, as a refusal."""
        holding: AbstractAsyncContextManager[Any] = (
            nullcontext() if self.options.waits else self.lock.shared()
        )
        async with holding:
            began_s = time.monotonic()
            result, error = await self._call(brief, request)
            usage = Usage(self.options.use, seconds=time.monotonic() - began_s)
        if isinstance(error, LabError):
            raise error
        if isinstance(error, Broken):
            raise LabError(f"{self.options.use}: {error}") from error
        if error is not None:
            return Reply(usage=usage, refusal=f"{self.options.use} raised {_last_line(error)}")
        try:
            return self._read(result, request, usage)
        except _WrongError as wrong:
            return Reply(usage=usage, refusal=f"{self.options.use} returned {wrong}")

    async def _call(self, brief: Brief, request: Request) -> tuple[Any, BaseException | None]:
        """What it returns, or raises: no exception of its own may look like one of ours."""
        from anyio import to_thread

        def call() -> tuple[Any, BaseException | None]:
            try:
                return self.target(brief, request), None
            except (Exception, SystemExit) as error:
                return None, error

        if _is_async(self.target):
            result, error = call()
        else:
            result, error = await to_thread.run_sync(call)
        if error is None and inspect.isawaitable(result):
            return await _await(result)
        return result, error

    def _read(self, result: Any, request: Request, usage: Usage) -> Reply:
        if isinstance(result, Reply):
            self._count(result.candidates, request)
            return result
        given = result if isinstance(result, (list, tuple)) else [result]
        self._count(given, request)
        label = f"{self.options.use}-{request.line}.{request.step}"
        made = []
        for place, each in enumerate(given):
            name = label if len(given) == 1 else f"{label}-{place + 1}"
            parent = request.about[place].digest if place < len(request.about) else None
            blank = Candidate(name, files={}, parent=parent)
            made.append(_read_candidate(each, blank, self.options.use))
        if not any(made):
            return Reply(usage=usage, refusal=f"{self.options.use} has nothing to propose")
        return Reply(tuple(made), usage)

    def _count(self, given: Any, request: Request) -> None:
        if len(given) > request.wanted:
            raise _WrongError(f"{len(given)} candidates, and {request.wanted} wanted")


def _is_async(target: Any) -> bool:
    """Whether calling it does nothing yet: then a thread would only be in the way."""
    return any(map(inspect.iscoroutinefunction, (target, getattr(target, "__call__", None))))  # noqa: B004


async def _await(waited: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    try:
        return await waited, None
    except (Exception, SystemExit) as error:
        return None, error


def _last_line(error: BaseException) -> str:
    """As a traceback ends: the kind of exception and its message; and where it happened."""
    text = traceback.format_exception_only(error)[-1].strip()
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return on_one_line(text, LONGEST_LINE) + where


def _read_candidate(given: Any, like: Candidate, origin: str) -> Candidate | None:
    """What a function's value stands for; None for none."""
    like = replace(like, origin=f"function: {origin}")
    if given is None or isinstance(given, Candidate):
        return given
    if isinstance(given, str):
        return replace(like, diff=_encode(given)) if given else None
    if isinstance(given, bytes):
        return replace(like, diff=given) if given else None
    if isinstance(given, Mapping):
        files = {path: _read_file(path, content) for path, content in given.items()}
        return replace(like, files=files) if files else None
    raise _WrongError(f"a value of type {type(given).__qualname__}; expected {_WHAT}")


def _encode(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise _WrongError("a text that can't be written: half of a surrogate pair") from None


def _read_file(path: Any, content: Any) -> FileState:
    if not isinstance(path, str):
        raise _WrongError(f"a path of type {type(path).__qualname__}; expected text")
    if isinstance(content, str):
        content = _encode(content)
    if isinstance(content, FileState):
        return content
    if isinstance(content, bytes):
        return FileState(content)
    where = on_one_line(path, 200)
    raise _WrongError(
        f"a value of type {type(content).__qualname__} for {where}; expected its new text"
    )
