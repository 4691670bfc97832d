"""Running an answer to `train`."""

from __future__ import annotations

from typing import Any

import torch

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.checks.observers.passes import engine_passes
from course_utils.checks.scenes.batches import Batches
from course_utils.checks.scenes.lesson_03_graph_freeing.train import trainee
from course_utils.graph.alive import Graphs, Memory


def observe(answer: Answer, case: Case) -> Observation:
    model, optimizer, batches = trainee(case)
    graphs, inside, predictions = Graphs(), Memory(), Memory()
    steps: list[dict[str, int]] = []

    def forward(module: torch.nn.Module, given: Any, result: torch.Tensor) -> None:
        graphs.add(result)
        predictions.add(result)

    def step(*given: Any) -> None:
        steps.append({"graphs": graphs.alive(), "bytes": inside.alive(), "predictions": predictions.alive()})

    model.register_forward_hook(forward)
    model[1].register_forward_hook(lambda module, given, result: inside.add(result))
    optimizer.register_step_pre_hook(step)
    with engine_passes(*model.parameters()) as passes:
        returned = answer(model, optimizer, Batches(batches))
    rows = returned[2] if isinstance(returned, list | tuple) and len(returned) == 3 else ()
    seen = {
        "returned": plain(returned),
        "beyond the rows": _beyond(rows),
        "graphs": graphs.alive(),
        "bytes": inside.alive(),
        "predictions": predictions.alive(),
        "steps": steps,
        "passes": len(passes),
        "parameters": [Array.of(parameter) for parameter in model.parameters()],
        "as before": all(module.training for module in model.modules())
        and all(parameter.requires_grad for parameter in model.parameters()),
    }
    del returned, rows
    return seen


def _beyond(rows: Any) -> int:
    """Return how many bytes the tensors in a list keep beyond their own: those of whole storages."""
    tensors = [row for row in rows if type(row) is torch.Tensor] if isinstance(rows, list | tuple) else []
    storages = {tensor.untyped_storage()._cdata: tensor.untyped_storage().nbytes() for tensor in tensors}
    return sum(storages.values()) - sum(tensor.nbytes for tensor in tensors)
