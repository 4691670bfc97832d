"""Running an answer to `uncut_loss`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.checks.observers.lesson_06_detach_vs_no_grad.watching import gradients_of, is_result, marks_on
from course_utils.checks.observers.passes import every_pass


def observe(answer: Answer, case: Case) -> Observation:
    leaves = {name: case.given[name].tensor().requires_grad_() for name in ("points", "scale", "weights")}
    # What the function gets are results, as they would be inside a network.
    given = {name: leaf * 1 for name, leaf in leaves.items()}
    before = {name: Array.of(tensor) for name, tensor in given.items()}
    with every_pass() as passes:
        loss = answer(*given.values())
    marks = marks_on(**given)
    seen: Observation = {"returned": plain(loss), "graph": is_result(loss), "gradients": None, "leaf": False}
    if type(loss) is torch.Tensor and loss.requires_grad and loss.numel() == 1:
        seen["leaf"] = loss.is_leaf
        found = gradients_of(loss, list(leaves.values()), torch.ones_like(loss))
        seen["gradients"] = dict(zip(leaves, found, strict=True)) if found else None
    untouched = all(Array.of(tensor) == before[name] for name, tensor in given.items())
    return {**seen, "untouched": untouched, "passes": len(passes), "marks": marks}
