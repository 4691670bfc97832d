"""Judging `generator_step`: repair a step of the generator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch.func import functional_call

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


def _generator_loss(case: Case, sign: float = 1.0) -> tuple[float, dict[str, torch.Tensor]]:
    generator, discriminator = players(case)
    noise = case.given["noise"].tensor()

    def loss(parameters: dict[str, torch.Tensor]) -> torch.Tensor:
        return says_real(sign * discriminator(functional_call(generator, parameters, (noise,))))

    return value_and_gradient(loss, generator)


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    value, gradient = _generator_loss(case)
    yield right_number(seen["returned"], value)
    yield from step_findings(seen, "generator", moved(players(case)[0], gradient, case.given["rate"]))
    yield Finding("other", not seen["discriminator moved"], "Your step changed the discriminator's parameters.")
    text = "The discriminator's .grad is not what it was before your step."
    yield Finding("gradients", seen["discriminator gradients"], text)
    yield Finding("flags", seen["flags"], "After your step requires_grad is not what it was for every parameter.")
    for player, word in (("fakes", "generator"), ("opinions", "discriminator")):
        yield Finding(player, seen[player] == 1, ran(word, seen[player]))


def _generator_at(case: Case, seen: Observation, sign: float = 1.0, stale: bool = False) -> bool:
    gradient = _generator_loss(case, sign)[1]
    return same(seen["generator"], moved(players(case)[0], gradient, case.given["rate"], stale))


def _left_behind(case: Case, seen: Observation) -> bool:
    return _generator_at(case, seen) and not seen["discriminator gradients"] and not seen["discriminator moved"]


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    yield (
        "The gradient went through the discriminator to the generator, and the discriminator's .grad holds what it "
        "held before."
    )
    yield "An ordinary backward would have added to it: the discriminator's next step would have begun with that."


EXERCISE = Exercise(
    id="generator_step",
    title="Repair a step of the generator",
    lesson=LESSON,
    difficulty=3,
    minutes=8,
    points=3,
    call="generator_step(generator, discriminator, optimizer, noise)",
    cases=games,
    judge=_judge,
    debrief=_debrief,
    hints=(
        "What tells the generator how to move its points? Follow the gradient from the loss back to them.",
        "The gradient has to go through the discriminator to the points. The discriminator's own parameters need none. "
        "Is there a switch for parameters, or a pass that names the leaves it is for?",
        "Delete detach(). Then loss.backward(inputs=...) with the list of the generator's parameters leaves the others "
        "alone. Or switch off requires_grad for the discriminator's parameters during the forward, and put back what "
        "each of them had.",
    ),
    misconceptions=(
        Misconception(
            "cut at the points",
            "Your step left the generator as it was. No gradient was in its .grad when the optimizer stepped: it ended "
            "before it got there, was cleared, or came only after the step.",
            lambda case, seen: not seen["generator moved"] and seen["steps"] == 1 and seen["passes"] > 0,
            among=frozenset({"moved"}),
        ),
        Misconception(
            "added to the discriminator's gradients",
            "The generator's step is right. But the tensors in the discriminator's .grad, which were to stay as they "
            "were, hold other numbers now: backward adds to them in place. If you kept these tensors and put them "
            "back, the sum came back: keep clones, or let no gradient go there.",
            lambda case, seen: _left_behind(case, seen) and seen["discriminator accumulated"],
        ),
        Misconception(
            "gradients left behind",
            "The generator's step is right. But the discriminator's .grad, which was to stay as it was, is not: your "
            "code cleared or replaced it, or a pass put a gradient where none was.",
            lambda case, seen: _left_behind(case, seen) and not seen["discriminator accumulated"],
        ),
        Misconception(
            "frozen for good",
            "The generator's step is right. But afterwards the discriminator's parameters do not have the "
            "requires_grad that they had, so its own steps would go wrong.",
            lambda case, seen: (
                _generator_at(case, seen) and not seen["discriminator flags"] and seen["discriminator gradients"]
            ),
        ),
        Misconception(
            "old gradients",
            "The generator moved along the right gradient and, on top of it, what earlier steps had left in its .grad.",
            lambda case, seen: _generator_at(case, seen, stale=True),
        ),
        Misconception(
            "the other goal",
            "Your step makes the discriminator more certain that the points are fake. The generator wants the "
            "opposite.",
            lambda case, seen: _generator_at(case, seen, sign=-1.0),
        ),
    ),
)
