"""An answer that a factory makes, as if it had been written by itself: `best(back=False)` without its other branches.

Many answers differ by a flag. What a flag rules out never runs in this answer, so mutants of it would say nothing.
"""

import ast
import copy

_FLAGS = (bool, str, type(None))


def specialised(factory: ast.FunctionDef, call: ast.Call) -> ast.FunctionDef:
    """Return the factory as this call uses it: with flags (truth values, texts, None) put in, and branches decided."""
    result = copy.deepcopy(factory)
    given, flags, extras = _bound(result, call)
    assigned = {node.id for node in ast.walk(result) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    flags = {name: value for name, value in flags.items() if name not in assigned}
    empty = result.args.kwarg.arg if result.args.kwarg and not extras else None
    fold = _Fold(flags, empty)
    result.body = [line for statement in result.body for line in _listed(fold.visit(statement))] or [ast.Pass()]
    arguments, decided = result.args, {*given, *flags}
    positional = arguments.posonlyargs + arguments.args
    for place, argument in enumerate(reversed(positional), 1):
        if argument.arg in decided and place <= len(arguments.defaults):
            arguments.defaults[-place] = ast.Constant(None)
    for place, argument in enumerate(arguments.kwonlyargs):
        if argument.arg in decided and arguments.kw_defaults[place] is not None:
            arguments.kw_defaults[place] = ast.Constant(None)
    return ast.fix_missing_locations(result)


def _bound(factory: ast.FunctionDef, call: ast.Call) -> tuple[set[str], dict[str, ast.Constant], bool]:
    """Return the parameters that the call gives, those that are flags, and whether it gives others by keyword."""
    arguments = factory.args
    positional = [argument.arg for argument in arguments.posonlyargs + arguments.args]
    values: dict[str, ast.expr | None] = dict(
        zip(positional[len(positional) - len(arguments.defaults) :], arguments.defaults, strict=True)
    )
    names = [argument.arg for argument in arguments.kwonlyargs]
    values |= dict(zip(names, arguments.kw_defaults, strict=True))
    given = dict(zip(positional, call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    extras = any(keyword.arg not in {*positional, *names} for keyword in call.keywords)
    values |= given
    flags = {
        name: value for name, value in values.items() if isinstance(value, ast.Constant) and type(value.value) in _FLAGS
    }
    return set(given), flags, extras


def _listed(visited: ast.AST | list[ast.AST] | None) -> list[ast.AST]:
    if visited is None:
        return []
    return visited if isinstance(visited, list) else [visited]


class _Fold(ast.NodeTransformer):
    """Puts flags in, and decides what then is decided."""

    def __init__(self, flags: dict[str, ast.Constant], empty: str | None) -> None:
        self._flags = flags
        self._empty = empty

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(self._flags[node.id].value) if node.id in self._flags else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        node.keywords = [
            keyword
            for keyword in node.keywords
            if keyword.arg or not (isinstance(keyword.value, ast.Name) and keyword.value.id == self._empty)
        ]
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt] | None:
        self.generic_visit(node)
        if not isinstance(node.test, ast.Constant):
            node.body = node.body or [ast.Pass()]
            return node
        return node.body if node.test.value else node.orelse

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.test, ast.Constant):
            return node
        return node.body if node.test.value else node.orelse

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        decided = isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant)
        return ast.Constant(not node.operand.value) if decided else node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        self.generic_visit(node)
        sides = [node.left, *node.comparators]
        simple = isinstance(node.ops[0], ast.Eq | ast.NotEq | ast.Is | ast.IsNot) and len(sides) == 2
        if not simple or not all(isinstance(side, ast.Constant) for side in sides):
            return node
        same = sides[0].value == sides[1].value
        return ast.Constant(same == isinstance(node.ops[0], ast.Eq | ast.Is))

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        self.generic_visit(node)
        decides = isinstance(node.op, ast.Or)  # the truth value that ends it
        values: list[ast.expr] = []
        for value in node.values:
            if isinstance(value, ast.Constant):
                if bool(value.value) == decides:
                    values.append(value)
                    break
                continue
            values.append(value)
        if not values:
            return node.values[-1]
        node.values = values
        return values[0] if len(values) == 1 else node
