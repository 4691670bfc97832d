"""Exercises of lesson 09: predictions, eight broken loops and a broken model, and a check of one's own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.functional import mse_loss

from course_utils.checks.compare import describe, listed, right_entries
from course_utils.checks.data import Array, Case, Observation, Value, plain
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.keeping_09 import fine_tune, fit_best
from course_utils.checks.lessons.loops_09 import fit_classes, fit_penalised, fit_scheduled
from course_utils.checks.lessons.models_09 import make_model, retrain
from course_utils.checks.lessons.oracle_09 import LESSON, session
from course_utils.checks.lessons.predictions import one_case
from course_utils.checks.lessons.wrong_gradients_09 import fit_masked, fit_points
from course_utils.checks.observing.loops_09 import patient

# What does this step do? Settled by running what the exercise shows.

Step = Callable[[nn.Module, Any, torch.Tensor, torch.Tensor], None]


def _plain_step(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    mse_loss(model(x), y).backward()
    optimizer.step()


def _zero_between(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    mse_loss(model(x), y).backward()
    optimizer.zero_grad()
    optimizer.step()


def _rewrapped(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    torch.tensor(mse_loss(model(x), y).item(), requires_grad=True).backward()
    optimizer.step()


def _under_no_grad(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    with torch.no_grad():
        loss = mse_loss(model(x), y)
    loss.backward()
    optimizer.step()


def _in_eval(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    _plain_step(model.eval(), optimizer, x, y)


def _rounded(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    mse_loss(model(x).round(), y).backward()
    optimizer.step()


def _twice(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    loss = mse_loss(model(x), y)
    loss.backward()
    loss.backward()
    optimizer.step()


def _scheduler_first(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 10)
    scheduler.step()
    _plain_step(model, optimizer, x, y)


def _replaced(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    model.weight = nn.Parameter(torch.zeros(1, 3))
    model.bias = nn.Parameter(torch.zeros(1))
    _plain_step(model, optimizer, x, y)


def _wrong_shape(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    _plain_step(model, optimizer, x, y[:, 0])


def _one_frozen(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    for parameter in [*model.parameters()][:1]:
        parameter.requires_grad_(False)
    _plain_step(model, optimizer, x, y)


def _hard_choice(model: nn.Module, optimizer: Any, x: torch.Tensor, y: torch.Tensor) -> None:
    (model(x) > 0.5).float().sub(y).pow(2).mean().backward()
    optimizer.step()


STEPS: dict[str, Step] = {
    "zero_between": _zero_between,
    "rewrapped": _rewrapped,
    "under_no_grad": _under_no_grad,
    "in_eval": _in_eval,
    "rounded": _rounded,
    "twice": _twice,
    "scheduler_first": _scheduler_first,
    "replaced": _replaced,
    "wrong_shape": _wrong_shape,
    "one_frozen": _one_frozen,
    "hard_choice": _hard_choice,
}


def symptom(step: Step) -> str:
    """Run one step and say what it did."""
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.manual_seed(0)
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        held = [parameter.detach().clone() for parameter in optimizer.param_groups[0]["params"]]
        try:
            step(model, optimizer, torch.rand(8, 3), torch.rand(8, 1))
        except RuntimeError:
            return "raises"
        if caught:
            return "warns"
        after = [parameter.detach() for parameter in optimizer.param_groups[0]["params"]]
        moved = any(not torch.equal(a, b) for a, b in zip(held, after, strict=True))
        return "moves" if moved else "stands still"


WORDS = ("raises", "warns", "stands still", "moves")


def _judge_symptoms(case: Case, seen: Observation) -> Iterator[Finding]:
    mine = seen["value"]
    if isinstance(mine, dict):
        open_or_known = (*WORDS, ...)
        odd = [key for key, word in mine.items() if isinstance(word, Array | list | dict) or word not in open_or_known]
        odd = [key for key in odd if key in STEPS and describe(mine[key]) != "still `...`"]
        text = f"Each entry is one of the words {listed(WORDS)}. Look at {listed(odd)}."
        yield Finding("words", not odd, text)
    yield from right_entries(mine, {name: symptom(step) for name, step in STEPS.items()}, "Your prediction")


def _says(**entries: tuple[str, ...]) -> Callable[[Case, Observation], bool]:
    """Recognise a prediction that says one of these words for each of these entries."""

    def explains(case: Case, seen: Observation) -> bool:
        mine = seen["value"]
        return isinstance(mine, dict) and all(
            isinstance(mine.get(name), str) and mine[name] in words for name, words in entries.items()
        )

    return explains


predict_symptoms = Exercise(
    id="predict_symptoms",
    title="Raises, warns, stands still, or moves?",
    lesson=LESSON,
    difficulty=1,
    minutes=8,
    points=2,
    call=None,
    cases=one_case,
    judge=_judge_symptoms,
    hints=(
        "For each entry ask three things: does backward find a graph, do gradients arrive at the tensors that the "
        "optimizer holds, and are they still there when it steps?",
        "A missing graph raises. A graph that leads elsewhere, gradients of zero, and gradients that were cleared do "
        "not: nobody is told. Two of the entries are so common that PyTorch warns.",
        "Raises: no graph at all, or a graph whose saved tensors are gone. Warns: a step of the wrong order, a shape "
        "that does not fit. For the rest, follow the gradient from the loss to the optimizer's own tensors.",
    ),
    misconceptions=(
        Misconception(
            "a new leaf is a repair",
            "You take it that a loss which is made anew as a tensor with requires_grad=True still leads to the model.",
            _says(rewrapped=("moves",)),
        ),
        Misconception(
            "eval() is no_grad",
            "You take it that evaluation mode stops gradients.",
            _says(in_eval=("raises", "stands still", "warns")),
        ),
        Misconception(
            "no gradient is an error",
            "You expect an error where a gradient of zero arrives: rounding is recorded, and its derivative is 0.",
            _says(rounded=("raises",)),
        ),
        Misconception(
            "the optimizer follows the model",
            "You take it that an optimizer looks up the model's parameters at every step.",
            _says(replaced=("moves",)),
        ),
    ),
)


# A check of one's own.

_KINDS = ("no_gradient", "not_in_optimizer", "frozen_but_changed", "not_finite")
_MIDDLE = ["middle.weight", "middle.bias"]
_LAST = ["last.weight", "last.bias"]
_ALL = ["first.weight", "first.bias", *_MIDDLE, *_LAST]

# What is wrong in each scene, worked out by hand.
_PATIENTS: dict[str, tuple[str, dict[str, list[str]]]] = {
    "a healthy step": ("healthy", {}),
    "a layer that is left out": ("skipped", {"no_gradient": _MIDDLE}),
    "an old gradient on a layer that is left out": ("stale", {"no_gradient": _MIDDLE}),
    "a step that clears at its end": ("cleared at the end", {"no_gradient": _MIDDLE}),
    "an optimizer made too early": ("replaced", {"not_in_optimizer": _LAST}),
    "an optimizer without one bias": ("left out: first.bias", {"not_in_optimizer": ["first.bias"]}),
    "a frozen layer": ("frozen", {}),
    "a frozen layer that moves": ("frozen and moving", {"frozen_but_changed": ["first.weight"]}),
    "a root of zero": ("root", {"not_finite": ["middle.bias"]}),
    "a root of zero, covered up": ("root, hidden", {"not_finite": ["middle.bias"]}),
    "two layers with one weight": ("tied", {}),
    "a gradient of zeros": ("rounded", {}),
    "an optimizer with two groups": ("two groups", {}),
    "an optimizer for a copy of the model": ("a copy is held", {"not_in_optimizer": _ALL}),
    "a frozen layer that the optimizer does not hold": ("frozen, not held", {}),
    "a step that raises": ("healthy", {}),
}


def _patients(seed: int) -> list[Case]:
    return [
        Case(name, {"seed": seed + n, "scene": scene, "raises": name == "a step that raises"})
        for n, (name, (scene, _)) in enumerate(_PATIENTS.items())
    ]


def _judge_checkup(case: Case, seen: Observation) -> Iterator[Finding]:
    model, _, step = patient(case)
    step()
    calls = seen["calls"]
    yield Finding("calls", calls == 1, f"Your function called step() {calls} times; once is right.")
    if case.given["raises"]:
        text = "step() raised, and your function did not let the exception through."
        yield Finding("raised", seen["raised"] is True, text)
    else:
        yield from _report(seen["returned"], _PATIENTS[case.name][1])
    after = {name: plain(it) for name, it in model.named_parameters()}
    yield Finding(
        "step", seen["parameters"] == after, "After your function the parameters are not what step() makes them."
    )
    gradients = {name: plain(it.grad) for name, it in model.named_parameters()}
    yield Finding("grad", seen["gradients"] == gradients, "After your function .grad is not what step() leaves there.")
    yield Finding("hooks", seen["hooks"] == 0, f"Your function left {seen['hooks']} hooks behind.")
    yield Finding("flags", seen["flags"] is True, "Your function changed which parameters require a gradient.")
    yield Finding("modes", seen["training"], "After your function a part of the model is in evaluation mode.")
    yield session(seen)


def _report(received: Value, right: dict[str, list[str]]) -> Iterator[Finding]:
    if not isinstance(received, dict) or set(received) != set(_KINDS):
        what = f"a dict with the keys {listed(received)}" if isinstance(received, dict) else describe(received)
        yield Finding("keys", False, f"You returned {what}; expected a dict with the keys {listed(_KINDS)}.")
        return
    for kind in _KINDS:
        names = received[kind]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            yield Finding(kind, False, f"{kind} should be a list or a set of names; it is {describe(names)}.")
            continue
        wanted = set(right.get(kind, []))
        extra, missing = set(map(str, names)) - wanted, wanted - set(map(str, names))
        text = f"{kind} names {listed(sorted(extra))}, which does not belong there." if extra else ""
        text += f"{' ' if extra else ''}{kind} lacks {listed(sorted(missing))}." if missing else ""
        yield Finding(kind, not text, text)
        double = len(names) != len(set(map(str, names)))
        yield Finding("once", not double, f"{kind} names a parameter more than once.")


def _reported(seen: Observation, kind: str) -> set[str]:
    returned = seen["returned"]
    names = returned.get(kind) if isinstance(returned, dict) else None
    return {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()


checkup = Exercise(
    id="checkup",
    title="Write the checklist as a function",
    lesson=LESSON,
    difficulty=5,
    minutes=30,
    points=4,
    call="checkup(model, optimizer, step)",
    cases=_patients,
    judge=_judge_checkup,
    hints=(
        "Two of the four can be read off without running anything, or by comparing before and after. For the other "
        "two, what stands in .grad after the step does not tell what arrived.",
        "register_post_accumulate_grad_hook on a parameter calls you when a gradient has arrived there. It cannot be "
        "put on a parameter that requires none. Compare objects with the optimizer's by id().",
        "Before: ids of all tensors in optimizer.param_groups; copies of the frozen parameters; a hook on every other "
        "parameter, which notes its name, and whether its .grad is finite. Then step() inside try, and remove all "
        "hooks in finally. After: compare the frozen ones with their copies.",
    ),
    misconceptions=(
        Misconception(
            ".grad after the step",
            "You looked at .grad when the step was over. By then it may have been cleared, or it may be left from an "
            "earlier pass.",
            lambda case, seen: (
                (case.name == "a step that clears at its end" and _reported(seen, "no_gradient") == set(_ALL))
                or (case.given["scene"] == "stale" and _reported(seen, "no_gradient") < set(_MIDDLE))
                or (case.given["scene"] == "root, hidden" and not _reported(seen, "not_finite"))
            ),
        ),
        Misconception(
            "hooks left behind",
            "Hooks of yours are still there when your function has ended. They must go even where step() raises.",
            lambda case, seen: not isinstance(seen["hooks"], int) or seen["hooks"] > 0,
        ),
        Misconception(
            "frozen is not missing",
            "You reported a frozen layer for what only concerns parameters that require a gradient.",
            lambda case, seen: (
                case.given["scene"].startswith("frozen")
                and bool(_reported(seen, "no_gradient") & {"first.weight", "first.bias"})
            ),
        ),
    ),
)

EXERCISES = (
    predict_symptoms,
    fit_classes,
    fit_penalised,
    make_model,
    retrain,
    fit_scheduled,
    fit_masked,
    fit_points,
    fine_tune,
    fit_best,
    checkup,
)
