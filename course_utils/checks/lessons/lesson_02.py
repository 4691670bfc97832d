"""Exercises of lesson 02: vector-Jacobian products, gradients of parameters, Jacobians, and the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch.autograd import backward

from course_utils.checks.compare import close, describe, listed, right_entries, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.engine_02 import backward_engine, run_order
from course_utils.checks.observing.lesson_02 import FUNCTIONS, MAPS, two_branches
from course_utils.checks.observing.models import numbers

LESSON = "02_how_backward_works"


def _eight_gradients() -> dict[str, float | None]:
    """Run what the exercise shows, and read the gradients that it asks for."""

    def leaf(*values: float) -> torch.Tensor:
        return torch.tensor(values[0] if len(values) == 1 else values, requires_grad=True)

    found: dict[str, float | None] = {}
    x = leaf(3.0)
    a = 2 * x
    backward(a * x + 4 * a)
    found["fan_out"] = _number(x.grad)
    x = leaf(2.0)
    backward(x**3)
    backward(5 * x)
    found["two_passes"] = _number(x.grad)
    x = leaf(2.0, 3.0, 5.0)
    backward(x * x, torch.tensor([1.0, 10.0, 100.0]))
    found["vector_seed"] = _number(x.grad, 1)
    x = leaf(3.0)
    backward(x * x * x, torch.tensor(0.5))
    found["half_seed"] = _number(x.grad)
    w, x = leaf(2.0), leaf(2.0, 3.0, 5.0)
    backward((w * x).sum())
    found["broadcast"] = _number(w.grad)
    x = leaf(4.0, 7.0, 7.0)
    backward(x.amax())
    found["tie"] = _number(x.grad, 2)
    x = leaf(3.0)
    torch.autograd.grad(x * x, x)
    found["after_grad"] = _number(x.grad)
    p, q = leaf(2.0), leaf(7.0)
    backward(p * q, inputs=[p])
    found["left_out"] = _number(q.grad)
    return found


def _number(grad: torch.Tensor | None, *index: int) -> float | None:
    return None if grad is None else float(grad[index])


def _judge_predictions(case: Case, seen: Observation) -> Iterator[Finding]:
    yield from right_entries(seen["value"], _eight_gradients(), "Your prediction")


def _predicted(**wrong: tuple[float, ...]) -> Callable[[Case, Observation], bool]:
    """Tell whether one of the named entries holds one of the wrong numbers given for it."""

    def holds(case: Case, seen: Observation) -> bool:
        value = seen["value"]
        return isinstance(value, dict) and any(
            close(value.get(name), number) for name, numbers in wrong.items() for number in numbers
        )

    return holds


predict_gradients = Exercise(
    id="predict_gradients",
    title="Predict eight gradients",
    lesson=LESSON,
    difficulty=1,
    minutes=10,
    points=2,
    call=None,
    cases=lambda seed: [Case("", {})],
    judge=_judge_predictions,
    hints=(
        "Ask three things each time: which paths lead from the leaf to the result, what seed starts the pass, and "
        "whether this pass writes into that .grad at all.",
        "Within one pass, sum over all paths. Over several passes, .grad sums what each pass gave. A seed multiplies. "
        "autograd.grad writes into no .grad, and inputs= names the only leaves that are written to.",
        "fan_out: write y in terms of x alone, then differentiate. vector_seed: 2*x times the seed at that place. "
        "broadcast: w was used three times. tie: two entries share one gradient. Where nothing was written, "
        ".grad is None.",
    ),
    misconceptions=(
        Misconception(
            "one branch only",
            "Your fan_out counts one path from x to y. There are two: through `a`, and directly. Their gradients "
            "add up.",
            _predicted(fan_out=(6.0, 14.0)),
        ),
        Misconception(
            "the second pass replaces",
            "Your two_passes is the gradient of one pass alone. .grad keeps what it holds, and each pass adds to it.",
            _predicted(two_passes=(5.0, 12.0)),
        ),
        Misconception(
            "the seed is ignored",
            "You left the seed out: the gradient that backward() is given multiplies what comes out.",
            _predicted(vector_seed=(6.0,), half_seed=(27.0,)),
        ),
        Misconception(
            "nothing is zero",
            "You gave 0 for a .grad that no pass wrote to. Such a .grad holds no tensor of zeros: it holds "
            "something else.",
            _predicted(after_grad=(0.0,), left_out=(0.0,)),
        ),
    ),
)


def _pair(received: Value, expected: tuple[torch.Tensor, torch.Tensor]) -> Iterator[Finding]:
    """Find whether two gradients came, and whether each is right."""
    if not isinstance(received, list) or len(received) != 2:
        message = f"What you returned is {describe(received)}; expected two tensors, (grad_a, grad_b)."
        yield Finding("type", False, message)
        return
    yield right_value(received[0], expected[0], "grad_a")
    yield right_value(received[1], expected[1], "grad_b")


def _unchanged(seen: Observation) -> Finding:
    names = seen["changed"]
    return Finding("input", not names, f"Your function changed the numbers in {listed(names)}.")


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
        yield _unchanged(seen)

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
    yield _unchanged(seen)


def _diagonal(case: Case, seen: Observation) -> bool:
    y, v = case.given["y"].tensor(), case.given["v"].tensor()
    x = torch.logit(y).requires_grad_()
    (gradient,) = torch.autograd.grad(x.sigmoid(), x, v)  # each number by itself
    return close(seen["returned"], gradient)


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
    ),
)


def _numerical_cases(seed: int) -> Iterator[Case]:
    kinds = {
        "a bowl": ((3,), torch.float64, False),
        "weights and a sine": ((2, 3), torch.float64, True),
        "one number": ((), torch.float64, False),
    }
    for offset, (name, (shape, dtype, strided)) in enumerate(kinds.items()):
        x = numbers(seed + offset, *shape, dtype=dtype)
        yield Case(name, {"x": Array.of(x), "function": name, "strided": strided})
    x = numbers(seed + 5, 2, 3)
    yield Case("a float32 input", {"x": Array.of(x), "function": "weights and a sine"})


def _judge_numerical(case: Case, seen: Observation) -> Iterator[Finding]:
    x = case.given["x"].tensor().double().requires_grad_()
    (expected,) = torch.autograd.grad(FUNCTIONS[case.given["function"]](x), x)
    finding = right_value(seen["returned"], expected, "What you returned")
    yield _near_enough(finding, seen["returned"], expected)
    yield _unchanged(seen)
    calls, needed = len(seen["points"]), 2 * x.numel()
    times = "once" if calls == 1 else f"{calls} times"
    most = needed + 2
    message = (
        f"You called f {times} for {x.numel()} numbers in x. Central differences need {needed} calls; "
        f"at most {most} are allowed."
    )
    yield Finding("calls", needed <= calls <= most, message)
    odd = sorted({dtype for dtype in seen["dtypes"] if dtype != "float64"})
    yield Finding(
        "dtype of f", not odd, f"You called f with {listed(odd)}; the differences have to be taken in float64."
    )


def _near_enough(finding: Finding, received: Value, expected: torch.Tensor) -> Finding:
    """Allow the error that central differences have with any sensible step, and no one-sided ones."""
    if finding.prop != "value" or finding.ok:
        return finding
    values = received.tensor() if isinstance(received, Array) else torch.as_tensor(received)
    error = (values.double() - expected).abs().max() / expected.abs().max()
    return Finding("value", bool(error < 1e-6), finding.message)


def _one_sided(case: Case, seen: Observation) -> bool:
    """Tell whether f was called at x itself, and once for each number of x."""
    x = case.given["x"].tensor().double()
    points = seen["points"]
    at_x = sum(point == Array.of(x) for point in points)
    return not seen["changed"] and 0 < at_x < len(points) and len(points) - at_x == x.numel()


numerical_gradient = Exercise(
    id="numerical_gradient",
    title="A gradient by central differences",
    lesson=LESSON,
    difficulty=2,
    minutes=15,
    points=2,
    call="numerical_gradient(f, x)",
    cases=_numerical_cases,
    judge=_judge_numerical,
    hints=(
        "Change one number of x at a time, to both sides, and leave x itself alone.",
        "Work on a float64 copy. For each index take f with that number raised and f with it lowered by the same "
        "step, and divide the difference by twice the step. A step near 1e-5 is good in float64.",
        "Make a result of zeros in x's shape. Loop over the indices, for example with itertools.product over the "
        "ranges of x.shape. In the "
        "loop make two clones of the float64 copy, change them at the index, call f on both, and store the quotient.",
    ),
    misconceptions=(
        Misconception(
            "one-sided differences",
            "You compared f at shifted points with f at x itself. Such one-sided differences have an error that "
            "grows like the "
            "step; central ones, with a point on each side of x, have one that grows like its square.",
            _one_sided,
        ),
        Misconception(
            "x itself is moved",
            "After your function x holds other numbers than before. Adding a step and subtracting it again is "
            "not exact in "
            "floating point, and x is not yours to change.",
            lambda case, seen: bool(seen["changed"]),
        ),
        Misconception(
            "differences in float32",
            "You called f in float32. Two neighbouring values of f differ by a small amount there, and most of its "
            "digits are lost to rounding.",
            lambda case, seen: "float32" in seen["dtypes"],
        ),
        Misconception(
            "a copy is moved",
            "All the points at which you called f are the same. You shifted numbers in a tensor that f does not see: "
            "reshape and flatten return a copy where the tensor is not contiguous.",
            lambda case, seen: len(seen["points"]) > 1 and all(point == seen["points"][0] for point in seen["points"]),
        ),
    ),
)


_HELD = {"no gradients before": [], "some gradients before": ["trunk.weight", "head.bias", "spare.weight"]}


def _parameter_cases(seed: int) -> Iterator[Case]:
    for offset, (name, held) in enumerate(_HELD.items()):
        yield Case(name, {"seed": seed + offset, "held": held})


def _parameter_oracle(case: Case) -> dict[str, torch.Tensor | None]:
    model, loss = two_branches(case.given["seed"])
    wanted = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    found = dict(zip(wanted, torch.autograd.grad(loss, list(wanted.values()), allow_unused=True), strict=True))
    return {name: found.get(name) for name, _ in model.named_parameters()}


def _judge_parameters(case: Case, seen: Observation) -> Iterator[Finding]:
    returned, expected = seen["returned"], _parameter_oracle(case)
    if not isinstance(returned, dict):
        message = f"What you returned is {describe(returned)}; expected a dict from parameter names to gradients."
        yield Finding("type", False, message)
    else:
        yield from _named_gradients(returned, expected)
    changed = [name for name, value in seen["before"].items() if seen["after"][name] != value]
    yield Finding("grad", not changed, f"Your function changed .grad of {listed(changed)}.")
    passes = seen["passes"]
    yield Finding(
        "passes", passes == 1, f"Your function ran {passes} backward passes over the loss; one is enough and needed."
    )
    message = (
        f"After your function the graph still holds {seen['kept']} saved tensors. The pass has kept them for another "
        "pass."
    )
    yield Finding("graph", passes != 1 or not seen["kept"], message)
    message = f"The gradients of {listed(seen['recorded'])} have a graph of their own: the backward pass was recorded."
    yield Finding("recorded", not seen["recorded"], message)


def _named_gradients(returned: dict[str, Value], expected: dict[str, torch.Tensor | None]) -> Iterator[Finding]:
    missing = [name for name in expected if name not in returned]
    unknown = [name for name in returned if name not in expected]
    yield Finding("keys", not missing, f"Your dict has no entry for {listed(missing)}.")
    yield Finding(
        "unknown keys", not unknown, f"Your dict has entries that are no parameter's name: {listed(unknown)}."
    )
    for name, gradient in expected.items():
        if name not in returned:
            continue
        what = f"The gradient of {name}"
        if gradient is not None:
            yield right_value(returned[name], gradient, what)
        else:
            received = returned[name]
            message = f"{what} is {describe(received)}; expected None, since the loss has no gradient for it."
            yield Finding("unused", received is None, message)


def _changed_grads(seen: Observation) -> list[str]:
    return [name for name, value in seen["before"].items() if seen["after"][name] != value]


def _wrote_grad(case: Case, seen: Observation) -> bool:
    return any(seen["after"][name] is not None for name in _changed_grads(seen))


def _cleared_grad(case: Case, seen: Observation) -> bool:
    changed = _changed_grads(seen)
    return bool(changed) and all(
        seen["after"][name] is None or not seen["after"][name].tensor().any() for name in changed
    )


parameter_gradients = Exercise(
    id="parameter_gradients",
    title="Repair: gradients without touching .grad",
    lesson=LESSON,
    difficulty=3,
    minutes=15,
    points=3,
    call="parameter_gradients(loss, model)",
    cases=_parameter_cases,
    judge=_judge_parameters,
    hints=(
        "The lesson compared two functions that start a backward pass. One of them writes into no .grad.",
        "torch.autograd.grad takes all parameters at once. It refuses those that do not require grad, and by default "
        "those that the loss does not depend on.",
        "Collect the parameters that require grad. Call torch.autograd.grad once, with allow_unused=True and without "
        "retain_graph. Start the result with None for every name, then fill in what came back.",
    ),
    misconceptions=(
        Misconception(
            "writes into .grad",
            "Your pass wrote into the parameters' .grad, where it was added to what was there. They have to be "
            "as before.",
            _wrote_grad,
        ),
        Misconception(
            "clears .grad",
            "After your function, .grad of parameters that held a gradient is cleared. Somebody may be "
            "collecting there.",
            _cleared_grad,
        ),
        Misconception(
            "one pass for each parameter",
            "You ran a backward pass for each parameter. Each of them goes through the same graph again: one pass can "
            "give all gradients.",
            lambda case, seen: seen["passes"] > 2,
        ),
        Misconception(
            "the graph is kept",
            "Your pass is the only one over this graph, yet it keeps the saved tensors for another one, and "
            "their memory with them.",
            lambda case, seen: seen["passes"] == 1 and seen["kept"] > 0 and not _changed_grads(seen),
        ),
    ),
)


def _jacobian_cases(seed: int) -> Iterator[Case]:
    shapes = ((3,), (5,), (2, 3), (2, 3), (), (3,))
    for offset, (name, shape) in enumerate(zip(MAPS, shapes, strict=True)):
        x = numbers(seed + offset, *shape, dtype=torch.float64)
        leaf = offset % 2 == 0
        given = {"x": Array.of(x), "function": name, "requires_grad": leaf, "held": leaf, "strided": offset == 3}
        yield Case(name, given)


def _jacobian_oracle(case: Case) -> torch.Tensor:
    f, x = MAPS[case.given["function"]], case.given["x"].tensor()
    found: torch.Tensor = torch.autograd.functional.jacobian(f, x)  # type: ignore[no-untyped-call]
    return found


def _judge_jacobian(case: Case, seen: Observation) -> Iterator[Finding]:
    yield right_value(seen["returned"], _jacobian_oracle(case), "What you returned")
    message = f"You ran f forward {seen['calls']} times. All rows come from one graph, so one run is enough."
    yield Finding("forward", seen["calls"] == 1, message if seen["calls"] else "You never called f.")
    held = torch.full_like(case.given["x"].tensor(), 7.0) if case.given["held"] else None
    same = seen["grad"] is None if held is None else close(seen["grad"], held)
    yield Finding("grad", same, "Your function changed x.grad.")
    yield _unchanged(seen)


def _other_way_round(case: Case, seen: Observation) -> bool:
    right, size = _jacobian_oracle(case), case.given["x"].tensor().dim()
    outputs = right.dim() - size
    turned = right.permute(*range(outputs, right.dim()), *range(outputs))
    return close(seen["returned"], turned)


def _all_rows_summed(case: Case, seen: Observation) -> bool:
    right, size = _jacobian_oracle(case), case.given["x"].tensor().dim()
    outputs = tuple(range(right.dim() - size))
    return bool(outputs) and close(seen["returned"], right.sum(outputs))


jacobian = Exercise(
    id="jacobian",
    title="A Jacobian from vector-Jacobian products",
    lesson=LESSON,
    difficulty=3,
    minutes=20,
    points=3,
    call="jacobian(f, x)",
    cases=_jacobian_cases,
    judge=_judge_jacobian,
    hints=(
        "One vector-Jacobian product gives one row, if the vector has a 1 at one place and 0 elsewhere.",
        "Work on a detached copy of x that requires grad. Run f once. Then run one autograd.grad for each number "
        "of the "
        "output, with the graph kept for the next one.",
        "Make an identity matrix of the size of the output. Reshape each row to the output's shape, use it as "
        "grad_outputs, and "
        "collect the results. Stack them and reshape to y.shape + x.shape. retain_graph=True is right here.",
    ),
    misconceptions=(
        Misconception(
            "the rows are summed",
            "You returned the sum of all rows: the gradient of f(x).sum(). A Jacobian keeps one row for each "
            "number of the output.",
            _all_rows_summed,
        ),
        Misconception(
            "input dimensions first",
            "Your Jacobian has the dimensions of the input first. Expected are those of the output, then those "
            "of the input.",
            _other_way_round,
        ),
        Misconception(
            "f runs for each row",
            "You ran f once for each number of the output. The graph of one run serves for all rows, if it is kept.",
            lambda case, seen: seen["calls"] > 1 and close(seen["returned"], _jacobian_oracle(case)),
        ),
        Misconception(
            "the rows pile up in .grad",
            "You collected the rows in .grad, which adds up over the passes, and left it changed.",
            lambda case, seen: seen["grad"] is not None and seen["calls"] == 1 and not _all_rows_summed(case, seen),
        ),
    ),
)

EXERCISES = (
    predict_gradients,
    vjp_product,
    vjp_matmul,
    vjp_softmax,
    numerical_gradient,
    parameter_gradients,
    jacobian,
    run_order,
    backward_engine,
)
