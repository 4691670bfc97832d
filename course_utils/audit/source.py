"""What the learner's source says at a line: statements, names, what was named and not called."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from course_utils.audit.lines import Spot

_CUTTING = re.compile(r"\b(no_grad|inference_mode|set_grad_enabled)\b")

_LINES = 4096  # of which what stands around them is kept

_trees: dict[str, tuple[list[str], ast.Module | None]] = {}  # by file, with the lines that it was read from


def text_at(spot: Spot) -> str:
    """Return the text of a line, without its indentation."""
    return linecache.getline(spot.file, spot.line).strip()


def tree_of(file: str) -> ast.Module | None:
    """Return the syntax tree of a file or cell; None where its source cannot be had or read."""
    lines = linecache.getlines(file)
    if file not in _trees or _trees[file][0] is not lines:
        _trees[file] = lines, _parsed("".join(lines))
    return _trees[file][1]


def _parsed(source: str) -> ast.Module | None:
    try:
        return ast.parse(source) if source else None
    except SyntaxError:
        return None


def around(spot: Spot) -> list[ast.AST]:
    """Return the statements, functions and blocks around a line, the outermost first."""
    tree = tree_of(spot.file)
    return list(_around(tree, spot.line)) if tree is not None else []


@lru_cache(maxsize=_LINES)
def _around(tree: ast.Module, line: int) -> tuple[ast.AST, ...]:
    found: list[ast.AST] = []
    level: list[ast.stmt] = tree.body
    while level:
        inside = next((node for node in level if _spans(node, line)), None)
        if inside is None:
            break
        found.append(inside)
        level = blocks_of(inside)
    return tuple(found)


def _spans(node: ast.stmt, line: int) -> bool:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(made.lineno for made in decorators)])
    return first <= line <= (node.end_lineno or first)


def blocks_of(node: ast.AST) -> list[ast.stmt]:
    """Return the statements that stand directly in a compound statement."""
    found: list[ast.stmt] = []
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list):
            found += [item for item in block if isinstance(item, ast.stmt)]
    for handler in getattr(node, "handlers", []):
        found += handler.body
    for case in getattr(node, "cases", []):
        found += case.body
    return found


def statement(spot: Spot) -> ast.stmt | None:
    """Return the innermost statement at a line."""
    nodes = around(spot)
    return nodes[-1] if nodes and isinstance(nodes[-1], ast.stmt) else None


def function_around(spot: Spot) -> ast.FunctionDef | ast.AsyncFunctionDef | ast.Module | None:
    """Return the innermost function at a line, or the whole file."""
    for node in reversed(around(spot)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return node
    return tree_of(spot.file)


def is_discarded(spot: Spot, method: str) -> bool:
    """Say whether a line is nothing but a call of `method`, so that its result is lost."""
    found = statement(spot)
    if not isinstance(found, ast.Expr) or not isinstance(found.value, ast.Call):
        return False
    function = found.value.func
    return isinstance(function, ast.Attribute) and function.attr == method


def is_bare_call(spot: Spot, name: str = "") -> bool:
    """Say whether the statement at a line is a call whose result nobody takes: of `name`, where it is called there."""
    found = statement(spot)
    if not isinstance(found, ast.Expr) or not isinstance(found.value, ast.Call):
        return False
    called = {ast.unparse(node.func).removesuffix(".forward") for node in ast.walk(found) if isinstance(node, ast.Call)}
    return name not in called or ast.unparse(found.value.func).removesuffix(".forward") == name


def named_only(spot: Spot, attribute: str) -> Spot | None:
    """Return the line near `spot` that names a method and does not call it, as in `optimizer.zero_grad`."""
    scope = function_around(spot)
    for node in ast.walk(scope) if scope else ():
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute) and node.value.attr == attribute:
            return Spot(spot.file, node.lineno)
    return None


def assigned(spot: Spot, name: str) -> Spot | None:
    """Return the last line before `spot` in its function that assigns to `name`; else the last one anywhere in it."""
    lines = [node.lineno for node in assignments(spot, name)]
    before = [line for line in lines if line < spot.line]
    return Spot(spot.file, max(before or lines)) if lines else None


def first_assigned(name: str, after: Spot) -> Spot | None:
    """Return the first line after `after`, in the same function, that binds a plain name anew."""
    lines = [node.lineno for node in assignments(after, name) if node.lineno > after.line] if name else []
    return Spot(after.file, min(lines)) if lines else None


def assignments(spot: Spot, name: str) -> Iterator[ast.stmt]:
    """Yield what binds a name in the function around a line; what does so in the file where nothing does there."""
    for scope in dict.fromkeys((function_around(spot), tree_of(spot.file))):
        found = []
        for node in ast.walk(scope) if scope else ():
            targets: list[ast.expr] = []
            if isinstance(node, ast.Assign):
                targets = node.targets
            elif isinstance(node, ast.AnnAssign | ast.AugAssign):
                targets = [node.target]
            if any(ast.unparse(part) == name for target in targets for part in taken_apart(target)):
                found.append(node)
        if found:
            yield from found  # type: ignore[misc]
            return


def taken_apart(target: ast.expr) -> list[ast.expr]:
    """Return what an assignment binds: of a tuple or list, each part."""
    return list(target.elts) if isinstance(target, ast.Tuple | ast.List) else [target]


def augmented(spot: Spot, name: str) -> Spot | None:
    """Return the line of the file that adds to `name` in place of binding it: `name += x`, or `name = name + x`."""
    tree = tree_of(spot.file)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.AugAssign) and ast.unparse(node.target) == name:
            return Spot(spot.file, node.lineno)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and len(node.targets) == 1:
            inside = {ast.unparse(part) for part in ast.walk(node.value) if isinstance(part, ast.Name | ast.Attribute)}
            if ast.unparse(node.targets[0]) == name and name in inside:
                return Spot(spot.file, node.lineno)
    return None


def filled(spot: Spot, name: str) -> Spot | None:
    """Return the line of the file that puts something into the container `name`."""
    tree = tree_of(spot.file)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value)
            into = node.func.attr in ("append", "extend", "add", "appendleft", "insert", "update", "setdefault")
            if into and (owner == name or owner.startswith((f"{name}[", f"{name}."))):
                return Spot(spot.file, node.lineno)
        if isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Subscript) and ast.unparse(target.value) == name:
                    return Spot(spot.file, node.lineno)
                if isinstance(node, ast.AugAssign) and ast.unparse(target) == name:
                    return Spot(spot.file, node.lineno)
    return None


def calls(file: str, pattern: str) -> list[Spot]:
    """Return the lines of the calls whose function's text matches a pattern, as in "nn.Softmax"."""
    tree = tree_of(file)
    wanted = re.compile(pattern)
    found = [
        node.func.end_lineno or node.lineno
        for node in (ast.walk(tree) if tree else ())
        if isinstance(node, ast.Call) and wanted.search(ast.unparse(node.func).rpartition("\n")[2])
    ]
    return [Spot(file, line) for line in sorted(found)]


def no_grad_around(spot: Spot) -> Spot | None:
    """Return the line that switches recording off for a line: a `with` around it, or a decorator of its function."""
    for node in reversed(around(spot)):
        if isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                if _CUTTING.search(ast.unparse(item.context_expr)):
                    return Spot(spot.file, node.lineno)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for made in node.decorator_list:
                if _CUTTING.search(ast.unparse(made)):
                    return Spot(spot.file, made.lineno)
    return None


def loop_around(spot: Spot) -> ast.For | ast.While | None:
    """Return the innermost loop around a line, within its function."""
    for node in reversed(around(spot)):
        if isinstance(node, ast.For | ast.While):
            return node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return None
    return None


def replaced_parts(file: str, path: str) -> list[Spot]:
    """Return the lines that put something else in the place of a part of a model: `model.head = ...`, `model[2] = ...`.

    `path` is the part's name in the model, as in "body.head". What a method assigns to its own object makes the part.
    """
    tree = tree_of(file)
    last = path.rpartition(".")[2]
    found = []
    for node in ast.walk(tree) if tree else ():
        for target in node.targets if isinstance(node, ast.Assign) else ():
            named = isinstance(target, ast.Attribute) and target.attr == last and not _is_own(target, file)
            if named or (isinstance(target, ast.Subscript) and ast.unparse(target.slice) == last):
                found.append(Spot(file, target.lineno))
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func) == "setattr"
            and ast.unparse(node.args[1]) == f"'{last}'"
        ):
            found.append(Spot(file, node.lineno))
    return sorted(found)


def _is_own(target: ast.Attribute, file: str) -> bool:
    """Say whether a method sets an attribute of the object that it belongs to."""
    nodes = around(Spot(file, target.lineno))
    scope = next((node for node in reversed(nodes) if isinstance(node, ast.FunctionDef)), None)
    method = scope is not None and any(isinstance(node, ast.ClassDef) for node in nodes) and scope.args.args
    return bool(method) and ast.unparse(target.value) == scope.args.args[0].arg  # type: ignore[union-attr]


def assignments_to(file: str, attributes: tuple[str, ...]) -> list[tuple[Spot, str]]:
    """Return the lines that set one of these attributes, or call it as a method, each with its owner's text."""
    tree = tree_of(file)
    found = []
    for node in ast.walk(tree) if tree else ():
        targets: list[ast.expr] = list(node.targets) if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.Call):
            targets.append(node.func)
        for target in targets:
            if isinstance(target, ast.Attribute) and target.attr in attributes:
                found.append((Spot(file, target.end_lineno or target.lineno), ast.unparse(target.value)))
    return sorted(found)


def compared(spot: Spot) -> tuple[str, ...]:
    """Return the names that the loss at a line compares: the first arguments of its call, or both sides of a minus."""
    found = statement(spot)
    for node in ast.walk(found) if found else ():
        if isinstance(node, ast.Call) and len(node.args) >= 2:
            return tuple(ast.unparse(part) for part in node.args[:2])
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            sides = (node.left, node.right)
            return tuple(ast.unparse(part) for part in sides if isinstance(part, ast.Name | ast.Attribute))
    return ()


def bound_at(spot: Spot) -> str:
    """Return the name that the assignment at a line binds, or nothing."""
    found = statement(spot)
    return ast.unparse(found.targets[0]) if isinstance(found, ast.Assign) else ""


def nearest(found: Sequence[Spot], spot: Spot) -> Spot | None:
    """Return of some lines of one file the last before `spot` in its function, else one in it, else the first."""
    scope = function_around(spot)
    first, last = getattr(scope, "lineno", 1), getattr(scope, "end_lineno", None) or 10**9
    inside = [it for it in found if first <= it.line <= last]
    before = [it for it in inside if it.line <= spot.line]
    return before[-1] if before else next(iter(inside or found), None)


def source_at(spot: Spot) -> str:
    """Return the source of the innermost statement at a line, of a block its head only; else the line's text."""
    found = statement(spot)
    if found is None or blocks_of(found):
        return text_at(spot)
    return ast.unparse(found)
