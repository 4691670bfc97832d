"""Recurrent layers of PyTorch's, and which entry is taken along an axis of what they give."""

from __future__ import annotations

from typing import NamedTuple

from course_utils.audit.events import Op

LAYERS = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})


class Taken(NamedTuple):
    """One entry along an axis, and whether all of it is taken."""

    place: int
    whole: bool


def taken_along(event: Op, axis: int) -> Taken | None:
    """Return which entry along an axis an indexing takes, of all before it; None where it takes none, or several."""
    if event.name == "select":
        return Taken(int(event.argument(2, "index")), True) if event.argument(1, "dim") == axis else None
    index = event.args[1] if event.name == "__getitem__" and len(event.args) > 1 else None
    places = index if isinstance(index, tuple) else (index,)
    if len(places) <= axis or not isinstance(places[axis], int) or isinstance(places[axis], bool):
        return None
    before, after = (
        all(isinstance(it, slice) and it == slice(None) for it in part) for part in (places[:axis], places[axis + 1 :])
    )
    return Taken(places[axis], after) if before else None
