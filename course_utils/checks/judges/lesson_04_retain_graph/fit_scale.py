"""Judging `fit_scale`: remove needless retention from a loop."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import combinations
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from course_utils.checks.compare import close, right_floats, right_value
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_04_retain_graph import LESSON
from course_utils.checks.judges.loops import cleared_otherwise, lean, moved, no_gradient, retains, turns
from course_utils.checks.scenes.lesson_04_retain_graph.fit_scale import scaled_classifier


def _cases(seed: int) -> list[Case]:
    sizes = {"three batches": [5, 1, 3], "two batches": [6, 5]}  # one sample; as many as there are classes
    return [
        Case(name, {"seed": seed + n, "sizes": size, "start": 0.3 + 2.5 * n})
        for n, (name, size) in enumerate(sizes.items())
    ]


def _fitted(
    case: Case, scaled: str = "anew", cleared: str = "each time", exponential: bool = True
) -> tuple[list[float], list[torch.Tensor], torch.Tensor]:
    """Run the loop with the scale's derivative by the product rule. Return losses, parameters and log_scale."""
    model, log_scale, optimizer, batches = scaled_classifier(case)
    leaves = [*model.parameters(), log_scale]
    start = log_scale.item()
    losses = []
    for inputs, targets in batches:
        exponent = start if scaled == "once" else log_scale.item()
        factor = math.exp(exponent) if exponential else exponent
        scale = torch.tensor(factor, requires_grad=True)
        loss = cross_entropy(scale * model(inputs), targets)
        *own, slope = torch.autograd.grad(loss, [*model.parameters(), scale], allow_unused=True)
        if cleared == "each time":
            optimizer.zero_grad()
        elif cleared == "to zeros":
            optimizer.zero_grad(set_to_none=False)
        elif cleared == "only the model":
            model.zero_grad()
        found = [*own, None if scaled == "constant" else (factor if exponential else 1.0) * slope]
        for leaf, gradient in zip(leaves, found, strict=True):
            if gradient is not None:
                leaf.grad = gradient if leaf.grad is None else leaf.grad + gradient
        optimizer.step()
        if cleared == "after each step":
            optimizer.zero_grad()
        losses.append(loss.item())
    return losses, [parameter.detach() for parameter in model.parameters()], log_scale.detach()


# Known slips, each a way in which the loop can run. Two of them together are tried as well.
_SLIPS: dict[str, dict[str, Any]] = {
    "a stale scale": {"scaled": "once"},
    "the scale made a constant": {"scaled": "constant"},
    "not the exponential": {"exponential": False},
    "never cleared": {"cleared": "never"},
    "cleared too late": {"cleared": "after each step"},
    "only the model cleared": {"cleared": "only the model"},
    "zeros for no gradient": {"cleared": "to zeros"},
}


def _reproduced(case: Case, seen: Observation) -> list[set[str]]:
    """Return the smallest sets of slips that lead to the learner's parameters: none, one slip, or two."""
    pairs = [{one, two} for one, two in combinations(_SLIPS, 2) if not _SLIPS[one].keys() & _SLIPS[two].keys()]
    for sets in ([set[str]()], [{slip} for slip in _SLIPS], pairs):
        found = [slips for slips in sets if _ends_there(case, seen, slips)]
        if found:
            return found
    return []


def _ends_there(case: Case, seen: Observation, slips: set[str]) -> bool:
    given = case.given
    parameters, log_scale = _ending(given["seed"], tuple(given["sizes"]), given["start"], frozenset(slips))
    return close(seen["log_scale"], log_scale) and moved(seen["parameters"], parameters)


@lru_cache(maxsize=64)
def _ending(
    seed: int, sizes: tuple[int, ...], start: float, slips: frozenset[str]
) -> tuple[list[torch.Tensor], torch.Tensor]:
    ways: dict[str, Any] = {}
    for slip in slips:
        ways |= _SLIPS[slip]
    return _fitted(Case("", {"seed": seed, "sizes": sizes, "start": start}), **ways)[1:]


def _slipped(slip: str) -> Callable[[Case, Observation], bool]:
    return lambda case, seen: any(slip in slips for slips in _reproduced(case, seen))


def _cleared(case: Case, seen: Observation, when: str) -> bool:
    return _slipped("never cleared" if when == "never" else "cleared too late")(case, seen)


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    losses, parameters, log_scale = _fitted(case)
    yield from turns(seen, len(case.given["sizes"]))
    yield right_floats(seen["returned"], torch.tensor(losses), "The list of losses")
    finding = right_value(seen["log_scale"], log_scale, "log_scale after your loop")
    yield replace(finding, prop=f"log_scale's {finding.prop}")
    text = "After your loop the model's parameters are not what the loop should make of them."
    yield Finding("trained", moved(seen["parameters"], parameters), text)
    yield from lean(seen)


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, first = seen[0]
    _, _, right = _fitted(case)
    _, _, stale = _fitted(case, "once")
    yield (
        f"{first['passes']} passes for {len(case.given['sizes'])} batches, and none left saved tensors to a step. "
        f"log_scale went from {case.given['start']:.2f} to {right.item():.2f}; with the scale computed once it would "
        f"have ended at {stale.item():.2f}."
    )


EXERCISE = Exercise(
    id="fit_scale",
    title="Remove needless retention from a loop",
    lesson=LESSON,
    difficulty=2,
    minutes=8,
    points=3,
    call="fit_scale(model, log_scale, optimizer, batches)",
    cases=_cases,
    judge=_judge,
    hints=(
        "Take the flag away and read what the loop raises in its second step. Which tensor belongs to the first?",
        "log_scale changes with every step. Does scale?",
        "What is computed from a parameter belongs inside the loop, next to the forward of the model. Then each step "
        "has a graph of its own, and no pass needs the flag.",
    ),
    misconceptions=(
        Misconception(
            "a stale scale",
            "Your numbers are those of a loop that computes the scale once, before the first step. log_scale moves, "
            "and the model goes on with the scale that it started from.",
            _slipped("a stale scale"),
        ),
        Misconception(
            "the scale made a constant",
            "Your numbers are those of a loop in which no gradient of the losses reaches log_scale: it is cut off on "
            "its way, or gone again before the step.",
            _slipped("the scale made a constant"),
        ),
        Misconception(
            "not the exponential",
            "Your numbers are those of a loop that multiplies by log_scale itself. The factor is its exponential.",
            _slipped("not the exponential"),
        ),
        *cleared_otherwise(_cleared),
        Misconception(
            "only the model cleared",
            "Your numbers are those of a loop that clears the model's gradients and not that of log_scale, which piles "
            "up in its .grad. The optimizer's zero_grad() clears what the optimizer moves, both.",
            _slipped("only the model cleared"),
        ),
        Misconception(
            "zeros for no gradient",
            "Your numbers are those of a loop that leaves zeros in .grad. For a parameter that takes no part in the "
            "loss, zeros are a gradient, and weight decay moves it. Where .grad is None the optimizer skips it.",
            _slipped("zeros for no gradient"),
        ),
        no_gradient(),
        Misconception(
            "retained for nothing",
            "Your passes retain what the graph saved, and no pass follows that would need it.",
            lambda case, seen: (
                retains(seen)
                and seen["passes that retain"] == seen["passes"] == seen["runs"]
                and any("a stale scale" not in slips for slips in _reproduced(case, seen))
            ),
        ),
    ),
    debrief=_debrief,
)
