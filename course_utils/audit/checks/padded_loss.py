"""Losses that average over padding: positions behind the end of a sequence, all with one target."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.classes import made_near
from course_utils.audit.events import (
    Op,
    Pass,
    before,
    constant_of,
    node_behind,
    number_of,
    saved_value,
    signed,
    through_views,
)
from course_utils.audit.lines import Spot, here, in_module
from course_utils.graph.trace import LiveNode, node_name

_CLASSES = frozenset({"cross_entropy", "nll_loss"})
_DISTANCES = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"})
_BINARY = frozenset({"binary_cross_entropy", "binary_cross_entropy_with_logits"})
_ATTENTION, _PACKED = "multi_head_attention_forward", "_pack_padded_sequence"
_MADE = r"\b(CrossEntropyLoss|NLLLoss|MSELoss|L1Loss|SmoothL1Loss|HuberLoss|BCELoss|BCEWithLogitsLoss)$"
_SHARE = 0.05  # of all positions
_TIMES = 2
_QUIET = 20  # losses over padded batches with nothing amiss, after which nobody looks any more
_KEPT = 6

# From a loss to a mean among its terms: what keeps the mean as it is, up to a fixed factor.
_TAIL = ("Add", "Sub", "Neg", "Mean", "Mul", "Div")
_TAIL_NODES = 30


@dataclass
class _Counted:
    """A line whose loss averages over padding."""

    times: int = 0
    padding: int = 0
    positions: int = 0
    value: float = 0.0
    whole: bool = True  # the targets are numbers of classes
    masked: bool = False  # its terms there were made 0 before they were averaged


class PaddedLoss(Check):
    """Where batches are padded, and what the loss is given there."""

    codes: ClassVar = ("padding-counted",)
    functions: ClassVar = _CLASSES | _DISTANCES | _BINARY | {_ATTENTION, _PACKED, "embedding", "pad_sequence", "mean"}

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._masks: deque[torch.Tensor] = deque(maxlen=_KEPT)  # of two axes, true where there is padding
        self._counted: dict[Spot, _Counted] = {}
        self._quiet = 0
        self._means: dict[int, tuple[Spot, torch.Tensor]] = {}  # by its node: a mean over terms, and which were made 0

    def pass_begins(self, event: Pass) -> None:
        self._masks.clear()
        means, self._means = self._means, {}
        queue: list[LiveNode] = [node for node in map(node_behind, event.outputs) if node is not None] if means else []
        for node in queue:
            if number_of(node) in means:
                spot, zeros = means.pop(number_of(node))
                self._note(zeros.reshape(-1), 0.0, whole=False, spot=spot, masked=True)
            elif len(queue) < _TAIL_NODES and node_name(node).startswith(_TAIL) and not _is_rescaled(node):
                queue += [to for to, _ in node.next_functions if to is not None]

    def function(self, event: Op) -> None:
        if event.name == "mean":
            zeros = _zeros_before(event) if len(self._means) < _KEPT else None
            spot = here() if zeros is not None else None
            if zeros is not None and spot is not None and event.ended > event.began:
                self._means[event.ended - 1] = spot, zeros
            return
        if self._quiet >= _QUIET:
            return
        if event.name in _CLASSES | _DISTANCES | _BINARY:
            if self._masks:
                self._loss(event)
            return
        mask = _mask(event)
        if mask is not None and mask.dim() == 2 and _is_at_ends(mask):
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

    def _note(
        self, padding: torch.Tensor, value: float, whole: bool, spot: Spot | None = None, masked: bool = False
    ) -> None:
        if spot is None:
            spot = here()
            if spot is None:
                return
            spot = made_near(spot, _MADE) if in_module() else spot
        counted = self._counted.setdefault(spot, _Counted(masked=masked))
        counted.times += 1
        counted.padding += int(padding.sum())
        counted.positions += len(padding)
        counted.value, counted.whole = value, whole

    def found(self) -> Iterator[Found]:
        for spot, counted in self._counted.items():
            if counted.times >= _TIMES:
                share = counted.padding / counted.positions
                if counted.masked:
                    yield self._masked(spot, share, counted.times)
                    continue
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

    def _masked(self, spot: Spot, share: float, times: int) -> Found:
        return self.say(
            "padding-counted",
            spot,
            f"the terms of padding are 0, and the mean divides by their number all the same: {share:.0%} of what it "
            "counts",
            "The more padding a batch has, the smaller its loss and its gradient. And what the loss is divided by, "
            "the length of the longest sequence, says nothing of the others.",
            "(terms * mask).sum() / mask.sum()  # over the positions that are real",
            certain=False,
            times=times,
        )


def _is_rescaled(node: LiveNode) -> bool:
    """Say whether a product or quotient has a tensor for a factor: it may put the mean right."""
    if not node_name(node).startswith(("Mul", "Div")):
        return False
    factor = constant_of(node)
    return factor is not None or all(before(node, at) is not None for at in (0, 1))


def _zeros_before(event: Op) -> torch.Tensor | None:
    """Return where terms were made 0 because a sequence had ended, before this mean counts them."""
    terms = event.argument(0, "input")
    node = through_views(terms.grad_fn) if isinstance(terms, torch.Tensor) and terms.dim() else None
    if node is None:
        return None
    zeros: torch.Tensor | None = None
    if node_name(node).startswith("Mul"):
        mask = constant_of(node)
        mask = mask.squeeze(-1) if mask is not None and mask.dim() == 3 else mask
        if mask is not None and mask.dim() == 2 and bool(((mask == 0) | (mask == 1)).all()):
            zeros = mask == 0
    elif node_name(node).startswith("NllLoss2D") and node._saved_reduction == 0:
        target = saved_value(node, "target")
        zeros = target.flatten(1) == signed(node._saved_ignore_index) if target is not None else None
    return zeros if zeros is not None and zeros.dim() == 2 and _ends_differ(zeros) else None


def _ends_differ(zeros: torch.Tensor) -> bool:
    """Say whether sequences of different lengths, none of them empty, end in zeros; the parts of a triangle do not."""
    if not _is_at_ends(zeros) or torch.equal(zeros, zeros.tril()) or torch.equal(zeros, zeros.triu()):
        return False
    return any(
        len(set(it)) > 1 and max(it) < zeros.shape[along] for along in (0, 1) for it in [zeros.sum(along).tolist()]
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


def _is_at_ends(mask: torch.Tensor) -> bool:
    """Say whether there is some padding, and it stands at one end of each sequence."""
    if 0 in mask.shape or float(mask.float().mean()) < _SHARE or bool(mask.all()):
        return False
    for along in (1, 0):
        steps = mask.to(torch.int8).diff(dim=along)
        if bool((steps >= 0).all()) or bool((steps <= 0).all()):
            return True
    return False


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
