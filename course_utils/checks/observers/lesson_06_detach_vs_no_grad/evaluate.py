"""Running an answer to `evaluate`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.checks.observers.lesson_06_detach_vs_no_grad.watching import (
    gradients_in,
    hooks_in,
    parameters_as_found,
)
from course_utils.checks.observers.runs import first_part, notice
from course_utils.checks.observers.traces import changes
from course_utils.checks.scenes.lesson_06_detach_vs_no_grad.evaluate import BadBatch, evaluated, loss_of, readable
from course_utils.checks.scenes.zoo import Once, Stopped
from course_utils.graph.alive import tensors_in


def observe(answer: Answer, case: Case) -> Observation:
    model, batches = evaluated(case)
    modules = list(model.modules())
    modes, before = [module.training for module in modules], _facts(model)
    at_first: list[bool] | None = None
    if case.given["bad"]:  # what happens where nothing goes wrong
        answer(model, loss_of, Once(batches))
        at_first = [module.training for module in modules]
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode
    buffers = [Array.of(buffer) for buffer in model.buffers()]
    during: list[bool] = []
    copies: list[bool] = []
    recorded: list[bool] = []

    def note(counts: bool, module: nn.Module, given: Any, result: Any) -> None:
        during.append(module.training)
        copies.append(all(module is not mine for mine in modules))
        recorded.append(any(tensor.requires_grad for tensor in tensors_in((result,))))
        runs.extend([None] * counts)

    runs: list[None] = []
    first = first_part(model.body)
    for module in modules:
        notice(module, partial(note, module is first))
    raised = False
    returned: object = None
    hooks, random = hooks_in(model), torch.get_rng_state()
    with torch.set_grad_enabled(case.given["gradients on"]), packs() as saved:
        try:
            returned = answer(model, loss_of, Once(readable(batches, case.given["bad"])))
        except (BadBatch, Stopped):
            raised = True
        switches = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    return {
        "returned": plain(returned),
        "raised": raised,
        "saved": len(saved),
        "recorded": any(recorded),  # what is saved may be hidden behind hooks of the answer's own
        "in training": any(during),
        "copied": any(copies),
        "hooks": hooks_in(model) == hooks,
        "random": torch.equal(torch.get_rng_state(), random),
        "runs": len(runs),
        "modes": [module.training for module in modules],
        "modes at first": at_first,
        "grad mode": switches == (case.given["gradients on"], False),
        "touched": changes(before, _facts(model)),
        "buffers": [Array.of(buffer) for buffer in model.buffers()] == buffers,
    }


def _facts(model: nn.Module) -> dict[str, Any]:
    return {**parameters_as_found(model=model), ".grad in model": gradients_in(model)}


@contextmanager
def packs() -> Iterator[list[None]]:
    """Collect an entry for each tensor that is saved for a backward pass while the body runs."""
    counted: list[None] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        counted.append(None)
        return tensor.detach()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield counted
