"""Judging `hook_order`: in which order do hooks run?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import nn

from course_utils.checks.compare import describe, listed
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_08_intermediate_gradients import LESSON
from course_utils.checks.judges.predictions import one_case


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


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    right, received = _right_order(), seen["value"]
    if not isinstance(received, list) or not all(isinstance(item, str) for item in received):
        yield Finding("type", False, f"`hook_order` is {describe(received)}; expected a list of texts.")
        return
    if sorted(received) != sorted(right):
        missing = sorted(set(right) - set(received))  # sorted: in their own order they would be the answer
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


_REASONS = {
    "forward": "It runs when the layer has its result, before any pass.",
    "output": "The pass comes from the loss and meets the result first.",
    "layer, before": "Then it enters the layer.",
    "weight": "The matrix product sends the weight its gradient.",
    "weight stored": "The engine stores a leaf's gradient as soon as it is ready.",
    "layer": "Its node stands at the layer's input, and was recorded before the layer's own nodes.",
    "input": "The gradient leaves the layer and reaches x.",
}


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    return (f"`{name}`: {_REASONS[name]}" for name in _right_order())


EXERCISE = Exercise(
    id="hook_order",
    title="In which order do hooks run?",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=_judge,
    hints=(
        "The order in which hooks were registered does not matter here. Follow first the numbers, then the gradient.",
        "The gradient comes from the loss. It reaches the layer's result, then the layer's inside, then what it came "
        "from. Ask of each hook at which of these stations it sits.",
        "A tensor's own hooks see its gradient before anything is done with it. A full backward hook of a module "
        "has a node of its own at the module's input, recorded before all nodes of the module. So those have run by "
        "then. The engine runs AccumulateGrad as soon as it is ready.",
    ),
    debrief=_debrief,
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
