"""Addresses of Ray clusters: what can't be one is refused, and at once."""

import socket
import threading
import time
from contextlib import contextmanager

import pytest

from fairtrial.core import LabError
from fairtrial.study.runner.executors.ray_address import find_silence, is_same_place
from fairtrial.study.runner.executors.ray_executor import Ray
from fairtrial.testing.executor_driver import run_all
from fairtrial.testing.executor_work import assign

SETTINGS = bytes((0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 64, 0, 0))


@contextmanager
def answering(data):
    """A server that sends `data` to everyone, and then keeps quiet."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections = []

        def serve():
            try:
                while True:
                    connection, _ = server.accept()
                    connections.append(connection)
                    connection.sendall(data)
            except OSError:
                pass

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        for connection in connections:
            connection.close()


@pytest.mark.parametrize(
    "address", ["", "localhost", ":6379", "a:", "a:b", "a:0", "a:70000", "ray://a:10001"]
)
def test_a_text_that_is_no_address_is_refused_before_anything_runs(address):
    [mistake] = Ray(address=address).find_mistakes()
    assert "HOST:PORT" in str(mistake)


@pytest.mark.parametrize("address", [None, "auto", "head:6379", "10.0.0.1:1", "[::1]:6379"])
def test_a_text_that_may_be_an_address_is_accepted(address):
    assert not Ray(address=address).find_mistakes()


def test_an_empty_address_of_a_command_is_a_mistake(run, tmp_path):
    (tmp_path / "study.yaml").write_text(
        "study_id: s\ntitle: t\nfactors: [{name: x, levels: [1, 2]}]\n"
        "condition_runner: os:getcwd\noutput_dir: out\n"
    )
    code, _, err = run("run", tmp_path / "study.yaml", "--address", "", "--dry-run")
    assert code == 2
    assert "an empty text is no address of a cluster" in err


def test_ray_is_known_by_how_it_answers():
    with answering(SETTINGS) as address:
        assert find_silence(address) is None
    with answering(b"HTTP/1.0 400 Bad request\r\n") as address:
        assert find_silence(address) == "what answers there is not Ray"
    with answering(b"") as address:
        assert find_silence(address, 0.2) == "no answer"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    assert find_silence(f"127.0.0.1:{port}") == "Connection refused"


def test_an_address_without_ray_is_refused_at_once():
    pytest.importorskip("ray")
    with answering(b"SSH-2.0-x\r\n") as address:
        began = time.monotonic()
        with pytest.raises(LabError, match=f"no Ray at {address}: what answers there is not Ray"):
            run_all(Ray(address), [assign(0)])
        assert time.monotonic() - began < 60, "Ray itself would wait for minutes"


def test_the_same_place_has_several_names():
    assert is_same_place("127.0.0.1:6379", "127.0.0.1:6379")
    assert is_same_place("localhost:6379", "192.0.2.2:6379")
    assert not is_same_place("127.0.0.1:6380", "127.0.0.1:6379")
    assert not is_same_place("192.0.2.3:6379", "192.0.2.2:6379")
