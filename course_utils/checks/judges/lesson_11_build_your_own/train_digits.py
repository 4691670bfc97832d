"""Judging stage 10, `train_digits`: a network that learns from images, with nothing but your engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from course_utils.checks.compare import close, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Finding, Misconception
from course_utils.checks.judges.lesson_11_build_your_own import grad_and_sgd
from course_utils.checks.judges.lesson_11_build_your_own.stages import Stage, exercise, raised, told
from course_utils.checks.scenes.lesson_11_build_your_own.digits import digits, start

_NAMES = ("the first weights", "the first bias", "the second weights", "the second bias")
_COUNT = 150


def _given(seed: int, count: int) -> dict[str, Any]:
    images, labels = digits(_COUNT, seed)
    return {
        "images": Array.of(torch.from_numpy((images * 16).astype("float32"))),
        "labels": Array.of(torch.from_numpy(labels)),
        "start": [Array.of(torch.from_numpy(array)) for array in start(seed)],
        "epochs": 3,
        "rate": 0.3,
        "batch": 32,
    }


def _epochs(given: dict[str, Any], way: str = "") -> list[list[torch.Tensor]]:
    """Return the parameters after each epoch, as PyTorch trains them; or, in a wrong way, what that gives."""
    images, labels = given["images"].tensor().double() / 16.0, given["labels"].tensor()
    parameters = [array.tensor().requires_grad_() for array in given["start"]]
    w1, b1, w2, b2 = parameters
    batch = len(images) if way == "all at once" else given["batch"]
    after = []
    for _ in range(given["epochs"]):
        for n in range(0, len(images), batch):
            x, y = images[n : n + batch], labels[n : n + batch]
            if way == "whole batches" and len(x) < batch:
                continue
            scores = (x @ w1 + b1).relu() @ w2 + b2
            loss = cross_entropy(scores.relu() if way == "relu" else scores, y, reduction="sum")
            loss = loss / (1 if way == "sum" else batch if way == "full size" else len(x))
            if way != "uncleared":
                for parameter in parameters:
                    parameter.grad = None
            loss.backward()
            with torch.no_grad():
                for position, parameter in enumerate(parameters):
                    if not (way == "no bias" and position % 2) and parameter.grad is not None:
                        parameter -= (-1 if way == "uphill" else 1) * given["rate"] * parameter.grad
        after.append([parameter.detach().clone() for parameter in parameters])
    return after


def _judge(given: dict[str, Any], seen: Observation) -> Iterator[Finding]:
    trained = seen["trained"]
    yield Finding("runs", not raised(trained), f"Your training raised {told(trained)}." if raised(trained) else "")
    if raised(trained):
        return
    count = len(trained["after"])
    text = f"engine.train returned {count} lists; expected {given['epochs']}, one after each epoch."
    yield Finding("epochs", count == given["epochs"], text)
    if count == given["epochs"]:
        for number, (mine, right) in enumerate(zip(trained["after"], _epochs(given), strict=True), 1):
            if len(mine) != 4:
                yield Finding("weights", False, f"After epoch {number} came {len(mine)} arrays; expected 4.")
                continue
            for name, value, wanted in zip(_NAMES, mine, right, strict=True):
                found = right_value(value, wanted, f"After epoch {number} {name}")
                yield Finding("weights", found.ok, found.message)
    yield Finding("left", trained["left"], "The arrays that were given to engine.train have changed.")


def _as(way: str) -> Callable[..., bool]:
    """Return whether the weights are after each epoch what this wrong way gives."""

    def seen(case: Case, seen: Observation) -> bool:
        if raised(seen["trained"]):
            return False
        mine, wrong = seen["trained"]["after"], _epochs(case.given, way)
        return len(mine) == len(wrong) and all(
            close(a, b) for one, other in zip(mine, wrong, strict=True) for a, b in zip(one, other, strict=True)
        )

    return seen


def _same_arrays(case: Case, seen: Observation) -> bool:
    if raised(seen["trained"]) or len(seen["trained"]["after"]) != case.given["epochs"]:
        return False
    last = _epochs(case.given)[-1]
    return all(close(a, b) for mine in seen["trained"]["after"] for a, b in zip(mine, last, strict=True))


def _one_early(case: Case, seen: Observation) -> bool:
    if raised(seen["trained"]) or not seen["trained"]["after"]:
        return False
    return all(close(a, b.tensor()) for a, b in zip(seen["trained"]["after"][0], case.given["start"], strict=True))


STAGE = Stage("train_digits", _given, _judge, (grad_and_sgd.STAGE,))

EXERCISE = exercise(
    STAGE,
    1,
    title="Train on images",
    difficulty=3,
    minutes=35,
    points=4,
    hints=(
        "Write the forward of one batch first, and compare its loss with PyTorch's. The rest is the loop that you "
        "know.",
        "Cross-entropy is log(sum(exp(scores))) - scores[label], averaged over the batch. Take each row's largest "
        "score away first, as a constant array: the result is the same, and exp stays small.",
        "parameters = [engine.tensor(array, requires_grad=True) for array in start]; optimizer = "
        "engine.SGD(parameters, rate). For each epoch and each n in range(0, len(images), batch): scores = "
        "(engine.tensor(images[n:n+batch]) @ w1 + b1).relu() @ w2 + b2; shifted = scores - scores.numpy().max(axis=1, "
        "keepdims=True); loss = (shifted.exp().sum(axis=1).log() - shifted[np.arange(m), labels]).sum() * (1 / m); "
        "zero_grad, backward, step. After each epoch append copies of the four arrays.",
    ),
    misconceptions=(
        Misconception(
            "gradients never cleared",
            "Each step goes by the sum of all gradients since the start: nobody clears them.",
            _as("uncleared"),
        ),
        Misconception(
            "the sum of a batch",
            "Your loss is the sum over the batch, in place of the mean: each step is as many times too long as the "
            "batch has images.",
            _as("sum"),
        ),
        Misconception(
            "the last batch left out",
            "The last, smaller batch of each epoch is left out. Its images are never learned.",
            _as("whole batches"),
        ),
        Misconception(
            "divided by the full batch",
            "The last, smaller batch is divided by the size of a full one. Its mean is over the images that it has.",
            _as("full size"),
        ),
        Misconception(
            "all images at once",
            "One step in each epoch, over all images: the batch size is not used.",
            _as("all at once"),
        ),
        Misconception(
            "the same arrays for every epoch",
            "What you return after each epoch has the last epoch's numbers: SGD writes into those arrays. Copy them.",
            _same_arrays,
        ),
        Misconception(
            "one epoch too early",
            "The first list that you return is the start, before any step.",
            _one_early,
        ),
        Misconception(
            "the start is changed",
            "Your training is right, and has changed the arrays that it was given. Whoever compares two trainings "
            "begins the second one elsewhere.",
            lambda case, seen: not raised(seen["trained"]) and not seen["trained"]["left"] and _as("")(case, seen),
        ),
        Misconception(
            "relu on the scores",
            "The last layer's scores go through relu, too. A class that is unlikely needs a score below the others, "
            "also below zero.",
            _as("relu"),
        ),
        Misconception(
            "biases stand still",
            "The two biases are where they began: they are not among what the optimizer was given, or need no "
            "gradient.",
            _as("no bias"),
        ),
        Misconception(
            "uphill",
            "Each step goes up: the loss grows.",
            _as("uphill"),
        ),
    ),
)
