"""Rewards, and what is computed of them, as a script's names tell: with which sign a line multiplies by one."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from course_utils.audit.expressions import assigned_value, factors_at
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import arguments, functions_of, names_read
from course_utils.audit.source import around, blocks_of, function_around, statement, tree_of
from course_utils.explain.source import applied_to, called, names_of

_REWARD = re.compile(r"^(R|G|Rs|Gs|(\w+_)?(ret|rew|rtg)s?|advs?|\w*(reward|advantage)\w*|(\w+_)?returns?)$")
_CASTS = frozenset(
    {
        *("tensor", "as_tensor", "from_numpy", "FloatTensor", "array", "asarray", "numpy", "detach", "to", "float"),
        *("unsqueeze", "squeeze", "view", "reshape", "flatten", "item", "cat", "stack", "clone", "cpu", "list"),
        *("sum", "mean", "cumsum", "flip"),
    }
)
_PRODUCTS = frozenset({"dot", "inner", "vdot", "matmul", "mul", "multiply"})
_FILLS = frozenset({"append", "insert", "extend", "appendleft"})
_AT_ONCE = frozenset({"max", "min", "amax", "amin", "mean", "sum", "median", "std", "len"})
_DEEP = 6  # names and functions between a factor and the rewards that it is computed of


@lru_cache(maxsize=256)
def reward_at(spot: Spot) -> int:
    """Return with what sign a line multiplies something by a reward: 1 or -1; 0 where it does not, or nobody can tell.

    The names tell. One that is somewhere computed as a reward's negative, or by taking a reward away, says nothing.
    Where no name at the line does, what its names were computed of is asked.
    """
    sides = [*factors_at(spot), *_multiplied(spot)]
    signs = {(ast.unparse(part), sign) for part in sides if (sign := _reward(part))}
    if not signs:
        signs = {(ast.unparse(part), sign) for part in sides if (sign := _made_of(part, spot, _DEEP))}
    tree = tree_of(spot.file)
    every = list(ast.walk(tree)) if tree else []
    turned = any(isinstance(node, ast.Assign) and _names(node.targets) and _is_turned(node.value) for node in every)
    return signs.pop()[1] if len(signs) == 1 and not turned else 0


def _multiplied(spot: Spot) -> Iterator[ast.expr]:
    """Yield both sides of `a @ b` and `torch.dot(a, b)` in the statement at a line."""
    found = statement(spot)
    for node in ast.walk(found) if found is not None and not blocks_of(found) else ():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield from (node.left, node.right)
        elif isinstance(node, ast.Call) and called(node) in _PRODUCTS:
            plain = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) != "torch"
            yield from (*node.args, *((node.func.value,) if plain else ()))  # type: ignore[attr-defined]


def _inner(call: ast.Call) -> ast.expr | None:
    """Return what a call casts, stacks or reshapes; None for one that does something else."""
    return applied_to(call, ("torch", "np", "numpy")) if called(call) in _CASTS else None


def _made_of(node: ast.expr, spot: Spot, deep: int) -> int:
    """Return 1 for an expression that is computed of rewards and grows with them, -1 for one that falls, 0 else."""
    if not deep or (found := _reward(node)):
        return found if deep else 0
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_made_of(node.operand, spot, deep)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Div):
        turned = _is_turned(node) or (isinstance(node.op, ast.Sub) and not _made_of(node.left, spot, deep))
        return 0 if turned else _made_of(node.left, spot, deep)
    if isinstance(node, ast.Call):
        inside = _inner(node)
        return _made_of(inside, spot, deep) if inside is not None else _through(node, spot, deep - 1)
    if isinstance(node, ast.Subscript | ast.Starred):
        return _made_of(node.value, spot, deep)
    if isinstance(node, ast.List | ast.Tuple) and len(node.elts) == 1:
        return _made_of(node.elts[0], spot, deep)
    return _behind(node.id, spot, deep - 1) if isinstance(node, ast.Name) else 0


def _through(call: ast.Call, spot: Spot, deep: int) -> int:
    """Return the sign of what a function of the same file is given of rewards, if it returns nothing turned of it."""
    found = [it for it in functions_of(spot.file).get(called(call), ()) if isinstance(it, ast.FunctionDef)]
    if len(found) != 1:
        return 0
    given = {name: sign for name, value in arguments(found[0], call) if (sign := _made_of(value, spot, deep))}
    signs = set(given.values())
    return signs.pop() if len(signs) == 1 and not _turns(found[0], set(given)) else 0


def _turns(function: ast.FunctionDef, names: set[str]) -> bool:
    """Say whether a function takes the negative of what it computes of some names, or takes it from something else."""
    every = list(ast.walk(function))
    for _ in range(_DEEP):
        before = len(names)
        for node in every:
            names.update(_bound_of(node, names))
        if len(names) == before:
            break
    return any(_turns_at(node, names) for node in every)


def _bound_of(node: ast.AST, names: set[str]) -> Iterator[str]:
    """Yield the names that a node computes of some names, or fills with it."""
    if isinstance(node, ast.Assign | ast.AugAssign) and names & names_read(node.value):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (it for target in targets for it in names_of(target))
    elif isinstance(node, ast.For | ast.comprehension):
        yield from names_of(node.target) if names & names_read(node.iter) else ()
    elif isinstance(node, ast.Call) and called(node) in _FILLS and isinstance(node.func, ast.Attribute):
        yield from names_read(node.func.value) if any(names & names_read(it) for it in node.args) else ()


def _turns_at(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return bool(names & names_read(node.operand))
    if isinstance(node, ast.AugAssign):
        taken = isinstance(node.op, ast.Sub) and not names & names_of(node.target)
        return taken and bool(names & _each(node.value))
    if not isinstance(node, ast.BinOp):
        return False
    mine, theirs = names & _each(node.left), names & _each(node.right)
    if isinstance(node.op, ast.Sub):
        return bool(theirs) and not mine
    by = node.right if mine else node.left
    negative = isinstance(by, ast.UnaryOp) and isinstance(by.op, ast.USub)
    return isinstance(node.op, ast.Mult | ast.Div) and negative and bool(mine or theirs)


def _each(node: ast.AST) -> set[str]:
    """Return the names that an expression reads value by value, and not only all at once, as for their mean."""
    if isinstance(node, ast.Call) and called(node) in _AT_ONCE:
        return set()
    own = {node.id} if isinstance(node, ast.Name) else set()
    return own.union(*map(_each, ast.iter_child_nodes(node)))


def _behind(name: str, spot: Spot, deep: int) -> int:
    """Return the sign of what a name stands for at a line: it is assigned, filled, gone through or given."""
    source = _gone_through(spot, name)
    if source is not None:
        return _made_of(source, spot, deep)
    scope = function_around(spot)
    parameters = [it.arg for it in scope.args.args] if isinstance(scope, ast.FunctionDef) else []
    if isinstance(scope, ast.FunctionDef) and name in parameters:
        return _agreed(_made_of(value, at, deep) for value, at in _callers(spot.file, scope, name))
    filled = list(_put_into(scope, name)) if scope is not None else []
    if filled:
        return _agreed(_made_of(value, Spot(spot.file, value.lineno), deep) for value in filled)
    value = assigned_value(spot, name)
    return _made_of(value, Spot(spot.file, value.lineno), deep) if value is not None else 0


def _agreed(signs: Iterator[int]) -> int:
    found = set(signs)
    return found.pop() if len(found) == 1 else 0


def _gone_through(spot: Spot, name: str) -> ast.expr | None:
    """Return what a loop around a line, or a comprehension in it, goes through under a name."""
    scope = function_around(spot)
    for loop in ast.walk(scope) if scope is not None else ():
        if not isinstance(loop, ast.For | ast.comprehension):
            continue
        if isinstance(loop, ast.For) and loop not in around(spot):
            continue
        pairs = [(loop.target, loop.iter)]
        if isinstance(loop.target, ast.Tuple) and isinstance(loop.iter, ast.Call) and called(loop.iter) == "zip":
            pairs = list(zip(loop.target.elts, loop.iter.args, strict=False))
        found = [value for target, value in pairs if isinstance(target, ast.Name) and target.id == name]
        if found:
            return found[0]
    return None


def _put_into(scope: ast.AST, name: str) -> Iterator[ast.expr]:
    """Yield what a function puts into a list, one by one or several at once."""
    for node in ast.walk(scope):
        if isinstance(node, ast.Call) and called(node) in _FILLS and isinstance(node.func, ast.Attribute):
            if ast.unparse(node.func.value) == name and node.args:
                yield node.args[-1]
        elif isinstance(node, ast.AugAssign) and ast.unparse(node.target) == name and isinstance(node.op, ast.Add):
            repeated = isinstance(node.value, ast.BinOp) and isinstance(node.value.op, ast.Mult)
            yield node.value.left if repeated else node.value  # type: ignore[attr-defined]


def _callers(file: str, function: ast.FunctionDef, name: str) -> Iterator[tuple[ast.expr, Spot]]:
    """Yield what calls of a function give it under a name, each with the line."""
    tree = tree_of(file)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call) and called(node) == function.name:
            yield from ((value, Spot(file, node.lineno)) for to, value in arguments(function, node) if to == name)


def _reward(node: ast.expr) -> int:
    """Return 1 for an expression that grows with a reward, -1 for one that falls, 0 for any other."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_reward(node.operand)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub | ast.Div):
        return 0 if _is_turned(node) else _reward(node.left)
    if isinstance(node, ast.Call):
        inside = _inner(node)
        return _reward(inside) if inside is not None else 0
    if isinstance(node, ast.Subscript):
        return _reward(node.value)
    return int(bool(_names([node])))


def _is_turned(value: ast.expr) -> bool:
    """Say whether an expression takes a reward's negative, or takes a reward from something that is none."""
    return any(
        isinstance(part.op, ast.USub) and _speaks_of(part.operand)
        if isinstance(part, ast.UnaryOp)
        else isinstance(part.op, ast.Sub) and _speaks_of(part.right) and not _speaks_of(part.left)
        for part in ast.walk(value)
        if isinstance(part, ast.UnaryOp | ast.BinOp)
    )


def _speaks_of(node: ast.expr) -> bool:
    return _names([*ast.walk(node)])


def _names(nodes: Sequence[ast.AST]) -> bool:
    """Say whether any of these names or attributes stands for a reward."""
    named = (node.id if isinstance(node, ast.Name) else getattr(node, "attr", "") for node in nodes)
    return any(_REWARD.match(name) for name in named)


def is_reward(node: ast.AST) -> bool:
    """Say whether a name, picked or not, stands for a reward."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return _names([node])
