"""Observers for lesson 09."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Array, Case, Observation, Value, plain, type_name
from course_utils.checks.observing import warm  # noqa: F401
from course_utils.checks.observing.loops_09 import (
    Batches,
    Headed,
    Masked,
    backbone_and_head,
    classes,
    double,
    flags_of,
    masked,
    network,
    new_head,
    patient,
    regression,
    session_changes,
    sgd,
    warm_network,
    watched,
)
from course_utils.checks.observing.traces import hooks_on, parts_of

Answer = Callable[..., Any]


def fit_classes(answer: Answer, case: Case) -> Observation:
    model, batches = network(case, case.given["scale"]), Batches(classes(case))
    optimizer = sgd(model, case.given["rate"])
    return watched(lambda: answer(model, optimizer, batches), [model], batches, optimizer)


def fit_penalised(answer: Answer, case: Case) -> Observation:
    model, batches = network(case), Batches(regression(case))
    optimizer = sgd(model)
    return watched(lambda: answer(model, optimizer, batches, case.given["weight"]), [model], batches, optimizer)


def retrain(answer: Answer, case: Case) -> Observation:
    model, head, batches = Headed(case.given["seed"]), new_head(case), Batches(classes(case))
    seen = watched(lambda: answer(model, head, batches), [model, head], batches)
    return {**seen, "head in place": model.head is head}


def fit_masked(answer: Answer, case: Case) -> Observation:
    model, batches = Masked(case.given["seed"]), Batches(masked(case))
    optimizer = sgd(model)
    return watched(lambda: answer(model, optimizer, batches, case.given["limit"]), [model], batches, optimizer)


def fit_scheduled(answer: Answer, case: Case) -> Observation:
    model, batches = network(case), Batches(regression(case))
    optimizer = sgd(model)
    factors = case.given["factors"]
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: factors[min(epoch, len(factors) - 1)])
    epochs = case.given["epochs"]
    seen = watched(lambda: answer(model, optimizer, scheduler, batches, epochs), [model], batches, optimizer)
    return {**seen, "scheduler": plain(scheduler.last_epoch)}


def fit_points(answer: Answer, case: Case) -> Observation:
    points, wanted = case.given["points"].tensor(), case.given["wanted"].tensor()
    returned = answer(points, wanted, case.given["steps"])
    session = session_changes()
    moved = returned[0] if isinstance(returned, tuple | list) and returned else None
    same = Array.of(points) == case.given["points"] and Array.of(wanted) == case.given["wanted"]
    return {
        "returned": plain(returned),
        "same": same and points.grad is None and not points.requires_grad,
        "requires a gradient": isinstance(moved, torch.Tensor) and moved.requires_grad,
        "session": session,
    }


def fine_tune(answer: Answer, case: Case) -> Observation:
    backbone, head, optimizer = backbone_and_head(case)
    batches = Batches(classes(case))
    return watched(lambda: answer(backbone, head, optimizer, batches), [backbone, head], batches, optimizer)


def fit_best(answer: Answer, case: Case) -> Observation:
    model, batches = warm_network(case), Batches(regression(case))
    validation = (case.given["inputs"].tensor(), case.given["targets"].tensor())
    optimizer = sgd(model)
    kept: list[Any] = []

    def run() -> Any:
        kept.append(answer(model, optimizer, batches, validation, case.given["epochs"]))
        return kept[0]

    seen = watched(run, [model], [*batches, validation], optimizer)
    own = {tensor.untyped_storage().data_ptr() for tensor in model.state_dict().values()}
    state = kept[0][0] if isinstance(kept[0], tuple | list) and kept[0] else None
    tensors = [it for it in state.values() if isinstance(it, torch.Tensor)] if isinstance(state, dict) else []
    # An OrderedDict is a good answer as well, and only a plain dict crosses.
    plain_state = plain({str(key): value for key, value in state.items()}) if isinstance(state, dict) else plain(state)
    shared = any(tensor.untyped_storage().data_ptr() in own for tensor in tensors if type(tensor) is torch.Tensor)
    return {**seen, "state": plain_state, "shared": shared}


def make_model(answer: Answer, case: Case) -> Observation:
    sizes, mean = case.given["sizes"], case.given["mean"].tensor()
    inputs = double(case.given["seed"] + 3, 6, sizes[0]).float()
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
    other = answer(list(sizes), mean + 1)
    seen["shared"] = isinstance(other, nn.Module) and _share(other, model)
    seen["copied"] = _loaded(other, model, inputs) if isinstance(other, nn.Module) else plain(other)
    try:
        seen["moved"] = plain(model.double()(inputs.double()))
    except RuntimeError:  # parts that did not move meet parts that did
        seen["moved"] = None
    return seen


def _share(other: nn.Module, model: nn.Module) -> bool:
    """Return whether two models have a parameter in common."""
    return bool({id(it) for it in other.parameters()} & {id(it) for it in model.parameters()})


def _loaded(other: nn.Module, model: nn.Module, inputs: torch.Tensor) -> Value:
    try:
        other.load_state_dict(model.state_dict())
    except RuntimeError:
        return None
    return plain(other(inputs))


class Broken(RuntimeError):
    """A step that raises."""


def checkup(answer: Answer, case: Case) -> Observation:
    model, optimizer, step = patient(case)
    calls: list[None] = []
    before = flags_of([model])

    def counted() -> None:
        calls.append(None)
        step()
        if case.given["raises"]:
            raise Broken("this step fails at its end")

    raised = False
    returned: Any = None
    try:
        returned = answer(model, optimizer, counted)
    except Broken:
        raised = True
    if type(returned) is dict:
        returned = {key: _names(value) if isinstance(key, str) else value for key, value in returned.items()}
    return {
        "returned": plain(returned),
        "raised": raised,
        "calls": len(calls),
        "hooks": hooks_on(*parts_of(model), optimizer),
        "parameters": {name: plain(it) for name, it in model.named_parameters()},
        "gradients": {name: plain(it.grad) for name, it in model.named_parameters()},
        "flags": flags_of([model]) == before,
        "training": all(part.training for part in model.modules()),
        "session": session_changes(),
    }


def _names(value: object) -> Any:
    """Return a set as a list: sets do not cross."""
    if type(value) in (set, frozenset):
        return sorted((item if type(item) is str else type_name(item)) for item in value)  # type: ignore[attr-defined]
    return value
