"""A browser, servers and bundles for tests of the viewer."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from roadworthy.viewer.bundle import write_bundle
from roadworthy.viewer.site import Site

REQUIRE = "ROADWORTHY_REQUIRE_BROWSER"
CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def _missing(reason: str) -> None:
    if os.environ.get(REQUIRE):
        pytest.fail(f"{reason}, but {REQUIRE} is set")
    pytest.skip(f"{reason}; `make test` installs it where it may")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium for all tests."""
    path = next((found for name in CHROMIUMS if (found := shutil.which(name))), None)
    if path is None:
        _missing(f"there is no Chromium ({', '.join(CHROMIUMS)})")
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        _missing("playwright is not installed")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page of its own; the test fails if it reports an error or asks another host."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    problems: list[str] = []
    opened.on("pageerror", lambda error: problems.append(f"error: {error}"))
    opened.on("console", lambda message: message.type == "error" and problems.append(f"console: {message.text}"))
    opened.on("request", lambda request: _is_foreign(request.url) and problems.append(f"request: {request.url}"))
    opened.problems = problems
    yield opened
    context.close()
    assert problems == []


@pytest.fixture(scope="session")
def served() -> Iterator[Callable[..., str]]:
    """A function that serves folders live and returns the address."""
    import uvicorn

    from roadworthy.viewer.server import create_app

    with ExitStack() as stack:

        def start(*folders: Path, host: str = "127.0.0.1", token: str | None = None) -> str:
            listener = socket.socket()
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            app = create_app(Site(folders, is_live=True), host, token)
            server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
            thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
            thread.start()
            stack.callback(thread.join, 5.0)
            stack.callback(setattr, server, "should_exit", True)
            return f"http://127.0.0.1:{listener.getsockname()[1]}/"

        yield start


class _Files(http.server.SimpleHTTPRequestHandler):
    """The file server of the standard library, without its log."""

    def log_message(self, *words: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="session")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., str]]:
    """A function that writes a bundle of folders, serves it as plain files and returns the address."""
    with ExitStack() as stack:

        def start(*folders: Path, **options: Any) -> str:
            out = tmp_path_factory.mktemp("bundle") / "site"
            write_bundle(folders, out, **options)
            return start_files(stack, out)

        yield start


def start_files(stack: ExitStack, folder: Path) -> str:
    """Serve a folder with the file server of the standard library."""
    handler = functools.partial(_Files, directory=str(folder))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stack.callback(server.server_close)
    stack.callback(server.shutdown)
    return f"http://127.0.0.1:{server.server_address[1]}/"


def _is_foreign(address: str) -> bool:
    found = urlsplit(address)
    return found.scheme in ("http", "https", "ws", "wss") and found.hostname != "127.0.0.1"
