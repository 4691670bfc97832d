"""Rules about statements: dropped, exchanged with their neighbour, unwrapped."""

import ast
from collections.abc import Iterator
from itertools import pairwise
from typing import TypeAlias

from tests.mutation.expressions import BINARY

_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_DEFINES = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


# What stands in place of a statement, and how that is called where its first line does not say it.
Instead: TypeAlias = tuple[list[ast.stmt], str]


def of_statement(node: ast.stmt, parent: ast.AST, field: str) -> Iterator[Instead]:
    """Yield what stands in place of a statement by these rules."""
    siblings = getattr(parent, field)
    alone = len(siblings) == 1 and isinstance(parent, ast.If | ast.With) and not getattr(parent, "orelse", None)
    if not isinstance(node, (*_DEFINES, ast.Pass, ast.Nonlocal, ast.Global)) and not _is_text(node) and not alone:
        yield [], "(dropped)"
    if isinstance(node, ast.With):
        yield node.body, "(its body alone)"
    elif isinstance(node, ast.Try):
        yield [*node.body, *node.orelse, *node.finalbody], "(one part after the other)"
    elif isinstance(node, ast.AugAssign):
        yield from _of_augmented(node)
    elif isinstance(node, ast.Continue):
        yield [ast.Break()], ""
    elif isinstance(node, ast.Break):
        yield [ast.Continue()], ""
    elif isinstance(node, ast.FunctionDef):
        yield from _of_function(node)
    elif isinstance(node, ast.Assign) and _writes_to_its_own(node):
        yield [ast.AugAssign(node.targets[0], node.value.op, node.value.right)], ""


def swaps(body: list[ast.stmt]) -> Iterator[int]:
    """Yield the places in a body whose statement can change places with the next one, and make another program."""
    for index, (first, second) in enumerate(pairwise(body)):
        # Behind an end the first one would never run: that is to drop it, another rule's.
        if isinstance(second, _ENDS) or _is_text(first):
            continue
        if not isinstance(first, _DEFINES) and not isinstance(second, _DEFINES) and not _commute(first, second):
            yield index


def _of_augmented(node: ast.AugAssign) -> Iterator[Instead]:
    if type(node.op) in BINARY:
        yield [ast.AugAssign(node.target, BINARY[type(node.op)](), node.value)], ""
    yield [ast.Assign([node.target], node.value)], ""
    if isinstance(node.target, ast.Name) and not isinstance(node.value, ast.List):
        yield [ast.Assign([node.target], ast.BinOp(ast.Name(node.target.id, ast.Load()), node.op, node.value))], ""


def _of_function(node: ast.FunctionDef) -> Iterator[Instead]:
    """Yield a function without one of its decorators, and with a name looked up late in place of a default."""
    for index, decorator in enumerate(node.decorator_list):
        if ast.unparse(decorator) == "staticmethod":  # PyTorch takes the function from the class: nothing is bound
            continue
        kept = [*node.decorator_list[:index], *node.decorator_list[index + 1 :]]
        yield [ast.FunctionDef(node.name, node.args, node.body, kept)], f"(without @{ast.unparse(decorator)})"
    arguments = node.args
    late = list(zip(reversed(arguments.args), reversed(arguments.defaults), strict=False))
    for place, (argument, default) in enumerate(late):
        if isinstance(default, ast.Name) and default.id == argument.arg:
            names = [it for it in arguments.args if it is not argument]
            defaults = [it for n, it in enumerate(reversed(arguments.defaults)) if n != place][::-1]
            own = ast.arguments(
                arguments.posonlyargs, names, arguments.vararg, arguments.kwonlyargs, arguments.kw_defaults,
                arguments.kwarg, defaults,
            )  # fmt: skip
            yield [ast.FunctionDef(node.name, own, node.body, node.decorator_list)], ""


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _writes_to_its_own(node: ast.Assign) -> bool:
    target, value = node.targets[0], node.value
    return isinstance(target, ast.Name) and isinstance(value, ast.BinOp) and ast.unparse(value.left) == target.id


def _commute(first: ast.stmt, second: ast.stmt) -> bool:
    """Return whether two neighbours certainly do the same in either order.

    So it is where one of them sets a name to something new and the other does not mention it, and where they put named
    things into two containers, a set and a list.
    """
    one, other = _put_into(first), _put_into(second)
    if one is not None and other is not None and one != other:
        return True
    return any(_is_new(this) and not _mentioned(this) & _mentioned(that) for this, that in _both(first, second))


def _put_into(node: ast.stmt) -> str | None:
    """Return the method of `names.add(name)` or `names.append(name)`, None for everything else."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    plain = all(isinstance(it, ast.Name) for it in (call.func.value, *call.args)) and not call.keywords
    return call.func.attr if plain and call.func.attr in ("add", "append") else None


def _both(first: ast.stmt, second: ast.stmt) -> tuple[tuple[ast.stmt, ast.stmt], ...]:
    return (first, second), (second, first)


def _is_new(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Assign):
        return False
    made = [it for it in ast.walk(node.value) if not isinstance(it, ast.expr_context | ast.unaryop)]
    return all(
        isinstance(it, ast.Constant | ast.List | ast.Tuple | ast.Dict | ast.UnaryOp) or _is_empty(it) for it in made
    )


def _is_empty(node: ast.AST) -> bool:
    """Return whether this is `set()`, or the name in it."""
    name = node.func if isinstance(node, ast.Call) and not node.args and not node.keywords else node
    return isinstance(name, ast.Name) and name.id in ("set", "list", "dict")


def _mentioned(node: ast.stmt) -> set[str]:
    return {it.id for it in ast.walk(node) if isinstance(it, ast.Name)} - {"set", "list", "dict"}
