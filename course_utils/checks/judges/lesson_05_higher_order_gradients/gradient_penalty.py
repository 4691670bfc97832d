"""Judging `gradient_penalty`: the gradient penalty of a critic."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import torch
from torch import nn
from torch.func import functional_call

from course_utils.checks.compare import close, counted, listed, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_05_higher_order_gradients import LESSON
from course_utils.checks.judges.lesson_05_higher_order_gradients.untouched import untouched
from course_utils.checks.judges.loops import times
from course_utils.checks.judges.remembered import Named, remembered
from course_utils.checks.scenes.lesson_05_higher_order_gradients.gradient_penalty import critic_of
from course_utils.checks.scenes.lesson_05_higher_order_gradients.maps import doubles

_DEAD = "a sample whose gradient is zero"


def _cases(seed: int) -> Iterator[Case]:
    trials: dict[str, tuple[tuple[int, ...], bool, bool]] = {
        "vectors": ((3, 3), False, False),
        "images": ((3, 2, 5, 4), True, False),
        "a critic with a frozen layer, and a single sample": ((1, 3), False, True),
        _DEAD: ((3, 3), False, False),
    }
    for offset, (name, (shape, images, frozen)) in enumerate(trials.items()):
        real, fake = doubles(seed + offset, *shape), doubles(seed + offset + 10, *shape)
        generator = torch.Generator().manual_seed(seed + offset)
        rows = (shape[0], *[1] * (len(shape) - 1))
        mix = torch.rand(rows, generator=generator, dtype=torch.float64) * 0.8 + 0.1
        if name == "vectors":
            mix[0], mix[1] = 0, 1
        if name == _DEAD:  # no unit lets the first point through, and each other point goes through all
            real, fake = real.abs() + 1, fake.abs() + 1
            real[0], fake[0] = -real[0], -fake[0]
        given = {"real": Array.of(real), "fake": Array.of(fake), "mix": Array.of(mix)}
        facts = {"images": images, "frozen": frozen, "leaf": frozen, "dead": name == _DEAD, "seed": seed + offset}
        yield Case(name, {**given, **facts})


def _gradients_of_scores(case: Case, values: Named, critic: nn.Module, share: float = 1.0) -> torch.Tensor:
    """Return the gradient of each sample's own score at the mixed points. `share` weighs the fake ones."""
    real, fake, mix = (case.given[name].tensor() for name in ("real", "fake", "mix"))
    points = mix * real + share * (1 - mix) * fake

    def score(point: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = functional_call(critic, values, (point[None],)).sum()
        return result

    result: torch.Tensor = torch.func.vmap(torch.func.grad(score))(points)
    return result


_Penalty: TypeAlias = Callable[[torch.Tensor], torch.Tensor]


def _mean_square(gradients: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = (gradients.flatten(1).norm(dim=1) - 1).square().mean()
    return result


def _penalty(case: Case, of: _Penalty = _mean_square) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """Return a penalty, and its gradients for the critic's parameters that learn."""
    critic = critic_of(case)
    learning = {name: p.detach() for name, p in critic.named_parameters() if p.requires_grad}
    gradients, value = torch.func.grad_and_value(lambda values: of(_gradients_of_scores(case, values, critic)))(
        learning
    )
    return value.detach(), [gradient.detach() for gradient in gradients.values()]


@remembered
def _right_penalty(case: Case) -> tuple[torch.Tensor, list[torch.Tensor]]:
    return _penalty(case)


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    value, gradients = _right_penalty(case)
    yield _same(case, seen["returned"], value, "The penalty")
    text = "The penalty has no graph, so no gradient reaches the critic's parameters."
    alone = not isinstance(seen["returned"], list | dict)  # of several, nobody knows which has a graph
    yield Finding("recorded", seen["recorded"] or not alone, text)
    received = seen["gradients"]
    if isinstance(received, list) and len(received) == len(gradients):
        yield from _same_gradients(case, received, gradients)
    elif isinstance(received, str):
        spent = "a pass has already gone through a part of its graph" if "second time" in received else received
        yield Finding("usable", False, f"No gradient can be taken of the penalty: {spent.removesuffix('.')}.")
    elif seen["recorded"]:
        yield Finding("one number", False, "The penalty is not one number, so no backward pass can start from it.")
    text = "A gradient reaches what made `fake`. Only the critic is to learn from it."
    yield Finding("maker", not seen["maker"], text)
    yield Finding("calls", seen["calls"] == 1, f"The critic ran {times(seen['calls'])}; it should run once.")
    text = f"Your function changed a parameter of the critic: {listed(seen['touched'])}."
    yield Finding("untouched", seen["touched"] == [], text)
    yield untouched(seen)
    yield Finding("changed", not seen["changed"], f"Your function changed the numbers in {listed(seen['changed'])}.")
    touched = sorted({*seen["requiring"], *seen["held"]})
    text = f"Your function changed requires_grad or .grad of {listed(touched)}."
    yield Finding("inputs", not touched, text)


def _same(case: Case, received: Value, right: torch.Tensor, what: str) -> Finding:
    """Compare in float32 where a norm is zero: some add a small number to its square."""
    if case.given["dead"] and isinstance(received, Array) and received.dtype == "float64":
        return right_value(Array.of(received.tensor().float()), right.float(), what)
    return right_value(received, right, what)


def _same_gradients(case: Case, received: list[Value], right: list[torch.Tensor]) -> Iterator[Finding]:
    for mine, gradient in zip(received, right, strict=True):
        if mine is None and not bool(gradient.any()):
            continue  # the last bias has no part in the penalty
        shape = tuple(gradient.shape)
        yield _same(case, mine, gradient, f"The gradient of the penalty for a parameter of shape {shape}")


def _gave(of: _Penalty) -> Callable[[Case, Observation], bool]:
    """Tell whether the learner's number is this penalty, and not the right one, which of one sample it may be."""

    def gave(case: Case, seen: Observation) -> bool:
        wrong = not close(seen["returned"], _right_penalty(case)[0])
        return wrong and bool(seen["recorded"]) and close(seen["returned"], _penalty(case, of)[0])

    return gave


def _pixelwise(gradients: torch.Tensor) -> torch.Tensor:
    result: torch.Tensor = (gradients.norm(dim=1) - 1).square().mean()
    return result


def _of_the_moving(gradients: torch.Tensor) -> torch.Tensor:
    """Return the penalty over the samples whose gradient is not zero."""
    rows = gradients.flatten(1)
    moving = (rows.detach() != 0).any(dim=1).to(rows)
    result: torch.Tensor = ((rows.norm(dim=1) - 1).square() * moving).sum() / moving.sum()
    return result


def _nan_at_rest(case: Case, seen: Observation) -> bool:
    """Tell a right penalty whose gradient is NaN where a sample's gradient is zero."""
    found = [it.tensor() for it in seen["gradients"] if isinstance(it, Array)]
    right = case.given["dead"] and _same(case, seen["returned"], _right_penalty(case)[0], "").ok
    return right and any(bool(it.isnan().any()) for it in found)


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, ran = next((case, ran) for case, ran in seen if case.name == "vectors")
    samples = case.given["real"].shape[0]
    yield f"For {samples} samples the check saw one run of the critic and {counted(ran['passes'])}."
    yield f"A gradient for each sample by itself would take {samples} passes: the sum of the scores saves them."


EXERCISE = Exercise(
    id="gradient_penalty",
    title="The gradient penalty of a critic",
    lesson=LESSON,
    difficulty=4,
    minutes=20,
    points=4,
    call="gradient_penalty(critic, real, fake, mix)",
    cases=_cases,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "The gradient is taken for the points, and then differentiated for the parameters. One pass runs in "
        "your function; the caller runs the other.",
        "Each sample's score depends on that sample alone, so one pass from the sum of the scores gives all the "
        "gradients. The norm of a sample runs over everything but the first dimension.",
        "points = (mix * real + (1 - mix) * fake).detach().requires_grad_(); gradients of critic(points).sum() for "
        "points with create_graph=True; flatten(1), norm over dimension 1, minus 1, squared, mean.",
    ),
    misconceptions=(
        Misconception(
            "a root of zero",
            "Where a sample's gradient is zero, the gradient of your penalty is NaN: the root of a sum of squares has "
            "an infinite slope there, and infinity times zero is NaN. norm() and vector_norm have slope 0 there.",
            _nan_at_rest,
        ),
        Misconception(
            "not recorded",
            "The number is right, but it has no graph: the pass that made the gradient was not recorded. Added to a "
            "loss, it would change nothing.",
            lambda case, seen: (
                not seen["recorded"] and not seen["recorded passes"] and close(seen["returned"], _penalty(case)[0])
            ),
        ),
        Misconception(
            "one norm for the batch",
            "You took one norm over all samples together. Then one sample's large gradient hides the small ones.",
            _gave(lambda gradients: (gradients.norm() - 1).square()),
        ),
        Misconception(
            "a gradient of zero left out",
            "Your mean leaves out a sample whose gradient is zero. It counts, too: its norm is 0, and (0 - 1)² is 1.",
            _gave(_of_the_moving),
        ),
        Misconception(
            "scores averaged",
            "Your gradients are too small by the number of samples, as from a pass that starts from the mean of the "
            "scores.",
            _gave(lambda gradients: _mean_square(gradients / len(gradients))),
        ),
        Misconception(
            "a norm for each pixel",
            "For images you took the norm over the channels only, so each pixel has one. A sample has one gradient.",
            lambda case, seen: case.given["images"] and _gave(_pixelwise)(case, seen),
        ),
    ),
)
