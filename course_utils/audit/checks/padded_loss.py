"""Losses that average over padding: positions behind the end of a sequence, all with one target."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.checks.masked_means import MaskedMeans, is_at_ends
from course_utils.audit.classes import made_near
from course_utils.audit.events import Op, Pass
from course_utils.audit.lines import Spot, here, in_module

_CLASSES = frozenset({"cross_entropy", "nll_loss"})
_DISTANCES = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"})
_BINARY = frozenset({"binary_cross_entropy", "binary_cross_entropy_with_logits"})
_ATTENTION, _PACKED = "multi_head_attention_forward", "_pack_padded_sequence"
_MADE = r"\b(CrossEntropyLoss|NLLLoss|MSELoss|L1Loss|SmoothL1Loss|HuberLoss|BCELoss|BCEWithLogitsLoss)$"
_TIMES = 2
_QUIET = 20  # losses over padded batches with nothing amiss, after which nobody looks any more
_KEPT = 6


@dataclass
class _Counted:
    """A line whose loss averages over padding."""

    times: int = 0
    padding: int = 0
    positions: int = 0
    value: float = 0.0
    whole: bool = True  # the targets are numbers of classes


class PaddedLoss(Check):
    """Where batches are padded, and what the loss is given there."""

    codes: ClassVar = ("padding-counted",)
    functions: ClassVar = _CLASSES | _DISTANCES | _BINARY | {_ATTENTION, _PACKED, "embedding", "pad_sequence", "mean"}

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._masks: deque[torch.Tensor] = deque(maxlen=_KEPT)  # of two axes, true where there is padding
        self._counted: dict[Spot, _Counted] = {}
        self._quiet = 0
        self._means = MaskedMeans()

    def pass_begins(self, event: Pass) -> None:
        self._masks.clear()
        self._means.pass_begins(event)

    def function(self, event: Op) -> None:
        if event.name == "mean":
            self._means.mean(event)
            return
        if self._quiet >= _QUIET:
            return
        if event.name in _CLASSES | _DISTANCES | _BINARY:
            if self._masks:
                self._loss(event)
            return
        mask = _mask(event)
        if mask is not None and mask.dim() == 2 and is_at_ends(mask):
            self._masks.append(mask)

    def _loss(self, event: Op) -> None:
        scores, target = event.argument(0, "input"), event.argument(1, "target")
        if not isinstance(scores, torch.Tensor) or not isinstance(target, torch.Tensor) or not scores.requires_grad:
            return
        if event.kwargs.get("reduction", "mean") != "mean" or event.kwargs.get("size_average") is False:
            return
        looked = False
        for mask in self._masks:
            for padding in (mask.reshape(-1), mask.T.reshape(-1)):
                rows = _rows(event.name, scores.detach(), target.detach(), len(padding))
                if rows is None:
                    continue
                looked = True
                given, wanted = rows[0][padding], rows[1][padding]
                value = wanted.reshape(-1)[0]
                if bool((wanted == value).all()) and self._counts(event, float(value), given, wanted):
                    self._note(padding, float(value), not target.is_floating_point())
                    return
        self._quiet += looked and not self._counted

    def _counts(self, event: Op, value: float, given: torch.Tensor, wanted: torch.Tensor) -> bool:
        """Say whether padding has a part in a loss: not ignored, not weighed with 0, not made 0 or equal before."""
        weight = event.kwargs.get("weight")
        if event.name in _CLASSES:
            if value == event.argument(4, "ignore_index", -100) or not value >= 0:
                return False
            if isinstance(weight, torch.Tensor) and float(weight[int(value)]) == 0:
                return False
        elif weight is not None or (event.name in _DISTANCES and torch.equal(given, wanted.to(given.dtype))):
            return False
        return bool(given.any())

    def _note(self, padding: torch.Tensor, value: float, whole: bool) -> None:
        spot = here()
        if spot is None:
            return
        counted = self._counted.setdefault(made_near(spot, _MADE) if in_module() else spot, _Counted())
        counted.times += 1
        counted.padding += int(padding.sum())
        counted.positions += len(padding)
        counted.value, counted.whole = value, whole

    def found(self) -> Iterator[Found]:
        yield from self._masked()
        for spot, counted in self._counted.items():
            if counted.times >= _TIMES:
                share = counted.padding / counted.positions
                value = int(counted.value) if counted.whole else f"{counted.value:g}"
                yield self.say(
                    "padding-counted",
                    spot,
                    f"{share:.0%} of the positions that the loss averages are padding, all with the target {value}",
                    "They are soon learned, and then the mean is small whatever the others do; until then most of the "
                    "gradient is about them. The shorter the sequences of a batch, the less its real positions count.",
                    f"nn.CrossEntropyLoss(ignore_index={value})"
                    if counted.whole
                    else "(F.mse_loss(prediction, target, reduction='none') * real).sum() / real.sum()  # real: 1 "
                    "where a sequence goes on, 0 in its padding",
                    certain=False,
                    times=counted.times,
                )

    def _masked(self) -> Iterator[Found]:
        for spot, tally in self._means.tallies.items():
            if tally.times >= _TIMES:
                yield self.say(
                    "padding-counted",
                    spot,
                    "the terms of padding are 0, and the mean divides by their number all the same: "
                    f"{tally.padding / tally.positions:.0%} of what it counts",
                    "The more padding a batch has, the smaller its loss and its gradient. And what the loss is divided "
                    "by, the length of the longest sequence, says nothing of the others.",
                    "(terms * mask).sum() / mask.sum()  # over the positions that are real",
                    certain=False,
                    times=tally.times,
                )


def _mask(event: Op) -> torch.Tensor | None:
    """Return where a batch is padded, as far as a function is told so."""
    if event.name == "embedding":
        tokens, number = event.argument(0, "input"), event.argument(2, "padding_idx")
        known = isinstance(tokens, torch.Tensor) and isinstance(number, int) and number >= 0
        return tokens.detach() == number if known else None
    if event.name == _ATTENTION:
        mask = event.argument(14, "key_padding_mask")
        if not isinstance(mask, torch.Tensor):
            return None
        return mask.detach() if mask.dtype == torch.bool else mask.detach() == float("-inf")
    if event.name == _PACKED:
        first, lengths = bool(event.argument(2, "batch_first", False)), event.argument(1, "lengths")
        return _behind(torch.as_tensor(lengths), event.args[0].shape[1 if first else 0], first)
    lengths = torch.tensor([len(it) for it in event.argument(0, "sequences")])
    first = bool(event.argument(1, "batch_first", False))
    return (
        _behind(lengths, int(lengths.max()), first) if event.argument(3, "padding_side", "right") == "right" else None
    )


def _behind(lengths: torch.Tensor, longest: int, first: bool) -> torch.Tensor:
    mask = torch.arange(longest)[None] >= lengths.cpu()[:, None]
    return mask if first else mask.T


def _rows(name: str, scores: torch.Tensor, target: torch.Tensor, many: int) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Return scores and targets with a row for each position; None where they have another number of positions."""
    if name in _CLASSES:
        if target.is_floating_point() or target.numel() != many or scores.dim() < 2:
            return None
        return scores.movedim(1, -1).reshape(many, -1), target.reshape(-1)
    if scores.shape != target.shape or target.numel() % many or target.numel() == 0:
        return None
    if target.dim() < 2 and target.numel() != many:
        return None
    return scores.reshape(many, -1), target.reshape(many, -1)
