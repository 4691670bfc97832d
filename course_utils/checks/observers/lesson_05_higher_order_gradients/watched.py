"""Functions that count how often, and in which graph mode, they are called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from course_utils.checks.data import Answer, Observation
from course_utils.checks.observers import telling
from course_utils.checks.observers.lesson_05_higher_order_gradients.results import state, touched
from course_utils.checks.observers.lesson_05_higher_order_gradients.surroundings import facts_about
from course_utils.checks.observers.passes import every_pass
from course_utils.checks.observers.runs import notice
from course_utils.checks.observers.traces import changes


def batched(tensor: Any) -> bool:
    """Return whether a tensor stands for several at once, inside vmap."""
    functorch = torch._C._functorch
    while isinstance(tensor, torch.Tensor) and functorch.is_functorch_wrapped_tensor(tensor):
        if functorch.is_batchedtensor(tensor):
            return True
        tensor = functorch.get_unwrapped(tensor)
    return False


def tried_on(
    answer: Answer, function: Callable[[torch.Tensor], torch.Tensor], *given: Any, earlier: tuple[Any, ...] = ()
) -> tuple[Any, Observation]:
    """Call an answer with a function and what else is given. Return its result, and what was seen of the function.

    A function that is a module stays one, so that an answer can do to it what it could do to a layer. With `earlier`
    arguments it was called once before: what an answer remembers of a function then belongs to another point.
    """
    points: list[bool] = []  # whether each was several points at once
    asked: Callable[[torch.Tensor], torch.Tensor] = function
    counted = False
    module = function if isinstance(function, nn.Module) else None
    parameters = list(module.parameters()) if module is not None else []
    before, facts = [state(parameter) for parameter in parameters], facts_about(module)
    left: list[str] = []
    if module is not None:
        if earlier:
            answer(module, *earlier)
            left = changes(facts, facts_about(module))
        notice(module, lambda part, inputs, result: points.append(any(map(batched, inputs))), name="calls")
        facts = facts_about(module)
    else:

        def asked(point: torch.Tensor) -> torch.Tensor:
            points.append(batched(point))
            if counted:
                telling.tell("calls")
            return function(point)

        if earlier:
            answer(asked, *earlier)
            points.clear()
    counted = True
    with every_pass() as passes:
        returned = answer(asked, *given)
    left += changes(facts, facts_about(module))
    return returned, {
        "calls": len(points),
        "batched": any(points),
        "passes": len(passes),
        "recorded passes": sum(it.recorded for it in passes),
        "own parameter": touched(before, parameters),
        "left": list(dict.fromkeys(what.replace("the model", "f") for what in left)),
    }
