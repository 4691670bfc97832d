"""Exercises of lesson 09 on what is to stay as it was: a frozen backbone, the best model of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import torch
from torch.nn.functional import cross_entropy, mse_loss

from course_utils.checks.compare import close, describe, listed, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.models_09 import head_cases
from course_utils.checks.lessons.oracle_09 import (
    LESSON,
    Path,
    Refused,
    State,
    descend,
    floats,
    on,
    parameters_of,
    part,
    parts,
    quiet,
    reached,
    right_end,
)
from course_utils.checks.observing.loops_09 import (
    RATE,
    backbone_and_head,
    classes,
    double,
    regression,
    warm_network,
)

# A frozen backbone that moves.


def _tuned(case: Case) -> tuple[Path, State, State]:
    """Return the head's path, and what the backbone's parameters and buffers are to stay."""
    backbone, head, _ = backbone_and_head(case)
    backbone.eval()

    def loss(inputs: torch.Tensor, targets: torch.Tensor) -> Callable[[State], torch.Tensor]:
        with torch.no_grad():
            features = backbone(inputs)
        return lambda state: cross_entropy(on(head, features, state), targets)

    losses = [loss(*batch) for batch in classes(case)]
    path = descend(parameters_of(head), losses, RATE, momentum=0.9, decay=0.1)
    return path, parameters_of(backbone), dict(backbone.named_buffers())


def _frozen(received: Any, right: State) -> bool:
    """Return whether nothing changed, to the bit."""
    return isinstance(received, dict) and received == {name: Array.of(it) for name, it in right.items()}


def _judge_tuned(case: Case, seen: Observation) -> Iterator[Finding]:
    path, parameters, buffers = _tuned(case)
    text = "Parameters of the backbone are not what they were."
    yield Finding("backbone", _frozen(seen["parameters"][0], parameters), text)
    changed = [name for name, it in buffers.items() if seen["buffers"][0].get(name) != Array.of(it)]
    yield Finding("buffers", not changed, f"Buffers of the backbone changed: {listed(changed)}.")
    yield floats(seen["returned"], path.losses, "The list of losses")
    yield from right_end(seen, path.end, 1, "the head")
    yield from quiet(seen, len(case.given["sizes"]), training=False, free=True)
    made, count = len(seen["steps"]), len(case.given["sizes"])
    yield Finding("steps", made == count, f"The given optimizer stepped {made} times; there are {count} batches.")
    recorded = any(run["recorded"] for run in seen["runs"] if run["shape"][-1:] == [5])
    text = "What the backbone returned had a graph. Nothing in there is to be trained, so nothing need be recorded."
    yield Finding("recorded", not recorded, text)


fine_tune = Exercise(
    id="fine_tune",
    title="A frozen backbone that moves",
    lesson=LESSON,
    difficulty=4,
    minutes=20,
    points=3,
    call="fine_tune(backbone, head, optimizer, batches)",
    cases=head_cases,
    judge=_judge_tuned,
    hints=(
        "Copy backbone.state_dict() before the loop and compare it after each step. Parameters change and buffers "
        "change: two causes.",
        "The optimizer never looks at requires_grad. It looks at .grad, and the backbone has gradients left from "
        "earlier. And batch norm updates its statistics in training mode, gradients or not.",
        "backbone.eval(); clear with optimizer.zero_grad(), which knows the backbone as well: where .grad is None, "
        "momentum and weight decay are skipped. Compute the features under no_grad.",
    ),
    misconceptions=(
        Misconception(
            "old gradients",
            "The backbone's buffers stayed, its parameters did not. The optimizer moves whatever has a gradient in "
            ".grad, and the backbone's parameters had one.",
            lambda case, seen: (
                not _frozen(seen["parameters"][0], _tuned(case)[1]) and _frozen(seen["buffers"][0], _tuned(case)[2])
            ),
        ),
        Misconception(
            "running statistics",
            "The backbone's parameters stayed, its buffers did not: batch norm was in training mode.",
            lambda case, seen: (
                _frozen(seen["parameters"][0], _tuned(case)[1]) and not _frozen(seen["buffers"][0], _tuned(case)[2])
            ),
        ),
        Misconception(
            "recorded for nothing",
            "All numbers are right. But the backbone's forward was recorded, and its tensors were saved, for a "
            "gradient that nobody wants.",
            lambda case, seen: (
                _frozen(seen["parameters"][0], _tuned(case)[1])
                and _frozen(seen["buffers"][0], _tuned(case)[2])
                and reached(seen, _tuned(case)[0].end, 1)
                and any(run["recorded"] for run in seen["runs"] if run["shape"][-1:] == [5])
            ),
        ),
        Refused(
            "everything under no_grad",
            "Your code ended because the loss had no graph: the head must be recorded, and only the backbone need not.",
            words="does not require grad and does not have a grad_fn",
        ),
    ),
)


# The best model.


def _best_cases(seed: int) -> list[Case]:
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


def _judge_best(case: Case, seen: Observation) -> Iterator[Finding]:
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


fit_best = Exercise(
    id="fit_best",
    title="The best model of a run",
    lesson=LESSON,
    difficulty=4,
    minutes=20,
    points=3,
    call="fit_best(model, optimizer, batches, validation, epochs)",
    cases=_best_cases,
    judge=_judge_best,
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
