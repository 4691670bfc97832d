"""Judging `numerical_gradient`: a gradient by central differences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from course_utils.checks.compare import listed, right_value
from course_utils.checks.data import Array, Case, Observation
from course_utils.checks.exercise import Exercise, Finding, Misconception
from course_utils.checks.judges.lesson_02_how_backward_works import LESSON
from course_utils.checks.judges.lesson_02_how_backward_works.left_alone import left_alone
from course_utils.checks.judges.loops import times
from course_utils.checks.scenes.lesson_02_how_backward_works.numerical_gradient import FUNCTIONS
from course_utils.checks.scenes.numbers import numbers


def _cases(seed: int) -> Iterator[Case]:
    shapes: dict[str, tuple[int, ...]] = {"a bowl": (3, 1), "weights and a sine": (2, 3), "one number": ()}
    for offset, (name, shape) in enumerate(shapes.items()):
        x = numbers(seed + offset, *shape, dtype=torch.float64)
        if name == "weights and a sine":  # a step in proportion to the number would be none here
            x[0, 1] = 0
        yield Case(name, {"x": Array.of(x), "function": name, "transposed": len(shape) == 2})
    x = numbers(seed + 5, 2, 3)
    yield Case("a float32 input", {"x": Array.of(x), "function": "weights and a sine"})


def _judge(case: Case, seen: Observation) -> Iterator[Finding]:
    x = case.given["x"].tensor().double().requires_grad_()
    (expected,) = torch.autograd.grad(FUNCTIONS[case.given["function"]](x), x)
    yield from left_alone(seen)
    message = "Autograd follows a tensor that you gave to f. It has to require no gradient."
    yield Finding("autograd", not seen["recorded"], message)
    calls, needed = len(seen["points"]), 2 * x.numel()
    most = needed + 2
    message = (
        f"You called f {times(calls)} for {x.numel()} numbers in x. Central differences need {needed} calls; "
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
    finding = right_value(seen["returned"], expected, "What you returned")
    yield _near_enough(case, seen, finding, expected)


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


def _near_enough(case: Case, seen: Observation, finding: Finding, expected: torch.Tensor) -> Finding:
    """Allow the error that central differences have with any sensible step, and no one-sided ones."""
    received = seen["returned"]
    if finding.prop != "value" or finding.ok:
        return finding
    values = received.tensor() if isinstance(received, Array) else torch.as_tensor(received)
    error = float((values.double() - expected).abs().max() / expected.abs().max())
    message = finding.message
    if error < 1e-3:  # the numbers as they are printed could look the same
        message = (
            f"What you returned is near the gradient, but the largest error is {error:.1g} of the largest number. "
            "With two calls on float64 tensors, one on either side, and a step near 1e-5 it stays below 1e-06."
        )
    step = _step_to_blame(case, seen, values)
    if step > _GOOD_STEPS[1]:
        message = f"Your step is {step:.1g}, which is too large: f bends between the two points. Take one near 1e-5."
    elif step:
        message = (
            f"Your step is {step:.1g}, which is too small: the two values of f are nearly equal, and their difference "
            "is mostly rounding. Take one near 1e-5."
        )
    return Finding("value", error < 1e-6, message)


_GOOD_STEPS = (1e-7, 1e-4)


def _step_to_blame(case: Case, seen: Observation, received: torch.Tensor) -> float:
    """Return the step, if what was returned are the quotients at the points and their step is no good one; or 0."""
    pairs: dict[int, dict[bool, tuple[float, float]]] = {}
    f = FUNCTIONS[case.given["function"]]
    points = [point.tensor() for point in seen["points"] if isinstance(point, Array)]
    for point, shift in zip(points, _shifts(case, seen), strict=False):
        for index, by in shift[: len(shift) == 1]:
            pairs.setdefault(index, {})[by > 0] = (by, float(f(point)))
    if len(points) != len(seen["points"]) or len(pairs) != received.numel():
        return 0.0
    steps = [by for sides in pairs.values() for by, _ in sides.values()]
    if any(len(sides) < 2 for sides in pairs.values()) or _GOOD_STEPS[0] < max(steps) < _GOOD_STEPS[1]:
        return 0.0
    quotients = [
        (pairs[i][True][1] - pairs[i][False][1]) / (pairs[i][True][0] - pairs[i][False][0]) for i in sorted(pairs)
    ]
    mine = received.double().reshape(-1)
    off = (mine - torch.tensor(quotients, dtype=torch.float64)).abs().max()
    return max(steps) if float(off) < 1e-2 * float(mine.abs().max()) else 0.0


def _not_put_back(case: Case, seen: Observation) -> bool:
    """Tell whether the points at which f was called differ from x in one number at first, and in all in the end."""
    sizes = [len(shift) for shift in _shifts(case, seen) if shift]
    usual = len(sizes) == len(seen["points"]) and not seen["changed"] and not seen["recorded"]
    return usual and sizes == sorted(sizes) and sizes[:1] == [1] and 1 < sizes[-1] == case.given["x"].tensor().numel()


def _one_sided(case: Case, seen: Observation) -> bool:
    """Tell whether f was called at x itself, and for no number of x on both sides."""
    shifts = _shifts(case, seen)
    at_x = sum(not shift for shift in shifts)
    usual = len(shifts) == len(seen["points"]) and not seen["changed"] and not seen["recorded"]
    return usual and 0 < at_x < len(shifts) and not _both_sides(case, seen)


def _quotients_lost(case: Case, seen: Observation) -> bool:
    """Tell whether zeros came of what was measured, where x, and what is made like it, is not contiguous."""
    returned, count = seen["returned"], case.given["x"].tensor().numel()
    zeros = isinstance(returned, Array) and not returned.tensor().any()
    return zeros and bool(case.given.get("transposed")) and _both_sides(case, seen) == count


def _debrief(seen: Sequence[tuple[Case, Observation]]) -> Iterator[str]:
    case, found = max(seen, key=lambda pair: len(pair[1]["points"]))
    count = case.given["x"].tensor().numel()
    yield (
        f"For {count} numbers you called f {len(found['points'])} times. Backward needs one call and one pass, "
        "however many numbers there are: so this is for checking, and not for training."
    )


EXERCISE = Exercise(
    id="numerical_gradient",
    title="A gradient by central differences",
    lesson=LESSON,
    difficulty=2,
    minutes=15,
    points=2,
    call="numerical_gradient(f, x)",
    cases=_cases,
    judge=_judge,
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
            "not put back",
            "The points at which you called f differ from x in one number at first, and in all of them at the end. Put "
            "each number back before you move the next.",
            _not_put_back,
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
            "not see: reshape and flatten mostly return a copy where the tensor is not contiguous. Or two names stand "
            "for one tensor, and the second shift undid the first.",
            lambda case, seen: (
                len(seen["points"]) > 1
                and not seen["recorded"]
                and all(isinstance(point, Array) and point == seen["points"][0] for point in seen["points"])
            ),
        ),
        Misconception(
            "quotients lost",
            "What you returned is zero everywhere, and you called f on both sides of each number. Where do the "
            "quotients go? reshape and flatten mostly return a copy where a tensor is not contiguous, and what is "
            "written there does not reach it.",
            _quotients_lost,
        ),
        Misconception(
            "autograd is asked",
            "You called f with a tensor that autograd follows, as it does where it is asked. Here the gradient has to "
            "be measured, so that it can check autograd: give f tensors that require no gradient.",
            lambda case, seen: seen["recorded"],
        ),
    ),
    debrief=_debrief,
)
