"""What tests of policies share."""

from __future__ import annotations

from collections.abc import Iterator

import numba
import pytest
import torch


@pytest.fixture(autouse=True, scope="module")
def _one_core() -> Iterator[None]:
    """Small networks are fastest on one core; several tests that use two each wait for each other."""
    numba.get_num_threads()  # starts Numba's threads, which gives torch as many as there are cores
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
