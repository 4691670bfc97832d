"""Right and wrong answers to `first_gradient`."""

import torch

RIGHT = [8, torch.tensor(8.0), torch.tensor(8.0, dtype=torch.float16)]

MISCONCEIVED = {
    "the value": 15,
    "one term only": 6.0,
}

WRONG = [9, "8", [8], -8]

GUARDS = {
    "What number is in `x.grad` now?": {"value": WRONG[0]},
    "Give one real number, not a list or an array.": {"type": WRONG[2]},
}
