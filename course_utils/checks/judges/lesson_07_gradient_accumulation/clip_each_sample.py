"""Judging `clip_each_sample`: clip each sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
from torch.nn.functional import cross_entropy

from course_utils.checks.compare import OF_VALUES, close, counted, describe, listed, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_07_gradient_accumulation import LESSON
from course_utils.checks.judges.lesson_07_gradient_accumulation.loops import flags_kept, times, well_formed
from course_utils.checks.judges.lesson_07_gradient_accumulation.windows import Tensors
from course_utils.checks.judges.remembered import remembered
from course_utils.checks.scenes.lesson_07_gradient_accumulation.clip_each_sample import image_batch


def _cases(seed: int) -> list[Case]:
    shapes: dict[str, tuple[int, int, dict[str, float]]] = {
        "33 images in float32, some clipped": (33, 20, {"sure": 1, "single": True}),  # one more than many a piece
        "five images, all clipped": (5, 0, {}),
        "one image, not clipped": (1, 1, {"steep": 1e6}),
    }
    return [_limited(name, seed + count, count, place, more) for name, (count, place, more) in shapes.items()]


def _limited(name: str, seed: int, count: int, place: int, more: dict[str, float]) -> Case:
    """Return a case whose limit lies in the given place among the samples' norms."""
    open_case = Case(name, {"seed": seed, "count": count, "single": False, **more})
    norms = sorted(_norms(_alone(open_case)).tolist())
    limit = 0.1 * norms[0] if place == 0 else 2 * norms[-1] if place == count else sum(norms[place - 1 : place + 1]) / 2
    return Case(name, {**open_case.given, "max_norm": limit})


@remembered
def _alone(case: Case) -> Tensors:
    """Return the gradients of each sample's own loss, one sample at a time."""
    model, images, targets = image_batch(case)
    names = [name for name, _ in model.named_parameters()]
    rows = []
    for number in range(len(images)):
        loss = cross_entropy(model(images[number : number + 1]), targets[number : number + 1])
        rows.append(torch.autograd.grad(loss, list(model.parameters()), materialize_grads=True))
    return {name: torch.stack(parts) for name, parts in zip(names, zip(*rows, strict=True), strict=True)}


def _norms(each: Tensors) -> torch.Tensor:
    """Return each sample's norm over all parameters."""
    return torch.stack([torch.cat([row.flatten() for row in rows]).norm() for rows in zip(*each.values(), strict=True)])


def _mean(each: Tensors, factors: torch.Tensor | dict[str, torch.Tensor]) -> Tensors:
    """Return the mean over samples, each multiplied by its factor."""
    result = {}
    for name, part in each.items():
        factor = factors[name] if isinstance(factors, dict) else factors
        result[name] = torch.stack([f * row for f, row in zip(factor, part, strict=True)]).mean(0)
    return result


def _factors(norms: torch.Tensor, limit: float) -> torch.Tensor:
    return (limit / norms.clamp(min=1e-30)).clamp(max=1.0)


def _right_mean(case: Case) -> Tensors:
    each = _alone(case)
    return _mean(each, _factors(_norms(each), case.given["max_norm"]))


def _single(value: Value) -> Value:
    """Return a tensor in float32, because some divide by a norm plus 1e-6. Another dtype than float64 is left."""
    return Array.of(value.tensor().float()) if isinstance(value, Array) and value.dtype == "float64" else value


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    well_formed(seen)
    right, returned = _right_mean(case), seen["returned"]
    if not isinstance(returned, dict) or set(returned) != set(right):
        keys = f", with the keys {listed(returned)}" if returned and isinstance(returned, dict) else ""
        text = f"You returned {describe(returned)}{keys}; expected a dict with the keys {listed(right)}."
        yield Finding("dict", False, text)
    else:
        for name, value in right.items():
            received, dtype = returned[name], str(value.dtype).removeprefix("torch.")
            same = not isinstance(received, Array) or received.dtype == dtype
            yield Finding("dtype", same, f"The entry {name} has another dtype than the parameter.")
            yield right_value(_single(received), value.float(), f"The entry {name}")
    yield Finding("attached", not seen["attached"], "An entry of what you returned requires a gradient. Detach it.")
    yield from _judge_side_effects(case, seen)


def _judge_side_effects(case: Case, seen: Observation) -> Iterator[Finding]:
    runs, passes = seen["runs"], seen["passes"]
    yield Finding(
        "runs", runs <= 1, f"The model, or a copy of it, ran {times(runs)}. One run on all images together is enough."
    )
    yield Finding("passes", passes <= 1, f"{passes} backward passes ran; 1 is enough.")
    kept = all(_is_quarter(value) for value in seen["gradients"].values())
    yield Finding("grad", kept, "Your function changed .grad of a parameter. It was to leave .grad alone.")
    model, _, _ = image_batch(case)
    same_numbers = all(
        close(seen["parameters"].get(name), parameter.detach()) for name, parameter in model.named_parameters()
    )
    text = "Your function changed the parameters, the images or the targets."
    yield Finding("numbers", same_numbers and seen["inputs"], text)
    yield flags_kept(seen)


def _is_quarter(value: Value) -> bool:
    return isinstance(value, Array) and bool((value.tensor() == 0.25).all())


def _returned(expected: Callable[[Case], Tensors]) -> Callable[[Case, Observation], bool]:
    """Recognise a returned dict, up to the 1e-6 that clip_grad_norm_ adds."""

    def explains(case: Case, seen: Observation) -> bool:
        returned = seen["returned"]
        if not isinstance(returned, dict):
            return False
        return all(close(_single(returned.get(name)), value.float()) for name, value in expected(case).items())

    return explains


def _mean_clipped(case: Case) -> Tensors:
    mean = _mean(_alone(case), torch.ones(case.given["count"]))
    total = torch.cat([part.flatten() for part in mean.values()]).norm()
    return {name: part * _factors(total, case.given["max_norm"]) for name, part in mean.items()}


def _each_parameter(case: Case) -> Tensors:
    each = _alone(case)
    return _mean(each, {name: _factors(_norms({name: part}), case.given["max_norm"]) for name, part in each.items()})


def _always_scaled(case: Case) -> Tensors:
    each = _alone(case)
    return _mean(each, case.given["max_norm"] / _norms(each).clamp(min=1e-30))


def _zero_by_zero(case: Case, seen: Observation) -> bool:
    """Return whether every number is NaN where the gradient of a sample is zero."""
    returned = seen["returned"]
    parts = [returned.get(name) for name in _alone(case)] if isinstance(returned, dict) else []
    return (
        bool(parts)
        and not bool(_norms(_alone(case)).all())
        and all(isinstance(part, Array) and bool(part.tensor().isnan().all()) for part in parts)
    )


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, it = seen[0]
    count = case.given["count"]
    ran = "once" if it["runs"] == 1 else "not at all"
    passes = counted(it["passes"])
    yield f"For {count} images the check saw the model run {ran}, and {passes}. One by one takes {count} of each."
    size = sum(item.nbytes for item in image_batch(case)[0].parameters())
    yield f"The price is memory: {count} gradients of {size} bytes at a time, where a loop needs one and the sum."


def _one_by_one(case: Case, seen: Observation) -> bool | None:
    """Tell a run for each sample; of a single sample one run tells nothing."""
    fits = seen["runs"] >= case.given["count"] and _returned(_right_mean)(case, seen)
    return None if fits and case.given["count"] == 1 else fits


EXERCISE = Exercise(
    id="clip_each_sample",
    title="Clip each sample",
    lesson=LESSON,
    difficulty=4,
    minutes=20,
    points=4,
    call="clip_each_sample(model, images, targets, max_norm)",
    counted=True,
    cases=_cases,
    judge=_judge,
    hints=(
        "First get the gradient of every sample. Then ask: which number, made from all parameters, decides?",
        "The lesson's vmap over grad gives a dict of tensors whose first dimension counts samples. The squares of a "
        "sample, summed over all entries of the dict, are its squared norm.",
        "Sum part.reshape(len(part), -1).pow(2).sum(1) over the parts and take the root. Then a factor for each "
        "sample: max_norm / norm, at most 1. Multiply each part along its first dimension by the factors; take the "
        "mean there.",
    ),
    debrief=_debrief,
    misconceptions=(
        Misconception(
            "one after the other",
            "The numbers are right, but the model ran at least as often as there are samples. One run goes through all "
            "of them together.",
            _one_by_one,
        ),
        Misconception(
            "a pass for each sample",
            "The numbers are right, and the samples went through the model together. But each of them had a backward "
            "pass of its own.",
            lambda case, seen: (
                seen["runs"] <= 1 < case.given["count"] <= seen["passes"] and _returned(_right_mean)(case, seen)
            ),
        ),
        Misconception(
            "the mean clipped",
            "You clipped the mean over the samples. A single long gradient can fill all of that mean.",
            _returned(_mean_clipped),
            among=OF_VALUES,
        ),
        Misconception(
            "each parameter by itself",
            "You clipped each parameter's part of a sample's gradient by itself. A sample has one norm, over all "
            "parameters.",
            _returned(_each_parameter),
            among=OF_VALUES,
        ),
        Misconception(
            "short ones stretched",
            "You scaled every sample's gradient to one length. Those shorter than max_norm were to stay as they are.",
            _returned(_always_scaled),
            among=OF_VALUES,
        ),
        Misconception(
            "a sum, not a mean",
            "You added the clipped gradients up. The mean over samples was asked for.",
            _returned(lambda case: {name: case.given["count"] * part for name, part in _right_mean(case).items()}),
            among=OF_VALUES,
        ),
        Misconception(
            "zero divided by zero",
            "The gradient of one image is zero, and your result is NaN: with min(norm, max_norm) / norm its factor is "
            "0 / 0. A gradient of zero is left alone.",
            _zero_by_zero,
            among=OF_VALUES,
        ),
        Misconception(
            "written to .grad",
            "The numbers are right, but your function left a gradient of its own in .grad, or took one away.",
            lambda case, seen: (
                _returned(_right_mean)(case, seen)
                and seen["runs"] <= 1
                and not all(_is_quarter(value) for value in seen["gradients"].values())
            ),
        ),
    ),
)
