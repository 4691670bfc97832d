"""What a file of the learner's mentions: attributes that are read, keys that are written, lines without effect."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from course_utils.audit.lines import Spot
from course_utils.audit.source import around, blocks_of, statement, tree_of
from course_utils.explain.source import called, names_of

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINITIONS = (*_FUNCTIONS, ast.ClassDef)
_PARAMETERS = re.compile(r"\.parameters\(\)|\['params'\]$")  # a model's, or those of an optimizer's group


@lru_cache(maxsize=256)
def is_read(file: str, name: str) -> bool:
    """Say whether a file reads an attribute or a key of this name anywhere, also by `getattr` or `get`."""
    tree = tree_of(file)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _is_text(node.slice, name):
            return True
        if isinstance(node, ast.Call) and any(_is_text(part, name) for part in node.args):
            return True
    return False


@lru_cache(maxsize=256)
def is_differentiated(file: str, attribute: str) -> bool:
    """Say whether a file asks for the derivative by an attribute of this name: `grad(loss, model.scale)`."""
    tree = tree_of(file)
    return any(
        isinstance(node, ast.Call)
        and called(node) == "grad"
        and any(isinstance(part, ast.Attribute) and part.attr == attribute for it in node.args for part in ast.walk(it))
        for node in (ast.walk(tree) if tree else ())
    )


def is_rate(target: ast.expr) -> bool:
    """Say whether what is written is the rate of a group: `group["lr"]`."""
    return isinstance(target, ast.Subscript) and _is_text(target.slice, "lr")


def _is_text(node: ast.expr, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def key_lines(file: str, key: str) -> list[Spot]:
    """Return the lines that write a key: in a dictionary's display, as a keyword, or by an assignment."""
    tree = tree_of(file)
    found = []
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.Dict):
            found += [Spot(file, it.lineno) for it in node.keys if it is not None and _is_text(it, key)]
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _is_text(node.slice, key):
            found.append(Spot(file, node.lineno))
        elif isinstance(node, ast.keyword) and node.arg == key:
            found.append(Spot(file, node.value.lineno))
    return sorted(found)


@lru_cache(maxsize=1024)
def bare_result(spot: Spot) -> ast.expr | None:
    """Return the expression at a line whose value nobody takes."""
    found = statement(spot)
    return found.value if isinstance(found, ast.Expr) and not blocks_of(found) else None


def bare_statements(spots: Iterable[Spot]) -> Iterator[tuple[Spot, ast.expr]]:
    """Yield the expressions whose values nobody takes, in what ran of the files of some lines."""
    for file, scope in ran(spots):
        for node in own(scope):
            if isinstance(node, ast.Expr):
                yield Spot(file, node.lineno), node.value


def ran(spots: Iterable[Spot]) -> list[tuple[str, ast.AST]]:
    """Return the functions that ran, as far as some lines tell, and their files' own statements, each with its file.

    A function ran if one of the lines stands in it, or if what ran calls one of its name.
    """
    found: dict[tuple[str, ast.AST], None] = {}
    for spot in spots:
        tree = tree_of(spot.file)
        if tree is not None:
            found[spot.file, tree] = None
        for node in around(spot):
            if isinstance(node, _FUNCTIONS):
                found[spot.file, node] = None
    queue = list(found)
    for file, scope in queue:
        for name in {called(part) for part in parts(scope)} & functions_of(file).keys():
            for function in functions_of(file)[name]:
                if (file, function) not in found:
                    found[file, function] = None
                    queue.append((file, function))
    return queue


@lru_cache(maxsize=32)
def functions_of(file: str) -> dict[str, list[ast.AST]]:
    """Return the functions of a file by their names; what constructs a class goes by the name of the class."""
    tree = tree_of(file)
    found: dict[str, list[ast.AST]] = {}
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, _FUNCTIONS):
            found.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.ClassDef):
            made = [part for part in node.body if isinstance(part, _FUNCTIONS) and part.name in ("__init__", "forward")]
            found.setdefault(node.name, []).extend(made)
    return found


def functions_named(file: str, name: str) -> Iterator[ast.FunctionDef]:
    """Yield the functions of a file that have a name themselves: not what constructs a class of that name."""
    for node in functions_of(file).get(name, ()):
        if isinstance(node, ast.FunctionDef) and node.name == name:
            yield node


def own(scope: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of a function or file, without those of the functions and classes in it."""
    for node in blocks_of(scope):
        yield node
        if not isinstance(node, _DEFINITIONS):
            yield from own(node)


def parts(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield all parts of the statements of a function or file, without the functions and classes at its top."""
    for node in blocks_of(scope):
        if not isinstance(node, _DEFINITIONS):
            yield from ast.walk(node)


def dead_bindings(file: str, scope: ast.AST) -> Iterator[tuple[Spot, str, str]]:
    """Yield the lines that bind a name anew for nobody, with the name and what it stood for.

    It is a loop's name for a parameter, or the gradient that a hook is given: neither changes by an assignment.
    """
    for node in own(scope):
        if isinstance(node, ast.For):
            found = _last_binding(list(own(node)), names_of(node.target))
            if found is not None and (_PARAMETERS.search(ast.unparse(node.iter)) or _reads_slope(*found)):
                yield Spot(file, found[0].lineno), found[1], "parameter"
    for hook in _hooks_put_on(file, scope):
        given = hook.args.args[-1:]
        found = None if _returns(hook) or not given else _last_binding(list(own(hook)), {given[0].arg})
        if found is not None:
            yield Spot(file, found[0].lineno), found[1], "gradient"


def _reads_slope(line: ast.stmt, name: str) -> bool:
    """Say whether a statement reads `.grad` of a name: that is a parameter's."""
    return f"{name}.grad" in map(ast.unparse, ast.walk(line))


def _hooks_put_on(file: str, scope: ast.AST) -> Iterator[ast.FunctionDef]:
    """Yield the functions of a file that a scope registers as hooks of tensors, also where another function made one.

    What a hook computes runs inside a pass, where the watch hears no functions: its lines have to be read.
    """
    for call in parts(scope):
        if not isinstance(call, ast.Call) or called(call) != "register_hook" or not call.args:
            continue
        hook = call.args[0]
        name = called(hook) if isinstance(hook, ast.Call) else ast.unparse(hook).rpartition(".")[2]
        for function in functions_of(file).get(name, ()):
            made = list(ast.walk(function))[1:] if isinstance(hook, ast.Call) else [function]
            yield from (node for node in made if isinstance(node, ast.FunctionDef))


def thrown_away(file: str, scope: ast.AST) -> Iterator[tuple[Spot, ast.expr]]:
    """Yield the results that hooks which return nothing compute and leave on a line by themselves."""
    for hook in _hooks_put_on(file, scope):
        for node in () if _returns(hook) else own(hook):
            if isinstance(node, ast.Expr):
                yield Spot(file, node.lineno), node.value


def _returns(hook: ast.FunctionDef) -> bool:
    return any(isinstance(part, ast.Return) and part.value is not None for part in ast.walk(hook))


def _last_binding(lines: list[ast.stmt], names: set[str]) -> tuple[ast.stmt, str] | None:
    """Return the last statement that computes one of some names from itself, if none after it reads the name."""
    for at, node in reversed(list(enumerate(lines))):
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Name) and target.id in names and target.id in names_read(node):
            later = any(target.id in names_read(after) for after in lines[at + 1 :])
            return None if later else (node, target.id)
    return None


def names_read(node: ast.AST) -> set[str]:
    """Return the names that some code reads."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}


def is_shown(spot: Spot) -> bool:
    """Say whether a line is the last of a cell: its value is displayed."""
    tree = tree_of(spot.file)
    return bool(tree and tree.body and tree.body[-1] in around(spot) and not spot.file.endswith(".py"))


def functions_at(file: str, first: int) -> Iterator[ast.FunctionDef | ast.Lambda]:
    """Yield the functions of a file whose code begins in a line: that of a decorator, of `def` or of `lambda`."""
    tree = tree_of(file)
    for node in ast.walk(tree) if tree else ():
        if isinstance(node, ast.FunctionDef | ast.Lambda):
            decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
            if first in (node.lineno, *(it.lineno for it in decorators)):
                yield node


def parameters(function: ast.FunctionDef | ast.Lambda) -> list[str]:
    """Return the names under which a function takes what it is given by place, without `self`."""
    names = [it.arg for it in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if names[:1] == ["self"] else names


def arguments(function: ast.FunctionDef | ast.Lambda, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """Yield the parameters of a function with what a call gives for them."""
    yield from zip(parameters(function), call.args, strict=False)
    yield from ((it.arg, it.value) for it in call.keywords if it.arg is not None)
