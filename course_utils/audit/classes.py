"""What the source of a learner's class says, also after its script has ended."""

from __future__ import annotations

import ast
import linecache
import re
from types import FunctionType

from course_utils.audit.lines import Spot
from course_utils.audit.source import around


def assigned_anywhere(kind: type, name: str) -> Spot | None:
    """Return the line of a class's source that assigns to `name`, as in "self.layers"."""
    return _in_class(kind, re.compile(rf"\s*{re.escape(name)}\s*(:[^=]+)?=[^=]"))


def assigned_from_itself(kind: type, name: str) -> Spot | None:
    """Return the line of a class's source that computes `name` from its own value."""
    owned = re.escape(name)
    return _in_class(kind, re.compile(rf".*{owned}\b.*=[^=].*{owned}\b"))


def _in_class(kind: type, pattern: re.Pattern[str]) -> Spot | None:
    node, file = class_source(kind)
    for line in range(node.lineno, (node.end_lineno or node.lineno) + 1) if node is not None else ():
        if pattern.match(linecache.getline(file, line)):
            return Spot(file, line)
    return None


def class_source(kind: type) -> tuple[ast.ClassDef | None, str]:
    """Return where a class is defined, and its file, as its methods tell: a script that ended has no module."""
    own = (getattr(value, "__func__", value) for value in vars(kind).values())
    codes = [function.__code__ for function in own if isinstance(function, FunctionType)]
    for code in codes:
        for node in around(Spot(code.co_filename, code.co_firstlineno)):
            if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
                return node, code.co_filename
    return None, ""
