"""Comparing what an answer gave with what is right, and saying in one sentence how they differ."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import torch

from course_utils.checks.data import Array, Other, Value
from course_utils.checks.exercise import Finding

# Factors that a single number is off by: a sign, a pass too many, a mean in place of a sum.
_FACTORS = (-1.0, *(sign * factor for n in range(2, 11) for factor in (n, 1 / n) for sign in (1, -1)))

# By how much of the largest number results in float32 differ, where nothing else is wrong.
_SINGLE_ROUNDING = 1e-6


# How closely float64 is compared: nearer than float32 would round it. A Python number may have been a float32 tensor,
# as where a loop adds its losses up in one.
_DOUBLE, OF_NUMBERS = 1e-9, 1e-7


# The properties that `right_value` finds: a wrong idea of a value is one of these.
OF_VALUES = frozenset({"type", "shape", "dtype", "value"})


def right_value(received: Value, expected: torch.Tensor | float, what: str, of_double: float = _DOUBLE) -> Finding:
    """Find whether `received` has the shape, dtype and numbers of `expected`; `what` begins the message.

    For a 0-d `expected` a Python number is as good as a tensor. Tolerances follow the dtype: `of_double` is the
    relative one of float64.
    """
    wanted = _as_tensor(expected)
    if wanted.dim() == 0 and isinstance(received, int | float) and not isinstance(received, bool):
        # As a tensor of the expected dtype would be: of losses in float32 an average is not more precise than they are.
        single = isinstance(expected, torch.Tensor) and wanted.dtype.is_floating_point
        if not single or wanted.dtype == torch.float64:
            wanted, of_double = wanted.double(), OF_NUMBERS
        received = Array.of(torch.tensor(float(received), dtype=wanted.dtype))
    if not isinstance(received, Array):
        return Finding("type", False, f"{what} is {describe(received)}; expected {_tensor(wanted)}.")
    if received.shape != tuple(wanted.shape):
        return Finding("shape", False, f"{what} has shape {received.shape}; expected {tuple(wanted.shape)}.")
    values = received.tensor()
    # A Python float in the expectation has no dtype of its own to insist on.
    if isinstance(expected, torch.Tensor) and values.dtype != wanted.dtype:
        wanted_name = str(wanted.dtype).removeprefix("torch.")
        return Finding("dtype", False, f"{what} has dtype {received.dtype}; expected {wanted_name}.")
    problem = _difference(values, wanted, of_double)
    return Finding("value", problem is None, "" if problem is None else f"{what} {problem}")


def close(received: Value, expected: torch.Tensor | float) -> bool:
    """Return whether `received` has the shape and the numbers of `expected`. For telling wrong ideas apart."""
    wanted = _as_tensor(expected)
    if isinstance(received, int | float) and wanted.dim() == 0:
        return math.isclose(received, wanted.item(), rel_tol=1e-5, abs_tol=1e-8)
    if not isinstance(received, Array) or received.shape != tuple(wanted.shape):
        return False
    return _difference(received.tensor(), wanted) is None


def _as_tensor(expected: torch.Tensor | float) -> torch.Tensor:
    return expected if isinstance(expected, torch.Tensor) else torch.tensor(expected, dtype=torch.float64)


def right_entries(received: Value, expected: dict[str, Any], what: str) -> Iterable[Finding]:
    """Find which entries of a predicted dict are right.

    The message counts: were it to name the wrong ones, a table of True and False would be solved by the next try.
    The names are withheld, and what the entries should be is never said.
    """
    if not isinstance(received, dict):
        message = f"{what} is {describe(received)}; expected a dict with the keys {listed(expected)}."
        yield Finding("type", False, message)
        return
    unknown = [key for key in received if key not in expected]
    missing = [key for key in expected if key not in received]
    if missing or unknown:
        parts = ([f"has no entry for {listed(missing)}"] if missing else []) + (
            [f"has entries that nobody asked for: {listed(unknown)}"] if unknown else []
        )
        yield Finding("keys", False, f"{what} {' and '.join(parts)}.")
        return
    open_ones = [key for key, value in received.items() if value == Other("...")]
    if open_ones:
        yield Finding("complete", False, f"{what} still holds `...` for {listed(open_ones)}.")
        return
    wrong = [key for key, value in expected.items() if not _same_entry(received[key], value)]
    right = len(expected) - len(wrong)
    verb = "is" if right == 1 else "are"
    message = f"{right} of {len(expected)} entries {verb} right." if wrong else ""
    if not right and all(isinstance(value, bool) for value in (*expected.values(), *map(_plain, received.values()))):
        message += " Every True and every False is turned round: what does True stand for?"
    message += _another_kind(received, expected)
    withheld = f"Look again at {listed(wrong)}." if wrong else ""
    yield Finding("entries", not wrong, message, withheld, right / len(expected))


def _another_kind(received: dict[str, Value], expected: dict[str, Any]) -> str:
    """Tell of an entry of a kind that no right one has, where all those are flags or texts, and it is something."""
    for kind, each in ((bool, "True or False"), (str, "a text")):
        if all(isinstance(value, kind) for value in expected.values()):
            for key, value in received.items():
                if value is not None and not isinstance(_plain(value), kind):
                    return f" Each is {each}; yours for {key} is {describe(value)}."
    return ""


def right_floats(received: Value, expected: torch.Tensor, what: str) -> Finding:
    """Find whether `received` is a list of Python floats with the numbers of `expected`, a tensor of one dimension."""
    if not isinstance(received, list):
        return Finding("floats", False, f"{what} should be a list of Python floats; received {describe(received)}.")
    for item in received:
        if type(item) is not float:
            message = f"{what} should be a list of Python floats; yours has {describe(item)} in it."
            return Finding("floats", False, message)
    if expected.shape != (len(received),):
        entries = "1 entry" if len(received) == 1 else f"{len(received)} entries"
        return Finding("shape", False, f"{what} has {entries}; expected {len(expected)}.")
    return right_value(Array.of(torch.tensor(received, dtype=expected.dtype)), expected, what, OF_NUMBERS)


def describe(value: Value) -> str:
    """Name a received value in a sentence: "None", "the number 3", "a tensor of shape (2, 3)"."""
    if value is None:
        return "None"
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float):
        return f"the number {value:g}"
    if isinstance(value, str):
        return f"the text {value!r}" if len(value) <= 60 else f"a text that begins with {value[:60]!r}"
    if isinstance(value, Array):
        return f"a tensor of shape {value.shape} and dtype {value.dtype}"
    if isinstance(value, Other):
        return "still `...`" if value.kind == "..." else f"something of type {value.kind}"
    kind = "dict" if isinstance(value, dict) else "list or tuple"  # both cross as a list
    return f"a {kind} with {len(value)} {'entry' if len(value) == 1 else 'entries'}"


def listed(names: Iterable[object]) -> str:
    """Join names for a sentence: "a, b and c"."""
    *others, last = [str(name) for name in names] or ["nothing"]
    return f"{', '.join(others)} and {last}" if others else last


def counted(passes: int) -> str:
    """Return "1 backward pass" or "3 backward passes"."""
    return f"{passes} backward {'pass' if passes == 1 else 'passes'}"


def _plain(received: Value) -> Value:
    """Return what an array of no dimension holds, and any other value as it is."""
    if not isinstance(received, Array) or received.shape:
        return received
    held: Value = received.tensor().item()
    return held


def _same_entry(received: Value, expected: Any) -> bool:
    if isinstance(expected, bool | int | float):
        received = _plain(received)
    if isinstance(expected, bool) or isinstance(received, bool):
        return received is expected
    if isinstance(expected, float | int):
        return isinstance(received, float | int) and math.isclose(received, expected, rel_tol=1e-4, abs_tol=1e-6)
    return bool(received == expected)


def _difference(values: torch.Tensor, wanted: torch.Tensor, of_double: float = _DOUBLE) -> str | None:
    """Say how two tensors of one shape differ; None where they agree."""
    if values.is_complex() != wanted.is_complex():
        return f"holds {'complex' if values.is_complex() else 'real'} numbers."
    if wanted.is_complex():
        values, wanted = torch.view_as_real(values), torch.view_as_real(wanted)
    if not wanted.dtype.is_floating_point:
        same = values == wanted
        return None if bool(same.all()) else f"is wrong: {_first(values, wanted, ~same)}"
    single = torch.float64 not in (values.dtype, wanted.dtype) or values.dtype == torch.float32
    a, b = values.detach().double(), wanted.detach().double()
    # Numbers that cancel keep the rounding of what was summed: a true zero may be off by some units in the last place
    # of the largest number beside it. In float32, 3e-6 of that was seen; a real mistake is off by far more.
    relative, absolute = (1e-4, 2e-5) if single else (of_double, 1e-10)
    for dtype in {values.dtype, wanted.dtype} & {torch.float16, torch.bfloat16}:
        relative = max(relative, 2 * torch.finfo(dtype).eps)  # each order of operations rounds otherwise
    scale = float(b.abs().nan_to_num(0.0, 0.0).max()) if b.numel() else 0.0  # of the finite ones
    near = torch.isclose(a, b, rtol=relative, atol=absolute * max(scale, 1e-3), equal_nan=True)
    if bool(near.all()):
        return None
    if bool((a.isnan() & ~b.isnan()).any()):
        return f"holds NaN where the right one is a number: {_first(values, wanted, a.isnan() & ~b.isnan())}"
    if not bool(a.any()):
        return f"is zero{' everywhere' if a.numel() > 1 else ''}: {_first(values, wanted, ~near)}"
    untouched = torch.isclose(a, b, rtol=relative, atol=0.0) & (b != 0)  # so a factor is not all that is wrong
    for factor in () if bool(untouched.any()) else _factors(a, b):
        within = torch.allclose(a, factor * b, rtol=relative, atol=absolute * scale)
        if within and _fraction(factor) != "1":  # so near to 1 a factor explains nothing
            return f"is {_fraction(factor)} times the right one: {_first(values, wanted, ~near)}"
    sorted_a, sorted_b = a.flatten().sort().values, b.flatten().sort().values
    if a.numel() > 1 and torch.allclose(sorted_a, sorted_b, relative, absolute * max(scale, 1e-3)):
        return f"has the right numbers, but not each in its place: {_first(values, wanted, ~near)}"
    small = not single and float((a - b).abs().nan_to_num(math.inf).max()) < _SINGLE_ROUNDING * scale
    by = _by_little(a, b) if small else ""
    count = int((~near).sum())
    if not wanted.dim():
        return f"is wrong{by}: {_first(values, wanted, ~near)}"
    numbers = "number" if near.numel() == 1 else "numbers"
    return f"differs in {count} of {near.numel()} {numbers}{by}: {_first(values, wanted, ~near)}"


def _by_little(a: torch.Tensor, b: torch.Tensor) -> str:
    """Say how little numbers differ from the right ones. Float32 is blamed where it holds them, and not the right."""
    held, right_held = (bool((numbers.float().double() == numbers).all()) for numbers in (a, b))
    if held and not right_held:
        return ", by no more than float32 would round"
    return ", by less than a millionth of the largest" if b.dim() else ", by less than a millionth"


def _fraction(factor: float) -> str:
    """Write 1/24 and -1/7 as these, and any other number with its digits."""
    below = round(1 / factor) if abs(factor) < 0.4 else 0
    sign = "-" if below < 0 else ""
    return f"{sign}1/{abs(below)}" if below and abs(1 / factor - below) < 1e-3 else f"{factor:.5g}"


def _factors(a: torch.Tensor, b: torch.Tensor) -> tuple[float, ...]:
    """Return the factors that may be all that is wrong. Of a single number any one would do, so only plain ones."""
    largest = int(b.abs().nan_to_num(0.0, 0.0).argmax())
    one = float(a.flatten()[largest] / b.flatten()[largest])
    several = int((b != 0).sum()) > 1
    return (*_FACTORS, one) if several and math.isfinite(one) and one else _FACTORS


def _first(values: torch.Tensor, wanted: torch.Tensor, where: torch.Tensor) -> str:
    index = tuple(int(i) for i in where.nonzero()[0])
    yours, right = values[index].item(), wanted[index].item()
    place = f"at {list(index)} yours" if index else "yours"
    mine, its = told_apart(yours, right)
    return f"{place} is {mine}, the right one is {its}."


def told_apart(one: float, other: float) -> tuple[str, str]:
    """Write two numbers with as many digits as it takes to differ, at least six."""
    for digits in range(6, 18):
        kept = "#" if digits > 6 else ""  # beside a number that needs them, zeros at the end are digits, too
        texts = f"{one:{kept}.{digits}g}", f"{other:{kept}.{digits}g}"
        if texts[0] != texts[1]:
            break
    return texts


def _tensor(wanted: torch.Tensor) -> str:
    if wanted.dim() == 0:
        return "one number"
    return f"a tensor of shape {tuple(wanted.shape)}"
