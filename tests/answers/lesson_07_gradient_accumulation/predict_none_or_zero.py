"""Right and wrong answers to `predict_none_or_zero`."""

import torch

GRADS = {
    "fresh": None,
    "twice": 7.0,
    "two_uses": 5.0,
    "times_zero": 0.0,
    "unused": None,
    "by_grad": None,
    "stepped": 3.0,
    "cleared": None,
    "cleared_then": 4.0,
    "filled": 0.0,
    "filled_fresh": None,
    "frozen": 3.0,
    "kept_added": 7.0,
    "kept_cleared": 3.0,
    "kept_filled": 0.0,
}


RIGHT = [
    GRADS,
    {name: None if value is None else torch.tensor(value) for name, value in GRADS.items()},
]

MISCONCEIVED = {
    "zero_grad writes zeros": {**GRADS, "cleared": 0.0},
    "no gradient is zero": {
        **GRADS,
        **dict.fromkeys(("fresh", "unused", "by_grad", "filled_fresh"), 0.0),
    },
    "zero is None": {**GRADS, "times_zero": None},
    "overwritten": {**GRADS, "twice": 4.0, "kept_added": 3.0},
    "step clears": {**GRADS, "stepped": None},
    "a noted gradient is a copy": {**GRADS, "kept_added": 3.0, "kept_filled": 3.0},
}

WRONG = [
    dict.fromkeys(GRADS, None),
    dict.fromkeys(GRADS, 0.0),
    list(GRADS.values()),
    {**GRADS, "frozen": None},
    {**GRADS, "filled": None},
    {name: str(value) for name, value in GRADS.items()},
]

GUARDS = {"What does the last column hold afterwards": {"entries": MISCONCEIVED["zero_grad writes zeros"]}}
