"""Judging `fit_best`: the best model of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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
from course_utils.checks.judges.lesson_09_practical_checklist.session import (
    floats,
    one_float,
    one_step_each,
    part,
    parts,
    quiet,
    work_done,
)
from course_utils.checks.judges.lesson_09_practical_checklist.slips import (
    CLEARING,
    Slips,
    found,
    uncleared,
    zeroed,
)
from course_utils.checks.scenes.lesson_09_practical_checklist.fit_best import warm_network
from course_utils.checks.scenes.lesson_09_practical_checklist.training import RATE, double, regression


def _cases(seed: int) -> list[Case]:
    return [
        _best_case("the best in the middle", seed, 4, 1, far=2e4),
        _best_case("the first is the best, a weight has two names, and it comes evaluating", seed + 1, 3, 0, left=True),
        _best_case("the last is the best, and none is good", seed + 2, 3, 2, apart=1e5),
        _best_case("a rate of zero, so all epochs are alike", seed + 3, 2, 0, rate=0.0),
        # The second is nearly as good, and the last is better than the one before it.
        _best_case("the best by very little", seed + 4, 5, 2, far=5.0, further=(2.0, 5e-8, 0.0, 3.0, 1.0)),
    ]


def _best_case(
    name: str,
    seed: int,
    epochs: int,
    best: int,
    rate: float = RATE,
    left: bool = False,
    far: float = 1.0,
    apart: float = 1e-3,
    further: tuple[float, ...] = (),
) -> Case:
    """Make a case whose validation data fit the model of one epoch nearly exactly; with a rate of zero, exactly.

    With another `apart` they are so far from every epoch's, in a direction in which epochs do not differ. `further`
    says by how much the loss of each epoch is larger than the best one's, in a tenth of the mean square by which they
    differ.
    """
    given: dict[str, Any] = {"seed": seed, "sizes": [5, 5, 4], "epochs": epochs, "best": best}
    given |= {"rate": rate, "left": left, "decay": 0.05 * left, "far": far}
    path = _warm_path(Case(name, given))
    inputs = double(seed + 30, 6, 4)
    model = warm_network(Case(name, given)).eval()
    results = torch.stack([on(model, inputs, state) for state in path.states[2::3]]).flatten(1)
    differing = results - results[best]
    beside = double(seed + 31, 18)
    beside = beside - torch.linalg.pinv(differing) @ differing @ beside
    targets = results[best] + (apart * beside if rate else 0)
    if further:
        squares = differing.pow(2).sum(1)
        larger = torch.tensor(further, dtype=torch.float64) * squares.mean() / 10
        targets = results[best] + torch.linalg.pinv(differing) @ ((squares - larger) / 2)
    return Case(name, {**given, "inputs": Array.of(inputs), "targets": Array.of(targets.reshape(6, 3))})


def _warm_path(case: Case, slips: Slips = frozenset()) -> Path:
    names = ("seed", "epochs", "rate", "left", "decay", "far")
    facts = {name: case.given[name] for name in names}
    return _warm_descent(tuple(case.given["sizes"]), slips, **facts)


def _end(case: Case, slips: Slips) -> State:
    return _warm_path(case, slips).end


@lru_cache(maxsize=16)
def _warm_descent(
    sizes: tuple[int, ...], slips: Slips, *, seed: int, epochs: int, rate: float, left: bool, decay: float, far: float
) -> Path:
    case = Case("", {"seed": seed, "sizes": sizes, "left": left, "far": far})
    model = warm_network(case)
    start = parameters_of(model)

    def loss(inputs: torch.Tensor, targets: torch.Tensor) -> Callable[[State], torch.Tensor]:
        def of(state: State) -> torch.Tensor:
            hidden = 1.4 * (inputs @ state["0.weight"].T + state["0.bias"])
            return mse_loss(hidden.tanh() @ state["3.0.0.weight"].T + state["3.0.0.bias"], targets)

        return of

    losses = [loss(*batch) for batch in regression(case)] * epochs
    return descend(start, losses, rate, decay=decay, **found(slips, model, idle={"spare"}))


def _validations(case: Case, states: list[State]) -> list[float]:
    model = warm_network(case).eval()
    inputs, targets = case.given["inputs"].tensor(), case.given["targets"].tensor()
    return [float(mse_loss(on(model, inputs, state), targets)) for state in states]


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    path, count, best = _warm_path(case), len(case.given["sizes"]), case.given["best"]
    history = _validations(case, path.states[count - 1 :: count])
    returned = seen["returned"]
    yield parts(returned, 3, "best_state, best_loss, history")
    yield one_step_each(seen, count * case.given["epochs"])
    yield from quiet(seen, modes=False)
    text = "After your function the model, or a part of it, is in evaluation mode."
    yield Finding("modes", all(seen["training"]), text)
    yield from _state(case, seen, _best_parameters(case))
    yield from one_float(part(returned, 1), history[best], "The best loss")
    yield floats(part(returned, 2), history, "The history")
    yield from right_end(seen, path.end)
    recorded = any(run["recorded"] for run in _runs(seen, validated=True))
    yield Finding("recorded", not recorded, "The validation recorded a graph that nobody uses.")
    mixed = any(not run["evaluating"] for run in _runs(seen, validated=True))
    text = "The model, or a part of it, was in training mode while it was validated."
    yield Finding("validation mode", not mixed, text)
    late = any(run["recorded"] and not run["training"] for run in _runs(seen, validated=False))
    yield Finding("training mode", not late, "The model, or a part of it, was in evaluation mode while it was trained.")


def _runs(seen: Observation, validated: bool) -> list[dict[str, Any]]:
    """Return the runs of the model on the validation data, which alone are 6 rows, or those on batches."""
    return [run for run in seen["runs"] if run["of"] == 0 and (run["shape"] == [6, 3]) is validated]


def _state(case: Case, seen: Observation, right: State) -> Iterator[Finding]:
    state = seen["state"]
    expected = {**right, "1.0.0.runs": torch.tensor(len(case.given["sizes"]) * (case.given["best"] + 1))}
    if case.given["left"]:
        expected["3.again"] = right["0.weight"]
    if not isinstance(state, dict):
        yield Finding("state", False, f"The best state is {describe(state)}; expected all of model.state_dict().")
        return
    if set(state) != set(expected):
        lacks, more = sorted(set(expected) - set(state)), sorted(set(map(str, state)) - set(expected))
        said = [f"lacks {listed(lacks)}, which model.state_dict() has"] if lacks else []
        said += [f"has {listed(more)}, which model.state_dict() has not"] if more else []
        yield Finding("state", False, f"The best state {' and '.join(said)}.")
        return
    own = seen["shared"]
    text = f"Not copied in the best state: {listed(own)}. Training goes on changing what the model's own tensors hold."
    yield Finding("copies", not own, text)
    text = f"The best state's copies have a graph, which lives as long as they do: {listed(seen['copied graphs'])}."
    yield Finding("copied graphs", not seen["copied graphs"], text)
    for name, it in expected.items():
        yield right_value(state[name], it, f"The best state's {name}")


def _validated_with_graphs(seen: Observation) -> bool:
    recorded = [run["recorded"] for run in _runs(seen, validated=True)]
    return bool(recorded) and all(recorded)


def _stayed(case: Case, seen: Observation) -> bool | None:
    """Tell a model that was trained in training mode in the first epoch alone; None where that evaluated, too."""
    modes, first = [run["training"] for run in _runs(seen, validated=False)], len(case.given["sizes"])
    if case.given["left"] and not any(modes):  # it came so
        return None
    return len(modes) > first and all(modes[:first]) and not any(modes[first:])


def _best_parameters(case: Case) -> State:
    last: int = len(case.given["sizes"]) * (case.given["best"] + 1) - 1  # the step with which the best epoch ends
    return _warm_path(case).states[last]


def _validated_first(case: Case, seen: Observation) -> bool | None:
    """Tell losses at the beginning of each epoch; it is None where they are those at the end as well."""
    count, mine = len(case.given["sizes"]), part(seen["returned"], 2)
    states = [parameters_of(warm_network(case)), *_warm_path(case).states[count - 1 :: count]]
    if not _alike(mine, _validations(case, states[:-1])):
        return False
    return None if _alike(mine, _validations(case, states[1:])) else True


def _runs_kept(seen: Observation) -> int | None:
    """Return how often the model had run in training mode when the best state was kept, by its own count."""
    runs = seen["state"].get("1.0.0.runs") if isinstance(seen["state"], dict) else None
    return int(runs.tensor()) if isinstance(runs, Array) and runs.tensor().numel() == 1 else None


def _alike(received: Any, right: list[float]) -> bool:
    same = isinstance(received, list) and len(received) == len(right)
    return same and all(type(mine) is float and close(mine, it) for mine, it in zip(received, right, strict=True))


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, it = seen[0]
    numbers_ = sum(tensor.numel() for tensor in _warm_path(case).end.values()) + 1
    yield from work_done(
        seen,
        f"{len(_runs(it, validated=True))} of these runs were validations. A copy of the state holds {numbers_} "
        "numbers. Copying it in each epoch would hold as many for every epoch.",
    )


EXERCISE = Exercise(
    id="fit_best",
    title="The best model of a run",
    lesson=LESSON,
    difficulty=4,
    minutes=20,
    points=3,
    call="fit_best(model, optimizer, batches, validation, epochs)",
    reaches=("torch.load",),
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
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
            "Your best state holds the model's own tensors, which state_dict() returns: any further training goes on "
            "changing them.",
            lambda case, seen: isinstance(seen["state"], dict) and set(_warm_path(case).end) <= set(seen["shared"]),
        ),
        Misconception(
            "evaluation mode stays",
            "From the second epoch on, the model was trained in evaluation mode. Nobody had switched it back.",
            _stayed,
        ),
        Misconception(
            "validation with a graph",
            "Each validation recorded a graph, which nobody uses.",
            lambda case, seen: seen["graphs"] == 0 and _validated_with_graphs(seen),
        ),
        Misconception(
            "losses with graphs",
            "Each validation recorded a graph, and the losses that you kept are tensors that hold on to theirs.",
            lambda case, seen: (
                seen["graphs"] > 0
                and _validated_with_graphs(seen)
                and isinstance(part(seen["returned"], 2), list)
                and any(isinstance(it, Array) for it in part(seen["returned"], 2))
            ),
        ),
        Misconception(
            "parameters only",
            "Your best state has the parameters and lacks a buffer, which belongs to the state as well.",
            lambda case, seen: isinstance(seen["state"], dict) and set(seen["state"]) == set(_warm_path(case).end),
        ),
        Misconception(
            "the best is loaded",
            "After your function the model holds the numbers of the best epoch. It is to hold those of the last.",
            lambda case, seen: not reached(seen, _warm_path(case).end) and reached(seen, _best_parameters(case)),
        ),
        Misconception(
            "validated first",
            "Your history holds the losses of the model before each epoch, and not that after the last: it was "
            "validated first, and trained afterwards.",
            _validated_first,
        ),
        Misconception(
            "the last of equals",
            "Where the loss of every epoch is 0.0, your best state is that of the last one, and not of the first. "
            "Either what is no better takes its place (ask `<`), or 0.0 counts as none yet (ask `is None`).",
            lambda case, seen: (
                not case.given["rate"] and _runs_kept(seen) == len(case.given["sizes"]) * case.given["epochs"]
            ),
        ),
        *uncleared((CLEARING,), _end),
        zeroed(_end),
    ),
)
