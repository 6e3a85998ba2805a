"""What a study of models costs beside the models: wall time, kill -9, replay.

An endpoint on loopback answers late, refuses (429 with Retry-After, 500), breaks streams off, sends
bad JSON and wrong token counts. A study asks it: problems x 2 prompts x 2 models, 64 at once, in
threads. Then the same study is killed and resumed, and its recorded answers are replayed offline.

    python benchmarks/models.py [--problems 1000] [--per-minute 6000]

The ideal is the number of requests that arrived, divided by the rate limit, plus one answer's time.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import multiprocessing
import os
import random
import signal
import sqlite3
import tempfile
import time
import urllib.request
from collections import Counter
from pathlib import Path
from typing import Any

from fairtrial import Study, run_study

LATENCY_S = 0.2
AT_ONCE = 64
FAULTS = {"429": 0.01, "500": 0.01, "cut": 0.01, "bad JSON": 0.01}
WRONG_USAGE = 0.02
VOLATILE = ("start_time", "end_time", "latency_s", "cost_usd", "input_tokens", "output_tokens",
            "timestamp", "meta_json", "executor", "host", "attempt")  # fmt: skip


# -- the endpoint --


class Endpoint:
    """Answers each request once it has failed it as often as the dice said."""

    def __init__(self) -> None:
        self.answered: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()
        self.requests = 0
        self.rng = random.Random(1)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = int(head.lower().partition("content-length:")[2].split("\r\n")[0] or 0)
            body = await reader.readexactly(length) if length else b""
            await (self._answer(writer, body) if body else self._report(writer))
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _report(self, writer: asyncio.StreamWriter) -> None:
        facts = {
            "requests": self.requests,
            "answered": len(self.answered),
            "twice": sum(count > 1 for count in self.answered.values()),
            "faults": self.faults,
        }
        send(writer, 200, json.dumps(facts).encode())

    async def _answer(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        self.requests += 1
        dice, fault = self.rng.random(), ""
        for name, share in FAULTS.items():
            if not fault and dice < share:
                fault = name
            dice -= share
        await asyncio.sleep(0.01 if fault in ("429", "500") else LATENCY_S)
        if fault:
            self.faults[fault] += 1
        if fault == "429":
            send(writer, 429, b'{"error": {"message": "slow down"}}', "Retry-After: 0.05\r\n")
        elif fault == "500":
            send(writer, 500, b'{"error": {"message": "oh no"}}')
        elif fault == "bad JSON":
            send(writer, 200, b'{"choices": [')
        else:
            asked = json.loads(data)
            if fault != "cut":
                self.answered[json.dumps([asked["model"], asked["messages"]])] += 1
            self._stream(writer, asked, is_cut=fault == "cut")

    def _stream(self, writer: asyncio.StreamWriter, asked: Any, *, is_cut: bool) -> None:
        words = ["ANSWER:", " ", str(len(asked["messages"][-1]["content"]))]
        tokens: Any = {"prompt_tokens": 20, "completion_tokens": 5}
        if self.rng.random() < WRONG_USAGE:
            tokens = {"prompt_tokens": -5, "completion_tokens": "many"}
        events: list[Any] = [{"choices": [{"delta": {"content": word}}]} for word in words]
        events.append({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": tokens})
        text = "".join(
            f"data: {json.dumps(event)}\n\n" for event in events[: 1 if is_cut else None]
        )
        end = "" if is_cut else "data: [DONE]\n\n"
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n")
        writer.write(b"Connection: close\r\n\r\n" + (text + end).encode())


def send(writer: asyncio.StreamWriter, status: int, data: bytes, headers: str = "") -> None:
    head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{headers}"
    writer.write(f"{head}Content-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode() + data)


def run_endpoint(port: Any) -> None:
    async def main() -> None:
        server = await asyncio.start_server(Endpoint().serve, "127.0.0.1", 0, backlog=1024)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


class Served:
    """An endpoint in a process of its own."""

    def __enter__(self) -> Served:
        here, there = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=run_endpoint, args=(there,), daemon=True)
        self.process.start()
        self.url = f"http://127.0.0.1:{here.recv()}/v1"
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.join()

    def facts(self) -> dict[str, Any]:
        with urllib.request.urlopen(self.url) as response:
            facts: dict[str, Any] = json.load(response)
            return facts


# -- the study --


def make_study(url: str, folder: Path, problems: int, per_minute: float, **options: Any) -> Study:
    agent = {
        "base_url": url,
        "prompt": "{style}: {question}",
        "model": "small",
        "answer": r"ANSWER: (\d+)",
        "stream": True,
        "retries": 8,
        "backoff_s": 0.05,
        "requests_per_minute": per_minute,
        "prices": {"small": [1.0, 2.0], "large": [10.0, 20.0]},
        **options,
    }
    return Study.from_dict(
        {
            "study_id": "models",
            "title": "Models",
            "factors": [
                {"name": "style", "levels": ["Briefly", "Step by step"]},
                {"name": "agents.chat.options.model", "levels": ["small", "large"]},
            ],
            "agents": {"chat": {"use": "chat", "options": agent}},
            "problems": {
                f"p{number}": {"brief": "b", "payload": {"question": f"question {number}"}}
                for number in range(problems)
            },
            "output_dir": str(folder),
        }
    )


def run(study: Study, **more: Any) -> float:
    began = time.monotonic()
    with run_study(
        study, executor="threads", parallelism=AT_ONCE, show_progress=False, **more
    ) as results:
        bad = [result.error_info for result in results if result.error_info]
        assert not bad, bad[:3]
    return time.monotonic() - began


def journaled(folder: Path) -> int:
    with sqlite3.connect(f"file:{folder / 'ledger.sqlite'}?mode=ro", uri=True) as ledger:
        return int(ledger.execute("SELECT count(*) FROM journal").fetchone()[0])


def stable_tables(folder: Path) -> dict[str, list[dict[str, str]]]:
    """Return the tables without times, costs and what else differs in a replay."""
    tables = {}
    for name in ("conditions", "runs", "events", "evaluations", "outputs"):
        with (folder / f"{name}.csv").open(newline="") as file:
            tables[name] = [
                {key: cell for key, cell in row.items() if key not in VOLATILE}
                for row in csv.DictReader(file)
            ]
    return tables


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--problems", type=int, default=1_000)
    parser.add_argument("--per-minute", type=float, default=6_000)
    arguments = parser.parse_args()
    planned = arguments.problems * 4
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        kept = {"cache_dir": str(folder / "answers")}
        sizes = (arguments.problems, arguments.per_minute)
        with Served() as server:
            seconds = run(make_study(server.url, folder / "a", *sizes, cache="keep", **kept))
            facts, url = server.facts(), server.url
        ideal = facts["requests"] * 60 / arguments.per_minute + LATENCY_S
        print(f"{planned:,} runs, {facts['requests']:,} requests, faults {dict(facts['faults'])}")
        print(f"wall {seconds:.1f} s, ideal {ideal:.1f} s: {seconds / ideal:.2f}x", end="; ")
        print(f"load {os.getloadavg()[0]:.1f}; answered twice: {facts['twice']}")
        began = time.monotonic()
        run(make_study(url, folder / "b", *sizes, cache="replay", **kept))
        same = stable_tables(folder / "a") == stable_tables(folder / "b")
        print(f"replayed offline in {time.monotonic() - began:.1f} s; same tables: {same}")
        assert same
        with Served() as server:
            kill_and_resume(server, folder / "c", planned, *sizes)


def kill_and_resume(
    server: Served, folder: Path, planned: int, problems: int, per_minute: float
) -> None:
    study = make_study(server.url, folder, problems, per_minute)
    process = multiprocessing.Process(target=run, args=(study,))
    process.start()
    while server.facts()["answered"] < planned // 3:
        time.sleep(0.05)
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    kept, before = journaled(folder), server.facts()["answered"]
    run(study, resume=True)
    facts = server.facts()
    print(f"killed after {before:,} answers, {kept:,} of them recorded; resumed:", end=" ")
    print(f"{facts['twice']} asked again, which were under way (at most {AT_ONCE})")
    assert journaled(folder) == facts["answered"] == planned
    assert facts["twice"] <= AT_ONCE
    assert facts["twice"] <= before - kept + AT_ONCE


if __name__ == "__main__":
    main()
