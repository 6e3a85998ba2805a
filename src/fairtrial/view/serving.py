"""Serving the pages of the studies in a folder on a port of this machine."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairtrial.core import LabError, Mistake, StudyError
from fairtrial.view.access import Access
from fairtrial.view.server import Pages

if TYPE_CHECKING:
    import uvicorn

LOOPBACK = "127.0.0.1"
NICENESS = 10
WAIT_AT_END_S = 1
MISSING = Mistake((), "the live page needs starlette and uvicorn", 'pip install "fairtrial[view]"')


@dataclass(frozen=True, slots=True)
class Viewer:
    """Serves live pages of the study in a folder, or of all studies below it.

    It binds to loopback only, asks for a random token, and serves nothing but these studies.

    folder: the folder; it may be missing until a study begins
    port: the port; 0 for any free one
    control: whether pages may pause, resume and cancel studies
    """

    folder: Path
    port: int = 0
    control: bool = False

    def serve(self, ready: Callable[[str], None]) -> None:
        """Serve until the process is interrupted.

        ready: called with the address to open, once it can be opened

        Raises `StudyError` if the folder, the port or a library is missing, and `LabError` if the
        port is in use.
        """
        import anyio

        if not self.folder.is_dir() and (self.folder.exists() or not self.folder.parent.is_dir()):
            raise StudyError(f"there is no folder {self.folder}")
        try:
            import starlette  # noqa: F401
            import uvicorn  # noqa: F401
        except ImportError as error:
            raise StudyError(MISSING) from error
        with _listen(self.port) as listener:
            with suppress(OSError):
                os.nice(NICENESS)  # what runs comes first
            anyio.run(self._serve, listener, ready)

    async def _serve(self, listener: socket.socket, ready: Callable[[str], None]) -> None:
        import anyio

        access = Access(listener.getsockname()[1])
        async with anyio.create_task_group() as tasks:
            pages = Pages(self.folder, access, tasks.start_soon, control=self.control)
            server = _make_server(pages)
            ready(access.address)
            await server.serve(sockets=[listener])
            tasks.cancel_scope.cancel()


def _make_server(pages: Pages) -> uvicorn.Server:
    import uvicorn

    return uvicorn.Server(
        uvicorn.Config(
            pages.application(),
            http="h11",
            ws="none",
            lifespan="off",
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=WAIT_AT_END_S,
        )
    )


def _listen(port: int) -> socket.socket:
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((LOOPBACK, port))
        listener.listen(64)
    except OSError as error:
        listener.close()
        raise LabError(
            f"port {port} can't be used: {error.strerror}; choose another --port, or leave it out"
        ) from error
    return listener
