"""Which passes a gradient is made of, told by comparing its object and version before and after."""

from __future__ import annotations

from collections.abc import Iterable

from course_utils.audit.book import Book, Slot
from course_utils.audit.events import Pass


def synchronize(slots: Iterable[Slot], added_onto: bool) -> None:
    """Note what happened to gradients since they were last looked at.

    A version that moved is either a clearing in place or a change, as by clipping: the values tell. A write through
    `.data` moves no version, so a used gradient that is about to be added onto is looked at as well.
    """
    doubtful = []
    for slot in slots:
        state, known = slot.state(), slot.seen
        if state == known:
            if added_onto and slot.used and state is not None:
                doubtful.append(slot)
            continue
        slot.seen = state
        if state is None:
            slot.clear(None)
        elif known is None:
            slot.content, slot.used, slot.mixed = (), frozenset(), None
        else:
            slot.changed = True
            doubtful.append(slot)
    _clear_zeros(doubtful)


def _clear_zeros(doubtful: list[Slot]) -> None:
    """Take gradients that are all zero for cleared. The first that is not zero answers for the rest."""
    zeros = []
    for slot in doubtful:
        if not slot.is_zero():
            break
        zeros.append(slot)
    cleared = zeros if len(zeros) == len(doubtful) else []
    for slot in doubtful:
        if slot in cleared:
            slot.clear(None)
        elif slot.changed:
            slot.used, slot.touched = frozenset(), True
        slot.changed = False


def same_after(slots: Iterable[Slot]) -> None:
    """Note that a known change of gradients in place left them what they were made of."""
    for slot in slots:
        slot.seen = slot.state()


def delivered(book: Book, event: Pass, slots: Iterable[Slot] | None = None) -> tuple[Slot, ...]:
    """Note to whom a pass gave a gradient, and return them."""
    received = []
    for slot in book.live() if slots is None else slots:
        state, known = slot.state(), slot.seen
        if state == known or state is None:
            if state is None:
                slot.seen = None
            continue
        if known is None:
            slot.content, slot.mixed = (event.number,), None
        else:
            if slot.used:
                slot.mixed = event.spot
            slot.content = (*slot.content[-63:], event.number)
        slot.used = frozenset()
        slot.received += 1
        slot.seen = state
        received.append(slot)
    return tuple(received)
