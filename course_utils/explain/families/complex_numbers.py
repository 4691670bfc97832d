"""Complex numbers where a gradient or a real number was wanted."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.families.no_graph import started_from
from course_utils.explain.naming import receiver
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, operand, written


def _complex_loss(s: Situation, m: re.Match[str]) -> Explanation | None:
    loss = written(started_from(s)) or "the loss"
    kind = m[1]
    why = f"backward() starts from one real number, which can grow or shrink. `{loss}` is {kind}: the square or mean "
    why += "of complex numbers is complex again."
    squares = list(_squares(s))
    fix = f"{operand(loss)}.abs()  # of one number; of a difference d, its squared size: d.abs().pow(2).mean()"
    places: list[Place] = []
    if len(squares) == 1:
        place, base = squares[0]
        fix, places = f"{operand(base)}.abs().pow(2)  # the squared size, which is real", [place]
    return card("complex-loss", f"`{loss}` is {kind}, not a real number", why, fix, [*places, *s.at_start()])


def _squares(s: Situation) -> Iterator[tuple[Place, str]]:
    """Yield the squares in the learner's files that are at hand, with what is squared."""
    for source in {id(call.source): call.source for call in s.calls}.values():
        for node in ast.walk(source.tree) if source is not None else ():
            base: ast.expr | None = None
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and written(node.right) in ("2", "2.0"):
                base = node.left
            elif called(node) in ("square", "pow"):
                base = receiver(node)
            text = written(base)
            if base is not None and source is not None and text and text != "torch" and "abs" not in text:
                yield source.place("squared here", base), text


def _discards(s: Situation, m: re.Match[str]) -> Explanation | None:
    tree = s.line_tree
    casts = [it for it in ast.walk(tree) if called(it) in _CASTS] if tree is not None else []
    owner = written(receiver(casts[0]), 60) if len(casts) == 1 else ""
    own = owner or "z"
    why = "A conversion to real numbers keeps the real part only, and the gradient of the imaginary part is lost too."
    fix = f"{operand(own)}.real  # says that the real part is meant: no warning\n{operand(own)}.abs()  # or the size"
    shown = f"`{owner}`" if owner else "a complex tensor"
    return card("complex-cast", f"{shown} is complex, and was converted to real numbers", why, fix, s.needed())


_CASTS = ("to", "float", "double", "half", "type", "bfloat16")


def _not_for_complex(s: Situation, m: re.Match[str]) -> Explanation | None:
    what = called(s.node) or next(it for it in m.groups() if it)
    why = f"`{what}` orders or compares numbers, or is not written for complex ones: a complex number has no order."
    fix = "# .abs() or .real of what it is given, or torch.view_as_real, which gives two real numbers for each"
    return card("complex-cast", f"`{what}` does not take complex numbers", why, fix, s.needed())


RULES = (
    Rule(RuntimeError, r"grad can be implicitly created only for real scalar outputs but got torch\.(complex\w+)",
         _complex_loss),
    Rule(Warning, r"Casting complex values to real discards the imaginary part", _discards),
    Rule(RuntimeError, r"\"(\w+)\" not implemented for 'Complex(?:Float|Double)'|"
         r"(\w+) is not supported for complex types|(\w+)\(\): does not support complex input", _not_for_complex),
)  # fmt: skip
