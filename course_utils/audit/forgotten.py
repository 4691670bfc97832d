"""Flags of an episode's end that a step of the environment gives, and that a script keeps for nobody."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from course_utils.audit.mentions import parts
from course_utils.audit.source import tree_of
from course_utils.explain.source import called, names_of

_PLACE = 2  # of a step's result: what is seen, the reward, the end
_NOBODY = "_"
_SAMPLES = frozenset({"sample", "choice", "choices", "randint", "permutation", "sample_batch", "get_batch"})
_ENDS = frozenset({"reset", "print", "append", "write", "update", "set_postfix", "log"})


def step_flags(nodes: list[ast.AST]) -> Iterator[str]:
    """Yield the names under which some code takes the end of an episode from a step: `s2, r, over = env.step(a)`."""
    for node in nodes:
        value = node.value if isinstance(node, ast.Assign) else None
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if called(value) == "step" and isinstance(target, ast.Tuple) and _PLACE < len(target.elts) < 6:
            flag = target.elts[_PLACE]
            if isinstance(flag, ast.Name) and not flag.id.startswith(_NOBODY):
                yield flag.id


@lru_cache(maxsize=256)
def never_kept(file: str, scope: ast.AST) -> str:
    """Return the flag that a file takes from steps, if all that it does with it is to end loops.

    It is asked for a function that samples what was kept: what no record holds, no target can read.
    """
    tree = tree_of(file)
    if tree is None or not isinstance(scope, ast.FunctionDef) or not _goes_without_end(scope, tree):
        return ""
    flags: set[str] = set()
    for other in [tree, *(it for it in ast.walk(tree) if isinstance(it, ast.FunctionDef))]:
        nodes = list(parts(other))
        own = set(step_flags(nodes))
        if any(_reads(node, name) for node in nodes for name in own):
            return ""
        flags |= own
    return min(flags, default="")


def _goes_without_end(scope: ast.FunctionDef, tree: ast.Module) -> bool:
    """Say whether a function takes records out of a memory, and the file's environments can end an episode."""
    samples = any(isinstance(it, ast.Call) and called(it) in _SAMPLES for it in ast.walk(scope))
    steps = [it for it in ast.walk(tree) if isinstance(it, ast.FunctionDef) and it.name == "step"]
    returned = [it.value for step in steps for it in ast.walk(step) if isinstance(it, ast.Return)]
    ends = [it.elts[_PLACE] for it in returned if isinstance(it, ast.Tuple) and len(it.elts) > _PLACE]
    never = bool(ends) and all(isinstance(it, ast.Constant) and not it.value for it in ends)
    return samples and not never


def _reads(node: ast.AST, name: str) -> bool:
    """Say whether a part of the code makes something of a flag: not where it ends a loop, or is printed."""
    if isinstance(node, ast.While):
        return False
    if isinstance(node, ast.If) and name in names_of(node.test):
        return not all(map(_only_ends, (*node.body, *node.orelse)))
    if isinstance(node, ast.Call | ast.Assign | ast.Return | ast.Yield | ast.AugAssign | ast.IfExp):
        inside = (
            node.args if isinstance(node, ast.Call) else [node.value] if not isinstance(node, ast.IfExp) else [node]
        )
        words = [it.value for it in node.keywords] if isinstance(node, ast.Call) else []
        made = called(node) == "step" or (isinstance(node, ast.Assign) and called(node.value) == "step")
        return not made and called(node) != "print" and any(name in names_of(it) for it in (*inside, *words))
    return False


def _only_ends(line: ast.stmt) -> bool:
    """Say whether a line, of those that a flag decides over, only leaves a loop, begins anew or reports."""
    if isinstance(line, ast.Break | ast.Continue | ast.Pass):
        return True
    if isinstance(line, ast.Assign):
        return called(line.value) == "reset" or isinstance(line.value, ast.Tuple | ast.Constant)
    return isinstance(line, ast.Expr | ast.AugAssign)
