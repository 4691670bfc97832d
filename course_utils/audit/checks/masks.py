"""Padding masks that mark what they should not."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import ClassVar

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call
from course_utils.audit.expressions import assigned_value
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parts, ran

_PAD = re.compile(r"pad", re.IGNORECASE)


class Masks(Check):
    """`key_padding_mask=tokens != PAD`, as the source has it, in what ran."""

    codes: ClassVar = ("mask-inverted",)

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._seen: set[Spot] = set()

    def called(self, event: Call) -> None:
        if len(self._seen) < 50:
            self._seen.update(event.spots)

    def found(self) -> Iterator[Found]:
        for file, scope in ran(sorted(self._seen)):
            for call in parts(scope):
                for given in call.keywords if isinstance(call, ast.Call) else ():
                    spot = Spot(file, call.lineno)  # type: ignore[attr-defined]
                    if (given.arg or "").endswith("key_padding_mask") and _marks_words(given.value, spot):
                        yield self._inverted(spot, given.arg or "")

    def _inverted(self, spot: Spot, name: str) -> Found:
        return self.say(
            "mask-inverted",
            spot,
            f"{name} is True where there is no padding: the words are ignored, and the padding is read",
            "In a key_padding_mask True means: leave this position out. (A mask of other libraries, with 1 for what "
            "counts, means the opposite.)",
            f"{name}=tokens == PAD",
            certain=False,
        )


def _marks_words(value: ast.expr, spot: Spot) -> bool:
    """Say whether an expression, or what a name was bound to, is True where something is not padding."""
    if isinstance(value, ast.Name):
        value = assigned_value(spot, value.id) or value
    if not isinstance(value, ast.Compare) or len(value.ops) != 1 or not isinstance(value.ops[0], ast.NotEq):
        return False
    return any(_PAD.search(ast.unparse(it)) is not None for it in value.comparators)
