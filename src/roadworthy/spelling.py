"""Guess which known name a wrong name means, for error messages."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

CUTOFF = 0.5  # least similarity of a guess, see difflib
_GUESSES = 3


def closest(name: str, names: Iterable[str]) -> str | None:
    """Return the known name that a wrong name most likely means, None if none is similar.

    A name with the same letters in another order wins: `episodse` means `episodes`, although `episode` is as near.
    """
    near = get_close_matches(name, list(names), n=_GUESSES, cutoff=CUTOFF)
    return min(near, key=lambda known: sorted(known) != sorted(name), default=None)
