"""Running an answer to `through_frozen`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.checks.observers.lesson_06_detach_vs_no_grad.watching import (
    flags,
    gradients_of,
    hooks_in,
    is_result,
)
from course_utils.checks.observers.runs import notice
from course_utils.checks.scenes.lesson_06_detach_vs_no_grad.through_frozen import ERRORS, Breaking, crossed
from course_utils.checks.scenes.zoo import OwnError, Stopped
from course_utils.graph.trace import nodes_behind


def _held_by(parameters: Iterable[nn.Parameter]) -> tuple[list[Any], list[Array]]:
    """Return the gradients and the numbers of the parameters that the layer had, also where it has others now."""
    every = list(parameters)
    return [plain(it.grad) for it in every], [Array.of(it) for it in every]


def observe(answer: Answer, case: Case) -> Observation:
    layer, leaf = crossed(case)
    x = leaf * 1
    objects = dict(layer.named_parameters())
    names = {id(parameter): name for name, parameter in objects.items()} | {id(leaf): "x"}
    modes = [module.training for module in layer.modules()]
    before = flags(layer), *_held_by(objects.values())
    runs: list[bool] = []  # whether the layer itself ran, or a copy
    first = layer[0]
    notice(first, lambda module, *given: runs.append(module is first), name="runs")
    hooks = hooks_in(layer)
    at_first: bool | None = None
    thawing: dict[str, bool] = {}
    if case.given["breaks"]:  # what happens where nothing goes wrong
        answer(layer, torch.ones(4, 3))
        thawing = {name: parameter.requires_grad for name, parameter in objects.items()}
        at_first = thawing == before[0]
        for name, parameter in objects.items():
            parameter.requires_grad_(before[0][name])
        for part in layer:
            if isinstance(part, Breaking):
                part.error = ERRORS[case.given["breaks"]]
    raised = False
    y: object = None
    try:
        y = answer(layer, x)
    except (OwnError, Stopped):
        raised = True
    # The parameters that the layer had are looked at, also where it has others now.
    now_flags = {name: parameter.requires_grad for name, parameter in objects.items()}
    after = now_flags, *_held_by(objects.values())
    thawing = thawing or now_flags
    now = dict(layer.named_parameters())
    same = now.keys() == objects.keys() and all(now[name] is parameter for name, parameter in objects.items())
    seen: Observation = {
        "returned": plain(y),
        "raised": raised,
        "graph": is_result(y),
        "gradient": None,
        "leaves": [],
        "flags": before[0] == after[0],
        "switched": [name for name, flag in now_flags.items() if flag != before[0][name]],
        "all frozen": not any(thawing.values()),
        "flags at first": at_first,
        "thawed": any(flag and not before[0][name] for name, flag in thawing.items()),
        "gradients": before[1] == after[1],
        "numbers": before[2] == after[2],
        "modes": [module.training for module in layer.modules()] == modes,
        "hooks": hooks_in(layer) == hooks,
        "same objects": same,
        "buffers": {name: Array.of(buffer) for name, buffer in layer.named_buffers()},
        "grad mode": torch.is_grad_enabled(),
    }
    direction = case.given["direction"].tensor()
    seen["fits"] = type(y) is torch.Tensor and y.shape == direction.shape
    if type(y) is torch.Tensor and seen["fits"] and y.grad_fn is not None:  # what starts a graph leads nowhere
        nodes = [node for node in nodes_behind(y) if hasattr(node, "variable")]
        seen["leaves"] = sorted({names.get(id(node.variable), "other") for node in nodes})
        seen["gradient"] = (gradients_of(y, [leaf], direction.to(y.dtype)) or [None])[0]
    # A backward of the answer's own may run the layer once more.
    return {**seen, "runs": sum(runs), "copies": len(runs) - sum(runs)}
