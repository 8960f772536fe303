"""Write the viewer as static files, which any web server or object store can serve, also offline."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from roadworthy.errors import RoadworthyError, UsageError
from roadworthy.folders import require_writable
from roadworthy.record.files import file_inside, naming
from roadworthy.viewer.site import Site

README = """This folder is a viewer for runs of Roadworthy: plain files that any web server can serve.

On this machine, without a network:

    python -m http.server --bind 127.0.0.1 --directory . 8000

Then open http://127.0.0.1:8000/ in a browser. (A browser loads no modules from file:// addresses.)
On a server or an object store, copy the whole folder; nothing runs there. Requests for parts of files are not needed.
"""
README_EMBEDDED = """This folder is a viewer for the runs beside it. It reads motion and videos from where they are.

On this machine, without a network:

    python -m http.server --bind 127.0.0.1 --directory .. 8000

Then open http://127.0.0.1:8000/viewer/ in a browser. (A browser loads no modules from file:// addresses.)
"""
EMBEDDED = "viewer"
LEVEL = 6
_LARGE = ("/trace/", "/policy/", "/file/")
INDEX = "index.html"


@dataclass(frozen=True)
class Written:
    """What a bundle holds."""

    folder: Path
    files: int
    bytes: int
    skipped: tuple[str, ...]  # a sentence for each file of a record that could not be read


def write_bundle(
    folders: Sequence[str | Path],
    out: str | Path,
    *,
    is_light: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Written:
    """Write a bundle into a folder that is empty, new, or an earlier bundle.

    Args:
        folders: Folders that hold runs.
        out: The folder to write.
        is_light: Leave out recorded motion and videos, which are most of the bytes.
        progress: Called with the number of files that are written, and of all.
    """
    site = Site(folders, level=LEVEL)
    paths = [path for path in site.paths() if not (is_light and _is_large(path))]
    return _written(site, Path(out), paths, README, progress)


def _written(
    site: Site, out: Path, paths: Sequence[str], readme: str, progress: Callable[[int, int], None] | None
) -> Written:
    _require_own(out)
    require_writable(out)
    shutil.rmtree(out / "data", ignore_errors=True)
    files, size, skipped = 0, 0, []
    for done, path in enumerate(paths):
        if progress is not None:
            progress(done, len(paths))
        try:
            body = site.get(path).body
        except (RoadworthyError, OSError, ValueError, KeyError) as error:
            skipped.append(f"{path}: {error}")
            continue
        place = out / path
        with naming(place):
            place.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(body, Path):
                shutil.copyfile(body, place)
                size += place.stat().st_size
            else:
                place.write_bytes(body)
                size += len(body)
        files += 1
    (out / "README.txt").write_text(readme, encoding="utf-8")
    if progress is not None:
        progress(len(paths), len(paths))
    return Written(out, files, size, tuple(skipped))


def embed(folder: str | Path, *, progress: Callable[[int, int], None] | None = None) -> Written:
    """Write the viewer into a folder of runs, or into a run folder, as FOLDER/viewer.

    Recorded motion and videos are not copied: the page reads them from where they are. So the whole folder can be moved
    and served.
    """
    folder = Path(folder).absolute()
    out = folder / EMBEDDED
    site = Site([folder], level=LEVEL, home=out)
    if file_inside(folder, EMBEDDED) is None:
        raise UsageError(f"{out}: is a link that leads elsewhere; remove it")
    return _written(site, out, [path for path in site.paths() if not _is_large(path)], README_EMBEDDED, progress)


def _is_large(path: str) -> bool:
    return any(part in path for part in _LARGE)


def _require_own(out: Path) -> None:
    """Raise an error if a folder holds anything but an earlier bundle."""
    if not out.exists():
        return
    if not out.is_dir():
        raise UsageError(f"{out}: is a file; a bundle needs a folder, such as site")
    is_earlier = (out / INDEX).is_file() and (out / "data" / "site.json").is_file()
    if any(out.iterdir()) and not is_earlier:
        raise UsageError(
            f"{out}: holds other files; give a new or an empty folder for the bundle, or an earlier bundle"
        )
