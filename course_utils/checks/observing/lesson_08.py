"""Observers for lesson 08."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Array, Case, Observation, Value, plain
from course_utils.checks.observing.batches import Batches
from course_utils.checks.observing.models import numbers
from course_utils.checks.observing.scenes_08 import (
    Planned,
    changed,
    layered,
    logged,
    scorer_of_images,
    stacked,
    state,
    weighed,
)
from course_utils.checks.observing.traces import hooks_on
from course_utils.graph.alive import Graphs
from course_utils.graph.saved import saved

Answer = Callable[..., Any]


def reverse_gradient(answer: Answer, case: Case) -> Observation:
    return _on_the_way(lambda x: answer(x, case.given["strength"]), case)


def clip_passing(answer: Answer, case: Case) -> Observation:
    return _on_the_way(lambda x: answer(x, case.given["max_norm"]), case)


def _on_the_way(answer: Answer, case: Case) -> Observation:
    """Watch a function that only changes the gradient on its way back through it."""
    source = case.given["x"].tensor().t().requires_grad_(case.given["requires_grad"])
    x = source if case.given["leaf"] else source.sin()
    values, version = Array.of(x), x._version
    other = torch.ones(x.shape, dtype=x.dtype, requires_grad=True)
    neighbour = other * 1
    with torch.set_grad_enabled(not case.given["no_grad"]):
        y = answer(x)
        switched = torch.is_grad_enabled() == case.given["no_grad"]
    seen: Observation = {
        **{"returned": plain(y), "recorded": type(y) is torch.Tensor and y.requires_grad, "through": None},
        **{"beside": None, "both": None, "twice": None, "neighbour": None},
    }
    if seen["recorded"] and y.shape == x.shape and y.dtype == x.dtype and source.requires_grad:
        down, beside = case.given["down"].tensor(), case.given["beside"].tensor()
        seen["through"] = [_arriving((y * by).sum(), source) for by in (down, 0 * down, 0.001 * down)]
        seen["beside"] = _arriving((x.cos() * beside).sum(), source)
        seen["both"] = _arriving((y * down).sum() + (x.cos() * beside).sum(), source)
        seen["twice"] = _arriving((y * down).sum() + (y * beside).sum(), source)
        # The node of a sum hands one tensor to both sides; the neighbour's side is the later one to use it.
        added = ((y + neighbour) * down).sum()
        seen["neighbour"] = plain(torch.autograd.grad(added, (other, source), retain_graph=True, allow_unused=True)[0])
    after = {"changed": Array.of(x) != values or x._version != version, "held": plain(source.grad)}
    return {**seen, **after, "required": source.requires_grad, "retains": x.retains_grad, "switched": switched}


def _arriving(loss: torch.Tensor, source: torch.Tensor) -> Value:
    return plain(torch.autograd.grad(loss, source, retain_graph=True, allow_unused=True)[0])


def layer_gradients(answer: Answer, case: Case) -> Observation:
    model, x = layered(case)
    hold_gradients(model)
    runs: list[bool] = []
    model.register_forward_hook(lambda module, given, result: runs.append(module is model))
    losses: list[torch.Tensor | None] = []
    passes: set[int] = set()

    def loss_fn(output: torch.Tensor) -> torch.Tensor:
        losses.append(None)
        if case.given["fails"]:
            raise Planned("the loss function fails here")
        losses[-1] = loss = weighed(output)
        if loss.grad_fn is not None:
            loss.grad_fn.register_prehook(lambda grads: passes.add(torch._C._current_graph_task_id()))
        return loss

    before, values = state(model), Array.of(x)
    raised, returned = "", None
    with torch.enable_grad():
        try:
            returned = answer(model, list(case.given["names"]), x, loss_fn)
        except Planned as error:
            raised = str(error)
        switched = not torch.is_grad_enabled()
    return {
        "returned": plain(returned),
        "raised": raised,
        "forward runs": sum(runs),
        "loss runs": len(losses),
        "kept": any(_kept(loss) for loss in losses),
        "passes": len(passes),
        "changed": changed(before, model),
        "x": Array.of(x) == values and not x.requires_grad and x.grad is None,
        "switched": switched,
    }


def _kept(loss: torch.Tensor | None) -> bool:
    """Return whether the node nearest to the result that saved something still has it."""
    return loss is not None and any(entry.state == "held" for entry in saved(loss).tensors[:1])


def hold_gradients(model: nn.Module) -> None:
    """Give every second parameter a gradient from before."""
    for position, parameter in enumerate(model.parameters()):
        if position % 2 and parameter.requires_grad:
            parameter.grad = torch.full_like(parameter, 7.0)


def gradient_log(answer: Answer, case: Case) -> Observation:
    model, batches = logged(case)
    hold_gradients(model)
    graphs = Graphs()
    seen: dict[str, list[Any]] = {"hooks": [], "alive": [], "kept": [], "runs": []}
    passes: set[int] = set()
    last: list[torch.Tensor] = []

    def own_hook(module: nn.Module, given: Any, result: Any) -> None:
        seen["kept"] += [_kept(last.pop())] if last else []
        seen["alive"].append(graphs.alive())
        seen["runs"].append(module is model)
        if isinstance(result, torch.Tensor):
            graphs.add(result)

    def loss_fn(output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        seen["hooks"].append(hooks_on(*model.modules()))
        if len(seen["hooks"]) == case.given["fails at"]:
            raise Planned("the loss function fails here")
        loss = nn.functional.mse_loss(output, targets)
        last[:] = [loss]
        if loss.grad_fn is not None:
            loss.grad_fn.register_prehook(lambda grads: passes.add(torch._C._current_graph_task_id()))
        return loss

    model.register_forward_hook(own_hook)
    before = state(model)
    raised, returned = "", None
    with torch.enable_grad():
        try:
            returned = answer(model, Batches(batches), loss_fn)
        except Planned as error:
            raised = str(error)
        switched = not torch.is_grad_enabled()
    observed = {"returned": plain(returned), "raised": raised, "changed": changed(before, model), "switched": switched}
    kept = any(seen["kept"]) or any(_kept(loss) for loss in last)
    return {**observed, **seen, "kept": kept, "runs": sum(seen["runs"]), "passes": len(passes)}


def saliency(answer: Answer, case: Case) -> Observation:
    model, images, labels = scorer_of_images(case)
    if not case.given["frozen"]:
        hold_gradients(model)
    results: list[Any] = []

    # A copy of the model has a copy of this hook.
    def own_hook(module: nn.Module, given: Any, result: Any) -> None:
        results.append(None if torch._C._functorch.is_gradtrackingtensor(result) else result)

    model.register_forward_hook(own_hook)
    before, values, wanted = state(model), Array.of(images), Array.of(labels)
    with torch.set_grad_enabled(not case.given["no_grad"]):
        returned = answer(model, images, labels)
        mode = torch.is_grad_enabled()
    return {
        "returned": plain(returned),
        "recorded": type(returned) is torch.Tensor and returned.requires_grad,
        "runs": len(results),
        "kept": any(_kept(result) for result in results if isinstance(result, torch.Tensor)),
        "changed": changed(before, model),
        "images": Array.of(images) == values and not images.requires_grad and images.grad is None,
        "labels": Array.of(labels) == wanted,
        "mode": mode != case.given["no_grad"],
    }


def rescue(answer: Answer, case: Case) -> Observation:
    model, x = stacked(case)
    layers, before = list(model), state(model)
    parts: list[tuple[str, bool]] = [(str(layer), layer.training) for layer in layers]
    answer(model)
    # Numbers in parameters are what the answer is to change.
    found = changed(before, model, but="numbers")
    kept = len(model) == len(layers) and all(now is was for now, was in zip(model, layers, strict=True))
    kept = kept and [(str(layer), layer.training) for layer in model] == parts
    seen: Observation = {"changed": found, "kept": kept, "outputs": [], "gradients": [], "ranks": []}
    if not kept or any("which tensor" in what for what in found):
        return seen
    outputs = []
    h = x
    for layer in layers[:-1]:
        h = layer(h)
        if not isinstance(layer, nn.Linear):
            outputs.append(h)
    score = (layers[-1](h) * numbers(case.given["seed"] + 2, 20, 2)).sum()
    if not score.requires_grad:
        return seen
    gradients = torch.autograd.grad(score, outputs, allow_unused=True, materialize_grads=True)
    weights = [layer.weight.detach() for layer in layers if isinstance(layer, nn.Linear)]
    return {
        **seen,
        "outputs": [_rms(output) for output in outputs],
        "gradients": [_rms(gradient) * gradient.shape[1] ** 0.5 for gradient in gradients],
        "ranks": [_varied(weight.double()) for weight in weights[:-1]],
        "spread": [_rms(output - output.mean(0)) for output in outputs],
    }


def _varied(weight: torch.Tensor) -> bool:
    """Return whether a layer's units all do something, and different things."""
    sizes = weight.norm(dim=1, keepdim=True)
    alike = (weight / sizes) @ (weight / sizes).T - torch.eye(len(weight), dtype=weight.dtype)
    return bool(torch.linalg.matrix_rank(weight) == min(weight.shape)) and bool(alike.max() < 0.99)


def _rms(tensor: torch.Tensor) -> float:
    return float(tensor.detach().double().square().mean().sqrt())
