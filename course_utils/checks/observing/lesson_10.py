"""Observers for lesson 10."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from course_utils.checks.data import Case, Observation, plain
from course_utils.checks.observing import warm  # noqa: F401
from course_utils.checks.observing.functions_10 import (
    FUNCTIONS,
    Surroundings,
    after_a_write,
    attached,
    bytes_on_ctx,
    operations,
)
from course_utils.graph import saved
from course_utils.graph.alive import Memory, PeakMemory

Answer = Callable[..., Any]

INCOMING = "the incoming gradient"


def squash(answer: Answer, case: Case) -> Observation:
    base, direction, memory = case.given["x"].tensor().requires_grad_(), case.given["direction"].tensor(), Memory()
    x = base + 0
    if case.given["transposed"]:
        x = x.t()
    around = Surroundings({"x": x, INCOMING: direction})
    answer(direction)  # plain data: it stays plain
    memory.add(x)
    with PeakMemory() as made:
        y = answer(x)
    seen: Observation = {"returned": plain(y), "attached": attached(y, x)}
    if seen["attached"]:
        seen["operations"] = operations(y, x)
        gradient, second = _two_derivatives(answer(x), x, direction)
        seen |= {"gradient": gradient, "second": second}
        torch.autograd.grad(answer(x), x, direction, allow_unused=True)
        seen["changed"] = around.changed()
        del x, around
        own = y.untyped_storage().nbytes() if seen["operations"] else 0
        seen["kept"] = max(0, made.alive() - own) + memory.alive()
        torch.autograd.grad(y, base, direction, allow_unused=True)
        seen["attribute"] = _on_ctx(y)
    return seen


def clamp_inward(answer: Answer, case: Case) -> Observation:
    x, direction = case.given["x"].tensor().requires_grad_(), case.given["direction"].tensor()
    around, low, high = Surroundings({"x": x, INCOMING: direction}), case.given["low"], case.given["high"]
    y = answer(x, low, high)
    seen: Observation = {"returned": plain(y), "attached": attached(y, x)}
    answer(direction, low + 0.3, high + 0.3)  # a call of its own, that must not disturb the pass through the first
    if seen["attached"]:
        seen["operations"] = operations(y, x)
        (gradient,) = torch.autograd.grad(y, x, direction, allow_unused=True)
        seen["gradient"] = plain(gradient)
        seen["attribute"] = _on_ctx(y)
        seen["changed"] = around.changed()
    return seen


def swish(answer: Answer, case: Case) -> Observation:
    base, beta = case.given["x"].tensor().requires_grad_(), case.given["beta"].tensor()
    beta.requires_grad_(case.given["learned"])
    direction, memory = case.given["direction"].tensor(), Memory()
    x = base + 0
    around = Surroundings({"x": x, "beta": beta, INCOMING: direction})
    memory.add(x)
    y = answer(x, beta)
    seen: Observation = {"returned": plain(y), "attached": attached(y, x)}
    if seen["attached"]:
        seen["operations"] = operations(y, x, beta)
        wanted = [base, beta] if case.given["learned"] else [base]
        gradients = torch.autograd.grad(y, wanted, direction, allow_unused=True)
        seen["gradients"] = [plain(gradient) for gradient in gradients]
        seen["attribute"] = _on_ctx(y)
        seen["changed"] = around.changed()
        del x, around
        seen["kept"] = memory.alive()
        seen["written"] = []
        for n in (0, 1):
            given = (base + 0, beta + 0)
            seen["written"].append(after_a_write(given[n], answer(*given), wanted, direction))
    return seen


def agrees(answer: Answer, case: Case) -> Observation:
    function, x = FUNCTIONS[case.given["function"]], case.given["x"].tensor()
    if case.given["transposed"]:
        x = x.t().contiguous().t()
    around = Surroundings({"x": x}, may_draw=True)
    with _library_calls() as calls:
        returned = answer(function, x)
    return {"returned": plain(returned), "changed": around.changed(), "calls": len(calls)}


@contextmanager
def _library_calls() -> Iterator[list[str]]:
    """Collect calls of PyTorch's own gradcheck while the body runs, however it was imported."""
    calls: list[str] = []
    names: dict[str, Any] = torch.autograd.gradcheck.__globals__
    own = {name: names[name] for name in ("_check_inputs", "_get_numerical_jacobian")}

    def counted(name: str) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            calls.append(name)
            return own[name](*args, **options)

        return call

    names.update({name: counted(name) for name in own})
    try:
        yield calls
    finally:
        names.update(own)


def log_cosh(answer: Answer, case: Case) -> Observation:
    x, direction = case.given["x"].tensor().requires_grad_(), case.given["direction"].tensor()
    around = Surroundings({"x": x, INCOMING: direction})
    y = answer(x)
    seen: Observation = {"returned": plain(y), "attached": attached(y, x)}
    if seen["attached"]:
        seen["operations"] = operations(y, x)
        torch.autograd.grad(y, x, direction, retain_graph=True, allow_unused=True)
        seen["attribute"] = _on_ctx(y)
        derivatives: list[Any] = []
        while attached(y, x) and len(derivatives) < 3:
            (y,) = torch.autograd.grad(y, x, direction, create_graph=True, allow_unused=True)
            derivatives.append(plain(y))
        seen["derivatives"] = derivatives
        seen["changed"] = around.changed()
    return seen


def thrifty_linear(answer: Answer, case: Case) -> Observation:
    wanted = case.given["wanted"]
    leaves: dict[str, torch.Tensor] = {
        name: case.given[name].tensor() for name in ("x", "weight", "bias") if name in case.given
    }
    for name, leaf in leaves.items():
        leaf.requires_grad_(name in wanted)
    x, weight, memory = leaves["x"] + 0, leaves["weight"] + 0, {"x": Memory(), "weight": Memory()}
    memory["x"].add(x)
    memory["weight"].add(weight)
    direction = case.given["direction"].tensor().expand(*x.shape[:-1], len(weight))
    around = Surroundings({**leaves, INCOMING: direction})
    with Products() as forward:
        y = answer(x, weight, leaves.get("bias"))
    seen: Observation = {"returned": plain(y), "attached": attached(y, direction), "forward": forward.count}
    if seen["attached"]:
        given = (x, weight, leaves["bias"]) if "bias" in leaves else (x, weight)
        seen["operations"] = operations(y, *given)
        seen["attribute"] = _on_ctx(y)
        del given, x, weight
        seen["copied"] = max(0, forward.alive() - y.untyped_storage().nbytes())
        seen["kept"] = [name for name, watched in memory.items() if watched.alive()]
        with Products() as backward:
            gradients = torch.autograd.grad(y, [leaves[name] for name in wanted], direction, allow_unused=True)
        seen["gradients"] = [plain(gradient) for gradient in gradients]
        seen["backward"] = backward.count
        seen["held"] = [name for name, watched in memory.items() if watched.alive()]
        seen["changed"] = around.changed()
    return seen


class Products(PeakMemory):
    """Counts matrix products, however they are written, besides the memory of what is made."""

    NAMES = ("mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "linear", "matmul", "addr", "dot")

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += function.overloadpacket.__name__ in self.NAMES
        return super().__torch_dispatch__(function, types, args, kwargs)


def seeded_dropout(answer: Answer, case: Case) -> Observation:
    base, direction = case.given["x"].tensor().requires_grad_(), case.given["direction"].tensor()
    p, seed, memory = case.given["p"], case.given["seed"], Memory()
    x = base + 0
    around = Surroundings({"x": x, INCOMING: direction}, may_draw=True)
    memory.add(x)
    state = torch.get_rng_state()
    with PeakMemory() as made:
        y = answer(x, p, seed)
        seen: Observation = {"returned": plain(y), "attached": attached(y, x), "again": plain(answer(x, p, seed))}
        seen["others"] = [plain(answer(x, p, seed + more)) for more in (1, 2, 1024)]
    answer(x[:3], p / 2, seed)  # a call of its own, that must not disturb the passes through the first
    if seen["attached"]:
        seen["operations"] = operations(y, x)
        passes = [torch.autograd.grad(y, base, direction, retain_graph=True, allow_unused=True) for _ in range(2)]
        seen["gradients"] = [plain(gradient) for (gradient,) in passes]
        seen["changed"] = around.changed()
        total = y.sum()  # it keeps the graph, and not the result
        del x, y, passes, around
        seen["kept"] = max(made.alive(), saved.saved(total).bytes) + memory.alive() + bytes_on_ctx(total)
    seen["generator"] = bool(torch.equal(torch.get_rng_state(), state))
    return seen


def _two_derivatives(y: Any, x: torch.Tensor, direction: torch.Tensor) -> list[Any]:
    """Return the gradient of y and that of the gradient, as plain data."""
    if not attached(y, x):
        return [None, None]
    (first,) = torch.autograd.grad(y, x, direction, create_graph=True, allow_unused=True)
    if not attached(first, x):
        return [plain(first), None]
    (second,) = torch.autograd.grad(first, x, direction, allow_unused=True)
    return [plain(first), plain(second)]


def _on_ctx(y: torch.Tensor) -> bool:
    """Return whether tensors hang on a ctx, where no pass frees them."""
    return any(entry.state == "attribute" for entry in saved.saved(y))
