"""Padding masks that mark what they should not."""

from __future__ import annotations

import ast
import re
import weakref
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import Any, ClassVar

import torch

from course_utils.audit.check import Check, Found
from course_utils.audit.events import Call, Op
from course_utils.audit.expressions import assigned_value, returned_by
from course_utils.audit.lines import Spot, here, spots
from course_utils.audit.mentions import parts, ran
from course_utils.audit.source import function_around, text_at
from course_utils.explain.source import called

_PAD = re.compile(r"pad", re.IGNORECASE)
_OF_LIBRARIES = re.compile(r"attention_mask$")  # 1 for what counts
_LENGTHS = re.compile(r"len", re.IGNORECASE)
_EQUAL = frozenset({"eq", "__eq__"})
_UNEQUAL = frozenset({"ne", "__ne__"})
_MOST, _TIMES = 64, 2
_FAR = -1e4  # what is filled in so that a softmax leaves nothing


class Masks(Check):
    """`tokens != PAD` and `tokens == PAD`, and what asks such a mask where to look."""

    codes: ClassVar = ("mask-inverted",)
    functions: ClassVar = (
        _EQUAL | _UNEQUAL | {"scaled_dot_product_attention", "masked_fill", "masked_fill_", "__invert__"}
    )

    def __init__(self, *args: object) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self._seen: set[Spot] = set()
        # By its memory: a mask, whether it is True at the padding, and the line that made it.
        self._masks: OrderedDict[int, tuple[weakref.ref[torch.Tensor], bool, Spot]] = OrderedDict()
        self._wrong: Counter[tuple[Spot, str]] = Counter()

    def called(self, event: Call) -> None:
        if len(self._seen) < 50:
            self._seen.update(event.spots)

    def function(self, event: Op) -> None:
        if event.name in _EQUAL | _UNEQUAL | {"__invert__"}:
            self._made(event)
        elif event.name == "scaled_dot_product_attention":
            self._asked(event.argument(3, "attn_mask"), True, "scaled_dot_product_attention attends where it is True")
        elif isinstance(event.argument(2, "value"), float) and event.argument(2, "value") <= _FAR:
            self._asked(event.argument(1, "mask"), False, f"{event.name} takes away what it marks")

    def _made(self, event: Op) -> None:
        given, spot = event.argument(0, "input"), event.spot
        if spot is None or not isinstance(event.out, torch.Tensor) or event.out.dtype is not torch.bool:
            return
        if event.name == "__invert__":
            known = self._known(given)
            at_padding = not known[0] if known is not None else None
        elif given.is_floating_point() or not _PAD.search(text_at(spot)):
            at_padding = None
        else:
            at_padding = event.name in _EQUAL
        if at_padding is not None:
            self._masks[_memory(event.out)] = weakref.ref(event.out), at_padding, spot
            if len(self._masks) > _MOST:
                self._masks.popitem(last=False)

    def _known(self, mask: Any) -> tuple[bool, Spot] | None:
        """Return of a mask, or of a view of one, whether it is True at the padding, and the line that made it."""
        known = self._masks.get(_memory(mask)) if isinstance(mask, torch.Tensor) else None
        return known[1:] if known is not None and known[0]() is not None else None

    def _asked(self, mask: Any, wrong: bool, does: str) -> None:
        known = self._known(mask) if isinstance(mask, torch.Tensor) and mask.dtype is torch.bool else None
        if known is not None and known[0] is wrong:
            handed, asked = _handed_on(known[1]), here()
            there = f" (line {asked.line})" if asked is not None and asked != handed else ""
            self._wrong[handed, does + there] += 1

    def found(self) -> Iterator[Found]:
        for (spot, does), times in self._wrong.items():
            if times >= _TIMES:
                where, put = ("padding", "!=") if "attends" in does else ("words", "==")
                yield self.say(
                    "mask-inverted",
                    spot,
                    f"the mask is True at the {where}, and {does}: the words are ignored, and the padding is read",
                    "In scaled_dot_product_attention a mask of booleans says what takes part, in masked_fill what is "
                    "overwritten, in a key_padding_mask what is left out.",
                    f"mask = tokens {put} PAD  # or ~mask",
                    certain=False,
                    times=times,
                )
        for file, scope in ran(sorted(self._seen)):
            for call in parts(scope):
                for given in call.keywords if isinstance(call, ast.Call) else ():
                    at = Spot(file, call.lineno)  # type: ignore[attr-defined]
                    if (given.arg or "").endswith("key_padding_mask") and _marks_words(given.value, at):
                        yield self._inverted(at, given.arg or "")

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


def _handed_on(made: Spot) -> Spot:
    """Return the line that is at work in the function in which a mask was made; where that has ended, its own."""
    scope = function_around(made)
    lines = spots(8)
    return next((it for it in lines if it.file == made.file and function_around(it) is scope), made)


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def _marks_words(value: ast.expr, spot: Spot) -> bool:
    """Say whether an expression, what a name was bound to, or what a function returns, is True where words are."""
    if isinstance(value, ast.Name):
        value = assigned_value(spot, value.id) or value
    if isinstance(value, ast.Call):
        if called(value) == "bool" and isinstance(value.func, ast.Attribute):
            return _OF_LIBRARIES.search(ast.unparse(value.func.value)) is not None
        return any(_marks_words(it, spot) for it in returned_by(spot, value) if isinstance(it, ast.Compare))
    if not isinstance(value, ast.Compare) or len(value.ops) != 1:
        return False
    left, right = value.left, value.comparators[0]
    if isinstance(value.ops[0], ast.NotEq):
        numbers = isinstance(right, ast.Constant) and right.value == 0 and not re.search(r"mask|pad", ast.unparse(left))
        return numbers or _PAD.search(ast.unparse(right)) is not None
    if isinstance(value.ops[0], ast.Gt):
        left, right = right, left
    elif not isinstance(value.ops[0], ast.Lt):
        return False
    return "arange" in ast.unparse(left) and _LENGTHS.search(ast.unparse(right)) is not None
