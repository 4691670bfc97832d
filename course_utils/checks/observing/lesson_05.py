"""Observers for lesson 05."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from course_utils.checks.data import Case, Observation, Value, plain
from course_utils.checks.observing import warm  # noqa: F401
from course_utils.checks.observing.left_05 import batched, changed, facts_about
from course_utils.checks.observing.scenes_05 import (
    LOSSES,
    Weighted,
    adaptable,
    critic_of,
    doubles,
    elementwise,
    parameters_of,
    regularised,
    scalar,
)
from course_utils.graph.alive import Graphs

Answer = Callable[..., Any]


def nth_derivative(answer: Answer, case: Case) -> Observation:
    x = _point(case)
    watched, before = _Watched(elementwise(case.given["function"])), facts_about(x=x)
    with watched:
        returned = answer(watched, x, case.given["n"])
    return {**_result(returned), **watched.seen(), **_left({"x": x}, case, before)}


def hvp(answer: Answer, case: Case) -> Observation:
    x = _point(case)
    v = case.given["v"].tensor()
    if v.dim() == 2:
        v = v.mT.contiguous().mT
    watched, before = _Watched(scalar(case.given["function"])), facts_about(x=x, v=v)
    with watched, _Largest() as largest:
        returned = answer(watched, x, v)
    left = _left({"x": x, "v": v}, case, before)
    return {**_result(returned), **watched.seen(), **left, "largest": largest.numel}


def loss_hessian(answer: Answer, case: Case) -> Observation:
    parameters = parameters_of(case)
    for number, parameter in enumerate(parameters):
        if number % 2:  # some hold a gradient from before, some hold none
            parameter.grad = torch.full_like(parameter, 7.0)
    before = [_state(parameter) for parameter in parameters]
    loss = LOSSES[case.given["loss"]][1](parameters)
    named = {"loss": loss} | {f"parameter {number}": parameter for number, parameter in enumerate(parameters)}
    traced = facts_about(None, **named)
    with _passes(loss, *parameters) as passes:
        returned = answer(loss, list(parameters))
    untouched = [_state(parameter) for parameter in parameters] == before
    left = changed(traced, None, **named)
    return {**_result(returned), "passes": len(passes), "untouched": untouched, "left": left}


def penalised_step(answer: Answer, case: Case) -> Observation:
    model, optimizer, batches = regularised(case)
    graphs, alive, totals = Graphs(), [], []
    runs: list[None] = []
    steps: list[None] = []

    def forward(module: nn.Module, given: Any, result: torch.Tensor) -> None:
        runs.append(None)
        graphs.add(result)

    model.register_forward_hook(forward)
    optimizer.register_step_pre_hook(lambda *given: steps.append(None))
    parameters, before = list(model.parameters()), facts_about(model)
    for inputs, targets in batches:
        totals.append(plain(answer(model, optimizer, inputs, targets, case.given["weight"])))
        alive.append(graphs.alive())
    kept = any(parameter.grad is not None and parameter.grad.requires_grad for parameter in parameters)
    return {
        "totals": totals,
        "alive": alive,
        "forwards": len(runs),
        "steps": len(steps),
        "recorded grad": kept,
        "parameters": [plain(parameter) for parameter in parameters],
        "left": changed(before, model),
    }


def gradient_penalty(answer: Answer, case: Case) -> Observation:
    critic = critic_of(case)
    maker = torch.ones((), dtype=torch.float64, requires_grad=True)  # stands for the generator
    real, fake, mix = (case.given[name].tensor() for name in ("real", "fake", "mix"))
    made = fake * maker
    tensors = {"real": real, "fake": made, "mix": mix}
    parameters = list(critic.parameters())
    parameters[0].grad = torch.full_like(parameters[0], 7.0)
    before = [_state(parameter) for parameter in parameters]
    learning = [parameter for parameter in parameters if parameter.requires_grad]
    calls: list[None] = []
    critic.register_forward_pre_hook(lambda module, given: calls.append(None))
    traced = facts_about(critic)
    returned = answer(critic, real, made, mix)
    left = changed(traced, critic)
    seen: Observation = {
        **_result(returned),
        "calls": len(calls),
        "untouched": [_state(parameter) for parameter in parameters] == before,
        "left": left,
        "maker": maker.grad is not None,
        "changed": [name for name, tensor in tensors.items() if plain(tensor) != case.given[name]],
        "requiring": [name for name in ("real", "mix") if tensors[name].requires_grad],
        "held": [name for name, tensor in tensors.items() if tensor.is_leaf and tensor.grad is not None],
        "gradients": None,
    }
    if seen["recorded"] and returned.numel() == 1:
        try:
            gradients = torch.autograd.grad(returned, [maker, *learning], torch.ones_like(returned), allow_unused=True)
        except RuntimeError as error:
            seen["gradients"] = str(error)
        else:
            seen["maker"] = seen["maker"] or gradients[0] is not None
            seen["gradients"] = [plain(gradient) for gradient in gradients[1:]]
    return seen


def meta_gradient(answer: Answer, case: Case) -> Observation:
    model = adaptable(case)
    parameters = dict(model.named_parameters())
    model.get_parameter("last.bias").grad = doubles(3, 1)
    before = {name: _state(parameter) for name, parameter in parameters.items()}
    support, query = (
        (case.given[f"{part} inputs"].tensor(), case.given[f"{part} targets"].tensor()) for part in ("support", "query")
    )
    runs: list[bool] = []  # whether each was for several sets of parameters at once

    def forward(module: nn.Module, given: Any) -> None:
        runs.append(any(batched(parameter) for parameter in module.parameters()))

    model.register_forward_pre_hook(forward)
    traced = facts_about(model)
    returned = answer(model, support, query, case.given["lr"], case.given["steps"])
    left = changed(traced, model)
    entries = dict(dict.items(returned)) if type(returned) in (dict, OrderedDict) else {}
    now = dict(model.named_parameters())
    return {
        "returned": plain(entries or returned),
        "recorded": any(_recorded(value) for value in entries.values()),
        "moved": [
            name
            for name, parameter in parameters.items()
            if now.get(name) is not parameter or plain(parameter) != before[name][0]
        ],
        "graded": [name for name, parameter in parameters.items() if plain(parameter.grad) != before[name][1]],
        "switched": [name for name, parameter in parameters.items() if parameter.requires_grad != before[name][2]],
        "left": left,
        "runs": len(runs),
        "batched": any(runs),
    }


class _Watched:
    """A function that counts its calls, and the backward passes that arrive at the points it was called with."""

    def __init__(self, function: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self._function = function
        self._calls = 0
        self._batched = False
        self._passes: set[int] = set()
        self._handles: list[Any] = []

    def __call__(self, point: torch.Tensor) -> torch.Tensor:
        self._calls += 1
        self._batched = self._batched or batched(point)
        ordinary = isinstance(point, torch.Tensor) and not torch._C._functorch.is_functorch_wrapped_tensor(point)
        if ordinary and point.requires_grad:
            self._handles.append(point.register_hook(_counter(self._passes)))
        return self._function(point)

    def __enter__(self) -> _Watched:
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()

    def seen(self) -> Observation:
        own = not isinstance(self._function, Weighted) or self._function.weight.grad is None
        return {"calls": self._calls, "batched": self._batched, "passes": len(self._passes), "own parameter": own}


@contextmanager
def _passes(*tensors: torch.Tensor) -> Iterator[set[int]]:
    """Collect the ids of the backward passes that arrive at any of the tensors."""
    passes: set[int] = set()
    handles = [tensor.register_hook(_counter(passes)) for tensor in tensors]
    try:
        yield passes
    finally:
        for handle in handles:
            handle.remove()


def _counter(passes: set[int]) -> Callable[[torch.Tensor], None]:
    return lambda gradient: passes.add(torch._C._current_graph_task_id())


class _Largest(TorchDispatchMode):
    """The size of the largest tensor that was made in the body."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.numel = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, list | tuple) else (result,):
            if isinstance(tensor, torch.Tensor):
                self.numel = max(self.numel, tensor.numel())
        return result


def _point(case: Case) -> torch.Tensor:
    """Return x, not contiguous where it is a matrix, as a leaf with an old gradient where the case asks for one."""
    x = case.given["x"].tensor()
    if x.dim() == 2:
        x = x.mT.contiguous().mT
    if case.given["requires_grad"]:
        x.requires_grad_()
        x.grad = torch.full_like(x, 7.0)
    result: torch.Tensor = x
    return result


def _result(returned: Any) -> Observation:
    return {"returned": plain(returned), "recorded": _recorded(returned)}


def _recorded(value: Any) -> bool:
    return type(value) in (torch.Tensor, nn.Parameter) and value.requires_grad


def _left(tensors: dict[str, torch.Tensor], case: Case, before: dict[str, Any]) -> Observation:
    """Say what of the given tensors, and of `before`, is no longer as it was."""
    right = case.given["requires_grad"]
    held = {name: right and name == "x" for name in tensors}
    return {
        "changed": [name for name, tensor in tensors.items() if plain(tensor) != case.given[name]],
        "requiring": [name for name, tensor in tensors.items() if tensor.requires_grad != held[name]],
        "graded": [name for name, tensor in tensors.items() if not _grad_is(tensor, 7.0 if held[name] else None)],
        "left": changed(before, None, **tensors),
    }


def _grad_is(tensor: torch.Tensor, number: float | None) -> bool:
    if tensor.grad is None or number is None:
        return tensor.grad is None and number is None
    return bool((tensor.grad == number).all())


def _state(parameter: torch.Tensor) -> tuple[Value, Value, bool]:
    """Return a parameter's numbers, its gradient, and whether it requires one."""
    return plain(parameter), plain(parameter.grad), parameter.requires_grad


# Forward mode and dispatch modes import more of PyTorch when they are first used. That takes seconds, and the files
# are out of reach inside a sandbox, so it is done here, before any answer runs.
with warnings.catch_warnings(), _Largest():
    warnings.simplefilter("ignore")
    torch.func.jvp(torch.sin, (torch.ones(1),), (torch.ones(1),))
