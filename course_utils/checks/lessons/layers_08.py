"""Exercises of lesson 08 on looking at the layers of a model and leaving it as it was."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from course_utils.checks.compare import close, describe, listed, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.predict_08 import LESSON
from course_utils.checks.observing.scenes_08 import layered, logged, weighed

# The gradient at each layer's result. The oracle adds zeros to each result, and asks for the gradient of those.

_SCENES: dict[str, tuple[str, tuple[str, ...], bool]] = {
    "a plain model": ("plain", ("0", "3", "4"), False),
    "ReLUs that write in place": ("in place", ("0.0", "1", "3"), False),
    "a layer that is used twice": ("tied", ("shared", "leave"), False),
    "a frozen layer and an unused one": ("branches", ("frozen", "trunk", "spare"), False),
    "a loss function that raises": ("plain", ("0", "3"), True),
    "a model that raises": ("failing", ("0", "3"), False),
}


def _looks(seed: int) -> list[Case]:
    return [
        Case(name, {"scene": scene, "names": list(names), "fails": fails, "seed": seed + n, "rows": 2 + n % 3})
        for n, (name, (scene, names, fails)) in enumerate(_SCENES.items())
    ]


def _results(model: nn.Module, names: list[str], x: torch.Tensor, moved: list[torch.Tensor] | None) -> Any:
    """Run the model with each named layer's results moved. Return its output, and those results."""
    results: list[tuple[str, torch.Tensor]] = []

    def note(name: str, module: nn.Module, given: Any, result: torch.Tensor) -> torch.Tensor:
        results.append((name, result))
        return result if moved is None else result + moved[len(results) - 1]

    handles = [model.get_submodule(name).register_forward_hook(partial(note, name)) for name in names]
    try:
        return model(x), results
    finally:
        for handle in handles:
            handle.remove()


def _wanted(case: Case) -> dict[str, list[torch.Tensor | None]]:
    model, x = layered(case, in_place=False)
    names = case.given["names"]
    _, results = _results(model, names, x, None)
    zeros = [torch.zeros_like(result, requires_grad=True) for _, result in results]
    loss = weighed(_results(model, names, x, zeros)[0])
    gradients = torch.autograd.grad(loss, zeros, allow_unused=True, materialize_grads=True)
    wanted: dict[str, list[torch.Tensor | None]] = {name: [] for name in names}
    for (name, result), gradient in zip(results, gradients, strict=True):
        reaches = result.requires_grad and bool(gradient.any())
        wanted[name].append(gradient.detach() if reaches else None)
    return wanted


def _fails(case: Case) -> bool:
    return bool(case.given["fails"]) or case.given["scene"] == "failing"


def _left(seen: Observation) -> Iterator[Finding]:
    changed = seen["changed"]
    message = f"Afterwards the model is not as before. Your function changed {listed(changed)}."
    yield Finding("model", not changed, message)


def _judge_layers(case: Case, seen: Observation) -> Iterator[Finding]:
    if _fails(case):
        message = "The model or the loss function raised an error, and your function swallowed it."
        yield Finding("raises", bool(seen["raised"]), message)
    else:
        yield from _same_layers(seen["returned"], _wanted(case))
        once = seen["forward runs"] == 1 == seen["loss runs"]
        runs = f"The model ran {seen['forward runs']} times and the loss function {seen['loss runs']} times"
        yield Finding("runs", once, f"{runs}; once is enough.")
        message = f"{seen['passes']} backward passes went through the loss; one is enough for all layers."
        yield Finding("passes", seen["passes"] <= 1, message)
        yield Finding("kept", not seen["kept"], "Your pass kept the saved tensors for another pass. None follows.")
    yield from _left(seen)
    yield Finding("x", seen["x"], "Your function changed x, its requires_grad or its .grad.")


def _same_layers(received: Value, wanted: dict[str, list[torch.Tensor | None]]) -> Iterator[Finding]:
    if not isinstance(received, dict) or set(received) != set(wanted):
        keys = f" with the keys {listed(received)}" if isinstance(received, dict) else ""
        text = f"You returned {describe(received)}{keys}; expected a dict with the keys {listed(wanted)}."
        yield Finding("keys", False, text)
        return
    for name, right in wanted.items():
        mine = received[name]
        if not isinstance(mine, list) or len(mine) != len(right):
            text = f"For layer {name} you gave {describe(mine)}; expected a list with one entry for each of its calls: "
            yield Finding("calls", False, f"{text}{len(right)}.")
            continue
        for number, (item, gradient) in enumerate(zip(mine, right, strict=True)):
            what = f"The gradient at call {number} of layer {name}"
            if gradient is None:
                text = f"{what} is {describe(item)}; no gradient comes by there, so None is expected."
                yield Finding("none", item is None, text)
            else:
                yield right_value(item, gradient, what)


def _layer_lists(case: Case, seen: Observation) -> dict[str, list[Value]]:
    received = seen["returned"]
    if not isinstance(received, dict):
        return {}
    return {name: mine for name, mine in received.items() if isinstance(mine, list)}


def _hooks_stay(case: Case, seen: Observation) -> bool:
    changed = seen["changed"]
    return bool(changed) and all(isinstance(what, str) and what.startswith("the hooks on") for what in changed)


def _after_the_write(case: Case, seen: Observation) -> bool:
    """The entries are gradients for what a ReLU made of the results: zero nowhere where the right ones are."""
    if case.given["scene"] != "in place" or seen["changed"]:
        return False
    mine, right = _layer_lists(case, seen), _wanted(case)
    if set(mine) != set(right) or any(len(mine[name]) != 1 for name in right):
        return False
    return not close(mine["1"][0], _given(right["1"][0])) and close(mine["3"][0], _given(right["3"][0]))


def _given(gradient: torch.Tensor | None) -> torch.Tensor:
    return torch.zeros(()) if gradient is None else gradient


def _one_call(case: Case, seen: Observation) -> bool:
    mine = _layer_lists(case, seen)
    return case.given["scene"] == "tied" and len(mine.get("shared", [])) == 1


def _backwards(case: Case, seen: Observation) -> bool:
    mine = _layer_lists(case, seen).get("shared", [])
    right = _wanted(case)["shared"] if case.given["scene"] == "tied" else []
    return len(mine) == len(right) == 2 and all(
        close(item, _given(gradient)) for item, gradient in zip(mine, reversed(right), strict=True)
    )


layer_gradients = Exercise(
    id="layer_gradients",
    title="Gradients of named layers, and no trace left",
    lesson=LESSON,
    difficulty=4,
    minutes=30,
    points=4,
    call="layer_gradients(model, names, x, loss_fn)",
    cases=_looks,
    judge=_judge_layers,
    hints=(
        "A forward hook on a module meets each of its results, at the moment when it is made. What can you attach "
        "to a result there, so that it survives a write in place behind the layer?",
        "Each call gets a place in the layer's list, filled with None at first. A hook on the result puts the "
        "gradient there. Only results that require a gradient can have one. A pass that must not touch .grad of "
        "parameters is torch.autograd.grad. And what has to happen even after an error stands in a `finally`.",
        "found = {name: [] for name in names}. In the forward hook: places = found[name], number = len(places), "
        "places.append(None), and if the result requires a gradient, result.register_hook with a function that sets "
        "places[number]. In try: loss = loss_fn(model(x)); then torch.autograd.grad of the loss, for all parameters "
        "that require a gradient, with allow_unused=True. In finally: remove all handles.",
    ),
    misconceptions=(
        Misconception(
            "hooks stay",
            "When your function has ended, by a result or by an error, hooks of yours are still on the model. They run "
            "in every later pass.",
            _hooks_stay,
        ),
        Misconception(
            "the newest version",
            "Where a ReLU writes into a layer's result, you give the gradient for the numbers after the write.",
            _after_the_write,
        ),
        Misconception(
            "one entry for a layer",
            "A layer that ran twice has one entry in your result. Each call made a result of its own.",
            _one_call,
        ),
        Misconception(
            "in the order of the pass",
            "The gradients of a layer that ran twice come in the order of the backward pass, which is the wrong way "
            "round.",
            _backwards,
        ),
    ),
)

# A log of gradient norms, repaired.


def _logs(seed: int) -> list[Case]:
    return [
        Case("three batches", {"seed": seed, "sizes": [[1, 4], [2, 7], [3, 5]], "fails at": 0}),
        Case("one batch", {"seed": seed + 1, "sizes": [[1, 6]], "fails at": 0}),
        Case("a loss function that raises", {"seed": seed + 2, "sizes": [[1, 4], [2, 3]], "fails at": 2}),
    ]


def _norms(case: Case, of_input: bool = False) -> list[dict[str, float]]:
    """Return the norms at each linear layer's result, or at its input."""
    model, batches = logged(case)
    names = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    log = []
    for x, targets in batches:
        _, results = _results(model, names, x, None)
        zeros = [torch.zeros_like(result, requires_grad=True) for _, result in results]
        loss = nn.functional.mse_loss(_results(model, names, x, zeros)[0], targets)
        gradients = torch.autograd.grad(loss, zeros)
        if of_input:
            weights = [model.get_parameter(f"{name}.weight") for name in names]
            gradients = tuple(gradient @ weight for gradient, weight in zip(gradients, weights, strict=True))
        log.append({name: float(gradient.norm()) for name, gradient in zip(names, gradients, strict=True)})
    return log


def _judge_log(case: Case, seen: Observation) -> Iterator[Finding]:
    if case.given["fails at"]:
        message = "The loss function raised an error, and your function swallowed it."
        yield Finding("raises", bool(seen["raised"]), message)
    else:
        wanted = _norms(case)
        received = seen["returned"]
        if not isinstance(received, list) or len(received) != len(wanted):
            text = (
                f"You returned {describe(received)}; expected a list with one dict for each of {len(wanted)} batches."
            )
            yield Finding("list", False, text)
        else:
            for number, (mine, right) in enumerate(zip(received, wanted, strict=True)):
                yield from _same_norms(mine, right, f"The dict for batch {number}")
        passes = len(case.given["sizes"])
        text = f"{seen['passes']} backward passes ran for {passes} batches."
        yield Finding("passes", seen["passes"] == passes, text)
        text = f"The model that was given ran {seen['runs']} times for {passes} batches."
        yield Finding("runs", seen["runs"] == passes, text)
        yield Finding("kept", not seen["kept"], "Your passes kept saved tensors for other passes. None follows.")
    hooks = seen["hooks"]
    text = f"When the loss is computed, the model's modules have this many hooks, batch after batch: {hooks}."
    yield Finding("pile", len(set(hooks)) <= 1, text)
    alive = max(seen["alive"], default=0)
    text = f"While later batches run, {alive} graphs of earlier batches are alive."
    yield Finding("graphs", alive <= 1, text)
    yield from _left(seen)


def _same_norms(received: Value, right: dict[str, float], what: str) -> Iterator[Finding]:
    if not isinstance(received, dict) or set(received) != set(right):
        keys = f" with the keys {listed(received)}" if isinstance(received, dict) else ""
        yield Finding("keys", False, f"{what} is {describe(received)}{keys}; expected the keys {listed(right)}.")
        return
    odd = next((name for name in right if type(received[name]) is not float), None)
    if odd is not None:
        text = f"{what} has {describe(received[odd])} for {odd}; expected a Python float."
        yield Finding("float", False, text)
        return
    for name, norm in right.items():
        yield right_value(received[name], norm, f"{what} has a norm for {name} that")


def _pile_up(case: Case, seen: Observation) -> bool:
    hooks = seen["hooks"]
    return len(hooks) > 1 and all(later > earlier for earlier, later in pairwise(hooks))


def _only_the_last(case: Case, seen: Observation) -> bool:
    returned = seen["returned"]
    if not isinstance(returned, list) or not returned or _pile_up(case, seen):
        return False
    return all(isinstance(entry, dict) and len(entry) == 1 for entry in returned)


def _gave_norms(case: Case, seen: Observation, right: list[dict[str, float]]) -> bool:
    returned = seen["returned"]
    if not isinstance(returned, list) or len(returned) != len(right):
        return False
    return all(
        isinstance(mine, dict)
        and set(mine) == set(wanted)
        and all(type(mine[name]) is float and close(mine[name], norm) for name, norm in wanted.items())
        for mine, wanted in zip(returned, right, strict=True)
    )


def _graded(case: Case, seen: Observation) -> bool:
    changed = seen["changed"]
    return bool(changed) and all(isinstance(what, str) and what.startswith("the gradient that") for what in changed)


gradient_log = Exercise(
    id="gradient_log",
    title="Repair a log whose hooks pile up",
    lesson=LESSON,
    difficulty=3,
    minutes=20,
    points=3,
    call="gradient_log(model, batches, loss_fn)",
    cases=_logs,
    judge=_judge_log,
    hints=(
        "Four things are wrong. Count the hooks after each batch. Print the keys of a dict. Look at the type of an "
        "entry, and at .grad of the parameters after the call.",
        "A function that is made in a loop looks a name up when it runs, not when it is made. By then the loop is "
        "over. A default argument or functools.partial holds what the name meant at the time.",
        "Register one hook for each linear layer, before the loop over batches, each with its own name. Let it write "
        "into a dict that you empty for each batch. Use torch.autograd.grad for the pass, .item() for the numbers, "
        "and take the hooks away in a finally.",
    ),
    misconceptions=(
        Misconception(
            "hooks pile up",
            "With each batch the model has more hooks. Each of them runs in every later pass.",
            _pile_up,
        ),
        Misconception(
            "the name of the last layer",
            "Each dict has one key. All your hooks look up the same name, and by then it means the last layer.",
            _only_the_last,
        ),
        Misconception(
            "the gradient of the input",
            "Your norms are those of the gradient at each layer's input. Asked for is its result.",
            lambda case, seen: not seen["raised"] and _gave_norms(case, seen, _norms(case, of_input=True)),
        ),
        Misconception(
            "gradients left behind",
            "Your norms may be right, but the passes added to .grad of the model's parameters. A log must not train.",
            _graded,
        ),
        Misconception(
            "tensors in the log",
            "Your dicts hold tensors where floats are expected.",
            lambda case, seen: (
                isinstance(seen["returned"], list)
                and bool(seen["returned"])
                and isinstance(seen["returned"][0], dict)
                and any(isinstance(item, Array) for item in seen["returned"][0].values())
                and not seen["changed"]
            ),
        ),
    ),
)
