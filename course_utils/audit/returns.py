"""Returns that are summed from the last step back, kept in that order, and never turned round again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from course_utils.audit.episodes import is_discount
from course_utils.audit.expressions import factors_of
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import names_read, parts
from course_utils.audit.rewards import is_reward
from course_utils.audit.source import tree_of
from course_utils.explain.source import called, names_of

_BACK = re.compile(r"reversed\(|\[::-1\]|flip(ud)?\(|, -1, -1\)|\.reverse\(|insert\(0|appendleft\(|sort|argsort")
_FILLS = frozenset({"append", "extend", "add", "put", "push"})
_SCOPES = 12


def backward_returns(file: str, scope: ast.AST) -> Iterator[tuple[Spot, str]]:
    """Yield the lines that keep returns in the order from the last step to the first, each with the name kept in."""
    nodes = list(parts(scope))
    for node in nodes:
        if isinstance(node, ast.For | ast.While) and _goes_back(node):
            for line, kept in _kept(node, nodes):
                if not _turned_round(file, scope, kept, node):
                    yield Spot(file, line.lineno), kept
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _accumulates(node.value):
            kept = node.targets[0].id
            if not _turned_round(file, scope, kept, node):
                yield Spot(file, node.lineno), kept


def _goes_back(loop: ast.For | ast.While) -> bool:
    """Say whether a loop takes the last thing first: over what is reversed, by indices from the end, or by `pop()`."""
    if isinstance(loop, ast.For) and re.search(r"reversed\(|\[::-1\]|, -1, -1\)", ast.unparse(loop.iter)):
        return True
    for node in (part for line in loop.body for part in ast.walk(line)):
        if isinstance(node, ast.Call) and called(node) == "pop" and not node.args and isinstance(loop, ast.While):
            return True
        index = node.slice if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) else None
        bound = names_of(loop.target) if isinstance(loop, ast.For) else set()
        for part in ast.walk(index) if index is not None else ():
            taken = part.operand if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub) else None
            taken = part.right if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub) else taken
            if taken is not None and bound & names_read(taken):
                return True
    return False


def _kept(loop: ast.For | ast.While, nodes: list[ast.AST]) -> Iterator[tuple[ast.stmt, str]]:
    """Yield the lines of a loop that put each sum at the end of a list, with the list's name."""
    total = _sum_in(loop.body)
    for node in (part for line in loop.body for part in ast.walk(line)) if total else ():
        call = node.value if isinstance(node, ast.Expr) else None
        if isinstance(call, ast.Call) and called(call) == "append" and isinstance(call.func, ast.Attribute):
            kept, value = ast.unparse(call.func.value), call
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and isinstance(node.value, ast.List):
            kept, value = ast.unparse(node.target), node.value  # type: ignore[assignment]
        else:
            continue
        if total in names_read(value) and not _others(loop, kept, total) and _is_list(kept, nodes):
            yield node, kept  # type: ignore[misc]


def _is_list(kept: str, nodes: list[ast.AST]) -> bool:
    """Say whether a name stands for a list or an attribute: a deque may be turned by other means."""
    made = [it.value for it in nodes if isinstance(it, ast.Assign) and kept in map(ast.unparse, _each(it.targets))]
    return all("deque" not in ast.unparse(it) for it in made)


def _each(targets: list[ast.expr]) -> Iterator[ast.expr]:
    for target in targets:
        yield from target.elts if isinstance(target, ast.Tuple) else [target]


def _others(loop: ast.For | ast.While, kept: str, total: str) -> bool:
    """Say whether a loop keeps other things in the same order: log-probabilities, which may then fit."""
    for node in (part for line in loop.body for part in ast.walk(line)):
        method = node.func if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
        puts = method is not None and method.attr in _FILLS and ast.unparse(method.value) != kept
        if puts and total not in names_read(node):
            return True
    return False


def _sum_in(body: list[ast.stmt]) -> str:
    """Return the name in `R = r + gamma * R`, also where it is written in two lines."""
    scaled = ""
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name, value = node.targets[0].id, node.value
            if any(_is_sum(it, name) for it in ast.walk(value)):
                return name
            if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult) and _is_scaled(value, name):
                scaled = name
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            if isinstance(node.op, ast.Mult) and is_discount(node.value):
                scaled = node.target.id
            elif isinstance(node.op, ast.Add) and scaled == node.target.id and _speaks(node.value):
                return scaled
    return ""


def _is_sum(node: ast.AST, name: str) -> bool:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add):
        return False
    return any(_speaks(added) and _is_scaled(product, name) for added, product in _sides(node))


def _sides(node: ast.BinOp) -> list[tuple[ast.expr, ast.expr]]:
    return [(node.left, node.right), (node.right, node.left)]


def _is_scaled(node: ast.expr, name: str) -> bool:
    """Say whether an expression is a product of a name and a discount, and maybe of a mask."""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return False
    factors = list(factors_of(node))
    others = [it for it in factors if not (isinstance(it, ast.Name) and it.id == name)]
    return len(others) < len(factors) and any(is_discount(it) or _is_fraction(it) for it in others)


def _is_fraction(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float) and 0 < node.value < 1


def _speaks(node: ast.expr) -> bool:
    """Say whether an expression is a reward, or the difference that an advantage sums, by its name."""
    return is_reward(node) or any(it in ("r", "rew", "delta", "td", "x") for it in names_read(node))


def _accumulates(value: ast.expr) -> bool:
    """Say whether an expression is `list(accumulate(reversed(rewards), lambda R, r: r + gamma * R))`, and no more."""
    while isinstance(value, ast.Call) and called(value) in ("list", "tensor", "as_tensor") and value.args:
        value = value.args[0]
    if not isinstance(value, ast.Call) or called(value) != "accumulate" or len(value.args) != 2:
        return False
    source, function = value.args
    if not re.search(r"reversed\(|\[::-1\]", ast.unparse(source)) or not isinstance(function, ast.Lambda):
        return False
    total = function.args.args[0].arg if function.args.args else ""
    return isinstance(function.body, ast.BinOp) and any(
        _is_scaled(it, total) for it in (function.body.left, function.body.right)
    )


def _turned_round(file: str, scope: ast.AST, kept: str, where: ast.AST) -> bool:
    """Say whether anything is turned round in what handles the list: it, or what it goes beside."""
    tree = tree_of(file)
    queue: list[ast.AST] = [scope]
    for at, one in enumerate(queue):
        names = _of(one, {kept} if at == 0 else {it.name for it in queue if isinstance(it, ast.FunctionDef)})
        left = set(map(id, ast.walk(where))) if at == 0 else set()
        if any(_turns(node, names) for node in parts(one) if id(node) not in left or _fills_front(node)):
            return True
        hands = any(isinstance(it, ast.Return) and it.value and names & _every(it.value) for it in ast.walk(one))
        if hands and isinstance(one, ast.FunctionDef) and tree is not None and len(queue) < _SCOPES:
            scopes = [tree, *(it for it in ast.walk(tree) if isinstance(it, ast.FunctionDef))]
            queue += [it for it in scopes if it not in queue and one.name in map(called, parts(it))]
    return False


def _turns(node: ast.AST, names: set[str]) -> bool:
    """Say whether an expression or loop turns round something that is named so, or that goes beside it."""
    if isinstance(node, ast.For | ast.comprehension):
        return _BACK.search(ast.unparse(node.iter)) is not None and bool(names & names_read(node.iter))
    if not isinstance(node, ast.Call | ast.Subscript | ast.Assign):
        return False
    text = ast.unparse(node)
    return _BACK.search(text) is not None and (bool(names & _every(node)) or "log" in text)


def _every(node: ast.AST) -> set[str]:
    """Return the names, attributes and functions that stand in some code."""
    attributes = [it for it in ast.walk(node) if isinstance(it, ast.Attribute)]
    run = {called(it) for it in ast.walk(node)} - {""}
    return names_of(node) | run | {it.attr for it in attributes} | set(map(ast.unparse, attributes))


def _fills_front(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and called(node) in ("insert", "appendleft", "reverse")


def _of(scope: ast.AST, names: set[str]) -> set[str]:
    """Return the names of a function that are computed of some names, or filled with what is."""
    found = set(names)
    nodes = list(parts(scope))
    for _ in range(4):
        before = len(found)
        for node in nodes:
            if isinstance(node, ast.Assign) and found & _every(node.value):
                found |= {it for to in node.targets for it in names_of(to)}
            elif isinstance(node, ast.For | ast.comprehension) and found & _every(node.iter):
                found |= names_of(node.target)
            elif isinstance(node, ast.Call) and called(node) in _FILLS and isinstance(node.func, ast.Attribute):
                found |= names_of(node.func.value) if any(found & _every(it) for it in node.args) else set()
        if len(found) == before:
            break
    return found - {"self", "torch", "np"}
