"""Weights of classes the wrong way round: a frequent class gets more of the loss, or of the draws, and not less."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any, ClassVar, NamedTuple

import torch
from torch.utils.data import WeightedRandomSampler

from course_utils.audit.causes import weights_made
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op
from course_utils.audit.lines import Spot, between
from course_utils.audit.loaders import loading
from course_utils.audit.reading import scopes_of
from course_utils.audit.source import assigned, statement
from course_utils.explain.source import called

_TIMES, _LOOKS, _CLASSES, _SEEN = 4, 40, 200, 100
_UNEVEN, _LIKE = 3.0, 0.4
_ROWS, _NEAR = 20, 0.15  # of a data set that is drawn from, and how near the weights are to the counts, in logarithms


_SAMPLES = frozenset({"as_tensor", "multinomial"})


class _Sampled(NamedTuple):
    """A sampler's weights, each with the number of rows that have it."""

    weights: torch.Tensor
    counts: torch.Tensor


@dataclass
class _Counted:
    """What a loss was given: its weights, and how often each class came."""

    weights: torch.Tensor
    counts: torch.Tensor
    times: int = 0


class Weighing(Check):
    """The weights of a loss beside the counts of the targets that it is given."""

    codes: ClassVar = ("weights-reversed",)
    functions: ClassVar = frozenset({"cross_entropy", "nll_loss", "binary_cross_entropy_with_logits"}) | _SAMPLES

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._seen: dict[tuple[Spot, str], _Counted] = {}
        self._sampled: dict[Spot, _Sampled] = {}
        self._made: dict[int, Spot] = {}  # by a sampler's id, the line that made it

    def function(self, event: Op) -> None:
        if event.name in _SAMPLES:
            if event.name == "multinomial":
                self._sample(event)
            elif event.spot is not None:
                made = next((it for it in map(_sampler, between()) if it is not None), None)
                if made is not None:
                    self._made[id(made)] = event.spot
            return
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

    def _sample(self, event: Op) -> None:
        """Look whether a sampler's weights are as large as there are rows that have the same one."""
        sampler = loading()[1]
        weights = event.argument(0, "input")
        if not isinstance(sampler, WeightedRandomSampler) or event.spot is None or len(weights) < _ROWS:
            return
        values, counts = weights.detach().double().unique(return_counts=True)
        few = 1 < len(values) <= len(weights) // 4
        if not few or not bool((values > 0).all()) or float(counts.max()) < _UNEVEN * float(counts.min()):
            return
        shares, sizes = counts.double().log(), values.log()
        if bool((sizes - sizes.mean() - shares + shares.mean()).abs().max() < _NEAR):
            made = self._made.get(id(sampler), event.spot)
            self._sampled[_weights_of(made) or made] = _Sampled(values, counts)

    def found(self) -> Iterator[Found]:
        for spot, drawn in self._sampled.items():
            few, many = int(drawn.counts.argmin()), int(drawn.counts.argmax())
            yield self.say(
                "weights-reversed",
                spot,
                f"{int(drawn.counts[many])} rows have a weight {float(drawn.weights[many] / drawn.weights[few]):.1f} "
                f"times as large as that of {int(drawn.counts[few])} others: what is frequent is drawn even more often",
                "The weights of the sampler are in proportion to how many rows there are of a kind. A kind is then "
                "drawn by the square of its share; in proportion to the inverse, all kinds come equally often.",
                "weights = 1.0 / counts[labels]  # one for each sample",
                level="likely",
            )
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


def _sampler(frame: FrameType) -> WeightedRandomSampler | None:
    """Return the sampler that a frame makes."""
    own = frame.f_locals.get("self") if frame.f_code.co_name == "__init__" else None
    return own if isinstance(own, WeightedRandomSampler) else None


def _weights_of(spot: Spot) -> Spot | None:
    """Return the line that computes what a sampler is given first, where that has a name."""
    line = statement(spot)
    for node in ast.walk(line) if line is not None else ():
        if isinstance(node, ast.Call) and called(node) == "WeightedRandomSampler":
            given = next((it.value for it in node.keywords if it.arg == "weights"), next(iter(node.args), None))
            return assigned(spot, given.id) if isinstance(given, ast.Name) else None
    return None


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
