"""Observers for lesson 04."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Array, Case, Observation, Value, plain
from course_utils.checks.observing import scenes_04 as scenes
from course_utils.checks.observing import warm  # noqa: F401
from course_utils.checks.observing.left_04 import Surroundings
from course_utils.checks.observing.models import numbers
from course_utils.checks.observing.watch import engine_passes
from course_utils.graph.alive import Graphs, Memory
from course_utils.graph.saved import saved

Answer = Callable[..., Any]


def one_pass(answer: Answer, case: Case) -> Observation:
    losses, leaves = scenes.losses_and_leaves(case)
    for name in case.given["held"]:
        leaves[name].grad = numbers(len(name) + case.given["seed"], *leaves[name].shape)
    before = {name: Array.of(leaf) for name, leaf in leaves.items()}
    given = list(losses), list(case.given["weights"])
    around = Surroundings(*losses, *leaves.values(), lists=given)
    with engine_passes(*losses, *leaves.values()) as passes:
        answer(*given)
    return {
        "gradients": {name: plain(leaf.grad) for name, leaf in leaves.items()},
        "passes": len(passes),
        "kept": saved(*losses).bytes,
        "recorded": any(leaf.grad is not None and leaf.grad.requires_grad for leaf in leaves.values()),
        "moved": [name for name, leaf in leaves.items() if Array.of(leaf) != before[name]],
        "left": around.changed(),
    }


def loss_gradients(answer: Answer, case: Case) -> Observation:
    trunk, h, losses, others = scenes.trunk_and_losses(case)
    parameters = list(trunk.parameters())
    for number, parameter in enumerate([*parameters, *others]):
        if number % 2:
            parameter.grad = numbers(number, *parameter.shape)
    held = [plain(parameter.grad) for parameter in (*parameters, *others)]
    values = [plain(parameter) for parameter in (*parameters, *others)]
    given = list(losses), list(parameters)
    around = Surroundings(*losses, *parameters, *others, lists=given)
    with engine_passes(*losses, h, *parameters) as passes:
        returned = answer(*given)
    return {
        "returned": plain(returned),
        "recorded": any(value.requires_grad for value in _tensors_in(returned)),
        "passes": len(passes),
        "kept": saved(h).bytes,
        "held": [plain(parameter.grad) for parameter in (*parameters, *others)] == held,
        "moved": [plain(parameter) for parameter in (*parameters, *others)] != values,
        "left": around.changed(),
    }


def fit_scale(answer: Answer, case: Case) -> Observation:
    model, log_scale, optimizer, batches = scenes.scaled_classifier(case)
    watch = _Loop(model, optimizer)
    around = Surroundings(model, log_scale, optimizers=[optimizer], lists=[batches])
    returned = answer(model, log_scale, optimizer, batches)
    return {
        "returned": plain(returned),
        **watch.seen(),
        "parameters": [plain(parameter) for parameter in model.parameters()],
        "log_scale": plain(log_scale),
        "left": around.changed(),
    }


def train_chunks(answer: Answer, case: Case) -> Observation:
    lstm, readout, optimizer, chunks, state = scenes.recurrent(case)
    start = [Array.of(part) for part in state]
    states: list[dict[str, Value]] = []
    last: list[Array] = []

    def note(module: nn.Module, given: Any, options: Any, result: Any) -> None:
        received = given[1] if len(given) > 1 else options.get("hx")
        parts = list(received) if type(received) in (tuple, list) else []
        carried = [Array.of(part) for part in parts] == (last or start)
        states.append({"carried": carried, "zero": not any(bool(part.any()) for part in parts)})
        last[:] = [Array.of(part) for part in result[1]]

    lstm.register_forward_hook(note, with_kwargs=True)
    watch = _Loop(lstm, optimizer)
    around = Surroundings(lstm, readout, optimizers=[optimizer], lists=[chunks])
    returned = answer(lstm, readout, optimizer, chunks, state)
    after = returned[1] if type(returned) in (tuple, list) and len(returned) == 2 else None
    return {
        "returned": plain(returned),
        "attached": any(part.requires_grad for part in _tensors_in(after)),
        "states": states,
        **watch.seen(),
        "start": [Array.of(part) for part in state] == start,
        "parameters": [plain(parameter) for parameter in [*lstm.parameters(), *readout.parameters()]],
        "left": around.changed(),
    }


class _Loop:
    """What a model's forward runs and an optimizer's steps show of a training loop."""

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self._graphs = Graphs()
        self._results: list[torch.Tensor] = []  # of this step, kept so that their graphs can be asked
        self._forwards = 0
        self._passes: set[int] = set()
        self._steps: list[dict[str, Value]] = []
        self._own = list(model.parameters())
        model.register_forward_hook(self._forward)
        optimizer.register_step_pre_hook(self._step)

    def _forward(self, module: nn.Module, given: Any, result: Any) -> None:
        tensor = result[0] if type(result) is tuple else result
        self._forwards += 1
        self._graphs.add(tensor)
        self._results = [tensor]
        _count_passes(tensor, self._passes)

    def _step(self, *given: Any) -> None:
        without = all(parameter.grad is None or not parameter.grad.any() for parameter in self._own)
        kept = sum(entry.state in ("held", "modified") and not entry.leaf for entry in saved(*self._results))
        self._results = []
        self._steps.append({"kept": kept, "graphs": self._graphs.alive(), "no gradient": without})

    def seen(self) -> Observation:
        return {"forwards": self._forwards, "passes": len(self._passes), "steps": self._steps}


def _count_passes(result: torch.Tensor, passes: set[int]) -> None:
    """Collect the ids of the backward passes that go through a result. Passes that stop there are not counted."""
    if result.grad_fn is not None:
        result.grad_fn.register_prehook(lambda gradients: passes.add(torch._C._current_graph_task_id()))


def two_updates(answer: Answer, case: Case) -> Observation:
    trunk, heads, optimizers, batches = scenes.two_headed(case)
    parts = [trunk, *heads]
    forwards = [0, 0, 0]
    results: list[torch.Tensor] = []
    order: list[int] = []
    kept: list[int] = []
    returned: list[Value] = []
    passes: set[int] = set()

    def count(number: int) -> Callable[..., None]:
        def hook(module: nn.Module, given: Any, result: torch.Tensor) -> None:
            forwards[number] += 1
            results.append(result)
            if number == 0:
                _count_passes(result, passes)

        return hook

    def step(number: int) -> Callable[..., None]:
        def hook(*given: Any) -> None:
            order.append(number)
            if number == 1:  # the last step: no pass is left to come
                kept.append(saved(*results[:1]).bytes)

        return hook

    for number, part in enumerate(parts):
        part.register_forward_hook(count(number))
    for number, optimizer in enumerate(optimizers):
        optimizer.register_step_pre_hook(step(number))
    lists = [heads, optimizers, *(targets for _, targets in batches)]
    around = Surroundings(*parts, optimizers=optimizers, lists=lists)
    for inputs, targets in batches:
        results.clear()
        returned.append(plain(answer(trunk, heads, optimizers, inputs, targets)))
    return {
        "returned": returned,
        "forwards": forwards,
        "order": order,
        "kept": max(kept, default=0),
        "passes": len(passes),
        "parameters": [[plain(parameter) for parameter in part.parameters()] for part in parts],
        "left": around.changed(),
    }


def split_at_trunk(answer: Answer, case: Case) -> Observation:
    trunk, heads, inputs = scenes.many_headed(case)
    leaves = _leaves(trunk, heads, inputs)
    before = _values(leaves)
    runs = [0] * (1 + len(heads))
    hidden = Memory()
    alive: list[int] = []
    results: list[torch.Tensor] = []
    passes: set[int] = set()

    def start(number: int) -> Callable[..., None]:
        def hook(*given: Any) -> None:
            runs[number] += 1
            if number:
                alive.append(hidden.alive())

        return hook

    for number, part in enumerate([trunk, *heads]):
        part.register_forward_pre_hook(start(number))
        part.register_forward_hook(lambda module, given, result: results.append(result))
    # A pass that adds to h.grad runs the node that made h, and none behind it: so ask deeper.
    lowest: nn.Module = trunk.first  # type: ignore[assignment]
    lowest.register_forward_hook(lambda module, given, result: _count_passes(result, passes))
    for head in heads:
        inner: nn.Module = head.hidden  # type: ignore[assignment]
        inner.register_forward_hook(lambda module, given, result: hidden.add(result))
    given = list(heads)
    around = Surroundings(trunk, *heads, inputs, lists=[given])
    returned = plain(answer(trunk, given, inputs))
    return {
        "returned": returned,
        "gradients": {name: plain(leaf.grad) for name, leaf in leaves.items()},
        "runs": runs,
        "alive": alive,
        "passes": len(passes),
        "kept": saved(*results, besides=[inputs]).bytes if all(type(item) is torch.Tensor for item in results) else 0,
        "moved": _values(leaves) != before,
        "left": around.changed(),
    }


def _leaves(trunk: nn.Module, heads: list[nn.Module], inputs: torch.Tensor) -> dict[str, torch.Tensor]:
    leaves: dict[str, torch.Tensor] = {f"trunk.{name}": leaf for name, leaf in trunk.named_parameters()}
    seen: set[int] = set()
    for number, head in enumerate(heads):
        for name, leaf in head.named_parameters():
            if id(leaf) not in seen:
                seen.add(id(leaf))
                leaves[f"head {number}.{name}"] = leaf
    return {**leaves, "inputs": inputs}


def _values(leaves: dict[str, torch.Tensor]) -> list[Array]:
    return [Array.of(leaf) for leaf in leaves.values()]


def _tensors_in(value: object, depth: int = 0) -> list[torch.Tensor]:
    if type(value) is torch.Tensor:
        return [value]
    if type(value) in (list, tuple) and depth < 4:
        return [tensor for item in value for tensor in _tensors_in(item, depth + 1)]  # type: ignore[attr-defined]
    return []
