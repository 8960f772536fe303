"""Fixtures for tests of training."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from roadworthy.scenario.pack import Pack
from tests.training.small import streets


@pytest.fixture(scope="session")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Pack:
    """Five streets with three or four cars each."""
    return streets(tmp_path_factory.mktemp("streets") / "streets.pack")


@pytest.fixture(autouse=True, scope="module")
def _one_core() -> Iterator[None]:
    """A run sets its number of cores for the whole process."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
