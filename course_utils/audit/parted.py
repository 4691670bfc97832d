"""Which calls of a function are for the training, and which for what is held out, as the names around them say."""

from __future__ import annotations

import ast

from course_utils.audit.mentions import parts
from course_utils.audit.namings import is_held, is_trained, words_of
from course_utils.audit.outputs import calls_in
from course_utils.audit.reading import Scopes
from course_utils.audit.source import taken_apart

# What decides: a function that holds one of these may itself tell the parts apart.
CHOICES = (ast.If, ast.IfExp, ast.Try, ast.BoolOp)


def by_part(function: ast.FunctionDef, scopes: Scopes, name: str = "") -> tuple[list[ast.Call], list[ast.Call]]:
    """Return the calls of a function in what ran that are for the training alone, and those for held-out data alone.

    `name` is what the calls name, where that is not the function's own name, but its class's.
    """
    trained: list[ast.Call] = []
    held: list[ast.Call] = []
    for _, scope in scopes:
        wanted = calls_in(scope).get(name or function.name, ())
        targets = _targets(scope) if wanted else {}
        for call in wanted:
            words = words_of(*call.args, *(it.value for it in call.keywords)) | targets.get(call, set())
            words |= {str(it.value) for it in ast.walk(call) if isinstance(it, ast.Constant)}
            for_training, held_out = any(map(is_trained, words)), any(map(is_held, words))
            if for_training != held_out:
                (trained if for_training else held).append(call)
    return trained, held


def _targets(scope: ast.AST) -> dict[ast.AST, set[str]]:
    """Return the names that a function binds to what calls give, also to each of several: `a, b = f(x), f(y)`."""
    found: dict[ast.AST, set[str]] = {}
    for node in parts(scope):
        if not isinstance(node, ast.Assign):
            continue
        for to in node.targets:
            values = node.value.elts if isinstance(node.value, ast.Tuple | ast.List) else [node.value]
            targets = taken_apart(to)
            if len(values) == len(targets):
                for target, value in zip(targets, values, strict=True):
                    for it in ast.walk(value):
                        found.setdefault(it, set()).update(words_of(target))
            elif len(values) == 1:
                for it in ast.walk(values[0]):
                    found.setdefault(it, set()).update(words_of(*targets))
    return found
