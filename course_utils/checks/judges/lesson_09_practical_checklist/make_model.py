"""Judging `make_model`: a model that hides its parameters."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch

from course_utils.checks.compare import close, describe, listed, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_09_practical_checklist import LESSON
from course_utils.checks.scenes.lesson_09_practical_checklist.training import double


def _cases(seed: int) -> list[Case]:
    made = {"three layers": [3, 5, 4, 2], "one layer": [4, 3], "five layers": [2, 7, 3, 6, 5, 4]}
    return [
        Case(name, {"seed": seed + n, "sizes": sizes, "mean": Array.of(double(seed + n, sizes[0]).float())})
        for n, (name, sizes) in enumerate(made.items())
    ]


def _expected_shapes(case: Case) -> list[tuple[int, ...]]:
    sizes = case.given["sizes"]
    layers = [shape for a, b in pairwise(sizes) for shape in ((b, a), (b,))]
    return sorted([*layers, (sizes[-1],)])


def _shapes(seen: Observation) -> list[tuple[int, ...]]:
    """Return the parameters' shapes. A scale of one row is a scale as well."""
    shapes = (tuple(it.shape) for it in seen["parameters"].values() if isinstance(it, Array))
    return sorted(shape[1:] if len(shape) == 2 and shape[0] == 1 else shape for shape in shapes)


def _by_formula(case: Case, seen: Observation) -> torch.Tensor:
    """Compute what these parameters give. The scale is the vector of the last size that holds ones."""
    sizes, mean = case.given["sizes"], case.given["mean"].tensor()
    found = [it.tensor() for it in seen["parameters"].values() if isinstance(it, Array)]
    h: torch.Tensor = double(case.given["seed"] + 3, 6, sizes[0]).float() - mean
    for a, b in pairwise(sizes):
        weight = next(it for it in found if it.shape == (b, a))
        vectors = [it for it in found if it.shape == (b,)]
        bias = next((it for it in vectors if not bool((it == 1).all())), vectors[0])
        h = h @ weight.T + bias
        if b is not sizes[-1]:
            h = h.relu()
    return h


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    if not seen["module"]:
        yield Finding("module", False, f"You returned {describe(seen['returned'])}; expected an nn.Module.")
        return
    shapes, right = _shapes(seen), _expected_shapes(case)
    text = f"model.parameters() gives tensors of the shapes {shapes}; expected {right}."
    yield Finding("parameters", shapes == right, text)
    wide = [name for name, it in seen["parameters"].items() if isinstance(it, Array) and it.dtype != "float32"]
    yield Finding("dtype", not wide, f"These parameters of a new model are not float32: {listed(wide)}.")
    alike = [name for name, it in seen["parameters"].items() if isinstance(it, Array) and _constant(it)]
    text = f"All numbers of {listed(alike)} are alike in a new model. The broken one's layers begin at random."
    yield Finding("random", not alike, text)
    yield Finding("shared", not seen["shared"], "Two calls of your function gave models with parameters in common.")
    if shapes == right and not wide:
        yield right_value(seen["output"], _by_formula(case, seen), "What a new model returns")
    text = f"These parameters get no gradient: {listed(seen['without gradient'])}."
    yield Finding("gradients", not seen["without gradient"], text)
    yield Finding("frozen", not seen["frozen"], f"These parameters require no gradient: {listed(seen['frozen'])}.")
    same = isinstance(seen["copied"], Array) and isinstance(seen["output"], Array) and _equal(seen)
    text = (
        "A second model that loads the first one's state_dict() gives other results. Something that the result depends "
        "on is not in the state."
    )
    yield Finding("state", same, text)
    moved = seen["moved"]
    text = "After model.double() the model cannot compute in float64: a part of it did not move."
    yield Finding("moves", isinstance(moved, Array) and moved.dtype == "float64", text)


def _constant(weight: Array) -> bool:
    numbers = weight.tensor()
    return numbers.ndim == 2 and len(numbers) > 1 and bool((numbers == numbers[0, 0]).all())


def _equal(seen: Observation) -> bool:
    return bool(close(seen["copied"], seen["output"].tensor()))


def _means(case: Case, tensors: dict[str, Any]) -> bool:
    return any(close(it, case.given["mean"].tensor()) for it in tensors.values())


def _without(shapes: list[tuple[int, ...]], case: Case) -> list[tuple[int, ...]]:
    left = list(shapes)
    left.remove((case.given["sizes"][-1],))
    return left


EXERCISE = Exercise(
    id="make_model",
    title="A model that hides its parameters",
    lesson=LESSON,
    difficulty=2,
    minutes=12,
    points=2,
    call="make_model(sizes, mean)",
    cases=_cases,
    judge=_judge,
    hints=(
        "Print [name for name, _ in model.named_parameters()] and model.state_dict().keys(). What is missing?",
        "A module knows parameters, buffers and modules that are its attributes. It does not look into lists, and a "
        "plain tensor is nothing to it.",
        "Put the layers into an nn.ModuleList, make the scale an nn.Parameter, and hand the mean to register_buffer: "
        "it belongs to the state, but is not trained.",
    ),
    misconceptions=(
        Misconception(
            "layers in a list",
            "The layers' parameters are not among the model's own. A module does not look into a Python list.",
            lambda case, seen: seen["module"] and len(_shapes(seen)) <= 1,
        ),
        Misconception(
            "the scale is no parameter",
            "All layers are among the parameters, and the scale is not. A plain tensor is no parameter, even where it "
            "requires a gradient.",
            lambda case, seen: seen["module"] and _shapes(seen) == _without(_expected_shapes(case), case),
        ),
        Misconception(
            "the mean is trained",
            "The mean is among model.parameters(), which are what is trained.",
            lambda case, seen: seen["module"] and _means(case, seen["parameters"]),
        ),
        Misconception(
            "the mean is no state",
            "All parameters are right. The mean is neither saved with the state nor moved with the model.",
            lambda case, seen: (
                seen["module"]
                and _shapes(seen) == _expected_shapes(case)
                and not _means(case, seen["buffers"])
                and isinstance(seen["output"], Array)
                and close(seen["output"], _by_formula(case, seen))
            ),
        ),
    ),
)
