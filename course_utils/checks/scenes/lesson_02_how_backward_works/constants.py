"""Constants that functions of a case multiply by."""

from __future__ import annotations

from collections.abc import Callable

import torch

from course_utils.checks.scenes.numbers import numbers


def constants(*shape: int) -> Callable[[torch.Tensor], torch.Tensor]:
    values = numbers(41, *shape, dtype=torch.float64)
    return lambda x: values.to(x.dtype)


WEIGHTS = constants(2, 3)
