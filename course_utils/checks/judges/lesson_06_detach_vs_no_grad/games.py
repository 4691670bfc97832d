"""Two players: what a step of one should do to both."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn
from torch.func import grad

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Finding
from course_utils.checks.judges.loops import times
from course_utils.checks.scenes.numbers import numbers


def games(seed: int) -> list[Case]:
    return [
        Case(
            name,
            {
                **{"seed": seed + rows, "frozen": frozen, "sure": sure, "steep": steep, "rate": 0.3},
                "decay": 0.1 * frozen,  # moves what has a gradient, be it zeros
                "real": Array.of(steep * numbers(seed + 3, rows, 2)),
                "noise": Array.of(steep * numbers(seed + 4, more, 3)),
            },
        )
        for name, rows, more, frozen, sure, steep in (
            ("five and five", 5, 5, False, 0.0, 1e6),
            ("one bias is frozen", 3, 4, True, 0.0, 1.0),
            ("large logits", 4, 4, False, 150.0, 1.0),
            ("large negative logits", 2, 3, False, -200.0, 1.0),
        )
    ]


def says_real(logits: torch.Tensor) -> torch.Tensor:
    """The cross-entropy of calling these real: log(1 + exp(-logit))."""
    return torch.logaddexp(torch.zeros_like(logits), -logits).mean()


def moved(
    model: nn.Module,
    stepped: dict[str, torch.Tensor],
    rate: float,
    stale: bool = False,
    decay: float = 0.0,
    zeros: bool = False,
) -> list[torch.Tensor]:
    """Return the parameters after a step of plain gradient descent with weight decay.

    With `stale` the old gradients are added; with `zeros` what is frozen has zeros for a gradient.
    """
    result = []
    for name, parameter in model.named_parameters():
        start = parameter.detach()
        gradient = stepped.get(name) if parameter.requires_grad else torch.zeros_like(start) if zeros else None
        if stale and parameter.grad is not None:
            gradient = parameter.grad if gradient is None else gradient + parameter.grad
        result.append(start if gradient is None else start - rate * (gradient + decay * start))
    return result


def value_and_gradient(loss: object, model: nn.Module) -> tuple[float, dict[str, torch.Tensor]]:
    assert callable(loss)
    start = {name: parameter.detach() for name, parameter in model.named_parameters()}
    return float(loss(start).detach()), grad(loss)(start)


def same(received: Value, right: list[torch.Tensor]) -> bool:
    return (
        isinstance(received, list)
        and len(received) == len(right)
        and all(close(mine, it) for mine, it in zip(received, right, strict=True))
    )


def ran(player: str, runs: int) -> str:
    return f"The {player} ran {times(runs)}. Expected one run."


def right_number(received: Value, right: float) -> Finding:
    if type(received) is not float:
        tensor = isinstance(received, Array)
        kind = "a tensor; a tensor may bring its graph along" if tensor else "no Python float"
        return Finding("number", False, f"The loss that you returned is {kind}. Expected a Python float.")
    return right_value(Array.of(torch.tensor(received)), torch.tensor(right), "The loss that you returned")


def step_findings(seen: Observation, moved: str, right: list[torch.Tensor]) -> Iterator[Finding]:
    steps = seen["steps"]
    made = "1 step" if steps == 1 else f"{steps} steps"
    yield Finding("steps", steps == 1, f"The optimizer made {made}. Expected one.")
    text = f"After your step the {moved}'s parameters are not where one step on this loss leads."
    yield Finding("moved", same(seen[moved], right), text)
    text = "After your step a part of a player is in another mode, or recording is switched otherwise than before."
    yield Finding("modes", seen["modes"], text)
    yield Finding("hooks", seen["hooks"], "Your step left a hook on a player, or removed one.")
    yield Finding("kept", not seen["kept"], "A pass of your step kept its graph. No pass has to.")
