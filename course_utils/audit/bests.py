"""What is kept as the best and never compared again, counted and never begun anew, or kept and never used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from course_utils.audit.choices import is_best
from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parts
from course_utils.audit.reading import Scopes, Seen, Told
from course_utils.audit.source import blocks_of, taken_apart, tree_of

_KEEPS = re.compile(r"state_dict\(|deepcopy\(|\bsave\w*\(|_save\w*\(|(patience|wait|counter|bad_epochs|stale)\w* = 0")
_COUNTS = re.compile(r"wait|patience|counter|no_improv|bad_?(epoch|count)|stale|since|trigger|strikes|not_improv", re.I)
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_STATE = re.compile(r"state_dict\(|deepcopy\((\w+\.)*(model|net|student|policy|module)\w*\)")


def bests(scopes: Scopes, seen: Seen) -> Iterator[Told]:
    """Yield the lines about a best value that leave out one half of what they are for."""
    for file, scope in scopes:
        loops = [it for it in parts(scope) if isinstance(it, ast.For | ast.While)]
        inner = {id(part) for loop in loops for it in blocks_of(loop) for part in ast.walk(it)}
        for loop in [*([scope] if isinstance(scope, ast.FunctionDef) else []), *loops]:
            if id(loop) not in inner:
                yield from _in_loop(file, scope, loop)


def _in_loop(file: str, scope: ast.AST, loop: ast.For | ast.While | ast.FunctionDef) -> Iterator[Told]:
    for node in ast.walk(loop):
        if not isinstance(node, ast.If):
            continue
        best = _compared(node.test)
        body = "\n".join(map(ast.unparse, node.body))
        here = "." in best or not isinstance(loop, ast.FunctionDef)  # a parameter is its caller's
        if best and here and _KEEPS.search(body) and not _is_bound(file, scope, loop, best):
            yield _never_bound(Spot(file, node.test.lineno), best)
        if best:
            yield from _counted(file, loop, node)
            yield from _unused(file, node)


def _compared(test: ast.expr) -> str:
    """Return the text of the best value that a condition compares with; "" for any other condition."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], _ORDERS):
        return ""
    for side, other in ((test.comparators[0], test.left), (test.left, test.comparators[0])):
        while isinstance(side, ast.BinOp):
            side = side.left
        if is_best(side) and isinstance(side, ast.Name | ast.Attribute) and not is_best(other):
            return ast.unparse(side)
    return ""


def _is_bound(file: str, scope: ast.AST, loop: ast.AST, best: str) -> bool:
    """Say whether a loop, or for an attribute any method, gives a best value another one."""
    if "." in best:
        last = best.rpartition(".")[2]
        tree = tree_of(file)
        bound = [
            it for it in (ast.walk(tree) if tree else ())
            if isinstance(it, ast.Attribute) and it.attr == last and isinstance(it.ctx, ast.Store)
        ]  # fmt: skip
        return len(bound) > 1
    inner = [it for it in ast.walk(scope) if isinstance(it, ast.Nonlocal | ast.Global) and best in it.names]
    stored = (it for it in ast.walk(loop) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store))
    return bool(inner) or any(it.id == best for it in stored)


def _counted(file: str, loop: ast.AST, node: ast.If) -> Iterator[Told]:
    """Yield the count of rounds without a better value that ends the loop and never begins anew."""
    for branch, other in ((node.orelse, node.body), (node.body, node.orelse)):
        for line in (it for part in branch for it in ast.walk(part)):
            if not isinstance(line, ast.AugAssign) or not isinstance(line.op, ast.Add) or not other:
                continue
            name = ast.unparse(line.target)
            if _COUNTS.search(name) and _ends(loop, name) and not _begins_anew(file, loop, line.target):
                yield Told(
                    "best-forgotten",
                    Spot(file, line.lineno),
                    f"{name} counts rounds without a better value, and a better one does not set it back to 0",
                    "All rounds count that were ever worse, and not those in a row. The training ends after so many of "
                    "them, though it still gets better.",
                    f"{name} = 0  # beside what is kept where the value is better",
                    (name,),
                )
                return


def _ends(loop: ast.AST, name: str) -> bool:
    """Say whether a count decides over what is left: a `break`, a `return` or a flag."""
    return any(
        isinstance(it, ast.If)
        and any(ast.unparse(part) == name for part in ast.walk(it.test))
        and any(isinstance(x, ast.Break | ast.Return) or "stop" in ast.unparse(x).lower() for x in it.body)
        for it in ast.walk(loop)
    )


def _begins_anew(file: str, loop: ast.AST, target: ast.expr) -> bool:
    """Say whether a loop, or for an attribute any method but the first, sets a count."""
    if isinstance(target, ast.Attribute):
        tree = tree_of(file)
        every = (it for node in (ast.walk(tree) if tree else ()) for it in _methods_but_init(node))
        inside: Iterator[ast.AST] = (it for method in every for it in ast.walk(method))
    elif isinstance(target, ast.Name):
        inside = ast.walk(loop)
    else:
        return True
    text = ast.unparse(target)
    stored = [it for it in inside if isinstance(it, ast.Name | ast.Attribute) and isinstance(it.ctx, ast.Store)]
    return any(ast.unparse(it) == text and it is not target for it in stored)


def _methods_but_init(node: ast.AST) -> list[ast.FunctionDef]:
    body = node.body if isinstance(node, ast.ClassDef) else []
    return [it for it in body if isinstance(it, ast.FunctionDef) and it.name != "__init__"]


def _unused(file: str, node: ast.If) -> Iterator[Told]:
    """Yield the copy of a model that is kept as the best, and that nothing in the file reads."""
    for line in node.body:
        for part in (line, *blocks_of(line)):
            for target, value in _pairs(part):
                name = target.id if isinstance(target, ast.Name) else getattr(target, "attr", "")
                if name and _STATE.search(ast.unparse(value)) and not _is_read(file, name):
                    yield Told(
                        "best-forgotten",
                        Spot(file, part.lineno),
                        f"{name} keeps the best model, and nothing reads it",
                        "What is evaluated, saved or used after the training is the model of the last round, which may "
                        "be a worse one: without this line everything would be the same.",
                        f"model.load_state_dict({name})  # after the training",
                        (name,),
                    )


def _pairs(line: ast.stmt) -> list[tuple[ast.expr, ast.expr]]:
    if not isinstance(line, ast.Assign) or len(line.targets) != 1:
        return []
    targets, values = taken_apart(line.targets[0]), taken_apart(line.value)
    return list(zip(targets, values, strict=True)) if len(targets) == len(values) else []


def _is_read(file: str, name: str) -> bool:
    tree = tree_of(file)
    return any(
        name == (it.id if isinstance(it, ast.Name) else it.attr) and isinstance(it.ctx, ast.Load)
        for it in (ast.walk(tree) if tree else ())
        if isinstance(it, ast.Name | ast.Attribute)
    )


def _never_bound(spot: Spot, best: str) -> Told:
    return Told(
        "best-forgotten",
        spot,
        f"{best} stays what it was before the loop: each round is better than that",
        "Nothing in the loop gives it the value of the round that was better. What is kept is the last model, or each "
        "one that beats the first bound, and not the best.",
        f"{best} = ...  # the value that was compared, in the lines that keep the model",
        (best,),
    )
