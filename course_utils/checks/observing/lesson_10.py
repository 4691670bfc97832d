"""Observers for lesson 10."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch._dynamo  # the first operation under a dispatch mode imports it, and a second is too long for a time limit

from course_utils.checks.data import Array, Case, Observation, plain
from course_utils.checks.observing.functions_10 import FUNCTIONS, attached, bytes_on_ctx, operations
from course_utils.graph import saved
from course_utils.graph.alive import Memory, PeakMemory

Answer = Callable[..., Any]


def squash(answer: Answer, case: Case) -> Observation:
    base, direction, memory = case.given["x"].tensor().requires_grad_(), case.given["direction"].tensor(), Memory()
    x = base + 0
    if case.given["transposed"]:
        x = x.t()
    before = Array.of(x)
    memory.add(x)
    with PeakMemory() as made:
        y = answer(x)
    seen: Observation = {"returned": plain(y), "x": Array.of(x) == before, "attached": attached(y, x)}
    if seen["attached"]:
        seen["operations"] = operations(y, x)
        gradient, second = _two_derivatives(answer(x), x, direction)
        seen |= {"gradient": gradient, "second": second}
        del x
        own = y.untyped_storage().nbytes() if seen["operations"] else 0
        seen["kept"] = max(0, made.alive() - own) + memory.alive()
        torch.autograd.grad(y, base, direction, allow_unused=True)
        seen["attribute"] = _on_ctx(y)
    return seen


def clamp_inward(answer: Answer, case: Case) -> Observation:
    x, direction = case.given["x"].tensor().requires_grad_(), case.given["direction"].tensor()
    before = Array.of(x)
    y = answer(x, case.given["low"], case.given["high"])
    seen: Observation = {"returned": plain(y), "x": Array.of(x) == before, "attached": attached(y, x)}
    if seen["attached"]:
        seen["operations"] = operations(y, x)
        (gradient,) = torch.autograd.grad(y, x, direction, allow_unused=True)
        seen["gradient"] = plain(gradient)
    return seen


def swish(answer: Answer, case: Case) -> Observation:
    base, beta = case.given["x"].tensor().requires_grad_(), case.given["beta"].tensor()
    beta.requires_grad_(case.given["learned"])
    direction, memory = case.given["direction"].tensor(), Memory()
    x = base + 0
    memory.add(x)
    y = answer(x, beta)
    seen: Observation = {"returned": plain(y), "attached": attached(y, x)}
    if seen["attached"]:
        seen["operations"] = operations(y, x, beta)
        wanted = [base, beta] if case.given["learned"] else [base]
        gradients = torch.autograd.grad(y, wanted, direction, allow_unused=True)
        seen["gradients"] = [plain(gradient) for gradient in gradients]
        seen["attribute"] = _on_ctx(y)
        seen["noticed"] = _notices(answer(x, beta), base, direction, lambda: x.detach().add_(1))
        if case.given["learned"]:
            seen["noticed"] &= _notices(answer(x, beta), beta, direction, lambda: beta.detach().add_(1))
        del x
        seen["kept"] = memory.alive()
    return seen


def agrees(answer: Answer, case: Case) -> Observation:
    function, x = FUNCTIONS[case.given["function"]], case.given["x"].tensor()
    if case.given["transposed"]:
        x = x.t().contiguous().t()
    before = Array.of(x)
    with _library_calls() as calls:
        returned = answer(function, x)
    untouched = Array.of(x) == before and not x.requires_grad and x.grad is None
    return {"returned": plain(returned), "untouched": untouched, "calls": len(calls)}


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
    y = answer(x)
    seen: Observation = {"returned": plain(y), "attached": attached(y, x)}
    if seen["attached"]:
        seen["operations"] = operations(y, x)
        derivatives: list[Any] = []
        while attached(y, x) and len(derivatives) < 3:
            (y,) = torch.autograd.grad(y, x, direction, create_graph=True, allow_unused=True)
            derivatives.append(plain(y))
        seen["derivatives"] = derivatives
    return seen


def thrifty_linear(answer: Answer, case: Case) -> Observation:
    wanted = case.given["wanted"]
    leaves = {name: case.given[name].tensor() for name in ("x", "weight", "bias") if name in case.given}
    for name, leaf in leaves.items():
        leaf.requires_grad_(name in wanted)
    x, weight, memory = leaves["x"] + 0, leaves["weight"] + 0, {"x": Memory(), "weight": Memory()}
    memory["x"].add(x)
    memory["weight"].add(weight)
    direction = case.given["direction"].tensor()
    with Products() as forward:
        y = answer(x, weight, leaves.get("bias"))
    seen: Observation = {"returned": plain(y), "attached": attached(y, direction), "forward": forward.count}
    if seen["attached"]:
        given = (x, weight, leaves["bias"]) if "bias" in leaves else (x, weight)
        seen["operations"] = operations(y, *given)
        del given, x, weight
        seen["copied"] = max(0, forward.alive() - y.untyped_storage().nbytes())
        seen["kept"] = [name for name, watched in memory.items() if watched.alive()]
        with Products() as backward:
            gradients = torch.autograd.grad(y, [leaves[name] for name in wanted], direction, allow_unused=True)
        seen["gradients"] = [plain(gradient) for gradient in gradients]
        seen["backward"] = backward.count
        seen["held"] = [name for name, watched in memory.items() if watched.alive()]
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
    memory.add(x)
    state = torch.get_rng_state()
    with PeakMemory() as made:
        y = answer(x, p, seed)
    seen: Observation = {"returned": plain(y), "attached": attached(y, x), "again": plain(answer(x, p, seed))}
    seen["other"] = plain(answer(x, p, seed + 1))
    if seen["attached"]:
        seen["operations"] = operations(y, x)
        passes = [torch.autograd.grad(y, base, direction, retain_graph=True, allow_unused=True) for _ in range(2)]
        seen["gradients"] = [plain(gradient) for (gradient,) in passes]
        total = y.sum()  # it keeps the graph, and not the result
        del x, y, passes
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


def _notices(y: Any, leaf: torch.Tensor, direction: torch.Tensor, write: Callable[[], object]) -> bool:
    """Return whether a pass refuses to run after a write to what was saved."""
    write()
    try:
        torch.autograd.grad(y, leaf, direction, allow_unused=True)
    except RuntimeError:
        return True
    return False
