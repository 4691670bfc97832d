"""Running an answer to `uncut_loss`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.checks.observers.lesson_06_detach_vs_no_grad.watching import is_result, unmarked


def observe(answer: Answer, case: Case) -> Observation:
    leaves = {name: case.given[name].tensor().requires_grad_() for name in ("points", "scale", "weights")}
    # What the function gets are results, as they would be inside a network.
    given = {name: leaf * 1 for name, leaf in leaves.items()}
    before = {name: Array.of(tensor) for name, tensor in given.items()}
    passes: list[None] = []
    # Hooks on the tensors themselves are called also by a pass that ends here.
    watching = [tensor.register_hook(lambda gradient: passes.append(None)) for tensor in given.values()]
    loss = answer(*given.values())
    for handle in watching:
        handle.remove()
    as_before = unmarked(*given.values()) and torch.is_grad_enabled()
    seen: Observation = {"returned": plain(loss), "graph": is_result(loss), "gradients": None, "leaf": False}
    if type(loss) is torch.Tensor and loss.requires_grad and loss.numel() == 1:
        seen["leaf"] = loss.is_leaf
        found = torch.autograd.grad(loss, list(leaves.values()), torch.ones_like(loss), allow_unused=True)
        seen["gradients"] = {name: plain(gradient) for name, gradient in zip(leaves, found, strict=True)}
    untouched = all(Array.of(tensor) == before[name] for name, tensor in given.items())
    return {**seen, "untouched": untouched, "passes": len(passes), "as before": as_before}
