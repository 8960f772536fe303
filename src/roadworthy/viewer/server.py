"""Serve the viewer: read-only, to this machine by default, with checks against other sites and other machines."""

from __future__ import annotations

import hmac
import secrets
import socket
import webbrowser
from collections.abc import Callable, Mapping
from http.cookies import CookieError, SimpleCookie
from ipaddress import ip_address
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlencode, urlsplit

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from roadworthy.errors import RoadworthyError, UsageError
from roadworthy.viewer.site import NotThere, Site

if TYPE_CHECKING:
    from starlette.types import ASGIApp

COOKIE = "roadworthy-viewer"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; media-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]", "::1")
_OTHER_SITES = ("cross-site", "same-site")  # values of Sec-Fetch-Site: the request comes from a page of another origin


def create_app(site: Site, host: str, token: str | None) -> ASGIApp:
    """Return the application. Requests need a `Host` of this server, no foreign `Origin`, and the token, if any.

    Args:
        site: The files.
        host: The name or address that the server listens on.
        token: A secret for machines other than this one; None for loopback.
    """

    async def answer(request: Request) -> Response:
        refused = _refusal(request, host)
        if refused is not None:
            return PlainTextResponse(f"{refused}\n", 403, HEADERS)
        if token is not None and not _has_token(request, token):
            if _is_same(parse_qs(request.url.query).get("token", [""])[0], token):
                rest = {name: value for name, value in request.query_params.items() if name != "token"}
                target = f"./{'?' + urlencode(rest) if rest else ''}"
                response: Response = RedirectResponse(target, 303, HEADERS)
                response.set_cookie(COOKIE, token, httponly=True, samesite="strict")
                return response
            return PlainTextResponse(
                "this viewer needs the address with its token, as the terminal shows it\n", 401, HEADERS
            )
        path = request.path_params["path"] or "index.html"
        try:
            # Files of the page are at hand; data may take a while.
            content = await run_in_threadpool(site.get, path) if path.startswith("data/") else site.get(path)
        except NotThere:
            return PlainTextResponse("there is no such file\n", 404, HEADERS)
        except (RoadworthyError, OSError, ValueError, KeyError) as error:
            return PlainTextResponse(f"{error}\n", 422, HEADERS)
        headers = {**HEADERS, "ETag": content.etag}
        if _matches(request.headers.get("if-none-match"), content.etag):
            return Response(None, 304, headers)
        if isinstance(content.body, Path):
            return FileResponse(content.body, headers=headers, media_type=content.kind)
        return Response(content.body, headers=headers, media_type=content.kind)

    return Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "HEAD"])])


def serve(
    site: Site,
    *,
    host: str,
    port: int,
    token: str | None = None,
    opens_browser: bool = True,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve until interrupted.

    Args:
        site: The files.
        host: The address to listen on; beyond loopback, a token is required and made if none is given.
        port: The port; 0 takes a free one.
        token: The secret for machines other than this one.
        opens_browser: Open the page in a browser.
        ready: Called with the address once the port is taken.
    """
    if not is_loopback(host):
        token = token or secrets.token_urlsafe(18)
    listener = _listen(host, port)
    shown = f"[{host}]" if ":" in host else "127.0.0.1" if host in ("0.0.0.0", "") else host
    address = f"http://{shown}:{listener.getsockname()[1]}/{f'?token={token}' if token else ''}"
    config = uvicorn.Config(create_app(site, host, token), log_level="warning", access_log=False, server_header=False)
    if opens_browser:
        timer = Timer(0.5, webbrowser.open, (address,))
        timer.daemon = True
        timer.start()
    ready(address)
    with listener:
        uvicorn.Server(config).run(sockets=[listener])


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine alone."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host.strip("[]"), port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise UsageError(f"can't listen on {host} port {port}: {error.strerror}; choose another --port") from error
    return listener


def _refusal(request: Request, host: str) -> str | None:
    """Return why a request is refused: it is for another host, or it comes from the page of another site."""
    given = request.headers.get("host", "")
    name = urlsplit(f"//{given}").hostname or ""
    if is_loopback(host):
        if name not in LOOPBACK_NAMES:
            return "this viewer answers to localhost alone"
    elif not _is_address(name) and name not in (host, *LOOPBACK_NAMES):
        return "this viewer answers to its own name or address alone"
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != given:
        return "this viewer does not answer to pages of other sites"
    is_page = request.headers.get("sec-fetch-mode") == "navigate"
    if request.headers.get("sec-fetch-site") in _OTHER_SITES and not is_page:
        return "this viewer does not answer to pages of other sites"
    return None


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _has_token(request: Request, token: str) -> bool:
    return _is_same(_cookie(request.headers), token) or _is_same(
        request.headers.get("authorization", "").removeprefix("Bearer "), token
    )


def _cookie(headers: Mapping[str, str]) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found else ""


def _is_same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())


def _matches(given: str | None, etag: str) -> bool:
    return given is not None and etag in (part.strip().removeprefix("W/") for part in given.split(","))
