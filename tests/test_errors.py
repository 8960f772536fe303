"""The exception tree: one root, documented exit codes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from roadworthy import errors


def tree(cls: type[errors.RoadworthyError]) -> Iterator[type[errors.RoadworthyError]]:
    yield cls
    for child in cls.__subclasses__():
        yield from tree(child)


def test_every_exception_and_its_exit_code_stand_in_the_drawn_tree() -> None:
    drawn = dict(re.findall(r"(\w+Error)\s+(\d+)", errors.__doc__ or ""))
    own = {cls for cls in tree(errors.RoadworthyError) if cls.__module__ == errors.__name__}
    assert drawn == {cls.__name__: str(cls.exit_code) for cls in own}


def test_no_exception_claims_success_or_an_interrupt() -> None:
    assert all(0 < cls.exit_code < 126 for cls in tree(errors.RoadworthyError))


def test_a_config_error_is_a_usage_error() -> None:
    with pytest.raises(errors.UsageError):
        raise errors.ConfigError("x")
