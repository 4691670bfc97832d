"""Ways to clip the gradient of a window: the right one, and others."""

from __future__ import annotations

import torch

from course_utils.checks.judges.lesson_07_gradient_accumulation.windows import Step, Tensors, norm, summed


def all_together(step: Step, limit: float) -> Tensors:
    return shortened(step.gradient, limit)


def shortened(gradient: Tensors, limit: float) -> Tensors:
    return summed([gradient], [min(1.0, limit / (norm(gradient) + 1e-6))])


def as_it_grows(step: Step, limit: float) -> Tensors:
    """Clip what has been added up, after each micro-batch."""
    total: Tensors = {name: torch.zeros_like(part) for name, part in step.gradient.items()}
    for part in step.parts:
        total = shortened(summed([total, part], [1.0, 1 / len(step.parts)]), limit)
    return total


def each_alone(step: Step, limit: float) -> Tensors:
    return {name: shortened({name: part}, limit)[name] for name, part in step.gradient.items()}


def each_group(step: Step, limit: float) -> Tensors:
    """Clip the optimizer's groups one by one: the first parameter is one by itself."""
    first, *others = step.gradient
    groups = ({name: step.gradient[name] for name in names} for names in ([first], others))
    return {name: part for group in groups for name, part in shortened(group, limit).items()}


def added_up(step: Step) -> Tensors:
    """Return the sum of what the micro-batches give, which nobody averaged."""
    return summed(step.parts, [1.0] * len(step.parts))
