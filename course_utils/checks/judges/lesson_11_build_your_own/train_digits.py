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

_NAMES = tuple(f"the {what} of the {layer} layer" for layer in ("first", "second") for what in ("weight", "bias"))
_COUNT, _BATCH = 129, 32  # the last batch has one image
_EPOCHS = 3
_EVEN = 43  # and with batches of this size, as many as all others
_LARGE = 200  # there is one batch, which is smaller


def _given(seed: int, count: int) -> dict[str, Any]:
    (images, labels), began = digits(_COUNT, seed), start(seed)
    far = [array * (20.0 if place == 2 else 1.0) for place, array in enumerate(began)]  # scores far from 0
    return {
        "images": Array.of(torch.from_numpy((images * 16).astype("float32"))),
        "labels": Array.of(torch.from_numpy(labels)),
        "few labels": Array.of(torch.from_numpy(labels % 9)),  # of ten classes the last has no image
        "start": [Array.of(torch.from_numpy(array)) for array in began],
        "far": [Array.of(torch.from_numpy(array)) for array in far],
        "epochs": _EPOCHS,
        "rate": 0.2,
        "batch": _BATCH,
        "even": _EVEN,
        "large": _LARGE,
    }


def _epochs(given: dict[str, Any], way: str = "", epochs: int = _EPOCHS) -> list[list[torch.Tensor]]:
    """Return the parameters after each epoch, as PyTorch trains them; or, in a wrong way, what that gives."""
    images, labels = given["images"].tensor().double() / 8.0, given["labels"].tensor()
    parameters = [array.tensor().requires_grad_() for array in given["start"]]
    w1, b1, w2, b2 = parameters
    batch = {"all at once": len(images), "even": given["even"]}.get(way, given["batch"])
    after = []
    for _ in range(epochs):
        if way == "anew":
            for parameter, array in zip(parameters, given["start"], strict=True):
                parameter.data = array.tensor()
        for n in range(0, len(images), batch):
            x, y = images[n : n + batch], labels[n : n + batch]
            if way == "whole batches" and len(x) < batch:
                continue
            scores = (x @ w1 + b1).relu() @ w2 + b2
            loss = cross_entropy(scores.relu() if way == "relu" else scores, y, reduction="sum")
            loss = loss / {"sum": 1, "full size": batch, "over all": len(images)}.get(way, len(x))
            if way != "uncleared" and (n == 0 or way not in ("cleared each epoch", "one step")):
                for parameter in parameters:
                    parameter.grad = None
            loss.backward()
            if way == "one step" and n + batch < len(images):
                continue
            with torch.no_grad():
                for position, parameter in enumerate(parameters):
                    if not (way == "no bias" and position % 2) and parameter.grad is not None:
                        parameter -= {"uphill": -1, "still": 0}.get(way, 1) * given["rate"] * parameter.grad
        after.append([parameter.detach().clone() for parameter in parameters])
    return after


def _judge(given: dict[str, Any], seen: Observation) -> Iterator[Finding]:
    yield from _trained(seen["trained"], _epochs(given))
    even = f"With {_COUNT} images in batches of {_EVEN}"
    yield from _trained(seen["even"], _epochs(given, "even", 1), even)
    far = {**given, "start": given["far"], "labels": given["few labels"], "batch": given["large"]}
    text = f"From a start with scores far from 0, with {_COUNT} images in batches of {_LARGE}, and labels from 0 to 8"
    yield from _trained(seen["far"], _epochs(far, epochs=1), text)


def _trained(seen: Any, epochs: list[list[torch.Tensor]], where: str = "") -> Iterator[Finding]:
    yours, after = (f"{where}, your", f"{where}, after") if where else ("Your", "After")
    yield Finding("runs", not raised(seen), f"{yours} training raised {told(seen)}." if raised(seen) else "")
    if raised(seen):
        return
    what = "None" if seen.get("kind") == "NoneType" else f"something of type {seen.get('kind')}"
    text = f"engine.train returned {what}; expected a list with four arrays for each epoch."
    yield Finding("list", "kind" not in seen, text)
    if "kind" in seen:
        return
    count = len(seen["after"])
    lists = "1 list" if count == 1 else f"{count} lists"
    asked = "1 epoch" if len(epochs) == 1 else f"{len(epochs)} epochs"
    text = f"engine.train returned {lists} for {asked}; expected one after each epoch."
    yield Finding("epochs", count == len(epochs), text)
    if count == len(epochs):
        for number, (mine, right) in enumerate(zip(seen["after"], epochs, strict=True), 1):
            if len(mine) != 4:
                came = "1 array" if len(mine) == 1 else f"{len(mine)} arrays"
                yield Finding("weights", False, f"For epoch {number} engine.train returned {came}; expected 4.")
                continue
            for name, value, wanted in zip(_NAMES, mine, right, strict=True):
                found = right_value(value, wanted, f"{after} epoch {number} {name}")
                yield Finding("weights", found.ok, found.message)
    yield Finding("left", seen["left"], "The arrays that were given to engine.train have changed.")


def _as(way: str, epochs: int = _EPOCHS) -> Callable[..., bool]:
    """Return whether the weights are after each epoch, or each of the first, what this wrong way gives."""

    def seen(case: Case, seen: Observation) -> bool:
        if raised(seen["trained"]) or "kind" in seen["trained"]:
            return False
        mine, wrong = seen["trained"]["after"], _epochs(case.given, way)
        return len(mine) == len(wrong) and all(
            close(a, b)
            for one, other in zip(mine[:epochs], wrong[:epochs], strict=True)
            for a, b in zip(one, other, strict=True)
        )

    return seen


def _same_arrays(case: Case, seen: Observation) -> bool:
    if raised(seen["trained"]) or len(seen["trained"]["after"]) != case.given["epochs"]:
        return False
    last = _epochs(case.given)[-1]
    return all(close(a, b) for mine in seen["trained"]["after"] for a, b in zip(mine, last, strict=True))


def _one_early(case: Case, seen: Observation) -> bool:
    if raised(seen["trained"]) or len(seen["trained"].get("after", [])) < 2:
        return False
    right = [array.tensor() for array in case.given["start"]], _epochs(case.given, epochs=1)[0]
    pairs = zip(seen["trained"]["after"], right, strict=False)
    return all(close(a, b) for mine, wanted in pairs for a, b in zip(mine, wanted, strict=True))


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
            "cleared once an epoch",
            "Gradients are cleared once in each epoch, and there is a step after each batch: from the second batch on "
            "a step goes by the sum of all gradients since the epoch began. Clear before each batch's backward().",
            _as("cleared each epoch"),
        ),
        Misconception(
            "one step an epoch",
            "There is one step in each epoch, by the sum of all its batches' gradients. A step comes after each batch.",
            _as("one step"),
        ),
        Misconception(
            "each epoch from the start",
            "Each epoch begins with the arrays that were given: what the one before had learned is lost. Make the "
            "parameters once, before the first epoch.",
            _as("anew"),
        ),
        Misconception(
            "divided by all images",
            "The loss of a batch is divided by the number of all images. Its mean is over the images of the batch.",
            _as("over all"),
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
            "Every list that you return has the last epoch's numbers. SGD writes into the parameters' own arrays: copy "
            "them after each epoch.",
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
            "nothing moves",
            "Every list that you return is the start: no step changed these numbers.",
            _as("still"),
        ),
        Misconception(
            "uphill",
            "Each step goes up: the loss grows.",
            _as("uphill", 1),  # soon all is too large for exp
        ),
    ),
)
