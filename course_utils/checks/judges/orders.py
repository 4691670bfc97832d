"""Lines of code in an order that an answer gives: read, and executed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from course_utils.checks.compare import describe, listed
from course_utils.checks.data import Value
from course_utils.checks.exercise import Finding

# What may stand between the letters of an order that is given as a text: "B, A", "B A", "B -> A".
_BETWEEN = re.compile(r"[\s,;>-]+")

_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True)
class Broke:
    """The line that raised when an order was executed, and the error."""

    letter: str
    error: Exception


@dataclass(frozen=True)
class Lines:
    """Lines of Python by letter. An answer is an order of them: a list of letters, or a text."""

    code: Mapping[str, str]

    def read(self, value: Value) -> list[str]:
        """Return the letters that an answer gives, in capitals; an empty list where it gives no letters."""
        items = list(_BETWEEN.sub("", value)) if isinstance(value, str) else value
        if not isinstance(items, list) or not all(isinstance(item, str) for item in items):
            return []
        return [str(item).strip().upper() for item in items]

    def complete(self, value: Value) -> Iterator[Finding]:
        """Find whether an answer names every line once."""
        order = self.read(value)
        if not order:
            expected = f"expected the letters {listed(self.code)}, each once, in a list or a text"
            yield Finding("letters", False, f"Your order is {describe(value)}; {expected}.")
            return
        count = Counter(order)
        missing = [letter for letter in self.code if not count[letter]]
        twice = [letter for letter in self.code if count[letter] > 1]
        unknown = [letter for letter in count if letter not in self.code]
        parts = [
            *([f"leaves out {listed(missing)}"] if missing else []),
            *([f"names {listed(twice)} more than once"] if twice else []),
            *([f"names {listed(map(repr, unknown))}, which {_no(unknown)}"] if unknown else []),
        ]
        yield Finding("letters", not parts, f"Your order {listed(parts)}.")

    def execute(self, order: Sequence[str], names: dict[str, Any]) -> Broke | None:
        """Execute the lines in an order, among `names`, which they change. Return what raised; None where nothing did.

        `order` holds letters of these lines only. Trusted code runs here, never a learner's: only the order is theirs.
        """
        for letter in order:
            try:
                exec(compile(self.code[letter], f"<line {letter}>", "exec"), names)
            except Exception as error:
                return Broke(letter, error)
        return None

    def elsewhere(
        self, order: Sequence[str], letters: Sequence[str], trains: Callable[[Sequence[str]], bool]
    ) -> Iterator[str]:
        """Say where else some of an order's lines may stand, from running the other orders: `trains` tells which do."""
        for letter in letters:
            rest = [other for other in order if other != letter]
            right = sum(trains([*rest[:place], letter, *rest[place:]]) for place in range(len(order)))
            yield (
                f"With line {letter}, `{self.code[letter]}`, put at each place among the other {_WORDS[len(rest)]} of "
                f"your order, {right} of the {len(order)} orders {'trains' if right == 1 else 'train'} alike."
            )

    def told(self, broke: Broke) -> str:
        """Say in a sentence which line raised, and of a name that was not there yet, which."""
        line = f"line {broke.letter}, `{self.code[broke.letter]}`,"
        if isinstance(broke.error, NameError):
            return f"In your order {line} runs before `{broke.error.name}` is made."
        return f"In your order {line} raises {type(broke.error).__name__}: {broke.error}"


def _no(names: list[str]) -> str:
    return "is no line" if len(names) == 1 else "are no lines"
