"""One study for any number of browsers: its ledger is read once for all of them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from fairtrial.core import LedgerError
from fairtrial.study import page
from fairtrial.view.folders import StudyFolder
from fairtrial.view.pace import QUIET_READ_S, ReadingPace

if TYPE_CHECKING:
    import anyio

Answer = TypeVar("Answer")
PING_S = 20.0
CHARTS_S = 5.0
QUIET_CHECK_S = 1.0


class BusyError(Exception):
    """The page can't be made now; the message says why."""


class StudyFeed:
    """Reads a study while somebody watches, and tells all who do what is new.

    folder: the study's folder
    pace: when to read
    control: whether pages may control the study
    heavy: a lock that is held while hypotheses are tested, which takes a core
    """

    def __init__(
        self, folder: StudyFolder, pace: ReadingPace, heavy: anyio.Lock, *, control: bool
    ) -> None:
        import anyio

        self.folder, self.pace, self._control = folder, pace, control
        self._study = page.LiveStudy(folder.path)
        self._heavy, self._reading = heavy, anyio.Lock()
        self._news = anyio.Event()
        self._viewers = 0
        self._is_running = False
        self._notice = ""
        self._charts: dict[str, Any] = {}
        self._charts_number = self._charts_rows = 0
        self._charts_due_s = 0.0
        self._read_s = float("-inf")
        self._messages: dict[tuple[int, int], bytes] = {}
        self._page: tuple[tuple[str, int], bytes] = (("", 0), b"")

    # -- what browsers ask for --

    async def page(self) -> bytes:
        """Return the page's data as JSON: of a study with pending runs, without verdicts.

        Raises `BusyError` if there is nothing to show yet, or hypotheses would have to be tested
        while something is timed.
        """
        notice = self.pace.notice()
        if not self._is_running and (not notice or self._is_read_due()):
            await self._read(with_rows=not notice)
        if self._study.is_finished and notice and self._page[0] != (self._study.key, -1):
            raise BusyError(notice)
        if self._study.is_finished and self._page[0] != (self._study.key, -1):
            self._page = (self._study.key, -1), await self._make_full_page()
        elif not self._study.is_finished:
            version = (self._study.key, len(self._study.arrivals))
            if self._page[0] != version:
                self._page = version, await self._make_overview()
        return self._page[1]

    async def look(self) -> bytes:
        """Return the page's data with the verdicts so far, which is recorded as an interim look."""
        if notice := self.pace.notice():
            raise BusyError(notice)
        return await self._make_full_page()

    async def run(self, run_id: str) -> dict[str, Any] | None:
        """Return everything known of one run; None if it has no result."""
        return await self._call(lambda: self._study.detail(run_id))

    async def follow(
        self, start: Callable[..., object], key: str, number: int
    ) -> AsyncIterator[str]:
        """Yield server-sent events for one browser, until it is gone.

        start: starts a function as a task
        key, number: which data the browser has, and how many results are in it
        """
        import anyio

        self._viewers += 1
        if not self._is_running:
            self._is_running = True
            start(self._keep_reading)
        charts = 0
        try:
            while True:
                news = self._news
                if self._study.state.get("progress") or self._study.state.get("message"):
                    async with self._reading:
                        number = number if key == self._study.key else 0
                        data = self._message(number, charts).decode()
                        number, charts = len(self._study.arrivals), self._charts_number
                        key = self._study.key
                    yield f"id: {key}/{number}\ndata: {data}\n\n"
                with anyio.move_on_after(PING_S) as waited:
                    await news.wait()
                if waited.cancelled_caught:
                    yield ": still there\n\n"
        finally:
            self._viewers -= 1

    # -- making pages --

    async def _make_full_page(self) -> bytes:
        from anyio import to_thread

        async with self._heavy:
            data = await to_thread.run_sync(self._study.full_page)
            return await to_thread.run_sync(self._dump_page, data, False)

    async def _make_overview(self) -> bytes:
        return await self._call(lambda: self._dump_page(self._study.overview(), True))

    def _dump_page(self, data: dict[str, Any], is_hidden: bool) -> bytes:
        live = {
            "key": self._study.key,
            "number": len(self._study.arrivals),
            "state": self._study.state,
            "control": self._control,
        }
        shown = {name: value for name, value in data.items() if name != "scripts"}
        return page.dump_data({**shown, "hidden": is_hidden, "live": live})

    def _message(self, number: int, charts: int) -> bytes:
        """Return what a browser doesn't have yet; made once for all who have the same."""
        known = self._messages.get((number, charts))
        if known is None:
            news: dict[str, Any] = {
                "key": self._study.key,
                "number": len(self._study.arrivals),
                "state": {**self._study.state, "quiet": self._notice},
            }
            if number < len(self._study.arrivals):
                news["rows"] = self._study.rows_since(number)
            if charts != self._charts_number:
                news["charts"] = self._charts
            known = self._messages[number, charts] = page.dump_data(news)
        return known

    # -- reading --

    async def _call(self, function: Callable[[], Answer]) -> Answer:
        """Call a function that uses the ledger in a thread, one at a time."""
        from anyio import to_thread

        async with self._reading:
            try:
                return await to_thread.run_sync(function)
            except LedgerError as error:
                raise BusyError(str(error)) from error

    async def _keep_reading(self) -> None:
        """Read while somebody watches."""
        from anyio import sleep

        try:
            while self._viewers:
                notice = self.pace.notice()
                if notice and not self._is_read_due():
                    self._tell(notice)
                    await sleep(QUIET_CHECK_S)
                    continue
                began_s = time.perf_counter()
                has_more = await self._read(with_rows=not notice)
                took_s = time.perf_counter() - began_s
                self._tell(notice, is_new=True)
                await sleep(self.pace.pause_s(took_s, is_unfinished=has_more))
        finally:
            self._is_running = False

    def _is_read_due(self) -> bool:
        """Return whether the progress is read even while something is timed."""
        return time.monotonic() - self._read_s >= QUIET_READ_S

    async def _read(self, *, with_rows: bool = True) -> bool:
        def read() -> bool:
            has_more = self._study.poll(with_rows=with_rows)
            rows = len(self._study.arrivals)
            is_due = time.monotonic() >= self._charts_due_s
            if with_rows and rows and rows != self._charts_rows and is_due:
                self._make_charts(rows)
            return has_more

        try:
            return await self._call(read)
        finally:
            self._read_s = time.monotonic()
            self._messages.clear()

    def _make_charts(self, rows: int) -> None:
        now = time.monotonic()
        self._charts, self._charts_rows = self._study.charts(), rows
        self._charts_number += 1
        self._charts_due_s = now + max(CHARTS_S, self.pace.pause_s(time.monotonic() - now))

    def _tell(self, notice: str, *, is_new: bool = False) -> None:
        """Wake all who follow, if there is something new."""
        import anyio

        if not is_new and notice == self._notice:
            return
        self._notice = notice
        self._messages.clear()
        news, self._news = self._news, anyio.Event()
        news.set()
