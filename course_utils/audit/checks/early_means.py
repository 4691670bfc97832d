"""Losses that are averaged before they are weighed: the weights, or the mask, are left with nothing to choose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Pass, before, number_of, saved_value, terms_of
from course_utils.audit.lines import Spot
from course_utils.graph.trace import LiveNode, node_name

_LOOKS, _TIMES = 6, 2
_SUMS = ("Add", "Neg", "Mean", "Sum", "Mul", "Div")
_TAIL = ("Add", "Sub", "Rsub", "Neg", "Mean", "Sum", "Mul", "Div", "Pow", "Exp")
_MEANS = ("MeanBackward0",)
_LOSSES = ("NllLoss", "BinaryCrossEntropy", "MseLoss", "SmoothL1", "HuberLoss", "KlDiv", "SoftMargin")


class EarlyMeans(Check):
    """Products in a loss of one number, which is a mean, and of weights that differ from row to row."""

    codes: ClassVar = ("weighed-after-mean",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._looks = 0
        self._weighed: Counter[Spot] = Counter()
        self._focal: Counter[Spot] = Counter()

    def pass_begins(self, event: Pass) -> None:
        if self._looks >= _LOOKS or self.recorder.operations is None or not event.accumulate:
            return
        self._looks += 1
        for node in terms_of(event, lambda it: node_name(it).startswith(_SUMS)):
            if node_name(node).startswith("MulBackward") and _weighs_mean(node):
                self._note(self._weighed, node)
        for node in terms_of(event, lambda it: node_name(it).startswith(_TAIL)):
            kind = node_name(node)
            if kind.startswith("ExpBackward") and _is_mean(_negated(node), losses=True):
                self._note(self._focal, node)

    def _note(self, counts: Counter[Spot], node: LiveNode) -> None:
        spot = self.recorder.lines.of(number_of(node))
        if spot is not None:
            counts[spot] += 1

    def found(self) -> Iterator[Found]:
        for spot, times in self._weighed.items():
            if times >= _TIMES:
                yield self.say(
                    "weighed-after-mean",
                    spot,
                    "the loss is one number already when it is multiplied by weights: they choose nothing",
                    "A loss is the mean over its rows unless reduction says otherwise. One number times a weight for "
                    "each row is the same as that number times the mean weight: no row counts more than another, and "
                    "what a mask was to leave out is in it.",
                    'loss = F.mse_loss(out, target, reduction="none")\nloss = (loss * weights).mean()',
                    times=times,
                )
        for spot, times in self._focal.items():
            if times >= _TIMES and spot not in self._weighed:
                yield self.say(
                    "weighed-after-mean",
                    spot,
                    "the probability of the true class is computed from the mean loss of the batch",
                    "exp(-loss) is the probability of a row's class where the loss is that of a row. Of the mean it is "
                    "one number for all: the factor for easy and for hard rows is the same.",
                    'ce = F.cross_entropy(scores, target, reduction="none")\npt = torch.exp(-ce)',
                    times=times,
                )


def _weighs_mean(node: LiveNode) -> bool:
    """Say whether a product has a mean on one side, and on the other constants that differ."""
    for at, name in ((0, "other"), (1, "self")):
        made = before(node, at)
        weights = saved_value(node, name) if _is_mean(made) and before(node, 1 - at) is None else None
        if weights is not None and weights.numel() > 1 and bool((weights != weights.flatten()[0]).any()):
            return True
    return False


def _is_mean(node: LiveNode | None, losses: bool = False) -> bool:
    """Say whether a node gives the mean over several rows, as a loss does or as `mean()` of all."""
    if node is None:
        return False
    kind = node_name(node)
    if kind.startswith(_LOSSES):
        target = saved_value(node, "target")
        return getattr(node, "_saved_reduction", 0) == 1 and (not losses or target is None or target.numel() > 1)
    return not losses and kind in _MEANS


def _negated(node: LiveNode) -> LiveNode | None:
    inner = before(node)
    return before(inner) if inner is not None and node_name(inner) == "NegBackward0" else None
