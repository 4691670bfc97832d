"""Functions that are to reverse gradients, and hand them on as they are: read in a script's text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parts
from course_utils.audit.reading import Scopes
from course_utils.audit.source import tree_of

_NAMED = re.compile(r"revers|(^|_)grl($|_|layer)|gradrev|^grl", re.I)
_OTHER = re.compile(r"(^|[^a-z])(dom|domains?|domain_\w+|discriminator|adversary|sensitive|protected)(\W|_|$)", re.I)
_SAME = re.compile(r"\w+(\.(view_as\(\w+\)|clone\(\)|view\(\w+\.(shape|size\(\))\)))?|\w+ \* 1(\.0*)?")


def reversals_kept(scopes: Scopes) -> Iterator[tuple[str, Spot]]:
    """Yield Functions that are to reverse gradients and return what they are given, perhaps times a number."""
    for file in sorted({file for file, _ in scopes}):
        tree = tree_of(file)
        classes = [it for it in ast.walk(tree) if isinstance(it, ast.ClassDef)] if tree is not None else []
        for made in classes:
            if not any(ast.unparse(base).rpartition(".")[2] == "Function" for base in made.bases):
                continue
            calls = [it for its, scope in scopes if its == file for it in _applications(scope, made.name)]
            line = _returned(made)
            meant = _NAMED.search(made.name) or any(_OTHER.search(text) for text in calls)
            if line is not None and calls and meant and not any(re.search(r"[,(=] ?-|\* -", it) for it in calls):
                yield made.name, Spot(file, line)


def _applications(scope: ast.AST, name: str) -> Iterator[str]:
    """Yield the statements of a function that apply a Function."""
    for node in parts(scope):
        if isinstance(node, ast.stmt) and not isinstance(node, ast.For | ast.While | ast.With | ast.If | ast.Try):
            text = ast.unparse(node)
            if f"{name}.apply(" in text:
                yield text


def _returned(made: ast.ClassDef) -> int | None:
    """Return the line of a backward that returns a positive multiple of its gradient, where forward changes nothing."""
    methods = {it.name: it for it in made.body if isinstance(it, ast.FunctionDef)}
    forward, backward = methods.get("forward"), methods.get("backward")
    if forward is None or backward is None or len(backward.args.args) < 2 or len(forward.args.args) < 2:
        return None
    given, slope = forward.args.args[1].arg, backward.args.args[1].arg
    returned = [it for it in ast.walk(forward) if isinstance(it, ast.Return) and it.value is not None]
    texts = [ast.unparse(it.value) for it in returned if it.value is not None]
    if not texts or not all(_SAME.fullmatch(it) and it.startswith(given) for it in texts):
        return None
    lines = [it for it in ast.walk(backward) if isinstance(it, ast.Return) and it.value is not None]
    body = "\n".join(map(ast.unparse, backward.body))
    if len(lines) != 1 or re.search(r"-|neg", body) or slope not in body or re.search(r"\bif\b", body):
        return None
    # A number that forward keeps may be negative already.
    kept_there = "\n".join(map(ast.unparse, forward.body))
    return None if re.search(r"= -|\* -1|neg", kept_there) else lines[0].lineno
