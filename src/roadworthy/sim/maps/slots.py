"""Slots of arrays, for things of which each is there once however many worlds use it."""

from __future__ import annotations


class Slots:
    """Which of the numbered things is in which slot.

    A thing that is held keeps its slot until it is released as often. One that nobody holds stays where it is until its
    slot is needed; the one unused for longest goes first.
    """

    def __init__(self, count: int = 0) -> None:
        self._slots: dict[int, int] = {}  # thing: slot, the one that was used last at the end
        self._holders: dict[int, int] = {}  # thing: how many hold it
        self._free = list(range(count - 1, -1, -1))
        self.count, self._filled = count, 0

    def __contains__(self, number: int) -> bool:
        return number in self._slots

    def hold(self, number: int) -> int | None:
        """The slot of a thing, which is held once more; None if it is in none."""
        if number not in self._slots:
            return None
        self._slots[number] = self._slots.pop(number)
        self._holders[number] = self._holders.get(number, 0) + 1
        return self._slots[number]

    def release(self, number: int) -> None:
        """Let go of a thing that was held."""
        self._holders[number] -= 1
        if not self._holders[number]:
            del self._holders[number]
            self._slots[number] = self._slots.pop(number)

    @property
    def filled(self) -> int:
        """So many slots, from the first on, may hold something; those after them were never taken."""
        return self._filled

    def grow(self, count: int) -> None:
        """From now on there are so many slots."""
        self._free = [*range(count - 1, self.count - 1, -1), *self._free]
        self.count = count

    def take(self) -> int:
        """A slot to be filled: a free one, or that of the thing that nobody has used for longest."""
        if self._free:
            slot = self._free.pop()
            self._filled = max(self._filled, slot + 1)
            return slot
        return self._slots.pop(next(number for number in self._slots if number not in self._holders))

    def put(self, number: int, slot: int) -> int:
        """Say what a slot that was taken was filled with; it is held. Returns the slot."""
        self._slots[number], self._holders[number] = slot, 1
        return slot

    def give_back(self, slot: int) -> None:
        """A slot that was taken could not be filled."""
        self._free.append(slot)
