"""Contrastive losses in which each row is also compared with itself."""

from __future__ import annotations

import weakref
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass, before, constant_of, number_of, through_views
from course_utils.audit.lines import Spot, here
from course_utils.graph.trace import LiveNode, node_name

_ROWS = 4
_LARGEST = 4096  # rows of a matrix that is looked at
_SHARE = 0.9  # of the rows, whose largest entry is the diagonal's
_TIMES = 2
_QUIET = 20  # matrices without anything amiss, after which nobody looks any more
_MOST = 64

# Of these a matrix of scores is made by one operation more: a temperature, a sign.
_SCALING = ("DivBackward0", "MulBackward0", "NegBackward0", "SubBackward0")
_ZEROING = frozenset({"MaskedFillBackward0", "FillDiagonalBackward0", "CopySlices", "IndexPutBackward0"})
_SOFT = frozenset({"log_softmax", "softmax"})
_PICKING = frozenset({"nll_loss", "gather", "__getitem__", "mul", "__mul__", "__rmul__", "diagonal", "diag"})


class Selves(Check):
    """Looks whether a row's likeness to itself stands among those that it is to be told from."""

    codes: ClassVar = ("compared-with-itself",)
    functions: ClassVar = frozenset({"cross_entropy", "exp", "logsumexp"}) | _SOFT | _PICKING

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._soft: OrderedDict[int, tuple[weakref.ref[torch.Tensor], Spot | None]] = OrderedDict()
        self._sums: dict[int, Spot | None] = {}  # by the number of the node of an exp
        self._found: Counter[Spot] = Counter()
        self._zeroed: Counter[Spot] = Counter()  # lines that put 0 on the diagonal before a softmax
        self._quiet = 0

    def function(self, event: Op) -> None:
        if event.name in _PICKING:
            if self._soft:
                self._picked(event)
            return
        scores = event.argument(0, "input")
        if self._quiet >= _QUIET or not isinstance(scores, torch.Tensor) or not scores.requires_grad:
            return
        if scores.dim() != 2 or scores.shape[0] != scores.shape[1] or not _ROWS <= len(scores) <= _LARGEST:
            return
        node = _zeroed(scores) if event.name != "exp" else None
        if node is not None:
            made: Spot | None = self.recorder.lines.of(number_of(node))
            if made is not None:
                self._zeroed[made] += 1
            return
        if not _has_selves(scores.detach()):
            self._quiet += not self._found
            return
        spot = self._made(scores)
        if event.name == "cross_entropy":
            target = event.argument(1, "target")
            if isinstance(target, torch.Tensor) and _leaves_diagonal(target, len(scores)):
                self._count(spot)
        elif event.name in _SOFT:
            if event.out is not None and len(self._soft) < _MOST:
                self._soft[id(event.out)] = weakref.ref(event.out), spot
        elif event.name == "exp" and event.out.grad_fn is not None:
            self._sums[number_of(event.out.grad_fn)] = spot

    def _picked(self, event: Op) -> None:
        """Look at what is taken of a softmax: entries of a target, of a mask, beside the diagonal."""
        for at, other in ((0, 1), (1, 0)):
            given = event.args[at] if len(event.args) > at else None
            known = self._soft.get(id(given))
            owner = known[0]() if known is not None else None
            if known is None or owner is None:
                continue
            rows = len(owner)
            if owner is not given:
                continue
            chosen = event.args[other] if len(event.args) > other else event.kwargs.get("target")
            if event.name in ("diagonal", "diag"):
                offset = event.argument(1, "offset", event.kwargs.get("diagonal", 0))
                beside = isinstance(offset, int) and offset != 0
            elif event.name == "gather":
                beside = _leaves_diagonal(event.argument(2, "index").reshape(-1), rows)
            elif event.name == "__getitem__":
                beside = _picks_beside(chosen, rows)
            else:
                beside = isinstance(chosen, torch.Tensor) and _leaves_diagonal(chosen, rows)
            del self._soft[id(given)]
            if beside:
                self._count(known[1])
            return

    def pass_begins(self, event: Pass) -> None:
        self._soft.clear()
        if not self._sums:
            return
        for node in event.graph.inner:
            if node_name(node) == "LogBackward0":
                spot = self._sums.get(self._summed(before(node)))
                if spot is not None:
                    self._count(spot)
        self._sums.clear()

    def _summed(self, node: LiveNode | None) -> int:
        """Return the number of the exp whose sum along rows stands under a ratio; -1 for anything else."""
        node = through_views(node)
        if node is None or node_name(node) != "DivBackward0":
            return -1
        total = through_views(before(node, 1))
        if total is None or node_name(total) != "SumBackward1":
            return -1
        inside = through_views(before(total))
        return number_of(inside) if inside is not None and node_name(inside) == "ExpBackward0" else -1

    def _made(self, scores: torch.Tensor) -> Spot | None:
        """Return the line that multiplies the rows with each other."""
        node = through_views(scores.grad_fn)
        spot = self.recorder.lines.of(number_of(node)) if node is not None else None
        while node is not None and node_name(node) in _SCALING:
            node = through_views(before(node))
            spot = (self.recorder.lines.of(number_of(node)) if node is not None else None) or spot
        return spot or here()

    def _count(self, spot: Spot | None) -> None:
        if spot is not None:
            self._found[spot] += 1

    def found(self) -> Iterator[Found]:
        for spot, times in self._zeroed.items():
            if times >= _TIMES:
                yield self.say(
                    "compared-with-itself",
                    spot,
                    "each row's likeness to itself is set to 0, and a softmax follows: it counts like any score of 0",
                    "The softmax takes the exponential, and that of 0 is 1. What is to be left out has to be minus "
                    "infinity before it: then its share is 0.",
                    'scores = scores.masked_fill(torch.eye(len(scores), dtype=torch.bool), float("-inf"))',
                    level="likely",
                    times=times,
                )
        for spot, times in self._found.items():
            if times >= _TIMES:
                yield self.say(
                    "compared-with-itself",
                    spot,
                    "each row's likeness to itself counts as a wrong answer of the loss",
                    "The matrix is symmetric, and the largest entry of its rows stands on the diagonal: a row is most "
                    "like itself. It is never the target, so the softmax spends most of its weight on it, and the "
                    "loss cannot come near 0.",
                    'scores = scores.masked_fill(torch.eye(len(scores), dtype=torch.bool), float("-inf"))  # before '
                    "the softmax",
                    times=times,
                )


def _zeroed(scores: torch.Tensor) -> LiveNode | None:
    """Return the node that put the diagonal of scores to 0, by a mask or by a factor; None where none did."""
    diagonal = scores.detach().diagonal()
    if bool(diagonal.any()) or int(torch.count_nonzero(scores.detach())) != scores.numel() - len(diagonal):
        return None
    node = through_views(scores.grad_fn)
    while node is not None and node_name(node) in _SCALING[:2]:
        inner = through_views(before(node) or before(node, 1))
        factor = constant_of(node) if node_name(node) == "MulBackward0" else None
        if factor is not None and factor.shape == scores.shape:
            return node if _is_of_products(inner) else None
        node = inner
    return node if node is not None and node_name(node) in _ZEROING else None


def _is_of_products(node: LiveNode | None) -> bool:
    """Say whether scores are products of rows, perhaps by a temperature."""
    node = through_views(node)
    while node is not None and node_name(node) in _SCALING:
        node = through_views(before(node))
    return node is not None and node_name(node) in ("MmBackward0", "BmmBackward0")


def _has_selves(scores: torch.Tensor) -> bool:
    """Say whether a square matrix is symmetric, and its rows' largest entries stand on the diagonal."""
    diagonal = scores.diagonal()
    if not bool(torch.isfinite(diagonal).all()):
        return False
    largest = scores.max(dim=1).values
    span = float((largest - scores.min(dim=1).values).max())
    if not span > 0 or float((diagonal >= largest - 1e-4 * span).float().mean()) < _SHARE:
        return False
    return bool(torch.allclose(scores, scores.T, rtol=1e-3, atol=1e-4 * span))


def _leaves_diagonal(target: Any, rows: int) -> bool:
    """Say whether targets of rows, as numbers of columns or as weights, are never the row itself."""
    target = target.detach()
    if target.dim() == 2 and target.shape == (rows, rows):
        return not bool(target.diagonal().any()) and bool(target.any())
    if target.dim() != 1 or len(target) != rows or target.is_floating_point() or target.dtype == torch.bool:
        return False
    return not bool((target == torch.arange(rows, device=target.device)).any()) and bool((target >= 0).any())


def _picks_beside(chosen: Any, rows: int) -> bool:
    """Say whether an index takes one entry of each row, and never the diagonal's; or by a mask."""
    if isinstance(chosen, torch.Tensor):
        return chosen.dtype == torch.bool and _leaves_diagonal(chosen, rows)
    if not isinstance(chosen, tuple) or len(chosen) != 2 or not all(isinstance(it, torch.Tensor) for it in chosen):
        return False
    one, other = chosen
    return one.dim() == other.dim() == 1 and len(one) == len(other) and not bool((one == other).any())
