"""Observers for lesson 02."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn
from torch.autograd.forward_ad import unpack_dual

from course_utils.checks.data import Array, Case, Observation, Other, Value, plain, type_name
from course_utils.checks.observing.models import numbers, seeded
from course_utils.checks.observing.scenes import SCENES
from course_utils.checks.observing.watch import engine_passes
from course_utils.graph.saved import saved
from course_utils.graph.trace import nodes_behind

Answer = Callable[..., Any]


def vjp_product(answer: Answer, case: Case) -> Observation:
    return _on_tensors(answer, case, "a", "b", "v")


def vjp_matmul(answer: Answer, case: Case) -> Observation:
    return _on_tensors(answer, case, "a", "b", "v")


def vjp_softmax(answer: Answer, case: Case) -> Observation:
    y, v = _laid_out(case.given["y"], case), _laid_out(case.given["v"], case)
    returned = plain(answer(y, v, case.given["dim"]))
    return {"returned": returned, **_left({"y": y, "v": v}, case)}


def numerical_gradient(answer: Answer, case: Case) -> Observation:
    x = _laid_out(case.given["x"], case)
    inner = FUNCTIONS[case.given["function"]]
    dtypes: list[str] = []
    points: list[Value] = []
    recorded = False

    def f(point: torch.Tensor) -> torch.Tensor:
        nonlocal recorded
        if isinstance(point, torch.Tensor):
            recorded = recorded or _differentiated(point)
            dtypes.append(str(point.dtype).removeprefix("torch."))
            points.append(_copied(point))
        return inner(point)

    returned = plain(answer(f, x))
    return {
        "returned": returned,
        "dtypes": dtypes,
        "points": points[:200],
        "recorded": recorded,
        **_left({"x": x}, case),
    }


def parameter_gradients(answer: Answer, case: Case) -> Observation:
    model, loss = two_branches(case.given["seed"])
    parameters = dict(model.named_parameters())
    for name in case.given["held"]:
        parameters[name].grad = numbers(len(name), *parameters[name].shape)
    before = {name: plain(parameter.grad) for name, parameter in parameters.items()}
    values = {name: plain(parameter) for name, parameter in parameters.items()}
    requiring = {name: parameter.requires_grad for name, parameter in parameters.items()}
    training = model.training
    with engine_passes(loss) as passes:
        returned = answer(loss, model)
    recorded = [name for name, value in _items(returned) if type(value) is torch.Tensor and value.requires_grad]
    return {
        "returned": plain(dict(_items(returned)) if _is_dict(returned) else returned),
        "recorded": recorded,
        "passes": len(passes),
        "kept": sum(entry.state == "held" for entry in saved(loss)),
        "before": before,
        "after": {name: plain(parameter.grad) for name, parameter in parameters.items()},
        "moved": [name for name, parameter in parameters.items() if plain(parameter) != values[name]],
        "unfrozen": [name for name, was in requiring.items() if parameters[name].requires_grad and not was],
        "frozen": [name for name, was in requiring.items() if was and not parameters[name].requires_grad],
        "mode": any(module.training != training for module in model.modules()),
    }


def jacobian(answer: Answer, case: Case) -> Observation:
    x = _laid_out(case.given["x"], case).requires_grad_(case.given["requires_grad"])
    if case.given["held"]:
        x.grad = torch.full_like(x, 7.0)
    inner = MAPS[case.given["function"]]
    calls = 0

    def f(point: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return inner(point)

    returned = plain(answer(f, x))
    return {"returned": returned, "calls": calls, "grad": plain(x.grad), **_left({"x": x}, case)}


def run_order(answer: Answer, case: Case) -> Observation:
    scene = SCENES[case.given["scene"]](case.given["seed"])
    nodes = nodes_behind(scene.loss)
    number = {id(node): index for index, node in enumerate(nodes)}
    with engine_passes(*nodes) as passes:
        returned = answer(scene.loss)
    if type(returned) not in (list, tuple):
        return {"returned": plain(returned), "passes": len(passes)}
    order = [number.get(id(item), type_name(item)) for item in returned[: 2 * len(nodes) + 2]]
    return {"order": order, "passes": len(passes)}


def backward_engine(answer: Answer, case: Case) -> Observation:
    scene = SCENES[case.given["scene"]](case.given["seed"])
    nodes = nodes_behind(scene.loss)
    for position, leaf in enumerate(scene.leaves.values()):
        if position % 2:  # some hold a gradient from before, some hold none
            leaf.grad = torch.full_like(leaf, 7.0)
    before = {name: plain(leaf.grad) for name, leaf in scene.leaves.items()}
    with engine_passes(*nodes) as passes:
        returned = answer(scene.loss)
    name_of = {id(leaf): name for name, leaf in scene.leaves.items()}
    items = _items(returned)
    return {
        "returned": Other("dict") if _is_dict(returned) else plain(returned),
        "gradients": {name_of[id(key)]: plain(value) for key, value in items if id(key) in name_of},
        "recorded": [
            name_of[id(key)]
            for key, value in items
            if id(key) in name_of and type(value) is torch.Tensor and value.requires_grad
        ],
        "strangers": [type_name(key) for key, _ in items if id(key) not in name_of],
        "passes": len(passes),
        "before": before,
        "after": {name: plain(leaf.grad) for name, leaf in scene.leaves.items()},
        "arrived": [Array.of(gradient) for gradient in scene.arrived[:5]],
        "runs": len(scene.arrived),
    }


class TwoBranches(nn.Module):
    """A trunk with a head that is used, one that is not, and a layer that is frozen."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Linear(3, 5)
        self.frozen = nn.Linear(5, 4).requires_grad_(False)
        self.head = nn.Linear(4, 2)
        self.spare = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.head(self.frozen(self.trunk(x).tanh()).sin())
        return result


def two_branches(seed: int) -> tuple[nn.Module, torch.Tensor]:
    """Return the model and its loss on a batch."""
    model = seeded(TwoBranches(), seed)
    loss: torch.Tensor = model(numbers(seed + 1, 6, 3)).square().mean()
    return model, loss


def _constants(*shape: int) -> Callable[[torch.Tensor], torch.Tensor]:
    values = numbers(41, *shape, dtype=torch.float64)
    return lambda x: values.to(x.dtype)


_WEIGHTS = _constants(2, 3)
_MIXER = _constants(4, 6)

# Scalar functions for numerical_gradient. The quadratic parts are large: one-sided differences are off by them.
FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a bowl": lambda x: (8 * x.square()).sum() + x.prod(),
    "weights and a sine": lambda x: (9 * _WEIGHTS(x) * x.square()).sum() + x.sin().sum(),
    "one number": lambda x: 12 * x * x + x.exp(),
}

# Functions from tensors to tensors for jacobian.
MAPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a vector to a longer one": lambda x: torch.cat([x.sin(), x[:2] * x[-1]]),
    "a vector to one number": lambda x: (x * x.sin()).sum(),
    "a matrix to a vector": lambda x: (_MIXER(x) @ x.reshape(-1)).tanh(),
    "a matrix to a transposed one": lambda x: (x.softmax(1) * x.sum(0)).T,
    "one number to a matrix": lambda x: x * _WEIGHTS(x) + x.square(),
    "a constant row": lambda x: torch.stack([x.prod(), torch.ones_like(x[0]), x.square().sum()]),
}


def _on_tensors(answer: Answer, case: Case, *names: str) -> Observation:
    tensors = {name: _laid_out(case.given[name], case) for name in names}
    returned = plain(answer(*tensors.values()))
    return {"returned": returned, **_left(tensors, case)}


def _laid_out(array: Array, case: Case) -> torch.Tensor:
    """Return the tensor, as a view that is not contiguous where the case asks for one."""
    tensor = array.tensor()
    if case.given.get("transposed"):
        return tensor.mT.contiguous().mT
    if not case.given.get("strided"):
        return tensor
    spaced = torch.full((*tensor.shape, 2), 99.0, dtype=tensor.dtype)
    spaced[..., 0] = tensor
    return spaced[..., 0]


def _left(tensors: dict[str, torch.Tensor], case: Case) -> Observation:
    """Name the tensors that no longer hold the numbers they were given with, and those that require grad."""
    return {
        "changed": [name for name, tensor in tensors.items() if plain(tensor) != case.given[name]],
        "requiring": [name for name, tensor in tensors.items() if tensor.requires_grad],
    }


def _differentiated(point: torch.Tensor) -> bool:
    """Tell whether autograd follows this tensor, in any of its modes."""
    if torch._C._functorch.is_functorch_wrapped_tensor(point):
        return not torch._C._functorch.is_batchedtensor(point)
    return point.requires_grad or unpack_dual(point).tangent is not None


def _copied(tensor: torch.Tensor) -> Value:
    """Return a tensor's numbers, or its type where it has none of its own, as inside torch.func.grad."""
    try:
        return plain(tensor)
    except RuntimeError:
        return Other(type_name(tensor))


def _is_dict(returned: object) -> bool:
    return type(returned) in (dict, defaultdict, OrderedDict)


def _items(returned: Any) -> Iterable[tuple[Any, Any]]:
    return list(dict.items(returned)) if _is_dict(returned) else []
