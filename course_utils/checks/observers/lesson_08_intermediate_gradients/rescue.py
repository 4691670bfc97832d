"""Running an answer to `rescue`."""

from __future__ import annotations

import torch
from torch import nn

from course_utils.checks.data import Answer, Case, Observation
from course_utils.checks.observers.lesson_08_intermediate_gradients.state import changed, state
from course_utils.checks.scenes.lesson_08_intermediate_gradients.rescue import stacked
from course_utils.checks.scenes.numbers import numbers


def observe(answer: Answer, case: Case) -> Observation:
    model, x = stacked(case)
    layers, before = list(model), state(model)
    parts: list[tuple[str, bool]] = [(str(layer), layer.training) for layer in layers]
    answer(model)
    # Numbers in parameters are what the answer is to change.
    everything = changed(before, model)
    found = [what for what in everything if "numbers" not in what]
    kept = len(model) == len(layers) and all(now is was for now, was in zip(model, layers, strict=True))
    kept = kept and [(str(layer), layer.training) for layer in model] == parts
    seen: Observation = {"changed": found, "kept": kept, "outputs": [], "gradients": [], "units": []}
    seen["moved"] = bool(everything)
    if not kept or any("another tensor" in what or "dtype" in what for what in found):
        return seen  # the model may not run any more, or is another one
    outputs = []
    h = x
    for layer in layers[:-1]:
        h = layer(h)
        if not isinstance(layer, nn.Linear):
            outputs.append(h)
    score = (layers[-1](h) * numbers(case.given["seed"] + 2, 20, 2)).sum()
    if not score.requires_grad:
        return seen
    gradients = torch.autograd.grad(score, outputs, allow_unused=True, materialize_grads=True)
    weights = [layer.weight.detach() for layer in layers if isinstance(layer, nn.Linear)]
    return {
        **seen,
        "outputs": [_rms(output) for output in outputs],
        "gradients": [_rms(gradient) * gradient.shape[1] ** 0.5 for gradient in gradients],
        "units": [_alike(weight.double()) for weight in weights],
        "spread": [_rms(output - output.mean(0)) for output in outputs],
    }


def _alike(weight: torch.Tensor) -> str:
    """Say what a layer's units have in common that they should not; nothing where all is well."""
    if not bool(weight.any(dim=1).all()):
        return "a unit has zeros only"
    apart = torch.pdist(weight).min() > 1e-5 * weight.norm(dim=1).max()  # closer is rounding
    return "" if bool(apart) else "two units have the same weights"


def _rms(tensor: torch.Tensor) -> float:
    return float(tensor.detach().double().square().mean().sqrt())
