"""A weight that a class ties to another, and that is one of its own again when the training begins."""

from __future__ import annotations

import ast
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import torch
from torch import nn

from course_utils.audit.classes import parts_of_ones_own
from course_utils.audit.lines import Spot
from course_utils.audit.source import function_around, tree_of


@dataclass(frozen=True)
class Tie:
    """`self.head.weight = self.embed.weight` in an `__init__`: both texts without `self.`, and where it stands."""

    tied: str
    to: str
    spot: Spot


@dataclass(frozen=True)
class Undone:
    """A tie of which nothing is left, and the line that undid it, or that made it where none is found."""

    tie: Tie
    line: Spot
    weights: tuple[weakref.ref[torch.Tensor], weakref.ref[torch.Tensor]]


def undone_in(module: nn.Module, file: str) -> Iterator[Undone]:
    """Yield the ties of a model's classes of which nothing is left. `file` is that of the loop."""
    for part, node, home in parts_of_ones_own(module):
        for tie in _ties(node, home):
            one, other = (_found(part, path) for path in (tie.tied, tie.to))
            if one is None or other is None or one is other or one.data_ptr() == other.data_ptr():
                continue
            lines = list(_bound_again(tie, {home, file}))
            own = [it for it in lines if it.file == home and node.lineno <= it.line <= (node.end_lineno or 0)]
            line = next(iter(own or lines), tie.spot)
            yield Undone(tie, line, (weakref.ref(one), weakref.ref(other)))


def _ties(node: ast.ClassDef, file: str) -> Iterator[Tie]:
    """Yield what the `__init__` of a class ties whatever it is given: in no branch and no loop."""
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and method.name == "__init__":
            for line in method.body:
                if isinstance(line, ast.Assign) and len(line.targets) == 1:
                    tied, to = (ast.unparse(it).removeprefix("self.") for it in (line.targets[0], line.value))
                    if all(isinstance(it, ast.Attribute) for it in (line.targets[0], line.value)) and "." in tied:
                        yield Tie(tied, to, Spot(file, line.lineno))


def _found(part: nn.Module, path: str) -> nn.Parameter | None:
    try:
        value: Any = attrgetter(path)(part)
    except AttributeError:
        return None
    return value if isinstance(value, nn.Parameter) and value.requires_grad else None


def _bound_again(tie: Tie, files: set[str]) -> Iterator[Spot]:
    """Yield the lines that bind one of the two names, or the layer that has it, and do not come before the tie."""
    names = {part for path in (tie.tied, tie.to) for part in (path, path.rpartition(".")[0])}
    for file in sorted(filter(None, files)):
        tree = tree_of(file)
        lines = (it for it in ast.walk(tree) if isinstance(it, ast.Assign)) if tree is not None else ()
        for line in lines:
            for target in line.targets:
                ends = any(ast.unparse(target).endswith(f".{name}") for name in names)
                if isinstance(target, ast.Attribute) and ends and not _is_before(Spot(file, line.lineno), tie):
                    yield Spot(file, line.lineno)


def _is_before(spot: Spot, tie: Tie) -> bool:
    """Say whether a line runs before the tie, or is it: above it, or in the `__init__` of another class."""
    scope, tying = function_around(spot), function_around(tie.spot)
    if scope is tying:
        return spot <= tie.spot
    return isinstance(scope, ast.FunctionDef) and scope.name == "__init__"
