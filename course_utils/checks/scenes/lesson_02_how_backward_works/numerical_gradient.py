"""What an answer to `numerical_gradient` is tried on."""

from __future__ import annotations

from collections.abc import Callable

import torch

from course_utils.checks.scenes.lesson_02_how_backward_works.constants import WEIGHTS

# Scalar functions for numerical_gradient. The quadratic parts are large: one-sided differences are off by them.
# The third derivatives are not small: differences over large steps are off by those. The bowl is steep and the last one
# flat: who clips, or takes what is small for zero, gives other numbers.
FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a bowl": lambda x: 1e6 * ((8 * x.square()).sum() + x.prod()),
    "weights and a sine": lambda x: (9 * WEIGHTS(x) * x.square()).sum() + (3 * x).sin().sum(),
    "one number": lambda x: 1e-10 * (12 * x * x + x.exp()),
}
