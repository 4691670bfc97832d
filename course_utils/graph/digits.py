"""Numbers as text, in so few digits that another processor's rounding does not show."""

from __future__ import annotations

import math
from typing import Any

DIGITS = 4
NEARLY_ZERO = "\u22480"  # what is shown of a number that its tensor's own rounding may have made

# How far, relative to its size, rounding may move a number of single precision in a calculation of a few steps.
_MOVES = 2e-6
# Numbers that are more decimal places smaller than the largest of their tensor are what rounding left.
_PLACES = 6
# Whole numbers below this are written out.
_WRITTEN_OUT = 100_000


def short(number: Any, digits: int = DIGITS) -> str:
    """Return a number in so many digits, with one more where it lies so close to the middle that rounding decides.

    Without that 1.0625, which is exact, would be 1.062, and 1.063 where a processor computes 1.0625001.
    """
    if isinstance(number, complex):
        return f"{short(number.real)}{'-' if number.imag < 0 else '+'}{short(abs(number.imag))}j"
    if not isinstance(number, float) or not math.isfinite(number):
        return str(number)
    whole = round(number)
    if abs(whole) < _WRITTEN_OUT and abs(number - whole) <= _MOVES * abs(number):
        return str(whole)
    last = 10.0 ** (_magnitude(number) - digits + 1)  # the worth of the last digit
    beyond = abs(number) / last % 1
    between = abs(beyond - 0.5) * last <= _MOVES * abs(number)
    return f"{number:.{digits + between}g}"


def listed(numbers: Any) -> str:
    """Return a number, or nested lists of numbers as `tolist` gives them, in one line: "[[1, 2], [3, 4]]"."""
    return _listed(_told(numbers, _most(numbers)))


def table(numbers: list[Any]) -> tuple[str, ...]:
    """Return numbers in rows and columns: a line of text for each row, all equally wide."""
    told = _told(numbers, _most(numbers))
    told = told if told and isinstance(told[0], list) else [told]
    width = max((len(text) for row in told for text in row), default=0)
    return tuple(f"[{' '.join(text.rjust(width) for text in row)}]" for row in told)


def flat(numbers: Any) -> list[Any]:
    """Return nested lists of numbers as one list; of a number a list of one."""
    return [one for part in numbers for one in flat(part)] if isinstance(numbers, list) else [numbers]


def _told(numbers: Any, most: float) -> Any:
    """Return numbers as text, the smaller than `most`, the largest, the fewer digits: rounding moves all alike."""
    if isinstance(numbers, list):
        return [_told(part, most) for part in numbers]
    if not isinstance(numbers, float) or not math.isfinite(numbers) or not numbers:
        return short(numbers)
    smaller = _magnitude(most) - _magnitude(numbers)
    return NEARLY_ZERO if smaller > _PLACES else short(numbers, min(DIGITS, max(DIGITS + 1 - smaller, 1)))


def _listed(told: Any) -> str:
    return f"[{', '.join(map(_listed, told))}]" if isinstance(told, list) else str(told)


def _most(numbers: Any) -> float:
    return max((abs(one) for one in flat(numbers) if isinstance(one, float) and math.isfinite(one)), default=0.0)


def _magnitude(number: float) -> int:
    return math.floor(math.log10(abs(number)))
