"""What a script keeps of each batch by its number, and where it reads that again: as the source says."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple

from course_utils.audit.loops import goes_through
from course_utils.audit.mentions import arguments, functions_named, parts
from course_utils.audit.shuffles import own_lines
from course_utils.audit.source import blocks_of, taken_apart, tree_of
from course_utils.explain.source import called, names_of

_FILLS = frozenset({"append", "extend"})
_COUNTS = frozenset({"range", "trange"})
_JOINS = frozenset({"list", "tuple", "dict", "stack", "cat", "concat", "concatenate", "vstack"})
_DEEP = 4


class Kept(NamedTuple):
    """Something that a loop over batches reads by the batch's number: `soft[i]`, or one of two that it zips."""

    store: ast.expr
    number: str  # the name of the number; of a zip that of the entry
    how: Literal["entry", "zip", "slice"]
    line: int


@lru_cache(maxsize=512)
def kept_by_number(loop: ast.For) -> tuple[Kept, ...]:
    """Return what a loop over batches reads by their number, unless it writes the entry in the same round before."""
    found = [*_zipped(loop)]
    counted = _numbers(loop)
    if counted and isinstance(loop.target, ast.Tuple) and isinstance(loop.target.elts[0], ast.Name):
        found += _indexed(loop, loop.target.elts[0].id)
        inner = loop.iter.args[0] if isinstance(loop.iter, ast.Call) and loop.iter.args else None
        if called(inner) == "zip" and isinstance(loop.target.elts[1], ast.Tuple):
            found += _pairs(inner, loop.target.elts[1], loop.lineno)  # type: ignore[arg-type]
    return tuple(found)


def _numbers(loop: ast.For) -> bool:
    """Say whether a loop counts the batches that it goes through, from 0."""
    call = loop.iter
    while isinstance(call, ast.Call) and called(call) in ("tqdm", "track", "list") and call.args:
        call = call.args[0]
    return called(call) == "enumerate" and isinstance(call, ast.Call) and len(call.args) == 1 and not call.keywords


def _zipped(loop: ast.For) -> Iterator[Kept]:
    if called(loop.iter) == "zip" and isinstance(loop.target, ast.Tuple):
        yield from _pairs(loop.iter, loop.target, loop.lineno)  # type: ignore[arg-type]


def _pairs(call: ast.Call, target: ast.Tuple, line: int) -> Iterator[Kept]:
    """Yield the second and further things of a zip that are names, each with the name of its entry."""
    for given, to in zip(call.args[1:], target.elts[1:], strict=False):
        if isinstance(given, ast.Name | ast.Attribute) and isinstance(to, ast.Name):
            yield Kept(given, to.id, "zip", line)
    if len(call.args) == 2 and isinstance(call.args[0], ast.Name) and isinstance(target.elts[0], ast.Name):
        yield Kept(call.args[0], target.elts[0].id, "zip", line)


def _indexed(loop: ast.For, index: str) -> Iterator[Kept]:
    for node in (it for line in loop.body for it in ast.walk(line) if isinstance(it, ast.Subscript)):
        if not isinstance(node.value, ast.Name | ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        text = ast.unparse(node.value)
        if _is_part(node.slice, index):
            yield Kept(node.value, index, "slice", node.lineno)
        elif ast.unparse(node.slice) == index and not any(
            _writes(it, text, index) and it.lineno < node.lineno for it in _always(loop)
        ):
            yield Kept(node.value, index, "entry", node.lineno)


def _is_part(index: ast.expr, number: str) -> bool:
    """Say whether a slice begins at a multiple of a number: `[i * size : (i + 1) * size]`."""
    lower = index.lower if isinstance(index, ast.Slice) and index.upper is not None else None
    if not isinstance(lower, ast.BinOp) or not isinstance(lower.op, ast.Mult):
        return False
    return any(isinstance(it, ast.Name) and it.id == number for it in (lower.left, lower.right))


def _always(loop: ast.For) -> Iterator[ast.stmt]:
    """Yield the statements that each round of a loop runs: those that no condition decides over."""
    queue: list[ast.stmt] = list(loop.body)
    for node in queue:
        yield node
        if isinstance(node, ast.With):
            queue += blocks_of(node)


def _writes(line: ast.stmt, store: str, index: str) -> bool:
    targets = line.targets if isinstance(line, ast.Assign) else []
    return any(
        isinstance(it, ast.Subscript) and ast.unparse(it.value) == store and ast.unparse(it.slice) == index
        for to in targets
        for it in taken_apart(to)
    )


@lru_cache(maxsize=256)
def filled_by_batches(file: str, scope: ast.AST, store: str, deep: int = _DEEP) -> bool:
    """Say whether a list or dictionary got an entry for each batch of a loop, computed of the batch."""
    nodes = list(parts(scope))
    if "." in store:
        tree = tree_of(file)
        nodes = list(ast.walk(tree)) if tree is not None else nodes
    for node in nodes:
        if isinstance(node, ast.For) and _over_batches(node.iter) and _fills(node, store):
            return True
        for target in node.targets if isinstance(node, ast.Assign) else ():
            bound = any(ast.unparse(it) == store for it in taken_apart(target))
            if bound and deep and _made_by_batches(node.value, file, scope, deep):  # type: ignore[attr-defined]
                return True
    given = _given(file, scope, store) if deep and isinstance(scope, ast.FunctionDef) else ()
    return any(_made_by_batches(value, file, caller, deep - 1) for value, caller in given)


def _made_by_batches(value: ast.expr, file: str, scope: ast.AST, deep: int) -> bool:
    if isinstance(value, ast.Call) and called(value) in _JOINS and value.args:
        value = value.args[0]
    if isinstance(value, ast.ListComp | ast.DictComp | ast.GeneratorExp) and len(value.generators) == 1:
        made = value.value if isinstance(value, ast.DictComp) else value.elt
        loop = value.generators[0]
        return _over_batches(loop.iter) and bool(names_of(made) & names_of(loop.target))
    if isinstance(value, ast.Name):
        return deep > 0 and filled_by_batches(file, scope, value.id, deep - 1)
    if isinstance(value, ast.Call) and deep:
        return any(
            _made_by_batches(part, file, function, deep - 1)
            for function in functions_named(file, called(value))
            for it in ast.walk(function)
            if isinstance(it, ast.Return) and it.value is not None
            for part in taken_apart(it.value)
        )
    return False


def _given(file: str, scope: ast.FunctionDef, name: str) -> Iterator[tuple[ast.expr, ast.AST]]:
    """Yield what the calls of a function in its file give for a parameter, each with the function that calls."""
    tree = tree_of(file)
    scopes = [tree, *(it for it in ast.walk(tree) if isinstance(it, ast.FunctionDef))] if tree is not None else []
    for caller in scopes:
        for node in parts(caller):
            if isinstance(node, ast.Call) and called(node) == scope.name:
                yield from ((value, caller) for to, value in arguments(scope, node) if to == name)


def _over_batches(iterated: ast.expr) -> bool:
    """Say whether a loop goes through something, and not through numbers alone."""
    inner = goes_through(iterated)
    return called(inner) not in _COUNTS


def _fills(loop: ast.For, store: str) -> bool:
    """Say whether a loop puts something that it makes of its batch into a store: at its end, or by a number."""
    mine = _computed(loop)
    for line in own_lines(loop):
        call = line.value if isinstance(line, ast.Expr) else None
        puts = isinstance(call, ast.Call) and called(call) in _FILLS and isinstance(call.func, ast.Attribute)
        if puts and ast.unparse(call.func.value) == store and any(names_of(it) & mine for it in call.args):  # type: ignore[union-attr]
            return True
        for target in line.targets if isinstance(line, ast.Assign) else ():
            into = isinstance(target, ast.Subscript) and ast.unparse(target.value) == store
            if into and names_of(line.value) & mine:  # type: ignore[attr-defined]
                return True
    return False


def _computed(loop: ast.For) -> set[str]:
    """Return the names of a loop's batch, without that of its number, and what is computed of them."""
    target = loop.target
    number = called(loop.iter) == "enumerate" and isinstance(target, ast.Tuple)
    found = names_of(target.elts[1]) if number else names_of(target)  # type: ignore[attr-defined]
    for line in own_lines(loop):
        if isinstance(line, ast.Assign) and names_of(line.value) & found:
            found |= {it.id for to in line.targets for it in taken_apart(to) if isinstance(it, ast.Name)}
    return found
