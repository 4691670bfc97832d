"""The largest value of the next state in a bootstrapped target: taken over the batch, in place of the actions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from course_utils.audit.bounds import picked_along
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parts
from course_utils.audit.outputs import output_behind, values_in
from course_utils.audit.reading import Asked, Scopes, Seen, Told
from course_utils.audit.source import taken_apart
from course_utils.explain.source import called, names_of

_PICKS = frozenset({"max", "amax", "argmax"})
_DISCOUNTS = re.compile(r"gamma|discount|\bdisc\b", re.I)
_HOLDS, _REWARDS = (0.5, 1.0), re.compile(r"^(r|rs|rb|rew\w*|\w*reward\w*)$", re.I)


def bootstraps(scopes: Scopes, seen: Seen) -> Iterator[Told]:
    """Yield the lines that take the largest of a batch for the value of each next state."""
    for file, scope in scopes:
        nodes = list(parts(scope))
        targets = [it for it in nodes if _is_discounted(it)]
        values = values_in(scope, scopes) if targets else {}
        for node in nodes if targets else ():
            if not isinstance(node, ast.Call) or called(node) not in _PICKS:
                continue
            given, axis = picked_along(node)
            found = output_behind(given, values, file) if given is not None else None
            asked = seen.at(file, found.made) if found is not None else None
            if asked is None or not _is_of_rows(asked) or axis not in ("", "0", "-2"):
                continue
            if any(_leads_to(node, target, nodes) for target in targets):
                yield _told(Spot(file, node.lineno), axis)


def _is_of_rows(asked: Asked) -> bool:
    """Say whether a line's models always gave rows with several values each, for several states at once."""
    return bool(asked.gave) and all(it.axes == 2 and it.rows > 1 and it.last > 1 for it in asked.gave)


def _is_discounted(node: ast.AST) -> bool:
    """Say whether an expression adds something discounted to a reward."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return False
    text = ast.unparse(node)
    numbers = [it.value for it in ast.walk(node) if isinstance(it, ast.Constant) and isinstance(it.value, float)]
    near_one = any(_HOLDS[0] < it < _HOLDS[1] for it in numbers)
    rewards = any(_REWARDS.match(it) for it in names_of(node)) or "reward" in text
    return rewards and (near_one or _DISCOUNTS.search(text) is not None)


def _leads_to(node: ast.Call, target: ast.AST, nodes: list[ast.AST]) -> bool:
    """Say whether a target is computed of what a call gives, itself or by names."""
    if any(it is node for it in ast.walk(target)):
        return True
    names: set[str] = set()
    for it in nodes:
        if isinstance(it, ast.Assign) and (
            any(part is node for part in ast.walk(it.value)) or names_of(it.value) & names
        ):
            names |= {part.id for to in it.targets for part in taken_apart(to) if isinstance(part, ast.Name)}
    return bool(names_of(target) & names)


def _told(spot: Spot, axis: str) -> Told:
    what = "over the batch, for each action" if axis else "over all states and actions at once"
    return Told(
        "class-axis",
        spot,
        f"the largest value of the next state is taken {what}",
        "Values have a row for each state and a column for each action. A state is worth the largest of its own "
        "row; along axis 0, or without an axis, it is taken from other states of the batch.",
        "target_net(next_states).max(dim=1).values",
    )
