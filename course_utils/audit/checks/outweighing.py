"""A divergence that is summed over the batch beside a reconstruction that is averaged: it outweighs it by far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Pass, before, constant_of, node_behind, number_of, saved_value, through_views
from course_utils.audit.lines import Spot
from course_utils.audit.natures import divergence
from course_utils.audit.summands import MOST, Summand, summands
from course_utils.graph.trace import LiveNode, node_name, walk

_PASSES, _OF_ONE = 40, 5  # lines of passes that are looked at, and passes of each
_TIMES = 3
_ROWS = 8  # in a batch, at least
_WHOLE = 0.25  # of each variance in the loss: half of it is the divergence, with a weight of 1
_AVERAGED = 2.0  # of each row's error, where it is averaged over the batch
_MEAN = 1  # what C++ calls a reduction by a mean
_ERRORS = ("MseLoss", "BinaryCrossEntropy", "SmoothL1Loss", "HuberLoss", "NllLoss")
_ALONG = ("Exp", "Log", "Pow", "Div", "Mul", "Sqrt", "Clamp", "AddBackward", "Softplus")


@dataclass
class _Uneven:
    """A divergence: how often it was looked at, how often it was uneven, and with what counts."""

    times: int = 0
    looks: int = 0
    rows: int = 0
    ratio: float = 0.0


class Outweighing(Check):
    """The factors that entries of a divergence and of a reconstruction have in one loss."""

    codes: ClassVar = ("kl-outweighs",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._passes: Counter[Spot] = Counter()
        self._seen: dict[Spot, _Uneven] = {}

    def pass_begins(self, event: Pass) -> None:
        if self.recorder.operations is None or not event.accumulate or event.spot is None:
            return
        if event.seeded or event.scaled or len(event.outputs) != 1:
            return
        self._passes[event.spot] += 1
        if self._passes[event.spot] > _OF_ONE or len(self._passes) > _PASSES:
            return
        parts = summands(node_behind(event.outputs[0]))
        found = divergence(parts, 1) if len(parts) < MOST else []
        spot = self.recorder.lines.of(number_of(found[0].node)) if found else None
        if spot is None:
            return
        uneven = self._seen.setdefault(spot, _Uneven())
        uneven.looks += 1
        rows, scales = _rows(found[0].node), list(_errors(parts, found))
        averaged = bool(scales) and max(scales) * rows <= _AVERAGED
        if rows >= _ROWS and found[0].scale >= _WHOLE and averaged:
            uneven.times += 1
            uneven.rows, uneven.ratio = rows, found[0].scale / max(scales)

    def found(self) -> Iterator[Found]:
        for spot, uneven in self._seen.items():
            if uneven.times >= _TIMES and uneven.times == uneven.looks:
                yield self.say(
                    "kl-outweighs",
                    spot,
                    f"the divergence is summed over all {uneven.rows} rows, and the reconstruction is averaged: "
                    f"entry by entry, the one counts {uneven.ratio:.0f} times as much as the other",
                    "The bound on a likelihood (ELBO) takes both as sums over the numbers of one sample. Summed over "
                    "the batch, beside a mean, the divergence is nearly all of the loss: the encoder ignores its "
                    "input, and every sample is decoded to the same.",
                    'reconstruction = F.mse_loss(decoded, x, reduction="sum") / len(x)\n'
                    "kl = -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(dim=1).mean()",
                    certain=False,
                    times=uneven.times,
                )


def _rows(variance: LiveNode) -> int:
    """Return how many rows a variance has that is computed of something; 0 for one of parameters."""
    value = saved_value(variance, "result" if node_name(variance) == "ExpBackward0" else "self")
    if value is None or value.dim() < 2 or _is_of_parameters(variance):
        return 0
    return value.numel() // max(1, value.shape[-1])


def _is_of_parameters(node: LiveNode) -> bool:
    return isinstance(getattr(_made_of(node), "variable", None), torch.nn.Parameter)


def _made_of(node: LiveNode | None) -> LiveNode | None:
    """Return what a value is computed of number by number: the encoder's output behind a variance."""
    while (node := through_views(node)) is not None and node_name(node).startswith(_ALONG):
        node = before(node)
    return node


def _errors(parts: Iterable[Summand], kl: Iterable[Summand]) -> Iterator[float]:
    """Yield the factors that the loss has for each number of its reconstruction errors."""
    code = _made_of(next(iter(kl)).node)
    own = {id(it.node) for it in kl}
    for part in parts:
        node, scale = _divided(part) if part.ends else (None, 0.0)
        if node is None or scale <= 0 or id(node) in own:
            continue
        count = _count(node)
        if count and code is not None and any(it is code for it in walk([node])):
            yield scale / count


def _divided(part: Summand) -> tuple[LiveNode | None, float]:
    """Return a term past a division by fixed variances and a minus, as a normal distribution's logarithm has them."""
    node, scale = part.node, part.scale
    by = constant_of(node) if node_name(node) == "DivBackward0" and before(node) is not None else None
    if by is None or before(node, 1) is not None:
        return node, scale
    inner, scale = through_views(before(node)), scale / float(by.float().mean())
    negative = inner is not None and node_name(inner) == "NegBackward0"
    return (through_views(before(inner)), -scale) if inner is not None and negative else (inner, scale)


def _count(node: LiveNode) -> int:
    """Return over how many numbers an error is averaged by itself: 1 for a square or a size, 0 for what is no error."""
    name = node_name(node)
    if name.startswith(_ERRORS):
        given = saved_value(node, "target")
        averaged = getattr(node, "_saved_reduction", 0) == _MEAN
        return (given.numel() if given is not None else 0) if averaged else 1
    square = name == "PowBackward0" and getattr(node, "_saved_exponent", None) == 2
    inner = through_views(before(node)) if square or name == "AbsBackward0" else None
    taken = inner is not None and node_name(inner).startswith(("Sub", "Rsub"))
    return int(inner is not None and taken and sum(to is not None for to, _ in inner.next_functions) == 1)
