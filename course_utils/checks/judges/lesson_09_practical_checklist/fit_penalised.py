"""Judging `fit_penalised`: a loss made of numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch
from torch.nn.functional import mse_loss

from course_utils.checks.data import Case, Observation
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
from course_utils.checks.judges.lesson_09_practical_checklist.session import floats, one_step_each, quiet, work_done
from course_utils.checks.judges.lesson_09_practical_checklist.slips import CLEARING, Slips, found, led, uncleared
from course_utils.checks.scenes.lesson_09_practical_checklist.fit_penalised import penalised
from course_utils.checks.scenes.lesson_09_practical_checklist.training import RATE, regression

_PENALTY, _ERROR = "a penalty without a gradient", "an error without a gradient"
_ZEROS = "zeros for what is frozen"
_LIVE, _NAMES, _LATER = "the frozen ones left out", "one counted by its names", "the penalty after the step"

_SLIPS = ((_PENALTY, _ERROR), CLEARING)


def _cases(seed: int) -> list[Case]:
    return [
        Case("three batches", {"seed": seed, "sizes": [5, 5, 6], "weight": 0.07}),
        Case("a strong penalty", {"seed": seed + 1, "sizes": [4, 7], "weight": 1.5, "far": 2e4}),
        Case(
            "a frozen bias, a parameter that the forward does not use, and one with two names",
            {"seed": seed + 2, "sizes": [4, 6, 3], "weight": 0.2, "oddities": True, "left": True, "momentum": 0.9},
        ),
        Case(
            "a frozen bias that the optimizer holds",
            {"seed": seed + 3, "sizes": [3, 4], "weight": 0.3, "oddities": True, "holds all": True},
        ),
        Case(
            "a frozen bias with an old gradient, and the optimizer holds it",
            {
                "seed": seed + 4,
                "sizes": [3, 4],
                "weight": 0.3,
                "oddities": True,
                "holds all": True,
                "old": True,
                "decay": 0.1,
            },
        ),
    ]


def _penalised(case: Case, slips: Slips = frozenset()) -> Path:
    (model, _), weight, decay = penalised(case), case.given["weight"], case.given.get("decay", 0.0)
    fixed = {name: it.detach().clone() for name, it in model.named_parameters() if not it.requires_grad}

    named = Counter(id(it) for _, it in model.named_parameters(remove_duplicate=False))
    counts = {name: named[id(it)] if _NAMES in slips else 1 for name, it in model.named_parameters()}
    if _LIVE in slips:
        counts |= dict.fromkeys(fixed, 0)

    def loss(inputs: torch.Tensor, targets: torch.Tensor) -> Callable[[State], torch.Tensor]:
        def of(state: State) -> torch.Tensor:
            squares = torch.stack([counts[name] * it.square().sum() for name, it in state.items()])
            error, penalty = mse_loss(on(model, inputs, state), targets), weight * squares.sum()
            counted = error.detach() if _ERROR in slips else error
            whole: torch.Tensor = counted + (penalty.detach() if _PENALTY in slips else penalty)
            return whole

        return of

    def held(state: State) -> State:
        """Return the state with what is frozen; weight decay shrinks that where it has zeros for a gradient."""
        for name, it in fixed.items():
            fixed[name] = it * (1 - RATE * decay) if _ZEROS in slips else it
        return {**state, **fixed}

    losses = [loss(*batch) for batch in regression(case)]
    return descend(
        parameters_of(model),
        losses,
        RATE,
        momentum=case.given.get("momentum", 0.0),
        decay=decay,
        afterwards=held,
        **found(slips, model),
    )


def _end(case: Case, slips: Slips) -> State:
    return _penalised(case, slips).end


def _given_no_gradient(case: Case, seen: Observation) -> bool:
    return reached(seen, parameters_of(penalised(case)[0]))


def _counted(slip: str) -> Callable[[Case, Observation], bool]:
    """Tell a loop that follows and returns the losses of another penalty, where the case shows the difference."""

    def told(case: Case, seen: Observation) -> bool:
        path = _penalised(case, frozenset({slip}))
        return (
            path.losses != _penalised(case).losses
            and floats(seen["returned"], path.losses, "").ok
            and reached(seen, path.end)
        )

    return told


def _penalty_later(case: Case, seen: Observation) -> bool:
    """Tell losses whose error is that before the step, and whose penalty is that after it."""
    path = _penalised(case)
    states = [parameters_of(penalised(case)[0]), *path.states]
    penalties = [case.given["weight"] * sum(float(it.square().sum()) for it in state.values()) for state in states]
    losses = [loss - old + new for loss, old, new in zip(path.losses, penalties[:-1], penalties[1:], strict=True)]
    return floats(seen["returned"], losses, "").ok and reached(seen, path.end)


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    right = _penalised(case)
    yield one_step_each(seen, len(case.given["sizes"]))
    yield from quiet(seen)
    yield floats(seen["returned"], right.losses, "The list of losses")
    yield from right_end(seen, right.end)


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, _ = seen[0]
    model, _ = penalised(case)
    (inputs, targets), *_ = regression(case)
    error = mse_loss(model(inputs), targets)
    squares = sum(float(it.detach().square().sum()) for it in model.parameters())
    yield from work_done(
        seen,
        f"In its first step the error was {float(error):.2f} and the penalty {case.given['weight'] * squares:.2f}: as "
        "numbers they would have shown the same losses there, and moved nothing.",
    )


def _told_elsewhere(*ideas: Misconception) -> tuple[Misconception, ...]:
    """Return ideas that say nothing of the case with an old gradient: there more than what they know has moved."""

    def elsewhere(idea: Misconception) -> Misconception:
        return replace(idea, seen=lambda case, seen: None if case.given.get("old") else idea.seen(case, seen))

    return tuple(map(elsewhere, ideas))


EXERCISE = Exercise(
    id="fit_penalised",
    title="A loss made of numbers",
    lesson=LESSON,
    difficulty=2,
    minutes=10,
    points=2,
    call="fit_penalised(model, optimizer, batches, weight)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "Print loss.grad_fn. What does it tell about the way from the loss to the model?",
        "A Python number has no graph. Find every place where the loss, or a part of it, becomes a number. There are "
        "two.",
        "Keep the error as the tensor that mse_loss returns. Add up p.pow(2).sum() over the parameters as tensors. "
        "Their weighted sum is the loss. Take .item() only for the list.",
    ),
    misconceptions=(
        Misconception(
            _LIVE,
            "Your penalty leaves out what is frozen. It counts all parameters; the frozen ones do not move by it.",
            _counted(_LIVE),
        ),
        Misconception(
            _NAMES,
            "Your penalty counts a parameter with two names twice. It counts each one once, as model.parameters() "
            "gives it.",
            _counted(_NAMES),
        ),
        Misconception(
            _LATER,
            "In your losses the error is that before the step and the penalty that after it. Both belong to the loss "
            "from which the step's gradient comes.",
            _penalty_later,
        ),
        *_told_elsewhere(
            Misconception(
                "no way back",
                "Your loop ran, and no parameter of the model moved: no gradient of the loss took part in a step. A "
                "loss that is made anew from a number has no way back to the parameters; and nothing moves either "
                "where gradients are cleared before the step, or no step is made.",
                _given_no_gradient,
            ),
            Misconception(
                _PENALTY,
                "The parameters went the way of the error alone: no gradient of the penalty took part in the steps.",
                lambda case, seen: not _given_no_gradient(case, seen) and led(_PENALTY, _SLIPS, _end)(case, seen),
                hint="Look at what sum(...) adds up: tensors with a grad_fn, or numbers that .item() made?",
            ),
            Misconception(
                _ERROR,
                "The parameters went the way of the penalty alone: no gradient of the error took part in the steps.",
                lambda case, seen: not _given_no_gradient(case, seen) and led(_ERROR, _SLIPS, _end)(case, seen),
            ),
            *uncleared(_SLIPS, _end),
        ),
        Misconception(
            _ZEROS,
            "A frozen parameter moved as if its .grad held zeros. This optimizer has weight decay, which moves "
            "whatever has a gradient, be it zero. It passes over None.",
            lambda case, seen: bool(case.given.get("decay")) and reached(seen, _end(case, frozenset({_ZEROS}))),
        ),
    ),
)
