"""A graph that was used up, without a memory of passes: what the learner's lines and the live tensors make likely."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.families.used_up import (
    carried,
    computed_once,
    freed_by_grad,
    hoarded,
    kept_once,
    made_outside,
    one_for_each,
    same_loss,
    second,
    shared,
)
from course_utils.explain.loops import (
    Callee,
    attribute_assigned,
    base,
    callee,
    in_its_loop,
    kept_by_class,
    methods_of,
    one_after_the_other,
    passes_of,
    reads_first,
)
from course_utils.explain.naming import argument, assigned, receiver, targets, tensors
from course_utils.explain.nodes import behind, number
from course_utils.explain.reading import is_a
from course_utils.explain.rules import card
from course_utils.explain.situation import Call, Situation
from course_utils.explain.source import Source, Sources, called, names_of, walk, with_keyword, written
from course_utils.graph.trace import LiveNode

MAX_DEPTH = 3  # of functions that call functions
MAX_LISTED = 10  # of the tensors in a list are looked at
_KEEPS = ("retain_graph", "create_graph")
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


def by_code(s: Situation, start: Call, nodes: list[LiveNode], loss: str) -> Explanation:
    """Return the most likely cause, or all that there may be."""
    before = passes_of(start, loss)
    if before is not None and called(before) == "backward":
        sure = one_after_the_other(start, before, loss)
        return same_loss(s, start, loss, start.place("first pass here", before), sure)
    mine = set(nodes)
    found = _again_and_again(start, mine, loss) or _by_autograd_grad(start, mine, loss)
    if found is not None:
        return found
    for name, tensor in tensors(start):
        first = passes_of(start, name) if tensor.grad_fn is not None and loss != name else None
        if first is None or tensor.grad_fn in mine:
            continue
        common = [it for it in behind([tensor]) if it in mine and number(it) >= 0]
        if common:
            held = [own for own, other in tensors(start) if other.grad_fn in common[:50] and own != name]
            return shared(s, start, nodes, loss, start.place("first pass here", first), held, False)
    for name, tensor in tensors(start):
        kept = kept_by_class(start, base(name)) if "." in name and tensor.grad_fn in mine else None
        if kept is not None and tensor.grad_fn is not None and "[" not in name:
            return kept_once(start, name, kept, False)
    names = list(dict.fromkeys(_carried_names(s, start, mine)))
    if names:
        return carried(s, start, names, loss, False)
    return _once(s, start, mine, loss) or _unknown(start, loss)


def _unknown(start: Call, loss: str) -> Explanation:
    why = (
        f"An earlier backward() or autograd.grad went through a part of the graph of `{loss}` and freed it. It may be "
        "a state carried over from the step before, a tensor computed once before the loop or kept in a list, a part "
        "shared with another loss, or the same loss again."
    )
    fix = (
        "# carried over or kept: .detach() it at the start of each step; made before the loop: compute it inside\n"
        "# shared by two losses: one backward() of their sum; freed by autograd.grad: retain_graph=True there"
    )
    headline = f"a part of the graph of `{loss}` was used up by an earlier pass"
    return card("second-time", headline, why, fix, second(start), False)


def _again_and_again(start: Call, mine: set[LiveNode], loss: str) -> Explanation | None:
    """Explain a pass that a comprehension or loop repeats: for each element of an output, or tensor of a list."""
    node, source = start.node, start.source
    if not isinstance(node, ast.Call) or source is None or called(node) not in ("grad", "backward"):
        return None
    output = argument(node, 0, "outputs") if called(node) == "grad" else receiver(node)
    names = names_of(output)
    for outer in source.around(node):
        loops = (
            outer.generators if isinstance(outer, _COMPREHENSIONS) else [outer] if isinstance(outer, ast.For) else []
        )
        own, through = names_of(*(it.target for it in loops)), names_of(*(it.iter for it in loops))
        for name in sorted((through | names) - own) if own & names and not _keeps_always(node) else ():
            common = _common(start.look_up(name), mine)
            if common:
                parts = [(number(it.grad_fn), own) for own, it in tensors(start) if it.grad_fn in common]
                return one_for_each(start, node, name, max(parts)[1] if parts else "")
        whole = [name for name in names - own if not any(in_its_loop(start, it) for it in assigned(start, name))]
        if own & names and isinstance(output, ast.Subscript) and base(loss) in whole:
            kept = with_keyword(node, "retain_graph", True)
            why = (
                f"All elements of `{base(loss)}` have one graph. The first pass frees it, and the next needs it again."
            )
            headline = f"the graph of `{base(loss)}` is gone through once for each element"
            return card("second-time", headline, why, kept, second(start), False)
        if isinstance(outer, ast.FunctionDef | ast.Lambda):
            return None
    return None


def _common(listed: object, mine: set[LiveNode]) -> list[LiveNode]:
    """Return what several tensors of a list have in common, of what a graph holds."""
    held = listed if isinstance(listed, list | tuple) and type(listed) in (list, tuple) else ()
    own = [it for it in held[:MAX_LISTED] if is_a(it, torch.Tensor)]
    found = Counter(node for it in own for node in behind([it]) if node in mine and number(node) >= 0)
    return [node for node, times in found.items() if times > 1]


def _by_autograd_grad(start: Call, mine: set[LiveNode], loss: str) -> Explanation | None:
    """Explain a call of autograd.grad before this pass, over a part of its graph, that kept nothing."""
    for source, node, of_loss in _freeing(start, mine, loss):
        place = source.place("first pass here", node)
        return freed_by_grad(start, node, written(argument(node, 0, "outputs")) or loss, place, of_loss, False)
    return None


def _freeing(start: Call, mine: set[LiveNode], loss: str) -> Iterator[tuple[Source, ast.Call, bool]]:
    """Yield calls of autograd.grad before the failing line that keep no graph: with source, and whether of the loss.

    Those of the same function over a part of this graph, those that were given the loss, and those that computed it.
    """
    live = {name for name, tensor in tensors(start) if tensor.grad_fn in mine}
    for node in walk(start.scope) if start.scope is not None else ():
        if not isinstance(node, ast.Call) or node is start.node or node.lineno >= start.line or start.source is None:
            continue
        output = argument(node, 0, "outputs")
        if called(node) == "grad" and output is not None and not _keeps(node):
            names = names_of(output)
            if written(output) == loss or names & live:
                yield start.source, node, written(output) == loss
            continue
        statement = start.source.statement(node)
        makes = statement is not None and loss in targets(statement)
        yield from _inside(callee(start.value, start.sources, node), start.sources, loss, makes, MAX_DEPTH)


def _inside(
    it: Callee | None, sources: Sources, loss: str, makes: bool, depth: int
) -> Iterator[tuple[Source, ast.Call, bool]]:
    if it is None or not depth:
        return
    own = [name for name, given in it.given.items() if written(given) == loss]
    for node in walk(it.scope):
        if not isinstance(node, ast.Call):
            continue
        output = written(argument(node, 0, "outputs"))
        if called(node) == "grad" and output and not _keeps(node) and (makes or output in own):
            yield it.source, node, output in own
        inner = callee(it.value, sources, node)
        for name in own if inner is not None and not makes else ():
            yield from _inside(inner, sources, name, False, depth - 1)


def _keeps_always(node: ast.Call) -> bool:
    return any(it.arg in _KEEPS and written(it.value) == "True" for it in node.keywords)


def _keeps(node: ast.Call) -> bool:
    return any(it.arg in _KEEPS and written(it.value) != "False" for it in node.keywords)


def _carried_names(s: Situation, start: Call, mine: set[LiveNode]) -> Iterator[str]:
    """Yield the tensors of this graph, or made from a part of it, that a loop or class reads before it sets them."""
    for call in reversed(s.calls):
        for name, tensor in tensors(call):
            own = base(name)
            if tensor.grad_fn is None or any(f"{own}.detach(" in ast.unparse(it) for it in assigned(call, own)):
                continue
            of_loop = call is start and (tensor.grad_fn in mine or "." not in name) and reads_first(call, own)
            if not of_loop and not ("." in own and _kept_by_class(call, own)):
                continue
            if any(it in mine and number(it) >= 0 for it in behind([tensor])):  # the dearest question comes last
                yield name


def _kept_by_class(call: Call, name: str) -> bool:
    """Return whether a class reads an attribute in the method that then gives it a new value."""
    attribute = f"self.{name.rpartition('.')[2]}"
    for source, scope in methods_of(call, name):
        sets = [it for it in attribute_assigned(scope, attribute)]
        reads = [it for it in walk(scope) if isinstance(it, ast.Attribute) and isinstance(it.ctx, ast.Load)]
        first = min((it.lineno for it in sets), default=0)
        if scope.name != "__init__" and source and any(written(it) == attribute and it.lineno <= first for it in reads):
            return True
    return False


def _once(s: Situation, start: Call, mine: set[LiveNode], loss: str) -> Explanation | None:
    """Explain what was computed once and is used again and again: the loss itself, or a tensor in its graph."""
    source = start.source
    inside = [it for it in assigned(start, loss) if in_its_loop(start, it)] if loss.isidentifier() else []
    outside = made_outside(start, loss)
    if outside is not None and not inside:
        return same_loss(s, start, loss, outside, False)
    for own, scope in methods_of(start, loss):
        for node in walk(scope):
            if called(node) == "backward" and written(receiver(node)) == loss and node is not start.node:
                place = Place("first pass here", own.file, node.lineno, own.text(node.lineno))  # type: ignore[attr-defined]
                return same_loss(s, start, loss, place, False)
    loop = source.loop(start.node) if source is not None and start.node is not None else None
    goes_through = names_of(loop.iter) if isinstance(loop, ast.For) else set()  # a pass for each, and not for one again
    for name, tensor in tensors(start):
        own_name = base(name)
        if tensor.grad_fn not in mine or tensor.grad_fn is None or own_name == base(loss):
            continue
        if "[" in name:
            if not assigned(start, own_name) and own_name not in goes_through:
                return hoarded(start, own_name)
            continue
        made = [it for it in assigned(start, own_name)]
        looped = made and source is not None and source.loop(start.node or made[0]) is not None
        if "." not in name and looped and not any(in_its_loop(start, it) for it in made):
            places = [start.place("computed here, once", made[-1])]
            return computed_once(start, own_name, False, made, places)
    return None
