"""Judging `train_clipped`: clip once, in the right place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import torch

from course_utils.checks.compare import OF_VALUES, close
from course_utils.checks.data import Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_07_gradient_accumulation import LESSON
from course_utils.checks.judges.lesson_07_gradient_accumulation.clipping import (
    added_up,
    all_together,
    as_it_grows,
    each_alone,
    each_group,
    shortened,
)
from course_utils.checks.judges.lesson_07_gradient_accumulation.loops import (
    numbers_right,
    ran_well,
    trained_well,
    well_formed,
)
from course_utils.checks.judges.lesson_07_gradient_accumulation.windows import (
    STEP_FOR_EACH,
    Step,
    Tensors,
    norm,
    same,
    trained,
)
from course_utils.checks.scenes.lesson_07_gradient_accumulation.classifier import classifier, stale

_SIX_DIGITS = 1e-6  # some compute the norm in float32


def _cases(seed: int) -> list[Case]:
    rich = {"lr": 0.3, "momentum": 0.6, "decay": 0.02}
    shapes: dict[str, tuple[dict[str, Any], float]] = {
        "clipped in each window": (
            {"seed": seed + 1, "sizes": [4] * 5, "every": [3, 2], "stale": "all", **rich},
            0.4,
        ),
        "clipped in some windows": ({"seed": seed + 2, "sizes": [2] * 9, "every": [4, 1, 4], **rich}, 1.1),
        "clipped in no window": (
            {"seed": seed + 3, "sizes": [5] * 4, "every": [2, 2], "steep": 1e5, "sure": 2, **rich},
            3.0,
        ),
    }
    return [
        Case(name, {**given, "max_norm": _limit(Case(name, given), part)}) for name, (given, part) in shapes.items()
    ]


def _limit(case: Case, part: float) -> float:
    """Return a part of the smallest norm that a window has without clipping, or for a large part, of the largest."""
    norms = sorted(norm(step.gradient) for step in trained(case, case.given["every"], rates=_rates(case))[0])
    return part * (norms[0] if part < 2 else norms[-1])


def _rates(case: Case) -> list[float]:
    return [case.given["lr"] * _GAMMA**n for n in range(len(case.given["every"]))]


def _right(case: Case) -> tuple[list[Step], Tensors]:
    limit = case.given["max_norm"]
    return trained(case, case.given["every"], lambda step: all_together(step, limit), _rates(case))


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    well_formed(seen)
    steps, parameters = _right(case)
    # In float32, because clip_grad_norm_ adds 1e-6 to the norm that it divides by, and others need not.
    yield from trained_well(case, seen, steps, parameters, torch.float32)
    rates, right = [step["rate"] for step in seen["steps"]], _rates(case)
    text = (
        f"The learning rates at the steps were {_short(rates)}. The scheduler should make one step for each window, "
        "after the optimizer's."
    )
    yield Finding("rates", len(rates) != len(right) or all(map(close, rates, right)), text)
    text = (
        f"After your function the learning rate is {seen['rate']:.3g}; expected a scheduler's step after each window."
    )
    yield Finding("rates", close(seen["rate"], case.given["lr"] * _GAMMA ** len(steps)), text)
    yield from ran_well(case, seen)
    yield from numbers_right(
        seen["returned"], [norm(step.gradient) for step in steps], "norms before clipping", _SIX_DIGITS
    )


def _short(rates: list[float]) -> str:
    return ", ".join(f"{rate:.3g}" for rate in rates[:10]) or "none"


_Clipping = Callable[[Step, float], Tensors]


def _clipped(clip: _Clipping) -> Callable[[Case, Observation], bool]:
    """Recognise steps whose gradients were clipped in another way, with whatever learning rates were seen.

    Where that makes no difference, what is wrong with the rates or the norms explains the case.
    """

    def explains(case: Case, seen: Observation) -> bool:
        mine, limit, every = seen["steps"], case.given["max_norm"], case.given["every"]
        if len(mine) != len(every):
            return False

        def as_seen(clip: _Clipping) -> bool:
            steps, _ = trained(case, every, lambda step: clip(step, limit), [it["rate"] for it in mine], apart=True)
            return all(same(it["gradients"], clip(step, limit)) for it, step in zip(mine, steps, strict=True))

        if not as_seen(clip):
            return False
        return not as_seen(all_together) or any(
            other(case, seen) for other in (_too_often, _shifted, _norms_of_what_is_left)
        )

    return explains


def _norms_of_what_is_left(case: Case, seen: Observation) -> bool:
    """Return whether the norms are at most the limit where those before clipping are larger."""
    limit, norms = case.given["max_norm"], [norm(step.gradient) for step in _right(case)[0]]
    returned = seen["returned"]
    return len(returned) == len(norms) and any(
        mine <= limit * 1.001 < right for mine, right in zip(returned, norms, strict=True)
    )


def _norms_after(case: Case, seen: Observation) -> bool:
    """Return whether the norms are those of the clipped gradients, and all else is right."""
    limit, returned, (steps, parameters) = case.given["max_norm"], seen["returned"], _right(case)
    norms = [norm(step.gradient) for step in steps]
    return (
        all(found.ok for found in trained_well(case, seen, steps, parameters, torch.float32))
        and isinstance(returned, list)
        and len(returned) == len(norms)
        and max(norms) > limit
        and all(close(mine, min(right, limit)) for mine, right in zip(returned, norms, strict=True))
    )


def _gone_through_once(case: Case, seen: Observation) -> bool:
    """Return whether only the first window was clipped, and each norm after its own is 0."""
    limit, windows = case.given["max_norm"], 0

    def clip(step: Step) -> Tensors:
        nonlocal windows
        windows += 1
        return all_together(step, limit) if windows == 1 else step.gradient

    steps = trained(case, case.given["every"], clip, _rates(case))[0]
    raw = [step.gradient for step in steps]
    applied, norms = [all_together(steps[0], limit), *raw[1:]], [norm(raw[0]), *[0.0] * (len(raw) - 1)]
    return (
        len(seen["returned"]) == len(seen["steps"]) == len(steps)
        and all(map(close, seen["returned"], norms))
        and all(same(it["gradients"], mine) for it, mine in zip(seen["steps"], applied, strict=True))
    )


def _too_often(case: Case, seen: Observation) -> bool:
    """Return whether the rates fell with each micro-batch, before or after the step of their window."""
    rates, counts = [step["rate"] for step in seen["steps"]], list(accumulate(case.given["every"]))
    return len(rates) == len(counts) and any(
        all(close(rate, case.given["lr"] * _GAMMA**count) for rate, count in zip(rates, passed, strict=True))
        for passed in (counts, [0, *counts[:-1]])
    )


def _shifted(case: Case, seen: Observation) -> bool:
    rates = [step["rate"] for step in seen["steps"]]
    return bool(rates) and all(close(rate, case.given["lr"] * _GAMMA ** (n + 1)) for n, rate in enumerate(rates))


def _norms_of_sums(case: Case, seen: Observation) -> bool:
    """Return whether the norms are those of gradients that were added up and not averaged."""
    limit, every = case.given["max_norm"], case.given["every"]
    steps = trained(case, every, lambda step: shortened(added_up(step), limit), _rates(case), apart=True)[0]
    return all(close(mine, norm(added_up(step))) for mine, step in zip(seen["returned"], steps, strict=True))


def _on_top(case: Case, seen: Observation) -> bool:
    """Return whether the first wrong step has the gradient of its window and what was in .grad before, clipped."""
    limit, steps = case.given["max_norm"], _right(case)[0]
    if len(seen["steps"]) != len(steps):
        return False
    model = classifier(case)
    stale(model, case)
    old = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    for mine, step in zip(seen["steps"], steps, strict=True):
        right = all_together(step, limit)
        if not same(mine["gradients"], right):
            both = {**old, **{name: part + old.get(name, 0) for name, part in step.gradient.items()}}
            return bool(old) and same(mine["gradients"], shortened(both, limit))
        old = right
    return False


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    count = {case.name: sum(norm > case.given["max_norm"] for norm in it["returned"]) for case, it in seen}
    yield "Gradients longer than max_norm: " + ", ".join(f"{n} ({name})" for name, n in count.items()) + "."
    yield (
        "Clipping after each micro-batch would have been right only where no sum on the way was longer than max_norm. "
        "A scheduler that counts micro-batches would have lowered the learning rate several times in a window."
    )


EXERCISE = Exercise(
    id="train_clipped",
    title="Clip once, in the right place",
    lesson=LESSON,
    difficulty=3,
    minutes=10,
    points=3,
    call="train_clipped(model, optimizer, scheduler, windows, max_norm)",
    counted=True,
    cases=_cases,
    judge=_judge,
    hints=(
        "What is clipped is the gradient of the window. When is it complete? Who uses it, and when?",
        "Five things happen in a window, some once and some for each micro-batch. Put them in order: clear, backward, "
        "clip, optimizer step, scheduler step.",
        "Only forward and backward belong in the inner loop. After it: clip_grad_norm_, which returns the norm before "
        "clipping; optimizer.step(); scheduler.step(). Clear before the inner loop.",
    ),
    debrief=_debrief,
    misconceptions=(
        Misconception(
            "clipped while it grows",
            "You clipped after each micro-batch: what had been added up so far was scaled down, and the next "
            "micro-batch came on top.",
            _clipped(as_it_grows),
        ),
        Misconception(
            "not clipped at the step",
            "When the optimizer stepped, the gradient was as it had come, also where it was longer than max_norm. A "
            "clip after the step is too late; a clip of single numbers does not bound the norm by max_norm.",
            _clipped(lambda step, limit: step.gradient),
        ),
        Misconception(
            "each parameter by itself",
            "You clipped the gradient of each parameter by itself. The norm that counts is that of all gradients "
            "together; otherwise the direction of the step changes.",
            _clipped(each_alone),
        ),
        Misconception(
            "each group by itself",
            "You clipped each of the optimizer's groups by its own norm. The norm that counts is that of all gradients "
            "together; otherwise the direction of the step changes.",
            _clipped(each_group),
        ),
        Misconception(
            "the parameters gone through once",
            "From the second window on nothing was clipped, and your norms there are 0. So it is where one "
            "model.parameters() serves all windows: it can be gone through once. Ask for it anew, or make it a list.",
            _gone_through_once,
        ),
        Misconception(
            "old gradients",
            "In the first step that went wrong, what was clipped is the gradient of the window and, on top of it, what "
            "was in .grad before the window began.",
            _on_top,
        ),
        Misconception(
            "summed, not averaged",
            "Your norms are those of the sum of the micro-batches' mean gradients. The gradient of the window's mean "
            "loss is shorter, by the number of micro-batches.",
            _norms_of_sums,
        ),
        Misconception(
            "norms after clipping",
            "The norms that you returned are those after clipping: none is longer than max_norm. clip_grad_norm_ "
            "returns the norm that it found.",
            _norms_after,
            among=OF_VALUES,
        ),
        Misconception(
            "the scheduler counts micro-batches",
            "The learning rate fell once for each micro-batch. It should fall once for each step of the optimizer.",
            _too_often,
        ),
        Misconception(
            "the scheduler first",
            "The scheduler stepped before the optimizer: the first learning rate was never used.",
            _shifted,
        ),
        STEP_FOR_EACH,
    ),
)

_GAMMA = 0.6  # of the scheduler in train_clipped
