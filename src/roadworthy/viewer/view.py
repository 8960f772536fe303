"""Look at runs in a browser: served live, or written as static files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from roadworthy.errors import UsageError, missing_extra
from roadworthy.viewer.bundle import Written, write_bundle
from roadworthy.viewer.bundle import embed as write_embedded
from roadworthy.viewer.site import Site

PORT = 7788


def view(
    folders: str | Path | Sequence[str | Path] = "runs",
    *,
    bundle: str | Path | None = None,
    light: bool = False,
    embed: bool = False,
    host: str = "127.0.0.1",
    port: int = PORT,
    token: str | None = None,
    browser: bool = True,
    ready: Callable[[str], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Written | None:
    """Show runs in a browser until interrupted, or write the same pages as static files.

    Args:
        folders: A folder of runs, a run folder, or several of them.
        bundle: Write static files into this folder instead of serving; needs no optional dependency.
        light: Leave recorded motion and videos out of the bundle.
        embed: Write the pages into the folder itself, as FOLDER/viewer, without copying motion and videos.
        host: The address to listen on; any other than loopback requires a token.
        port: The port to listen on; 0 takes a free one.
        token: The secret that other machines need; None makes one where it is required.
        browser: Open the page in a browser.
        ready: Called with the address of the page.
        progress: Called with the number of files of the bundle that are written, and of all.

    Returns:
        What was written; None after serving.

    Raises:
        UsageError: A folder does not exist, or the port is taken.

    Example:
        >>> import roadworthy as rw
        >>> written = rw.view("runs", bundle="site")
        >>> (written.folder / "index.html").is_file()
        True
    """
    given = [folders] if isinstance(folders, str | Path) else list(folders)
    if not given:
        raise UsageError("no folder was given; give folders that hold runs, such as runs")
    if embed:
        if bundle is not None or len(given) != 1:
            raise UsageError("embed writes into the one folder that is given; name one folder and no bundle")
        return write_embedded(given[0], progress=progress)
    if bundle is not None:
        return write_bundle(given, bundle, is_light=light, progress=progress)
    site = Site(given, is_live=True)
    try:
        from roadworthy.viewer.server import serve
    except ModuleNotFoundError as error:
        raise missing_extra(error, "a viewer that updates") or error from error
    serve(site, host=host, port=port, token=token, opens_browser=browser, ready=ready or (lambda address: None))
    return None
