"""Observers for lesson 06."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Array, Case, Observation, plain
from course_utils.checks.observing import warm  # noqa: F401
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
from course_utils.checks.observing.watching_06 import (
    Runs,
    gradients_in,
    hooks_in,
    is_result,
    modes_of,
    numbers_in,
    packs,
    unmarked,
)
from course_utils.graph.trace import nodes_behind

Answer = Callable[..., Any]


# Single functions.


def straight_through(answer: Answer, case: Case) -> Observation:
    x = case.given["x"].tensor().requires_grad_(case.given["live"])
    given = x.t() if case.given["transposed"] else x * 1
    before = Array.of(given)
    y = answer(given)
    seen: Observation = {"returned": plain(y), "graph": is_result(y), "gradient": None}
    seen["leaf"] = seen["graph"] and y.is_leaf
    seen["as before"] = given.requires_grad is case.given["live"] and unmarked(given) and torch.is_grad_enabled()
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


# Models.


def ema_update(answer: Answer, case: Case) -> Observation:
    target, source = average_pair(case)
    parameters, buffers = dict(target.named_parameters()), dict(target.named_buffers())
    given = [*source.parameters(), *source.buffers()]
    places = {name: tensor.data_ptr() for name, tensor in (parameters | buffers).items()}
    versions = {name: tensor._version for name, tensor in parameters.items()}
    before = flags(target), flags(source), gradients_in(source), [Array.of(tensor) for tensor in given]
    with torch.set_grad_enabled(case.given["recording"]):
        rest = gradients_in(target), modes_of(target, source), hooks_in(target, source)
        answer(target, source, case.given["decay"])
        rest_after = gradients_in(target), modes_of(target, source), hooks_in(target, source)
        recording = torch.is_grad_enabled()
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
        "source": (gradients_in(source), [Array.of(tensor) for tensor in given]) == before[2:],
        "grad mode": recording is case.given["recording"],
        "target gradients": rest_after[0] == rest[0],
        "modes": rest_after[1][1:] == rest[1][1:],
        "hooks": rest_after[2] == rest[2],
    }


def evaluate(answer: Answer, case: Case) -> Observation:
    model, batches = evaluated(case)
    modules = list(model.modules())
    modes, before = [module.training for module in modules], (flags(model), gradients_in(model), numbers_in(model))
    at_first: list[bool] | None = None
    if case.given["bad"] is not None:  # what happens where nothing goes wrong
        answer(model, nn.functional.cross_entropy, Batches(batches))
        at_first = [module.training for module in modules]
        for module, mode in zip(modules, modes, strict=True):
            module.training = mode
    buffers = [Array.of(buffer) for buffer in model.buffers()]
    during: list[bool] = []
    copies: list[bool] = []

    def note(module: nn.Module, given: Any) -> None:
        during.append(module.training)
        copies.append(all(module is not mine for mine in modules))

    for module in modules:  # the largest part runs first
        module.register_forward_pre_hook(note)
    runs: list[None] = []
    model.body.register_forward_hook(lambda *given: runs.append(None))
    raised = False
    returned: object = None
    hooks, random = hooks_in(model), torch.get_rng_state()
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
        "copied": any(copies),
        "hooks": hooks_in(model) == hooks,
        "random": torch.equal(torch.get_rng_state(), random),
        "runs": len(runs),
        "modes": [module.training for module in modules],
        "modes at first": at_first,
        "grad mode": switches == (case.given["gradients on"], False),
        "model": (flags(model), gradients_in(model), numbers_in(model)) == before,
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
    starts = numbers_in(generator), numbers_in(discriminator)
    gradients = gradients_in(generator), gradients_in(discriminator)
    modes, hooks = modes_of(generator, discriminator), hooks_in(generator, discriminator)
    steps: list[None] = []
    optimizer.register_step_post_hook(lambda *given: steps.append(None))
    returned = answer(generator, discriminator, optimizer, *data)
    seen = {
        "returned": plain(returned),
        "generator": numbers_in(generator),
        "discriminator": numbers_in(discriminator),
        "generator moved": numbers_in(generator) != starts[0],
        "discriminator moved": numbers_in(discriminator) != starts[1],
        "generator gradients": gradients_in(generator) == gradients[0],
        "discriminator gradients": gradients_in(discriminator) == gradients[1],
        "flags": [flags(generator), flags(discriminator)] == list(before),
        "modes": modes_of(generator, discriminator) == modes,
        "hooks": hooks_in(generator, discriminator) == hooks,
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
    before = flags(network), flags(target_network), numbers_in(network), numbers_in(target_network)
    modes, hooks = modes_of(network, target_network), hooks_in(network, target_network)
    given = [Array.of(tensor) for tensor in batch]
    loss = answer(network, target_network, batch, case.given["discount"])
    seen: Observation = {
        "returned": plain(loss),
        "graph": is_result(loss),
        "gradients": None,
        "old gradients": None,
        "recorded": any(old.live),
        "runs": len(live.live),
        "old runs": len(old.live),
        "untouched": (flags(network), flags(target_network), numbers_in(network), numbers_in(target_network)) == before,
        "modes": modes_of(network, target_network) == modes,
        "hooks": hooks_in(network, target_network) == hooks,
        "batch": [Array.of(tensor) for tensor in batch] == given,
        "graded": any(p.grad is not None for p in (*network.parameters(), *target_network.parameters())),
    }
    if type(loss) is torch.Tensor and loss.requires_grad and loss.numel() == 1 and seen["untouched"]:
        old_leaves = [parameter for parameter in target_network.parameters() if parameter.requires_grad]
        every = [*network.parameters(), *old_leaves]
        found = torch.autograd.grad(loss, every, torch.ones_like(loss), allow_unused=True)
        half = len(every) - len(old_leaves)
        seen["gradients"] = [plain(gradient) for gradient in found[:half]]
        seen["old gradients"] = any(gradient is not None for gradient in found[half:])
    return seen


def through_frozen(answer: Answer, case: Case) -> Observation:
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
