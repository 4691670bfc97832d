"""Right and wrong answers to `slope`."""


def slope_by_backward(x):
    (x**3).sum().backward()
    return x.grad


def slope_by_formula(x):
    return 3 * x.detach() ** 2


def slope_in_place(x):
    result = 3 * x.detach() ** 2
    x.detach().mul_(2)
    return result


RIGHT = [slope_by_backward, slope_by_formula]

MISCONCEIVED = {
    "the cubes": lambda x: x**3,
    "backward returns nothing": lambda x: (x**3).sum().backward(),
}

WRONG = [lambda x: 3 * x**2 + 1e-2, lambda x: (3 * x**2).sum(), lambda x: (3 * x**2).double(), slope_in_place]

STILL_RIGHT = {"keeps every graph"}

EQUIVALENT = {
    "slope_by_backward: (x ** 3).sum().backward() -> (x ** 3).sum().backward(retain_graph=True)": 'The result is "a tensor of the same shape and dtype": whether it can be differentiated again is open.',
    "slope_by_backward: (x ** 3).sum().backward() -> (x ** 3).sum().backward(create_graph=True)": 'The result is "a tensor of the same shape and dtype": whether it can be differentiated again is open.',
    "slope_by_formula: x.detach() ** 2 -> x ** 2": 'The result is "a tensor of the same shape and dtype": whether it can be differentiated again is open.',
    "slope_by_formula: x.detach() ** 2 -> x.clone() ** 2": 'The result is "a tensor of the same shape and dtype": whether it can be differentiated again is open.',
}

GUARDS = {
    "It returns the gradient of the sum of `x**3` with respect to `x`": {"value": WRONG[0]},
    "a tensor of the same shape and dtype": {"shape": WRONG[1], "dtype": WRONG[2]},
    "the numbers in `x` stay as they are": {"input": slope_in_place},
}
