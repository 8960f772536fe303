"""Write files of a run folder atomically, under names that every system accepts, with errors that say what to do."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
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
    """Return a file name for an id: the id itself if it is plain, else quoted; different ids get different names."""
    name = quote(text, safe=" +,=@").replace(" ", "%20")
    if name.startswith((".", "~", "-")):
        name = f"%{ord(name[0]):02X}{name[1:]}"
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}%{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return name or "%"


def folder_name(text: str) -> str:
    """Return a folder name without percent signs, which break links to files; different ids get different names."""
    name = safe_name(text)
    if "%" not in name:
        return name
    plain = re.sub("(%[0-9A-F]{2})+|%", "_", name)
    return f"{plain}-{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def file_inside(folder: Path, path: str | Path) -> Path | None:
    """Return the location of a relative path of a record; None if it is outside of the folder.

    Absolute paths, `..` and links can lead out. Nothing outside of a run folder is read or written because it names it.
    """
    if Path(path).is_absolute():
        return None
    try:
        root = folder.resolve()
        return folder / path if (root / path).resolve().is_relative_to(root) else None
    except (OSError, RuntimeError, ValueError):  # circular links, a null byte
        return None


def write_whole(path: Path, block: bytes) -> None:
    """Write a file atomically: under a temporary name, then rename it."""
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
    """Write a file that is not read before another file names it; remove it on failure.

    Takes half as many system calls as `write_whole`.
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
    """Write an indented JSON file atomically and flush it to disk."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    write_whole(path, f"{text}\n".encode())
    sync(path)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON file that holds an object."""
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise RecordError(f"{path}: can't be read: {error.strerror}") from error
    except ValueError as error:
        raise RecordError(f"{path}: is damaged: it is not JSON ({error})") from error
    if not isinstance(value, dict):
        raise RecordError(f"{path}: is damaged: it does not hold a JSON object")
    return value


def sync(*paths: Path) -> None:
    """Flush files and folders to disk, where the system supports it."""
    for path in paths:
        with suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def remove_leftovers(folder: Path) -> None:
    """Remove incomplete files of a killed writer; the caller must hold the folder's lock."""
    for path in folder.glob(f"{TEMPORARY_PREFIX}*{TEMPORARY_SUFFIX}"):
        with suppress(OSError):
            path.unlink()


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn an OSError into an error that names the file and says what to do."""
    try:
        yield
    except OSError as error:
        raise writing_error(path, error) from error


def writing_error(path: Path, error: OSError) -> RoadworthyError:
    """Return the error for a file of a run that can't be written."""
    remedy = "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "fix this"
    return RoadworthyError(
        f"{path}: can't be written: {error.strerror or error}; {remedy} and rerun the command; it will resume"
    )
