"""Judging `fewest_bytes`: as few bytes as you can."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import torch
from torch.nn.functional import cross_entropy

from course_utils.checks.compare import right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.as_found import as_found
from course_utils.checks.judges.lesson_03_graph_freeing import LESSON
from course_utils.checks.judges.remembered import remembered
from course_utils.checks.scenes.lesson_03_graph_freeing.fewest_bytes import LAYERS, validation
from course_utils.graph.alive import PeakMemory

_SLICES = 20
_LIMIT = 25
_NEAR = 1e-11  # no number that was computed in single precision comes so near
OURS = 51  # tests/answers has the answer that reaches it


def _cases(seed: int) -> list[Case]:
    # Images as wide as what the first layer gives, or the layers inside: there a result has room in them.
    sizes = {"413 images": (413, 96, 96), "801 images, wider layers": (801, 128, 32)}
    names = ("images", "wide", "pixels")
    return [Case(name, {"seed": seed, **dict(zip(names, size, strict=True))}) for name, size in sizes.items()]


def _plainly(case: Case) -> tuple[torch.Tensor, int]:
    return _run(*case.given.values())


@lru_cache(maxsize=4)
def _run(seed: int, count: int, wide: int, pixels: int) -> tuple[torch.Tensor, int]:
    """Run all images at once, with a graph: the loss, and the bytes at the peak."""
    case = Case("", {"seed": seed, "images": count, "wide": wide, "pixels": pixels})
    model, images, labels = validation(case)
    with PeakMemory() as memory:
        loss = cross_entropy(model(images), labels)
    return loss.detach(), memory.peak


def _times_fewer(case: Case, seen: Observation) -> float:
    return float(_plainly(case)[1] / max(seen["peak"], 1))


def _compared(fewer: float) -> str:
    """Say in words that go before "one run" how many bytes there are."""
    if fewer < 0.95:
        return f"{1 / fewer:.1f} times the bytes of"
    return f"{fewer:.1f} times fewer bytes than" if fewer >= 1.05 else "about as many bytes as"


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    right = _plainly(case)[0]
    returned = seen["returned"]
    if isinstance(returned, float):  # compared as closely as a tensor in double precision
        returned = Array.of(torch.tensor(returned, dtype=torch.float64))
    yield right_value(returned, right, "What you returned", _NEAR)
    yield Finding("attached", not seen["attached"], "What you returned still has a graph.")
    fewer = _times_fewer(case, seen)
    text = f"Your peak has {_compared(fewer)} one run of all images. At least {_LIMIT} times fewer is asked; "
    yield Finding("peak", fewer >= _LIMIT, f"{text}ours has {OURS} times fewer.")
    most = LAYERS * _SLICES
    text = f"Your function ran {seen['products']} products of matrices; {most} are allowed."
    if seen["products"] < LAYERS:
        text = (
            f"PyTorch ran {seen['products']} products of matrices, and the network has {LAYERS} layers: not each of "
            "them was computed by such a product here."
        )
    yield Finding("products", LAYERS <= seen["products"] <= most, text)
    yield Finding("changed", not seen["changed"], "Your function changed numbers of the images or of the model.")
    yield as_found(seen)


def _mean_of_means(case: Case, seen: Observation) -> bool:
    losses = _losses(case)
    cuts = [cut for size in range(10, 60) for cut in (losses.split(size), losses.tensor_split(size))]
    wrong = [torch.stack([part.mean() for part in parts]).mean() for parts in cuts]
    return any(_near(seen["returned"], it) for it in wrong) and not _near(seen["returned"], losses.mean())


def _rest_left_out(case: Case, seen: Observation) -> bool:
    losses = _losses(case)
    count = len(losses)
    sums = [(losses[:some].sum(), some) for some in range(count - 60, count)]
    return any(_near(seen["returned"], total / divisor) for total, some in sums for divisor in (some, count))


def _sum(case: Case, seen: Observation) -> bool:
    return _near(seen["returned"], _losses(case).sum())


@remembered
def _losses(case: Case) -> torch.Tensor:
    model, images, labels = validation(case)
    with torch.no_grad():
        return cross_entropy(model(images), labels, reduction="none")


def _near(received: Value, number: torch.Tensor) -> bool:
    """Compare closely: of a hundred wrong numbers one may lie near any other."""
    value = received.tensor() if isinstance(received, Array) and not received.shape else received
    return isinstance(value, float | torch.Tensor) and abs(float(value) / float(number) - 1) < 1e-7


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    fewer = min(_times_fewer(case, ran) for case, ran in seen)
    yield f"Your peak has {fewer:.0f} times fewer bytes than one run of all images; ours has {OURS} times fewer."
    if fewer > OURS - 0.5:
        yield "That is as few as ours, or fewer."
    else:
        yield "Without a graph nobody needs the input of a tanh any more: it may be written over."


EXERCISE = Exercise(
    id="fewest_bytes",
    title="As few bytes as you can",
    lesson=LESSON,
    difficulty=3,
    minutes=20,
    points=4,
    call="fewest_bytes(model, images, labels)",
    counted=True,
    cases=_cases,
    judge=_judge,
    hints=(
        "Two things fill the memory: what a graph keeps, and the images that go through the network at once.",
        "Without a graph each layer's result goes when the next is done. Cut the images into 20 parts: the peak is "
        "then that of one part. Nothing of a part may stay but a number.",
        "In no_grad, for each of 20 slices: total += cross_entropy(model(part), labels_of_it, reduction='sum').item(); "
        "return total divided by the number of images. To come to ours, go through the layers yourself, and let tanh "
        "write into the result of the layer before it.",
    ),
    misconceptions=(
        Misconception(
            "mean of means",
            "What you returned is the mean of the parts' means. The parts differ in size, so the images of a smaller "
            "one count for more than the others.",
            _mean_of_means,
        ),
        Misconception(
            "the rest left out",
            "The last images are missing in what you returned, as if only whole parts of one size had been taken.",
            _rest_left_out,
        ),
        Misconception(
            "the sum",
            "What you returned is the sum over all images. Divide it by their number.",
            _sum,
        ),
        Misconception(
            "a graph is recorded",
            "A graph is recorded while images go through the layers. It keeps the results of all layers of a part, and "
            "of all parts where something keeps their losses.",
            lambda case, seen: _times_fewer(case, seen) < _LIMIT and LAYERS < seen["recorded"] == seen["products"],
        ),
        Misconception(
            "all at once",
            "Your function holds whole layers' results of all images at once. Cut the images into parts.",
            lambda case, seen: _times_fewer(case, seen) < 4 and seen["products"] == LAYERS,
        ),
    ),
    debrief=_debrief,
)
