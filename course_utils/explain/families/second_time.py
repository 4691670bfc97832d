"""A graph that was used up, and is needed once more: the same loss, a carried state, or a shared trunk."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import Any

import torch

from course_utils.explain import passes
from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.families.no_graph import started_from
from course_utils.explain.loops import (
    base,
    carriers,
    in_its_loop,
    one_after_the_other,
    passes_of,
    reads_first,
    renewals,
)
from course_utils.explain.naming import assigned, tensors
from course_utils.explain.nodes import behind, number
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Call, Situation
from course_utils.explain.source import called, walk, written
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
    return found or _by_code(s, start, nodes, loss)


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
        return _same_loss(s, start, loss, _line(s, same[-1]), True)
    candidates = [it for it in earlier if it.made > min(recorded)]
    if not candidates:
        return None
    last = candidates[-1]
    certain = len({root >= it.made for it in candidates}) == 1
    if root < last.made:
        first = [it for call in s.calls for _, it in tensors(call) if last.started_from(it)]
        joint = _joint(s, nodes, first[0]) if first else []
        return _shared(s, start, nodes, loss, _line(s, last), joint, certain)
    old = _frontier(nodes, last.made)
    held = [name for call in reversed(s.calls) for name, tensor in tensors(call) if _made_by(tensor, old)]
    again = last.code.co_filename == start.file and last.line == start.line
    if not again:
        return _shared(s, start, nodes, loss, _line(s, last), held, certain and bool(held)) if held else None
    renewed = [name for name in held if renewals(start, base(name))]
    if held and not renewed and "." not in held[0]:
        return _computed_once(s, start, held[0], loss, certain)
    names = renewed or held or _successors(s, old, last.made)
    return _carried(s, start, names, loss, certain and bool(names))


def _by_code(s: Situation, start: Call, nodes: list[LiveNode], loss: str) -> Explanation:
    """Without a memory of passes: what the learner's lines and the live tensors make likely."""
    before = passes_of(start, loss)
    if before is not None:
        return _same_loss(
            s, start, loss, start.place("first pass here", before), one_after_the_other(start, before, loss)
        )
    mine = set(nodes)
    for name, tensor in tensors(start):
        first = passes_of(start, name) if tensor.grad_fn is not None and loss != name else None
        if first is None or tensor.grad_fn in mine:
            continue
        shared = [it for it in behind([tensor]) if it in mine and number(it) >= 0]
        if shared:
            held = [own for own, other in tensors(start) if other.grad_fn in shared[:50] and own != name]
            return _shared(s, start, nodes, loss, start.place("first pass here", first), held, False)
    carried = _read_before_written(start, nodes)
    if carried:
        return _carried(s, start, carried, loss, False)
    loop = start.source.loop(start.node) if start.source is not None and start.node is not None else None
    outside = [it for it in assigned(start, loss) if not in_its_loop(start, it)]
    if loop is not None and outside and len(outside) == len(assigned(start, loss)):
        return _same_loss(s, start, loss, start.place("computed here, once", outside[-1]), False)
    why = (
        f"An earlier backward() or autograd.grad went through a part of the graph of `{loss}` and freed it. It may be "
        "a state carried over from the step before, a tensor computed once before the loop or kept in a list, a part "
        "shared with another loss, or the same loss again."
    )
    fix = (
        "# carried over or kept: .detach() it at the start of each step; made before the loop: compute it inside\n"
        "# shared by two losses: one backward() of their sum; freed by autograd.grad: retain_graph=True there"
    )
    return card(
        "second-time",
        f"a part of the graph of `{loss}` was used up by an earlier pass",
        why,
        fix,
        s_place(start),
        False,
    )


def s_place(start: Call) -> tuple[Place, ...]:
    return (start.place("second pass here"),)


def _same_loss(s: Situation, start: Call, loss: str, first: Place | None, certain: bool) -> Explanation:
    why = f"backward() frees the graph of `{loss}` as it goes. A second pass over the same `{loss}` finds nothing left."
    where = [*([first] if first else []), *s_place(start)]
    if first is not None and first.line == start.line and first.file == start.file:
        made = [it for it in assigned(start, loss) if not in_its_loop(start, it)]
        where = [*(start.place("computed here, once", it) for it in made[-1:]), *s_place(start)]
        why = (
            f"`{loss}` is computed once, and backward() frees its graph at the first pass; the next one finds nothing."
        )
        fix = (
            f"{written(made[-1], 70) or f'{loss} = ...'}  # inside the loop: a new graph for each pass"
            if made
            else f"{loss} = ...  # inside the loop"
        )
    elif first is not None and first.role == "computed here, once":
        fix = f"{first.text}  # inside the loop: a new graph for each pass"
    else:
        fix = f"# one backward() is enough: remove one of them\n# for twice the gradient: (2 * {loss}).backward()"
    return card("same-loss-twice", f"`{loss}` went through backward() twice", why, fix, where, certain)


def _carried(s: Situation, start: Call, names: list[str], loss: str, certain: bool) -> Explanation:
    bases = list(dict.fromkeys(base(name) for name in names))[:3]
    shown = ", ".join(f"`{it}`" for it in bases) or "a tensor kept from the step before"
    own = bases[0] if bases else "h"
    where = carriers(start, own)[:1]
    grows = any(called(it) in ("append", "appendleft", "extend", "add") for it in renewals(start, own))
    if own == loss:
        why = f"`{loss}` holds the graphs of all steps so far, and the earlier ones were freed when they were passed."
        fix = (
            f"{own} = ...  # the loss of this step alone, for backward()\ntotal += {own}.item()  # the sum, as a number"
        )
        headline = f"`{loss}` grew out of the `{loss}` of an earlier step, whose graph is used up"
    else:
        why = (
            f"{shown} comes from an earlier step with its graph, which that step's backward() freed. This pass "
            f"ran into it."
        )
        tuples = not grows and any("[" in name for name in names if base(name) == own)
        fix = f"{own} = {own}.detach()  # at the start of each step: the values go on, the graph ends"
        if tuples:
            fix = f"{own} = tuple(t.detach() for t in {own})  # at the start of each step: values go on, graphs end"
        if grows:
            fix = f"{own}.append(value.detach())  # keep values, not graphs"
        headline = f"{shown} still {'holds' if len(bases) < 2 else 'hold'} the graph of an earlier step"
    return card("carried-state", headline, why, fix, [*where, *s_place(start)], certain)


def _shared(
    s: Situation, start: Call, nodes: list[LiveNode], loss: str, first: Place | None, held: list[str], certain: bool
) -> Explanation:
    own = base(held[0]) if held else ""
    shown = f"`{own}`" if own else "a part"
    made = [start.place("computed here, once", it) for it in assigned(start, own)[-1:]] if own else []
    why = f"Both passes go through {shown if own else 'one part of the graph'}, and the first one freed that part."
    headline = f"`{loss}` shares {shown} with a loss whose backward() has already run"
    places = [*made, *([first] if first else []), *s_place(start)]
    return card("shared-trunk", headline, why, _shared_fix(start, first, loss, own), places, certain)


def _shared_fix(start: Call, first: Place | None, loss: str, own: str) -> str:
    """Join both passes, or detach what they share: the latter first where a step of an optimizer is between them."""
    match = re.match(r"([\w.\[\]]+)\.backward\(", first.text) if first else None
    join = f"({match[1] if match else 'first_loss'} + {loss}).backward()  # one pass for both"
    if not own:
        return join
    cut = f"{own}.detach()  # in the loss that is not to train what is behind {own}"
    lines = range(first.line if first is not None else start.line, start.line)
    statements = walk(start.scope) if start.scope is not None else ()
    between = any(isinstance(it, ast.Call) and called(it) == "step" and it.lineno in lines for it in statements)
    return f"{cut}\n{join}" if between else f"{join}\n{cut}"


def _computed_once(s: Situation, start: Call, name: str, loss: str, certain: bool) -> Explanation:
    made = assigned(start, name)
    where = [start.place("computed here, once", it) for it in made[-1:]]
    why = f"`{name}` is computed once, before the loop, and the first pass freed its graph. Later passes need it again."
    fix = (
        f"{written(made[-1], 70) if made else f'{name} = ...'}  # inside the loop\n{name} = {name}.detach()  # "
        f"or this, if nothing behind it is to learn"
    )
    return card(
        "computed-once",
        f"`{name}` was computed once, and its graph is used up",
        why,
        fix,
        [*where, *s_place(start)],
        certain,
    )


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


def _read_before_written(start: Call, nodes: list[LiveNode]) -> list[str]:
    """Return the tensors of this graph that a loop or function reads before it gives them a new value."""
    mine = set(nodes)
    return [
        name
        for name, tensor in tensors(start)
        if tensor.grad_fn in mine and tensor.grad_fn is not None and reads_first(start, base(name))
    ]


RULES = (
    Rule(RuntimeError, r"Trying to backward through the graph a second time", _second_time),
)  # fmt: skip
