"""What happens in a training, as checks are told of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import torch

from course_utils.audit.book import Model, Slot, Trainer
from course_utils.audit.lines import Spot, here
from course_utils.graph.alive import tensors_in
from course_utils.graph.trace import LiveNode, node_name, walk

_TRANSFORMS = torch._C._functorch.peek_interpreter_stack


def is_transforming() -> bool:
    """Say whether a transformation of torch.func is running: its tensors stand for many, and have no values."""
    return _TRANSFORMS() is not None


def sequence_now() -> int:
    """Return the number that the next recorded operation of this thread will get."""
    return int(torch._C._autograd._get_sequence_nr())


def number_of(node: LiveNode) -> int:
    """Return when a node was made: the number that its thread counted."""
    return int(node._sequence_nr())


@dataclass(eq=False)
class Pass:
    """One backward pass. `outputs` and `graph` are there while it runs, and dropped afterwards."""

    number: int
    spot: Spot | None
    step: int  # optimizer steps before it
    accumulate: bool  # by backward(), and not by autograd.grad
    retain: bool
    create: bool
    seeded: bool  # with gradients given for its outputs
    limited: bool  # to some inputs
    direct: bool  # asked for by the learner's code, and not by PyTorch's own functions
    began: int  # the sequence number when it began
    outputs: tuple[Any, ...]
    scaled: bool = False  # by a GradScaler
    root: tuple[int, int] | None = None  # its first output's node: when it was made, and which output
    received: tuple[Slot, ...] = ()
    ended: int = 0  # the sequence number when it ended

    @cached_property
    def graph(self) -> PassGraph:
        """The graph behind its outputs. Raises GraphTooLarge."""
        roots = [node for node in (node_behind(out) for out in self.outputs) if node is not None]
        return PassGraph(walk(roots))

    def forget(self) -> None:
        self.outputs = ()
        self.__dict__.pop("graph", None)


def node_behind(out: Any) -> LiveNode | None:
    """Return the node that made an output of a pass."""
    return out.grad_fn if isinstance(out, torch.Tensor) else getattr(out, "node", None)


def terms_of(event: Pass, leads_on: Callable[[LiveNode], bool], most: int = 30) -> list[LiveNode]:
    """Return the nodes from a pass's losses to their terms: those behind each that leads on, while there are few."""
    queue = [node for node in map(node_behind, event.outputs) if node is not None]
    for node in queue:
        if len(queue) < most and leads_on(node):
            queue += [to for to, _ in node.next_functions if to is not None and to not in queue]
    return queue


class PassGraph:
    """A graph while it is alive."""

    def __init__(self, nodes: list[LiveNode]) -> None:
        self.leaves: list[tuple[LiveNode, torch.Tensor]] = []
        self.inner: list[LiveNode] = []
        for node in nodes:
            variable = getattr(node, "variable", None)
            if isinstance(variable, torch.Tensor) and not node.next_functions:
                self.leaves.append((node, variable))
            else:
                self.inner.append(node)

    @cached_property
    def numbers(self) -> frozenset[int]:
        return frozenset(map(number_of, self.inner))


def saved_value(node: LiveNode, name: str) -> torch.Tensor | None:
    """Return what a node of C++ saved under a name, without its graph; None where a hook holds it, or nothing does."""
    raw = getattr(node, f"_raw_saved_{name}", None)
    if raw is None or raw.unpack_hook is not None or raw.data is None:
        return None
    return raw.data.detach()  # type: ignore[no-any-return]


def signed(saved: int) -> int:
    """Return a whole number that a node of C++ keeps, with its sign: what nodes show of it has none."""
    return int(saved - (1 << 64) if saved >= 1 << 63 else saved)


def constant_of(node: LiveNode) -> torch.Tensor | None:
    """Return what a product or quotient of a constant and something with a graph has for the constant."""
    return saved_value(node, "other" if before(node) is not None else "self")


def multiplies_weights(node: LiveNode) -> bool:
    """Say whether a product of two has a leaf itself on one side, as a layer has its weights."""
    sides = (through_views(before(node, at)) for at in (0, 1))
    return any(it is not None and node_name(it) == "AccumulateGrad" for it in sides)


def before(node: LiveNode, at: int = 0) -> LiveNode | None:
    """Return the node that made one input of an operation."""
    edges = node.next_functions
    return edges[at][0] if at < len(edges) else None


_VIEWS = {
    "ViewBackward0",
    "UnsafeViewBackward0",
    "ReshapeAliasBackward0",
    "SqueezeBackward0",
    "SqueezeBackward1",
    "SqueezeBackward2",
    "SqueezeBackward3",
    "UnsqueezeBackward0",
    "TransposeBackward0",
    "PermuteBackward0",
    "TBackward0",
    "ExpandBackward0",
    "SelectBackward0",
    "SliceBackward0",
    "CloneBackward0",
    "ToCopyBackward0",
    "AliasBackward0",
    "IndexBackward0",
    "AsStridedBackward0",
}


def through_views(node: LiveNode | None) -> LiveNode | None:
    """Return the first node before `node`, itself included, that computes: views, copies and casts are passed."""
    while node is not None and node_name(node) in _VIEWS:
        node = before(node)
    return node


@dataclass(frozen=True, eq=False)
class Step:
    """One step of an optimizer, and what it found in the gradients. `mixed` were added onto used ones."""

    trainer: Trainer
    spot: Spot | None
    fresh: tuple[Slot, ...]
    stale: tuple[Slot, ...]
    mixed: tuple[Slot, ...]
    in_pass: bool
    closure: bool


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a module by code that is not itself a module's."""

    model: Model
    module: torch.nn.Module
    spots: tuple[Spot, ...]
    number: int
    training: bool
    grad: bool  # was recording on
    recorded: int | None  # when its output's node was made, if it has one
    given: torch.Tensor | None  # its first input
    out: torch.Tensor | None  # its first output that has a graph
    active: tuple[str, ...]  # parts that behave as in training
    asleep: tuple[str, ...]  # parts that would behave differently in training, and do not
    by_torch: bool
    gave: torch.Size | None = None  # the shape of its first output


@dataclass(frozen=True, eq=False)
class Clip:
    """A clipping of gradients, by norm or by value."""

    spot: Spot | None
    slots: tuple[Slot, ...]
    count: int  # gradients that it was given
    bounded: bool  # False where the bound is infinite: a norm that is only read
    bound: float = float("inf")
    by_norm: bool = True


@dataclass(frozen=True, eq=False)
class Load:
    """A state that a module was given, and the keys that only one of both had."""

    module: torch.nn.Module
    state: Mapping[str, Any]
    spot: Spot | None
    missing: tuple[str, ...]  # of the module
    unexpected: tuple[str, ...]  # of the state


@dataclass(frozen=True, eq=False)
class Op:
    """One call of a function of PyTorch's, seen in the full tier."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    out: Any
    began: int  # the sequence number before it
    ended: int

    @cached_property
    def spot(self) -> Spot | None:
        """The learner's line that called it, while it is told of. All who hear of it ask for the same one."""
        return here()

    def argument(self, at: int, name: str, default: Any = None) -> Any:
        """Return an argument given by place or by name."""
        return self.args[at] if at < len(self.args) else self.kwargs.get(name, default)


class Derivative(NamedTuple):
    """What a call of `torch.autograd.grad` differentiated, by what, and what it gave."""

    out: torch.Tensor
    by: torch.Tensor
    slope: torch.Tensor


def derivative_of(event: Op) -> Derivative | None:
    """Return the derivative that a call of `torch.autograd.grad` took; None of several at once."""
    given = event.argument(0, "outputs"), event.argument(1, "inputs"), event.out
    found = [list(tensors_in((it,))) for it in given]
    return Derivative(*(it[0] for it in found)) if all(len(it) == 1 for it in found) else None


@dataclass
class Clock:
    """How far the training has come."""

    steps: int = 0  # of the optimizer that made most
    passes: int = 0
    calls: int = 0
    marks: list[int] = field(default_factory=lambda: [0])  # the sequence number after each of the last steps
    interrupted: bool = False  # known at the end: the loops did not come to theirs
