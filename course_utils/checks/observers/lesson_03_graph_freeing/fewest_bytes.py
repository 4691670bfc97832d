"""Running an answer to `fewest_bytes`."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.surroundings import Surroundings
from course_utils.checks.scenes.lesson_03_graph_freeing.fewest_bytes import validation
from course_utils.graph.alive import PeakMemory, in_parts, tensors_in

_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot")


class _Products(TorchDispatchMode):
    """Counts the products of matrices that run in its body, whoever calls them, and those of them that are recorded."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = self.recorded = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if (whole := in_parts(self, func, args, kwargs)) is not NotImplemented:
            return whole
        if func.overloadpacket.__name__.rstrip("_") in _PRODUCTS:
            self.count += 1
            self.recorded += torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors_in(args))
        return func(*args, **(kwargs or {}))


def observe(answer: Answer, case: Case) -> Observation:
    model, images, labels = validation(case)
    around = Surroundings(model, images)
    given = [images, *model.parameters()]
    before = [plain(tensor) for tensor in given]
    answer(model, images[:400] * 0.5, labels[:400])  # what it remembers of the network belongs to other images
    with _Products() as products, PeakMemory() as memory:
        returned = answer(model, images, labels)
    attached = isinstance(returned, torch.Tensor) and returned.requires_grad
    changed = [plain(tensor) for tensor in given] != before
    seen = {"returned": plain(returned), "attached": attached, "changed": changed, "left": around.changed()}
    return {**seen, "peak": memory.peak, "products": products.count, "recorded": products.recorded}
