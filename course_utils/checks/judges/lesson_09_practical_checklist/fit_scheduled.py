"""Judging `fit_scheduled`: a schedule out of step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch.nn.functional import mse_loss

from course_utils.checks.compare import close
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_09_practical_checklist import LESSON
from course_utils.checks.judges.lesson_09_practical_checklist.descent import (
    Path,
    State,
    descend,
    on,
    parameters_of,
    right_end,
)
from course_utils.checks.judges.lesson_09_practical_checklist.session import floats, quiet, work_done
from course_utils.checks.judges.lesson_09_practical_checklist.slips import (
    CLEARING,
    Slips,
    found,
    uncleared,
    unmoved,
    zeroed,
)
from course_utils.checks.scenes.lesson_09_practical_checklist.training import RATE, network, regression


def _cases(seed: int) -> list[Case]:
    return [
        Case(
            "four epochs",
            {
                "seed": seed,
                "sizes": [5, 3],
                "epochs": 4,
                "far": 2e4,
                "factors": [0.9, 0.7, 0.3, 0.1, 0.05, 0.02, 0.01, 0.004, 0.001],
            },
        ),
        Case(
            "warming up, with momentum, old gradients and a part that evaluates",
            {
                "seed": seed + 1,
                "sizes": [4, 6, 3],
                "epochs": 3,
                "factors": [0.12345, 0.5, 0.5, 0.6, 0.2, 0.1, 0.05, 0.04, 0.03, 0.02],
                "by ratios": True,
                "oddities": True,
                "left": True,
                "momentum": 0.9,
                "decay": 0.05,
            },
        ),
    ]


def _rates(case: Case, shift: int = 0, by_batch: bool = False) -> list[float]:
    """Return the rate of every step."""
    factors, count = case.given["factors"], len(case.given["sizes"])
    numbered = range(count * case.given["epochs"])
    steps = [(number if by_batch else number // count) + shift for number in numbered]
    return [RATE * factors[min(step, len(factors) - 1)] for step in steps]


def _scheduled(case: Case, slips: Slips = frozenset()) -> Path:
    model = network(case)
    fixed = {name: it.detach().clone() for name, it in model.named_parameters() if not it.requires_grad}

    def loss(inputs: torch.Tensor, targets: torch.Tensor) -> Callable[[State], torch.Tensor]:
        return lambda state: mse_loss(on(model, inputs, state), targets)

    losses = [loss(*batch) for batch in regression(case)] * case.given["epochs"]
    return descend(
        parameters_of(model),
        losses,
        _rates(case),
        momentum=case.given.get("momentum", 0.0),
        decay=case.given.get("decay", 0.0),
        afterwards=lambda state: {**state, **fixed},
        **found(slips, model, idle={"spare"}),
    )


def _end(case: Case, slips: Slips) -> State:
    return _scheduled(case, slips).end


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, _ = seen[0]
    used = list(dict.fromkeys(_rates(case, by_batch=True)))
    yield from work_done(
        seen,
        f"Its rates were {_shown(_rates(case)[:: len(case.given['sizes'])])}. With a step of the scheduler after each "
        f"batch they would have been {_shown(used)}.",
    )


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    count = len(case.given["sizes"])
    turned, epochs = seen["scheduler"], case.given["epochs"]
    yield from quiet(seen)
    text = f"After {epochs} epochs the scheduler counts {turned}: one step() after each epoch makes {epochs}."
    yield Finding("turns", turned == epochs, text)
    yield floats(seen["returned"], _rates(case)[::count], "The list of rates")
    used = [step["rate"] for step in seen["steps"]]
    text = f"The optimizer stepped with the rates {_shown(used)}. These are not the schedule's, epoch by epoch."
    if len(used) != count * epochs:
        made = "1 step" if len(used) == 1 else f"{len(used)} steps"
        text = f"The optimizer made {made} in {epochs} epochs of {count} batches; one for each batch makes "
        text += f"{count * epochs}."
    text = text if used else "The optimizer that your function was given made no step."
    yield Finding("rates", _alike(used, _rates(case)), text)
    yield from right_end(seen, _scheduled(case).end)
    due = _rates(case, shift=epochs)[:1]
    text = f"After your loop the optimizer's rate is {_shown([seen['rate']])}. {epochs} steps of the scheduler make it "
    text += f"{_shown(due)}."
    yield Finding("rate", turned != epochs or _alike([seen["rate"]], due), text)


def _shown(rates: Sequence[object]) -> str:
    return ", ".join(f"{rate:.4g}" if isinstance(rate, float) else "?" for rate in rates)


def _alike(used: Sequence[object], right: list[float]) -> bool:
    return len(used) == len(right) and all(
        isinstance(mine, float) and close(mine, it) for mine, it in zip(used, right, strict=True)
    )


def _used(seen: Observation) -> list[object]:
    return [step["rate"] for step in seen["steps"]]


EXERCISE = Exercise(
    id="fit_scheduled",
    title="A schedule out of step",
    lesson=LESSON,
    difficulty=2,
    minutes=10,
    points=2,
    call="fit_scheduled(model, optimizer, scheduler, batches, epochs)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "Print the rate at every optimizer step, beside the rates that the schedule names. Where do they part?",
        "The scheduler counts epochs. It sets the rate for what comes next, so it steps after the work, not before.",
        "Note the rate at the beginning of an epoch, run all its batches, then call scheduler.step() once.",
    ),
    misconceptions=(
        Misconception(
            "scheduler first",
            "The first rate of the schedule was never used: the scheduler stepped before the epoch that it was for.",
            lambda case, seen: (
                _alike(_used(seen), _rates(case, shift=1)) or _alike(_used(seen), _rates(case, shift=1, by_batch=True))
            ),
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
            "Every step had its rate. But the list names the rates that the scheduler had set for the epochs after.",
            lambda case, seen: (
                _alike(_used(seen), _rates(case))
                and isinstance(seen["returned"], list)
                and _alike(seen["returned"], _rates(case, shift=1)[:: len(case.given["sizes"])])
            ),
        ),
        *uncleared((CLEARING,), _end),
        zeroed(_end),
        unmoved(lambda case: parameters_of(network(case))),
    ),
)
