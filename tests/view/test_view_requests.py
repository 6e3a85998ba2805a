"""What the server of live pages answers, and to whom."""

import json
import socket
import stat
from pathlib import Path

import httpx
import pytest
from page_kit import hostile_study, make_hostile_study
from view_kit import serve

from fairtrial import StudyError
from fairtrial.study import lock_study
from fairtrial.view import Viewer

PAGE = "text/html; charset=utf-8"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a finished, an unfinished, a locked and an unreadable study."""
    folder = tmp_path_factory.mktemp("studies")
    make_hostile_study(folder / "finished", replicates=2).close()
    make_hostile_study(folder / "deeper" / "half", replicates=2, limit=14).close()
    lock_study(hostile_study(folder / "locked"))
    (folder / "torn").mkdir()
    (folder / "torn" / "ledger.sqlite").write_bytes(b"no ledger at all, but long enough" * 9)
    outside = tmp_path_factory.mktemp("outside")
    make_hostile_study(outside / "secret", replicates=1).close()
    (folder / "link").symlink_to(outside / "secret")
    return folder


@pytest.fixture(scope="module")
def server(place, tmp_path_factory):
    with serve(place, tmp_path_factory.mktemp("locks")) as server:
        yield server


@pytest.fixture(scope="module")
def client(server):
    with server.client() as client:
        yield client


def read_list(client):
    with client.stream("GET", "/events") as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = (line for line in response.iter_lines() if line.startswith("data: "))
        for line in lines:  # verdicts come once they are computed
            studies = json.loads(line[6:])["studies"]
            if any(entry.get("verdicts") for entry in studies):
                return {entry["name"]: entry for entry in studies}
    raise AssertionError


@pytest.fixture(scope="module")
def studies(client):
    return read_list(client)


def test_the_list_has_state_progress_and_the_verdicts_of_finished_studies(studies):
    assert {name: entry["state"] for name, entry in studies.items()} == {
        "finished": "finished",
        "deeper/half": "stopped",
        "locked": "waiting",
        "torn": "unreadable",
    }
    assert studies["deeper/half"]["progress"]["done"] == 14
    assert [card["verdict"] for card in studies["finished"]["verdicts"]] != []
    assert "verdicts" not in studies["deeper/half"]


def test_links_that_lead_out_of_the_folder_are_not_followed(studies):
    assert "link" not in studies


@pytest.mark.parametrize("path", ["/", "/events", "/compare", "/study/x/", "/study/x/data"])
def test_nobody_is_answered_without_the_token(server, path):
    response = httpx.get(server.base + path)
    assert response.status_code == 403
    assert "hostile" not in response.text


@pytest.mark.parametrize("token", ["", "wrong", "é", "x" * 5000])
def test_a_wrong_token_gets_no_cookie(server, token):
    response = httpx.get(f"{server.base}/", params={"token": token})
    assert response.status_code == 403
    assert "set-cookie" not in response.headers


def test_the_cookie_is_for_this_server_only(server):
    response = httpx.get(server.address)
    assert response.status_code == 303
    assert "token" not in response.headers["location"]
    cookie = response.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert server.address.partition("token=")[2] not in cookie


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Host": "evil.example:{port}"},
        {"Host": "127.0.0.1:1"},
        {"Host": "127.0.0.1"},
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
    ],
)
def test_other_hosts_and_origins_are_refused(server, client, headers):
    filled = {name: value.format(port=server.port) for name, value in headers.items()}
    assert client.get("/", headers=filled).status_code == 403


def test_no_answer_allows_other_origins(client, studies):
    paths = ["/", "/nothing", f"/study/{studies['finished']['id']}/data"]
    for response in (client.get(path) for path in paths):
        assert not [name for name in response.headers if name.startswith("access-control")]
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["cross-origin-resource-policy"] == "same-origin"
        assert response.headers["cache-control"] == "no-store"


def test_pages_allow_no_scripts_but_their_own(client, studies):
    for path in ("/", f"/study/{studies['finished']['id']}/"):
        response = client.get(path)
        assert response.headers["content-type"] == PAGE
        policy = response.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'sha256-")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize(
    "path",
    [
        "/study/../../etc/passwd",
        "/study/%2e%2e%2f%2e%2e/data",
        "/ledger.sqlite",
        "/finished/ledger.sqlite",
        "/study/000000000000/data",
        "/study/000000000000/run/x",
        "/static/x",
    ],
)
def test_no_file_is_served(client, path):
    assert client.get(path).status_code == 404


def test_a_finished_study_is_shown_with_verdicts_and_outcomes(client, studies):
    data = client.get(f"/study/{studies['finished']['id']}/data").json()
    assert data["hidden"] is False
    assert data["verdicts"][0]["estimate"]
    assert data["outcomes"][0]["groups"]
    assert len(data["runs"]["id"]) == 24


def test_an_unfinished_study_is_shown_without_what_compares_its_conditions(client, studies, place):
    data = client.get(f"/study/{studies['deeper/half']['id']}/data").json()
    assert data["hidden"] is True
    assert len(data["runs"]["id"]) == 14
    assert data["progress"]["done"] == 14
    assert data["spending"]["latency"]["bins"]
    for part in ("verdicts", "effects", "outcomes", "parts", "record", "precision"):
        assert data[part] == []
    assert data["runs"]["values"] == []
    assert not (place / "deeper" / "half" / "looks.jsonl").exists()


def test_showing_verdicts_early_is_recorded_as_a_look(tmp_path):
    make_hostile_study(tmp_path / "studies" / "half", replicates=2, limit=14).close()
    looks = tmp_path / "studies" / "half" / "looks.jsonl"
    with (
        serve(tmp_path / "studies", tmp_path / "locks") as server,
        server.client() as client,
        client.stream("GET", "/events") as response,
    ):
        line = next(line for line in response.iter_lines() if line.startswith("data: "))
        path = f"/study/{json.loads(line[6:])['studies'][0]['id']}/look"
        assert client.get(path).status_code == 405
        assert client.post(path).status_code == 403  # it doesn't say where it comes from
        assert not looks.exists()
        data = client.post(path, headers={"Origin": server.base}).json()
        assert data["hidden"] is False
        assert data["verdicts"][0]["preliminary"] is True
        assert json.loads(looks.read_text())["results"] == 14


def test_a_run_is_shown_with_its_output(client, studies):
    path = f"/study/{studies['finished']['id']}"
    runs = client.get(f"{path}/data").json()["runs"]
    done = runs["id"][runs["status"].index("success")]
    detail = client.get(f"{path}/run/{done}").json()
    assert "<script>" in detail["stdout"]
    assert "\ud800" not in detail["stdout"]
    assert detail["outputs"]
    assert client.get(f"{path}/run/no-such-run").status_code == 404


def test_a_study_that_has_not_begun_or_cannot_be_read_says_so(client, studies):
    wait = client.get(f"/study/{studies['locked']['id']}/data").json()["wait"]
    assert "hasn't begun" in wait
    wait = client.get(f"/study/{studies['torn']['id']}/data").json()["wait"]
    assert "ledger.sqlite" in wait


def test_two_studies_are_compared(client, studies):
    ids = {"a": studies["finished"]["id"], "b": studies["deeper/half"]["id"]}
    data = client.get("/comparison", params=ids).json()
    assert [study["progress"]["done"] for study in data["studies"]] == [24, 14]
    assert data["studies"][0]["verdicts"]
    assert data["studies"][1]["verdicts"] is None
    assert data["studies"][1]["outcomes"] == []
    assert data["differences"] == []
    assert client.get("/comparison", params={"a": ids["a"], "b": "x"}).status_code == 404


def test_studies_are_not_controlled_unless_that_is_allowed(client, studies, server):
    path = f"/study/{studies['finished']['id']}/control/cancel"
    response = client.post(path, headers={"Origin": server.base})
    assert response.status_code == 403
    assert "--control" in response.json()["error"]


def test_a_ledger_in_a_read_only_place_is_shown(tmp_path):
    make_hostile_study(tmp_path / "out", replicates=2).close()
    for path in (tmp_path / "out").iterdir():
        path.chmod(stat.S_IRUSR)
    (tmp_path / "out").chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        with serve(tmp_path / "out", tmp_path / "locks") as server, server.client() as client:
            data = client.get(str(client.get("/").url) + "data").json()
    finally:
        (tmp_path / "out").chmod(stat.S_IRWXU)
    assert data["verdicts"]


def test_interrupting_it_ends_it_without_a_message(tmp_path):
    (tmp_path / "studies").mkdir()
    with serve(tmp_path / "studies", tmp_path / "locks") as server:
        with server.client() as client:
            assert client.get("/").headers["content-type"] == PAGE
        code, text = server.stop()
    assert code == 0
    assert text == "Ctrl-C ends it\n"


def test_a_folder_that_is_not_there_yet_is_said_to_be_missing(tmp_path):
    with serve(tmp_path / "later", tmp_path / "locks") as server:
        code, text = server.stop()
    assert code == 0
    assert text.startswith(f"there is no folder {tmp_path / 'later'} yet: the page waits")


def test_json_has_the_address(tmp_path):
    with serve(tmp_path, tmp_path / "locks", "--json") as server:
        lines = [server.address, *(server.process.stdout.readline() for _ in range(3))]
        assert json.loads("".join(lines))["address"].startswith("http://127.0.0.1:")


def test_a_folder_that_cannot_have_a_study_is_an_error(tmp_path, run):
    code, _, text = run("view", str(tmp_path / "no" / "such"), "--no-open")
    assert code == 2
    assert text.startswith("error: there is no folder")
    (tmp_path / "file").touch()
    with pytest.raises(StudyError, match="no folder"):
        Viewer(tmp_path / "file").serve(print)


def test_a_port_in_use_is_an_error(tmp_path, run):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        code, _, text = run("view", str(tmp_path), "--no-open", "--port", str(port))
    assert code == 4
    assert f"port {port} can't be used" in text


def test_the_server_listens_on_loopback_only(server):
    lines = Path("/proc/net/tcp").read_text().splitlines()
    port = f":{int(server.port):04X} "
    addresses = [line.split()[1] for line in lines if port in line and " 0A " in line]
    assert [address.partition(":")[0] for address in addresses] == ["0100007F"]
