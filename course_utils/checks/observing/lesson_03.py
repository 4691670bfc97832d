"""Observers for lesson 03."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from course_utils.checks.data import Array, Case, Observation, Value, plain, type_name
from course_utils.checks.observing import warm  # noqa: F401
from course_utils.checks.observing.batches import Batches
from course_utils.checks.observing.scenes_03 import keeping, partly_freed, stack, trainee
from course_utils.checks.observing.watch import engine_passes
from course_utils.graph import saved as instrument
from course_utils.graph.alive import Graphs, Memory, PeakMemory
from course_utils.graph.trace import nodes_behind

Answer = Callable[..., Any]


def count_saved_bytes(answer: Answer, case: Case) -> Observation:
    torch.manual_seed(case.given["seed"])
    loss, besides = keeping(case)
    before, given = _states(loss), list(map(id, besides))
    reads: list[None] = []
    original = instrument.kept

    def counted(node: Any) -> Any:
        reads.append(None)
        return original(node)

    instrument.kept = counted
    try:
        with engine_passes(loss) as passes:
            returned = plain(answer(loss, besides))
    finally:
        instrument.kept = original
    return {
        "returned": returned,
        "passes": len(passes),
        "by instrument": bool(reads),
        "freed": _states(loss) != before,
        "besides": list(map(id, besides)) == given,
    }


def freed_nodes(answer: Answer, case: Case) -> Observation:
    loss, named, leaves = partly_freed(case)
    nodes = nodes_behind(loss)  # kept, so that ids stay theirs
    names = {id(tensor.grad_fn): name for name, tensor in named.items()}
    names |= {id(node): f"other {number}" for number, node in enumerate(nodes) if id(node) not in names}
    before, tensors = _states(loss), [_as_is(tensor) for tensor in leaves.values()]
    with engine_passes(loss, *leaves.values()) as passes:
        returned = answer(loss)
    listed: Value = plain(returned)
    if type(returned) in (list, tuple, set, frozenset):
        listed = [names[id(item)] if id(item) in names else ["type", type_name(item)] for item in returned]
    return {
        "returned": listed,
        "kinds": {names[id(node)]: type(node).__name__ for node in nodes},
        "passes": len(passes),
        "freed": _states(loss) != before,
        "changed": [_as_is(tensor) for tensor in leaves.values()] != tensors,
    }


def train(answer: Answer, case: Case) -> Observation:
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


def frugal(answer: Answer, case: Case) -> Observation:
    blocks, x = stack(case)
    runs: list[int] = [0] * len(blocks)

    def count(number: int) -> Callable[..., None]:
        def hook(*given: Any) -> None:
            runs[number] += 1

        return hook

    for number, block in enumerate(blocks):
        block.register_forward_pre_hook(count(number))
    before = Array.of(x)
    direction = case.given["direction"].tensor()
    tensors = [x, *blocks.parameters()]
    with PeakMemory() as memory:
        torch.manual_seed(case.given["seed"])
        y = answer(blocks, x)
        seen: Observation = {"returned": plain(y), "kept": memory.alive(), "attached": False, "gradients": None}
        if type(y) is torch.Tensor and y.requires_grad and y.shape == x.shape and y.dtype == x.dtype:
            seen["attached"] = True
            y.backward(direction)
            seen["gradients"] = [plain(tensor.grad) for tensor in tensors]
    return {**seen, "peak": memory.peak, "runs": runs, "x": Array.of(x) == before}


def _as_is(tensor: torch.Tensor) -> list[Value]:
    return [plain(tensor.grad), tensor.requires_grad, tensor._version]


def _states(loss: torch.Tensor) -> list[str]:
    return [entry.state for entry in instrument.saved(loss)]
