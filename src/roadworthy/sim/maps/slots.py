"""Slots of arrays for things that are stored once, however many worlds use them."""

from __future__ import annotations


class Slots:
    """Track which of the numbered things is in which slot.

    A thing keeps its slot until it is released as often as it was held. An unused thing stays until its slot is needed;
    the least recently used one goes first.
    """

    def __init__(self, count: int = 0) -> None:
        self._slots: dict[int, int] = {}  # thing: slot, the most recently used one last
        self._holders: dict[int, int] = {}  # thing: number of holders
        self._free = list(range(count - 1, -1, -1))
        self.count, self._filled = count, 0

    def __contains__(self, number: int) -> bool:
        return number in self._slots

    def hold(self, number: int) -> int | None:
        """Hold a thing once more and return its slot; None if it has none."""
        if number not in self._slots:
            return None
        self._slots[number] = self._slots.pop(number)
        self._holders[number] = self._holders.get(number, 0) + 1
        return self._slots[number]

    def release(self, number: int) -> None:
        """Release a thing that was held."""
        self._holders[number] -= 1
        if not self._holders[number]:
            del self._holders[number]
            self._slots[number] = self._slots.pop(number)

    @property
    def filled(self) -> int:
        """How many slots, from the first on, may be in use; the others were never taken."""
        return self._filled

    def grow(self, count: int) -> None:
        """Increase the number of slots."""
        self._free = [*range(count - 1, self.count - 1, -1), *self._free]
        self.count = count

    def take(self) -> int:
        """Return a slot to fill: a free one, or that of the least recently used thing that nobody holds."""
        if self._free:
            slot = self._free.pop()
            self._filled = max(self._filled, slot + 1)
            return slot
        return self._slots.pop(next(number for number in self._slots if number not in self._holders))

    def put(self, number: int, slot: int) -> int:
        """Record which thing fills a slot that was taken, hold it, and return the slot."""
        self._slots[number], self._holders[number] = slot, 1
        return slot

    def give_back(self, slot: int) -> None:
        """Return a slot that was taken but could not be filled."""
        self._free.append(slot)
