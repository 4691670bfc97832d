"""What autograd.grad was asked for, and conversions that a graph refuses."""

from __future__ import annotations

import ast
import inspect
import re
import types

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.families.no_graph import is_or_comes, started_from
from course_utils.explain.families.unused import beside, parameter_name, part_of_model
from course_utils.explain.loops import callee
from course_utils.explain.naming import argument, assigned, bound_before, name_of, receiver, targets, tensors
from course_utils.explain.nodes import behind
from course_utils.explain.reading import MISSING, is_a
from course_utils.explain.requiring import requiring
from course_utils.explain.rules import Rule, card
from course_utils.explain.settings import switched_off, switched_off_by
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, names_of, walk, written

# They lay numbers out anew: what is in their result is in what they were given.
_LAID_OUT = ("cat", "concat", "hstack", "stack", "flatten", "ravel", "reshape", "view", "parameters_to_vector")

_UNUSED = "materialize_grads=True gives zeros where there is no path; allow_unused=True gives None"


def _not_used(s: Situation, m: re.Match[str]) -> Explanation | None:
    inputs, names = _asked_for(s)
    index = int(m[1]) if m[1] else 0
    tensor = inputs[index] if index < len(inputs) else None
    which = names[index] if index < len(names) else f"input {index}"
    which = f"`{own}`" if tensor is not None and (own := parameter_name(s, tensor)) else which
    output = written(started_from(s)) or "the output"
    code, why = "not-in-graph", f"No recorded path leads from `{output}` to {which}."
    why += " Either it was not used, or the path was cut: by detach(), item(), no_grad, NumPy."
    if any("Backward" in type(n).__name__ for n in behind(s.roots)) and _from_gradient(s):
        code = "not-in-graph-second-order"
        why = (
            f"`{output}` {is_or_comes(s)} a gradient, and no recorded path leads from it to {which}. The gradient of a "
            f"function that is linear in {which} no longer contains it: the derivative is 0. Or the path was cut, or "
            f"{which} not used."
        )
    fix = f"# ask for the tensor that was used; or {_UNUSED}"
    if code == "not-in-graph-second-order":
        fix = f"# {_UNUSED}"
    if tensor is not None and tensor.is_leaf is False and code == "not-in-graph":
        why += " Or this is another tensor than the one that was used: a copy, or a view made later."
    headline = f"{which} is not in the graph of `{output}`"
    ignored = _ignored(s, tensor) if code == "not-in-graph" else None
    if ignored is not None:
        name, function, parameter, places = ignored
        why = f"`{name}` is given to `{function}` as `{parameter}`, and `{function}` never uses that argument."
        fix = f"# use {parameter} in {function}; or {_UNUSED}"
        return card(code, headline, why, fix, (*places, *s.needed()))
    replaced = _replaced(s, which.strip("`")) if code == "not-in-graph" else None
    if replaced is not None:
        used, statement, where = replaced
        why = (
            f"Line {used} used another tensor under the name {which}. Line {statement.lineno} then gave the name a new "
            f"one, which `{output}` does not contain."
        )
        fix = f"{written(statement, 80) or '# line ' + str(statement.lineno)}  # move it before line {used}"
        return card(code, headline, why, fix, (*where, *s.needed()), False)
    found = beside(s, tensor) if tensor is not None else None
    if found is None and tensor is not None and code == "not-in-graph":
        found = part_of_model(s, tensor)
    return found or card(code, headline, why, fix, s.needed(), False)


def _ignored(s: Situation, tensor: torch.Tensor | None) -> tuple[str, str, str, list[Place]] | None:
    """Return the learner's function that was given a tensor and never reads it, where nothing else was given it."""
    for call in s.calls if tensor is not None else ():
        for name in (own for own, it in tensors(call) if it is tensor and own.isidentifier()):
            uses = [it for it in walk(call.scope) if isinstance(it, ast.Call)] if call.scope is not None else []
            uses = [it for it in uses if it.lineno < call.line and name in map(written, it.args)]
            given = [found for it in uses if (found := callee(call.value, call.sources, it)) is not None]
            if len(uses) != 1 or len(given) != 1:
                continue
            to = given[0]
            own = next((key for key, value in to.given.items() if written(value) == name), "")
            read = {it.id for it in walk(to.scope) if isinstance(it, ast.Name) and isinstance(it.ctx, ast.Load)}
            if own and own not in read and isinstance(to.scope, ast.FunctionDef):
                line = to.scope.lineno
                places = [Place("given here", call.file, uses[0].lineno, call.place("", uses[0]).text)]
                places.insert(0, Place("argument not used", to.source.file, line, to.source.text(line)))
                return name, to.scope.name, own, places
    return None


def _replaced(s: Situation, name: str) -> tuple[int, ast.stmt, tuple[Place, ...]] | None:
    """Return where a name was used, and the assignment after it that gave the name another tensor; None without one.

    Only what runs once, one after the other, is looked at: not a loop.
    """
    here = s.here
    if here is None or here.scope is None or here.source is None or not name.isidentifier():
        return None
    given = bound_before(here, name)
    if len(given) < 2 or not isinstance(given[-1], ast.Assign) or any(here.source.loop(it) for it in given):
        return None
    last, before = given[-1], given[-2]
    lines = [
        it.lineno
        for it in walk(here.scope)
        if isinstance(it, ast.Name) and it.id == name and isinstance(it.ctx, ast.Load)
    ]
    uses = [line for line in lines if (before.end_lineno or before.lineno) < line < last.lineno]
    later = [line for line in lines if (last.end_lineno or last.lineno) < line < here.line]
    if not uses or later:
        return None
    return uses[0], last, (here.place("used here", uses[0]), here.place("replaced here", last))


def _from_gradient(s: Situation) -> bool:
    """Return whether what was differentiated was computed from what autograd.grad gave: by a name, or by a loop's."""
    here, node = s.here, started_from(s)
    if here is None or here.source is None or here.node is None or node is None:
        return False
    around = list(walk(here.source.scope(here.node)))
    loops = [
        it for it in around if isinstance(it, ast.For | ast.comprehension) and names_of(it.target) & names_of(node)
    ]
    through = [it.iter for it in loops]
    names = names_of(node, *through)
    given = [it.value for it in around if isinstance(it, ast.Assign | ast.AugAssign) and names & set(targets(it))]
    inside = names_of(*(it for it in given if called(it) in _LAID_OUT))
    inside |= names_of(
        *(it.iter for it in around if isinstance(it, ast.comprehension) and names_of(it.target) & inside)
    )
    given += [it.value for it in around if isinstance(it, ast.Assign) and inside & set(targets(it))]
    return any(called(it) == "grad" for made in (node, *through, *given) for it in ast.walk(made))


def _asked_for(s: Situation) -> tuple[list[torch.Tensor], list[str]]:
    """Return the inputs that autograd.grad was asked about, and what the learner calls them."""
    given = s.given("autograd/__init__.py", "grad", "inputs_tuple")
    given = s.given("autograd/__init__.py", "grad", "inputs") if given is MISSING else given
    given = [given] if is_a(given, torch.Tensor) else list(given) if isinstance(given, list | tuple) else []
    tensors = [it for it in given if is_a(it, torch.Tensor)]
    return tensors, [name_of(s, it, f"input {at}") for at, it in enumerate(tensors)]


def _input_without_grad(s: Situation, m: re.Match[str]) -> Explanation | None:
    tensors, names = _asked_for(s)
    without = [name for tensor, name in zip(tensors, names, strict=True) if not tensor.requires_grad]
    which = ", ".join(without) or "an input"
    why = (
        "A gradient with respect to a tensor needs its uses recorded, which PyTorch does only where it requires one: "
        "when it is used, and when the gradient is asked for."
    )
    own = {it.strip("`"): tensor for tensor, it in zip(tensors, names, strict=True) if it in without and "`" in it}
    fix = requiring(s, own or {"x": None}, started_from(s))
    headline = f"{which} {'do' if len(without) > 1 else 'does'} not require a gradient"
    return card("input-without-grad", headline, why, fix, s.needed(), bool(without))


def _numpy(s: Situation, m: re.Match[str]) -> Explanation | None:
    owner = receiver(s.node) if called(s.node) == "numpy" else argument(s.node, 0)
    name = written(owner) or "the tensor"
    value = s.here.value(owner) if s.here is not None else None
    if type(value) in (list, tuple):
        why = f"`{name}` holds tensors with a graph, and NumPy records nothing."
        fix = f"[it.item() for it in {name}]  # numbers; torch.stack({name}) is one tensor of them, with its graph"
        headline = f"`{name}` holds tensors that require a gradient, so it does not turn into an array by itself"
        return card("numpy-of-graph", headline, why, fix, s.needed(), _any_with_grad(value))
    why = f"What is computed from `{name}` is recorded, and NumPy records nothing: PyTorch asks you to say that the "
    why += "graph may end here."
    fix = f"{name}.detach().cpu().numpy()" if owner is not None else "tensor.detach().cpu().numpy()"
    return card(
        "numpy-of-graph",
        f"`{name}` requires a gradient, so it does not turn into an array by itself",
        why,
        fix,
        s.needed(),
    )


def _any_with_grad(value: object) -> bool:
    return isinstance(value, list | tuple) and any(is_a(it, torch.Tensor) and it.requires_grad for it in value)


def _inference(s: Situation, m: re.Match[str]) -> Explanation | None:
    name = ""
    if s.here is not None:
        found = [own for own, tensor in tensors(s.here) if tensor.is_inference()]
        mentioned = [own for own in found if own in written(s.here.statement, 500)]
        name = (mentioned or found or [""])[0]
    shown = f"`{name}`" if name else "a tensor"
    own = name or "x"
    why = f"{shown} was made under torch.inference_mode(), which leaves out what autograd needs, for good."
    local = s.here is None or s.here.is_module or "." in own or own in s.here.frame.f_code.co_varnames
    fix = f"{own} = {own}.clone()" if local else f"{own}.clone()"
    fix += "  # a normal tensor; or make it under torch.no_grad() instead"
    headline = f"{shown} comes from inference_mode and cannot be saved for a backward pass"
    if "requires_grad" in s.text.partition("inference")[0]:
        headline = f"{shown} comes from inference_mode and cannot require a gradient outside of it"
    if "nplace" in s.text:
        headline = f"{shown} comes from inference_mode and cannot be written into outside of it"
    return card("inference-tensor", headline, why, fix, [*_made_in_inference(s, name), *s.needed()], bool(name))


def _made_in_inference(s: Situation, name: str) -> list[Place]:
    """Return the block or decorator under which a name got its value, if the learner's lines show it."""
    for call in reversed(s.calls):
        for it in reversed(assigned(call, name)) if name and call.source is not None else ():
            off = switched_off(call.source, it) if call.source is not None else None
            if off is not None and off[0] == "no-graph-inference":
                return [call.place("made here", off[2])]
            for node in ast.walk(it):
                function = call.value(node.func) if isinstance(node, ast.Call) else None
                if is_a(function, types.FunctionType) and switched_off_by(function) == "no-graph-inference":
                    code = inspect.unwrap(function).__code__
                    source = call.sources.of(code.co_filename)
                    text = source.text(code.co_firstlineno) if source is not None else ""
                    return [Place("made here", code.co_filename, code.co_firstlineno, text)]
    return []


def _deep(s: Situation, m: re.Match[str]) -> Explanation | None:
    walkers = [
        call
        for call in s.calls
        if call.source is not None
        and "next_functions" in "".join(call.source.lines[max(0, call.frame.f_code.co_firstlineno - 1) : call.line + 3])
    ]
    if len(walkers) < 50:
        return None
    why = (
        "Your function calls itself once for each step down the graph, and this graph is deeper than Python's "
        "call stack."
    )
    fix = (
        "waiting = [get_gradient_edge(y).node]; seen = set()  # nodes to visit, instead of calls within calls\nwhile "
        "waiting: ..."
    )
    return card("graph-too-deep", "the graph is too deep to be walked by recursion", why, fix, s.needed(), False)


RULES = (
    Rule(RuntimeError, r"differentiated Tensors?(?: at index (\d+))? appears? to not have been used", _not_used),
    Rule(RuntimeError, r"One of the differentiated Tensors does not require grad", _input_without_grad),
    Rule(RuntimeError, r"Can't call numpy\(\) on Tensor that requires grad", _numpy),
    Rule(RuntimeError, r"[Ii]nference tensor", _inference),
    Rule(RecursionError, r"maximum recursion depth", _deep),
)
