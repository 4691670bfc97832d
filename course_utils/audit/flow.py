"""Where a value goes, as the source says: into a backward pass, back to the caller, or nowhere.

Statements are followed in the order in which they stand, loops once around. A name that is bound to something else
is dropped; whatever is computed from a followed name is followed, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from course_utils.audit.lines import Spot
from course_utils.audit.source import blocks_of, function_around, statement, tree_of

_PASSES = frozenset({"backward", "manual_backward", "grad"})
_SHOWS = frozenset({"print", "len", "float", "int", "str", "format", "isinstance"})


def feeds_a_pass(spots: Sequence[Spot]) -> bool:
    """Say whether what is computed at the first of `spots` can end in a backward pass. The rest are the callers' lines.

    True where the source cannot be read: then nothing may be said.
    """
    for spot in spots:
        scope, begin = function_around(spot), statement(spot)
        if scope is None or begin is None:
            return True
        fed, returned = _Following(scope, begin, spot.file).run()
        if fed:
            return True
        if not returned:
            return False
    return True


class _Following:
    def __init__(self, scope: ast.AST, begin: ast.stmt, file: str) -> None:
        self._scope = scope
        self._begin = begin
        self._file = file
        self._names: set[str] = set()

    def run(self) -> tuple[bool, bool]:
        """Return whether the value reaches a pass, and whether it is returned."""
        if isinstance(self._begin, ast.Return):
            return False, True
        self._bind_first()
        if any(_is_pass(node) for node in ast.walk(self._begin)) and not blocks_of(self._begin):
            return True, False
        returned = False
        for node in self._order():
            if self._reaches(node):
                return True, False
            if isinstance(node, ast.Return | ast.Expr) and isinstance(
                node.value if isinstance(node, ast.Return) else _yielded(node), ast.expr
            ):
                returned |= self._mentions(node)
            self._step(node)
        return self._kept_for_a_pass(), returned

    def _bind_first(self) -> None:
        begin = self._begin
        if isinstance(begin, ast.Assign):
            self._add(begin.targets)
        elif isinstance(begin, (ast.AugAssign | ast.AnnAssign, ast.For)):
            self._add([begin.target])
        elif isinstance(begin, ast.Expr):
            self._take_in(begin, whole=True)

    def _order(self) -> Iterator[ast.stmt]:
        """Yield the statements that run after the first one: the rest of each loop around it, and it once around.

        The innermost loop comes first: what an outer one binds anew was used there before.
        """
        every = list(_flat(self._scope))
        at = next((number for number, node in enumerate(every) if node is self._begin), len(every))
        loops = [node for node in every if isinstance(node, ast.For | ast.While) and _inside(self._begin, node)]
        done = at
        for loop in reversed(loops):
            first = next(number for number, node in enumerate(every) if node is loop)
            last = first + sum(1 for _ in _flat(loop))
            yield from every[done + 1 : last + 1]
            yield from every[first : last + 1]
            done = last
        yield from every[done + 1 :]

    def _reaches(self, node: ast.stmt) -> bool:
        for call in _calls(node):
            if _is_pass(call) and self._mentions(call):
                return True
            name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            if any(map(self._mentions, given)) and _trains(self._file, name):
                return True
        return False

    def _kept_for_a_pass(self) -> bool:
        """Say whether the value is kept on the object itself, and another function reads it there and runs a pass."""
        kept = {name for name in self._names if name.startswith("self.")}
        tree = tree_of(self._file) if kept else None
        return any(
            isinstance(node, ast.FunctionDef)
            and node is not self._scope
            and any(map(_is_pass, ast.walk(node)))
            and any(isinstance(part, ast.Attribute) and ast.unparse(part) in kept for part in ast.walk(node))
            for node in (ast.walk(tree) if tree else ())
        )

    def _step(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign):
            if self._mentions(node.value):
                self._add(node.targets)
            else:
                self._drop(node.targets)
            self._take_in(node)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            (self._add if self._mentions(node.value) else self._drop)([node.target])
        elif isinstance(node, ast.AugAssign):
            if self._mentions(node.value):
                self._add([node.target])
        elif isinstance(node, ast.For):
            (self._add if self._mentions(node.iter) else self._drop)([node.target])
        elif isinstance(node, ast.Expr):
            self._take_in(node)

    def _take_in(self, node: ast.stmt, whole: bool = False) -> None:
        """Follow an object that one of its methods is given a followed value: `buffer.append(value)`."""
        for call in _calls(node):
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            takes = (whole and bool(given)) or any(map(self._mentions, given))
            if takes and isinstance(call.func, ast.Attribute):
                owner = ast.unparse(call.func.value)
                if owner not in ("torch", "F", "nn", "np", "math", "self", "logging", "logger"):
                    self._names.add(owner)

    def _add(self, targets: Sequence[ast.expr]) -> None:
        for target in targets:
            if isinstance(target, ast.Tuple | ast.List):
                self._add(target.elts)
            elif isinstance(target, (ast.Starred, ast.Subscript)):
                self._add([target.value])
            else:
                self._names.add(ast.unparse(target))

    def _drop(self, targets: Sequence[ast.expr]) -> None:
        for target in targets:
            if isinstance(target, ast.Tuple | ast.List):
                self._drop(target.elts)
            elif isinstance(target, ast.Name | ast.Attribute):
                self._names.discard(ast.unparse(target))

    def _mentions(self, node: ast.AST) -> bool:
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and part.id in self._names:
                return True
            if isinstance(part, ast.Attribute) and ast.unparse(part) in self._names:
                return True
        return False


def _flat(scope: ast.AST) -> Iterator[ast.stmt]:
    for node in blocks_of(scope):
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _flat(node)


def _inside(node: ast.AST, block: ast.AST) -> bool:
    return any(part is node for part in ast.walk(block))


def _calls(node: ast.stmt) -> list[ast.Call]:
    """Return the calls of a statement itself, not of those in its blocks."""
    inner = blocks_of(node)
    roots: list[ast.AST] = list(ast.iter_child_nodes(node)) if inner else [node]
    skipped = set(map(id, inner))
    return [part for root in roots if id(root) not in skipped for part in ast.walk(root) if isinstance(part, ast.Call)]


def _is_pass(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PASSES


def _trains(file: str, name: str) -> bool:
    """Say whether a function of this name in the file runs a backward pass."""
    tree = tree_of(file)
    return name not in _SHOWS and any(
        isinstance(node, ast.FunctionDef) and node.name == name and any(map(_is_pass, ast.walk(node)))
        for node in (ast.walk(tree) if tree else ())
    )


def _yielded(node: ast.Expr) -> ast.expr | None:
    return node.value if isinstance(node.value, ast.Yield | ast.YieldFrom) else None
