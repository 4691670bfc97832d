"""The second place of a mistake: where what a line uses was made, or where what it makes is used."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from course_utils.audit.lines import Spot
from course_utils.audit.source import assignments, blocks_of, function_around, statement, taken_apart, text_at, tree_of
from course_utils.explain.explanation import Place
from course_utils.explain.source import called

# More places than these hide the line that is to be edited.
MOST = 2

# They say what is there, and change or use nothing.
_LOOKS = frozenset({"parameters", "named_parameters", "state_dict", "to", "train", "eval", "item"})


def beside(spot: Spot, told: Sequence[tuple[str, Spot]] = ()) -> tuple[Place, ...]:
    """Return the places that belong to a line: what a check tells by its role, then what the source says.

    Of the source: where what the line calls was made, if that happens once, and where an object of a class that the
    line makes is called first.
    """
    found = [place_of(role, other) for role, other in told if other != spot]
    found += [place_of("made here", other) for other in _made(spot)]
    found += [place_of("used here", other) for other in _used(spot)]
    return tuple({place.line: place for place in reversed(found)}.values())[::-1][:MOST]


def place_of(role: str, spot: Spot) -> Place:
    """Return a line of the learner's with the part that it plays."""
    return Place(role, spot.file, spot.line, text_at(spot))


def _made(spot: Spot) -> Iterator[Spot]:
    at = statement(spot)
    for name in dict.fromkeys(_callees(at)) if at is not None else ():
        made = _made_once(name, spot)
        if made is not None and _is_handed_on(name, spot):
            yield Spot(spot.file, made.lineno)


def _used(spot: Spot) -> Iterator[Spot]:
    at = statement(spot)
    if not isinstance(at, ast.Assign) or not called(at.value)[:1].isupper():
        return  # what a function gives is used in the next line anyway
    for name in [ast.unparse(part) for target in at.targets for part in taken_apart(target)]:
        if _made_once(name, spot) is not at:
            continue
        scope = tree_of(spot.file) if "." in name else function_around(spot)
        nodes = ast.walk(scope) if scope is not None else ()
        calls = [node for node in nodes if isinstance(node, ast.stmt) and node is not at and name in _callees(node)]
        later = [Spot(spot.file, node.lineno) for node in calls]
        yield from sorted(other for other in later if _is_handed_on(name, other))[:1]


def _is_handed_on(name: str, spot: Spot) -> bool:
    """Say whether a name means at a line what it means in the file: whoever calls the function hands it on."""
    around = function_around(spot)
    if not isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef):
        return True
    arguments = around.args
    if name not in {it.arg for it in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}:
        return True
    tree = tree_of(spot.file)
    nodes = ast.walk(tree) if tree else ()
    calls = [node for node in nodes if isinstance(node, ast.Call) and called(node) == around.name]
    handed = [[ast.unparse(given) for given in (*call.args, *(it.value for it in call.keywords))] for call in calls]
    return bool(handed) and all(name in given for given in handed)


def _callees(at: ast.stmt) -> list[str]:
    """Return what a statement calls, without the statements inside it: "loss_fn" and "optimizer" of its step()."""
    names: list[str] = []
    inside = {id(node) for child in blocks_of(at) for node in ast.walk(child)}
    if isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return names
    for node in ast.walk(at):
        if not isinstance(node, ast.Call) or id(node) in inside:
            continue
        if isinstance(node.func, ast.Attribute) and node.func.attr not in _LOOKS:
            names += [ast.unparse(node.func), ast.unparse(node.func.value)]
        elif isinstance(node.func, ast.Name):
            names.append(node.func.id)
    return names


def _made_once(name: str, spot: Spot) -> ast.Assign | None:
    """Return the one statement that binds a name as seen from a line, if what it binds comes from a call."""
    found = list(assignments(spot, name))
    made = found[0] if len(found) == 1 else None
    return made if isinstance(made, ast.Assign) and isinstance(made.value, ast.Call) else None
