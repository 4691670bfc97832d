"""What the scores of a position of a sequence depend on: a part of the backward pass, run aside, tells."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check
from course_utils.audit.events import Op
from course_utils.audit.lines import Spot, between
from course_utils.graph.trace import GraphTooLarge, LiveNode, node_name

# Two looks at one line are enough to say it, and three with nothing amiss to leave the line alone.
_LOOKS = 3
TIMES = 2
MOST = 50  # kinds of losses
LEAST = 1e-6  # of the gradient at the position itself
LOSSES = frozenset({"cross_entropy", "nll_loss"})

# Norms over several positions let each depend on all of them, and are kept by many who know it.
_MIXING_NORMS = ("NativeBatchNorm", "CudnnBatchNorm", "NativeGroupNorm", "MiopenBatchNorm")
_HOOKING = frozenset({"register_hook", "_register_hook", "register_prehook"})


class Looking(Check):
    """A check that looks at the first few losses of each kind whose targets are classes."""

    functions: ClassVar = LOSSES

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._looked: Counter[tuple[int, ...]] = Counter()
        self._hooked = False

    def hooked(self, hooks: Any, spot: Spot | None) -> None:
        self._hooked |= any(frame.f_code.co_name in _HOOKING for frame in between())  # a look would run it

    def function(self, event: Op) -> None:
        scores, target = event.argument(0, "input"), event.argument(1, "target")
        if self._hooked or not isinstance(scores, torch.Tensor) or not isinstance(target, torch.Tensor):
            return
        kind = tuple(scores.shape[1:])
        if scores.grad_fn is None or target.is_floating_point() or self._looked[kind] >= _LOOKS:
            return
        if len(self._looked) > MOST:
            return
        self._looked[kind] += 1
        try:
            self.look(scores, target.detach())
        except GraphTooLarge:
            self._hooked = True

    def look(self, scores: torch.Tensor, target: torch.Tensor) -> None:
        """Look at scores with a graph and at their targets. May raise GraphTooLarge: then there is no other look."""
        raise NotImplementedError


def is_harmless(node: LiveNode) -> bool:
    """Say whether running a node does nothing but compute, and keeps positions apart as far as norms are concerned.

    A learner's Function may do anything, and what a hook holds, as in a checkpoint, may be computed once more.
    """
    if isinstance(node, torch.autograd.function.BackwardCFunction) or node_name(node).startswith(_MIXING_NORMS):
        return False
    held = (getattr(node, name) for name in dir(node) if name.startswith("_raw_saved"))
    return all(getattr(raw, "unpack_hook", None) is None for raw in held)


def slope_at(
    scores: torch.Tensor, place: tuple[int, int], shape: torch.Size, node: LiveNode, tokens: torch.Tensor
) -> torch.Tensor | None:
    """Return the gradient that the scores of one place send to the vectors of an embedding. Nothing is changed.

    The place is one of `shape`, that of the targets; `node` read the `tokens`. None where no such gradient comes.
    """
    seed = torch.zeros_like(scores)
    own = seed[place[0] * shape[1] + place[1]] if scores.dim() == 2 else seed[place[0], :, place[1]]
    own += 1 + torch.arange(len(own), device=seed.device) % 3
    edge = torch.autograd.graph.GradientEdge(node, 0)
    (slope,) = torch.autograd.Variable._execution_engine.run_backward(
        (scores,), (seed,), True, False, (edge,), allow_unreachable=True, accumulate_grad=False
    )
    return slope if slope is not None and slope.shape[:2] == tokens.shape else None
