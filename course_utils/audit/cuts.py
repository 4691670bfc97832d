"""Where a graph ends: functions that take something with a graph and give something without one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

import torch

from course_utils.audit.book import Book
from course_utils.audit.events import Op, PassGraph
from course_utils.audit.lines import Spot, spots
from course_utils.audit.source import no_grad_around
from course_utils.graph.alive import tensors_in
from course_utils.graph.trace import walk

# Their derivative is 0 wherever it exists: the graph goes on, the gradient does not.
FLAT = frozenset(
    {"round", "sign", "sgn", "floor", "ceil", "trunc", "heaviside", "floor_divide", "__floordiv__", "round_"}
)

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

    @property
    def words(self) -> str:
        if self.name == "no_grad":
            return "recording is switched off"
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

    def look(self, op: Op) -> None:
        """Note an operation if it cuts."""
        name = op.name
        if name in _QUIET or (name.endswith("__get__") and name != "data.__get__"):
            return
        out = op.out
        gives = isinstance(out, torch.Tensor)
        if gives and out.requires_grad and name not in FLAT:
            return
        if out is None:
            return
        given = [tensor for tensor in tensors_in((*op.args, *op.kwargs.values())) if tensor.requires_grad]
        if not given or (not gives and any(tensor.requires_grad for tensor in tensors_in((out,)))):
            return
        off = not torch.is_grad_enabled() and name not in ("detach", "data.__get__", "numpy", *_NUMBERS)
        places = spots()
        here = places[0] if places else None
        key = ("no_grad" if off else name), here
        self._seen[key] += 1
        if self._seen[key] > _SEEN_OFTEN:
            return
        if off:
            here = next((around for place in places if (around := no_grad_around(place)) is not None), here)
        leaves = self.behind(given)
        weight: Literal[3, 2, 1] = (
            1 if name in _NUMBERS else 2 if name in _CHOICES or (gives and not _is_real(out)) else 3
        )
        into = self.flat if name in FLAT and gives and out.requires_grad else self.found
        old = into.get(key)
        into[key] = Cut(key[0], here, leaves | (old.leaves if old else frozenset()), weight)

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
        return max(having, key=lambda cut: (cut.weight, len(cut.leaves & keys)), default=None)


def _is_real(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()
