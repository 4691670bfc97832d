"""Derivatives by an input, or by weights, that go into a loss without their graph."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch

from course_utils.audit.book import listed
from course_utils.audit.check import Check, Found
from course_utils.audit.events import Op, Pass, PassGraph, number_of
from course_utils.audit.lines import Spot, asked_directly
from course_utils.audit.source import calls
from course_utils.graph.alive import tensors_in
from course_utils.graph.trace import walk

_MOST = 500
_TIMES = 3

# An input that a layer gets is moved along its derivative on purpose: an adversary's, or a sampler's.
_LAYERS = frozenset(
    {
        *("linear", "matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "addmm", "mv", "einsum", "bilinear"),
        *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
        *("embedding", "layer_norm", "batch_norm", "group_norm", "multi_head_attention_forward", "lstm", "gru"),
    }
)
_ONWARD = frozenset(
    {"detach", "data.__get__", "sign", "item", "tolist", "numpy", "step"}
)  # taken for a number, and said
# What moves weights along their gradient: a product with it is another loss.
_MOVES = frozenset({"sub", "__sub__", "add", "__add__"})


@dataclass
class _Taken:
    """One line that takes derivatives by an input, the leaves behind them, and passes of losses made with them."""

    leaves: frozenset[int] = frozenset()
    by_weights: bool = False
    numbers: set[int] = field(default_factory=set)  # of nodes that were computed with them
    times: int = 0


class Derivatives(Check):
    """Follows derivatives that carry no graph, from the line that took them to the loss of a pass."""

    codes: ClassVar = ("derivative-cut", "derivative-zero")
    functions: ClassVar = frozenset({"*"})

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._lines: dict[Spot, _Taken] = {}
        self._followed: dict[int, tuple[weakref.ref[torch.Tensor], Spot]] = {}
        self._numbers: dict[int, Spot] = {}
        self._first: set[int] = set()  # numbers of the nodes of derivatives that have a graph
        self._zeros: dict[Spot, list[int]] = {}  # by line: second derivatives that are zero, and others

    def function(self, event: Op) -> None:
        if event.name == "grad":
            self._take(event)
        elif self._followed and isinstance(event.out, torch.Tensor):
            self._follow(event)

    def _take(self, event: Op) -> None:
        outputs, inputs = list(tensors_in((event.argument(0, "outputs"),))), event.argument(1, "inputs")
        by = list(tensors_in((inputs,)))
        spot = event.spot
        by_inputs = all(map(self._is_input, by))
        if spot is None or not by or not (by_inputs or all(it.requires_grad for it in by)):
            return
        if by_inputs:
            self._second(event, outputs, spot)
        given = [it for it in tensors_in((event.out,)) if not it.requires_grad and it.is_floating_point()]
        if given:
            taken = self._lines.setdefault(spot, _Taken())
            taken.by_weights |= not by_inputs
            if taken.times < _TIMES:
                taken.leaves |= self.recorder.cuts.behind(it for it in outputs if it.requires_grad)
            for tensor in given:
                self._keep(tensor, spot)

    def _second(self, event: Op, outputs: list[torch.Tensor], spot: Spot) -> None:
        """Note whether a derivative of a derivative is exactly zero, or cannot be taken at all."""
        found = list(tensors_in((event.out,)))
        behind = PassGraph(walk([out.grad_fn for out in outputs if out.grad_fn is not None])).numbers
        if self._first & behind:
            counts = self._zeros.setdefault(spot, [0, 0])
            counts[any(bool(it.detach().any()) for it in found)] += 1
        if len(self._first) > _MOST:
            self._first.clear()
        self._first |= {number_of(it.grad_fn) for it in found if it.grad_fn is not None}

    def _is_input(self, tensor: torch.Tensor) -> bool:
        """Say whether a tensor is a leaf that nobody trains."""
        return (
            tensor.is_leaf
            and not isinstance(tensor, torch.nn.Parameter)
            and self.book.slot(tensor).key not in self.book.held()
        )

    def _keep(self, tensor: torch.Tensor, spot: Spot) -> None:
        if len(self._followed) > _MOST:
            self._followed = {key: it for key, it in self._followed.items() if it[0]() is not None}
        if len(self._followed) <= _MOST:
            self._followed[id(tensor)] = weakref.ref(tensor), spot

    def _follow(self, event: Op) -> None:
        spot = next((it for given in (*event.args, *event.kwargs.values()) if (it := self._from(given))), None)
        if spot is None or (event.name in _ONWARD and asked_directly()) or not event.out.is_floating_point():
            return
        if not event.out.requires_grad:
            if torch.is_grad_enabled():
                self._keep(event.out, spot)
        elif event.name not in _LAYERS and (event.name in _MOVES or not self._lines[spot].by_weights):
            self._keep(event.out, spot)
            self._numbers.update(dict.fromkeys(range(event.began, event.ended), spot))

    def _from(self, given: Any) -> Spot | None:
        if isinstance(given, list | tuple):
            return next((it for it in map(self._from, given[:8]) if it is not None), None)
        known = self._followed.get(id(given))
        return known[1] if known is not None and known[0]() is given else None

    def pass_begins(self, event: Pass) -> None:
        numbers, self._numbers = self._numbers, {}
        if not numbers or not event.accumulate:
            return
        spots = {numbers[number] for number in numbers.keys() & event.graph.numbers}
        keys = {self.book.slot(leaf).key for _, leaf in event.graph.leaves} if spots else set()
        for spot in spots:
            self._lines[spot].times += bool(self._lines[spot].leaves & keys & self.book.held())

    def found(self) -> Iterator[Found]:
        for spot, (zeros, others) in self._zeros.items():
            if zeros >= _TIMES and not others:
                made = calls(spot.file, r"\b(ReLU|LeakyReLU|relu|leaky_relu|Hardtanh|ReLU6)$")
                yield self.say(
                    "derivative-zero",
                    made[0] if made else spot,
                    f"the second derivative on line {spot.line} is exactly zero, each time",
                    "A network of linear layers and relu is made of straight pieces: between its bends it has no "
                    "curvature, so an equation with a second derivative never sees the network there.",
                    "nn.Tanh()  # or another smooth function, in place of relu",
                    certain=bool(made),
                    times=zeros,
                )
        for spot, taken in self._lines.items():
            if taken.times < _TIMES:
                continue
            if taken.by_weights:
                yield self._first_order(spot, taken)
                continue
            slots = [slot for slot in self.book.live() if slot.key in taken.leaves & self.book.held()]
            yield self.say(
                "derivative-cut",
                spot,
                "the derivative by the input has no graph, and the loss is computed with it",
                f"To the pass it is a constant: {listed(slots)} learn from the rest of the loss, and nothing of how "
                "they change the derivative reaches them.",
                "torch.autograd.grad(..., create_graph=True)",
                certain=False,
                times=taken.times,
                about=taken.leaves,
                names=[slot.name for slot in slots],
            )

    def _first_order(self, spot: Spot, taken: _Taken) -> Found:
        return self.say(
            "derivative-cut",
            spot,
            "weights are moved by a gradient that has no graph, and a loss of the moved weights is trained",
            "To the outer pass the gradient is a constant: how it would change with the weights is left out. That is "
            "the first-order form of a step within a step; the full one keeps the inner graph.",
            "torch.autograd.grad(..., create_graph=True)",
            level="note",
            certain=False,
            times=taken.times,
        )
