"""Which of the learner's variables hold graphs of earlier steps."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import Any, Literal, NamedTuple

import torch

from course_utils.audit.classes import assigned_anywhere, assigned_from_itself
from course_utils.audit.events import number_of
from course_utils.audit.lines import Spot, frames, is_learners, names_in
from course_utils.audit.source import augmented, filled, function_around
from course_utils.audit.stores import line_that_fills, stores_of
from course_utils.graph.trace import GraphTooLarge, walk

_FRAMES = 6
_MOST = 400


class Holder(NamedTuple):
    """A variable, what kind of holder it is, and the line that makes it one."""

    name: str
    kind: Literal["list", "total", "state", "unknown"]
    spot: Spot | None
    numbers: bool = True  # of single numbers, as losses are


def holders(before: int) -> list[Holder]:
    """Return the variables that hold graphs made before a sequence number, containers first."""
    lists, totals = [], []
    known = list(variables())
    for spot, name, value in chain(known, stores_of(known)):
        if isinstance(value, torch.Tensor):
            if value.grad_fn is not None and not value.is_leaf and _reaches(value, before):
                owner = name.partition(".")[0]
                line = augmented(spot, name) or (filled(spot, owner) if owner not in (name, "self") else None)
                totals.append(Holder(name, "total", line))
        elif isinstance(value, list | tuple | deque | dict | set):
            kept = [it for it in _inside(value) if it.grad_fn is not None and number_of(it.grad_fn) < before]
            if len(kept) >= 3:
                numbers = all(it.dim() == 0 for it in kept)
                lists.append(Holder(name, "list", line_that_fills(spot, name), numbers))
    return [*lists, *sorted(totals, key=lambda it: it.spot is None)]


def carried(numbers: frozenset[int]) -> Holder | None:
    """Return the variable that is computed from itself and stands in a graph: the state of a loop."""
    for spot, name, value in variables():
        made = [it for it in _inside([value]) if it.grad_fn is not None and number_of(it.grad_fn) in numbers]
        line = _from_itself(spot, name) if made else None
        if line is not None:
            return Holder(name, "state", line)
    for part, name, value in _parts():
        if any(it.grad_fn is not None and number_of(it.grad_fn) in numbers for it in _inside([value])):
            return Holder(name, "state", assigned_from_itself(type(part), name) or assigned_anywhere(type(part), name))
    return None


def _from_itself(spot: Spot, name: str) -> Spot | None:
    scope = function_around(spot)
    for node in ast.walk(scope) if scope else ():
        if isinstance(node, ast.Assign):
            targets = {ast.unparse(part) for target in node.targets for part in _names(target)}
            read = {ast.unparse(part) for part in ast.walk(node.value) if isinstance(part, ast.Name | ast.Attribute)}
            if name in targets and name in read and any(isinstance(part, ast.Call) for part in ast.walk(node.value)):
                return Spot(spot.file, node.lineno)
    return None


def _names(target: ast.expr) -> Iterator[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from _names(part)
    else:
        yield target


def variables() -> Iterator[tuple[Spot, str, Any]]:
    """Yield the variables of the learner's running frames, and the attributes of their `self`."""
    for count, frame in enumerate(frames()):
        if count == _FRAMES:
            return
        spot = Spot(frame.f_code.co_filename, frame.f_lineno)
        found = names_in(frame)
        for name, value in found.items():
            if not name.startswith("__") and name != "self":
                yield spot, name, value
        for owner, thing in found.items():
            if owner == "self" or _is_own(thing):
                for name, value in (vars(thing) if hasattr(thing, "__dict__") else {}).items():
                    yield spot, f"{owner}.{name}", value


def _is_own(thing: object) -> bool:
    """Say whether a thing is of a class of the learner's, and no module: those are looked at by themselves."""
    if isinstance(thing, type | torch.nn.Module | torch.Tensor):
        return False
    made = getattr(getattr(type(thing), "__init__", None), "__code__", None)
    return made is not None and is_learners(made.co_filename)


def _parts() -> Iterator[tuple[torch.nn.Module, str, Any]]:
    """Yield the attributes of the modules that the learner's variables stand for, parts included."""
    seen = set()
    for _, _, value in variables():
        for part in value.modules() if isinstance(value, torch.nn.Module) else ():
            if id(part) not in seen:
                seen.add(id(part))
                for name, kept in vars(part).items():
                    if not name.startswith("_"):
                        yield part, f"self.{name}", kept


def _inside(value: Any, depth: int = 3) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif depth and isinstance(value, list | tuple | deque | set | dict):
        items = list(value.values()) if isinstance(value, dict) else list(value)
        for item in items[:_MOST]:
            yield from _inside(item, depth - 1)


def _reaches(tensor: torch.Tensor, before: int) -> bool:
    try:
        nodes = walk([tensor.grad_fn])
    except GraphTooLarge:
        return True
    return any(node.next_functions and number_of(node) < before for node in nodes)
