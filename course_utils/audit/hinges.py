"""Hinge and logistic losses written out, max(0, 1 - y * s), whose labels y are 0 and 1 in place of -1 and 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from course_utils.audit.events import Op, before, constant_of, number_of, through_views
from course_utils.audit.lines import Spot
from course_utils.graph.trace import LiveNode, node_name

_CLAMPS = frozenset({"clamp", "clip", "clamp_min", "relu", "maximum", "max"})
_LOGISTIC = frozenset({"softplus", "log_sigmoid"})
HINGES = _CLAMPS | _LOGISTIC
_SHIFTS = ("RsubBackward1", "SubBackward0", "AddBackward0", "NegBackward0")
_DEEP = 3
_ROWS, _TIMES, _LOOKS = 8, 2, 30


class Hinge(NamedTuple):
    """What stands under a hinge: by the number of its node the score, and its labels, if it is multiplied by any."""

    score: int
    labels: torch.Tensor | None


class Hinges:
    """Part of a check: hears of the functions that cut off below zero, and looks what the labels are."""

    def __init__(self) -> None:
        self._times: Counter[Spot] = Counter()
        self._above: set[Spot] = set()  # scores of the labelled were on this side of 0, and on the other
        self._below: set[Spot] = set()
        self._scores: dict[int, tuple[Spot, torch.Tensor | None]] = {}  # of this pass
        self._both: set[Spot] = set()  # lines whose scores, or other labels, go through another hinge as well
        self._looked: Counter[Spot] = Counter()

    def function(self, event: Op) -> None:
        given = self._given(event)
        spot = event.spot if given is not None else None
        if given is None or spot is None or self._looked[spot] >= _LOOKS:
            return
        hinge = _hinge(given)
        if hinge is None:
            return
        self._looked[spot] += 1
        other = self._scores.get(hinge.score)
        if other is not None:
            self._both |= {spot, other[0]}
        self._scores[hinge.score] = spot, hinge.labels
        labels = hinge.labels.abs() if hinge.labels is not None and bool((hinge.labels <= 0).all()) else hinge.labels
        if labels is None or not _is_binary(labels):
            return
        values, ones = torch.broadcast_tensors(given.detach(), labels)
        zero, one = values[ones == 0], values[ones == 1]
        edge = float(zero[0])
        if bool((zero != edge).any()) or (event.name in _LOGISTIC) != (edge == 0) or edge < 0:
            return
        self._times[spot] += 1
        if bool((one > edge).any()):
            self._above.add(spot)
        if bool((one < edge).any()):
            self._below.add(spot)

    def _given(self, event: Op) -> torch.Tensor | None:
        """Return what a function cuts off at 0, where it has a graph; None where it does something else."""
        one: Any = event.argument(0, "input")
        if event.name in ("clamp", "clip", "clamp_min"):
            low = event.argument(1, "min")
            if not isinstance(low, int | float) or low != 0 or event.argument(2, "max") is not None:
                return None
        elif event.name in ("maximum", "max"):
            other: Any = event.argument(1, "other")
            if isinstance(other, torch.Tensor) and other.requires_grad:
                one, other = other, one
            if not isinstance(other, torch.Tensor) or other.requires_grad or bool(other.detach().any()):
                return None
        return one if isinstance(one, torch.Tensor) and one.grad_fn is not None else None

    def passed(self) -> None:
        """Forget the scores of a pass."""
        self._scores.clear()

    def found(self) -> Iterator[tuple[Spot, int]]:
        """Yield the lines with such a loss, and how often it was computed."""
        for spot, times in self._times.items():
            if times >= _TIMES and spot not in self._both and spot in self._above & self._below:
                yield spot, times


def _is_binary(labels: torch.Tensor) -> bool:
    ones = labels == 1
    return labels.numel() >= _ROWS and bool(((labels == 0) | ones).all()) and bool(ones.any()) and not bool(ones.all())


def _hinge(given: torch.Tensor) -> Hinge | None:
    """Return the score under a hinge and its labels: of `1 - y * s`, of `-y * s`; None where no number is added."""
    node: LiveNode | None = through_views(given.grad_fn)
    shifted = False
    for _ in range(_DEEP):
        if node is None or node_name(node) not in _SHIFTS:
            break
        inputs = [to for to, _ in node.next_functions if to is not None]
        if len(inputs) != 1:
            return None
        node, shifted = through_views(inputs[0]), True
    if node is None:
        return None
    if node_name(node) != "MulBackward0":
        return Hinge(number_of(node), None) if shifted else None
    inputs = [to for to, _ in node.next_functions if to is not None]
    labels = constant_of(node) if len(inputs) == 1 else None
    inner = through_views(before(node) or before(node, 1))
    if labels is None or inner is None or labels.dim() == 0:
        return None
    while node_name(inner) == "NegBackward0":
        deeper = through_views(before(inner))
        if deeper is None:
            return None
        inner = deeper
    return Hinge(number_of(inner), labels)
