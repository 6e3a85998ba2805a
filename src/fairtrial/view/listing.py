"""The list of studies in a folder: state, progress, cost, and the verdicts of finished ones."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairtrial.core import FairtrialError
from fairtrial.study import ledger, page
from fairtrial.view.feed import PING_S, QUIET_CHECK_S
from fairtrial.view.folders import StudyFolder, find_studies
from fairtrial.view.pace import QUIET_READ_S, ReadingPace

if TYPE_CHECKING:
    import anyio

FIND_AGAIN_S, FIND_FIRST_S = 10.0, 1.0
"""How often to look for new studies; how often while there is none."""
Signature = tuple[int, ...]


class StudyList:
    """The studies in a folder, for any number of browsers.

    root: the folder
    pace: when to read
    heavy: a lock that is held while hypotheses are tested
    """

    def __init__(self, root: Path, pace: ReadingPace, heavy: anyio.Lock) -> None:
        import anyio

        self._root, self._pace, self._heavy = root, pace, heavy
        self._folders: dict[str, StudyFolder] = {}
        self._found_s = float("-inf")
        self._entries: dict[str, tuple[Signature, dict[str, Any]]] = {}
        self._verdicts: dict[str, tuple[Signature, list[dict[str, Any]]]] = {}
        self._news = anyio.Event()
        self._text = b""
        self._viewers = 0
        self._is_running = False

    def folders(self) -> dict[str, StudyFolder]:
        """Return the studies by id; looks for new ones every few seconds."""
        now = time.monotonic()
        if now - self._found_s >= (FIND_AGAIN_S if self._folders else FIND_FIRST_S):
            self._folders = {one.id: one for one in find_studies(self._root)}
            self._found_s = now
        return self._folders

    def only_study(self) -> StudyFolder | None:
        """Return the study that the folder itself holds, if it does."""
        folders = list(self.folders().values())
        return folders[0] if [folder.path for folder in folders] == [self._root] else None

    async def follow(self, start: Callable[..., object]) -> AsyncIterator[str]:
        """Yield server-sent events with the whole list whenever it changes.

        start: starts a function as a task
        """
        import anyio

        self._viewers += 1
        if not self._is_running:
            self._is_running = True
            start(self._keep_reading)
        try:
            while True:
                news = self._news
                if self._text:
                    yield f"data: {self._text.decode()}\n\n"
                with anyio.move_on_after(PING_S) as waited:
                    await news.wait()
                if waited.cancelled_caught:
                    yield ": still there\n\n"
        finally:
            self._viewers -= 1

    async def _keep_reading(self) -> None:
        from anyio import sleep, to_thread

        try:
            read_s = float("-inf")
            while self._viewers:
                notice = self._pace.notice()
                if notice and time.monotonic() - read_s < QUIET_READ_S:
                    await sleep(QUIET_CHECK_S)
                    continue
                began_s = time.perf_counter()
                entries = await to_thread.run_sync(self._read)
                took_s, read_s = time.perf_counter() - began_s, time.monotonic()
                self._tell(entries, notice)
                if not notice:
                    await self._test_one(entries)
                await sleep(self._pace.pause_s(took_s))
        finally:
            self._is_running = False

    def _read(self) -> list[dict[str, Any]]:
        return [self._read_entry(folder) for folder in self.folders().values()]

    def _read_entry(self, folder: StudyFolder) -> dict[str, Any]:
        """Return what the list says of a study; read again only if its files changed."""
        signature = _sign(folder.path)
        known = self._entries.get(folder.id)
        if known is None or known[0] != signature or known[1]["state"] in ("running", "paused"):
            study = page.LiveStudy(folder.path)
            try:
                study.poll(with_rows=False)
                state = study.state
            finally:
                study.close()
            names = ("state", "message", "title", "study", "progress", "has_claims", "is_finished")
            entry = {name: state[name] for name in names if name in state}
            known = self._entries[folder.id] = signature, entry
        entry = {**known[1], "id": folder.id, "name": page.clean_text(folder.name, 300)}
        tested = self._verdicts.get(folder.id)
        if tested is not None and tested[0] == signature:
            entry["verdicts"] = [
                {name: card[name] for name in ("id", "label", "verdict", "tone")}
                for card in tested[1]
            ]
        return entry

    async def _test_one(self, entries: list[dict[str, Any]]) -> None:
        """Test the hypotheses of one finished study whose verdicts are not known."""
        from anyio import to_thread

        for entry in entries:
            if entry.get("is_finished") and entry.get("has_claims") and "verdicts" not in entry:
                path = self._folders[entry["id"]].path
                signature = _sign(path)
                async with self._heavy:
                    try:
                        cards = await to_thread.run_sync(page.read_verdicts, path)
                    except FairtrialError:
                        cards = []  # the study's own page says what is wrong
                self._verdicts[entry["id"]] = signature, cards
                return

    def _tell(self, entries: list[dict[str, Any]], notice: str) -> None:
        """Wake all who follow, if the list has changed."""
        import anyio

        only = self.only_study()
        data = {
            "studies": entries,
            "quiet": notice,
            "folder": page.clean_text(self._root),
            "only": only.id if only else None,
        }
        text = page.dump_data(data)
        if text != self._text:
            self._text = text
            news, self._news = self._news, anyio.Event()
            news.set()


def _sign(folder: Path) -> Signature:
    """Return what changes when the ledger of a folder does."""
    signature: list[int] = []
    for name in (ledger.LEDGER_NAME, f"{ledger.LEDGER_NAME}-wal", "owner.lock"):
        try:
            status = (folder / name).stat()
            signature += [status.st_ino, status.st_mtime_ns, status.st_size]
        except OSError:
            signature += [0, 0, 0]
    return tuple(signature)
