"""Checkpoints to go on from: training goes on where they were saved, and its optimizer begins anew."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from course_utils.audit.lines import Spot
from course_utils.audit.source import function_around, nearest, statement, tree_of
from course_utils.explain.source import called

# What a checkpoint calls the place where training goes on.
_PROGRESS = frozenset({"epoch", "start_epoch", "step", "global_step", "iteration", "iter", "it", "next_epoch"})
_SHOWING = frozenset({"print", "info", "debug", "warning", "write", "format"})


def goes_on_without_state(loads: Spot, optimizer: str) -> Spot | None:
    """Return the line that saves a checkpoint from which a training goes on without its optimizer.

    It is the line that loads it where none saves one, or where what is saved has an optimizer's state.

    The sign is in the source: where the model takes its part of a checkpoint, what tells how far training had come is
    read for more than to be shown, and no other part of it is loaded into an optimizer, anywhere in the file.
    """
    found, tree = statement(loads), tree_of(loads.file)
    given = [_key(it.args[0]) for it in _calls(found, "load_state_dict") if it.args]
    holder = next((name for name, _ in given if name), "")
    scope = function_around(loads)
    if (
        not holder
        or tree is None
        or scope is None
        or any(_takes_state(it, optimizer) for it in _calls(tree, "load_state_dict"))
    ):
        return None
    shown = {id(part) for it in _shown(scope) for part in ast.walk(it)}
    reads = [_key(it) for it in ast.walk(scope) if isinstance(it, ast.Subscript) and id(it) not in shown]
    if not any(name == holder and key in _PROGRESS for name, key in reads):
        return None
    saves = [
        Spot(loads.file, it.lineno)
        for it in _calls(tree, "save")
        if it.args and isinstance(it.args[0], ast.Dict) and _keys(it.args[0]) & _PROGRESS and not _has_state(it.args[0])
    ]
    return nearest(sorted(saves), loads) or loads


def _calls(node: ast.AST | None, name: str) -> Iterator[ast.Call]:
    for part in ast.walk(node) if node is not None else ():
        if isinstance(part, ast.Call) and called(part) == name:
            yield part


def _takes_state(call: ast.Call, optimizer: str) -> bool:
    """Say whether a call loads a state into an optimizer: by its name, or by what either is called."""
    owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    names = (owner.rpartition(".")[2].lower(), *(_key(it)[1].lower() for it in call.args))
    return owner == optimizer or any("opt" in name for name in names)


def _has_state(saved: ast.Dict) -> bool:
    """Say whether a checkpoint has an optimizer's state: by the key, or by whose it is."""
    return any("opt" in ast.unparse(it).lower() for it in (*saved.keys, *saved.values) if it is not None)


def _shown(scope: ast.AST) -> Iterator[ast.AST]:
    for part in ast.walk(scope):
        if isinstance(part, ast.JoinedStr) or (isinstance(part, ast.Call) and called(part) in _SHOWING):
            yield part


def _key(node: ast.AST) -> tuple[str, str]:
    """Return the names in `checkpoint["epoch"]`; empty ones for something else."""
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and isinstance(node.slice, ast.Constant):
        return node.value.id, str(node.slice.value)
    return "", ""


def _keys(node: ast.Dict) -> set[str]:
    return {str(it.value) for it in node.keys if isinstance(it, ast.Constant)}
