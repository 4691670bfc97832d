"""Weights of classes the wrong way round: a frequent class gets more of the loss, and not less."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from course_utils.audit.causes import weights_made
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op
from course_utils.audit.lines import Spot
from course_utils.audit.reading import scopes_of

_TIMES, _LOOKS, _CLASSES, _SEEN = 4, 40, 200, 100
_UNEVEN, _LIKE = 3.0, 0.4


@dataclass
class _Counted:
    """What a loss was given: its weights, and how often each class came."""

    weights: torch.Tensor
    counts: torch.Tensor
    times: int = 0


class Weighing(Check):
    """The weights of a loss beside the counts of the targets that it is given."""

    codes: ClassVar = ("weights-reversed",)
    functions: ClassVar = frozenset({"cross_entropy", "nll_loss", "binary_cross_entropy_with_logits"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._seen: dict[tuple[Spot, str], _Counted] = {}

    def function(self, event: Op) -> None:
        binary = event.name == "binary_cross_entropy_with_logits"
        weight = event.argument(6, "pos_weight") if binary else event.argument(2, "weight")
        given, target = event.argument(0, "input"), event.argument(1, "target")
        if not isinstance(weight, torch.Tensor) or not isinstance(target, torch.Tensor):
            return
        spot = event.spot
        if spot is None or not getattr(given, "requires_grad", False) or not target.numel() or weight.requires_grad:
            return
        known = self._seen.get((spot, event.name))
        if known is not None and known.times >= _LOOKS:
            return
        found = _of_two(weight, target) if binary else _of_many(weight, target)
        if found is None:
            return
        if known is None or known.weights.shape != found[0].shape or not bool((known.weights == found[0]).all()):
            known = self._seen[spot, event.name] = _Counted(found[0], torch.zeros_like(found[1]))
        known.counts += found[1]
        known.times += 1

    def found(self) -> Iterator[Found]:
        for (spot, loss), it in self._seen.items():
            rare, often = float(it.counts.min()), float(it.counts.max())
            if it.times < _TIMES or it.counts.sum() < _SEEN or rare < 1 or often < _UNEVEN * rare:
                continue
            shares = (it.counts / it.counts.sum()).log()
            weights = it.weights.log() - it.weights.log().mean()
            if not bool(((weights - (shares - shares.mean())).abs() < _LIKE).all()):
                continue
            binary = loss == "binary_cross_entropy_with_logits"
            few, many = int(it.counts.argmin()), int(it.counts.argmax())
            yield self.say(
                "weights-reversed",
                weights_made(scopes_of(self.recorder), spot) or spot,
                f"class {many} came {often / rare:.1f} times as often as class {few}, and its weight is "
                f"{float(it.weights[many] / it.weights[few]):.1f} times as large",
                "Weights make up for unlike counts where they are in proportion to their inverse. In proportion to the "
                "counts they do it the other way round: the rare class, which had little of the loss, has hardly any.",
                "pos_weight = negatives / positives" if binary else "weight = counts.sum() / (len(counts) * counts)",
                times=it.times,
            )


def _of_two(weight: torch.Tensor, target: Any) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return the weights of 0 and 1, and their counts; None where there are several, or other targets."""
    if weight.numel() != 1 or float(weight) <= 0 or not bool(((target == 0) | (target == 1)).all()):
        return None
    ones = float(target.sum())
    return torch.tensor([1.0, float(weight)]), torch.tensor([target.numel() - ones, ones])


def _of_many(weight: torch.Tensor, target: Any) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return the weights of classes and their counts; None where the targets are no numbers of classes."""
    classes = weight.numel()
    if target.is_floating_point() or not 1 < classes <= _CLASSES or not bool((weight > 0).all()):
        return None
    kept = target[(target >= 0) & (target < classes)].flatten()
    return weight.detach().float().cpu(), torch.bincount(kept, minlength=classes).float().cpu()
