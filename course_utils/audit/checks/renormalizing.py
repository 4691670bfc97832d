"""Weights of a softmax that are masked afterwards, and then no longer sum to 1."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op
from course_utils.audit.lines import Spot

_MASKING = frozenset({"masked_fill", "masked_fill_", "mul", "mul_", "where"})
_PRODUCTS = frozenset({"matmul", "bmm", "einsum"})
_SAME = frozenset({"unsqueeze", "squeeze", "view", "reshape", "transpose", "permute", "dropout", "__getitem__"})
_TIMES = 2
_LOOKS = 40
_MOST = 100


class Renormalizing(Check):
    """Follows weights from a softmax over a mask into the product that sums by them."""

    codes: ClassVar = ("mask-after-softmax",)
    functions: ClassVar = _MASKING | _PRODUCTS | _SAME | {"softmax", "sum", "div", "div_", "normalize"}

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        # By a tensor's id: the line that masked it, or None where it comes from a softmax as it is.
        self._weights: dict[int, tuple[weakref.ref[torch.Tensor], Spot | None]] = {}
        self._summed: Counter[Spot] = Counter()
        self._mended: set[Spot] = set()  # lines whose weights are divided by their sum, there or after the product
        self._looks = 0

    def function(self, event: Op) -> None:
        name, out = event.name, event.out
        if name == "softmax":
            if isinstance(out, torch.Tensor) and out.requires_grad and out.dim() > 1 and self._looks < _LOOKS:
                self._looks += 1
                self._keep(out, None)
            return
        if not self._weights:
            return
        known = next((it for it in map(self._known, _tensors(event)) if it is not None), None)
        if known is None:
            return
        weights, spot = known
        if name in _MASKING:
            if spot is not None and isinstance(out, torch.Tensor) and out.shape != weights.shape:
                self._summed[spot] += 1  # the values themselves, times their weights
            elif spot is not None:
                self._keep(out, spot)
            elif _is_masked(event, weights):
                self._keep(out, event.spot)
        elif spot is None:
            return
        elif name in _SAME:
            self._keep(out, spot)
        elif name in _PRODUCTS:
            self._summed[spot] += 1
        else:
            self._mended.add(spot)

    def _keep(self, tensor: Any, spot: Spot | None) -> None:
        if len(self._weights) > _MOST:
            self._weights.clear()
        if isinstance(tensor, torch.Tensor):
            self._weights[id(tensor)] = weakref.ref(tensor), spot

    def _known(self, tensor: torch.Tensor) -> tuple[torch.Tensor, Spot | None] | None:
        known = self._weights.get(id(tensor))
        return (tensor, known[1]) if known is not None and known[0]() is tensor else None

    def found(self) -> Iterator[Found]:
        for spot, times in self._summed.items():
            if times < _TIMES or spot in self._mended:
                continue
            yield self.say(
                "mask-after-softmax",
                spot,
                "the weights are masked after the softmax: what is left of a row sums to less than 1",
                "The softmax has shared out 1 among all places, also those that the mask takes away here. What they "
                "had is lost, so a row counts the less the more of it is masked, and their scores still matter.",
                "scores.masked_fill(~mask, float('-inf')).softmax(-1)  # the mask first, on the scores",
                certain=False,
                times=times,
            )


def _tensors(event: Op) -> list[torch.Tensor]:
    given = [*event.args, *event.kwargs.values()]
    return [it for it in given if isinstance(it, torch.Tensor)]


def _is_masked(event: Op, weights: torch.Tensor) -> bool:
    """Say whether an operation left the weights of a stretch of each row as they were, and took the others away.

    What takes away the smallest, or here and there one, does so on purpose: of many experts a few are asked.
    """
    out = event.out
    if event.name.endswith("_") or not isinstance(out, torch.Tensor) or out.shape != weights.shape:
        return False
    if any(it is not weights and it.requires_grad for it in _tensors(event)):
        return False
    before, after = weights.detach(), out.detach()
    gone, kept = (after == 0) & (before > 1e-6), after != 0
    partly = gone.any(-1) & kept.any(-1)
    if not bool(((after == before) | (after == 0)).all()) or not bool(partly.any()):
        return False
    before, gone, kept = before[partly], gone[partly], kept[partly]
    stretches = kept[:, 0].long() + (kept[:, 1:] & ~kept[:, :-1]).sum(-1)
    larger = before.masked_fill(~gone, 0.0).amax(-1) > before.masked_fill(~kept, 2.0).amin(-1)
    return bool((stretches == 1).all()) and bool(larger.any())
