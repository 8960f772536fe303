"""Work spread over processes: order, the number of items drawn ahead, and the end."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from math import factorial

import pytest

from roadworthy.errors import RoadworthyError
from roadworthy.scenario import processes
from roadworthy.scenario.processes import map_in_order


@pytest.fixture(autouse=True)
def _no_work_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "FIRST_ITEMS", 0)


def test_results_come_in_the_order_of_items() -> None:
    items = [3000, 1, 2000, 2, 0, 5]  # the first take the longest
    assert list(map_in_order(factorial, items, 2)) == [factorial(item) for item in items]


def test_the_first_items_need_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "FIRST_ITEMS", 3)
    assert list(map_in_order(lambda item: -item, [1, 2, 3], 2)) == [
        -1,
        -2,
        -3,
    ]  # a lambda cannot be sent to another process


def test_only_a_few_items_are_drawn_ahead_and_no_process_remains() -> None:
    drawn: list[int] = []

    def items() -> Iterator[int]:
        for number in range(1000):
            drawn.append(number)
            yield number

    results = map_in_order(abs, items(), 2)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    assert len(drawn) <= 3 + 2 * processes.WAITING_PER_PROCESS
    results.close()
    assert not multiprocessing.active_children()


def test_a_killed_process_is_an_error() -> None:
    with pytest.raises(RoadworthyError, match="a worker process was killed"):
        list(map_in_order(os._exit, [9], 2))


def test_an_error_of_the_function_is_raised() -> None:
    with pytest.raises(ValueError, match="factorial"):
        list(map_in_order(factorial, [3, -1], 2))
