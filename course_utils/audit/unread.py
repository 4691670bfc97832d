"""Names for nobody: results that are bound and never read, and generators that are read when nothing is left."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import functions_of, names_read, own
from course_utils.audit.source import blocks_of, loop_around
from course_utils.explain.source import called, names_of

# What is called for what it does, and not, or not only, for its result.
_ACTS = re.compile(r"_$|^(step|backward|zero_grad|train|eval|pop|next|append|update|seed|manual_seed|load_state_dict)$")

_COMPUTES = frozenset(
    {
        *("zip", "dict", "list", "tuple", "len", "range", "enumerate", "items", "keys", "values", "type", "max", "min"),
        *("tree_map", "sqrt", "zeros_like", "ones_like", "clamp", "norm", "detach", "clone", "sign", "square", "pow"),
        *("mul", "sub", "add", "div", "map", "float", "abs", "mean", "sum", "requires_grad"),
    }
)


def unread_results(file: str, scope: ast.AST) -> Iterator[tuple[Spot, str, str]]:
    """Yield the lines that call a function of the file and bind its result to a name that nobody reads.

    With the name and the call. The function only computes. Names of a notebook's cell may be read in another cell.
    """
    if isinstance(scope, ast.Module) and not file.endswith(".py"):
        return
    read = names_read(scope)
    for node in own(scope):
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if not isinstance(node, ast.Assign) or not isinstance(target, ast.Name):
            continue
        call = node.value
        name = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
        functions = functions_of(file).get(name, [])
        if (
            target.id not in read
            and not target.id.startswith("_")
            and functions
            and all(map(_only_computes, functions))
        ):
            yield Spot(file, node.lineno), target.id, ast.unparse(call)


def dropped_updates(file: str, scope: ast.AST) -> Iterator[tuple[Spot, str]]:
    """Yield the lines in loops that call a function of the file which returns what follows a step, for nobody.

    With the call. The function only computes, and what it returns is made of its own parameters by a difference.
    """
    for node in own(scope):
        call = node.value if isinstance(node, ast.Expr) else None
        name = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
        functions = functions_of(file).get(name, [])
        if functions and loop_around(Spot(file, node.lineno)) is not None:
            moves = all(_moves(it) and _only_computes(it) and _calls_nobody(it) for it in functions)
            if moves and isinstance(call, ast.Call) and _is_given_new_slopes(call, file):
                yield Spot(file, node.lineno), ast.unparse(call)


def _is_given_new_slopes(call: ast.Call, file: str) -> bool:
    """Say whether a call is given gradients, by their name, that its loop computes in each round."""
    loop = loop_around(Spot(file, call.lineno))
    made = (it.targets[0] for it in ast.walk(loop) if isinstance(it, ast.Assign)) if loop is not None else ()
    fresh = {name for target in made for name in names_of(target)}
    given = {name for it in (*call.args, *(word.value for word in call.keywords)) for name in names_read(it)}
    return any(re.search(r"grad|slope|^gs?$", name) for name in given & fresh)


def _moves(function: ast.AST) -> bool:
    """Say whether a function subtracts something from what it is given."""
    given = {it.arg for it in ast.walk(function) if isinstance(it, ast.arg)}
    differences = (it for it in ast.walk(function) if isinstance(it, ast.BinOp) and isinstance(it.op, ast.Sub))
    return any(names_read(it.left) & (given | _drawn(function, given)) for it in differences)


def _drawn(function: ast.AST, given: set[str]) -> set[str]:
    """Return the names that comprehensions of a function draw from what it is given."""
    loops = (it for it in ast.walk(function) if isinstance(it, ast.comprehension) and names_read(it.iter) & given)
    return {name for it in loops for name in names_of(it.target)}


def _calls_nobody(function: ast.AST) -> bool:
    """Say whether all that a function calls is known to compute, and to change nothing."""
    return all(called(it) in _COMPUTES for it in ast.walk(function) if isinstance(it, ast.Call))


def used_up_parameters(file: str, scope: ast.AST) -> Iterator[tuple[Spot, str, int]]:
    """Yield the lines that bind `model.parameters()` to a name, with the name, and the line that finds it empty.

    It is a generator, which the first to go through it uses up. Clipping such a one is another check's affair.
    """
    bound: dict[str, list[ast.Assign]] = {}
    for node in own(scope):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            bound.setdefault(node.targets[0].id, []).append(node)
    for name, lines in bound.items():
        if len(lines) == 1 and isinstance(lines[0].value, ast.Call) and called(lines[0].value) == "parameters":
            uses = [it for line in blocks_of(scope) for it in _uses(line, name)]
            clipped = {part for call in ast.walk(scope) if _clips(call) for part in ast.walk(call)}
            empty = [use.lineno for use in uses[1:] if use not in clipped]
            if empty:
                yield Spot(file, lines[0].lineno), name, empty[0]


def _uses(node: ast.AST, name: str) -> list[ast.Name]:
    """Return where a name is read, of two branches of which one runs those of one."""
    if isinstance(node, ast.Name):
        return [node] if node.id == name and isinstance(node.ctx, ast.Load) else []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and _binds(node, name):
        return []
    if isinstance(node, ast.If):
        leaves = isinstance(node.body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
        arms = [[use for it in arm for use in _uses(it, name)] for arm in ([] if leaves else node.body, node.orelse)]
        return [*_uses(node.test, name), *max(arms, key=len)]
    if isinstance(node, ast.IfExp):
        return [*_uses(node.test, name), *max((_uses(it, name) for it in (node.body, node.orelse)), key=len)]
    return [use for child in ast.iter_child_nodes(node) for use in _uses(child, name)]


def _binds(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, name: str) -> bool:
    """Say whether a function has a name of its own that is this one."""
    stored = (it.id for it in ast.walk(function) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Store))
    return name in {it.arg for it in ast.walk(function.args) if isinstance(it, ast.arg)} | set(stored)


def _clips(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and called(node).startswith("clip_grad")


def _only_computes(function: ast.AST) -> bool:
    """Say whether a function returns something, and no line of it does anything but compute."""
    returns = False
    bound = {ast.unparse(to) for it in ast.walk(function) if isinstance(it, ast.Assign) for to in it.targets}
    for part in ast.walk(function):
        if isinstance(part, ast.Expr) and not isinstance(part.value, ast.Constant):
            return False
        if isinstance(part, ast.Global | ast.Nonlocal | ast.Yield | ast.YieldFrom | ast.Delete):
            return False
        if isinstance(part, ast.Attribute | ast.Subscript) and isinstance(part.ctx, ast.Store):
            return False
        if isinstance(part, ast.AugAssign) and ast.unparse(part.target) not in bound:
            return False  # in place, of what it was given
        if isinstance(part, ast.Call) and _ACTS.search(called(part)):
            return False
        returns |= isinstance(part, ast.Return) and part.value is not None
    return returns
