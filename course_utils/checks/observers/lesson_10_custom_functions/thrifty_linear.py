"""Running an answer to `thrifty_linear`."""

from __future__ import annotations

from typing import Any

import torch

from course_utils.checks.data import Answer, Case, Observation, plain
from course_utils.checks.observers.lesson_10_custom_functions.nodes import attached, keeps_itself, on_ctx, operations
from course_utils.checks.observers.lesson_10_custom_functions.surroundings import INCOMING, Surroundings, unrecorded
from course_utils.checks.observers.operations import is_product
from course_utils.graph.alive import Memory, PeakMemory, tensors_in


def observe(answer: Answer, case: Case) -> Observation:
    wanted = case.given["wanted"]
    leaves: dict[str, torch.Tensor] = {
        name: case.given[name].tensor() for name in ("x", "weight", "bias") if name in case.given
    }
    for name, leaf in leaves.items():
        leaf.requires_grad_(name in wanted)
    x, weight, bias = leaves["x"] + 0, leaves["weight"] + 0, leaves["bias"] + 0 if "bias" in leaves else None
    if case.given["turned"]:  # the same numbers, in another order in memory
        x = leaves["x"].transpose(0, 1).contiguous().transpose(0, 1)
    memory = {"x": Memory(), "weight": Memory(), "bias": Memory()}
    for name, tensor in zip(memory, (x, weight, bias), strict=True):
        if tensor is not None:
            memory[name].add(tensor)
    names = ["x", "weight", "bias" if "bias" in leaves else None]
    direction = case.given["direction"].tensor().expand(*x.shape[:-1], len(weight))
    around = Surroundings({**leaves, INCOMING: direction})
    three = [leaves["x"], leaves["weight"], leaves.get("bias", torch.zeros(len(weight), dtype=x.dtype))]
    with Products() as forward:
        y = answer(x, weight, bias)
    seen: Observation = {"returned": plain(y), "attached": attached(y, direction), "forward": forward.count}
    seen["spread"] = forward.spread
    if seen["attached"]:
        given = [tensor for tensor in (x, weight, bias) if tensor is not None]
        seen["operations"] = operations(y, *given)
        seen["attribute"] = on_ctx(y)
        seen["result kept"] = keeps_itself(y)
        del given, x, weight, bias, tensor
        seen["copied"] = max(0, forward.alive() - y.untyped_storage().nbytes())
        seen["kept"] = [name for name, watched in memory.items() if watched.alive()]
        others = [None if it is None else case.given[it].tensor().requires_grad_(it not in wanted) for it in names]
        answer(*others)  # with other wants: not to change those of the first
        with Products() as backward:
            gradients = torch.autograd.grad(y, [leaves[name] for name in wanted], direction, allow_unused=True)
        seen["gradients"] = [plain(gradient) for gradient in gradients]
        seen["backward"] = backward.count
        seen["spread"] += backward.spread
        seen["held"] = [name for name, watched in memory.items() if watched.alive()]
        seen["changed"] = around.changed() + unrecorded(answer, *three)
    return seen


class Products(PeakMemory):
    """Counts matrix products, whatever they are called, besides the memory of what is made.

    Products number by number that do such a one's work are counted apart, as `spread`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.count = self.spread = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = super().__torch_dispatch__(function, types, args, kwargs)
        if is_product(function, list(tensors_in((args, kwargs))), list(tensors_in((result,)))):
            self.count += torch.Tag.pointwise not in function.tags
            self.spread += function.overloadpacket.__name__.startswith(("mul", "addcmul"))
        return result
