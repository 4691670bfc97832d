"""Right and wrong answers to `first_gradient`."""

import torch

from tests.answers.said import said

RIGHT = [8, torch.tensor(8.0), torch.tensor(8.0, dtype=torch.float16)]

MISCONCEIVED = {
    "the value": 15,
    "one term only": 6.0,
    "the step moved it": 2.6,
    "never cleared": 35,
}

WRONG = [9, "8", [8], -8, 27, said(29.6, "never cleared"), said(torch.tensor(2.6), "the step moved it")]

GUARDS = {
    "What number is in `x.grad` now?": {"value": WRONG[0]},
    "Give one real number, not a list or an array.": {"type": WRONG[2]},
}
