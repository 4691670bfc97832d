"""Running an answer to `step_in_backward`."""

from __future__ import annotations

import inspect
import weakref
from typing import Any

import torch
from torch.autograd.graph import get_gradient_edge
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.checks.data import Answer, Array, Case, Observation, Value, plain, type_name
from course_utils.checks.observers.lesson_07_gradient_accumulation.watch import gradients
from course_utils.checks.observers.traces import hooks_on, parts_of
from course_utils.checks.scenes.lesson_07_gradient_accumulation.classifier import batches_of
from course_utils.checks.scenes.lesson_07_gradient_accumulation.step_in_backward import loss_of, tied
from course_utils.graph.alive import Memory, tensors_in


def observe(answer: Answer, case: Case) -> Observation:
    """Two passes with the learner's hooks on, and a third after they were removed."""
    model = tied(case)
    before = {name: id(parameter) for name, parameter in model.named_parameters()}
    flags = {name: parameter.requires_grad for name, parameter in model.named_parameters()}
    live = [parameter for parameter in model.parameters() if parameter.requires_grad]
    memory, copies, waiting, alive = Memory(), _Copies(), [0], [0]

    def arrived(parameter: torch.Tensor) -> None:
        if parameter.grad is not None:
            memory.add(parameter.grad)
        copies.shapes.add(parameter.shape)

    counters = [parameter.register_post_accumulate_grad_hook(arrived) for parameter in live]
    random = torch.get_rng_state()
    handles = answer(model, case.given["lr"])
    modes = torch.is_grad_enabled() and torch.equal(random, torch.get_rng_state())
    kinds, removable = _handles(handles)

    def count(grads: Any) -> None:
        waiting.append(sum(parameter.grad is not None for parameter in model.parameters()))
        alive.append(memory.alive() + copies.alive(model))

    nodes = [get_gradient_edge(parameter).node for parameter in live]  # a parameter holds its node weakly
    counters += [node.register_prehook(count) for node in nodes]
    after: list[Observation] = []
    for batch in batches_of(case)[:2]:
        loss = loss_of(model, batch, case)
        copies.shapes.clear()
        with copies:
            loss.backward()
        if all(parameter.grad is None for parameter in live):
            alive.append(copies.alive(model))
        after.append({"gradients": gradients(model), "parameters": dict(_parameters(model))})
    for counter in counters:
        counter.remove()
    same = {name: id(parameter) for name, parameter in model.named_parameters()} == before
    for handle in removable:
        handle.remove()
    hooks = hooks_on(*parts_of(model))
    switched = [name for name, parameter in model.named_parameters() if parameter.requires_grad != flags.get(name)]
    left = _parameters(model)
    for parameter in model.parameters():
        parameter.grad = None
    spare = sum((parameter**2).sum() for parameter in model.spare.parameters())
    (loss_of(model, batches_of(case)[2], case) + spare).backward()
    return {
        "returned": kinds,
        "waiting": max(waiting),
        "alive": max(alive),
        "modes": modes,
        "passes": after,
        "same": same and not hooks and not switched,
        "hooks left": hooks,
        "switched": switched,
        "moved": _parameters(model) != left,
        "gradients": gradients(model),
        "recorded": _recorded(answer, case),
    }


def _recorded(answer: Answer, case: Case) -> dict[str, Array]:
    """Return a new model's parameters after a pass that is recorded itself."""
    model = tied(case)
    nodes = [get_gradient_edge(it).node for it in model.parameters() if it.requires_grad]  # held weakly by parameters
    handles = answer(model, case.given["lr"])
    loss_of(model, batches_of(case)[0], case).backward(create_graph=True)
    del nodes, handles
    return dict(_parameters(model))


class _Copies(TorchDispatchMode):
    """What a pass makes in the shape of a parameter whose gradient has arrived: a copy of that, or a multiple."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.shapes: set[torch.Size] = set()
        self._made: list[weakref.ref[torch.Tensor]] = []

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        self._made += [weakref.ref(tensor) for tensor in tensors_in((result,)) if tensor.shape in self.shapes]
        return result

    def alive(self, model: torch.nn.Module) -> int:
        """Return how many of them are still held by anything, a parameter's own memory apart."""
        own = {parameter.data_ptr() for parameter in model.parameters()}
        made = [tensor for it in self._made if (tensor := it()) is not None]
        return sum(tensor.data_ptr() not in own for tensor in made)


def _handles(handles: object) -> tuple[Value, list[Any]]:
    if type(handles) not in (list, tuple):
        return plain(handles), []
    items: list[Any] = list(handles)  # type: ignore[call-overload]
    removable = [item for item in items if _removable(item)]
    return ["handle" if item in removable else type_name(item) for item in items], removable


def _removable(item: Any) -> bool:
    """Return whether an item has a `remove()` as a handle has: that of a list asks for what to remove."""
    try:
        inspect.signature(item.remove).bind()
    except (AttributeError, TypeError, ValueError):
        return False
    return True


def _parameters(model: torch.nn.Module) -> dict[str, Array]:
    return {name: Array.of(parameter) for name, parameter in model.named_parameters()}
