"""Running an answer to `make_model`."""

from __future__ import annotations

from itertools import combinations

import torch
from torch import nn

from course_utils.checks.data import Answer, Case, Observation, Value, plain
from course_utils.checks.scenes.lesson_09_practical_checklist.make_model import APART, barely_moved, near
from course_utils.checks.scenes.lesson_09_practical_checklist.training import double


def observe(answer: Answer, case: Case) -> Observation:
    sizes, mean = case.given["sizes"], case.given["mean"].tensor()
    inputs = double(case.given["seed"] + 3, 6, sizes[0]).float()
    untouched = inputs.clone()
    model = answer(list(sizes), mean.clone())
    if not isinstance(model, nn.Module):
        return {"returned": plain(model), "module": False}
    seen: Observation = {
        "returned": None,
        "module": True,
        "parameters": {name: plain(it.detach()) for name, it in model.named_parameters()},
        "frozen": [name for name, it in model.named_parameters() if not it.requires_grad],
        "buffers": {name: plain(it) for name, it in model.named_buffers()},
    }
    output = model(inputs.to(next((it.dtype for it in model.parameters()), torch.float32)))
    seen["output"] = plain(output)
    if isinstance(output, torch.Tensor) and output.requires_grad:
        output.pow(2).sum().backward()
    seen["without gradient"] = [name for name, it in model.named_parameters() if it.grad is None]
    dtype = output.dtype if isinstance(output, torch.Tensor) else inputs.dtype
    with torch.no_grad():  # as after some training
        for offset, it in enumerate(model.parameters()):
            it.add_(double(case.given["seed"] + 20 + offset, *it.shape).to(it.dtype) / 4)
    seen["trained parameters"] = {name: plain(it.detach()) for name, it in model.named_parameters()}
    seen["trained"] = plain(model.eval()(inputs.to(dtype)))
    seen["state"] = {name: plain(it) for name, it in model.state_dict().items()}
    other = answer(list(sizes), mean + 1)
    seen["copied"] = _loaded(other, model, inputs) if isinstance(other, nn.Module) else plain(other)
    seen["wrote"] = not torch.equal(inputs, untouched)
    try:
        seen["moved"] = plain(model.double()(near(case)))
        here, there = (model(inputs) for inputs in barely_moved(case))
        seen["apart"] = plain((there - here) / APART)
    except (RuntimeError, TypeError):  # parts that did not move meet parts that did
        seen["moved"] = seen["apart"] = None
    # Once a model has moved, a tensor that it keeps beside its state is none of those that are loaded.
    wide = answer(list(sizes), mean + 2)
    made = [it for it in (model, other, wide) if isinstance(it, nn.Module)]
    seen["shared"] = any(_share(one, two) for one, two in combinations(made, 2))
    known = seen["moved"] is not None and isinstance(wide, nn.Module)
    seen["copied after moving"] = _loaded(wide.double(), model, near(case)) if known else None
    return seen


def _share(other: nn.Module, model: nn.Module) -> bool:
    """Return whether two models have a parameter in common."""
    return bool({id(it) for it in other.parameters()} & {id(it) for it in model.parameters()})


def _loaded(other: nn.Module, model: nn.Module, inputs: torch.Tensor) -> Value:
    try:
        other.eval()(inputs)  # what it may keep of a run is not to outlive the loading
        other.load_state_dict(model.state_dict())
    except RuntimeError:
        return None
    return plain(other(inputs))
