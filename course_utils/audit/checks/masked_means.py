"""Means over terms of which padding's were made 0: their number counts in the divisor all the same."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from course_utils.audit.events import (
    Op,
    Pass,
    before,
    constant_of,
    number_of,
    saved_value,
    signed,
    terms_of,
    through_views,
)
from course_utils.audit.lines import Spot, here
from course_utils.graph.trace import LiveNode, node_name

_SHARE = 0.05  # of all positions
_KEPT = 6

# From a loss to a mean among its terms: what keeps the mean as it is, up to a fixed factor.
_TAIL = ("Add", "Sub", "Neg", "Mean", "Mul", "Div")


@dataclass
class Tally:
    """How often a line's mean was a term of a loss, and over how many positions."""

    times: int = 0
    padding: int = 0
    positions: int = 0


class MaskedMeans:
    """Means over masked terms, by line, once a loss is made of them."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[Spot, torch.Tensor]] = {}  # by its node: a mean, and which of its terms were made 0
        self.tallies: dict[Spot, Tally] = {}

    def mean(self, event: Op) -> None:
        zeros = _zeros_before(event) if len(self._open) < _KEPT and event.ended > event.began else None
        spot = here() if zeros is not None else None
        if zeros is not None and spot is not None:
            self._open[event.ended - 1] = spot, zeros

    def pass_begins(self, event: Pass) -> None:
        means, self._open = self._open, {}
        for node in terms_of(event, lambda it: number_of(it) not in means and _keeps_means(it)) if means else ():
            if number_of(node) in means:
                spot, zeros = means[number_of(node)]
                tally = self.tallies.setdefault(spot, Tally())
                tally.times += 1
                tally.padding += int(zeros.sum())
                tally.positions += zeros.numel()


def is_at_ends(mask: torch.Tensor) -> bool:
    """Say whether there is some padding, and it stands at one end of each sequence."""
    if 0 in mask.shape or float(mask.float().mean()) < _SHARE or bool(mask.all()):
        return False
    for along in (1, 0):
        steps = mask.to(torch.int8).diff(dim=along)
        if bool((steps >= 0).all()) or bool((steps <= 0).all()):
            return True
    return False


def _keeps_means(node: LiveNode) -> bool:
    """Say whether a node only adds or averages, or scales with nothing that may put a mean right."""
    if not node_name(node).startswith(_TAIL):
        return False
    scales = node_name(node).startswith(("Mul", "Div"))
    return not scales or (constant_of(node) is None and any(before(node, at) is None for at in (0, 1)))


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
    if not is_at_ends(zeros) or torch.equal(zeros, zeros.tril()) or torch.equal(zeros, zeros.triu()):
        return False
    return any(
        len(set(it)) > 1 and max(it) < zeros.shape[along] for along in (0, 1) for it in [zeros.sum(along).tolist()]
    )
