"""Predictions of lesson 08, settled by running what the exercise shows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from course_utils.checks.compare import describe, listed
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.predictions import Table, one_case

LESSON = "08_intermediate_gradients"


def times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


# What is in h.grad? Each entry starts from x = 3 and h = x * x.

RETAIN: dict[str, str] = {
    "never": "y = 4 * h; y.backward()",
    "before_use": "h.retain_grad(); y = 4 * h; y.backward()",
    "after_use": "y = 4 * h; h.retain_grad(); y.backward()",
    "too_late": "y = 4 * h; y.backward(); h.retain_grad()",
    "two_uses": "h.retain_grad(); y = 4 * h + 5 * h; y.backward()",
    "same_graph_twice": "h.retain_grad(); y = 4 * h; y.backward(retain_graph=True); y.backward()",
    "second_loss": "h.retain_grad(); (4 * h).backward(); (5 * h).backward()",
    "rebound": "h.retain_grad(); h = 4 * h; h.backward()",
    "in_place": "h.retain_grad(); h.mul_(4); y = 5 * h; y.backward()",
    "detached": "h = h.detach(); h.retain_grad(); y = 4 * h + x; y.backward()",
    "by_function": "h.retain_grad(); y = 4 * h; torch.autograd.grad(y, x)",
    "with_hook": "h.retain_grad(); h.register_hook(lambda g: 10 * g); y = 4 * h; y.backward()",
}


def _held(code: str) -> float | str | None:
    x = torch.tensor(3.0, requires_grad=True)
    names: dict[str, Any] = {"torch": torch, "x": x, "h": x * x}
    try:
        exec(code, names)  # the texts above, never a learner's
    except RuntimeError:
        return "error"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gradient = names["h"].grad
    return None if gradient is None else float(gradient)


TABLE = Table(lambda: {name: _held(code) for name, code in RETAIN.items()})
predict_retain_grad = Exercise(
    id="predict_retain_grad",
    title="What is in h.grad?",
    lesson=LESSON,
    difficulty=1,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=TABLE.judge,
    hints=(
        "Ask of each entry: is the wish to keep there when the pass comes by, and which tensor carries it?",
        "A name and a tensor are two things: after `h = ...` the name means another tensor. A write in place keeps "
        "the tensor. And a product of x with itself saves x.",
        "Gradients add up where uses join, and .grad adds up over passes. Keeping what a gradient was does not keep "
        "what the graph saved. Hooks run before the gradient is kept. A tensor without a graph can keep nothing.",
    ),
    misconceptions=(
        Misconception(
            "before the first use",
            "You said that retain_grad() has to stand before the tensor is used. Using a tensor in the forward pass "
            "computes no gradient yet.",
            lambda case, seen: any(TABLE.but(after_use=wrong)(case, seen) for wrong in (None, "error")),
        ),
        Misconception(
            "retain_grad is retain_graph",
            "You let a second pass go through what the first one freed. retain_grad() keeps a gradient. Whether "
            "the graph's saved tensors stay is another question.",
            lambda case, seen: any(TABLE.but(second_loss=wrong)(case, seen) for wrong in (9, 9.0, 5, 5.0)),
        ),
        Misconception(
            "reading raises",
            "You said that reading .grad of a tensor that kept none is an error.",
            TABLE.but(never="error", too_late="error", rebound="error"),
        ),
        Misconception(
            "the last pass wins",
            "You let the second pass overwrite the gradient of the first.",
            lambda case, seen: any(TABLE.but(same_graph_twice=wrong)(case, seen) for wrong in (4, 4.0)),
        ),
        Misconception(
            "backward only",
            "You said that torch.autograd.grad leaves h.grad empty. The pass goes through h, whoever asked for it.",
            TABLE.but(by_function=None),
        ),
    ),
)

# In which order do hooks run?


def _order() -> list[str]:
    log: list[str] = []

    def note(name: str) -> Callable[..., None]:
        return lambda *given: log.append(name)

    layer = nn.Linear(3, 2, bias=False)
    x = torch.rand(4, 3, requires_grad=True)
    x.register_hook(note("input"))
    layer.weight.register_post_accumulate_grad_hook(note("weight stored"))
    layer.weight.register_hook(note("weight"))
    layer.register_full_backward_hook(note("layer"))
    layer.register_forward_hook(note("forward"))
    layer.register_full_backward_pre_hook(note("layer, before"))
    y = layer(x)
    y.register_hook(note("output"))
    y.sum().backward()
    return log


def _right_order() -> list[str]:
    with torch.random.fork_rng(devices=[]):
        return _order()


def _judge_order(case: Case, seen: Observation) -> Iterator[Finding]:
    right, received = _right_order(), seen["value"]
    if not isinstance(received, list) or not all(isinstance(item, str) for item in received):
        yield Finding("type", False, f"`hook_order` is {describe(received)}; expected a list of texts.")
        return
    if sorted(received) != sorted(right):
        missing = [name for name in right if name not in received]
        text = f" Missing: {listed(map(repr, missing))}." if missing else ""
        yield Finding("names", False, f"Expected each of the {len(right)} names once.{text}")
        return
    fits = next((n for n, (mine, name) in enumerate(zip(received, right, strict=True)) if mine != name), len(right))
    yield Finding("order", received == right, f"From the start of your list, {fits} of {len(right)} fit.")


def _moved(name: str, before: str) -> Callable[[Case, Observation], bool]:
    def explains(case: Case, seen: Observation) -> bool:
        order = [item for item in _right_order() if item != name]
        order.insert(order.index(before), name)
        return bool(seen["value"] == order)

    return explains


hook_order = Exercise(
    id="hook_order",
    title="In which order do hooks run?",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=_judge_order,
    hints=(
        "The order in which hooks were registered does not matter here. Follow first the numbers, then the gradient.",
        "The gradient comes from the loss. It reaches the layer's result, then the layer's inside, then what it came "
        "from. Ask of each hook at which of these stations it sits.",
        "A tensor's own hooks see its gradient before anything is done with it. A full backward hook of a module "
        "has a node of its own at the module's input, recorded before all nodes of the module. So those have run by "
        "then. The engine runs AccumulateGrad as soon as it is ready.",
    ),
    misconceptions=(
        Misconception(
            "as registered",
            "You gave the order in which the hooks were registered. They sit on different things, and the pass comes "
            "by those one after another.",
            lambda case, seen: (
                seen["value"] == ["input", "weight stored", "weight", "layer", "forward", "layer, before", "output"]
            ),
        ),
        Misconception(
            "the layer before its weight",
            "You let the layer's backward hook run before its weight has its gradient. The hook's node was recorded "
            "before the layer's own nodes. So it runs after them, and after the weight's.",
            _moved("layer", "weight"),
        ),
        Misconception(
            "stored first",
            "You let the weight's gradient be stored before the hook on the weight runs. Then that hook could not "
            "change what is stored.",
            _moved("weight stored", "weight"),
        ),
    ),
)
