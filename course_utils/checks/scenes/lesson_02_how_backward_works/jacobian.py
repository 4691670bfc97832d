"""What an answer to `jacobian` is tried on."""

from __future__ import annotations

from collections.abc import Callable

import torch

from course_utils.checks.scenes.lesson_02_how_backward_works.constants import WEIGHTS, constants

_MIXER = constants(4, 6)

# Functions from tensors to tensors for jacobian.
MAPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a vector to a longer one": lambda x: 1e6 * torch.cat([x.sin(), x[:2] * x[-1]]),
    "a vector to one number": lambda x: (x * x.sin()).sum(),
    "a matrix to a column": lambda x: (_MIXER(x) @ x.reshape(-1, 1)).tanh(),
    "a matrix to a transposed one": lambda x: (x.softmax(1) * x.sum(0)).T,
    "one number to a matrix": lambda x: 1e-9 * (x * WEIGHTS(x) + x.square()),
    "a constant row": lambda x: torch.stack([x.prod(), torch.ones_like(x[0]), x.square().sum()]),
    "a shift": lambda x: x + 1.5,  # what goes in comes out again: the very tensor
    "a matrix to a list of one number": lambda x: (x * x.sin()).sum().reshape(1),
}
