"""Averaged weights that are put into a model for an evaluation, and are still there when it is trained again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from course_utils.audit.lines import Spot
from course_utils.audit.mentions import parts
from course_utils.audit.reading import Scopes, Seen, Told
from course_utils.audit.source import around, tree_of
from course_utils.explain.source import called

_IN = re.compile(r"^(apply\w*|swap(_in)?|copy_to|use|use_\w+|load_shadow|to_model|assign|store_and_\w+)$", re.I)
_BACK = re.compile(r"^(restore\w*|swap(_back|_out)?|un_?apply\w*|undo|revert|reset_?weights|unswap|put_back)$", re.I)
_AVERAGED = re.compile(r"(\b|_)(ema|swa|avg)(\b|_)|[a-z]?EMA|shadow|averag|(\b|_)avg|polyak|\bema", re.I)


def left_in(scopes: Scopes, seen: Seen) -> Iterator[Told]:
    """Yield the lines that put averaged weights into a model between two epochs, and that nothing undoes."""
    for file, scope in scopes:
        nodes = list(parts(scope))
        for loop in nodes:
            if isinstance(loop, ast.For | ast.While) and _trains(file, loop):
                yield from _by_method(file, loop)
                yield from _by_state(file, loop)


def _trains(file: str, loop: ast.For | ast.While) -> bool:
    """Say whether a loop is around one that trains: a round goes on with what the last one left."""
    text = ast.unparse(loop)
    inner = any(isinstance(it, ast.For | ast.While) and it is not loop for it in ast.walk(loop))
    return ("backward(" in text and inner) or re.search(r"\b(train|fit)\w*\(", text.replace(".train(", "(")) is not None


def _by_method(file: str, loop: ast.For | ast.While) -> Iterator[Told]:
    tree = tree_of(file)
    every = list(ast.walk(tree)) if tree else []
    for node in ast.walk(loop):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not _IN.match(called(node)):
            continue
        owners = [
            it
            for it in every
            if isinstance(it, ast.ClassDef) and called(node) in _methods(it) and _AVERAGED.search(ast.unparse(it))
        ]
        back = {name for it in owners for name in _methods(it) if _BACK.match(name) and name != called(node)}
        used = {it.attr for it in every if isinstance(it, ast.Attribute)}
        if len(owners) == 1 and back and not back & used and not _at_end(file, node, loop):
            yield _told(
                Spot(file, node.lineno), f"{min(back)} is never called", f"{ast.unparse(node.func.value)}.{min(back)}()"
            )


def _methods(kind: ast.ClassDef) -> set[str]:
    return {it.name for it in kind.body if isinstance(it, ast.FunctionDef)}


def _at_end(file: str, node: ast.expr, loop: ast.AST) -> bool:
    """Say whether a condition within the loop decides over a line: it may be for the last round."""
    inside = [it for it in around(Spot(file, node.lineno)) if it in list(ast.walk(loop)) and it is not loop]
    return any(isinstance(it, ast.If) for it in inside)


def _by_state(file: str, loop: ast.For | ast.While) -> Iterator[Told]:
    """Yield the line that loads an average into the model that a loop trains, and no line loads anything after it."""
    loads = [it for it in ast.walk(loop) if isinstance(it, ast.Call) and called(it) == "load_state_dict" and it.args]
    for node in loads:
        target = ast.unparse(node.func.value)  # type: ignore[attr-defined]
        source = ast.unparse(node.args[0])
        others = [it for it in loads if it is not node and ast.unparse(it.func.value) == target]  # type: ignore[attr-defined]
        trained = re.search(rf"(?<![\w.]){re.escape(target)}\(", ast.unparse(loop)) is not None
        averaged = _AVERAGED.search(source) and not _AVERAGED.search(target) and "lookahead" not in source.lower()
        if averaged and trained and not others and not _at_end(file, node, loop):
            yield _told(
                Spot(file, node.lineno),
                "nothing loads the model's own weights again",
                f"{target}.load_state_dict(own)  # own = copy.deepcopy({target}.state_dict()), before",
            )


def _told(spot: Spot, what: str, fix: str) -> Told:
    return Told(
        "average-left-in",
        spot,
        f"averaged weights are put into the model, and {what}",
        "An average is for the evaluation. The next epoch goes on from it, and not from where the optimizer had come "
        "to: with an average that follows slowly, the training hardly moves.",
        f"{fix}  # after the evaluation",
    )
