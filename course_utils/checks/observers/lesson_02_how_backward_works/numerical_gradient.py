"""Running an answer to `numerical_gradient`."""

from __future__ import annotations

import torch
from torch.autograd.forward_ad import unpack_dual

from course_utils.checks.data import Answer, Case, Observation, Other, Value, plain, type_name
from course_utils.checks.observers.lesson_02_how_backward_works.tensors import laid_out, left
from course_utils.checks.scenes.lesson_02_how_backward_works.numerical_gradient import FUNCTIONS


def observe(answer: Answer, case: Case) -> Observation:
    x = laid_out(case, "x")
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
            if point.shape != x.shape:
                raise ValueError(f"f was given a tensor of shape {tuple(point.shape)}; x has shape {tuple(x.shape)}")
        return inner(point)

    returned = plain(answer(f, x))
    return {
        "returned": returned,
        "dtypes": dtypes,
        "points": points[:200],
        "recorded": recorded,
        **left({"x": x}, case),
    }


def _differentiated(point: torch.Tensor) -> bool:
    """Tell whether autograd follows this tensor, in any of its modes."""
    if torch._C._functorch.is_functorch_wrapped_tensor(point):
        return not torch._C._functorch.is_batchedtensor(point)
    # By the base's own descriptor: a class of the answer's may say otherwise.
    requires_grad: bool = torch.Tensor.requires_grad.__get__(point)  # type: ignore[attr-defined]
    return requires_grad or unpack_dual(point).tangent is not None


def _copied(tensor: torch.Tensor) -> Value:
    """Return a tensor's numbers, or its type where it has none of its own, as inside torch.func.grad."""
    try:
        return plain(tensor)
    except RuntimeError:
        return Other(type_name(tensor))
