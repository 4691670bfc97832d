"""Judging `fit_best`: the best model of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import torch
from torch.nn.functional import mse_loss

from course_utils.checks.compare import close, describe, listed, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_09_practical_checklist import LESSON
from course_utils.checks.judges.lesson_09_practical_checklist.descent import (
    Path,
    State,
    descend,
    on,
    parameters_of,
    reached,
    right_end,
)
from course_utils.checks.judges.lesson_09_practical_checklist.session import floats, part, parts, quiet
from course_utils.checks.scenes.lesson_09_practical_checklist.fit_best import warm_network
from course_utils.checks.scenes.lesson_09_practical_checklist.training import RATE, double, regression


def _cases(seed: int) -> list[Case]:
    epochs = {"the best in the middle": (4, 1), "the first is the best": (3, 0), "the last is the best": (3, 2)}
    return [_best_case(name, seed + n, count, best) for n, (name, (count, best)) in enumerate(epochs.items())]


def _best_case(name: str, seed: int, epochs: int, best: int) -> Case:
    """Make a case whose validation data fit the model of one epoch nearly exactly."""
    given: dict[str, Any] = {"seed": seed, "sizes": [5, 3, 4], "epochs": epochs, "best": best}
    path = _warm_path(Case(name, given))
    inputs = double(seed + 30, 6, 4)
    model = warm_network(Case(name, given)).eval()
    targets = on(model, inputs, path.states[3 * best + 2]) + 1e-3 * double(seed + 31, 6, 3)
    return Case(name, {**given, "inputs": Array.of(inputs), "targets": Array.of(targets)})


def _warm_path(case: Case) -> Path:
    return _warm_descent(case.given["seed"], tuple(case.given["sizes"]), case.given["epochs"])


@lru_cache(maxsize=16)
def _warm_descent(seed: int, sizes: tuple[int, ...], epochs: int) -> Path:
    case = Case("", {"seed": seed, "sizes": sizes})
    start = parameters_of(warm_network(case))

    def loss(inputs: torch.Tensor, targets: torch.Tensor) -> Callable[[State], torch.Tensor]:
        def of(state: State) -> torch.Tensor:
            hidden = 1.4 * (inputs @ state["0.weight"].T + state["0.bias"])
            return mse_loss(hidden.tanh() @ state["3.weight"].T + state["3.bias"], targets)

        return of

    return descend(start, [loss(*batch) for batch in regression(case)] * epochs, RATE)


def _validations(case: Case, states: list[State]) -> list[float]:
    model = warm_network(case).eval()
    inputs, targets = case.given["inputs"].tensor(), case.given["targets"].tensor()
    return [float(mse_loss(on(model, inputs, state), targets)) for state in states]


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    path, count, best = _warm_path(case), len(case.given["sizes"]), case.given["best"]
    history = _validations(case, path.states[count - 1 :: count])
    returned = seen["returned"]
    yield parts(returned, 3, "best_state, best_loss, history")
    yield from _state(case, seen, path.states[count * (best + 1) - 1])
    number = part(returned, 1)
    text = f"The best loss should be a Python float; it is {describe(number)}."
    yield Finding("float", type(number) is float, text)
    if type(number) is float:
        yield right_value(number, history[best], "The best loss")
    yield floats(part(returned, 2), history, "The history")
    yield from right_end(seen, path.end)
    yield from quiet(seen, count * case.given["epochs"])
    recorded = any(run["recorded"] for run in seen["runs"] if run["shape"] == [6, 3])
    yield Finding("recorded", not recorded, "The validation recorded a graph that nobody uses.")
    mixed = any(run["training"] for run in seen["runs"] if run["shape"] == [6, 3])
    yield Finding("validation mode", not mixed, "The model was in training mode while it was validated.")
    late = any(not run["training"] for run in seen["runs"] if run["shape"] != [6, 3])
    yield Finding("training mode", not late, "The model was in evaluation mode while it was trained.")


def _state(case: Case, seen: Observation, right: State) -> Iterator[Finding]:
    state = seen["state"]
    expected = {**right, "1.seen": torch.tensor(len(case.given["sizes"]) * (case.given["best"] + 1))}
    if not isinstance(state, dict) or set(state) != set(expected):
        has = f"has the entries {listed(state)}" if isinstance(state, dict) else f"is {describe(state)}"
        yield Finding("state", False, f"The best state {has}; expected all of model.state_dict().")
        return
    text = "The best state holds the model's own tensors, not copies: whatever trains the model changes it."
    yield Finding("copies", not seen["shared"], text)
    for name, it in expected.items():
        yield right_value(state[name], it, f"The best state's {name}")


def _last_state(case: Case, seen: Observation) -> bool:
    return isinstance(seen["state"], dict) and all(
        close(seen["state"].get(name), it) for name, it in _warm_path(case).end.items()
    )


EXERCISE = Exercise(
    id="fit_best",
    title="The best model of a run",
    lesson=LESSON,
    difficulty=4,
    minutes=20,
    points=3,
    call="fit_best(model, optimizer, batches, validation, epochs)",
    cases=_cases,
    judge=_judge,
    hints=(
        "Four things are wrong. Ask of everything that is kept: is it a number, a copy, or a way to something that "
        "lives on? And in which mode is the model, when?",
        "state_dict() gives the model's own tensors. A loss that is kept keeps its graph. Nobody needs a graph of the "
        "validation. And the mode that you set stays set.",
        "Each epoch: model.train(), the batches; model.eval(), the validation under no_grad, .item(). On improvement "
        "keep copy.deepcopy(model.state_dict()). At the end model.train() again.",
    ),
    misconceptions=(
        Misconception(
            "the model's own tensors",
            "Your best state is always the newest: state_dict() returns the model's own tensors, and training goes on "
            "changing them.",
            lambda case, seen: bool(seen["shared"]) and _last_state(case, seen),
        ),
        Misconception(
            "evaluation mode stays",
            "From the second epoch on, the model was trained in evaluation mode. Nobody had switched it back.",
            lambda case, seen: any(not run["training"] for run in seen["runs"] if run["shape"] != [6, 3]),
        ),
        Misconception(
            "validation with a graph",
            "All your numbers are right. But each validation recorded a graph, which nobody uses.",
            lambda case, seen: (
                reached(seen, _warm_path(case).end)
                and not seen["shared"]
                and seen["graphs"] == 0
                and all(seen["training"])
                and any(run["recorded"] for run in seen["runs"] if run["shape"] == [6, 3])
                and not any(run["training"] for run in seen["runs"] if run["shape"] == [6, 3])
            ),
        ),
        Misconception(
            "parameters only",
            "Your best state has the parameters and lacks a buffer, which belongs to the state as well.",
            lambda case, seen: isinstance(seen["state"], dict) and set(seen["state"]) == set(_warm_path(case).end),
        ),
    ),
)
