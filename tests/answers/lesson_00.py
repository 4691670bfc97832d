"""Right and wrong answers to the exercises of lesson 00."""

import torch


def slope_by_backward(x):
    (x**3).sum().backward()
    return x.grad


def slope_by_formula(x):
    return 3 * x.detach() ** 2


RIGHT = {
    "first_gradient": [8, torch.tensor(8.0)],
    "slope": [slope_by_backward, slope_by_formula],
}

# Each named misconception's sample: it must trigger that message and no other.
MISCONCEIVED = {
    ("first_gradient", "the value"): 15,
    ("first_gradient", "one term only"): 6.0,
    ("slope", "the cubes"): lambda x: x**3,
    ("slope", "backward returns nothing"): lambda x: (x**3).sum().backward(),
}


def slope_in_place(x):
    result = 3 * x.detach() ** 2
    x.detach().mul_(2)
    return result


# Other plausible wrong answers: they must fail, and need no message of their own.
WRONG = {
    "first_gradient": [9, "8", [8], -8],
    "slope": [lambda x: 3 * x**2 + 1e-2, lambda x: (3 * x**2).sum(), lambda x: (3 * x**2).double(), slope_in_place],
}

# A graph that is kept for nothing is the subject of lesson 03.
STILL_RIGHT = {("slope", "keeps every graph")}
