"""Observers for lesson 06."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Array, Case, Observation, plain
from course_utils.checks.observing.scenes_06 import (
    BadBatch,
    Batches,
    average_pair,
    crossed,
    evaluated,
    flags,
    players,
    q_networks,
)
from course_utils.checks.observing.watch import engine_passes
from course_utils.graph.saved import kept
from course_utils.graph.trace import nodes_behind, walk

Answer = Callable[..., Any]


@contextmanager
def packs() -> Iterator[list[None]]:
    """Collect an entry for each tensor that is saved for a backward pass while the body runs."""
    counted: list[None] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        counted.append(None)
        return tensor.detach()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield counted


class Runs:
    """The results of one module: how many, which required a gradient, and whether their graphs still hold anything."""

    def __init__(self, model: nn.Sequential) -> None:
        self.live: list[bool] = []
        self._nodes: list[Any] = []
        self._handle = model[-1].register_forward_hook(self._note)

    def _note(self, module: nn.Module, given: Any, result: torch.Tensor) -> None:
        self.live.append(result.requires_grad)
        if result.grad_fn is not None:
            self._nodes.append(result.grad_fn)

    def held(self) -> bool:
        """Return whether a graph behind any result still has its saved tensors."""
        return any(state == "held" for node in walk(self._nodes) for _, state, _ in kept(node))

    def close(self) -> None:
        self._handle.remove()


def _numbers(model: nn.Module) -> list[Array]:
    return [Array.of(parameter) for parameter in model.parameters()]


def _gradients(model: nn.Module) -> list[Any]:
    return [plain(parameter.grad) for parameter in model.parameters()]


def _modes(*models: nn.Module) -> list[bool]:
    """Return whether recording is on, and the mode of each part of the models."""
    return [torch.is_grad_enabled(), *(module.training for model in models for module in model.modules())]


def _is_result(value: object) -> bool:
    return type(value) is torch.Tensor and value.requires_grad and value.numel() > 0


# Single functions.


def straight_through(answer: Answer, case: Case) -> Observation:
    x = case.given["x"].tensor().requires_grad_(case.given["live"])
    given = x.t() if case.given["transposed"] else x * 1
    before = Array.of(given)
    y = answer(given)
    seen: Observation = {"returned": plain(y), "graph": _is_result(y), "gradient": None}
    direction = case.given["direction"].tensor()
    if x.requires_grad and type(y) is torch.Tensor and y.requires_grad and y.shape == direction.shape:
        (gradient,) = torch.autograd.grad(y, x, direction.to(y.dtype), allow_unused=True)
        seen["gradient"] = plain(gradient)
    return {**seen, "x": Array.of(given) == before}


def uncut_loss(answer: Answer, case: Case) -> Observation:
    leaves = {name: case.given[name].tensor().requires_grad_() for name in ("points", "scale", "weights")}
    # What the function gets are results, as they would be inside a network.
    given = {name: leaf * 1 for name, leaf in leaves.items()}
    before = {name: Array.of(tensor) for name, tensor in given.items()}
    with engine_passes(*leaves.values()) as passes:
        loss = answer(**given)
    seen: Observation = {"returned": plain(loss), "graph": _is_result(loss), "gradients": None, "leaf": False}
    if type(loss) is torch.Tensor and loss.requires_grad and loss.numel() == 1:
        seen["leaf"] = loss.is_leaf
        found = torch.autograd.grad(loss, list(leaves.values()), torch.ones_like(loss), allow_unused=True)
        seen["gradients"] = {name: plain(gradient) for name, gradient in zip(leaves, found, strict=True)}
    untouched = all(Array.of(tensor) == before[name] for name, tensor in given.items())
    return {**seen, "untouched": untouched, "passes": len(passes)}


# Models.


def ema_update(answer: Answer, case: Case) -> Observation:
    target, source = average_pair(case)
    parameters, buffers = dict(target.named_parameters()), dict(target.named_buffers())
    given = [*source.parameters(), *source.buffers()]
    places = {name: tensor.data_ptr() for name, tensor in (parameters | buffers).items()}
    versions = {name: tensor._version for name, tensor in parameters.items()}
    before = flags(target), flags(source), _gradients(source), [Array.of(tensor) for tensor in given]
    answer(target, source, case.given["decay"])
    after = dict(target.named_parameters()) | dict(target.named_buffers())
    written = all(tensor._version > versions[name] for name, tensor in parameters.items())
    names_same = after.keys() == parameters.keys() | buffers.keys()
    return {
        "parameters": {name: plain(after.get(name)) for name in parameters},
        "buffers": {name: plain(after.get(name)) for name in buffers},
        "in place": names_same and all(after[name].data_ptr() == place for name, place in places.items()),
        "same objects": names_same and all(after[name] is tensor for name, tensor in parameters.items()),
        "counted": written,
        "graph": any(tensor.grad_fn is not None for tensor in (*target.parameters(), *target.buffers())),
        "flags": (flags(target), flags(source)) == before[:2],
        "source": (_gradients(source), [Array.of(tensor) for tensor in given]) == before[2:],
        "grad mode": torch.is_grad_enabled(),
    }


def evaluate(answer: Answer, case: Case) -> Observation:
    model, batches = evaluated(case)
    modules = list(model.modules())
    modes, before = [module.training for module in modules], (flags(model), _gradients(model), _numbers(model))
    at_first: list[bool] | None = None
    if case.given["bad"] is not None:  # what happens where nothing goes wrong
        answer(model, nn.functional.cross_entropy, Batches(batches))
        at_first = [module.training for module in modules]
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode
    buffers = [Array.of(buffer) for buffer in model.buffers()]
    during: list[bool] = []
    for module in modules:  # the largest part runs first
        module.register_forward_pre_hook(lambda module, given: during.append(module.training))
    runs: list[None] = []
    model.body.register_forward_hook(lambda *given: runs.append(None))
    raised = False
    returned: object = None
    with torch.set_grad_enabled(case.given["gradients on"]), packs() as saved:
        try:
            returned = answer(model, nn.functional.cross_entropy, Batches(batches, case.given["bad"]))
        except BadBatch:
            raised = True
        switches = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
    return {
        "returned": plain(returned),
        "raised": raised,
        "saved": len(saved),
        "in training": any(during),
        "runs": len(runs),
        "modes": [module.training for module in modules],
        "modes at first": at_first,
        "grad mode": switches == (case.given["gradients on"], False),
        "model": (flags(model), _gradients(model), _numbers(model)) == before,
        "buffers": [Array.of(buffer) for buffer in model.buffers()] == buffers,
    }


def discriminator_step(answer: Answer, case: Case) -> Observation:
    generator, discriminator = players(case)
    optimizer = torch.optim.SGD(discriminator.parameters(), lr=case.given["rate"])
    real, noise = case.given["real"].tensor(), case.given["noise"].tensor()
    return _played(answer, (real, noise), generator, discriminator, optimizer)


def generator_step(answer: Answer, case: Case) -> Observation:
    generator, discriminator = players(case)
    optimizer = torch.optim.SGD(generator.parameters(), lr=case.given["rate"])
    return _played(answer, (case.given["noise"].tensor(),), generator, discriminator, optimizer)


def _played(
    answer: Answer,
    data: tuple[torch.Tensor, ...],
    generator: nn.Sequential,
    discriminator: nn.Sequential,
    optimizer: Any,
) -> Observation:
    fakes, opinions = Runs(generator), Runs(discriminator)
    before = flags(generator), flags(discriminator)
    starts = _numbers(generator), _numbers(discriminator)
    gradients = _gradients(generator), _gradients(discriminator)
    modes = _modes(generator, discriminator)
    steps: list[None] = []
    optimizer.register_step_post_hook(lambda *given: steps.append(None))
    returned = answer(generator, discriminator, optimizer, *data)
    seen = {
        "returned": plain(returned),
        "generator": _numbers(generator),
        "discriminator": _numbers(discriminator),
        "generator moved": _numbers(generator) != starts[0],
        "discriminator moved": _numbers(discriminator) != starts[1],
        "generator gradients": _gradients(generator) == gradients[0],
        "discriminator gradients": _gradients(discriminator) == gradients[1],
        "flags": [flags(generator), flags(discriminator)] == list(before),
        "modes": _modes(generator, discriminator) == modes,
        "fakes recorded": any(fakes.live),
        "fakes": len(fakes.live),
        "opinions": len(opinions.live),
        "held": fakes.held() or opinions.held(),
        "steps": len(steps),
    }
    del returned
    return seen


def td_loss(answer: Answer, case: Case) -> Observation:
    network, target_network = q_networks(case)
    live, old = Runs(network), Runs(target_network)
    names = ("states", "actions", "rewards", "next_states", "done")
    batch = tuple(case.given[name].tensor() for name in names)
    before = flags(network), flags(target_network), _numbers(network), _numbers(target_network)
    modes = _modes(network, target_network)
    loss = answer(network, target_network, batch, case.given["discount"])
    seen: Observation = {
        "returned": plain(loss),
        "graph": _is_result(loss),
        "gradients": None,
        "old gradients": None,
        "recorded": any(old.live),
        "runs": len(live.live),
        "old runs": len(old.live),
        "untouched": (flags(network), flags(target_network), _numbers(network), _numbers(target_network)) == before,
        "modes": _modes(network, target_network) == modes,
        "graded": any(p.grad is not None for p in (*network.parameters(), *target_network.parameters())),
    }
    if type(loss) is torch.Tensor and loss.requires_grad and loss.numel() == 1 and seen["untouched"]:
        every = [*network.parameters(), *target_network.parameters()]
        found = torch.autograd.grad(loss, every, torch.ones_like(loss), allow_unused=True)
        half = len(list(network.parameters()))
        seen["gradients"] = [plain(gradient) for gradient in found[:half]]
        seen["old gradients"] = any(gradient is not None for gradient in found[half:])
    return seen


def through_frozen(answer: Answer, case: Case) -> Observation:
    layer, leaf = crossed(case)
    x = leaf * 1
    before = flags(layer), _gradients(layer), _numbers(layer), [module.training for module in layer.modules()]
    objects = list(layer.parameters())
    names = {id(parameter): name for name, parameter in layer.named_parameters()} | {id(leaf): "x"}
    runs: list[None] = []
    layer[0].register_forward_hook(lambda *given: runs.append(None))
    at_first: bool | None = None
    thawing: dict[str, bool] = {}
    if case.given["wrong width"]:  # what happens where nothing goes wrong
        answer(layer, torch.ones(4, 3))
        thawing = flags(layer)
        at_first = thawing == before[0]
        for name, parameter in layer.named_parameters():
            parameter.requires_grad_(before[0][name])
    raised = False
    y: object = None
    try:
        y = answer(layer, x)
    except RuntimeError:
        if not case.given["wrong width"]:
            raise
        raised = True
    after = flags(layer), _gradients(layer), _numbers(layer), [module.training for module in layer.modules()]
    thawing = thawing or after[0]
    same = len(objects) == len(list(layer.parameters())) and all(
        mine is its for mine, its in zip(objects, layer.parameters(), strict=True)
    )
    seen: Observation = {
        "returned": plain(y),
        "raised": raised,
        "graph": _is_result(y),
        "gradient": None,
        "leaves": [],
        "flags": before[0] == after[0],
        "flags at first": at_first,
        "thawed": any(now and not before[0][name] for name, now in thawing.items()),
        "gradients": before[1] == after[1],
        "numbers": before[2] == after[2],
        "modes": before[3] == after[3],
        "same objects": same,
        "buffers": {name: Array.of(buffer) for name, buffer in layer.named_buffers()},
        "grad mode": torch.is_grad_enabled(),
        "runs": len(runs),
    }
    direction = case.given["direction"].tensor()
    if type(y) is torch.Tensor and y.requires_grad and y.shape == direction.shape:
        nodes = [node for node in nodes_behind(y) if hasattr(node, "variable")]
        seen["leaves"] = sorted({names.get(id(node.variable), "other") for node in nodes})
        (gradient,) = torch.autograd.grad(y, leaf, direction.to(y.dtype), allow_unused=True)
        seen["gradient"] = plain(gradient)
    return seen
