"""Exercises of lesson 02 on vector-Jacobian products of single operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from course_utils.checks.compare import close, describe, listed, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.observing.models import numbers

LESSON = "02_how_backward_works"


def left_alone(seen: Observation, required: bool = False) -> Iterator[Finding]:
    """Find whether the inputs hold the same numbers, and require grad only if they did before."""
    names = seen["changed"]
    yield Finding("input", not names, f"Your function changed the numbers in {listed(names)}.")
    names = seen["requiring"]
    if required:
        message = "Your function left x without requires_grad; before, it required grad."
        yield Finding("requires_grad", bool(names), message)
    else:
        they = "it" if len(names) == 1 else "they"
        message = f"Your function left {listed(names)} requiring grad; before, {they} did not."
        yield Finding("requires_grad", not names, message)


def _pair(received: Value, expected: tuple[torch.Tensor, torch.Tensor]) -> Iterator[Finding]:
    """Find whether two gradients came, and whether each is right."""
    if not isinstance(received, list) or len(received) != 2:
        message = f"What you returned is {describe(received)}; expected two tensors, (grad_a, grad_b)."
        yield Finding("type", False, message)
        return
    yield right_value(received[0], expected[0], "grad_a")
    yield right_value(received[1], expected[1], "grad_b")


def _given_pair(case: Case, seen: Observation, count: int = 2) -> list[Value] | None:
    """Return the two that were returned, if they were two."""
    returned = seen["returned"]
    return returned if isinstance(returned, list) and len(returned) == count else None


Product = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]


def _vjp(case: Case, product: Product, v: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
    a, b = (case.given[name].tensor().requires_grad_() for name in ("a", "b"))
    grad_a, grad_b = torch.autograd.grad(product(a, b), (a, b), case.given["v"].tensor() if v is None else v)
    return grad_a, grad_b


def _judge_pair(product: Product) -> Callable[[Case, Observation], Iterator[Finding]]:
    def judge(case: Case, seen: Observation) -> Iterator[Finding]:
        yield from _pair(seen["returned"], _vjp(case, product))
        yield from left_alone(seen)

    return judge


def _swapped(product: Product) -> Callable[[Case, Observation], bool]:
    def holds(case: Case, seen: Observation) -> bool:
        returned, right = _given_pair(case, seen), _vjp(case, product)
        return returned is not None and close(returned[0], right[1]) and close(returned[1], right[0])

    return holds


def _without_seed(product: Product) -> Callable[[Case, Observation], bool]:
    """Tell whether the gradients are those for a seed of ones."""

    def holds(case: Case, seen: Observation) -> bool:
        returned = _given_pair(case, seen)
        right = _vjp(case, product, torch.ones_like(case.given["v"].tensor()))
        return returned is not None and close(returned[0], right[0]) and close(returned[1], right[1])

    return holds


_BROADCASTS = {
    "equal shapes": ((2, 3), (2, 3)),
    "b is a row": ((2, 3), (3,)),
    "b is a column": ((5, 3), (5, 1)),
    "b is one number": ((2, 5), ()),
    "a is the smaller one": ((3,), (5, 2, 3)),
    "both are stretched": ((3, 1, 2), (5, 1)),
}


def _product_cases(seed: int) -> Iterator[Case]:
    for offset, (name, (a, b)) in enumerate(_BROADCASTS.items()):
        yield Case(name, _tensors(seed + 10 * offset, a=a, b=b, v=tuple(torch.empty(a).mul(torch.empty(b)).shape)))


def _tensors(seed: int, **shapes: tuple[int, ...]) -> dict[str, Array]:
    return {
        name: Array.of(numbers(seed + offset, *shape, dtype=torch.float64))
        for offset, (name, shape) in enumerate(shapes.items())
    }


def _not_summed(case: Case, seen: Observation) -> bool:
    """Tell whether both gradients have the shape of the product, though an input is smaller."""
    returned, v = _given_pair(case, seen), case.given["v"].tensor()
    return returned is not None and all(
        close(received, v * case.given[other].tensor()) for received, other in zip(returned, "ba", strict=True)
    )


vjp_product = Exercise(
    id="vjp_product",
    title="VJP of a product with broadcasting",
    lesson=LESSON,
    difficulty=2,
    minutes=15,
    points=2,
    call="vjp_product(a, b, v)",
    cases=_product_cases,
    judge=_judge_pair(torch.mul),
    hints=(
        "Without broadcasting: each number of the product depends on one number of a, and the factor is the b "
        "beside it.",
        "First compute both gradients in the shape of v. Then bring each to the shape of its input: a number that was "
        "used in several places collects the gradient of all of them.",
        "The gradient of a is v * b, that of b is v * a. Sum over the dimensions that broadcasting added or "
        "stretched. Tensor.sum_to_size does that.",
    ),
    misconceptions=(
        Misconception(
            "not summed back",
            "Your gradients have the shape of the product. The gradient of an input has the shape of that input: "
            "where "
            "broadcasting used one number several times, its gradients have to become one number again.",
            _not_summed,
        ),
        Misconception(
            "gradients swapped",
            "You returned the gradient of b first and that of a second.",
            _swapped(torch.mul),
        ),
        Misconception(
            "v is ignored",
            "Your gradients are those for a v of ones. The v that is given has to multiply them.",
            _without_seed(torch.mul),
        ),
    ),
)


def _matmul_cases(seed: int) -> Iterator[Case]:
    for offset, (m, k, n) in enumerate(((2, 3, 5), (5, 2, 3), (3, 5, 2), (4, 4, 4))):
        given = _tensors(seed + 10 * offset, a=(m, k), b=(k, n), v=(m, n))
        yield Case(f"({m}, {k}) @ ({k}, {n})", {**given, "strided": offset == 1})


def _as_columns(case: Case, seen: Observation) -> bool:
    returned, right = _given_pair(case, seen), _vjp(case, torch.matmul)
    return returned is not None and all(close(r, e.T) for r, e in zip(returned, right, strict=True))


vjp_matmul = Exercise(
    id="vjp_matmul",
    title="VJP of a matrix product",
    lesson=LESSON,
    difficulty=2,
    minutes=15,
    points=2,
    call="vjp_matmul(a, b, v)",
    cases=_matmul_cases,
    judge=_judge_pair(torch.matmul),
    hints=(
        "Both gradients are matrix products themselves. The shapes leave few choices.",
        "The number at (i, j) of a @ b is the sum over l of a[i, l] * b[l, j]. Which numbers of the product depend on "
        "a[i, l], and with which factors? Weight them by v and sum.",
        "The gradient of a[i, l] is the sum over j of v[i, j] * b[l, j]. Write that as a matrix product with a "
        "transposed factor. Do the same for b[l, j], summing over i.",
    ),
    misconceptions=(
        Misconception(
            "transposed",
            "Your gradients are the transposes of the right ones. A gradient has the shape of its input.",
            _as_columns,
        ),
        Misconception(
            "gradients swapped",
            "You returned the gradient of b first and that of a second.",
            _swapped(torch.matmul),
        ),
        Misconception(
            "v is ignored",
            "Your gradients are those for a v of ones. The v that is given takes part in both products.",
            _without_seed(torch.matmul),
        ),
    ),
)


def _softmax_cases(seed: int) -> Iterator[Case]:
    shapes: dict[str, tuple[tuple[int, ...], int]] = {
        "the last dimension": ((2, 5), 1),
        "the first dimension": ((3, 5), 0),
        "counted from the end": ((2, 3, 5), -2),
        "the last one, counted from the end": ((2, 3, 5), -1),
        "a vector": ((5,), 0),
    }
    for offset, (name, (shape, dim)) in enumerate(shapes.items()):
        x = numbers(seed + 10 * offset, *shape, dtype=torch.float64)
        v = numbers(seed + 10 * offset + 1, *shape, dtype=torch.float64)
        given = {"y": Array.of(x.softmax(dim)), "v": Array.of(v), "dim": dim, "strided": offset == 1}
        yield Case(name, given)


def _softmax_vjp(case: Case, dim: int | None = None) -> torch.Tensor:
    y, v = case.given["y"].tensor(), case.given["v"].tensor()
    along = case.given["dim"] if dim is None else dim
    gradient: torch.Tensor = torch.ops.aten._softmax_backward_data(v, y, along, y.dtype)  # PyTorch's own node
    return gradient


def _judge_softmax(case: Case, seen: Observation) -> Iterator[Finding]:
    yield right_value(seen["returned"], _softmax_vjp(case), "What you returned")
    yield from left_alone(seen)


def _diagonal(case: Case, seen: Observation) -> bool:
    y, v = case.given["y"].tensor(), case.given["v"].tensor()
    x = torch.logit(y).requires_grad_()
    (gradient,) = torch.autograd.grad(x.sigmoid(), x, v)  # each number by itself
    return close(seen["returned"], gradient)


def _one_sum(case: Case, seen: Observation) -> bool:
    y, v = case.given["y"].tensor(), case.given["v"].tensor()
    return close(seen["returned"], y * v - y * (y * v).sum())


def _without_factor(case: Case, seen: Observation) -> bool:
    y = case.given["y"].tensor()
    return close(seen["returned"], _softmax_vjp(case) / y)


def _once_more(case: Case, seen: Observation) -> bool:
    x = case.given["y"].tensor().requires_grad_()
    (gradient,) = torch.autograd.grad(x.softmax(case.given["dim"]), x, case.given["v"].tensor())
    return close(seen["returned"], gradient)


vjp_softmax = Exercise(
    id="vjp_softmax",
    title="VJP of softmax from its output",
    lesson=LESSON,
    difficulty=3,
    minutes=20,
    points=3,
    call="vjp_softmax(y, v, dim)",
    cases=_softmax_cases,
    judge=_judge_softmax,
    hints=(
        "Every output of a softmax depends on every input along dim: raising one lowers all the others.",
        "For one vector, dy[i]/dx[j] is y[i] * (1 - y[i]) where i = j, and -y[i] * y[j] elsewhere. Multiply by "
        "v[i], sum over i.",
        "For one vector the sum gives y[j] * (v[j] - s), where s is the sum of v[i] * y[i]. For a tensor, s is "
        "summed along dim, "
        "and keepdim=True lets it broadcast.",
    ),
    misconceptions=(
        Misconception(
            "only the diagonal",
            "Your gradient treats each number by itself, with y * (1 - y). It leaves out that each output of a "
            "softmax "
            "depends on all inputs along dim.",
            _diagonal,
        ),
        Misconception(
            "softmax once more",
            "Your gradient is that of a softmax applied to y. But y is the output of the softmax already.",
            _once_more,
        ),
        Misconception(
            "dim is ignored",
            "Your gradient is that of a softmax along the last dimension, whatever dim says.",
            lambda case, seen: close(seen["returned"], _softmax_vjp(case, -1)),
        ),
        Misconception(
            "summed over everything",
            "You summed over the whole tensor. Each vector along dim is a softmax of its own, with a sum of its own.",
            _one_sum,
        ),
        Misconception(
            "the factor y is missing",
            "You subtracted the weighted sum from v and returned that. What each number of y contributes is still "
            "to be multiplied by that number.",
            _without_factor,
        ),
    ),
)
