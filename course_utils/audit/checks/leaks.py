"""A language model that sees the token that it has to predict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.classes import made_near
from course_utils.audit.events import Op, PassGraph, number_of, saved_value
from course_utils.audit.lines import Spot, between
from course_utils.audit.source import text_at
from course_utils.graph.trace import GraphTooLarge, LiveNode, node_name, walk

# A look runs a part of the backward pass, aside. Two looks at one line are enough to say it, and three without a leak
# to leave the line alone.
_LOOKS = 3
_TIMES = 2
_MOST = 50  # kinds of losses
_POSITIONS = 3  # of the sequence are tried
_LEAST = 1e-6  # of the gradient at the position itself

# Norms over several positions let each depend on all of them, and are kept by many who know it.
_MIXING_NORMS = ("NativeBatchNorm", "CudnnBatchNorm", "NativeGroupNorm", "MiopenBatchNorm")
_HOOKING = frozenset({"register_hook", "_register_hook", "register_prehook"})
_RECURRENT = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})
_MIXING = (
    frozenset({"scaled_dot_product_attention", "multi_head_attention_forward"}),
    _RECURRENT,
    frozenset({"softmax"}),
    frozenset({"conv1d", "conv2d", "flip", "cumsum", "mean", "sum", "matmul", "__matmul__", "bmm", "einsum"}),
)


class Leaks(Check):
    """Looks whether the scores at one position depend on the next token, where that is the target."""

    codes: ClassVar = ("sees-target",)
    functions: ClassVar = frozenset({"cross_entropy", "nll_loss", *(name for names in _MIXING for name in names)})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._looked: Counter[tuple[int, ...]] = Counter()
        self._leaked: Counter[Spot] = Counter()
        self._mixed: dict[int, tuple[str, int]] = {}  # by the number after an operation: its name, and the one before
        self._hooked = False

    def hooked(self, hooks: Any, spot: Spot | None) -> None:
        self._hooked |= any(frame.f_code.co_name in _HOOKING for frame in between())  # a look would run it

    def function(self, event: Op) -> None:
        if event.name not in ("cross_entropy", "nll_loss"):
            if event.ended > event.began and len(self._looked) < _MOST:
                if len(self._mixed) > _MOST * 10:
                    self._mixed.clear()
                self._mixed[event.ended] = event.name, event.began
            return
        scores, target = event.argument(0, "input"), event.argument(1, "target")
        if self._hooked or not isinstance(scores, torch.Tensor) or not isinstance(target, torch.Tensor):
            return
        kind = tuple(scores.shape[1:])
        if scores.grad_fn is None or target.is_floating_point() or self._looked[kind] >= _LOOKS:
            return
        if len(self._looked) > _MOST:
            return
        self._looked[kind] += 1
        try:
            self._look(scores, target.detach())
        except GraphTooLarge:
            self._hooked = True

    def _look(self, scores: torch.Tensor, target: torch.Tensor) -> None:
        inner = PassGraph(walk([scores.grad_fn])).inner
        read = [(node, saved_value(node, "indices")) for node in inner if node_name(node) == "EmbeddingBackward0"]
        found = [(node, it, moved) for node, it in read if it is not None and (moved := _moved_on(it, target))]
        if not found or not all(map(_is_harmless, inner)):
            return
        # A decoder's input is one shorter than what its encoder is given: the shortest is the one that predicts.
        node, tokens, (axis, wanted) = min(found, key=lambda it: it[1].numel())
        spot = self._where(inner) if _depends(scores, node, tokens, wanted, axis) else None
        if spot is not None:
            self._leaked[spot] += 1

    def _where(self, inner: list[LiveNode]) -> Spot | None:
        """Return the line of what lets positions see each other: attention, a layer that runs both ways."""
        numbers = {number_of(node) for node in inner}
        for kinds in _MIXING:
            for ended, (name, began) in self._mixed.items():
                if name in kinds and numbers & set(range(began, ended)):
                    spot: Spot | None = self.recorder.lines.of(began)
                    if spot is not None and name in _RECURRENT:
                        return made_near(spot, r"\b(LSTM|GRU|RNN)$")
                    if spot is not None and name.startswith("conv") and "conv" not in text_at(spot).lower():
                        return made_near(spot, r"\bConv[12]d$")
                    return spot
        return None

    def found(self) -> Iterator[Found]:
        for spot, times in self._leaked.items():
            if times >= _TIMES:
                yield self.say(
                    "sees-target",
                    spot,
                    "the scores at each position depend on the next token, and that token is the target",
                    "The targets are the inputs moved on by one. What this line computes lets a position see those "
                    "after it, so the model learns to copy: the loss falls, and nothing can be generated with it.",
                    "is_causal=True  # or a mask of torch.triu(ones, 1); a convolution padded in front only; one "
                    "direction",
                    times=times,
                )


def _is_harmless(node: LiveNode) -> bool:
    """Say whether running a node does nothing but compute, and keeps positions apart as far as norms are concerned.

    A learner's Function may do anything, and what a hook holds, as in a checkpoint, may be computed once more.
    """
    if isinstance(node, torch.autograd.function.BackwardCFunction) or node_name(node).startswith(_MIXING_NORMS):
        return False
    held = (getattr(node, name) for name in dir(node) if name.startswith("_raw_saved"))
    return all(getattr(raw, "unpack_hook", None) is None for raw in held)


def _moved_on(tokens: torch.Tensor, target: torch.Tensor) -> tuple[int, torch.Tensor] | None:
    """Return the axis along which a target is its tokens moved on by one, and it in their shape; else None."""
    for axis in (1, 0) if tokens.dim() == 2 else ():
        length, rest = tokens.shape[axis], tokens.shape[1 - axis]
        if length <= _POSITIONS or target.numel() not in (rest * length, rest * (length - 1)):
            continue
        many = target.numel() // rest
        wanted = target.reshape((rest, many) if axis == 1 else (many, rest))
        given, scored = tokens.narrow(axis, 1, length - 1), wanted.narrow(axis, 0, length - 1)
        counts = scored >= 0  # others are left out of the loss
        same = bool((scored == given)[counts].all()) and int(counts.sum()) >= _POSITIONS
        if same and not torch.equal(wanted, tokens) and len(torch.unique(given)) > 2:
            return axis, wanted
    return None


def _depends(scores: torch.Tensor, node: LiveNode, tokens: torch.Tensor, wanted: torch.Tensor, axis: int) -> bool:
    """Say whether scores of some positions have a gradient at the embedding of the next one. Nothing is changed."""
    last = tokens.shape[axis] - 2
    edge = torch.autograd.graph.GradientEdge(node, 0)
    looks = []
    for at in sorted({0, last // 2, last}):
        row = next((it for it in range(tokens.shape[1 - axis]) if int(wanted[_at(axis, it, at)]) >= 0), None)
        if row is None or scores.dim() not in (2, 3):
            continue
        own, later = _at(axis, row, at), _at(axis, row, at + 1)
        seed = torch.zeros_like(scores)
        place = seed[own[0] * wanted.shape[1] + own[1]] if scores.dim() == 2 else seed[own[0], :, own[1]]
        place += 1 + torch.arange(len(place), device=seed.device) % 3
        (slope,) = torch.autograd.Variable._execution_engine.run_backward(
            (scores,), (seed,), True, False, (edge,), allow_unreachable=True, accumulate_grad=False
        )
        if slope is None or slope.shape[:2] != tokens.shape:
            return False
        looks.append(float(slope[later].norm()) > _LEAST * float(slope[own].norm()))
    return len(looks) >= 2 and all(looks)


def _at(axis: int, row: int, position: int) -> tuple[int, int]:
    return (row, position) if axis == 1 else (position, row)
