"""Judging `discriminator_step`: a step of the discriminator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import nn
from torch.func import functional_call

from course_utils.checks.compare import close
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_06_detach_vs_no_grad import LESSON
from course_utils.checks.judges.lesson_06_detach_vs_no_grad.games import (
    games,
    moved,
    ran,
    right_number,
    same,
    says_real,
    step_findings,
    value_and_gradient,
)
from course_utils.checks.scenes.lesson_06_detach_vs_no_grad.players import players
from course_utils.graph.trace import nodes_behind


def _points(case: Case, generator: nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the real points and the made ones, which are cut off."""
    return case.given["real"].tensor(), generator(case.given["noise"].tensor()).detach()


def _discriminator_loss(case: Case) -> tuple[float, dict[str, torch.Tensor]]:
    generator, discriminator = players(case)
    real, fake = _points(case, generator)

    def loss(parameters: dict[str, torch.Tensor]) -> torch.Tensor:
        opinions = [functional_call(discriminator, parameters, (points,)) for points in (real, fake)]
        return says_real(opinions[0]) + says_real(-opinions[1])

    return value_and_gradient(loss, discriminator)


def _of_all_points(case: Case, seen: Observation) -> bool:
    """Tell the mean over all opinions together, or twice that, where there are not as many of both kinds."""
    generator, discriminator = players(case)
    real, fake = _points(case, generator)
    mean = float(says_real(torch.cat([discriminator(real), -discriminator(fake)])))
    uneven = len(real) != len(fake) and not close(seen["returned"], _discriminator_loss(case)[0])
    return uneven and any(close(seen["returned"], factor * mean) for factor in (1.0, 2.0))


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    value, gradient = _discriminator_loss(case)
    yield right_number(seen["returned"], value)
    yield from step_findings(seen, "discriminator", _moved(case, gradient))
    yield Finding("other", not seen["generator moved"], "Your step changed the generator's parameters.")
    text = "The generator's .grad is not what it was before your step."
    yield Finding("gradients", seen["generator gradients"], text)
    yield Finding("flags", seen["flags"], "After your step requires_grad is not what it was for every parameter.")
    yield Finding("fakes", seen["fakes"] == 1, ran("generator", seen["fakes"]))
    text = "The generator's run was recorded, and nobody needs that graph: its saved tensors were kept for nothing."
    yield Finding("recorded", not seen["fakes recorded"], text)


def _moved(
    case: Case, gradient: dict[str, torch.Tensor], stale: bool = False, zeros: bool = False
) -> list[torch.Tensor]:
    return moved(players(case)[1], gradient, case.given["rate"], stale, case.given["decay"], zeros)


def _discriminator_from(case: Case, seen: Observation, stale: bool = False, zeros: bool = False) -> bool:
    return same(seen["discriminator"], _moved(case, _discriminator_loss(case)[1], stale, zeros))


def _frozen_moved(case: Case, seen: Observation) -> bool:
    """Return whether all that learns is where it should be, and something frozen is elsewhere."""
    right, parts = _moved(case, _discriminator_loss(case)[1]), list(players(case)[1].parameters())
    mine = seen["discriminator"]
    if not isinstance(mine, list) or len(mine) != len(parts):
        return False
    there = [close(one, other) for one, other in zip(mine, right, strict=True)]
    return not all(there) and all(it or not part.requires_grad for it, part in zip(there, parts, strict=True))


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    nodes = len(list(nodes_behind(players(seen[0][0])[0](seen[0][0].given["noise"].tensor()))))
    yield f"The generator ran once in each case, unrecorded. A recorded run would have made a graph of {nodes} nodes."
    runs = seen[0][1]["opinions"]
    yield f"The discriminator ran {'once, on both kinds of points together' if runs == 1 else f'{runs} times'}."


EXERCISE = Exercise(
    id="discriminator_step",
    title="A step of the discriminator",
    lesson=LESSON,
    difficulty=3,
    minutes=8,
    points=3,
    call="discriminator_step(generator, discriminator, optimizer, real, noise)",
    cases=lambda seed: games(seed)[:-1],  # the last has no gradient for the made points, so it tells no slip apart
    judge=_judge,
    debrief=_debrief,
    hints=(
        "In this step the generator only supplies data. Which switch makes its run cost nothing?",
        "Make the points from noise where nothing is recorded. Everything after that, the discriminator's two runs, "
        "must be recorded. Clear old gradients before the pass.",
        "Under torch.no_grad(): fake = generator(noise). Outside: two times binary_cross_entropy_with_logits, with "
        "ones for discriminator(real) and zeros for discriminator(fake). Add them; zero_grad, backward, step; return "
        "loss.item().",
    ),
    misconceptions=(
        Misconception(
            "recorded for nothing",
            "The step is right, and it wastes memory: the generator ran with recording on, and what it saved was "
            "thrown away. A cut after the run is too late to save that.",
            lambda case, seen: (
                seen["fakes recorded"] and seen["generator gradients"] and _discriminator_from(case, seen)
            ),
        ),
        Misconception(
            "through the generator",
            "Your pass went on through the points into the generator, and left gradients there.",
            lambda case, seen: (
                seen["fakes recorded"] and not seen["generator gradients"] and not seen["generator cleared"]
            ),
        ),
        Misconception(
            "old gradients",
            "Your step added its gradients to those that were there already.",
            lambda case, seen: _discriminator_from(case, seen, stale=True),
        ),
        Misconception(
            "zeros for what is frozen",
            "Your step is right, but for a frozen parameter of the discriminator: it moved as if its .grad held zeros. "
            "This optimizer has weight decay, which moves whatever has a gradient, be it zero. It passes over None.",
            lambda case, seen: case.given["frozen"] and _discriminator_from(case, seen, zeros=True),
        ),
        Misconception(
            "a frozen parameter moved",
            "What learns went where it should, and a frozen parameter of the discriminator moved as well. An optimizer "
            "moves what it holds wherever something is in .grad.",
            lambda case, seen: _frozen_moved(case, seen) and not _discriminator_from(case, seen, zeros=True),
        ),
        Misconception(
            "all points together",
            "Your loss is a mean over the logits of real and of made points together. Where one kind has more points "
            "than the other, it weighs more there. Take the mean of each kind, and add the two.",
            _of_all_points,
        ),
        Misconception(
            "nothing learned",
            "Your step left the discriminator as it was. No gradient of this loss was there when the optimizer "
            "stepped, or it never stepped.",
            lambda case, seen: not seen["discriminator moved"] and seen["opinions"] > 0,
        ),
    ),
)
