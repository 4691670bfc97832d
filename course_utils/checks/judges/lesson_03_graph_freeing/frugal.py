"""Judging `frugal`: keep less, recompute some."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.as_found import as_found
from course_utils.checks.judges.lesson_03_graph_freeing import LESSON
from course_utils.checks.judges.loops import times
from course_utils.checks.scenes.lesson_03_graph_freeing.frugal import stack
from course_utils.checks.scenes.lesson_03_graph_freeing.leaves import numbers
from course_utils.graph.alive import PeakMemory

_LIMIT = 26


def _cases(seed: int) -> list[Case]:
    shapes = {
        "26 blocks, some with dropout": (26, 350, [3, 11, 25]),
        "30 blocks": (30, 70, []),
        "a single block": (1, 50, []),
    }
    return [
        Case(
            name,
            {
                **{"seed": seed + count, "blocks": count, "size": size, "noisy": noisy},
                "direction": Array.of(numbers(seed + count + 1, size).double()),
            },
        )
        for name, (count, size, noisy) in shapes.items()
    ]


def _right_gradients(case: Case) -> tuple[torch.Tensor, list[torch.Tensor]]:
    blocks, x = stack(case)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(case.given["seed"])
        y = blocks(x)
    gradients = torch.autograd.grad(y, [x, *blocks.parameters()], case.given["direction"].tensor())
    return y.detach(), list(gradients)


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    y, gradients = _right_gradients(case)
    returned = right_value(seen["returned"], y, "What you returned")
    yield replace(returned, prop=f"result's {returned.prop}")
    found = list(_gradients(seen["gradients"], gradients)) if seen["gradients"] is not None else []
    yield Finding("graph", seen["attached"], "What you returned has no graph, so no gradient can go through it.")
    yield from found
    runs = max(seen["runs"])
    yield Finding("runs", runs <= 2, f"A block's forward ran {times(runs)}, backward pass included; twice is allowed.")
    unit = case.given["size"] * 8
    peak = seen["peak"] / unit
    text = f"At the worst moment {math.ceil(peak * 10) / 10} tensors of x's size were alive; {_LIMIT} are allowed."
    yield Finding("peak", peak <= _LIMIT, text)
    once = seen["recomputed"].count(False)
    text = (
        f"{once} blocks did not run again in the backward pass. What each saves takes two tensors of x's size: much "
        "of it was kept outside of tensors, or computed without running the block. Run the block again."
    )
    right = returned.ok and bool(found) and all(finding.ok for finding in found)
    yield Finding("elsewhere", peak > _LIMIT or not right or 2 * once <= _LIMIT, text)
    yield Finding("input", seen["x"], "Your function changed the numbers in x.")
    yield as_found(seen)


def _gradients(received: list[Value], right: list[torch.Tensor]) -> Iterator[Finding]:
    for number, (mine, gradient) in enumerate(zip(received, right, strict=True)):
        what = f"The gradient of block {number - 1}'s scale" if number else "The gradient of x"
        finding = right_value(mine, gradient, what)
        yield replace(finding, prop=f"gradient's {finding.prop}")


def _tensors(case: Case, size: int) -> float:
    return size / int(case.given["size"] * 8)


def _over(case: Case, seen: Observation) -> bool:
    return _tensors(case, seen["peak"]) > _LIMIT


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, result = seen[0]
    blocks = case.given["blocks"]
    twice = sum(runs > 1 for runs in result["runs"])
    plain = PeakMemory()
    with torch.random.fork_rng(devices=[]), plain:
        model, x = stack(case)
        model(x).backward(case.given["direction"].tensor())
    yield (
        f"With {blocks} blocks at most {math.ceil(_tensors(case, result['peak']))} tensors of x's size were alive at "
        f"once, and {twice} of the blocks ran twice. Without recomputing there are "
        f"{math.ceil(_tensors(case, plain.peak))}."
    )


EXERCISE = Exercise(
    id="frugal",
    title="Keep less, recompute some",
    lesson=LESSON,
    difficulty=4,
    minutes=25,
    points=4,
    call="frugal(blocks, x)",
    counted=True,
    cases=_cases,
    judge=_judge,
    hints=(
        "Recomputing a stretch of blocks needs the stretch's input, and for a moment all that its blocks save.",
        "Short stretches: many inputs are kept. Long stretches: much is alive while one of them is recomputed. "
        "Try a length in between, and count both parts.",
        "Go through blocks in slices of about the square root of their number. Pass each slice and the last result to "
        "torch.utils.checkpoint.checkpoint with use_reentrant=False. Leave its care for random numbers switched on.",
    ),
    misconceptions=(
        Misconception(
            "one long stretch",
            "After your forward nearly nothing is kept. But the backward pass recomputes all blocks at once, and then "
            "everything that they save is alive together.",
            lambda case, seen: _over(case, seen) and _tensors(case, seen["kept"]) < 2 and set(seen["runs"]) == {2},
        ),
        Misconception(
            "every block by itself",
            "You keep the input of every block. That is less than everything, and still one tensor for each block.",
            lambda case, seen: (
                _over(case, seen)
                and set(seen["runs"]) == {2}
                and _tensors(case, seen["kept"]) >= case.given["blocks"] - 1
            ),
        ),
        Misconception(
            "nothing recomputed",
            "Each block ran once, and all that it saved was kept until backward.",
            lambda case, seen: (
                _over(case, seen)
                and set(seen["runs"]) == {1}
                and _tensors(case, seen["kept"]) >= 2 * case.given["blocks"]
            ),
        ),
        Misconception(
            "other noise the second time",
            "The result is right and gradients are not: the recomputed dropout dropped other numbers.",
            lambda case, seen: (
                bool(case.given["noisy"])
                and max(seen["runs"]) == 2
                and not _over(case, seen)
                and seen["gradients"] is not None
                and close(seen["returned"], _right_gradients(case)[0])
                and not seen["gradients before"]
            ),
            among=frozenset({"gradient's value"}),
        ),
    ),
    debrief=_debrief,
)
