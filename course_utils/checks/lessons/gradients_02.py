"""Exercises of lesson 02 on gradients of whole functions and models: measured, collected, and row by row."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from course_utils.checks.compare import close, describe, listed, right_value
from course_utils.checks.data import Array, Case, Observation, Value
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.lessons.vjp_02 import LESSON, left_alone
from course_utils.checks.observing.lesson_02 import FUNCTIONS, MAPS, two_branches
from course_utils.checks.observing.models import numbers


def _numerical_cases(seed: int) -> Iterator[Case]:
    shapes: dict[str, tuple[int, ...]] = {"a bowl": (3,), "weights and a sine": (2, 3), "one number": ()}
    for offset, (name, shape) in enumerate(shapes.items()):
        x = numbers(seed + offset, *shape, dtype=torch.float64)
        yield Case(name, {"x": Array.of(x), "function": name, "transposed": len(shape) == 2})
    x = numbers(seed + 5, 2, 3)
    yield Case("a float32 input", {"x": Array.of(x), "function": "weights and a sine"})


def _judge_numerical(case: Case, seen: Observation) -> Iterator[Finding]:
    x = case.given["x"].tensor().double().requires_grad_()
    (expected,) = torch.autograd.grad(FUNCTIONS[case.given["function"]](x), x)
    finding = right_value(seen["returned"], expected, "What you returned")
    yield _near_enough(finding, seen["returned"], expected)
    yield from left_alone(seen)
    yield Finding("autograd", not seen["recorded"], _ASKED_AUTOGRAD)
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
    both = _both_sides(case, seen)
    judged = needed <= calls <= most and not odd and all(isinstance(point, Array) for point in seen["points"])
    message = (
        f"For {both} of the {x.numel()} numbers in x you called f on both sides, at the same distance. "
        "Central differences need such a pair for each number."
    )
    yield Finding("both sides", not judged or both == x.numel(), message)


_ASKED_AUTOGRAD = "You asked autograd. Here the gradient has to be measured, so that it can check autograd."


def _shifts(case: Case, seen: Observation) -> list[list[tuple[int, float]]]:
    """Return for each float64 point which numbers of x it shifts, and by how much."""
    x = case.given["x"].tensor().double().reshape(-1)
    found = []
    for point in seen["points"]:
        if isinstance(point, Array) and point.dtype == "float64" and point.shape == case.given["x"].shape:
            moved = (point.tensor().reshape(-1) - x).tolist()
            most = max(map(abs, moved), default=0.0)
            found.append([(index, by) for index, by in enumerate(moved) if abs(by) > 1e-3 * most])
    return found


def _both_sides(case: Case, seen: Observation) -> int:
    """Count the numbers of x for which f was called at two points, one on each side at the same distance."""
    single = [shift[0] for shift in _shifts(case, seen) if len(shift) == 1]
    raised, lowered = ([(index, abs(by)) for index, by in single if (by > 0) is up] for up in (True, False))
    # Two steps from one number differ by the rounding of that number.
    paired = {i for i, up in raised for j, down in lowered if i == j and abs(up - down) < 1e-3 * up + 1e-15}
    return len(paired)


def _near_enough(finding: Finding, received: Value, expected: torch.Tensor) -> Finding:
    """Allow the error that central differences have with any sensible step, and no one-sided ones."""
    if finding.prop != "value" or finding.ok:
        return finding
    values = received.tensor() if isinstance(received, Array) else torch.as_tensor(received)
    error = float((values.double() - expected).abs().max() / expected.abs().max())
    message = finding.message
    if error < 1e-3:  # the numbers as they are printed could look the same
        message = (
            f"What you returned is near the gradient, but the largest error is {error:.1g} of the largest number. "
            "With a good step it stays below 1e-06. A larger step bends the quotient, a smaller one rounds it."
        )
    return Finding("value", error < 1e-6, message)


def _one_sided(case: Case, seen: Observation) -> bool:
    """Tell whether f was called at x itself, and for no number of x on both sides."""
    shifts = _shifts(case, seen)
    at_x = sum(not shift for shift in shifts)
    usual = len(shifts) == len(seen["points"]) and not seen["changed"] and not seen["recorded"]
    return usual and 0 < at_x < len(shifts) and not _both_sides(case, seen)


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
            "All the points at which you called f are the same. Either you shifted numbers in a tensor that f does "
            "not see: reshape and flatten return a copy where the tensor is not contiguous. Or two names stand for "
            "one tensor, and the second shift undid the first.",
            lambda case, seen: (
                len(seen["points"]) > 1
                and not seen["recorded"]
                and all(isinstance(point, Array) and point == seen["points"][0] for point in seen["points"])
            ),
        ),
        Misconception("autograd is asked", _ASKED_AUTOGRAD, lambda case, seen: seen["recorded"]),
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
    yield Finding("unfrozen", not seen["unfrozen"], f"Your function unfroze {listed(seen['unfrozen'])}.")
    yield Finding("frozen", not seen["frozen"], f"Your function froze {listed(seen['frozen'])}.")
    yield Finding("values", not seen["moved"], f"Your function changed the numbers in {listed(seen['moved'])}.")
    message = "Your function switched the model, or a part of it, from training to evaluation."
    yield Finding("mode", not seen["mode"], message)


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
    return any(seen["after"][name] is not None and seen["after"][name].tensor().any() for name in _changed_grads(seen))


def _zeros_for_none(case: Case, seen: Observation) -> bool:
    changed = _changed_grads(seen)
    return bool(changed) and all(
        seen["before"][name] is None and not seen["after"][name].tensor().any() for name in changed
    )


def _cleared_grad(case: Case, seen: Observation) -> bool:
    changed = _changed_grads(seen)
    return any(seen["before"][name] is not None for name in changed) and all(
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
            "Your pass wrote into the parameters' .grad. They have to be as before: somebody may be collecting there.",
            _wrote_grad,
        ),
        Misconception(
            "clears .grad",
            "After your function, .grad of parameters that held a gradient is cleared. Somebody may be "
            "collecting there.",
            _cleared_grad,
        ),
        Misconception(
            "zeros in place of None",
            ".grad was None before and holds zeros now. None is not zeros: some optimizers step on zeros.",
            _zeros_for_none,
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
    found: torch.Tensor = torch.autograd.functional.jacobian(f, x)
    return found


def _judge_jacobian(case: Case, seen: Observation) -> Iterator[Finding]:
    yield right_value(seen["returned"], _jacobian_oracle(case), "What you returned")
    message = f"You ran f forward {seen['calls']} times. All rows come from one graph, so one run is enough."
    yield Finding("forward", seen["calls"] == 1, message if seen["calls"] else "You never called f.")
    yield Finding("grad", _grad_kept(case, seen), "Your function changed x.grad.")
    yield from left_alone(seen, case.given["requires_grad"])


def _grad_kept(case: Case, seen: Observation) -> bool:
    if not case.given["held"]:
        return seen["grad"] is None
    return close(seen["grad"], torch.full_like(case.given["x"].tensor(), 7.0))


def _once_for_each_row(case: Case, seen: Observation) -> bool:
    right = _jacobian_oracle(case)
    rows = right.numel() // case.given["x"].tensor().numel()
    return seen["calls"] > 1 and seen["calls"] in (rows, rows + 1) and close(seen["returned"], right)


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
            _once_for_each_row,
        ),
        Misconception(
            "the rows pile up in .grad",
            "You collected the rows in .grad, which adds up over the passes, and left it changed.",
            lambda case, seen: not _grad_kept(case, seen) and seen["calls"] == 1 and not _all_rows_summed(case, seen),
        ),
    ),
)
