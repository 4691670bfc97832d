"""Running an answer to `seeded_dropout`."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import torch
from torch.autograd.function import FunctionCtx

from course_utils.checks.data import Answer, Array, Case, Observation, plain
from course_utils.checks.observers.lesson_10_custom_functions.nodes import attached, operations
from course_utils.checks.observers.lesson_10_custom_functions.surroundings import INCOMING, Surroundings, unrecorded
from course_utils.checks.observers.made import Made
from course_utils.graph import saved
from course_utils.graph.alive import Memory


def bytes_on_ctx(total: torch.Tensor) -> int:
    """Return about how many bytes hang on ctx in numbers, texts and containers, for a sum of a Function's result."""
    node = total.grad_fn.next_functions[0][0] if total.grad_fn is not None else None
    return _size(list(vars(node).values())) if isinstance(node, FunctionCtx) else 0


def _size(value: Any) -> int:
    total, rest = 0, [value]
    for item in rest:
        total += sys.getsizeof(item) if type(item) in (bytes, bytearray, int, float, str, list, tuple) else 0
        total += item.nbytes if type(item) is np.ndarray else 0
        if type(item) in (list, tuple, set):
            rest += item
        elif type(item) is dict:
            rest += [*item, *item.values()]
        if len(rest) > 10_000:
            break
    return total


def _turned(tensor: torch.Tensor) -> torch.Tensor:
    """Return the same numbers in another order in memory."""
    return tensor.transpose(0, -1).contiguous().transpose(0, -1) if tensor.is_contiguous() else tensor.contiguous()


def observe(answer: Answer, case: Case) -> Observation:
    base, direction = case.given["x"].tensor().requires_grad_(), case.given["direction"].tensor()
    p, seed, memory = case.given["p"], case.given["seed"], Memory()
    x = base + 0
    if case.given["transposed"]:  # the same numbers, in another order in memory
        x = _turned(base)
    around = Surroundings({"x": x, INCOMING: direction}, may_draw=True)
    memory.add(x)
    state = torch.get_rng_state()
    with Made() as made:
        y = answer(x, p, seed)
        seen: Observation = {
            "returned": plain(y),
            "attached": attached(y, x),
            "again": plain(answer(_turned(x), p, seed)),
        }
        seen["others"] = [plain(answer(x, p, seed + more)) for more in (1, 2, 1024, 65536)]
        rare = plain(answer(x, case.given["rare"], seed + 3))
        seen["rare"] = not isinstance(rare, Array) or int((rare.tensor() == 0).sum())
        seen["ends"] = [plain(answer(x, p, end)) for end in case.given["ends"]]
        seen["far"] = [plain(answer(x[:2], p, seed + more)) for more in case.given["further"]]
        none = answer(x, 0.0, seed)
        seen["none"] = {"returned": plain(none), "attached": attached(none, x)}
        if seen["none"]["attached"]:
            seen["none"]["operations"] = operations(none, x)
        late = answer(x, p, case.given["ends"][-2])
        if attached(late, x):
            seen["late returned"] = plain(late)
            seen["late"] = plain(torch.autograd.grad(late, base, direction, allow_unused=True)[0])
        del none, late
    if not case.given["transposed"]:
        coarse = plain(answer(torch.ones(case.given["many"], dtype=torch.bfloat16), case.given["very rare"], seed))
        seen["coarse"] = int((coarse.tensor() == 0).sum()) if isinstance(coarse, Array) else None
    unrecorded_changes = unrecorded(answer, x[:3], p / 2, seed + 1)  # must not disturb the first
    if seen["attached"]:
        seen["operations"] = operations(y, x)
        come_in = (direction, _turned(direction))  # the same numbers, in another order in memory
        passes = [torch.autograd.grad(y, base, it, retain_graph=True, allow_unused=True) for it in come_in]
        seen["gradients"] = [plain(gradient) for (gradient,) in passes]
        seen["changed"] = around.changed() + unrecorded_changes
        total = y.sum()  # it keeps the graph, and not the result
        del x, y, passes, around, come_in
        seen["kept"] = max(made.alive(), saved.saved(total).bytes) + memory.alive() + bytes_on_ctx(total)
    seen["generator"] = bool(torch.equal(torch.get_rng_state(), state))
    return seen
