"""Running an answer to `frugal`."""

from __future__ import annotations

from collections.abc import Callable

import torch

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.checks.observers.made import Made
from course_utils.checks.observers.runs import notice
from course_utils.checks.observers.surroundings import Surroundings
from course_utils.checks.scenes.lesson_03_graph_freeing.frugal import stack


def observe(answer: Answer, case: Case) -> Observation:
    blocks, x = stack(case)
    runs: list[int] = [0] * len(blocks)
    recomputed = [False] * len(blocks)

    def count(number: int) -> Callable[[], None]:
        def begins() -> None:
            runs[number] += 1
            recomputed[number] |= torch._C._current_graph_task_id() != -1

        return begins

    for number, block in enumerate(blocks):
        notice(block, lambda module, given, result: None, count(number), name="runs")
    around = Surroundings(blocks, x, draws=True)
    before = Array.of(x)
    direction = case.given["direction"].tensor()
    tensors = [x, *blocks.parameters()]
    with Made([*tensors, *blocks.buffers()]) as memory:
        torch.default_generator.manual_seed(case.given["seed"])
        y = answer(blocks, x)
        seen: Observation = {"returned": plain(y), "kept": memory.alive(), "attached": False, "gradients": None}
        seen["gradients before"] = 0
        seen["attached"] = type(y) is torch.Tensor and y.requires_grad
        if seen["attached"] and y.shape == x.shape and y.dtype == x.dtype:
            seen["gradients before"] = sum(tensor.grad is not None for tensor in tensors)
            y.backward(direction)
            seen["gradients"] = [plain(tensor.grad) for tensor in tensors]
    return {
        **seen,
        "peak": memory.peak,
        "runs": runs,
        "recomputed": recomputed,
        "x": Array.of(x) == before,
        "left": around.changed(),
    }
