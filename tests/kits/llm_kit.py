"""A chat-completions endpoint on loopback: it speaks the real protocol, and fails as real ones do.

A test gives it the turns that it takes, one for each request; it remembers what it was sent.
"""

import contextlib
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KEY_VARIABLE = "LLM_KIT_KEY"
KEY = "sk-kit/0123456789+secret=="
USAGE = {"prompt_tokens": 1_000, "completion_tokens": 200, "total_tokens": 1_200}
PATIENCE_S = 120.0
"""How long a turn waits for something that a test should bring about."""


@dataclass
class Seen:
    """One request, as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: dict


@dataclass
class Server:
    """An endpoint that is up.

    base_url: where it is
    turns: what it will do next
    otherwise: what it does once there are no turns any more
    seen: what it was sent
    inside: how many requests it keeps waiting (`waits_for`); most_inside: the most there ever were
    is_closing: set when it ends
    """

    turns: list
    otherwise: Callable
    base_url: str = ""
    seen: list = field(default_factory=list)
    inside: int = 0
    most_inside: int = 0
    is_closing: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)


Turn = Callable[[BaseHTTPRequestHandler, Seen, Server], None]


@contextlib.contextmanager
def serving(*turns: Turn, otherwise: Turn | None = None):
    """An endpoint that takes these turns and no more, unless it is told what to do then."""
    server = Server(list(turns), otherwise or fails(418, "no turns are left"))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            size = int(self.headers.get("content-length", 0))
            headers = {name.lower(): value for name, value in self.headers.items()}
            seen = Seen(self.path, headers, json.loads(self.rfile.read(size)))
            with server.lock:
                server.seen.append(seen)
                turn = server.turns.pop(0) if server.turns else server.otherwise
            # A client that has had enough hangs up.
            with contextlib.suppress(ConnectionError):
                turn(self, seen, server)

        def do_CONNECT(self):
            """What a proxy is asked for; it lets nobody through."""
            headers = {name.lower(): value for name, value in self.headers.items()}
            server.seen.append(Seen(self.path, headers, {}))
            send(self, 502, b"{}")

        def log_message(self, *arguments):
            """Tests are quiet."""

    class Listener(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request, client_address):
            """A client that hangs up is no error of ours."""

    with Listener(("127.0.0.1", 0), Handler) as listener:
        server.base_url = f"http://127.0.0.1:{listener.server_address[1]}/v1"
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.is_closing.set()
            listener.shutdown()
            thread.join()


# -- what it sends --


def send(handler, status, data, headers=()):
    """A whole response."""
    handler.send_response_only(status)  # a turn may have a date of its own
    for name, value in {
        "Content-Type": "application/json",
        "Content-Length": str(len(data)),
        "Connection": "close",
        **dict(headers),
    }.items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(data)
    handler.close_connection = True


def start_stream(handler):
    handler.send_response(200)
    handler.send_header("Content-Type", "text/event-stream; charset=utf-8")
    handler.send_header("Connection", "close")
    handler.end_headers()
    handler.close_connection = True


def event(**fields):
    """One server-sent event."""
    document = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "model": "kit-1", **fields}
    return b"data: " + json.dumps(document, ensure_ascii=False).encode() + b"\n\n"


def events(text, usage=USAGE, finish="stop", size=7):
    """All events of an answer, as a server streams them."""
    yield b": a comment, as some servers send to keep connections open\n\n"
    yield event(choices=[{"index": 0, "delta": {"role": "assistant", "content": ""}}], usage=None)
    for start in range(0, len(text), size):
        delta = {"content": text[start : start + size]}
        yield event(choices=[{"index": 0, "delta": delta, "finish_reason": None}], usage=None)
    yield event(choices=[{"index": 0, "delta": {}, "finish_reason": finish}], usage=None)
    if usage is not None:
        yield event(choices=[], usage=usage)
    yield b"data: [DONE]\n\n"


def completion(text, usage=USAGE, finish="stop", **message):
    """A whole answer."""
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text, **message},
        "finish_reason": finish,
    }
    document = {"id": "chatcmpl-1", "object": "chat.completion", "model": "kit-1"}
    return json.dumps({**document, "choices": [choice], "usage": usage}).encode()


# -- turns --


def says(text, usage=USAGE, finish="stop", **message):
    """An answer, streamed if that is asked for."""

    def turn(handler, seen, server):
        if not seen.body.get("stream"):
            send(handler, 200, completion(text, usage, finish, **message))
            return
        start_stream(handler)
        for part in events(text, usage, finish):
            handler.wfile.write(part)

    return turn


def fails(status, message="something went wrong", headers=(), code=None):
    """An error, as OpenAI has them."""
    error = {"error": {"message": message, "type": "kit", "code": code}}
    return sends(json.dumps(error).encode(), status, headers)


def reasons(text):
    """An answer of a reasoning model of OpenAI's, which refuses what such models refuse."""

    def refuses(field, code, message):
        error = {"message": message, "type": "invalid_request_error", "param": field, "code": code}
        return sends(json.dumps({"error": error}).encode(), 400)

    def turn(handler, seen, server):
        answer = says(text)
        if "max_tokens" in seen.body:
            answer = refuses(
                "max_tokens",
                "unsupported_parameter",
                "Unsupported parameter: 'max_tokens' is not supported with this model. "
                "Use 'max_completion_tokens' instead.",
            )
        elif seen.body.get("temperature", 1) != 1:
            answer = refuses(
                "temperature",
                "unsupported_value",
                f"Unsupported value: 'temperature' does not support {seen.body['temperature']} "
                "with this model. Only the default (1) value is supported.",
            )
        answer(handler, seen, server)

    return turn


def sends(data, status=200, headers=()):
    """These very bytes."""
    return lambda handler, seen, server: send(handler, status, data, headers)


def echoes_key(status=400):
    """An error that repeats the header with the key: at its end, after much else."""

    def turn(handler, seen, server):
        message = "x" * 480 + f" your header was: {seen.headers.get('authorization')}"
        fails(status, message)(handler, seen, server)

    return turn


def says_key():
    """An answer that has found the key somewhere, and uses it."""

    def turn(handler, seen, server):
        key = seen.headers["authorization"].removeprefix("Bearer ")
        says(f"FILE: src/slow.py\n```\nKEY = '{key}'\n```")(handler, seen, server)

    return turn


def redirects(url, status=307):
    return fails(status, "moved", {"Location": url})


def busy_until(seconds):
    """429, with a date to come back at, by the server's own clock."""
    headers = {"Date": formatdate(1_000_000, usegmt=True)}
    headers["Retry-After"] = formatdate(1_000_000 + seconds, usegmt=True)
    return fails(429, "slow down", headers)


def hangs(*, after=b""):
    """Nothing, or the beginning of a stream, and then nothing more until the client leaves."""

    def turn(handler, seen, server):
        if after:
            start_stream(handler)
            handler.wfile.write(after)
        server.is_closing.wait()  # whoever asks has the less patience
        handler.close_connection = True

    return turn


def hangs_up(*, after=b""):
    """A connection that ends in the midst of a stream, or before anything."""

    def turn(handler, seen, server):
        handler.close_connection = True
        if after:
            start_stream(handler)
            handler.wfile.write(after)

    return turn


def breaks_off(text):
    """A whole answer of which half arrives."""

    def turn(handler, seen, server):
        data = completion(text)
        handler.send_response(200)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data[: len(data) // 2])
        handler.close_connection = True

    return turn


def waits_for(go, text):
    """An answer that comes once an event is set; until then the request is inside."""

    def turn(handler, seen, server):
        with server.lock:
            server.inside += 1
            server.most_inside = max(server.most_inside, server.inside)
        go.wait(PATIENCE_S)
        # It leaves before it answers: whoever comes next has waited for the answer.
        with server.lock:
            server.inside -= 1
        says(text)(handler, seen, server)

    return turn
