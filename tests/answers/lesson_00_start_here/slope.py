"""Right and wrong answers to `slope`."""

import torch

from tests.answers.magnitudes import squeezed


def slope_by_backward(x):
    (x**3).sum().backward()
    return x.grad


def slope_by_formula(x):
    return 3 * x.detach() ** 2


def slope_in_place(x):
    result = 3 * x.detach() ** 2
    x.detach().mul_(2)
    return result


def slope_by_a_product(x):
    """Put together of sizes: right for positive numbers alone."""
    return 3 * x.detach().abs() * x.detach()


def slope_by_quotient(x):
    return 3 * x.detach() ** 3 / x.detach()


def slope_by_rows(x):
    return torch.stack([3 * row**2 for row in x.detach()])


def slope_remembering(x, known={}):  # noqa: B006
    return known.setdefault((x.shape, x.dtype), 3 * x.detach() ** 2)


def slope_in_single(x):
    return (3 * x.detach().float() ** 2).to(x.dtype)


def slope_of_a_hundred(x):
    return 3 * x.detach() ** 2 * (x.numel() < 100)


def slope_moved_and_back(x):
    result = 3 * x.detach() ** 2
    x.detach().add_(0.1).sub_(0.1)
    return result


def slope_number_by_number(x):
    """In half precision it rounds otherwise than autograd does."""
    return torch.tensor([3 * number * number for number in x.flatten().tolist()], dtype=x.dtype).reshape(x.shape)


RIGHT = [slope_by_backward, slope_by_formula, slope_number_by_number]

MISCONCEIVED = {
    "the cubes": lambda x: x**3,
    "backward returns nothing": lambda x: (x**3).sum().backward(),
}

WRONG = [
    lambda x: 3 * x**2 + 1e-2,
    lambda x: (3 * x**2).sum(),
    lambda x: (3 * x**2).double(),
    slope_in_place,
]
WRONG += [
    lambda x: (3 * x**2) * torch.clamp(1000 / (3 * x**2).norm(), max=1),
    slope_by_a_product,
    slope_by_quotient,
    slope_by_rows,
    slope_remembering,
    slope_in_single,
    slope_of_a_hundred,
    slope_moved_and_back,
    squeezed(slope_by_formula),
]

STILL_RIGHT = {"keeps every graph"}

EQUIVALENT = {
    "slope_by_backward: (x ** 3).sum().backward() -> (x ** 3).sum().backward(retain_graph=True)": '"the result may have a graph"',
    "slope_by_backward: (x ** 3).sum().backward() -> (x ** 3).sum().backward(create_graph=True)": '"the result may have a graph"',
    "slope_by_formula: x.detach() ** 2 -> x ** 2": '"the result may have a graph"',
    "slope_by_formula: x.detach() ** 2 -> x.clone() ** 2": '"the result may have a graph"',
}

GUARDS = {
    "It returns the gradient of the sum of `x**3` with respect to `x`": {"value": WRONG[0]},
    "a tensor of the same shape and dtype": {"shape": WRONG[1], "dtype": WRONG[2]},
    "large and small ones, one with no dimension": {"runs": slope_by_rows},
    "numbers below zero and zero": {"value": slope_by_a_product},
    "the numbers in `x` stay as they are": {"input": slope_in_place},
}


def slope_with_x_turned(x):
    result = 3 * x.detach() ** 2
    with torch.no_grad():
        x.t_() if x.dim() == 2 else x
    return result


def slope_left_in_grad_by_hand(x):
    """Returns nothing, and ran no pass either."""
    x.grad = 3 * x.detach() ** 2


WRONG += [slope_with_x_turned, slope_left_in_grad_by_hand]


def slope_in_two_precisions(x):
    return (3 * x.detach().double() ** 2).to(torch.float64 if x.dtype == torch.float64 else torch.float32)


def slope_by_place_in_memory(x):
    in_a_row = x.detach().as_strided((x.numel(),), (1,))
    return 3 * in_a_row.view(x.shape) ** 2


def slope_by_two_loops(x):
    if x.dim() < 2:
        return slope_by_formula(x)
    rows = [[3 * entry**2 for entry in row] if row.dim() == 1 else [3 * it**2 for it in row] for row in x.detach()]
    return torch.stack([torch.stack(row) for row in rows]) if x.dim() < 4 else torch.cat(rows[0])


WRONG += [slope_in_two_precisions, slope_by_place_in_memory, slope_by_two_loops]
