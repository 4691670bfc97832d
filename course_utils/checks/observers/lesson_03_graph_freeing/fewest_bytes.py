"""Running an answer to `fewest_bytes`."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.operations import is_product
from course_utils.checks.observers.surroundings import Surroundings
from course_utils.checks.scenes.lesson_03_graph_freeing.fewest_bytes import validation
from course_utils.graph.alive import PeakMemory, in_parts, tensors_in


class _Products(TorchDispatchMode):
    """Counts the products that run in its body, whoever calls them, and those of them that are recorded.

    What a matrix of the model's is multiplied with number by number is one, too. A copy of it would not go unnoticed:
    it has more bytes than are allowed.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = self.recorded = 0
        self._matrices = {it.untyped_storage().data_ptr() for it in model.parameters() if it.dim() > 1}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if (whole := in_parts(self, func, args, kwargs)) is not NotImplemented:
            return whole
        given = list(tensors_in((args, list((kwargs or {}).values()))))
        recorded = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in given)
        result = func(*args, **(kwargs or {}))
        if is_product(func, given, list(tensors_in((result,)))) or self._weighs(func, given):
            self.count += 1
            self.recorded += recorded
        return result

    def _weighs(self, function: Any, given: list[torch.Tensor]) -> bool:
        own = [tensor.untyped_storage().data_ptr() in self._matrices for tensor in given if tensor.numel() > 1]
        return torch.Tag.pointwise in function.tags and any(own) and not all(own)


def observe(answer: Answer, case: Case) -> Observation:
    model, images, labels = validation(case)
    given = [images, *model.parameters()]
    before = [plain(tensor) for tensor in given]
    with torch.no_grad():
        around = Surroundings(model, images)
        answer(model, images[:400] * 0.5, labels[:400])  # what it remembers of the network belongs to other images
        left = around.changed()
    around = Surroundings(model, images)
    with _Products(model) as products, PeakMemory() as memory:
        returned = answer(model, images, labels)
    attached = isinstance(returned, torch.Tensor) and returned.requires_grad
    changed = [plain(tensor) for tensor in given] != before
    seen = {"returned": plain(returned), "attached": attached, "changed": changed, "left": left or around.changed()}
    return {**seen, "peak": memory.peak, "products": products.count, "recorded": products.recorded}
