"""Check the machine: libraries, compiled kernels, GPU, video encoder, disk space."""

from __future__ import annotations

import importlib.metadata
import platform
import shutil
import tempfile
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from roadworthy import __version__
from roadworthy.evaluation.doctor.findings import Finding, State, run_check
from roadworthy.folders import require_writable
from roadworthy.kernels import cache_folder

_LIBRARIES = ("numpy", "numba", "torch", "pyarrow", "av")
_FRAMES = 8
_LITTLE_ROOM_GB = 2.0


def examine_machine(out: Path) -> Iterator[Finding]:
    """Yield findings about the machine; out: the folder for run folders."""
    yield run_check("libraries", _libraries)
    yield run_check("kernels", _kernels)
    yield run_check("gpu", _gpu)
    yield run_check("videos", _videos)
    yield run_check("disk", partial(_disk, out))


def _libraries() -> Finding:
    versions = {name: importlib.metadata.version(name) for name in _LIBRARIES}
    message = ", ".join(f"{name} {version}" for name, version in versions.items())
    python = platform.python_version()
    figures = {"roadworthy": __version__, "python": python, **versions}
    return Finding("libraries", State.OK, f"Roadworthy {__version__}, Python {python}, {message}", figures)


def _kernels() -> Finding:
    folder = cache_folder("sim")
    require_writable(folder)
    if not folder.exists():
        message = "not compiled yet: the first step compiles them, which takes about two minutes, once per version"
        return Finding("kernels", State.WARNING, message)
    return Finding("kernels", State.OK, f"compiled before, in {folder}")


def _gpu() -> Finding:
    import torch

    if not torch.cuda.is_available():
        return Finding("gpu", State.OK, 'torch finds no GPU; use device = "cpu"', {"gpus": []})
    gpus = []
    for number in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(number)
        gpus.append({"name": torch.cuda.get_device_name(number), "free_gb": free / 1e9, "total_gb": total / 1e9})
    message = ", ".join(f"{gpu['name']} ({gpu['free_gb']:.1f} of {gpu['total_gb']:.1f} GB free)" for gpu in gpus)
    if find_spec("numba_cuda") is None:
        message += "; but the simulator needs numba-cuda for it: pip install 'roadworthy[cuda]'"
        return Finding("gpu", State.WARNING, message, {"gpus": gpus})
    return Finding("gpu", State.OK, message, {"gpus": gpus})


def _videos() -> Finding:
    import av

    from roadworthy.render.video import write_mp4

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "film.mp4"
        write_mp4(path, (np.full((64, 64, 3), 20 * k, np.uint8) for k in range(_FRAMES)), fps=10)
        with av.open(str(path)) as film:
            count, codec = sum(1 for _ in film.decode(video=0)), film.streams.video[0].codec_context.name
    if count != _FRAMES:
        return Finding("videos", State.FAULT, f"{count} of {_FRAMES} encoded frames could be decoded; reinstall av")
    return Finding("videos", State.OK, f"{codec} encodes and decodes", {"codec": codec})


def _disk(out: Path) -> Finding:
    there = require_writable(out)
    free = shutil.disk_usage(there).free / 1e9
    state = State.WARNING if free < _LITTLE_ROOM_GB else State.OK
    return Finding("disk", state, f"{free:,.1f} GB free in {there}", {"free_gb": free})
