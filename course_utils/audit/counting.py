"""Lines under an `if` that counts: `if (i + 1) % 4 == 0`."""

from __future__ import annotations

import ast

from course_utils.audit.lines import Spot
from course_utils.audit.source import around


def in_every_nth(spot: Spot) -> bool:
    """Say whether a line stands under an `if` that counts."""
    return counting_if(spot) is not None


def counting_if(spot: Spot) -> Spot | None:
    """Return the line of the `if` around a line that counts, as `if (i + 1) % 4 == 0`."""
    for node in reversed(around(spot)):
        if isinstance(node, ast.If) and any(isinstance(part, ast.Mod) for part in ast.walk(node.test)):
            return Spot(spot.file, node.lineno)
    return None


def all_but_every_nth(spot: Spot, parts: int) -> Spot | None:
    """Return the line of the `if` around a line that holds unless a count can be divided: `if (i + 1) % 4:`.

    `parts` is what the count must be divided by, as a number or as a name. None where there is an `else`.
    """
    for node in reversed(around(spot)):
        if isinstance(node, ast.If) and isinstance(node.test, ast.BinOp) and isinstance(node.test.op, ast.Mod):
            by = node.test.right
            fits = by.value == parts if isinstance(by, ast.Constant) else isinstance(by, ast.Name | ast.Attribute)
            inside = any(it.lineno <= spot.line <= (it.end_lineno or it.lineno) for it in node.body)
            return Spot(spot.file, node.lineno) if fits and inside and not node.orelse else None
    return None
