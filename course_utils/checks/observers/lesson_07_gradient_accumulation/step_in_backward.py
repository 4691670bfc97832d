"""Running an answer to `step_in_backward`."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from typing import Any

import torch
from torch.autograd.graph import get_gradient_edge
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.checks.data import Answer, Array, Case, Observation, Value, plain, type_name
from course_utils.checks.observers.by_hand import by_an_answer
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
    memory, came, copies, waiting, alive = Memory(), Memory(), _Copies(), [0], [0]

    def arrived(parameter: torch.Tensor) -> None:
        if parameter.grad is not None:
            memory.add(parameter.grad)
        if parameter.dim():  # of one number's size is much that is no gradient
            copies.least = min(copies.least, parameter.nbytes)

    counters = [parameter.register_post_accumulate_grad_hook(arrived) for parameter in live]
    random = torch.get_rng_state()
    handles = answer(model, case.given["lr"])
    modes = torch.is_grad_enabled() and torch.equal(random, torch.get_rng_state())
    kinds, removable = _handles(handles)

    def count(grads: Any) -> None:
        waiting.append(sum(parameter.grad is not None for parameter in model.parameters()))
        alive.append(memory.alive() + copies.alive(model, grads))
        for gradient in grads:
            if gradient is not None:
                came.add(gradient)

    nodes = [get_gradient_edge(parameter).node for parameter in live]  # a parameter holds its node weakly
    counters += [node.register_prehook(count) for node in nodes]
    after: list[Observation] = []
    for batch in batches_of(case)[:2]:
        loss = loss_of(model, batch, case)
        copies.least = sys.maxsize
        with copies:
            loss.backward()
        if all(parameter.grad is None for parameter in live):
            alive.append(copies.alive(model) + came.alive())
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
    """What an answer makes in a pass, of as many bytes as a gradient that has arrived, in whatever shape."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.least = sys.maxsize  # bytes of the smallest parameter whose gradient has arrived
        self._made: dict[int, tuple[StorageWeakRef, int]] = {}

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        if by_an_answer():
            for storage in {tensor.untyped_storage() for tensor in tensors_in((result,))}:
                if storage.nbytes() >= self.least:
                    self._made[storage._cdata] = StorageWeakRef(storage), storage.data_ptr()
        return result

    def alive(self, model: torch.nn.Module, arriving: Iterable[torch.Tensor | None] = ()) -> int:
        """Return how many of them are still held by anything, a parameter's own memory and what arrives now apart."""
        tensors = [tensor for it in model.parameters() for tensor in (it, it.grad)]
        own = {tensor.untyped_storage().data_ptr() for tensor in (*tensors, *arriving) if tensor is not None}
        return sum(not held.expired() and place not in own for held, place in self._made.values())


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
