"""Exercises of lesson 05 on derivatives of derivatives: one number, a product with the Hessian, a whole Hessian."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch

from course_utils.checks.compare import close, listed, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.predict_05 import LESSON
from course_utils.checks.lessons.remembered import remembered
from course_utils.checks.observing.scenes_05 import LOSSES, doubles, parameters_of, scalar

# The nth derivative. What is right was worked out by hand, as formulas.


def _nth_cases(seed: int) -> Iterator[Case]:
    trials: dict[str, tuple[str, int, tuple[int, ...], bool]] = {
        "a sine, n = 4": ("sine", 4, (2, 3), False),
        "a polynomial, n = 3": ("polynomial", 3, (3,), True),
        "an exponential, n = 1": ("exponential", 1, (), False),
        "an exponential, n = 5": ("exponential", 5, (3, 2), True),
        "a sine, n = 0": ("sine", 0, (3,), True),
        "a line, n = 2": ("line", 2, (3,), False),
        "a line whose slope is a parameter of f, n = 2": ("weighted line", 2, (3,), False),
        "a constant, n = 1": ("constant", 1, (2,), False),
        "a polynomial of degree 4, n = 6": ("polynomial", 6, (2,), False),
    }
    for offset, (name, (function, n, shape, requires_grad)) in enumerate(trials.items()):
        x = doubles(seed + offset, *shape)
        if name == "an exponential, n = 5":
            x = x.float()
        yield Case(name, {"function": function, "n": n, "x": Array.of(x), "requires_grad": requires_grad})


def _formula(case: Case, n: int) -> torch.Tensor:
    """Return the nth derivative at x, by a formula."""
    x = case.given["x"].tensor()
    match case.given["function"]:
        case "sine":
            return 1.5**n * torch.sin(1.5 * x + n * math.pi / 2)
        case "exponential":
            return (-0.7) ** n * torch.exp(-0.7 * x)
        case "line":
            return [2.5 * x + 1.5, torch.full_like(x, 2.5)][n] if n < 2 else torch.zeros_like(x)
        case "constant":
            return torch.full_like(x, 0.0 if n else 3.5)
        case "weighted line":
            return [1.7 * x, torch.full_like(x, 1.7)][n] if n < 2 else torch.zeros_like(x)
    powers = {4: 2.0, 3: -3.0, 1: 5.0}
    terms = [math.perm(k, n) * factor * x ** (k - n) for k, factor in powers.items() if k >= n]
    return sum(terms, torch.zeros_like(x))


def _judge_nth(case: Case, seen: Observation) -> Iterator[Finding]:
    n = case.given["n"]
    yield right_value(seen["returned"], _formula(case, n), "What you returned")
    yield from _clean(seen, ("x",))
    calls, passes = seen["calls"], seen["passes"]
    yield Finding("calls", calls == 1, f"You called f {_times(calls)}; one call is enough.")
    yield Finding("passes", passes <= n, f"{passes} backward passes ran; the derivative number {n} takes {n}.")


def _clean(seen: Observation, names: tuple[str, ...]) -> Iterator[Finding]:
    """Find whether the result carries no graph and the given tensors are as they were."""
    yield Finding(
        "recorded",
        not seen["recorded"],
        "What you returned still has a graph. Nobody differentiates it again, and it keeps memory.",
    )
    yield Finding("changed", not seen["changed"], f"Your function changed the numbers in {listed(seen['changed'])}.")
    yield Finding(
        "requiring",
        not seen["requiring"],
        f"Your function changed requires_grad of {listed(seen['requiring'])}. Work on a detached tensor of your own.",
    )
    yield Finding(
        "graded", not seen["graded"], f"Your function wrote to .grad of {listed(seen['graded'])}. Leave it as it was."
    )
    text = "f has a parameter of its own, and your function wrote to its .grad."
    yield Finding("own parameter", seen["own parameter"], text)
    yield untouched(seen)


def untouched(seen: Observation) -> Finding:
    """Find whether everything around the answer is as it was."""
    return Finding("left", not seen["left"], f"Your function left something changed: {listed(seen['left'])}.")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _is_sum(case: Case, seen: Observation) -> bool:
    """Tell the result of passes that add to one `.grad`: each turns the sum g so far into g + g'."""
    n = case.given["n"]
    sums = (math.comb(n - 1, k) * _formula(case, k + 1) for k in range(n))
    return n > 1 and close(seen["returned"], sum(sums, torch.zeros(())))


def _zero(seen: Observation) -> bool:
    returned = seen["returned"]
    return isinstance(returned, Array) and not bool(returned.tensor().any())


nth_derivative = Exercise(
    id="nth_derivative",
    title="The nth derivative",
    lesson=LESSON,
    difficulty=2,
    minutes=15,
    points=2,
    call="nth_derivative(f, x, n)",
    cases=_nth_cases,
    judge=_judge_nth,
    hints=(
        "The derivative of a derivative: run a pass over the result of the last one. What has to be recorded for that?",
        "Take a tensor of your own from x, call f once, and loop n times. Each number of the result depends on one "
        "number of x alone, so the sum has all derivatives as its gradient. Before a pass ask whether what you "
        "have depends on your tensor at all.",
        "own = x.detach().requires_grad_(); y = f(own). n times: if y does not require grad, return zeros; "
        "else y becomes the gradient of y.sum() for own, with create_graph and materialize_grads (y may have a graph "
        "that leads to a parameter of f only). At the end return y detached.",
    ),
    misconceptions=(
        Misconception(
            "all derivatives added up",
            "Your answer adds up derivatives of several orders. Passes that write to `.grad` add to what the passes "
            "before them left there.",
            _is_sum,
        ),
        Misconception(
            "one pass too many",
            "Your answer is the derivative after the one that was asked for.",
            lambda case, seen: close(seen["returned"], _formula(case, case.given["n"] + 1)),
        ),
        Misconception(
            "retained, not recorded",
            "From the second derivative on your answer is zero. The passes before were not recorded, so what they "
            "gave counted as a constant.",
            lambda case, seen: case.given["n"] > 1 and _zero(seen),
        ),
    ),
)


# The product of a Hessian and a vector.

# No tensor may have more numbers than this many times x: the n by n Hessian of the large case has far more.
_TIMES = 20


def _hvp_cases(seed: int) -> Iterator[Case]:
    trials: dict[str, tuple[str, tuple[int, ...], bool]] = {
        "a vector": ("mixed", (5,), False),
        "a matrix": ("softmax", (3, 2), True),
        "300 numbers": ("mixed", (300,), True),
        "linear in all of x": ("line", (3,), False),
        "linear in a part of x": ("half a line", (3, 2), True),
        "a line whose slope is a parameter of f": ("weighted line", (4,), False),
    }
    for offset, (name, (function, shape, requires_grad)) in enumerate(trials.items()):
        x, v = doubles(seed + offset, *shape), doubles(seed + offset + 50, *shape)
        if function == "half a line":
            x, v = x.float(), v.float()
        given = {"function": function, "x": Array.of(x), "v": Array.of(v), "requires_grad": requires_grad}
        yield Case(name, given)


@remembered
def _measured_product(case: Case) -> torch.Tensor:
    """Return the Hessian times v, from differences of gradients along v."""
    f, given, v = scalar(case.given["function"]), case.given["x"].tensor(), case.given["v"].tensor().double()
    x, h = given.double(), 1e-3

    def change(by: float) -> torch.Tensor:
        above, below = ((x + shift * v).requires_grad_() for shift in (by, -by))
        result: torch.Tensor = torch.autograd.grad(f(above), above)[0] - torch.autograd.grad(f(below), below)[0]
        return result

    measured = (8 * change(h) - change(2 * h)) / (12 * h)  # the error falls with the fourth power of h
    return measured.to(given.dtype)


def _judge_hvp(case: Case, seen: Observation) -> Iterator[Finding]:
    n = case.given["x"].tensor().numel()
    yield right_value(seen["returned"], _measured_product(case), "What you returned")
    yield from _clean(seen, ("x", "v"))
    yield Finding("calls", seen["calls"] == 1, f"You called f {_times(seen['calls'])}; one call is enough.")
    text = "Your function called f at several points at once, through vmap. One point, x, is enough."
    yield Finding("one point", not seen["batched"], text)
    yield Finding("passes", seen["passes"] <= 2, f"{seen['passes']} backward passes ran; two are enough.")
    if n >= 100:
        largest = seen["largest"]
        text = (
            f"You made a tensor of {largest:,} numbers for an x of {n}. Nothing larger than {_TIMES * n:,} is needed."
        )
        yield Finding("size", largest <= _TIMES * n, text)


def _gradient_by(case: Case) -> torch.Tensor:
    result: torch.Tensor = torch.func.grad(scalar(case.given["function"]))(case.given["x"].tensor())
    return result.detach()


def _row_sums(case: Case) -> torch.Tensor:
    ones = Array.of(torch.ones_like(case.given["v"].tensor()))
    return _measured_product(Case(case.name, {**case.given, "v": ones}))


hvp = Exercise(
    id="hvp",
    title="A Hessian-vector product without the Hessian",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=3,
    call="hvp(f, x, v)",
    cases=_hvp_cases,
    judge=_judge_hvp,
    hints=(
        "A pass gives a vector times a Jacobian, without the Jacobian. Of which function is the Hessian the Jacobian?",
        "The Hessian is the Jacobian of the gradient. Record the first pass, then run a second one from the gradient, "
        "with v as its seed. What if the gradient does not depend on x?",
        "own = x.detach().requires_grad_(); the gradient of f(own) with create_graph; if it requires no grad, zeros; "
        "else grad(gradient, own, v, materialize_grads=True). Or: torch.func.jvp of torch.func.grad(f) at x along v, "
        "second result, detached.",
    ),
    misconceptions=(
        Misconception(
            "the gradient times v",
            "What you returned is the gradient times v, number by number. That is a first derivative.",
            lambda case, seen: close(seen["returned"], _gradient_by(case) * case.given["v"].tensor()),
        ),
        Misconception(
            "row sums times v",
            "What you returned is the sum of each row of the Hessian, times v. The second pass started from the sum "
            "of the gradient, so v came too late.",
            lambda case, seen: close(seen["returned"], _row_sums(case) * case.given["v"].tensor()),
        ),
        Misconception(
            "the whole Hessian",
            "The numbers are right, but on the way you made the whole Hessian: as many numbers as x has, squared.",
            lambda case, seen: (
                seen["largest"] >= case.given["x"].tensor().numel() ** 2 and case.given["x"].tensor().numel() > 100
            ),
        ),
    ),
)


# The Hessian of a loss, for a list of parameters.


def _hessian_cases(seed: int) -> Iterator[Case]:
    trials = {
        "two layers": ("two layers", False),
        "a loss that is linear in one parameter": ("straight in one", False),
        "a parameter without influence": ("a spare", False),
        "a loss that is linear in all parameters": ("straight", False),
        "float32": ("a spare", True),
    }
    for offset, (name, (loss, single)) in enumerate(trials.items()):
        yield Case(name, {"loss": loss, "single": single, "seed": seed + offset})


@remembered
def _exact(case: Case) -> torch.Tensor:
    parameters = [parameter.detach() for parameter in parameters_of(case)]
    shapes = [parameter.shape for parameter in parameters]
    sizes = [parameter.numel() for parameter in parameters]
    loss = LOSSES[case.given["loss"]][1]

    def joined(flat: torch.Tensor) -> torch.Tensor:
        return loss([part.reshape(shape) for part, shape in zip(flat.split(sizes), shapes, strict=True)])

    result: torch.Tensor = torch.func.hessian(joined)(
        torch.cat([parameter.reshape(-1) for parameter in parameters])
    ).detach()
    return result


def _judge_hessian(case: Case, seen: Observation) -> Iterator[Finding]:
    right = _exact(case)
    yield right_value(seen["returned"], right, "What you returned")
    yield Finding(
        "recorded",
        not seen["recorded"],
        "What you returned still has a graph. Nobody differentiates it again, and it keeps memory.",
    )
    text = "Your function changed a parameter: its numbers, its .grad or requires_grad. Leave all three as they were."
    yield Finding("untouched", seen["untouched"], text)
    most = len(right) + 1
    text = f"{seen['passes']} backward passes ran. One for the gradient and one for each of its {most - 1} numbers do."
    yield Finding("passes", seen["passes"] <= most, text)
    yield untouched(seen)


def _blocks(case: Case) -> torch.Tensor:
    """Return a mask of the blocks on the diagonal."""
    parameters = parameters_of(case)
    result: torch.Tensor = torch.block_diag(
        *(torch.ones(p.numel(), p.numel(), dtype=torch.float64) for p in parameters)
    )
    return result


def _gradient_of(case: Case) -> torch.Tensor:
    parameters = parameters_of(case)
    gradients = torch.autograd.grad(LOSSES[case.given["loss"]][1](parameters), parameters, materialize_grads=True)
    return torch.cat([gradient.reshape(-1) for gradient in gradients])


loss_hessian = Exercise(
    id="loss_hessian",
    title="The Hessian of a loss",
    lesson=LESSON,
    difficulty=3,
    minutes=20,
    points=3,
    call="loss_hessian(loss, parameters)",
    cases=_hessian_cases,
    judge=_judge_hessian,
    hints=(
        "First one long gradient, recorded. Then its rows: the Hessian is the Jacobian of that gradient.",
        "Some gradients have no graph, because they depend on nothing, and some parameters play no part. "
        "`materialize_grads=True` gives zeros for the second; for the first ask requires_grad. With "
        "is_grads_batched=True those zeros lack the dimension of the rows: use allow_unused, and fill in your own.",
        "Gradients of the loss with create_graph and materialize_grads; flatten and join them. For each number of the "
        "joined gradient: grad(number, parameters, retain_graph=True, materialize_grads=True), flattened and joined, "
        "is one row. If the joined gradient does not require grad, the matrix is zero.",
    ),
    misconceptions=(
        Misconception(
            "blocks on the diagonal only",
            "Your matrix is right within each parameter, and zero between two of them. The gradient of one parameter "
            "depends on the others, too.",
            lambda case, seen: close(seen["returned"], _exact(case) * _blocks(case)),
        ),
        Misconception(
            "gradients multiplied",
            "Your matrix holds products of two first derivatives. These are not second derivatives.",
            lambda case, seen: close(seen["returned"], torch.outer(_gradient_of(case), _gradient_of(case))),
        ),
        Misconception(
            "row sums on the diagonal",
            "Your matrix is diagonal and holds the sums of the Hessian's rows. A pass from the sum of the gradient "
            "adds up rows before you can see them.",
            lambda case, seen: close(seen["returned"], _exact(case).sum(1).diag()),
        ),
    ),
)
