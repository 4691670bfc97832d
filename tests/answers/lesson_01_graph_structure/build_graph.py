"""Right and wrong answers to `build_graph`."""

import torch

from tests.answers.said import said


def build_by_operators(a, b):
    e = (a - b).unbind()[1].exp()
    return e * 2 + e


def build_by_unpacking(a, b):
    _, second, *_ = torch.sub(a, b)
    e = torch.exp(second)
    return torch.add(torch.mul(e, torch.ones(3) if e.numel() == 3 else 0.5), e)


def build_twice(a, b):
    return (a - b).unbind()[1].exp() * 2 + (a - b).unbind()[1].exp()


def build_indexing(a, b):
    e = (a - b)[1].exp()
    return e * 2 + e


def build_without_constant(a, b):
    e = (a - b).unbind()[1].exp()
    return e * e + e


def build_other_order(a, b):
    e = (a - b).unbind()[1].exp()
    return e + e * 2


def build_minus(a, b):
    e = (b - a).unbind()[1].exp()
    return e * 2 + e


def build_first_output(a, b):
    e = (a - b).unbind()[0].exp()
    return e * 2 + e


def build_new_leaves(a, b):
    a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
    return build_by_operators(a, b)


def build_and_clear(a, b):
    a.grad = b.grad = None
    return build_by_operators(a, b)


def build_and_backward(a, b):
    build_by_operators(a, b).sum().backward()
    return build_by_operators(a, b)


def build_in_place(a, b):
    with torch.no_grad():
        a.mul_(2)
    return build_by_operators(a, b)


RIGHT = [build_by_operators, build_by_unpacking]

MISCONCEIVED = {
    "computed twice": build_twice,
    "indexing": build_indexing,
    "no constant": build_without_constant,
    "other order": build_other_order,
}


def build_and_freeze(a, b):
    tensor = build_by_operators(a, b)
    b.requires_grad_(False)
    return tensor


WRONG = [
    said(build_minus, "other order"),
    build_first_output,
    build_new_leaves,
    build_in_place,
    build_and_backward,
    build_and_clear,
    build_and_freeze,
    lambda a, b: build_by_operators(a.contiguous(), b.contiguous()),
    lambda a, b: build_by_operators(a, b).sum(),
    lambda a, b: build_by_operators(a, b.detach()),
    lambda a, b: a + b,
    lambda a, b: [build_by_operators(a, b)],
]

EQUIVALENT = {
    "build_by_operators: return e * 2 + e -> return e * 3 + e": '"The numbers in the result do not matter."',
    "build_by_operators: return e * 2 + e -> return e * 0 + e": '"The numbers in the result do not matter."',
    "build_by_operators: return e * 2 + e -> return e * -2 + e": '"The numbers in the result do not matter."',
    "build_by_unpacking: e.numel() == 3 -> False": '"The numbers in the result do not matter."',
    "build_by_unpacking: e.numel() == 3 -> e.numel() == 4": '"The numbers in the result do not matter."',
    "build_by_unpacking: e.numel() == 3 -> e.numel() == 0": '"The numbers in the result do not matter."',
    "build_by_unpacking: e.numel() == 3 -> e.numel() == -3": '"The numbers in the result do not matter."',
    "build_by_unpacking: torch.ones(3) if e.numel() == 3 else 0.5 -> torch.zeros(3) if e.numel() == 3 else 0.5": '"The numbers in the result do not matter."',
    "build_by_unpacking: torch.ones(3) if e.numel() == 3 else 0.5 -> torch.ones(3) if e.numel() == 3 else 1.5": '"The numbers in the result do not matter."',
    "build_by_unpacking: torch.ones(3) if e.numel() == 3 else 0.5 -> torch.ones(3) if e.numel() == 3 else 0.0": '"The numbers in the result do not matter."',
    "build_by_unpacking: torch.ones(3) if e.numel() == 3 else 0.5 -> torch.ones(3) if e.numel() == 3 else -0.5": '"The numbers in the result do not matter."',
}

GUARDS = {
    "returns a tensor whose `trace` is this": {"graph": build_minus, "type": WRONG[-1]},
    "so do the order of the nodes and of each node's inputs": {"graph": build_other_order},
    "The leaves' numbers, their `.grad`, and whether they require a gradient stay as they are.": {
        "numbers": build_in_place,
        "grad": build_and_backward,
        "flags": build_and_freeze,
    },
}


def build_from_two_rows(a, b):
    """Two exponentials, and none of them is computed twice."""
    rows = (a - b).unbind()
    return rows[1].exp() * 2 + rows[0].exp()


def build_an_exponential_of_it(a, b):
    grown = (a - b).unbind()[1].exp()
    return grown.exp() * 2 + grown


WRONG += [build_from_two_rows, build_an_exponential_of_it]


def build_clamped(a, b):
    """Keeps the exponential finite, by writing to the leaf."""
    with torch.no_grad():
        a.clamp_(-50.0, 50.0)
    grown = (a - b).unbind()[1].exp()
    return grown * 2 + grown


WRONG += [build_clamped]
