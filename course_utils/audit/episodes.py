"""Returns and targets as a script writes them: what ends an episode, and the way that rewards are summed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache

from course_utils.audit.expressions import factors_at, factors_of
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import names_read, parts
from course_utils.audit.rewards import is_reward
from course_utils.audit.source import source_at, tree_of
from course_utils.explain.source import applied_to, called, names_of

_DONE = re.compile(
    r"^(d|D|done|dones|terminal|terminals|terminated|is_terminal|is_done|ended|"
    r"(batch|b|next|all|mb)_(done|dones|d|terminal|terminals)|(done|dones|terminal|terminated)_(batch|b|t|flags?))$"
)
_GAMMA = re.compile(r"gamma|discount", re.IGNORECASE)
_WRAPS = frozenset({"float", "to", "unsqueeze", "squeeze", "view", "reshape", "tensor", "as_tensor", "int", "double"})
_TURNS = re.compile(r"\b1(\.0?)?\s*-|\bnot\b|~|logical_not|where|== 0|False if|0(\.0)? if")
_BACKWARDS = re.compile(r"reversed\(|\[::-1\]|flip|-1, -1|\.reverse\(|insert\(0|appendleft\(")
_FILLS = frozenset({"append", "extend"})
_SPREADS = frozenset({"std", "var", "update", "print"})  # what is taken of values without being one of them


@lru_cache(maxsize=512)
def done_factor(spot: Spot) -> str:
    """Return the flag of an episode's end by which a line multiplies, together with a discount, if it is not turned."""
    factors = factors_at(spot)
    if not any(is_discount(part) for part in factors):
        return ""
    for part in factors:
        name = _flag(part)
        if name and re.search(rf"\b1(\.0)? - {re.escape(name)}", source_at(spot)):
            return ""  # both sides of the flag are there: a value where an episode was cut off
        if name and not _is_turned(spot.file, name):
            return ast.unparse(part)
    return ""


def _flag(node: ast.expr) -> str:
    """Return the name of a flag of an episode's end, where an expression is one, picked or cast."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call) and called(node) in _WRAPS:
            inner = applied_to(node, ("torch", "np"))
            if inner is None:
                return ""
            node = inner
        else:
            break
    name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
    return name if is_flag(name) else ""


def is_flag(name: str) -> bool:
    """Say whether a name stands for the end of an episode."""
    return _DONE.match(name) is not None


def is_discount(node: ast.expr) -> bool:
    """Say whether an expression is a discount: a name for one, or a number somewhat below 1."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, float) and 0.5 < node.value < 1
    return isinstance(node, ast.Name | ast.Attribute) and _GAMMA.search(ast.unparse(node)) is not None


def _is_turned(file: str, name: str) -> bool:
    """Say whether a file binds a flag to what says that the episode goes on."""
    tree = tree_of(file)
    for node in ast.walk(tree) if tree is not None else ():
        binds = isinstance(node, ast.Assign) and any(name in names_of(target) for target in node.targets)
        if binds and _TURNS.search(ast.unparse(node.value)):  # type: ignore[attr-defined]
            return True
    return False


def forward_sums(file: str, scope: ast.AST) -> Iterator[tuple[Spot, str]]:
    """Yield the loops that sum discounted rewards from the first one on and keep each sum, with the names kept in."""
    for node in parts(scope):
        if isinstance(node, ast.For) and not _BACKWARDS.search(ast.unparse(node.iter)):
            total = next((name for part in node.body if (name := _recursion(part))), "")
            kept = _kept_in(node.body, total) if total else ""
            sources = {name for name in names_read(node.iter) if name not in ("range", "len", "zip", "enumerate")}
            back = {kept, *sources}
            if kept and not _counts_back(node) and not any(_goes_back(file, name) for name in back):
                yield Spot(file, node.lineno), kept
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            text = ast.unparse(node.value)
            taken = rf"- {node.targets[0].id}\b(?!\.)"  # what was earned before, taken from all; no mean of it
            if "cumsum(" in text and not _BACKWARDS.search(text) and _sums_rewards(node.value):
                names = {node.targets[0].id, *names_read(node.value)} - {"torch", "np"}
                if not any(_goes_back(file, name) for name in names) and not _says(file, taken):
                    yield Spot(file, node.lineno), node.targets[0].id


def _counts_back(loop: ast.For) -> bool:
    """Say whether a loop picks entries from the end: `rewards[-t - 1]`."""
    slices = (it.slice for part in loop.body for it in ast.walk(part) if isinstance(it, ast.Subscript))
    return any(isinstance(it, ast.Sub | ast.USub) for part in slices for it in ast.walk(part))


def _says(file: str, pattern: str) -> bool:
    tree = tree_of(file)
    return tree is not None and re.search(pattern, ast.unparse(tree)) is not None


def _recursion(node: ast.stmt) -> str:
    """Return the name in `R = r + gamma * R`: what is added is a reward, or a difference named delta."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
        return ""
    name, value = node.targets[0].id, node.value
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, ast.Add):
        return ""
    for added, product in ((value.left, value.right), (value.right, value.left)):
        factors = list(factors_of(product))
        mine = any(isinstance(it, ast.Name) and it.id == name for it in factors)
        named = is_reward(added) or any(it in ("r", "delta") for it in names_read(added))
        if mine and named and any(is_discount(it) for it in factors):
            return name
    return ""


def _kept_in(body: list[ast.stmt], total: str) -> str:
    """Return the name of the list or tensor that keeps each value of a sum."""
    for node in body:
        call = node.value if isinstance(node, ast.Expr) else None
        puts = isinstance(call, ast.Call) and called(call) == "append" and total in names_read(call)
        if puts and isinstance(call.func, ast.Attribute):  # type: ignore[union-attr]
            return ast.unparse(call.func.value)  # type: ignore[union-attr]
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Subscript) and isinstance(node, ast.Assign) and total in names_read(node.value):
            return ast.unparse(target.value)
    return ""


def _sums_rewards(value: ast.expr) -> bool:
    """Say whether an expression is a sum from the start over something named a reward, and nothing taken from it."""
    calls = [it for it in ast.walk(value) if isinstance(it, ast.Call) and called(it) == "cumsum"]
    taken = any(isinstance(it, ast.BinOp) and isinstance(it.op, ast.Sub) for it in ast.walk(value))
    inside = [part for call in calls for part in ast.walk(call) if isinstance(part, ast.Name | ast.Attribute)]
    return not taken and any(is_reward(it) for it in inside)


def _goes_back(file: str, name: str) -> bool:
    """Say whether a file turns a sequence round under this name, or gives some function one that is turned round."""
    tree = tree_of(file)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call | ast.Subscript | ast.Assign):
            text = ast.unparse(node)
            if re.search(rf"(?<![\w.]){re.escape(name)}\b", text) and _BACKWARDS.search(text):
                return True
    return False


def comes_from(file: str, name: str) -> set[str]:
    """Return the names of a file that are computed from a name, and the functions that return one of these."""
    tree = tree_of(file)
    found = {name}
    every = list(ast.walk(tree)) if tree is not None else []
    for _ in range(6):
        before = len(found)
        for node in every:
            if isinstance(node, ast.Assign) and _takes(node.value, found):
                found.update(it for target in node.targets for it in names_of(target))
            elif isinstance(node, ast.For | ast.comprehension) and _takes(node.iter, found):
                found.update(names_of(node.target))
            elif isinstance(node, ast.FunctionDef):
                returns = (it.value for it in ast.walk(node) if isinstance(it, ast.Return) and it.value is not None)
                found.update({node.name} if any(_takes(it, found) for it in returns) else ())
            elif isinstance(node, ast.Call) and called(node) in _FILLS and isinstance(node.func, ast.Attribute):
                owner = node.func.value if any(_takes(it, found) for it in node.args) else None
                found.update({owner.id} if isinstance(owner, ast.Name) else ())
        if len(found) == before:
            break
    return found


def _takes(node: ast.AST, names: set[str]) -> bool:
    """Say whether an expression computes with one of some names, and not only with how far they spread."""
    if isinstance(node, ast.Call) and called(node) in _SPREADS:
        return False
    if isinstance(node, ast.Call) and called(node) in names:
        return True
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Attribute) and ast.unparse(node) in names:
        return True
    return any(_takes(part, names) for part in ast.iter_child_nodes(node))
