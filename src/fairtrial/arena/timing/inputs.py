"""Inputs of benchmarks, made by a trusted process on the base that candidates can't see."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from fairtrial.arena.checks.exit_text import in_one_line
from fairtrial.arena.checks.worker_reports import read_line
from fairtrial.arena.model.problem import Benchmark
from fairtrial.arena.stage import HARNESS, Stage
from fairtrial.arena.timing.worker_channel import ChannelError, ChannelTimeoutError, WorkerChannel
from fairtrial.arena.timing.workers import START_S
from fairtrial.core import Mistake, StudyError, single_cause
from fairtrial.sandbox import wire

PORTION_BYTES = 4 * 2**20
"""About how much is requested at once, judging by earlier inputs; far below the largest reply."""
MOST_COUNTED, COUNTING_S = 256, 0.5
"""How many inputs are drawn to find out whether they repeat themselves, and for how long."""
_FEW, _SHARE = 16, 0.5
LEAST_DRAWN, MOST_DRAWN, DRAWING_S = 6, 64, 0.5
"""How many inputs are drawn to find one that differs: more as long as that takes little time."""
SAME_INPUTS = (
    "gives the same input every time; inputs that never change can be known by heart, so a gain "
    "may hold for this one alone"
)
_MISTAKE = b'{"mistake"'
_LIFETIME_S = 7 * 24 * 3600.0
_FILES_HINT = "it is called as make(rng, folder), with a random.Random, and writes files to folder"
_HINT = "a maker is called as make(rng), with a random.Random, and returns (args, kwargs)"


def read_input(data: bytes) -> Mapping[str, Any]:
    """Return the encoded arguments of a call; the supplier, which is trusted, made the input.

    Of pickled ones there is only a summary, for messages.
    """
    if wire.is_pickled_input(data):
        summary: Mapping[str, Any] = wire.read_summary(data)
        return summary
    return wire.unpack_case(data) if data.startswith(wire.PACKED_FIRST) else read_line(data)


class MakesInputs(Protocol):
    """Makes the inputs of a benchmark's calls."""

    async def make(self, seed: str, count: int) -> list[bytes]:
        """Return `count` inputs (see `read_input`), the same for the same seed."""
        ...


class NoInputs:
    """The inputs of a benchmark that is called without any of ours."""

    async def make(self, seed: str, count: int) -> list[bytes]:
        """Return `count` empty inputs."""
        return [b'{"args": [], "kwargs": {}}'] * count


@dataclass(frozen=True, slots=True)
class InputSupplier:
    """Makes the inputs of one benchmark.

    benchmark: the benchmark
    channel: the channel to the process that makes them
    timeout_s: how long one request may take
    """

    benchmark: Benchmark
    channel: WorkerChannel
    timeout_s: float = 120.0

    async def make(self, seed: str, count: int) -> list[bytes]:
        """Return `count` inputs, packed or as JSON (see `read_input`); the same for the same seed.

        They are made in portions: one reply may be too small for all inputs of a session.
        """
        inputs: list[bytes] = []
        portion = 1
        while len(inputs) < count:
            inputs += await self._make(seed, len(inputs), min(portion, count - len(inputs)))
            portion = max(1, PORTION_BYTES * len(inputs) // sum(map(len, inputs)))
        return inputs

    async def varies(self, seed: str) -> bool:
        """Return whether inputs of different seeds differ."""
        first: list[bytes] = []
        began = time.monotonic()
        for number in range(MOST_DRAWN):
            if number >= LEAST_DRAWN and time.monotonic() - began > DRAWING_S:
                break
            inputs = await self.make(f"{seed}/{number}", 1)
            if first and inputs != first:
                return True
            first = inputs
        return False

    async def describe_repeats(self, seed: str) -> str:
        """Return a note if inputs repeat themselves, as recorded ones do; else an empty text."""
        began = time.monotonic()
        count = _FEW
        while True:
            inputs = await self.make(f"{seed}/repeats", count)
            if count >= MOST_COUNTED or time.monotonic() - began > COUNTING_S:
                break
            count *= 4
        distinct = len(set(inputs))
        if distinct > _SHARE * count:
            return ""
        return (
            f"{self.benchmark.name}: {self.benchmark.inputs} draws from few inputs ({distinct} "
            f"different ones in {count} draws); what never changes can be known by heart"
        )

    async def _make(self, seed: str, first: int, count: int) -> list[bytes]:
        from anyio import to_thread

        order = wire.dump_encoded({"seed": seed, "first": first, "count": count}).encode("ascii")
        ask = partial(self.channel.ask, b"M", order, timeout_s=self.timeout_s)
        try:
            reply = await to_thread.run_sync(ask, abandon_on_cancel=True)
        except ChannelTimeoutError:
            raise self.error(f"{count} inputs took longer than {self.timeout_s:g} s") from None
        except ChannelError as error:
            raise self.error(f"the process that makes inputs is gone: {error}") from None
        inputs = wire.split_inputs(reply.payload)
        report = read_line(inputs[0]) if inputs[0].startswith(_MISTAKE) else {}
        if "mistake" in report:
            trace = in_one_line(str(report.get("traceback", "")))
            raise self.error(f"{report['mistake']}" + (f" ({trace})" if trace else ""))
        return inputs

    def error(self, message: str) -> StudyError:
        """Return an error that names the benchmark's `inputs`."""
        path = ("bench", self.benchmark.name, "inputs")
        hint = _HINT if self.benchmark.call else _FILES_HINT
        return StudyError(Mistake(path, f"{self.benchmark.inputs}: {message}", hint))


@asynccontextmanager
async def open_supplier(benchmark: Benchmark, stage: Stage) -> AsyncIterator[InputSupplier]:
    """Start a supplier for one benchmark.

    stage: a slot with the base and its input makers
    """
    import anyio

    file, _, function = benchmark.inputs.rpartition(":")
    job = {
        "file": str(stage.seen / file),
        "function": function,
        "caps": list(wire.Caps()),
        "writes_files": not benchmark.call,
    }
    channel = WorkerChannel()
    command = stage.command(
        ["{python}", str(HARNESS / "input_supplier.py")],
        timeout_s=_LIFETIME_S,
        stdin=json.dumps(job).encode("ascii"),
        line=channel.remote,
    )

    async def run() -> None:
        try:
            await stage.run(command)
        finally:
            channel.shut_down()

    supplier = InputSupplier(benchmark, channel)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            try:
                wait = partial(channel.wait_for_start, START_S)
                await anyio.to_thread.run_sync(wait, abandon_on_cancel=True)
                channel.close_remote()
                yield supplier
            except ChannelError as error:
                raise supplier.error(str(error)) from None
            finally:
                channel.shut_down()
                tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        raise single_cause(group) from None
    finally:
        channel.close()
