"""The cards of a graph that was used up: the same loss, a carried state, a shared trunk, a tensor computed once."""

from __future__ import annotations

import ast
import re

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.loops import base, carriers, in_its_loop, renewals
from course_utils.explain.naming import assigned
from course_utils.explain.rules import card
from course_utils.explain.situation import Call, Situation
from course_utils.explain.source import Source, called, walk, with_keyword, written
from course_utils.graph.trace import LiveNode


def second(start: Call) -> tuple[Place, ...]:
    """Return the line of the pass that failed."""
    return (start.place("second pass here"),)


def same_loss(s: Situation, start: Call, loss: str, first: Place | None, certain: bool) -> Explanation:
    """Return the card of a loss that goes through two passes."""
    why = f"backward() frees the graph of `{loss}` as it goes. A second pass over the same `{loss}` finds nothing left."
    where = [*([first] if first else []), *second(start)]
    if first is not None and first.line == start.line and first.file == start.file:
        made = [start.place("computed here, once", it) for it in assigned(start, loss) if not in_its_loop(start, it)]
        made = made or ([outside] if (outside := made_outside(start, loss)) is not None else [])
        where = [*made[-1:], *second(start)]
        why = (
            f"`{loss}` is computed once, and backward() frees its graph at the first pass; the next one finds nothing."
        )
        inside = f"inside {start.frame.f_code.co_name}" if outside_function(start, loss) else "inside the loop"
        text = made[-1].text if made and len(made[-1].text) <= 70 and "=" in made[-1].text else f"{loss} = ..."
        fix = f"{text}  # {inside}: a new graph for each pass"
    elif first is not None and first.role == "computed here, once":
        fix = f"{first.text}  # where its backward() is: a new graph for each pass"
    else:
        fix = f"# one backward() is enough: remove one of them\n# for twice the gradient: (2 * {loss}).backward()"
    went = "went" if certain else "may have gone"
    return card("same-loss-twice", f"`{loss}` {went} through backward() twice", why, fix, where, certain)


def made_outside(start: Call, loss: str) -> Place | None:
    """Return the line outside of what is repeated, the loop or the function, that computed the loss."""
    source = start.source
    if source is None or not loss.isidentifier() or start.node is None or start.scope is None:
        return None
    own = assigned(start, loss)
    if own and source.loop(start.node) is not None and not any(in_its_loop(start, it) for it in own):
        return start.place("computed here, once", own[-1])
    if not outside_function(start, loss):
        return None
    for outer in source.around(start.scope):
        if isinstance(outer, ast.FunctionDef | ast.Module):
            made = [it for it in walk(outer) if isinstance(it, ast.Assign) and loss in map(written, it.targets)]
            if made:
                return start.place("computed here, once", made[-1])
    return None


def outside_function(start: Call, loss: str) -> bool:
    """Return whether a name of a function is one of what is around it."""
    return not (assigned(start, loss) or start.is_module or loss in start.frame.f_code.co_varnames)


def freed_by_grad(start: Call, node: ast.Call, own: str, first: Place, of_loss: bool, certain: bool) -> Explanation:
    """Return the card of a graph that autograd.grad went through before, and kept nothing of."""
    kept = with_keyword(node, "retain_graph" if of_loss else "create_graph", True)
    sure = "and this pass needs it" if certain else "and this pass may need it"
    why = f"autograd.grad frees the graph of `{own}` as it goes, as backward() does, {sure}."
    headline = f"the graph of `{own}` {'was' if certain else 'may have been'} used up by autograd.grad before this pass"
    return card("second-time", headline, why, kept, [first, *second(start)], certain)


def carried(s: Situation, start: Call, names: list[str], loss: str, certain: bool) -> Explanation:
    """Return the card of tensors that go from one step to the next."""
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
        goes = (
            "goes from one step to the next with its" if len(bases) < 2 else "go from one step to the next with their"
        )
        why = f"{shown} {goes} graph, which each step's backward() frees."
        tuples = not grows and any("[" in name for name in names if base(name) == own)
        detached = ", ".join(f"{it}.detach()" for it in bases or [own])
        fix = f"{', '.join(bases or [own])} = {detached}  # at the start of each step: the values go on, the graph ends"
        if tuples:
            fix = f"{own} = tuple(t.detach() for t in {own})  # at the start of each step: values go on, graphs end"
        if grows:
            fix = f"# empty {own} after each update; or append values with .detach(), if they are not to learn"
        holds = f"still {'holds' if len(bases) < 2 else 'hold'}" if certain else "may still hold"
        headline = f"{shown} {holds} the graph of an earlier step"
    return card("carried-state", headline, why, fix, [*where, *second(start)], certain)


def hoarded(start: Call, name: str) -> Explanation:
    """Return the card of a list that keeps tensors with their graphs from one pass to the next."""
    why = (
        f"`{name}` keeps tensors with their graphs. What an earlier pass went through is used up: in a step before, or "
        "from another tensor that has a part of its graph in common with these."
    )
    fix = f"# empty {name} after each update; or keep in it what a value is computed from, and compute that anew\n"
    fix += "# values that are not to learn: append them with .detach()\n"
    fix += "# several passes over a common part: one backward() of the sum, or retain_graph=True in all but the last"
    headline = f"`{name}` may hold graphs that an earlier pass has used up"
    return card("carried-state", headline, why, fix, second(start), False)


def one_for_each(start: Call, node: ast.Call, name: str, part: str) -> Explanation:
    """Return the card of passes for each of several tensors, one after the other, that have a part in common."""
    shown = f"`{part}`" if part else "a part of their graph"
    why = f"A pass frees what it goes through, and the next one needs {f'`{part}`' if part else 'that part'} again."
    asked = next((it.value for it in node.keywords if it.arg == "retain_graph"), None)
    if asked is not None and written(asked) != "False":
        why += f" `retain_graph={written(asked) or '...'}` has to be true in each pass but the last."
    headline = f"the tensors in `{name}` share {shown}, and an earlier pass may have freed it"
    return card("shared-trunk", headline, why, in_turn(start, node), second(start), False)


def in_turn(start: Call, node: ast.AST | None) -> str:
    """Return the fix of passes that a loop makes over a common part: only a new graph, where a step is between them."""
    loop = start.source.loop(node) if start.source is not None and node is not None else None
    if any(called(it) == "step" for it in (walk(loop) if loop is not None else ())):
        return "# compute each loss anew, from the forward pass on: a step of an optimizer is between the passes"
    if not isinstance(node, ast.Call):
        return "# retain_graph=True in all passes but the last, told by its position"
    return f"{with_keyword(node, 'retain_graph', True)}  # in all passes but the last, told by its position"


def shared(
    s: Situation, start: Call, nodes: list[LiveNode], loss: str, first: Place | None, held: list[str], certain: bool
) -> Explanation:
    """Return the card of two losses with a common part."""
    own = base(held[0]) if held else ""
    shown = f"`{own}`" if own else "a part"
    made = [start.place("computed here, once", it) for it in assigned(start, own)[-1:]] if own else []
    why = f"Both passes go through {shown if own else 'one part of the graph'}, and the first one freed that part."
    headline = f"`{loss}` shares {shown} with a loss whose backward pass has already run"
    places = [*made, *([first] if first else []), *second(start)]
    return card("shared-trunk", headline, why, _shared_fix(start, first, loss, own), places, certain)


def _shared_fix(start: Call, first: Place | None, loss: str, own: str) -> str:
    """Join both passes, or detach what they share: only the latter where a step of an optimizer is between them."""
    if first is not None and (first.file, first.line) == (start.file, start.line):
        return in_turn(start, start.node)
    match = re.match(r"([\w.\[\]]+)\.backward\(", first.text) if first else None
    join = f"({match[1] if match else 'first_loss'} + {loss}).backward()  # one pass for both"
    if not own:
        return join
    cut = f"{own}.detach()  # in the loss that is not to train what is behind {own}"
    lines = range(first.line if first is not None else start.line, start.line)
    statements = walk(start.scope) if start.scope is not None else ()
    between = any(isinstance(it, ast.Call) and called(it) == "step" and it.lineno in lines for it in statements)
    return cut if between else f"{join}\n{cut}"  # after a step, the sum would learn something else


def kept_once(start: Call, name: str, kept: tuple[Source, ast.stmt], certain: bool) -> Explanation:
    """Return the card of an attribute that its class computes once and keeps."""
    source, it = kept
    place = source.place("computed here, once", it)
    tested = any(isinstance(outer, ast.If) for outer in source.around(it))
    again = "each time, without the `if` before it" if tested else "where it is used"
    return computed_once(start, name, certain, _of_self(source, it), [place], again)


def _of_self(source: Source, statement: ast.stmt) -> list[ast.stmt]:
    """Return a statement of a method with its arguments by the names under which the object keeps them."""
    method = source.scope(statement)
    pairs = [
        pair
        for it in walk(method)
        if isinstance(it, ast.Assign)
        for target in it.targets
        for pair in (
            zip(target.elts, it.value.elts, strict=False)
            if isinstance(target, ast.Tuple) and isinstance(it.value, ast.Tuple)
            else [(target, it.value)]
        )
    ]
    kept = {own.id: to for to, own in pairs if isinstance(to, ast.Attribute) and isinstance(own, ast.Name)}
    copy = ast.parse(ast.unparse(statement))
    for node in ast.walk(copy):
        for field, value in ast.iter_fields(node):
            if isinstance(value, ast.Name) and isinstance(value.ctx, ast.Load) and value.id in kept:
                setattr(node, field, kept[value.id])
    return copy.body


def computed_once(
    start: Call, name: str, certain: bool, made: list[ast.stmt], where: list[Place], again: str = "where it is used"
) -> Explanation:
    """Return the card of a tensor made once and used in each pass."""
    why = f"`{name}` is computed once, outside of what is repeated. The first pass frees its graph, and later ones "
    why += "need it again."
    fix = (
        f"{(written(made[-1], 90) if made else '') or f'{name} = ...'}  # {again}: a new graph for each pass\n"
        f"{name} = {name}.detach()  # or this, if nothing behind it is to learn"
    )
    return card(
        "computed-once",
        f"`{name}` was computed once, and its graph {'is' if certain else 'may be'} used up",
        why,
        fix,
        [*where, *second(start)],
        certain,
    )
