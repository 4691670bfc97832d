"""Rules about conditions, bounds, numbers and operators: what an expression becomes."""

import ast
from collections.abc import Iterator

BINARY = {
    **{ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult},
    **{ast.FloorDiv: ast.Div, ast.Mod: ast.FloorDiv, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd},
}
NEGATED = {
    **{
        ast.Eq: ast.NotEq,
        ast.NotEq: ast.Eq,
        ast.Is: ast.IsNot,
        ast.IsNot: ast.Is,
        ast.In: ast.NotIn,
        ast.NotIn: ast.In,
    },
    **{ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt},
}
# A bound moved by one, and identity taken for equality.
MOVED = {
    **{ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt},
    **{ast.Is: ast.Eq, ast.IsNot: ast.NotEq},
}
_HOLDS_TEXTS = (ast.Dict, ast.List, ast.Tuple, ast.Set, ast.Compare, ast.Subscript)
ASKING = ("isinstance", "hasattr", "callable")


def of_expressions(node: ast.expr, parent: ast.AST, field: str) -> Iterator[ast.expr]:
    """Yield what an expression becomes by these rules. `field` is what it is to its parent ("test", "lower")."""
    if is_condition(node, parent, field):
        yield from _of_condition(node, parent, field)
    if isinstance(node, ast.Compare):
        yield from _of_compare(node)
    elif isinstance(node, ast.Constant):
        if getattr(parent, "arg", None) != "strict":
            yield from map(ast.Constant, _of_constant(node.value))
        if isinstance(node.value, str) and isinstance(parent, _HOLDS_TEXTS):
            yield ast.Constant(f"{node.value}?")
    elif isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        yield ast.BinOp(node.left, BINARY[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.operand
    if _is_bound(parent, field) and not isinstance(node, ast.Constant):
        yield ast.BinOp(node, ast.Add(), ast.Constant(1))
        yield ast.BinOp(node, ast.Sub(), ast.Constant(1))


def is_condition(node: ast.expr, parent: ast.AST, field: str) -> bool:
    """Return whether an expression is asked for its truth, or is the answer to a question (`n < last`)."""
    asks = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ASKING
    compares = isinstance(node, ast.Compare | ast.BoolOp) or _is_not(node)
    return asks or compares or field in ("test", "ifs") or isinstance(parent, ast.BoolOp)


def _of_condition(node: ast.expr, parent: ast.AST, field: str) -> Iterator[ast.expr]:
    if _is_not(node):
        yield node.operand
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield ast.Compare(node.left, [NEGATED[type(node.ops[0])]()], node.comparators)
    else:
        yield ast.UnaryOp(ast.Not(), node)
    if _is_not(parent):
        return  # its truth is that of the whole, turned
    if isinstance(parent, ast.BoolOp):  # the other truth value is that of the whole
        yield ast.Constant(isinstance(parent.op, ast.And))
        return
    yield ast.Constant(True)
    alone = field == "test" and isinstance(parent, ast.If | ast.While) and not parent.orelse
    if not alone:  # then it would be dropped as a whole, which is another rule's
        yield ast.Constant(False)


def _of_compare(node: ast.Compare) -> Iterator[ast.expr]:
    for index, operator in enumerate(node.ops):
        if type(operator) in MOVED and not _is_none(node.comparators[index]):  # == of None is `is`: Python falls back
            operators = [*node.ops[:index], MOVED[type(operator)](), *node.ops[index + 1 :]]
            yield ast.Compare(node.left, operators, node.comparators)
    if len(node.ops) == 1 and _is_none(node.comparators[0]):
        if isinstance(node.ops[0], ast.Is):
            yield ast.UnaryOp(ast.Not(), node.left)
        elif isinstance(node.ops[0], ast.IsNot):
            yield node.left


def _of_constant(value: object) -> Iterator[object]:
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from dict.fromkeys(new for new in (value + 1, type(value)(0), -value) if new != value)


def _is_bound(parent: ast.AST, field: str) -> bool:
    if isinstance(parent, ast.Slice):
        return field in ("lower", "upper")
    ranges = isinstance(parent, ast.Call) and isinstance(parent.func, ast.Name) and parent.func.id == "range"
    return ranges and field == "args"


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_not(node: ast.AST) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
