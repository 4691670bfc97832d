"""Watching a training loop, and what it must leave alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_pre_hook

from course_utils.checks.data import Array, Observation, plain
from course_utils.checks.observers import telling
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.observers.runs import notice
from course_utils.checks.observers.traces import hooks_on, parts_of
from course_utils.checks.scenes.lesson_09_practical_checklist.training import Batch, Optimizer
from course_utils.graph.alive import Graphs
from course_utils.graph.saved import saved


def watched(
    run: Callable[[], Any],
    modules: Iterable[nn.Module],
    batches: Iterable[Batch],
    optimizer: Optimizer | None = None,
    scheduled: bool = False,
) -> Observation:
    """Run a loop. Return what came back, what became of the modules, and what was seen at every forward and step.

    Where it is `scheduled`, the optimizer's rates may be others afterwards.
    """
    modules = list(modules)
    settings, flags, modes = settings_of(optimizer, scheduled), flags_of(modules), modes_of(modules)
    hooked = hooks_on(optimizer)
    graphs, inside = Graphs(), [Graphs()]  # of whole runs, and for each run of its parts
    runs: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    latest: list[torch.Tensor] = []  # from the last recorded operation of a module until the next step

    recorded = [False for _ in modules]

    def part_ran(number: int, module: nn.Module, given: Any, result: Any) -> None:
        if _own(result) and result.requires_grad:
            latest[:] = [result]
            recorded[number] = True
            inside[-1].add(result)

    def ran(number: int, module: nn.Module, given: Any, result: Any) -> None:
        part_ran(number, module, given, result)
        if _own(result):
            graphs.add(result)
            inside.append(Graphs())
            telling.tell("runs")
            modes = [part.training for part in module.modules()]
            run = {"of": number, "training": all(modes), "evaluating": not any(modes)}
            runs.append({**run, "recorded": result.requires_grad, "shape": list(result.shape)})

    trained = {it for module in modules for it in module.parameters()}
    first = next((it for module in modules for it in module.parameters()), None)

    def step(*given: Any) -> None:
        groups = given[0].param_groups
        held = any(entry.state == "held" for entry in saved(*latest))
        latest.clear()
        held_first = any(it is first for group in groups for it in group["params"])
        fed = held_first and first is not None and first.grad is not None
        steps.append({"rate": plain(groups[0]["lr"]), "held": held, "first has a gradient": fed})

    for number, module in enumerate(modules):
        for part in module.modules():
            notice(part, partial(ran if part is module else part_ran, number))
    # Where the loop makes its own optimizer, all optimizers are watched.
    on_step = register_optimizer_step_pre_hook if optimizer is None else optimizer.register_step_pre_hook
    handle = on_step(step)
    data = [tensor for batch in batches for tensor in batch]
    before = [_as_given(tensor) for tensor in data]
    try:
        with every_pass() as passes:
            returned = run()
    finally:
        handle.remove()
        latest.clear()
    return {
        "returned": plain(returned),
        "graphs": (graphs.alive() or sum(it.alive() > 0 for it in inside))
        + sum(it.grad is not None and it.grad.requires_grad for it in trained),
        "passes": len(passes),
        "runs": runs,
        "recorded": recorded,
        "steps": steps,
        "same data": [_as_given(tensor) for tensor in data] == before,
        "parameters": [_named(module.named_parameters()) for module in modules],
        "buffers": [_named(module.named_buffers()) for module in modules],
        "training": [part.training for module in modules for part in module.modules()],
        "modes": modes_of(modules) == modes,
        "hooks": hooks_on(*parts_of(*modules)),
        "optimizer's hooks": hooks_on(optimizer) - hooked,
        "flags": [mine == it for mine, it in zip(flags_of(modules), flags, strict=True)],
        "settings": None if optimizer is None else _others(settings, settings_of(optimizer, scheduled)),
        "rate": plain(optimizer.param_groups[0]["lr"]) if optimizer is not None else None,
    }


def _own(result: Any) -> bool:
    """Return whether a module gave a tensor that lives outside torch.func, which keeps its own graphs."""
    return type(result) is torch.Tensor and not torch._C._functorch.is_functorch_wrapped_tensor(result)


def _as_given(tensor: torch.Tensor) -> tuple[Array, bool, bool]:
    return Array.of(tensor), tensor.requires_grad, tensor.grad is None


def flags_of(modules: Iterable[nn.Module]) -> list[dict[str, bool]]:
    """Return which parameters require a gradient, by name, for each module."""
    return [{name: it.requires_grad for name, it in module.named_parameters()} for module in modules]


def modes_of(modules: Iterable[nn.Module]) -> list[dict[str, bool]]:
    """Return which parts of each module are in training mode, by name."""
    return [{name: part.training for name, part in module.named_modules()} for module in modules]


def settings_of(optimizer: Optimizer | None, scheduled: bool) -> list[dict[str, Any]]:
    """Return what an optimizer holds and how it steps. The rate is left out where a scheduler changes it."""
    left_out = "lr" if scheduled else None
    return [
        {key: [id(it) for it in value] if key == "params" else value for key, value in group.items() if key != left_out}
        for group in (optimizer.param_groups if optimizer is not None else ())
    ]


def _others(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[str]:
    """Name the settings that are others now; "params" also where there are more groups, or fewer."""
    if len(before) != len(after):
        return ["params"]
    pairs = list(zip(before, after, strict=True))
    return sorted({str(key) for was, now in pairs for key in {**was, **now} if was.get(key) != now.get(key)})


def _named(tensors: Iterable[tuple[str, torch.Tensor]]) -> dict[str, Any]:
    return {name: plain(tensor) for name, tensor in tensors}
