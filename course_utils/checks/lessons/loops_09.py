"""Exercises of lesson 09: loops that learn nothing, or something else than was meant."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch.nn.functional import cross_entropy, mse_loss

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.oracle_09 import (
    LESSON,
    Path,
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
from course_utils.checks.observing.loops_09 import RATE, classes, network, regression


def unmoved(seen: Observation, start: State, module: int = 0) -> bool:
    return reached(seen, start, module)


# Softmax twice, and gradients that are never cleared.


def _class_cases(seed: int) -> list[Case]:
    return [
        Case("three batches", {"seed": seed, "sizes": [5, 7, 4], "scale": 0.5, "rate": 3.0}),
        Case("a model that is very sure", {"seed": seed + 1, "sizes": [6, 5], "scale": 600.0, "rate": 0.1}),
    ]


def _classified(case: Case, *, twice: bool = False, adding: bool = False) -> Path:
    model = network(case, case.given["scale"])

    def loss(inputs: torch.Tensor, targets: torch.Tensor) -> Callable[[State], torch.Tensor]:
        def of(state: State) -> torch.Tensor:
            scores = on(model, inputs, state)
            return cross_entropy(scores.softmax(1) if twice else scores, targets)

        return of

    return descend(parameters_of(model), [loss(*batch) for batch in classes(case)], case.given["rate"], adding=adding)


def _share(case: Case) -> float:
    """Return the share of samples whose highest score was the right one when their batch came."""
    model, path = network(case, case.given["scale"]), _classified(case)
    states = [parameters_of(model), *path.states]
    hits = total = 0
    for state, (inputs, targets) in zip(states, classes(case), strict=False):
        hits += int((on(model, inputs, state).argmax(1) == targets).sum())
        total += len(targets)
    return hits / total


def _judge_classes(case: Case, seen: Observation) -> Iterator[Finding]:
    right = _classified(case)
    yield parts(seen["returned"], 2, "losses, accuracy")
    yield floats(part(seen["returned"], 0), right.losses, "The list of losses")
    yield right_value(part(seen["returned"], 1), _share(case), "The accuracy")
    yield from right_end(seen, right.end)
    yield from quiet(seen, len(case.given["sizes"]))


fit_classes = Exercise(
    id="fit_classes",
    title="A classifier that stays unsure",
    lesson=LESSON,
    difficulty=2,
    minutes=10,
    points=2,
    call="fit_classes(model, optimizer, batches)",
    cases=_class_cases,
    judge=_judge_classes,
    hints=(
        "Two things are wrong. One is in what the loss is given, the other in what the second step finds in .grad.",
        "Read what cross_entropy expects: scores of any size, which it normalises. And ask who clears the gradients.",
        "Give cross_entropy what the model returns. Clear the gradients once in every step, before backward. The "
        "highest score and the highest probability are at the same place, so the accuracy needs no softmax.",
    ),
    misconceptions=(
        Misconception(
            "softmax twice",
            "Your loss takes a softmax of a softmax: cross_entropy has one inside. Probabilities lie between 0 and 1, "
            "so as scores they are never far apart.",
            lambda case, seen: reached(seen, _classified(case, twice=True).end),
        ),
        Misconception(
            "never cleared",
            "Your first step is right. From the second one on, the gradient is the sum of all gradients so far.",
            lambda case, seen: reached(seen, _classified(case, adding=True).end),
        ),
        Misconception(
            "logarithm of a softmax",
            "Your loss is right for moderate scores. For large ones a probability rounds to 0, and its logarithm is "
            "minus infinity.",
            lambda case, seen: case.given["scale"] > 1 and not _finite(seen),
        ),
    ),
)


def _finite(seen: Observation) -> bool:
    found = [it.tensor() for it in seen["parameters"][0].values() if isinstance(it, Array)]
    losses = part(seen["returned"], 0)
    numbers_ = [item for item in losses if type(item) is float] if isinstance(losses, list) else []
    return all(bool(it.isfinite().all()) for it in found) and bool(torch.tensor(numbers_).isfinite().all())


# A loss that was made from numbers.


def _penalty_cases(seed: int) -> list[Case]:
    return [
        Case("three batches", {"seed": seed, "sizes": [5, 3, 6], "weight": 0.07}),
        Case("a strong penalty", {"seed": seed + 1, "sizes": [4, 7], "weight": 0.9}),
        Case(
            "a frozen bias, a parameter that the forward does not use, and one with two names",
            {"seed": seed + 2, "sizes": [4, 6, 3], "weight": 0.2, "oddities": True},
        ),
    ]


def _penalised(case: Case, weight: float) -> Path:
    model = network(case)
    fixed = {name: it.detach().clone() for name, it in model.named_parameters() if not it.requires_grad}

    def loss(inputs: torch.Tensor, targets: torch.Tensor) -> Callable[[State], torch.Tensor]:
        def of(state: State) -> torch.Tensor:
            squares = torch.cat([it.flatten() for it in state.values()])
            return mse_loss(on(model, inputs, state), targets) + weight * (squares @ squares)

        return of

    losses = [loss(*batch) for batch in regression(case)]
    return descend(parameters_of(model), losses, RATE, afterwards=lambda state: {**state, **fixed})


def _judge_penalised(case: Case, seen: Observation) -> Iterator[Finding]:
    right = _penalised(case, case.given["weight"])
    yield floats(seen["returned"], right.losses, "The list of losses")
    yield from right_end(seen, right.end)
    yield from quiet(seen, 2 * len(case.given["sizes"]))  # the two parts of the loss may have a pass each


fit_penalised = Exercise(
    id="fit_penalised",
    title="A loss made of numbers",
    lesson=LESSON,
    difficulty=2,
    minutes=10,
    points=2,
    call="fit_penalised(model, optimizer, batches, weight)",
    cases=_penalty_cases,
    judge=_judge_penalised,
    hints=(
        "Print loss.grad_fn. What does it tell about the way from the loss to the model?",
        "A Python number has no graph. Find every place where the loss, or a part of it, becomes a number. There are "
        "two.",
        "Keep the error as the tensor that mse_loss returns. Add up p.pow(2).sum() over the parameters as tensors. "
        "Their weighted sum is the loss. Take .item() only for the list.",
    ),
    misconceptions=(
        Misconception(
            "no way back",
            "Your loop ran, and no parameter of the model moved. A loss that is made anew from a number has no way "
            "back to them.",
            lambda case, seen: unmoved(seen, parameters_of(network(case))),
        ),
        Misconception(
            "a penalty without a gradient",
            "Your losses contain the penalty, but the parameters went the way of the error alone: the penalty reached "
            "the loss as a number.",
            lambda case, seen: reached(seen, _penalised(case, 0.0).end),
        ),
    ),
)


# A schedule.


def _schedule_cases(seed: int) -> list[Case]:
    return [
        Case(
            "four epochs",
            {
                "seed": seed,
                "sizes": [5, 3],
                "epochs": 4,
                "factors": [1.0, 0.7, 0.3, 0.1, 0.05, 0.02, 0.01, 0.004, 0.001],
            },
        ),
        Case("warming up", {"seed": seed + 1, "sizes": [4, 6, 3], "epochs": 3, "factors": [0.1, 0.5, 1.0, 0.6, 0.2]}),
    ]


def _rates(case: Case, shift: int = 0, by_batch: bool = False) -> list[float]:
    """Return the rate of every step."""
    factors, count = case.given["factors"], len(case.given["sizes"])
    numbered = range(count * case.given["epochs"])
    steps = [(number if by_batch else number // count) + shift for number in numbered]
    return [RATE * factors[min(step, len(factors) - 1)] for step in steps]


def _scheduled(case: Case) -> Path:
    model = network(case)

    def loss(inputs: torch.Tensor, targets: torch.Tensor) -> Callable[[State], torch.Tensor]:
        return lambda state: mse_loss(on(model, inputs, state), targets)

    losses = [loss(*batch) for batch in regression(case)] * case.given["epochs"]
    return descend(parameters_of(model), losses, _rates(case))


def _judge_scheduled(case: Case, seen: Observation) -> Iterator[Finding]:
    count = len(case.given["sizes"])
    yield floats(seen["returned"], _rates(case)[::count], "The list of rates")
    used = [step["rate"] for step in seen["steps"]]
    text = f"The optimizer stepped with the rates {_shown(used)}. These are not the schedule's, epoch by epoch."
    yield Finding("rates", _alike(used, _rates(case)), text)
    yield from right_end(seen, _scheduled(case).end)
    yield from quiet(seen, count * case.given["epochs"])
    turned, epochs = seen["scheduler"], case.given["epochs"]
    text = f"After your loop the optimizer's rate is {_shown([seen['rate']])}, which is not what the schedule names."
    yield Finding("rate", _alike([seen["rate"]], _rates(case, shift=epochs)[:1]), text)
    yield Finding("turns", turned == epochs, f"The scheduler stepped {turned} times in {epochs} epochs.")


def _shown(rates: list[object]) -> str:
    return ", ".join(f"{rate:.4g}" if isinstance(rate, float) else "?" for rate in rates) or "of no step at all"


def _alike(used: list[object], right: list[float]) -> bool:
    return len(used) == len(right) and all(
        isinstance(mine, float) and close(mine, it) for mine, it in zip(used, right, strict=True)
    )


def _used(seen: Observation) -> list[object]:
    return [step["rate"] for step in seen["steps"]]


fit_scheduled = Exercise(
    id="fit_scheduled",
    title="A schedule out of step",
    lesson=LESSON,
    difficulty=2,
    minutes=10,
    points=2,
    call="fit_scheduled(model, optimizer, scheduler, batches, epochs)",
    cases=_schedule_cases,
    judge=_judge_scheduled,
    hints=(
        "Print the rate at every optimizer step, beside the rates that the schedule names. Where do they part?",
        "The scheduler counts epochs. It sets the rate for what comes next, so it steps after the work, not before.",
        "Note the rate at the beginning of an epoch, run all its batches, then call scheduler.step() once.",
    ),
    misconceptions=(
        Misconception(
            "scheduler first",
            "The first rate of the schedule was never used: the scheduler stepped before the epoch that it was for.",
            lambda case, seen: _alike(_used(seen), _rates(case, shift=1)),
        ),
        Misconception(
            "every batch",
            "The scheduler stepped with every batch. Its schedule counts epochs.",
            lambda case, seen: (
                _alike(_used(seen), _rates(case, by_batch=True))
                or _alike(_used(seen), _rates(case, shift=1, by_batch=True))
            ),
        ),
        Misconception(
            "the next epoch's rate",
            "Every step was right. But the list names the rates that the scheduler had set for the epochs after.",
            lambda case, seen: (
                _alike(_used(seen), _rates(case))
                and isinstance(seen["returned"], list)
                and _alike(seen["returned"], _rates(case, shift=1)[:: len(case.given["sizes"])])
            ),
        ),
    ),
)
