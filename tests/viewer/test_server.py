"""The server answers only to who may ask, and only with files of the site."""

from __future__ import annotations

import http.client
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from roadworthy.viewer.server import POLICY, is_loopback
from tests.viewer.made_up import results, write_run


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    write_run(root, results(4))
    return root


@pytest.fixture(scope="module")
def address(served: Any, root: Path) -> str:
    return str(served(root))


def ask(address: str, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes, dict[str, str]]:
    """Return status, body and headers; the path is sent as it is, and `_` in names of headers is `-`."""
    place = urlsplit(address)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=10)
    connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}


@pytest.mark.row("SEC-2")
def test_every_answer_forbids_scripts_and_requests_of_others(address: str) -> None:
    for path in ("/", "/app/main.js", "/data/runs.json", "/nothing"):
        _, _, headers = ask(address, path)
        assert headers["content-security-policy"] == POLICY
        assert headers["x-content-type-options"] == "nosniff"
    assert "unsafe" not in POLICY
    assert "'none'" in POLICY
    assert "http" not in POLICY


@pytest.mark.row("SEC-2")
@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::ffff:1.2.3.4]"])
def test_other_names_of_this_machine_are_refused(address: str, host: str) -> None:
    """A page of another site can make its name mean this machine, and so read what the browser gets from here."""
    status, body, _ = ask(address, "/data/runs.json", Host=host)
    assert status in (400, 403)
    assert b"town" not in body


@pytest.mark.row("SEC-2")
def test_pages_of_other_sites_are_refused(address: str) -> None:
    own = address.rstrip("/")
    assert ask(address, "/data/runs.json", Origin=own)[0] == 200
    for origin in (
        "http://evil.example",
        "http://127.0.0.1:1",
        "null",
        "https://" + urlsplit(address).netloc + ".evil.example",
    ):
        assert ask(address, "/data/runs.json", Origin=origin)[0] == 403, origin
    assert ask(address, "/data/runs.json", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="cors")[0] == 403
    assert ask(address, "/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 200  # a link to it


@pytest.mark.row("SEC-2")
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_changed(address: str, method: str) -> None:
    assert ask(address, "/data/runs.json", method)[0] == 405


@pytest.mark.row("SEC-2")
def test_paths_lead_to_files_of_the_site_alone(address: str, root: Path) -> None:
    key = next(root.glob("*/*/run.json")).parent.name[-8:]
    (root.parent / "secret.mp4").write_bytes(b"secret")
    for path in (
        "/../secret.mp4",
        "/app/../../secret.mp4",
        "/app/..%2f..%2f__init__.py",
        "/app/%2e%2e/server.py",
        f"/data/run/{key}/file/../../../../secret.mp4",
        f"/data/run/{key}/file/..%2f..%2f..%2f..%2fsecret.mp4",
        f"/data/run/{key}/file/%2Fetc%2Fpasswd",
        f"/data/run/{key}/file//etc/passwd",
        f"/data/run/{key}/file/run.json",
        f"/data/run/{key}/file/videos%00.mp4",
        f"/data/run/{key}/trace/-1.trace",
        f"/data/run/{key}/episodes/3-1.cols",
        f"/data/run/{key}/episodes/0-5.cols",
        "/data/run/..%2f..%2fsecret/run.json",
    ):
        status, body, _ = ask(address, path)
        assert status in (404, 422), path
        assert b"secret" not in body.replace(b"secret.mp4", b""), path


@pytest.mark.row("SEC-2")
def test_links_out_of_a_run_are_not_followed(address: str, root: Path) -> None:
    folder = next(root.glob("*/*/run.json")).parent
    (root.parent / "outside").mkdir()
    (root.parent / "outside" / "film.mp4").write_bytes(b"secret")
    (folder / "videos").symlink_to(root.parent / "outside")
    (folder / "single.png").symlink_to(root.parent / "outside" / "film.mp4")
    key = folder.name[-8:]
    for path in ("videos/film.mp4", "single.png"):
        status, body, _ = ask(address, f"/data/run/{key}/file/{path}")
        assert status == 422
        assert b"leads out of the run folder" in body
    (folder / "inside.png").write_bytes(b"picture")
    status, body, headers = ask(address, f"/data/run/{key}/file/inside.png")
    assert (status, body, headers["content-type"]) == (200, b"picture", "image/png")
    (folder / "page.html").write_text("<script>1</script>")
    assert ask(address, f"/data/run/{key}/file/page.html")[0] == 404


@pytest.mark.row("SEC-2")
def test_other_machines_need_the_token(served: Any, root: Path) -> None:
    address = served(root, host="0.0.0.0", token="open-sesame")
    assert ask(address, "/data/runs.json")[0] == 401
    assert ask(address, "/?token=wrong")[0] == 401
    status, _, headers = ask(address, "/?token=open-sesame")
    assert (status, headers["location"]) == (303, "./")
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert ask(address, "/data/runs.json", Cookie=cookie.partition(";")[0])[0] == 200
    assert ask(address, "/data/runs.json", Authorization="Bearer open-sesame")[0] == 200
    assert ask(address, "/data/runs.json", Authorization="Bearer open-sesame", Host="evil.example")[0] == 403


def test_addresses_of_this_machine_are_told_from_others() -> None:
    assert all(map(is_loopback, ("127.0.0.1", "127.8.8.8", "localhost", "::1", "[::1]")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.2", "example.com", "")))


@pytest.mark.row("UI-2")
def test_unchanged_files_travel_once(address: str) -> None:
    status, body, headers = ask(address, "/data/runs.json")
    assert status == 200
    assert len(body) > 100
    assert ask(address, "/data/runs.json", If_None_Match=headers["etag"])[:2] == (304, b"")
