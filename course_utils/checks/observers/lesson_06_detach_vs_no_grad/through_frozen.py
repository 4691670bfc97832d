"""Running an answer to `through_frozen`."""

from __future__ import annotations

import torch

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.checks.observers.lesson_06_detach_vs_no_grad.watching import (
    flags,
    gradients_in,
    hooks_in,
    is_result,
    numbers_in,
)
from course_utils.checks.scenes.lesson_06_detach_vs_no_grad.through_frozen import crossed
from course_utils.graph.trace import nodes_behind


def observe(answer: Answer, case: Case) -> Observation:
    layer, leaf = crossed(case)
    x = leaf * 1
    objects = dict(layer.named_parameters())
    names = {id(parameter): name for name, parameter in objects.items()} | {id(leaf): "x"}
    modes = [module.training for module in layer.modules()]
    before = flags(layer), gradients_in(layer), numbers_in(layer)
    runs: list[bool] = []
    first = layer[0]
    first.register_forward_hook(lambda module, *given: runs.append(module is first))
    hooks = hooks_in(layer)
    at_first: bool | None = None
    thawing: dict[str, bool] = {}
    if case.given["wrong width"]:  # what happens where nothing goes wrong
        answer(layer, torch.ones(4, 3))
        thawing = {name: parameter.requires_grad for name, parameter in objects.items()}
        at_first = thawing == before[0]
        for name, parameter in objects.items():
            parameter.requires_grad_(before[0][name])
    raised = False
    y: object = None
    try:
        y = answer(layer, x)
    except RuntimeError:
        if not case.given["wrong width"]:
            raise
        raised = True
    # The parameters that the layer had are looked at, also where it has others now.
    now_flags = {name: parameter.requires_grad for name, parameter in objects.items()}
    after = now_flags, gradients_in(layer), numbers_in(layer)
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
        "flags at first": at_first,
        "thawed": any(flag and not before[0][name] for name, flag in thawing.items()),
        "gradients": before[1] == after[1],
        "numbers": before[2] == after[2],
        "modes": [module.training for module in layer.modules()] == modes,
        "hooks": hooks_in(layer) == hooks,
        "same objects": same,
        "buffers": {name: Array.of(buffer) for name, buffer in layer.named_buffers()},
        "grad mode": torch.is_grad_enabled(),
        "runs": sum(runs),
    }
    direction = case.given["direction"].tensor()
    if type(y) is torch.Tensor and y.requires_grad and y.shape == direction.shape:
        nodes = [node for node in nodes_behind(y) if hasattr(node, "variable")]
        seen["leaves"] = sorted({names.get(id(node.variable), "other") for node in nodes})
        (gradient,) = torch.autograd.grad(y, leaf, direction.to(y.dtype), allow_unused=True)
        seen["gradient"] = plain(gradient)
    return seen
