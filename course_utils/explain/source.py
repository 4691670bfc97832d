"""The learner's source, as it was run: in a file, or in the cells of a notebook."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePath
from types import CodeType
from typing import TypeAlias

from course_utils.explain.explanation import Place

Scope: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)

MAX_CHARACTERS = 1_000_000


class Source:
    """A file or a cell: its lines, its syntax tree, and what each part of that stands in."""

    def __init__(self, file: str, lines: list[str]) -> None:
        self.file = file
        self.lines = lines
        text = "".join(lines)
        if len(text) > MAX_CHARACTERS:
            raise ValueError(f"{file} has more than {MAX_CHARACTERS:,} characters")
        self.tree = ast.parse(text)
        self._parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}

    def __contains__(self, node: object) -> bool:
        """Return whether a part of a syntax tree is of this one."""
        return node is self.tree or node in self._parents

    def text(self, line: int) -> str:
        """Return a line without its indentation; "" beyond the end."""
        return self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""

    def place(self, role: str, node: ast.stmt | ast.expr) -> Place:
        """Return the line on which a part of the tree begins, with the part that it plays."""
        return Place(role, self.file, node.lineno, self.text(node.lineno))

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what a node stands in, the nearest first."""
        while (parent := self._parents.get(node)) is not None:
            yield parent
            node = parent

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """Return the statement that a node is, or stands in."""
        return next((it for it in (node, *self.around(node)) if isinstance(it, ast.stmt)), None)

    def block(self, node: ast.stmt) -> tuple[int, str]:
        """Return which list of statements one stands in: those of one block run one after the other."""
        parent = self._parents.get(node, self.tree)
        for name, value in ast.iter_fields(parent):
            if isinstance(value, list) and any(it is node for it in value):
                return id(parent), name
        return id(parent), ""

    def loop(self, node: ast.AST) -> ast.AST | None:
        """Return the innermost loop of the node's own function."""
        for outer in self.around(node):
            if isinstance(outer, (*FUNCTIONS, ast.Lambda)):
                return None
            if isinstance(outer, LOOPS):
                return outer
        return None

    def scope(self, node: ast.AST) -> Scope:
        """Return the function that a node stands in, or the whole file."""
        for outer in self.around(node):
            if isinstance(outer, (*FUNCTIONS, ast.Lambda)):
                return outer
        return self.tree

    def at(self, start: int, end: int, column: int, end_column: int) -> ast.AST | None:
        """Return the innermost node at exactly this place, or else the smallest around it."""
        best: ast.AST | None = None
        size = (1 << 30, 1 << 30)
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.expr | ast.stmt):
                continue
            first, last = (node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)
            if first <= (start, column) and last >= (end, end_column):
                own = last[0] - first[0], last[1] - first[1]
                if own <= size:  # of a statement and its only expression, the expression
                    best, size = node, own
        return best

    def function(self, code: CodeType) -> Scope | None:
        """Return the function whose code this is."""
        if code.co_name == "<module>":
            return self.tree
        for node in ast.walk(self.tree):
            if isinstance(node, FUNCTIONS) and node.name == code.co_name:
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                if first == code.co_firstlineno:
                    return node
            if isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and node.lineno == code.co_firstlineno:
                return node
        return None


class Sources:
    """Every source that was looked at while one error is explained, each read once."""

    def __init__(self) -> None:
        self._read: dict[str, Source | None] = {}

    def of(self, file: str, module_globals: dict[str, object] | None = None) -> Source | None:
        """Return the source of a file; None where there is none, or it is not Python's."""
        if file not in self._read:
            try:
                lines = linecache.getlines(file, module_globals)
                self._read[file] = Source(file, lines) if lines else None
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                self._read[file] = None
        return self._read[file]

    def cells_before(self, source: Source) -> Sequence[Source]:
        """Return the notebook cells that ran before one, in their order; nothing for a file."""
        if not is_cell(source.file):
            return ()
        folder = PurePath(source.file).parent
        files = [file for file in linecache.cache if is_cell(file) and PurePath(file).parent == folder]
        files = files[: files.index(source.file)] if source.file in files else files
        return [found for file in files[-200:] if (found := self.of(file)) is not None]


def is_cell(file: str) -> bool:
    """Return whether a file name is IPython's for a cell."""
    return "ipykernel_" in file or file.startswith("<ipython-input-")


def walk(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function or file, without those of functions and classes inside it, in source order."""
    waiting = list(reversed(list(ast.iter_child_nodes(scope))))
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
            waiting += reversed(list(ast.iter_child_nodes(node)))


def called(node: ast.AST | None) -> str:
    """Return the last name of what a call calls: "backward" for `loss.backward()`; "" for anything else."""
    if not isinstance(node, ast.Call):
        return ""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def applied_to(call: ast.Call, libraries: Collection[str]) -> ast.expr | None:
    """Return what a call works on: the object of a method, or the first thing given to a function.

    What is called on one of the `libraries`, as in `torch.abs(x)`, is a function.
    """
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    return owner if owner is not None and ast.unparse(owner) not in libraries else next(iter(call.args), None)


def names_of(*nodes: ast.AST | None) -> set[str]:
    """Return the names that stand in some code."""
    return {it.id for node in nodes if node is not None for it in ast.walk(node) if isinstance(it, ast.Name)}


def with_keyword(call: ast.Call, name: str, value: str | int) -> str:
    """Return a call as code, with a keyword argument that it is to have."""
    keywords = [*(it for it in call.keywords if it.arg != name), ast.keyword(name, ast.Constant(value))]
    return ast.unparse(ast.Call(call.func, call.args, keywords))


def written(node: ast.AST | None, width: int = 40) -> str:
    """Return an expression as code; "" for one too long to be read in a sentence."""
    if node is None:
        return ""
    text = ast.unparse(node)
    return text if len(text) <= width and "\n" not in text else ""


def operand(text: str) -> str:
    """Return an expression so that a method can be called on it: with parentheses where it needs them."""
    try:
        node = ast.parse(text, mode="eval").body
    except SyntaxError:
        return f"({text})"
    return text if isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript) else f"({text})"


def target_name(text: str, default: str) -> str:
    """Return an expression if a value can be assigned to it, or else a name for it."""
    return text if re.fullmatch(r"[A-Za-z_][\w.]*", text) else default
