"""Running an answer to `train`."""

from __future__ import annotations

from typing import Any

import torch

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.checks.observers.loops import Loop
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.observers.runs import notice
from course_utils.checks.observers.surroundings import Surroundings
from course_utils.checks.scenes.batches import Batches
from course_utils.checks.scenes.lesson_03_graph_freeing.train import trainee


def observe(answer: Answer, case: Case) -> Observation:
    model, optimizer, batches = trainee(case)
    begun: list[None] = []
    notice(model[0], lambda *run: begun.append(None))
    watch = Loop(model[-1], optimizer)
    around = Surroundings(model, optimizers=[optimizer], lists=[batches], draws=True)
    with every_pass() as passes:
        returned = answer(model, optimizer, Batches(batches))
    losses, rows = (returned[0], returned[2]) if isinstance(returned, list | tuple) and len(returned) == 3 else ((), ())
    seen = {
        "returned": plain(returned),
        "beyond the rows": _beyond(rows),
        "attached losses": _attached(losses),
        "attached rows": _attached(rows),
        **watch.seen(),
        "begun": len(begun),
        "passes": len(passes),
        "passes that retain": sum(it.kept for it in passes),
        "parameters": [Array.of(parameter) for parameter in model.parameters()],
        "left": around.changed(),
    }
    del returned, losses, rows
    return seen


def _tensors(items: Any) -> list[torch.Tensor]:
    return [item for item in items if type(item) is torch.Tensor] if isinstance(items, list | tuple) else []


def _attached(items: Any) -> int:
    """Return how many of the tensors in a list have a graph."""
    return sum(tensor.grad_fn is not None for tensor in _tensors(items))


def _beyond(rows: Any) -> int:
    """Return how many bytes the tensors in a list keep beyond their own: those of whole storages."""
    tensors = _tensors(rows)
    storages = {tensor.untyped_storage()._cdata: tensor.untyped_storage().nbytes() for tensor in tensors}
    return sum(storages.values()) - sum(tensor.nbytes for tensor in tensors)
