"""A graph that was used up, and is needed once more: told apart by what existed when each pass began."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any

import torch

from course_utils.explain import passes
from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.families.earlier import by_code
from course_utils.explain.families.no_graph import started_from
from course_utils.explain.families.used_up import carried, computed_once, freed_by_grad, kept_once, same_loss, shared
from course_utils.explain.loops import base, carriers, kept_by_class, reads_first, renewals
from course_utils.explain.naming import argument, assigned, tensors
from course_utils.explain.nodes import behind, number
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Call, Situation
from course_utils.explain.source import called, written
from course_utils.graph.trace import LiveNode


def _second_time(s: Situation, m: re.Match[str]) -> Explanation | None:
    start = s.started
    if start is None:
        return None
    if not s.in_pass:
        return _read_late(s)
    nodes = behind(s.roots)
    loss = written(started_from(s)) or "the loss"
    earlier = [it for it in passes.before_the_last() if not it.retained]
    found = _by_passes(s, start, nodes, loss, earlier) if earlier and nodes else None
    return found or by_code(s, start, nodes, loss)


def _by_passes(
    s: Situation, start: Call, nodes: list[LiveNode], loss: str, earlier: list[passes.Pass]
) -> Explanation | None:
    """Tell the cases apart by what existed when each pass before began."""
    recorded = [number(node) for node in nodes if number(node) >= 0]
    if not recorded or not s.roots or s.roots[0].grad_fn is None:
        return None
    root = number(s.roots[0].grad_fn)
    same = [it for it in earlier if it.started_from(s.roots[0])]
    if same:
        before = _line(s, same[-1])
        node = _call(s, same[-1])
        if before is not None and called(node) == "grad" and isinstance(node, ast.Call) and node is not start.node:
            return freed_by_grad(start, node, written(argument(node, 0, "outputs")) or loss, before, True, True)
        return same_loss(s, start, loss, before, True)
    candidates = [it for it in earlier if it.made > min(recorded)]
    if not candidates:
        return None
    last = candidates[-1]
    certain = len({root >= it.made for it in candidates}) == 1
    if root < last.made:
        first = [it for call in s.calls for _, it in tensors(call) if last.started_from(it)]
        joint = _joint(s, nodes, first[0]) if first else []
        return shared(s, start, nodes, loss, _line(s, last), joint, certain)
    old = _frontier(nodes, last.made)
    held = [name for call in reversed(s.calls) for name, tensor in tensors(call) if _made_by(tensor, old)]
    again = last.code.co_filename == start.file and last.line == start.line
    if not again:
        return shared(s, start, nodes, loss, _line(s, last), held, certain and bool(held)) if held else None
    renewed = [name for name in held if renewals(start, base(name))]
    if held and not renewed and "." not in held[0]:
        made = assigned(start, held[0])
        places = [start.place("computed here, once", it) for it in made[-1:]]
        return computed_once(start, held[0], certain, made, places)
    for name in held:
        kept = kept_by_class(start, name) if "." in name and "[" not in name else None
        if kept is not None:
            return kept_once(start, name, kept, certain)
    names = renewed or held or _successors(s, old, last.made)
    return carried(s, start, names, loss, certain and bool(names))


def _read_late(s: Situation) -> Explanation | None:
    attribute = (
        next((it.attr for it in ast.walk(s.node) if isinstance(it, ast.Attribute)), "") if s.node is not None else ""
    )
    if not attribute.startswith(("_saved", "saved_tensors", "_raw_saved")):
        return None
    why = "backward() frees what its nodes saved as it goes. After it there is nothing to read."
    fix = "read it before backward(), or pass retain_graph=True to that backward()"
    return card("saved-read-late", f"`{attribute}` was read after backward() had freed it", why, fix, s.needed())


def _line(s: Situation, it: passes.Pass) -> Place | None:
    """Return the line of an earlier pass, if it was the learner's."""
    if not passes.is_learners_pass(it):
        return None
    source = s.sources.of(it.code.co_filename)
    return Place("first pass here", it.code.co_filename, it.line, source.text(it.line) if source else "")


def _call(s: Situation, it: passes.Pass) -> ast.AST | None:
    """Return the expression that began an earlier pass, in the learner's source."""
    start, end, column, end_column = it.position
    source = s.sources.of(it.code.co_filename) if passes.is_learners_pass(it) else None
    if source is None or start is None or end is None or column is None or end_column is None:
        return None
    return source.at(start, end, column, end_column)


def _frontier(nodes: list[LiveNode], count: int) -> list[LiveNode]:
    """Return the nodes that were there when a pass began and that newer ones lead to."""
    found: dict[LiveNode, None] = {}
    for node in nodes:
        if number(node) >= count:
            for to, _ in node.next_functions:
                if to is not None and 0 <= number(to) < count:
                    found[to] = None
    return list(found)


def _made_by(tensor: torch.Tensor, nodes: Iterable[LiveNode]) -> bool:
    return tensor.grad_fn is not None and any(tensor.grad_fn is node for node in nodes)


def _joint(s: Situation, nodes: list[LiveNode], first: torch.Tensor) -> list[str]:
    """Return the learner's name for the last tensor that two graphs have in common."""
    mine = set(nodes)
    common = {node for node in behind([first]) if node in mine and number(node) >= 0}
    found = [
        (number_of(tensor), name)
        for call in s.calls
        for name, tensor in tensors(call)
        if tensor.grad_fn in common and tensor.grad_fn is not None
    ]
    return [max(found)[1]] if found else []


def number_of(tensor: torch.Tensor) -> int:
    """Return when a tensor's node was made; -2 for one without a node."""
    return -2 if tensor.grad_fn is None else number(tensor.grad_fn)


def _successors(s: Situation, old: list[LiveNode], made: int) -> list[str]:
    """Return the variables that now hold, newly computed from it, what an old node made: same operation and shape."""
    shapes = {(type(node), tuple(node._input_metadata[0].shape)): node for node in old if node._input_metadata}
    found = []
    for call in reversed(s.calls):
        for name, tensor in tensors(call):
            node: Any = tensor.grad_fn
            if node is None or number(node) < made or (type(node), tuple(tensor.shape)) not in shapes:
                continue
            own = base(name)
            if any(it in old for it in behind([tensor])) and (reads_first(call, own) or carriers(call, own)):
                found.append(name)
    return found


RULES = (
    Rule(RuntimeError, r"Trying to backward through the graph a second time", _second_time),
)  # fmt: skip
