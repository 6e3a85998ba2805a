"""All workers of a study, and the one loop that serves them.

No threads: a selector tells which pipe has something to say, and twenty times a second, or when
a run's time is up, the loop looks at the workers themselves.
"""

from __future__ import annotations

import errno
import selectors
import time
from collections.abc import Callable, Iterable, Iterator

from fairtrial.core import LabError
from fairtrial.study.model.runs import Emitted, FailureKind, Finished, Noted, Outcome, Report
from fairtrial.study.protocols import Work
from fairtrial.study.runner.executors.assignment_source import Source
from fairtrial.study.runner.executors.dispatch import Team
from fairtrial.study.runner.executors.frames import (
    EVENT,
    NOTE,
    READY,
    GarbledError,
    dump_assignment,
    load_outcome,
)
from fairtrial.study.runner.executors.pipes import Pipe
from fairtrial.study.runner.executors.start_methods import signals_held
from fairtrial.study.runner.executors.worker_process import (
    START_LIMIT_S,
    Child,
    tell_death,
)

LONGEST_SILENCE_S = 0.05
DYING_LOOK_S = 0.002
CUT_OFF_S = 1.0
"""How long a worker may live on after it has closed its end of the pipe."""
END_S = 5.0
"""How long to wait for killed workers to be gone."""
MOST_STILLBORN = 3
MOST_REFUSALS, REFUSAL_S = 50, 0.02
SCARCE = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
Start = Callable[[Iterable[int]], Child]
"""Starts a worker, which must not hold these files of its parent's."""


class Crew(Team):
    """Worker processes, and the pipes to them."""

    def __init__(self, work: Work, source: Source, slots: int, start: Start) -> None:
        super().__init__(source)
        self._work, self._slots, self._start = work, slots, start
        self._selector = selectors.DefaultSelector()
        self._children: set[Child] = set()
        self._idle: list[Child] = []
        self._dying: list[Child] = []
        self._busy = 0
        self._next_look = 0.0
        self._stillborn = 0

    @property
    def is_busy(self) -> bool:
        return self._busy > 0

    def end(self) -> None:
        """End all workers, and wait until they are gone."""
        left = [*self._children, *self._dying]
        for child in self._children:
            child.kill()
        for child in self._children:
            child.close()
        self._children.clear()
        self._selector.close()
        until = time.monotonic() + END_S
        while left := [child for child in left if child.poll() is None]:
            if time.monotonic() > until:
                return
            time.sleep(DYING_LOOK_S)

    # -- work out --

    def _hand_out(self) -> None:
        while self._busy < self._slots:
            assignment = self._source.take()
            if assignment is None:
                return
            content = dump_assignment(assignment)
            child = self._idle.pop() if self._idle else self._hire()
            if child is None:
                self._source.give_back(assignment)
                return
            child.assign(assignment, content, time.monotonic())
            self._busy += 1
            self._next_look = min(self._next_look, child.deadline)
            self._push(child)

    def _push(self, child: Child) -> None:
        """Send what the pipe takes now; the selector tells when it takes the rest."""
        is_waiting = child.is_pushing
        child.is_pushing = not child.push()
        if child.is_pushing and not is_waiting:
            self._selector.register(
                child.pipes.request, selectors.EVENT_WRITE, (child, Pipe.REQUEST)
            )
        elif is_waiting and not child.is_pushing:
            self._selector.unregister(child.pipes.request)

    def _hire(self) -> Child | None:
        """A new worker; None, and fewer slots from now on, where the system gives no more."""
        not_theirs = [number for child in self._children for number in child.pipes.all()]
        refusals = 0
        while True:
            try:
                with signals_held():  # until the worker is known, and can be ended
                    child = self._start(not_theirs)
                    self._children.add(child)
                break
            except OSError as error:
                refusals += 1
                if error.errno not in SCARCE or refusals > MOST_REFUSALS:
                    raise LabError(
                        f"no worker process can be started: {error}; lower --parallel, or raise "
                        "the limits on processes and open files (`ulimit -u`, `ulimit -n`)"
                    ) from error
                if self._children:
                    self._slots = len(self._children)
                    return None
                time.sleep(REFUSAL_S)
        for number, pipe in child.pipes.readable():
            self._selector.register(number, selectors.EVENT_READ, (child, pipe))
        return child

    # -- reports in --

    def _reports(self) -> Iterator[Report]:
        """What the workers say; waits a little if they say nothing."""
        now = time.monotonic()
        wait_s = min(LONGEST_SILENCE_S, max(0.0, self._next_look - now))
        if self._busy < self._slots:
            wait_s = self._source.wait_s(wait_s)
        for key, _ in self._selector.select(wait_s):
            child, pipe = key.data
            if child.is_closed:
                continue
            if pipe is Pipe.REPLY:
                yield from self._read_reply(child)
            elif pipe is Pipe.REQUEST:
                self._push(child)
            elif not child.read_output(pipe):
                self._selector.unregister(key.fd)
        # Only now: whoever was done by `now` has been heard, however long all that took.
        if now >= self._next_look:
            yield from self._look(now)

    def _read_reply(self, child: Child) -> Iterator[Report]:
        data = child.read_reply()
        if data:
            yield from self._digest(child, data)
        elif data is not None:
            self._selector.unregister(child.pipes.reply)
            child.cut_off_at = time.monotonic()
            self._next_look = 0.0

    def _digest(self, child: Child, data: bytes) -> Iterator[Report]:
        """Reports of the frames that are complete now."""
        try:
            for kind, content in child.frames.add(data):
                assignment = child.assignment
                if kind == READY:
                    child.is_ready = True
                    child.begin(time.monotonic())
                    self._next_look = min(self._next_look, child.deadline)
                elif assignment is None:
                    raise GarbledError
                elif kind == EVENT:
                    yield Emitted(assignment.turn, assignment.attempt, content)
                elif kind == NOTE:
                    yield Noted(assignment.turn, assignment.attempt, content)
                    child.acknowledge()  # whoever asks for more has made it durable
                    self._push(child)
                else:
                    outcome = load_outcome(content, assignment)
                    child.drain()
                    self._idle.append(child)
                    yield self._finish(child, outcome)
        except GarbledError:
            message = "wrote into the pipe between the worker process and the study"
            yield from self._lay_off(child, FailureKind.CRASH, message)

    def _finish(self, child: Child, outcome: Outcome) -> Finished:
        assignment = child.release()
        self._busy -= 1
        self._stillborn = 0
        child.has_served = True
        stdout, stderr = child.stdout.take(), child.stderr.take()
        return Finished(assignment.turn, assignment.attempt, outcome, stdout, stderr)

    # -- life and death --

    def _look(self, now: float) -> Iterator[Report]:
        """See who has died, and whose time is up."""
        self._next_look = now + LONGEST_SILENCE_S
        for child in list(self._children):
            status = child.poll()
            if status is not None:
                yield from self._bury(child, status)
            elif child.deadline <= now:
                yield from self._stop(child)
            elif child.cut_off_at is None:
                self._next_look = min(self._next_look, child.deadline)
            elif now - child.cut_off_at < CUT_OFF_S:
                self._next_look = min(self._next_look, now + DYING_LOOK_S)
            else:
                message = "closed the pipe between the worker process and the study"
                yield from self._lay_off(child, FailureKind.CRASH, message)
        self._dying = [child for child in self._dying if child.poll() is None]

    def _stop(self, child: Child) -> Iterator[Report]:
        """A worker's time is up: to do its run, or to start at all."""
        assert child.assignment is not None
        if child.is_ready:
            message = f"took longer than {child.assignment.timeout_s:g} s"
            yield from self._lay_off(child, FailureKind.TIMEOUT, message)
        else:
            child.kill()
            self._discard(child)
            self._dying.append(child)
            self._take_back(child, f"it was not ready after {START_LIMIT_S:g} s")

    def _lay_off(self, child: Child, kind: FailureKind, message: str) -> Iterator[Report]:
        """End a worker for what it has done."""
        child.kill()
        self._discard(child)
        self._dying.append(child)
        if child.assignment is not None:
            yield self._fail(child, kind, message)

    def _bury(self, child: Child, status: int) -> Iterator[Report]:
        """A worker has died; what it was at is reported, or taken back if it had not begun."""
        data = child.read_reply()  # its last words; it may have been done
        if data:
            yield from self._digest(child, data)
        if child.is_closed:
            return
        has_begun = child.assignment is not None and child.has_taken()
        self._discard(child)
        if child.assignment is None:
            return
        kind, message = tell_death(status)
        if has_begun:
            yield self._fail(child, kind, message)
        else:
            self._take_back(child, message)

    def _fail(self, child: Child, kind: FailureKind, message: str) -> Finished:
        assert child.assignment is not None
        took_s = time.monotonic() - child.began
        return self._finish(child, self._work.fail(child.assignment, kind, message, took_s))

    def _take_back(self, child: Child, message: str) -> None:
        """Somebody else gets the assignment; if nobody ever begins one, that is the end."""
        self._source.give_back(child.release())
        self._busy -= 1
        self._stillborn += not child.has_served
        if self._stillborn >= MOST_STILLBORN:
            said = child.stderr.take().decode("utf-8", "replace").strip()
            last = f" ({said.splitlines()[-1]})" if said else ""
            raise LabError(
                f"worker processes end before they begin a run: {message}{last}; see that the "
                "modules of agents and problems can be imported, or use --executor serial"
            )

    def _discard(self, child: Child) -> None:
        """Read the last that it printed, and let go of it."""
        child.drain()
        for number in child.pipes.parents():
            if number in self._selector.get_map():
                self._selector.unregister(number)
        child.close()
        self._children.discard(child)
        if child in self._idle:
            self._idle.remove(child)
