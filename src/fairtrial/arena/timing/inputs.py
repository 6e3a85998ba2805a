"""The trusted process that makes inputs: with the base, out of every candidate's sight."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from fairtrial.arena.checks.exit_text import in_one_line
from fairtrial.arena.checks.worker_reports import read_line
from fairtrial.arena.model.problem import Benchmark
from fairtrial.arena.stage import HARNESS, Stage
from fairtrial.arena.task_groups import single_cause
from fairtrial.arena.timing.worker_channel import LateError, Line, LineError
from fairtrial.arena.timing.workers import START_S
from fairtrial.core import Mistake, StudyError
from fairtrial.sandbox import Caps, dump

PORTION_BYTES = 4 * 2**20
"""How much is asked for at a time, going by the inputs before; far below the largest reply."""
_LIFETIME_S = 7 * 24 * 3600.0
_HINT = "a maker is called as make(rng), with a random.Random, and returns (args, kwargs)"


@dataclass(frozen=True, slots=True)
class Supplier:
    """Makes the inputs of one benchmark.

    benchmark: whose
    line: to the process that does it
    timeout_s: how long one request may take
    """

    benchmark: Benchmark
    line: Line
    timeout_s: float = 120.0

    async def make(self, seed: str, count: int) -> list[bytes]:
        """So many inputs, each as a line of JSON; the same ones for the same seed.

        They come in portions: all inputs of a session may be more than one reply may hold.
        """
        lines: list[bytes] = []
        portion = 1
        while len(lines) < count:
            lines += await self._make(seed, len(lines), min(portion, count - len(lines)))
            portion = max(1, PORTION_BYTES * len(lines) // sum(map(len, lines)))
        return lines

    async def _make(self, seed: str, first: int, count: int) -> list[bytes]:
        from anyio import to_thread

        order = dump({"seed": seed, "first": first, "count": count}).encode("ascii")
        ask = partial(self.line.ask, b"M", order, timeout_s=self.timeout_s)
        try:
            reply = await to_thread.run_sync(ask, abandon_on_cancel=True)
        except LateError:
            raise self._refuse(f"{count} inputs took longer than {self.timeout_s:g} s") from None
        except LineError as error:
            raise self._refuse(f"the process that makes inputs is gone: {error}") from None
        lines = reply.payload.split(b"\n")
        told = read_line(lines[0]) if len(lines) == 1 else {}
        if "mistake" in told:
            trace = in_one_line(str(told.get("traceback", "")))
            raise self._refuse(f"{told['mistake']}" + (f" ({trace})" if trace else ""))
        return lines

    def _refuse(self, message: str) -> StudyError:
        place = ("bench", self.benchmark.name, "inputs")
        return StudyError(Mistake(place, f"{self.benchmark.inputs}: {message}", _HINT))


@asynccontextmanager
async def open_supplier(benchmark: Benchmark, stage: Stage) -> AsyncIterator[Supplier]:
    """A supplier for one benchmark, on a slot with the base and its input makers."""
    import anyio

    file, _, function = benchmark.inputs.rpartition(":")
    job = {"file": str(stage.seen / file), "function": function, "caps": list(Caps())}
    line = Line()
    command = stage.command(
        ["{python}", str(HARNESS / "input_supplier.py")],
        timeout_s=_LIFETIME_S,
        stdin=json.dumps(job).encode("ascii"),
        line=line.far,
    )

    async def run() -> None:
        try:
            await stage.run(command)
        finally:
            line.hang_up()

    supplier = Supplier(benchmark, line)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            try:
                greet = partial(line.greet, START_S)
                await anyio.to_thread.run_sync(greet, abandon_on_cancel=True)
                line.handed_over()
                yield supplier
            except LineError as error:
                raise supplier._refuse(str(error)) from None
            finally:
                line.hang_up()
                tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise single_cause(group) from None
    finally:
        line.close()
