"""Judging `make_model`: a model that hides its parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch

from course_utils.checks.compare import close, describe, listed, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_09_practical_checklist import LESSON
from course_utils.checks.scenes.lesson_09_practical_checklist.make_model import APART, barely_moved, near
from course_utils.checks.scenes.lesson_09_practical_checklist.training import double


def _cases(seed: int) -> list[Case]:
    made = {
        "three layers": [3, 5, 4, 2],
        "one layer": [4, 3],
        "five layers": [2, 7, 3, 6, 5, 4],
        "layers of one size": [3, 4, 4, 4],
    }
    return [
        Case(name, {"seed": seed + n, "sizes": sizes, "mean": Array.of(double(seed + n, sizes[0]).float())})
        for n, (name, sizes) in enumerate(made.items())
    ]


def _expected_shapes(case: Case) -> list[tuple[int, ...]]:
    sizes = case.given["sizes"]
    layers = [shape for a, b in pairwise(sizes) for shape in ((b, a), (b,))]
    return sorted([*layers, (sizes[-1],)])


def _told_apart(case: Case) -> bool:
    """Return whether each layer is known by its shape. The scale has that of the last bias."""
    shapes = _expected_shapes(case)
    return len(set(shapes)) == len(shapes) - 1


def _shapes(seen: Observation) -> list[tuple[int, ...]]:
    """Return the parameters' shapes. A scale of one row is a scale as well."""
    shapes = (tuple(it.shape) for it in seen["parameters"].values() if isinstance(it, Array))
    return sorted(shape[1:] if len(shape) == 2 and shape[0] == 1 else shape for shape in shapes)


def _by_formula(
    case: Case, seen: Observation, inputs: torch.Tensor, later: dict[str, Any] | None = None
) -> torch.Tensor:
    """Compute what the parameters give, those of a new model or `later` ones, in the dtype of the inputs.

    In a new model the scale is what holds ones, and the bias of a layer what does not.
    """
    sizes = case.given["sizes"]
    h: torch.Tensor = inputs - case.given["mean"].tensor()
    new = {name: it.tensor() for name, it in seen["parameters"].items() if isinstance(it, Array)}
    now = {name: it.tensor().to(inputs.dtype) for name, it in (later or seen["parameters"]).items()}
    (scale, *_) = [name for name, it in new.items() if it.numel() == sizes[-1] and bool((it == 1).all())]
    for a, b in pairwise(sizes):
        weight = next(name for name, it in new.items() if it.shape == (b, a))
        bias = next(name for name, it in new.items() if it.shape == (b,) and name != scale)
        h = h @ now[weight].T + now[bias]
        if b is not sizes[-1]:
            h = h.relu()
    result: torch.Tensor = now[scale].flatten() * h
    return result


def _inputs(case: Case) -> torch.Tensor:
    return double(case.given["seed"] + 3, 6, case.given["sizes"][0]).float()


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    if not seen["module"]:
        yield Finding("module", False, f"You returned {describe(seen['returned'])}; expected an nn.Module.")
        return
    if not isinstance(seen["output"], Array):
        yield Finding("type", False, f"What a new model returns is {describe(seen['output'])}; expected a tensor.")
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
    scaled = shapes == right and not wide and _scaled_by_one(case, seen)
    if shapes == right and not wide:
        yield Finding("scale", scaled, "No parameter of a new model is a scale that begins at 1.")
    known = scaled and _told_apart(case)
    if known:
        yield right_value(seen["output"], _by_formula(case, seen, _inputs(case)), "What a new model returns")
        later = _by_formula(case, seen, _inputs(case), seen["trained parameters"])
        yield right_value(
            seen["trained"],
            later,
            "With other numbers in its parameters, and in evaluation mode, what the model returns",
        )
    missing = [name for name in seen["without gradient"] if name not in seen["frozen"]]
    yield Finding("gradients", not missing, f"These parameters get no gradient: {listed(missing)}.")
    frozen = shapes == right and bool(seen["frozen"])  # one that is too many is none to train
    yield Finding("frozen", not frozen, f"These parameters require no gradient: {listed(seen['frozen'])}.")
    same = _equal(seen["copied"], seen["trained"]) and _equal(seen["copied after moving"], seen["moved"])
    text = "A second model that loads the first one's state_dict() gives other results. "
    if seen["copied"] is None:
        text = "A second model of yours raises where it runs, or loads the first one's state_dict()."
    elif seen["wrote"]:
        text += "It got other inputs, too: your forward writes into them."
    elif shapes == right and _means(case, seen["state"]):
        text += "The mean is in the state: does forward read it there, or elsewhere?"
    else:
        text += "Something that the result depends on is not in the state."
    yield Finding("state", same, text)
    moved = seen["moved"]
    text = (
        "After model.double() the model cannot compute in float64: a part of it did not move, or its forward makes a "
        "tensor of another dtype."
    )
    yield Finding("moves", isinstance(moved, Array) and moved.dtype == "float64", text)
    if known and isinstance(moved, Array) and moved.dtype == "float64":
        exact = _by_formula(case, seen, near(case), seen["trained parameters"])
        result = right_value(moved, exact, "What the model returns after model.double()")
        yield result
        here, there = (_by_formula(case, seen, inputs, seen["trained parameters"]) for inputs in barely_moved(case))
        text = (
            "After model.double() two inputs that differ by 1e-9 do not give results that differ as they should. Such "
            "a difference gets lost where something on the way computes in float32, or cuts numbers off."
        )
        yield Finding("digits", not result.ok or _alike(seen["apart"], (there - here) / APART), text)


def _alike(received: Value, expected: torch.Tensor) -> bool:
    """Return whether differences of results agree as far as subtracting lets them."""
    if not isinstance(received, Array) or received.shape != tuple(expected.shape):
        return False
    return torch.allclose(received.tensor().double(), expected, rtol=1e-3, atol=1e-3)


def _scaled_by_one(case: Case, seen: Observation) -> bool:
    found = [it.tensor() for it in seen["parameters"].values() if isinstance(it, Array)]
    return any(it.numel() == case.given["sizes"][-1] and bool((it == 1).all()) for it in found)


def _constant(weight: Array) -> bool:
    numbers = weight.tensor()
    return numbers.ndim == 2 and len(numbers) > 1 and bool((numbers == numbers[0, 0]).all())


def _equal(copied: Value, own: Value) -> bool:
    """Return whether a second model gives what the first one gives, if that is a tensor or not."""
    return close(copied, own.tensor()) if isinstance(own, Array) else copied == own


def _means(case: Case, tensors: dict[str, Any]) -> bool:
    arrays = (it.tensor().flatten() for it in tensors.values() if isinstance(it, Array))
    return any(close(Array.of(it), case.given["mean"].tensor()) for it in arrays)


def _has_layers(case: Case, seen: Observation) -> bool:
    return any(len(shape) == 2 for shape in _shapes(seen))


def _scale_missing(case: Case, seen: Observation) -> bool:
    others = [it for it in seen["parameters"].values() if not _means(case, {"": it})]
    return _shapes(seen) == _without(_expected_shapes(case), case) or not others


def _scale_in_buffers(case: Case, seen: Observation) -> bool:
    """Return whether a buffer holds ones, a number for each output. The mean holds others."""
    return any(close(it, torch.ones(case.given["sizes"][-1])) for it in seen["buffers"].values())


def _uses_the_mean(case: Case, seen: Observation) -> bool:
    """Return whether a new model computes what it should, as far as its parameters let one tell."""
    if _shapes(seen) != _expected_shapes(case) or not _scaled_by_one(case, seen):
        return not _has_layers(case, seen)
    if not _told_apart(case):
        return True
    return isinstance(seen["output"], Array) and close(seen["output"], _by_formula(case, seen, _inputs(case)))


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    _, it = seen[0]
    count = sum(array.tensor().numel() for array in it["parameters"].values())
    yield f"Your first model has {count} numbers to train, and {len(it['state'])} tensors in its state."
    yield "The broken one's parameters() is empty, and its state_dict() as well: nothing of it would be saved."


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
    debrief=_debrief,
    hints=(
        "Print [name for name, _ in model.named_parameters()] and model.state_dict().keys(). What is missing?",
        "A module knows parameters, buffers and modules that are its attributes. It does not look into lists, and a "
        "plain tensor is nothing to it.",
        "Put the layers into an nn.ModuleList, make the scale an nn.Parameter, and hand the mean to register_buffer: "
        "it belongs to the state, but is not trained.",
    ),
    misconceptions=(
        Misconception(
            "a write to the input",
            "Your forward writes into its input: after a call the caller's x holds other numbers.",
            lambda case, seen: seen["module"] and seen["wrote"] is True,
        ),
        Misconception(
            "layers in a list",
            "The layers' parameters are not among the model's own. A module does not look into a Python list or dict, "
            "and a plain tensor is no parameter.",
            # More than two parameters, those of a scale and a mean: weights of another shape may be among them.
            lambda case, seen: seen["module"] and not _has_layers(case, seen) and len(_shapes(seen)) <= 2,
        ),
        Misconception(
            "the scale is no parameter",
            "No parameter of the model has the scale's shape and place. If you have made a scale: a plain tensor is no "
            "parameter, even where it requires a gradient.",
            lambda case, seen: seen["module"] and _scale_missing(case, seen) and not _scale_in_buffers(case, seen),
        ),
        Misconception(
            "the scale is a buffer",
            "The scale is a buffer, and not among the model's parameters: nothing trains it.",
            lambda case, seen: seen["module"] and _scale_missing(case, seen) and _scale_in_buffers(case, seen),
        ),
        Misconception(
            "the mean is trained",
            "The mean is among model.parameters(), which are what is trained.",
            lambda case, seen: (
                seen["module"]
                and _means(case, {name: it for name, it in seen["parameters"].items() if name not in seen["frozen"]})
            ),
        ),
        Misconception(
            "the mean is a frozen parameter",
            "The mean is among model.parameters(), if a frozen one. It is to be no parameter: what is saved and not "
            "trained is a buffer.",
            lambda case, seen: seen["module"] and _means(case, {it: seen["parameters"][it] for it in seen["frozen"]}),
        ),
        Misconception(
            "the mean is no state",
            "No tensor of state_dict() holds the mean. What is no parameter and no persistent buffer is not saved.",
            lambda case, seen: (
                seen["module"]
                and not _means(case, {**seen["state"], **seen["parameters"]})  # one that is trained has moved by now
                and _uses_the_mean(case, seen)
            ),
        ),
    ),
)
