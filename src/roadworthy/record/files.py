"""Files of a run folder: written whole or not at all, with names that every system takes and errors that help."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from roadworthy.errors import RecordError, RoadworthyError

TEMPORARY_PREFIX, TEMPORARY_SUFFIX = ".", ".tmp"
_LONGEST_NAME = 160  # of 255 bytes that systems allow; an ending and more words may follow


def safe_name(text: str) -> str:
    """A file's name for an id: the id itself if it is plain, else quoted; different ids get different names."""
    name = quote(text, safe=" +,=@").replace(" ", "%20")
    if name.startswith((".", "~", "-")):
        name = f"%{ord(name[0]):02X}{name[1:]}"
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}%{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return name or "%"


def file_inside(folder: Path, path: str | Path) -> Path | None:
    """Return the place that a relative path of a record names; None where it leads out of the folder.

    Absolute paths, `..` and links lead out. What a run folder names outside of itself is neither read nor written.
    """
    if Path(path).is_absolute():
        return None
    try:
        whole = folder.resolve()
        return folder / path if (whole / path).resolve().is_relative_to(whole) else None
    except (OSError, RuntimeError, ValueError):  # links in a circle, a null byte
        return None


def write_whole(path: Path, block: bytes) -> None:
    """Write a file under another name and let it take its own when it is complete."""
    name = str(path)
    folder, slash, base = name.rpartition(os.sep)
    temporary = f"{folder}{slash}{TEMPORARY_PREFIX}{base}.{secrets.token_hex(4)}{TEMPORARY_SUFFIX}"
    try:
        with naming(path):
            with open(temporary, "xb", buffering=0) as file:
                rest = memoryview(block)
                while rest:
                    rest = rest[file.write(rest) :]
            os.replace(temporary, name)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def write_unannounced(path: Path, block: bytes) -> None:
    """Write a file that nobody looks for before another one names it; what a failure leaves of it is removed.

    With half as many calls to the system as `write_whole`.
    """
    name = str(path)
    try:
        with naming(path):
            descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
            try:
                rest = memoryview(block)
                while rest:
                    rest = rest[os.write(descriptor, rest) :]
            finally:
                os.close(descriptor)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file for people and programs, whole or not at all, and have it outlast a power failure."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    write_whole(path, f"{text}\n".encode())
    sync(path)


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file that holds an object."""
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise RecordError(f"{path}: can't be read: {error.strerror}") from error
    except ValueError as error:
        raise RecordError(f"{path}: is damaged: it is no JSON ({error})") from error
    if not isinstance(value, dict):
        raise RecordError(f"{path}: is damaged: it holds no JSON object")
    return value


def sync(*paths: Path) -> None:
    """Have files and folders outlast a power failure, where the system knows how."""
    for path in paths:
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def remove_leftovers(folder: Path) -> None:
    """Remove what a killed writer left half-written; only for the one who holds the folder's lock."""
    for path in folder.glob(f"{TEMPORARY_PREFIX}*{TEMPORARY_SUFFIX}"):
        with suppress(OSError):
            path.unlink()


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn a system's error while writing into one that names the file and says what to do."""
    try:
        yield
    except OSError as error:
        raise writing_error(path, error) from error


def writing_error(path: Path, error: OSError) -> RoadworthyError:
    """What to tell when a file of a run can't be written."""
    advice = "mend that and give the same command again: it goes on where it stopped"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        advice = "make room and give the same command again: it goes on where it stopped"
    return RoadworthyError(f"{path}: can't be written: {error.strerror or error}; {advice}")
