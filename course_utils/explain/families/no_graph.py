"""Tensors without a graph, where one was needed."""

from __future__ import annotations

import ast
import re
import types

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.flow import Flow, Found
from course_utils.explain.lines import only_line
from course_utils.explain.naming import argument, assigned, receiver
from course_utils.explain.reading import MISSING, is_a
from course_utils.explain.requiring import requiring
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, names_of, with_keyword, written

_WHY = {
    "no-graph-detach": "{what} gives the values without their graph, so nothing leads back through it.",
    "no-graph-item": "{what} gives a plain Python number. What is computed from it has no graph.",
    "no-graph-numpy": "NumPy records nothing. What passes through it has no graph, from {what} on.",
    "no-graph-argmax": "{what} picks or compares: its result jumps and has no derivative, so PyTorch records no graph.",
    "no-graph-integers": "{what} makes integers, which cannot change by a little and so have no gradient.",
    "no-graph-new-tensor": "{what} copies numbers into a new tensor. The graph of what they were stays behind.",
    "no-graph-no-grad": "What is computed under {what} has no graph: PyTorch records nothing there.",
    "no-graph-inference": "What is computed under {what} has no graph, and its tensors cannot be saved for one later.",
}
_FIX = {
    "no-graph-detach": "{before}  # without {cut}",
    "no-graph-item": "{before}  # without {cut}: a tensor, in the loss; a number is for printing",
    "no-graph-numpy": "# do this part with torch functions, on the tensor that has a graph",
    "no-graph-argmax": "{before}  # without {cut}: what picks or compares is for a metric, not for a loss",
    "no-graph-integers": "{before}  # without {cut}: a loss needs floating point predictions",
    "no-graph-new-tensor": "# leave it out for one tensor; torch.stack joins several with their graphs",
    "no-graph-no-grad": "# compute what is to learn outside of {what}",
    "no-graph-inference": "# compute what is to learn outside of {what}",
}


def _no_graph(s: Situation, m: re.Match[str]) -> Explanation | None:
    node = started_from(s)
    shown = written(node)
    if s.roots and all(root.grad_fn is not None or root.requires_grad for root in s.roots):
        return _once_differentiable(s)
    if node is None:
        return _unknown(s, "the tensor that backward() started from")
    if called(s.node) == "grad" and (without := _asked_without(s)):
        which = ", ".join(f"`{it}`" for it in without)
        why = f"A gradient with respect to {which} was asked for, and PyTorch records uses only of what requires one."
        headline = f"{which} {'do' if len(without) > 1 else 'does'} not require a gradient"
        return card("input-without-grad", headline, why, requiring(s, without, node), s.needed())
    found = Flow(s).cut(node)
    name = f"`{shown}`" if shown else "the tensor that backward() starts from"
    if found.state == "cut" and found.code == "no-graph-second-order":
        return _second_order(s, name, found)
    if found.state == "cut":
        what = f"`{found.what}`"
        why = _WHY[found.code].format(what=what)
        before, cut = _parted(found.what)
        fix = _FIX[found.code].format(what=found.what, before=before, cut=cut)
        if before.startswith("#") and "{before}" in _FIX[found.code]:
            fix = f"{before} of what is to learn: {found.what}"
        where = (*([found.where] if found.where else []), *s.needed())
        flat = re.search(r"\b(round|floor|ceil|trunc|sign)\(", before)
        if found.code == "no-graph-integers" and flat:
            fix += f"\n# without {flat[1]}(), too: its derivative is 0 everywhere"
        if found.code in ("no-graph-item", "no-graph-numpy") and _builds_tensors(s):
            fix += "\n# torch.stack, not torch.tensor, makes one tensor of several and keeps their graphs"
        headline = f"{name} has no graph: {'it was' if found.proved else 'it may have been'} cut at {what}"
        return card(found.code, headline, why, fix, where, found.proved)
    if not torch.is_grad_enabled():
        why = "Gradients are switched off for the whole session (torch.set_grad_enabled(False)): no graph is recorded."
        headline = f"{name} has no graph: gradients are switched off"
        fix = "torch.set_grad_enabled(True)\n# or, where it was switched off: with torch.no_grad(): ends by itself"
        return card("no-graph-no-grad", headline, why, fix, [*only_line(s, _OFF, _switches_off), *s.needed()])
    if found.state == "bare" and found.frozen:
        model = found.frozen[0]
        why = f"No parameter of `{model}` requires a gradient, and no input does, so there is nothing to record."
        fix = f"{model}.requires_grad_(True)  # or only the part that is to learn"
        if model.startswith("self.") and s.here is not None and "self" not in s.here.names:
            fix = f"# requires_grad_(True) on what is to learn; self is the model that has {model}"
        return card(
            "no-graph-frozen",
            f"{name} has no graph: all of `{model}` is frozen",
            why,
            fix,
            [*only_line(s, "freezes here", _freezes), *s.needed()],
        )
    if found.state in ("bare", "unknown") and (checkpointed := _reentrant(s, name)) is not None:
        return checkpointed
    if found.state == "bare" and found.inputs and found.inputs != (shown,):
        names = ", ".join(f"`{it}`" for it in found.inputs[:3])
        why = f"It was computed from {names} alone, and none of them requires a gradient: PyTorch records nothing."
        fix = f"{found.inputs[0]}.requires_grad_()  # before it is used"
        return card(
            "no-graph-inputs", f"{name} has no graph: nothing in it requires a gradient", why, fix, s.needed(), False
        )
    if (turn := _turn(s, shown)) is not None:
        return _second_order(s, name, Found("cut", "no-graph-second-order", "create_graph", turn))
    return _unknown(s, name)


def _turn(s: Situation, name: str) -> Place | None:
    """Return where a loop gives a name a recorded gradient in each turn, to differentiate it in the next."""
    statement = s.here.statement if s.here is not None else None
    if s.here is None or s.here.source is None or not isinstance(statement, ast.Assign):
        return None
    given = names_of(*statement.targets)
    recorded = called(s.node) == "grad" and "create_graph=True" in written(s.node, 400)
    looped = s.here.source.loop(statement) is not None
    return s.here.place("computed here", statement) if recorded and looped and name in given else None


def _asked_without(s: Situation) -> dict[str, torch.Tensor]:
    """Return the tensors that autograd.grad was asked about and that require no gradient, by their names."""
    node = argument(s.node, 1, "inputs")
    nodes = node.elts if isinstance(node, ast.List | ast.Tuple) else [node]
    values = {written(it): s.here.value(it) if s.here is not None else MISSING for it in nodes}
    without = {name: it for name, it in values.items() if is_a(it, torch.Tensor) and not it.requires_grad}
    return {name: it for name, it in without.items() if name and it.is_floating_point()}


def _builds_tensors(s: Situation) -> bool:
    """Return whether the function builds a tensor from numbers."""
    scope = s.here.scope if s.here is not None else None
    return scope is not None and any(called(it) in ("tensor", "as_tensor") for it in ast.walk(scope))


_OFF = "switches gradients off"


def _switches_off(node: ast.AST) -> bool:
    return called(node) == "set_grad_enabled" and written(argument(node, 0, "mode")) == "False"


def _freezes(node: ast.AST) -> bool:
    """Return whether a part of code freezes: `p.requires_grad = ...` of anything but True, `requires_grad_(False)`."""
    if isinstance(node, ast.Assign):
        flags = [it for it in node.targets if isinstance(it, ast.Attribute) and it.attr == "requires_grad"]
        return bool(flags) and written(node.value) != "True"
    return called(node) == "requires_grad_" and written(argument(node, 0, "requires_grad")) == "False"


def _reentrant(s: Situation, name: str) -> Explanation | None:
    """Explain a checkpoint of the older kind, which gives no graph where none of its inputs requires a gradient."""
    for call in s.calls[-1:]:
        for node in ast.walk(call.source.tree) if call.source is not None else ():
            if not isinstance(node, ast.Call) or not called(node).startswith("checkpoint") or call.source is None:
                continue
            told = next((written(it.value) for it in node.keywords if it.arg == "use_reentrant"), "")
            if told in ("", "True", "None"):  # the older kind is what PyTorch takes where nothing is said
                place = call.source.place("checkpointed here", node)
                why = (
                    f"A checkpoint {'with' if told == 'True' else 'that is not told otherwise works as with'} "
                    "use_reentrant=True: its result has no graph where none of its inputs requires a gradient, "
                    "whatever its parameters require."
                )
                fix = with_keyword(node, "use_reentrant", False)
                headline = f"{name} has no graph: a checkpoint may have cut it"
                return card("checkpoint-inputs", headline, why, fix, [place, *s.needed()], False)
    return None


def _unknown(s: Situation, name: str) -> Explanation:
    cuts = "detach(), .item(), NumPy, torch.tensor(...), argmax or no_grad"
    if called(s.node) == "grad":
        why = (
            "Nothing that requires a gradient is behind it. Either it is a constant, which depends on nothing, so that "
            f"its derivative is 0; or the graph was cut on the way, most often by {cuts}."
        )
        fix = (
            "# print .requires_grad of each tensor on the way: where it turns to False, the graph is cut\n"
            "# or, where it is a constant indeed: its derivative is 0, so take zeros"
        )
    else:
        why = (
            f"No parameter that requires a gradient is behind it. Most often the graph was cut by {cuts}; or all "
            "parameters are frozen."
        )
        fix = "# print .requires_grad of each tensor from the model's output to the loss: the first False is it"
    return card("no-graph", f"{name} has no graph to go back through", why, fix, s.needed(), False)


def _once_differentiable(s: Situation) -> Explanation | None:
    """The roots have a graph, so the error comes from inside the pass: from a node that ends one."""
    for node in _nodes(s):
        if "DelayedError" in type(node).__name__:
            why = "A custom Function whose backward is marked @once_differentiable was differentiated twice."
            fix = "# remove @once_differentiable, and write backward with torch functions of tensors"
            return card(
                "once-differentiable",
                "a second derivative goes through a Function made for one only",
                why,
                fix,
                s.needed(),
            )
    return None


def _nodes(s: Situation) -> list[object]:
    from course_utils.explain.nodes import behind

    return behind(s.roots)


def _second_order(s: Situation, name: str, found: Found) -> Explanation:
    is_gradient = f"{name} {is_or_comes(s)} a gradient"
    if found.what.endswith(".grad"):
        why = f"backward() leaves a gradient in `{found.what}` as numbers, without a graph of how it was computed."
        owner = found.what.removesuffix(".grad")
        fix = f"(g,) = torch.autograd.grad(y, {owner}, create_graph=True)  # then differentiate g"
    elif found.what == "create_graph":
        where = (*([Place("computed here", *_rest(found.where))] if found.where else []), *s.needed())
        why = (
            "It was recorded (create_graph=True), but does not depend on anything that requires a gradient: the "
            "function "
            "is linear, so that its gradient is a constant, or a Function marked @once_differentiable is in between."
        )
        fix = (
            "# of a linear function the second derivative is 0: take zeros where .requires_grad is False\n"
            "# or remove @once_differentiable from the Function"
        )
        headline = f"{is_gradient} that was recorded, and has no graph"
        return card("no-graph-second-order", headline, why, fix, where, False)
    else:
        why = "autograd.grad gives plain numbers unless it is asked to record how it computed them."
        fix = f"{found.what[:-1]}, create_graph=True)" if found.what.endswith(")") else "create_graph=True"
    where = (*([Place("computed here", *_rest(found.where))] if found.where else []), *s.needed())
    headline = f"{is_gradient} without a graph, and cannot be differentiated"
    return card("no-graph-second-order", headline, why, fix, where, True)


def is_or_comes(s: Situation) -> str:
    """Return how what was differentiated relates to a gradient behind it: by a name of its own, or computed from it."""
    node, here = started_from(s), s.here
    while isinstance(node, ast.Subscript):
        node = node.value
    made = [it.value for it in assigned(here, written(node)) if isinstance(it, ast.Assign)] if here and node else []
    named = isinstance(node, ast.Attribute) and node.attr == "grad"
    return "is" if named or any(called(it) == "grad" for it in (node, *map(_whole, made))) else "comes from"


def _whole(node: ast.expr) -> ast.expr:
    """Return what an element was taken of: the call, for `grad(y, x)[0]`."""
    return _whole(node.value) if isinstance(node, ast.Subscript) else node


def _rest(place: Place) -> tuple[str, int, str]:
    return place.file, place.line, place.text


def _parted(what: str) -> tuple[str, str]:
    """Return what was cut, and how: ("model(x)", ".detach()") for "model(x).detach()"."""
    try:
        node = ast.parse(what, mode="eval").body
    except SyntaxError:
        return "# leave it out", what
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
        return ast.unparse(node.args[0]), f"{node.func.id}()"
    owner = receiver(node)
    if owner is None or (isinstance(owner, ast.Name) and owner.id in ("torch", "np", "math")):
        return "# leave it out", what
    method = node.func if isinstance(node, ast.Call) else node
    assert isinstance(method, ast.Attribute)
    given = what[len(ast.unparse(method)) :] if isinstance(node, ast.Call) else ""
    return ast.unparse(owner), f".{method.attr}{given}"


def started_from(s: Situation) -> ast.expr | None:
    """Return the expression that the failing line called backward on, or asked the gradient of."""
    start = s.started
    node = start.node if start is not None else None
    name = called(node)
    if start is None or name not in ("backward", "grad"):
        return None
    inner = argument(node, 0, "outputs" if name == "grad" else "tensors")
    if isinstance(inner, ast.List | ast.Tuple) and inner.elts:
        inner = inner.elts[0]
    owner = receiver(node)
    if called(owner) == "scale":  # scaler.scale(loss).backward()
        return argument(owner, 0) or owner
    value = start.value(owner)
    if name == "grad" or is_a(value, types.ModuleType):
        return inner
    # loss.backward(), or an object that does it for a loss: accelerator.backward(loss)
    by_another = value is not MISSING and not is_a(value, torch.Tensor)
    return inner if inner is not None and by_another else owner


RULES = (Rule(RuntimeError, r"element \d+ of tensors does not require grad", _no_graph),)
