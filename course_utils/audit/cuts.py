"""Where a graph ends: functions that take something with a graph and give something without one."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal

import torch

from course_utils.audit.book import Book
from course_utils.audit.events import Op, PassGraph
from course_utils.audit.lines import Spot, in_module, is_checkpointing, is_learners, spots
from course_utils.audit.source import calls, nearest, no_grad_around
from course_utils.graph.alive import tensors_in
from course_utils.graph.trace import walk

# Their derivative is 0 wherever it exists: the graph goes on, the gradient does not.
FLAT = frozenset(
    {"round", "sign", "sgn", "floor", "ceil", "trunc", "heaviside", "floor_divide", "__floordiv__", "round_"}
)

# Over one entry they are always 1, or 0: flat as well.
_NORMALIZED = frozenset({"softmax", "log_softmax"})

# They take a prediction first, and second what it shall become.
_LOSSES = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "cosine_embedding_loss"})

# What leaves PyTorch, mostly for a log.
_NUMBERS = frozenset({"item", "tolist", "__float__", "__int__", "__bool__", "__index__", "__format__", "__repr__"})

# Looked at for a log or a choice as often as for a computation.
_CHOICES = frozenset({"argmax", "argmin", "eq", "ne", "gt", "lt", "ge", "le", "argsort", "multinomial"})

# Says something about a tensor and takes nothing from it.
_QUIET = frozenset(
    {
        "size",
        "dim",
        "numel",
        "__len__",
        "is_floating_point",
        "backward",
        "grad",
        "zeros_like",
        "ones_like",
        "empty_like",
        "rand_like",
        "randn_like",
        "full_like",
        "new_zeros",
        "new_ones",
        "new_full",
        "new_tensor",
        "new_empty",
        "register_hook",
        "requires_grad_",
        "retain_grad",
        "stride",
        "type",
        "is_contiguous",
        "element_size",
        "data_ptr",
        "nelement",
        "_record_function_enter_new",
        "get_device",
        "is_complex",
        "untyped_storage",
        "is_same_size",
        "detach_",
        "__hash__",
    }
)

_SEEN_OFTEN = 2


@dataclass(frozen=True)
class Cut:
    """One place where graphs end, and the leaves that stood behind it."""

    name: str
    spot: Spot | None
    leaves: frozenset[int]
    weight: Literal[3, 2, 1]  # 3: a tensor to compute with goes on; 2: a choice; 1: a number
    times: int = 1

    @property
    def words(self) -> str:
        if self.name in _WORDS:
            return _WORDS[self.name]
        name = {"data.__get__": ".data", "__float__": "float()", "tensor": "torch.tensor()"}.get(
            self.name, f"{self.name}()"
        )
        return f"{name} cuts the graph" if self.name not in FLAT else f"{name} has the derivative 0"


class Cuts:
    """All cuts of the full tier, each line for the first times that it ran."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self._seen: Counter[tuple[str, Spot | None]] = Counter()
        self.found: dict[tuple[str, Spot | None], Cut] = {}
        self.flat: dict[tuple[str, Spot | None], Cut] = {}
        self._turned: set[Spot | None] = set()  # lines whose loss takes a prediction without a graph

    def look(self, op: Op) -> None:
        """Note an operation if it cuts."""
        name = op.name
        if name in _QUIET or (name.endswith("__get__") and name != "data.__get__"):
            return
        out = op.out
        gives = isinstance(out, torch.Tensor)
        if gives and out.requires_grad and name not in FLAT:
            if name in _NORMALIZED:
                self._normalized(op)
            elif name in _LOSSES and not _has_graph(op.argument(0, "input")) and _has_graph(op.argument(1, "target")):
                self._turned.add(op.spot)
            return
        if out is None:
            return
        given = [tensor for tensor in tensors_in((*op.args, *op.kwargs.values())) if tensor.requires_grad]
        if not given or (not gives and any(tensor.requires_grad for tensor in tensors_in((out,)))):
            return
        off = not torch.is_grad_enabled() and name not in ("detach", "data.__get__", "numpy", *_NUMBERS)
        places = spots()
        where = places[0] if places else None
        key = ("no_grad" if off else name), where
        self._seen[key] += 1
        if self._seen[key] > _SEEN_OFTEN:
            return
        if off:
            outside = _switching()
            if outside == "function":
                return  # a Function of the learner's: its backward takes the place of a graph
            if isinstance(outside, Spot):
                key, where = ("checkpoint", outside), outside
            else:
                where = next((around for place in places if (around := no_grad_around(place)) is not None), where)
        leaves = self.behind(given)
        weight: Literal[3, 2, 1] = (
            1 if name in _NUMBERS else 2 if name in _CHOICES or (gives and not _is_real(out)) else 3
        )
        into = self.flat if name in FLAT and gives and out.requires_grad else self.found
        old = into.get(key)
        into[key] = Cut(key[0], where, leaves | (old.leaves if old else frozenset()), weight, self._seen[key])

    def _normalized(self, op: Op) -> None:
        """Note a softmax over one entry, on a line where it is never over more."""
        given, at = op.argument(0, "input"), op.argument(1, "dim")
        if not isinstance(at, int) or not isinstance(given, torch.Tensor) or not given.dim():
            return
        where = op.spot
        key = "one-entry", where
        if given.shape[at] != 1:
            self._seen[key] = -1
            self.flat.pop(key, None)
        elif 0 <= self._seen[key] < _SEEN_OFTEN:
            self._seen[key] += 1
            made = calls(where.file, r"\bSoftmax(2d)?$|\bLogSoftmax$") if where is not None and in_module() else []
            old = self.flat.get(key)
            leaves = self.behind([given]) | (old.leaves if old else frozenset())
            self.flat[key] = Cut("one-entry", (nearest(made, where) if where and made else None) or where, leaves, 3)

    def behind(self, tensors: Iterable[torch.Tensor]) -> frozenset[int]:
        """Return the keys of the leaves that some tensors were computed from."""
        roots: list[Any] = []
        found = set()
        for tensor in tensors:
            if tensor.grad_fn is None:
                found.add(self._book.slot(tensor).key)
            else:
                roots.append(tensor.grad_fn)
        return frozenset(found) | {self._book.slot(leaf).key for _, leaf in PassGraph(walk(roots)).leaves}

    def before(self, keys: frozenset[int], flat: bool = False) -> Cut | None:
        """Return the cut that most of these leaves stand behind; None where none is known."""
        having = [cut for cut in (self.flat if flat else self.found).values() if cut.leaves & keys]
        return max(
            having,
            key=lambda it: (it.weight, it.spot in self._turned, it.times > 1, len(it.leaves & keys)),
            default=None,
        )


_WORDS = {
    "no_grad": "recording is switched off",
    "one-entry": "a softmax over one entry is always 1, or 0 as a logarithm",
    "checkpoint": "a reentrant checkpoint that is given nothing with a graph records nothing",
}


def _has_graph(thing: Any) -> bool:
    return isinstance(thing, torch.Tensor) and thing.requires_grad


def _switching() -> Spot | Literal["function"] | None:
    """Return what of PyTorch's switches recording off here: a Function's forward, or the line of a checkpoint."""
    frame: FrameType | None = sys._getframe(1)
    inside = False
    while frame is not None:
        code = frame.f_code
        if is_learners(code.co_filename):
            if inside:
                return Spot(code.co_filename, frame.f_lineno)
            if code.co_name == "forward" and code.co_argcount and code.co_varnames[0] == "ctx":
                return "function"
        inside |= code.co_name == "forward" and is_checkpointing(code.co_filename)
        frame = frame.f_back
    return None


def _is_real(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()
