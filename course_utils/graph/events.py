"""What happens at one node of a backward pass, as plain data."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

# Tensors with at most so many elements are recorded whole, larger ones by few numbers.
WHOLE = 16

Values: TypeAlias = Any  # a number, or nested lists of numbers as `tolist` gives them


class Gradient(msgspec.Struct, frozen=True, gc=False):
    """What is recorded of a gradient: its 2-norm, and its values where there are at most WHOLE of them.

    `norm` and `values` are None for tensors that have none to read (fake ones, say).
    """

    shape: tuple[int, ...]
    dtype: str
    norm: float | None
    values: Values = None


class Contribution(msgspec.Struct, frozen=True, gc=False):
    """One gradient that arrived at a node: from input `input` of node `node`; both are None where the pass starts."""

    node: int | None
    input: int | None
    gradient: Gradient


class Event(msgspec.Struct, frozen=True):
    """One node's turn.

    `arrived` holds for each output of the operation what came for it, in the order of arrival. `received` is what
    the node got: the sum, unless a hook changed it (`hooked`). `sent` has one entry for each input, None where
    nothing went. `before` and `after` are the `.grad` of a leaf. `freed` names what the node had saved and gave
    up after its turn; `bytes` is what the graph kept then, in bytes.
    """

    node: int
    arrived: tuple[tuple[Contribution, ...], ...]
    received: tuple[Gradient | None, ...]
    sent: tuple[Gradient | None, ...]
    before: Gradient | None
    after: Gradient | None
    hooked: bool
    freed: tuple[str, ...]
    bytes: int


class Failure(msgspec.Struct, frozen=True):
    """The error that ended a pass, and the node that had received its gradients; None if there was no such node."""

    type: str
    message: str
    node: int | None
