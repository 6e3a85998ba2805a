"""A probe of an endpoint, before anything is asked of it."""

import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import anyio
import pytest

from fairtrial.core import AccessError, LabError
from fairtrial.llm import ChatClient, ChatOptions


def probe(url, **options):
    async def run():
        await ChatClient(ChatOptions(base_url=url, model="m", **options)).probe()

    anyio.run(run)


@pytest.fixture
def answering():
    servers = []

    def start(status):
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        server = HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/v1"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("status", [200, 403, 404, 501])
def test_an_endpoint_that_answers_is_there(answering, status):
    probe(answering(status), key_variable="")


def test_a_rejected_key_is_named_by_its_variable(answering, monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret-key-123")
    with pytest.raises(AccessError, match="environment variable MY_KEY"):
        probe(answering(401), key_variable="MY_KEY")


def test_an_endpoint_that_is_not_there_is_said_to_be_out_of_reach(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(LabError, match="can't be reached"):
        probe(f"http://127.0.0.1:{port}/v1", key_variable="")
    replay = {"cache": "replay", "cache_dir": str(tmp_path)}
    probe(f"http://127.0.0.1:{port}/v1", key_variable="", **replay)
