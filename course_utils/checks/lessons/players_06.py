"""Exercises of lesson 06 on two players: a discriminator's step and a generator's."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn
from torch.func import functional_call, grad

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.predict_06 import LESSON
from course_utils.checks.observing.models import numbers
from course_utils.checks.observing.scenes_06 import players


def _games(seed: int) -> list[Case]:
    return [
        Case(
            name,
            {
                **{"seed": seed + rows, "frozen": frozen, "rate": 0.3},
                **{"real": Array.of(numbers(seed + 3, rows, 2)), "noise": Array.of(numbers(seed + 4, more, 3))},
            },
        )
        for name, rows, more, frozen in (("five and five", 5, 5, False), ("one bias is frozen", 3, 4, True))
    ]


def _says_real(logits: torch.Tensor) -> torch.Tensor:
    """The cross-entropy of calling these real: log(1 + exp(-logit))."""
    return torch.logaddexp(torch.zeros_like(logits), -logits).mean()


def _moved(model: nn.Module, stepped: dict[str, torch.Tensor], rate: float, stale: bool = False) -> list[torch.Tensor]:
    """Return the parameters after a step of plain gradient descent, with the old gradients added if `stale`."""
    result = []
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad or name not in stepped:
            left = parameter.detach()
            result.append(left - rate * parameter.grad if stale and parameter.grad is not None else left)
            continue
        gradient = stepped[name]
        if stale and parameter.grad is not None:
            gradient = gradient + parameter.grad
        result.append(parameter.detach() - rate * gradient)
    return result


def _discriminator_loss(case: Case) -> tuple[float, dict[str, torch.Tensor]]:
    generator, discriminator = players(case)
    real, fake = case.given["real"].tensor(), generator(case.given["noise"].tensor()).detach()

    def loss(parameters: dict[str, torch.Tensor]) -> torch.Tensor:
        opinions = [functional_call(discriminator, parameters, (points,)) for points in (real, fake)]
        return _says_real(opinions[0]) + _says_real(-opinions[1])

    return _value_and_gradient(loss, discriminator)


def _generator_loss(case: Case, sign: float = 1.0) -> tuple[float, dict[str, torch.Tensor]]:
    generator, discriminator = players(case)
    noise = case.given["noise"].tensor()

    def loss(parameters: dict[str, torch.Tensor]) -> torch.Tensor:
        return _says_real(sign * discriminator(functional_call(generator, parameters, (noise,))))

    return _value_and_gradient(loss, generator)


def _value_and_gradient(loss: object, model: nn.Module) -> tuple[float, dict[str, torch.Tensor]]:
    assert callable(loss)
    start = {name: parameter.detach() for name, parameter in model.named_parameters()}
    return float(loss(start).detach()), grad(loss)(start)


def _same(received: Value, right: list[torch.Tensor]) -> bool:
    return (
        isinstance(received, list)
        and len(received) == len(right)
        and all(close(mine, it) for mine, it in zip(received, right, strict=True))
    )


def _right_number(received: Value, right: float) -> Finding:
    if type(received) is not float:
        tensor = isinstance(received, Array)
        kind = "a tensor; a tensor may bring its graph along" if tensor else "no Python float"
        return Finding("number", False, f"The loss that you returned is {kind}. Expected a Python float.")
    return right_value(Array.of(torch.tensor(received)), torch.tensor(right), "The loss that you returned")


def _step_findings(seen: Observation, moved: str, right: list[torch.Tensor]) -> Iterator[Finding]:
    steps = seen["steps"]
    yield Finding("steps", steps == 1, f"The optimizer made {steps} steps. Expected one.")
    text = f"After your step the {moved}'s parameters are not where one step on this loss leads."
    yield Finding("moved", _same(seen[moved], right), text)
    text = "After your step a part of a player is in another mode, or recording is switched otherwise than before."
    yield Finding("modes", seen["modes"], text)
    yield Finding("hooks", seen["hooks"], "Your step left a hook on a player, or removed one.")
    text = "After your step the graph still holds its saved tensors, as if another pass were to follow."
    yield Finding("freed", not seen["held"], text)


# The discriminator.


def _judge_discriminator(case: Case, seen: Observation) -> Iterator[Finding]:
    value, gradient = _discriminator_loss(case)
    yield _right_number(seen["returned"], value)
    yield from _step_findings(seen, "discriminator", _moved(players(case)[1], gradient, case.given["rate"]))
    yield Finding("other", not seen["generator moved"], "Your step changed the generator's parameters.")
    text = "The generator's .grad is not what it was before your step."
    yield Finding("gradients", seen["generator gradients"], text)
    yield Finding("flags", seen["flags"], "After your step requires_grad is not what it was for every parameter.")
    text = f"The generator ran {seen['fakes']} times. Expected one run."
    yield Finding("fakes", seen["fakes"] == 1, text)
    text = "The generator's run was recorded, and nobody needs that graph: its saved tensors were kept for nothing."
    yield Finding("recorded", not seen["fakes recorded"], text)


def _discriminator_from(case: Case, seen: Observation, stale: bool) -> bool:
    gradient = _discriminator_loss(case)[1]
    return _same(seen["discriminator"], _moved(players(case)[1], gradient, case.given["rate"], stale))


discriminator_step = Exercise(
    id="discriminator_step",
    title="A step of the discriminator",
    lesson=LESSON,
    difficulty=3,
    minutes=12,
    points=3,
    call="discriminator_step(generator, discriminator, optimizer, real, noise)",
    cases=_games,
    judge=_judge_discriminator,
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
                seen["fakes recorded"] and seen["generator gradients"] and _discriminator_from(case, seen, False)
            ),
        ),
        Misconception(
            "through the generator",
            "Your pass went on through the points into the generator, and left gradients there.",
            lambda case, seen: seen["fakes recorded"] and not seen["generator gradients"],
        ),
        Misconception(
            "old gradients",
            "Your step added its gradients to those that were there already.",
            lambda case, seen: _discriminator_from(case, seen, True),
        ),
        Misconception(
            "nothing learned",
            "Your step left the discriminator as it was: its own runs were cut off, or the optimizer made no step.",
            lambda case, seen: not seen["discriminator moved"] and seen["opinions"] > 0,
        ),
    ),
)

# The generator.


def _judge_generator(case: Case, seen: Observation) -> Iterator[Finding]:
    value, gradient = _generator_loss(case)
    yield _right_number(seen["returned"], value)
    yield from _step_findings(seen, "generator", _moved(players(case)[0], gradient, case.given["rate"]))
    yield Finding("other", not seen["discriminator moved"], "Your step changed the discriminator's parameters.")
    text = "The discriminator's .grad is not what it was before your step."
    yield Finding("gradients", seen["discriminator gradients"], text)
    yield Finding("flags", seen["flags"], "After your step requires_grad is not what it was for every parameter.")
    for player, word in (("fakes", "generator"), ("opinions", "discriminator")):
        yield Finding(player, seen[player] == 1, f"The {word} ran {seen[player]} times. Expected one run.")


def _generator_at(case: Case, seen: Observation, sign: float = 1.0, stale: bool = False) -> bool:
    gradient = _generator_loss(case, sign)[1]
    return _same(seen["generator"], _moved(players(case)[0], gradient, case.given["rate"], stale))


generator_step = Exercise(
    id="generator_step",
    title="Repair a step of the generator",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=3,
    call="generator_step(generator, discriminator, optimizer, noise)",
    cases=_games,
    judge=_judge_generator,
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
            "Your step left the generator as it was. The gradient ended before it reached the generator.",
            lambda case, seen: not seen["generator moved"],
        ),
        Misconception(
            "gradients left behind",
            "The generator's step is right. But your pass also added to, or cleared, the discriminator's .grad, which "
            "was to stay as it was.",
            lambda case, seen: (
                _generator_at(case, seen) and not seen["discriminator gradients"] and not seen["discriminator moved"]
            ),
        ),
        Misconception(
            "frozen for good",
            "The generator's step is right. But afterwards the discriminator's parameters do not have the "
            "requires_grad that they had, so its own steps would go wrong.",
            lambda case, seen: _generator_at(case, seen) and not seen["flags"] and seen["discriminator gradients"],
        ),
        Misconception(
            "the other goal",
            "Your step makes the discriminator more certain that the points are fake. The generator wants the "
            "opposite.",
            lambda case, seen: _generator_at(case, seen, sign=-1.0),
        ),
    ),
)
