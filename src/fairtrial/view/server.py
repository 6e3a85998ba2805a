"""The server's answers: pages, their data as JSON, and news as server-sent events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from fairtrial.core import FairtrialError
from fairtrial.study import page, runner
from fairtrial.view.access import HEADERS, Access
from fairtrial.view.feed import BusyError, StudyFeed
from fairtrial.view.listing import StudyList
from fairtrial.view.pace import ReadingPace

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

ACTIONS: dict[str, Literal["pause", "resume", "cancel"]] = {
    "pause": "pause",
    "resume": "resume",
    "cancel": "cancel",
}
LIST_SCRIPT = Path(__file__).with_name("studies.js")
NOT_FOUND, FORBIDDEN, CONFLICT, BUG = 404, 403, 409, 500
Handler = Callable[["Request"], Awaitable["Response"]]


class Pages:
    """The answers to requests for the studies in a folder.

    root: the folder; no page shows anything outside it
    access: who may ask
    start: starts a function as a task
    control: whether pages may pause, resume and cancel studies
    """

    def __init__(
        self, root: Path, access: Access, start: Callable[..., object], *, control: bool
    ) -> None:
        import anyio

        self.root, self.access, self._start, self._control = root, access, start, control
        self._pace, self._heavy = ReadingPace(), anyio.Lock()
        self._list = StudyList(root, self._pace, self._heavy)
        self._feeds: dict[str, StudyFeed] = {}

    def application(self) -> Starlette:
        """Return the application of the server."""
        from starlette.applications import Starlette
        from starlette.routing import Route

        study = "/study/{id}"
        gets: dict[str, Handler] = {
            "/": self._home,
            "/events": self._follow_list,
            "/compare": self._compare_page,
            "/comparison": self._compare,
            f"{study}/": self._study_page,
            f"{study}/data": self._study_data,
            f"{study}/events": self._follow_study,
            f"{study}/run/{{run}}": self._run,
        }
        posts: dict[str, Handler] = {
            f"{study}/look": self._look,
            f"{study}/control/{{action}}": self._control_study,
        }
        return Starlette(
            routes=[
                *(
                    Route(path, self._guard(answer), methods=["GET"])
                    for path, answer in gets.items()
                ),
                *(
                    Route(path, self._guard(answer), methods=["POST"])
                    for path, answer in posts.items()
                ),
            ],
            exception_handlers={NOT_FOUND: _answer_not_found, BUG: _answer_bug},
        )

    # -- who may ask --

    def _guard(self, answer: Handler) -> Handler:
        """Return a handler that answers only those who may ask."""

        async def guarded(request: Request) -> Response:
            response = self._refuse(request)
            if response is None:
                try:
                    response = await answer(request)
                except BusyError as error:
                    response = _json(page.dump_data({"wait": str(error)}))
                except FairtrialError as error:
                    response = _error(CONFLICT, str(error))
            response.headers.update(HEADERS)
            return response

        return guarded

    def _refuse(self, request: Request) -> Response | None:
        """Return the answer to a request that isn't allowed, or that brings the token."""
        from starlette.responses import RedirectResponse

        access, headers = self.access, request.headers
        reason = access.refuse(
            request.method,
            headers.get("host", ""),
            headers.get("origin"),
            headers.get("sec-fetch-site"),
        )
        if reason:
            return _error(FORBIDDEN, reason)
        token = request.query_params.get("token")
        if token is not None and request.method == "GET" and access.is_known_token(token):
            response = RedirectResponse(request.url.path, status_code=303)
            response.headers["Set-Cookie"] = access.cookie_header
            return response
        if not access.is_known_cookie(request.cookies.get(access.cookie_name, "")):
            return _error(FORBIDDEN, "open the address that `fairtrial view` printed")
        return None

    # -- pages --

    async def _home(self, request: Request) -> Response:
        """Answer with the list of studies, or go to the only one."""
        from starlette.responses import RedirectResponse

        if only := self._list.only_study():
            return RedirectResponse(f"/study/{only.id}/", status_code=303)
        return _page(_list_page("list"))

    async def _compare_page(self, request: Request) -> Response:
        return _page(_list_page("comparison"))

    async def _study_page(self, request: Request) -> Response:
        return _page(page.render_live_page(self._feed(request).folder.name))

    # -- data --

    async def _study_data(self, request: Request) -> Response:
        return _json(await self._feed(request).page())

    async def _look(self, request: Request) -> Response:
        return _json(await self._feed(request).look())

    async def _run(self, request: Request) -> Response:
        detail = await self._feed(request).run(request.path_params["run"])
        if detail is None:
            return _error(NOT_FOUND, "this run has no result yet")
        return _json(page.dump_data(detail))

    async def _follow_study(self, request: Request) -> Response:
        last = request.headers.get("last-event-id") or request.query_params.get("from", "")
        key, _, number = last.partition("/")
        start = int(number) if number.isdecimal() and len(number) < 10 else 0
        return _stream(self._feed(request).follow(self._start, key, start))

    async def _follow_list(self, request: Request) -> Response:
        return _stream(self._list.follow(self._start))

    async def _compare(self, request: Request) -> Response:
        from anyio import to_thread

        if notice := self._pace.notice():
            raise BusyError(notice)
        folders = self._list.folders()
        chosen = [folders.get(request.query_params.get(name, "")) for name in "ab"]
        if chosen[0] is None or chosen[1] is None:
            return _error(NOT_FOUND, "there is no such study here")
        async with self._heavy:
            data = await to_thread.run_sync(page.compare_studies, chosen[0].path, chosen[1].path)
        return _json(page.dump_data(data))

    async def _control_study(self, request: Request) -> Response:
        from anyio import to_thread

        action = ACTIONS.get(request.path_params["action"])
        if not self._control:
            return _error(FORBIDDEN, "this viewer only reads; start it with --control")
        if action is None:
            return _error(NOT_FOUND, "there is no such action")
        path = self._feed(request).folder.path
        if not await to_thread.run_sync(runner.control_study, path, action):
            return _error(CONFLICT, "the study isn't running, or isn't paused")
        return _json(page.dump_data({"ok": True}))

    def _feed(self, request: Request) -> StudyFeed:
        """Return the feed of the study in an address; raises `HTTPException` if there is none."""
        from starlette.exceptions import HTTPException

        folder = self._list.folders().get(request.path_params["id"])
        if folder is None:
            raise HTTPException(NOT_FOUND)
        feed = self._feeds.get(folder.id)
        if feed is None:
            feed = StudyFeed(folder, self._pace, self._heavy, control=self._control)
            self._feeds[folder.id] = feed
        return feed


@cache
def _list_page(kind: str) -> str:
    titles = {"list": "Studies", "comparison": "Two studies"}
    data = {"title": titles[kind], "kind": kind}
    return page.render_document(data, LIST_SCRIPT.read_text("utf-8"))


def _page(text: str) -> Response:
    from starlette.responses import HTMLResponse

    return HTMLResponse(text, headers=page.page_headers(text))


def _json(data: bytes) -> Response:
    from starlette.responses import Response

    return Response(data, media_type="application/json")


def _error(status: int, message: str) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse({"error": message}, status)


def _stream(events: Any) -> Response:
    from starlette.responses import StreamingResponse

    return StreamingResponse(events, media_type="text/event-stream")


async def _answer_bug(request: Request, error: Exception) -> Response:
    """Answer after an exception that nothing expects: it is a bug, and the terminal shows it."""
    import traceback

    traceback.print_exception(error)
    response = _error(BUG, "this is a bug in fairtrial: the terminal of the viewer shows more")
    response.headers.update(HEADERS)
    return response


async def _answer_not_found(request: Request, error: Exception) -> Response:
    response = _error(NOT_FOUND, "there is nothing at this address")
    response.headers.update(HEADERS)
    return response
