"""The proposer `function`: candidates from a Python function of the user."""

from __future__ import annotations

import inspect
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fairtrial.arena import Candidate, FileState, Workshop
from fairtrial.core import (
    Broken,
    LabError,
    Mistake,
    PluginError,
    Record,
    StudyError,
    fields,
    on_one_line,
    plugins,
    syntax_checks,
)
from fairtrial.optimize.proposals import Brief, Reply, Request, RequestKind, Usage
from fairtrial.optimize.proposer import PreflightContext, Proposer
from fairtrial.sandbox import HostLock

LONGEST_LINE = 1_000
ProposalFunction = Callable[[Brief, Request], Any]
_EXPECTED = (
    "a Candidate, a diff as text, a mapping of paths to contents, a list of those, a Reply or None"
)


class _UnusableValue(Exception):  # noqa: N818
    """The function returned a value that stands for no candidate."""


@dataclass(frozen=True, slots=True)
class FunctionProposer(Proposer, Record):
    """A Python function, called as ``function(brief, request)``; sync (in a thread) or async.

    It returns a `Candidate`, a diff as text, a mapping of paths to new contents, a list of those
    (one for each candidate that is wanted, None where there is none), a `Reply`, or None. What it
    raises is a refusal, unless it is a `LabError` or `Broken`: these end the optimization.

    use: `module:callable`; looked for in the folder of the problem's file first
    kinds: which requests it takes; all of them unless said otherwise
    batch: whether one request may be about several candidates
    waits: whether it mostly waits for an answer from elsewhere and uses next to no CPU here: then
        it may run while something is timed
    most_at_once: how many calls may be under way at the same time
    """

    use: str
    kinds: tuple[RequestKind, ...] = tuple(RequestKind)
    batch: bool = False
    waits: bool = False
    most_at_once: int = 1
    folder: Path | None = field(
        default=None, compare=False, repr=False, metadata=fields.NOT_IN_FILES
    )

    name = "function"

    def _mistakes(self) -> Iterator[Mistake]:
        yield from syntax_checks.function_mistakes(self.use, ("use",))
        if self.most_at_once < 1:
            yield Mistake(("most_at_once",), f"must be 1 or more, got {self.most_at_once}")

    @property
    def can_batch(self) -> bool:
        """Whether one request may be about several candidates."""
        return self.batch

    def can(self, kind: RequestKind) -> bool:
        """Return whether the options name this kind of request."""
        return kind in self.kinds

    def preflight(self, context: PreflightContext) -> None:
        """Raise a `StudyError` if the function can't be imported or takes other arguments."""
        if context.folder is not None and context.may_import:
            self._within(context.folder).load()

    async def open(self, workshop: Workshop) -> OpenFunctionProposer:
        """Return the proposer with its function imported."""
        return self._open(self._within(workshop.folder).load(), workshop.lock)

    def _open(self, target: ProposalFunction, lock: HostLock) -> OpenFunctionProposer:
        return OpenFunctionProposer(
            self.use, target, lock, self.kinds, self.batch, self.waits, self.most_at_once
        )

    def _within(self, folder: Path) -> FunctionProposer:
        return self if self.folder else replace(self, folder=folder)

    def load(self) -> ProposalFunction:
        """Import the function; raise a `StudyError` unless it takes two arguments."""
        try:
            target = plugins.load_reference(self.use, self.folder)
        except PluginError as error:
            raise PluginError([mistake.under(("use",)) for mistake in error.mistakes]) from error
        try:
            inspect.signature(target).bind(None, None)
        except TypeError:
            message = f"{self.use} must take two arguments: brief and request"
            raise StudyError(Mistake(("use",), message)) from None
        except ValueError:  # its signature isn't known
            pass
        return target

    async def propose(self, brief: Brief, request: Request) -> Reply:
        """Import the function, call it, and return its value as a reply."""
        return await self._open(self.load(), HostLock()).propose(brief, request)


@dataclass(frozen=True, slots=True)
class ObjectProposer(Proposer):
    """A function that is given as an object, such as a closure; called as a `FunctionProposer`'s.

    An async one is taken to wait for answers from elsewhere; see `FunctionProposer.waits`.

    target: the function
    """

    target: ProposalFunction

    name = "function"

    async def open(self, workshop: Workshop) -> OpenFunctionProposer:
        """Return the proposer with the arena's host lock."""
        return self._open(workshop.lock)

    async def propose(self, brief: Brief, request: Request) -> Reply:
        """Call the function, and return its value as a reply."""
        return await self._open(HostLock()).propose(brief, request)

    def _open(self, lock: HostLock) -> OpenFunctionProposer:
        label = getattr(self.target, "__name__", type(self.target).__name__)
        return OpenFunctionProposer(label, self.target, lock, waits=_is_async(self.target))


@dataclass(frozen=True, slots=True)
class OpenFunctionProposer(Proposer):
    """A function proposer whose function is imported.

    label: what messages and names of candidates call it
    target: the function
    lock: the host lock, shared while the function computes
    kinds, batch, waits, most_at_once: as of `FunctionProposer`
    """

    label: str
    target: ProposalFunction
    lock: HostLock
    kinds: tuple[RequestKind, ...] = tuple(RequestKind)
    batch: bool = False
    waits: bool = False
    most_at_once: int = 1

    name = "function"

    @property
    def can_batch(self) -> bool:
        """Whether one request may be about several candidates."""
        return self.batch

    def can(self, kind: RequestKind) -> bool:
        """Return whether it takes this kind of request."""
        return kind in self.kinds

    async def propose(self, brief: Brief, request: Request) -> Reply:
        """Call the function; return its value as a reply, or its exception as a refusal."""
        lease: AbstractAsyncContextManager[Any] = (
            nullcontext() if self.waits else self.lock.shared()
        )
        async with lease:
            began_s = time.monotonic()
            value, error = await self._call(brief, request)
            usage = Usage(self.label, seconds=time.monotonic() - began_s)
        if isinstance(error, LabError):
            raise error
        if isinstance(error, Broken):
            raise LabError(f"{self.label}: {error}") from error
        if error is not None:
            return Reply(usage=usage, refusal=f"{self.label} raised {_last_line(error)}")
        try:
            return self._read(value, request, usage)
        except _UnusableValue as unusable:
            return Reply(usage=usage, refusal=f"{self.label} returned {unusable}")

    async def _call(self, brief: Brief, request: Request) -> tuple[Any, BaseException | None]:
        """Return the function's value, or its exception.

        Exceptions are returned, since one of the function's could look like one of fairtrial's.
        """
        from anyio import to_thread

        def call() -> tuple[Any, BaseException | None]:
            try:
                return self.target(brief, request), None
            except (Exception, SystemExit) as error:
                return None, error

        if _is_async(self.target):
            value, error = call()
        else:
            value, error = await to_thread.run_sync(call)
        if error is None and inspect.isawaitable(value):
            return await _await(value)
        return value, error

    def _read(self, value: Any, request: Request, usage: Usage) -> Reply:
        if isinstance(value, Reply):
            _refuse_surplus(value.candidates, request)
            return value
        values = value if isinstance(value, (list, tuple)) else [value]
        _refuse_surplus(values, request)
        label = f"{self.label}-{request.lineage}.{request.step}"
        candidates = []
        for place, item in enumerate(values):
            name = label if len(values) == 1 else f"{label}-{place + 1}"
            parent = request.about[place].digest if place < len(request.about) else None
            template = Candidate(name, files={}, parent=parent, origin=f"function: {self.label}")
            candidates.append(_read_candidate(item, template))
        if not any(candidates):
            return Reply(usage=usage, refusal=f"{self.label} has nothing to propose")
        return Reply(tuple(candidates), usage)


def _refuse_surplus(candidates: Sequence[Any], request: Request) -> None:
    if len(candidates) > request.wanted:
        raise _UnusableValue(f"{len(candidates)} candidates, and {request.wanted} wanted")


def _is_async(target: Any) -> bool:
    """Return whether calling it only makes a coroutine, so that no thread is needed."""
    return any(map(inspect.iscoroutinefunction, (target, getattr(target, "__call__", None))))  # noqa: B004


async def _await(awaitable: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    try:
        return await awaitable, None
    except (Exception, SystemExit) as error:
        return None, error


def _last_line(error: BaseException) -> str:
    """Return the last line of a traceback, and the file and line of the innermost frame."""
    text = traceback.format_exception_only(error)[-1].strip()
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
    return on_one_line(text, LONGEST_LINE) + where


def _read_candidate(value: Any, template: Candidate) -> Candidate | None:
    """Return the candidate that a value stands for; None for none.

    template: a candidate with the name, parent and origin to use
    """
    if value is None or isinstance(value, Candidate):
        return value
    if isinstance(value, str):
        return replace(template, diff=_encode(value)) if value else None
    if isinstance(value, bytes):
        return replace(template, diff=value) if value else None
    if isinstance(value, Mapping):
        files = {path: _read_file(path, content) for path, content in value.items()}
        return replace(template, files=files) if files else None
    raise _UnusableValue(f"a value of type {type(value).__qualname__}; expected {_EXPECTED}")


def _encode(text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise _UnusableValue("a text that can't be written: half of a surrogate pair") from None


def _read_file(path: Any, content: Any) -> FileState:
    if not isinstance(path, str):
        raise _UnusableValue(f"a path of type {type(path).__qualname__}; expected text")
    if isinstance(content, str):
        content = _encode(content)
    if isinstance(content, FileState):
        return content
    if isinstance(content, bytes):
        return FileState(content)
    where = on_one_line(path, 200)
    raise _UnusableValue(
        f"a value of type {type(content).__qualname__} for {where}; expected its new text"
    )
