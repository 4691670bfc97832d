"""Flags of an episode's end that a step of the environment gives, and that a script keeps for nobody."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from course_utils.audit.mentions import parts
from course_utils.audit.source import tree_of
from course_utils.explain.source import called, names_of

_PLACE = 2  # of a step's result: what is seen, the reward, the end
_SAMPLES = frozenset({"sample", "choice", "choices", "randint", "permutation", "sample_batch", "get_batch"})
_REPORTS = frozenset({"reset", "print", "write", "set_postfix", "add_scalar", "info"})
_STORES = frozenset({"append", "push", "add", "store", "remember", "put", "appendleft", "extend"})
_LOGS = re.compile(r"log|len|return|score|reward|win|hist|episod|total|steps|curve", re.IGNORECASE)


def step_flags(nodes: list[ast.AST]) -> set[str]:
    """Return the names under which some code takes the end of an episode from a step, and keeps it for nobody.

    `s2, r, over = env.step(a)`: all that `over` does is to end a loop, or to begin anew.
    """
    flags = {name for node in nodes if (name := _flag(node))}
    for _ in range(2):
        flags |= {name for node in nodes if (name := _alias(node, flags))}
    return set() if not flags or any(_reads(it, flags) for it in nodes) or _leaves_first(nodes, flags) else flags


def _flag(node: ast.AST) -> str:
    value = node.value if isinstance(node, ast.Assign) else None
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    if called(value) != "step" or not isinstance(target, ast.Tuple) or not _PLACE < len(target.elts) < _PLACE + 4:
        return ""
    flag = target.elts[_PLACE]
    return flag.id if isinstance(flag, ast.Name) and not flag.id.startswith("_") else ""


def _alias(node: ast.AST, flags: set[str]) -> str:
    """Return the name in `done = terminated or truncated`."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
        return ""
    plain = isinstance(node.value, ast.BoolOp) and all(isinstance(it, ast.Name) for it in node.value.values)
    return node.targets[0].id if plain and names_of(node.value) & flags else ""


@lru_cache(maxsize=256)
def never_kept(file: str, scope: ast.AST) -> str:
    """Return the flag that a file takes from steps and keeps for nobody, for a function that samples what was kept.

    What no record holds, no target can read.
    """
    tree = tree_of(file)
    if tree is None or not isinstance(scope, ast.FunctionDef) or not can_end(file):
        return ""
    if not any(isinstance(it, ast.Call) and called(it) in _SAMPLES for it in ast.walk(scope)):
        return ""
    found: set[str] = set()
    for other in [tree, *(it for it in ast.walk(tree) if isinstance(it, ast.FunctionDef))]:
        nodes = list(parts(other))
        flags = step_flags(nodes)
        if not flags and any(map(_flag, nodes)):
            return ""
        found |= flags
    return min(found, default="")


@lru_cache(maxsize=64)
def can_end(file: str) -> bool:
    """Say whether the environments of a file, where it has some, may say that an episode is over."""
    tree = tree_of(file)
    steps = [it for it in ast.walk(tree) if isinstance(it, ast.FunctionDef) and it.name == "step"] if tree else []
    returned = [it.value for step in steps for it in ast.walk(step) if isinstance(it, ast.Return)]
    ends = [it.elts[_PLACE] for it in returned if isinstance(it, ast.Tuple) and len(it.elts) > _PLACE]
    return not ends or not all(isinstance(it, ast.Constant) and not it.value for it in ends)


def _reads(node: ast.AST, flags: set[str]) -> bool:
    """Say whether a part of the code makes something of a flag: not where it ends a loop, or is printed."""
    if isinstance(node, ast.If) and flags & names_of(node.test):
        return not all(map(_only_ends, (*node.body, *node.orelse)))
    if isinstance(node, ast.IfExp):
        return bool(flags & names_of(node))
    if isinstance(node, ast.Call):
        given = [*node.args, *(it.value for it in node.keywords)]
        return called(node) != "print" and any(flags & names_of(it) for it in given)
    if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return | ast.Yield | ast.NamedExpr):
        return not _alias(node, flags) and called(node.value) != "step" and bool(flags & names_of(node.value))
    return isinstance(node, ast.Lambda | ast.ListComp | ast.DictComp) and bool(flags & names_of(node))


def _only_ends(line: ast.stmt) -> bool:
    """Say whether a line, of those that a flag decides over, only leaves a loop, begins anew or reports."""
    if isinstance(line, ast.Break | ast.Pass):
        return True
    if isinstance(line, ast.AugAssign):
        return isinstance(line.value, ast.Constant)
    if isinstance(line, ast.Assign):
        values = line.value.elts if isinstance(line.value, ast.Tuple) else [line.value]
        return all(_is_new(it) for it in values)
    if not isinstance(line, ast.Expr) or not isinstance(line.value, ast.Call):
        return False
    logs = isinstance(line.value.func, ast.Attribute) and _LOGS.search(ast.unparse(line.value.func.value)) is not None
    return called(line.value) in _REPORTS or (called(line.value) == "append" and logs)


def _is_new(node: ast.expr) -> bool:
    """Say whether a value is what an episode begins with: what a reset gives, or a count of 0."""
    if isinstance(node, ast.Subscript):
        node = node.value
    zero = isinstance(node, ast.Constant) and node.value is not None and not node.value
    return zero or any(called(it) == "reset" for it in ast.walk(node))


def _leaves_first(nodes: list[ast.AST], flags: set[str]) -> bool:
    """Say whether a loop is left at an end before the last step is kept: then no record holds one."""
    kept = [it.lineno for it in nodes if isinstance(it, ast.Call) and called(it) in _STORES]
    leaves = [
        node.end_lineno or node.lineno
        for node in nodes
        if isinstance(node, ast.If) and flags & names_of(node.test)
        if any(isinstance(it, ast.Break) for it in node.body)
    ]
    return bool(kept) and any(line < max(kept) for line in leaves)
