"""Judging `layer_gradients`: gradients of named layers, and no trace left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from course_utils.checks.compare import close, counted, describe, listed, right_value
from course_utils.checks.data import Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_08_intermediate_gradients import LESSON
from course_utils.checks.judges.lesson_08_intermediate_gradients.layers import left, results_of, times
from course_utils.checks.judges.put_back import PUT_BACK
from course_utils.checks.scenes.lesson_08_intermediate_gradients.layer_gradients import layered, weighed

_BRANCHES = ("frozen", "trunk", "spare", "idle", "head", "zero", "past")
_SCENES: dict[str, tuple[str, tuple[str, ...], bool]] = {
    "a plain model": ("plain", ("0", "3", "4"), False),
    "ReLUs that write in place": ("in place", ("0.0", "1", "3"), False),
    "a layer that is used twice": ("tied", ("shared", "leave", "same"), False),
    "two frozen layers and an unused one": ("branches", _BRANCHES, False),
    "a model that raises": ("failing", ("0", "3"), False),
    "a loss function that raises what is no Exception": ("plain", ("0", "3"), True),
}


def _cases(seed: int) -> list[Case]:
    return [
        Case(name, {"scene": scene, "names": list(names), "fails": fails, "seed": seed + n, "rows": 1 + n % 3})
        for n, (name, (scene, names, fails)) in enumerate(_SCENES.items())
    ]


def _wanted(case: Case) -> dict[str, list[torch.Tensor | None]]:
    model, x = layered(case, in_place=False)
    names = case.given["names"]
    _, results = results_of(model, names, x, None)
    zeros = [torch.zeros_like(result, requires_grad=True) for _, result in results]
    loss = weighed(results_of(model, names, x, zeros)[0])
    gradients = torch.autograd.grad(loss, zeros, allow_unused=True)
    wanted: dict[str, list[torch.Tensor | None]] = {name: [] for name in names}
    for (name, result), gradient in zip(results, gradients, strict=True):
        reaches = result.requires_grad and gradient is not None  # one of zeros comes by, too
        wanted[name].append(gradient.detach() if reaches else None)
    return wanted


def _fails(case: Case) -> bool:
    return bool(case.given["fails"]) or case.given["scene"] == "failing"


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    if _hooks_differ(seen):
        yield Finding("model", False, _of_hooks(case, seen["more hooks"]))
    yield from left(seen)
    if _fails(case):
        message = (
            "The model or the loss function raises an error here, and none came out of your function: it swallowed "
        )
        message += "the error, or ran neither of the two so far."
        yield Finding("raises", bool(seen["raised"]), message)
    else:
        yield from _same_layers(seen["returned"], _wanted(case))
        once = seen["forward runs"] == 1 == seen["loss runs"]
        runs = f"The model ran {times(seen['forward runs'])} and the loss function {times(seen['loss runs'])}"
        yield Finding("runs", once, f"{runs}; once is enough.")
        message = f"{seen['passes']} backward passes ran; one is enough for all layers."
        yield Finding("passes", seen["passes"] <= 1, message)
        # What a pass towards one layer does not come by is kept, and so says nothing where there are several.
        kept = seen["kept"] and seen["passes"] <= 1
        message = "At the end the saved tensors were still there: your pass kept them for another, or none came by."
        yield Finding("kept", not kept, message)
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


def _of_hooks(case: Case, more: int) -> str:
    """Say of which end of the function the model's hooks are not those from before, and whether some are gone."""
    end = "Afterwards"
    if case.given["scene"] == "failing":
        end = "When the model raises an error,"
    if case.given["fails"]:
        end = "When what is raised is no Exception, such as KeyboardInterrupt,"
    hooks = "1 hook of yours is" if more == 1 else f"{more} hooks of yours are"
    if more > 0 and case.given["fails"]:
        return f"{end} {hooks} left on the model. `except Exception` does not see such an end; `finally` does."
    if more > 0:
        return f"{end} {hooks} left on the model, and would run in every later pass."
    return f"{end} hooks are gone that the model had before your function, or others stand in their place."


def _hooks_differ(seen: Observation) -> bool:
    changed = seen["changed"]
    return bool(changed) and all(isinstance(what, str) and what.startswith("the hooks on") for what in changed)


def _after_the_write(case: Case, seen: Observation) -> bool:
    """The entries are gradients for what a ReLU made of the results."""
    if case.given["scene"] != "in place" or seen["changed"]:
        return False
    mine = _layer_lists(case, seen)
    after = _wanted(Case(case.name, {**case.given, "names": ["0.1", "2", "3"]}))
    pairs = zip(("0.0", "1", "3"), after.values(), strict=True)
    return all(len(mine.get(name, [])) == 1 and close(mine[name][0], _given(its[0])) for name, its in pairs)


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


def _by_full_hooks(case: Case, seen: Observation) -> bool | None:
    """Tell full backward hooks by too few entries, where no gradient comes by; None where they come the other way."""
    if seen["full hooks"] is True and _backwards(case, seen):
        return None
    mine, right = _layer_lists(case, seen), _wanted(case)
    short = [name for name, entries in right.items() if len(mine.get(name, entries)) < len(entries)]
    return (
        seen["full hooks"] is True and bool(short) and all(right[name] == [None] * len(right[name]) for name in short)
    )


def _one_name(case: Case, seen: Observation) -> bool:
    """Tell a dict in which one of two names of a module has all entries, and the other none."""
    mine = _layer_lists(case, seen)
    lengths = sorted(len(mine.get(name, [None])) for name in ("shared", "same"))
    return case.given["scene"] == "tied" and lengths == [0, 2]


def _as_they_come(case: Case, seen: Observation) -> bool | None:
    """Tell entries that are there where a gradient comes by alone; None where they come the other way as well."""
    if seen["full hooks"]:
        return False
    if _backwards(case, seen):
        return None
    mine, right = _layer_lists(case, seen), _wanted(case)
    arrived = {name: [it for it in entries if it is not None] for name, entries in right.items()}
    return arrived != right and all(
        len(mine.get(name, [None])) == len(entries) and all(map(close, mine[name], entries))
        for name, entries in arrived.items()
    )


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, it = seen[0]
    count = len(case.given["names"])
    yield f"One run and {counted(it['passes'])} gave the gradients of {count} layers; a pass for each takes {count}."
    yield "After the errors of the model and of the loss function none of your hooks was left."


EXERCISE = Exercise(
    id="layer_gradients",
    title="Gradients of named layers, and no trace left",
    lesson=LESSON,
    difficulty=4,
    minutes=50,
    points=4,
    call="layer_gradients(model, names, x, loss_fn)",
    cases=_cases,
    judge=_judge,
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
    debrief=_debrief,
    reaches=("_forward_hooks", "next_functions"),
    misconceptions=(
        PUT_BACK,
        Misconception(
            "full backward hooks",
            "A full backward hook of a module wraps what the module returns, and a ReLU that writes into that raises. "
            "It also never runs where no gradient comes by. A forward hook can attach something to the result itself.",
            _by_full_hooks,
            ended=("RuntimeError",),
            ended_in=("ReLUs that write in place",),
            ended_saying="BackwardHookFunction",
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
            "one of two names",
            "Two of the names mean one module, and you gave entries for one of them alone. Each name has its list.",
            _one_name,
        ),
        Misconception(
            "entries as they come",
            "Your lists get an entry when a gradient comes by. So a call that none comes by has no entry, and the last "
            "call of a layer comes first. Give each call its place when the layer runs.",
            _as_they_come,
        ),
        Misconception(
            "in the order of the pass",
            "The gradients of a layer that ran twice come in the order of the backward pass, which is the wrong way "
            "round.",
            _backwards,
        ),
    ),
)
