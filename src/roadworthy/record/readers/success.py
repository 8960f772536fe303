"""Whether an episode succeeded, as a number from 0 to 1, however a log writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from roadworthy.record.readers.log import printable

if TYPE_CHECKING:
    from roadworthy.record.readers.guess import Column

WORDS: Mapping[str, float] = {
    **dict.fromkeys(("true", "yes", "success", "succeeded", "successful", "pass", "passed", "correct", "solved"), 1.0),
    **dict.fromkeys(("done", "goal", "reached", "won", "win", "ok"), 1.0),
    **dict.fromkeys(
        ("false", "no", "failure", "failed", "fail", "incorrect", "wrong", "unsolved", "lost", "loss"), 0.0
    ),
    **dict.fromkeys(("timeout", "timed_out", "collision", "crash", "aborted", "unsuccessful"), 0.0),
    **dict.fromkeys(("partial", "partially_correct"), 0.5),
}
# Letters mean different things in different tools, so all letters of a column must be of one set.
LETTERS: tuple[tuple[Mapping[str, float], frozenset[str]], ...] = (
    ({"c": 1.0, "i": 0.0, "p": 0.5, "n": 0.0}, frozenset("ci")),  # Inspect: correct, incorrect, partial, no answer
    ({"y": 1.0, "n": 0.0}, frozenset("y")),
    ({"t": 1.0, "f": 0.0}, frozenset("t")),
    ({"s": 1.0, "f": 0.0}, frozenset("s")),
    ({"p": 1.0, "f": 0.0}, frozenset("pf")),
)


@dataclass(frozen=True)
class Success:
    """How a column writes success."""

    words: Mapping[str, float]
    scale: float  # the number that is full success: 1, or 100 for percentages

    @classmethod
    def of(cls, column: Column) -> Success | None:
        """Return how a column writes success; None if its values can't mean it."""
        texts = {value.strip().lower() for value in column.different if isinstance(value, str)}
        letters = {text for text in texts if len(text) == 1 and text.isalpha()}
        known = dict(WORDS)
        if letters:
            system = next((words for words, telling in LETTERS if letters <= set(words) and letters & telling), None)
            if system is None:
                return None
            known |= system
        rest = {text for text in texts if text not in known and _share(text) is None}
        if rest:
            return None
        scale = 1.0
        if column.low < 0.0:
            return None
        if column.high > 1.0:
            from roadworthy.record.readers.guess import plain

            says = any(part in plain(column.name).split("_") for part in ("pct", "percent", "percentage", "pc"))
            is_all = all(value in (0, 100) for value in column.different if not isinstance(value, str))
            if column.high > 100.0 or not (says or is_all):
                return None
            scale = 100.0
        return cls(known, scale)

    @classmethod
    def mostly(cls, column: Column) -> Success | None:
        """Return how most values of a column write success: the others are errors. None if most can't mean it."""
        found = cls.of(column)
        if found is not None or not column.count:
            return found
        fitting = type(column)(column.name)
        count = 0
        for value, times in column.different.items():
            alone = type(column)(column.name)
            alone.add(value)
            if cls.of(alone) is not None:
                fitting.add(value)
                count += times
        return cls.of(fitting) if 2 * count >= column.count else None

    def value(self, value: Any) -> float | None:
        """Return success from 0 to 1; None if the value can't mean it."""
        if isinstance(value, bool):
            return float(value)
        if isinstance(value, str):
            text = value.strip().lower()
            if text in self.words:
                return self.words[text]
            share = _share(text)
            if share is None:
                return None
            number = share if text.endswith("%") else share / self.scale
        elif isinstance(value, int | float):
            if not 0.0 <= value <= self.scale:  # also an integer that is too large for a float
                return None
            number = value / self.scale
        else:
            return None
        return float(number) if 0.0 <= number <= 1.0 else None

    def described(self) -> str:
        """Return what is expected, for errors."""
        if self.scale != 1.0:
            return "a percentage from 0 to 100"
        letters = [letter.upper() for letter in self.words if len(letter) == 1]
        return "true or false, a number from 0 to 1, or a word such as success or failed" + (
            f" or {'/'.join(letters)}" if letters else ""
        )


def _share(text: str) -> float | None:
    """Return a number or a percentage written as text."""
    try:
        return float(text[:-1]) / 100.0 if text.endswith("%") else float(text)
    except ValueError:
        return None


def wrong_success(value: Any, expected: Success) -> str:
    """Return what is wrong with a value of success."""
    return f"{printable(repr(value))[:60]} does not say whether the episode succeeded; expected {expected.described()}"
