"""What was taken for a tensor or a gradient, and is none; and what cannot require a gradient."""

from __future__ import annotations

import ast
import re
import types

import torch

from course_utils.explain.explanation import Explanation
from course_utils.explain.flow import Flow, Found
from course_utils.explain.loops import callee
from course_utils.explain.naming import assigned, bound_before, receiver
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card, with_article
from course_utils.explain.situation import Situation
from course_utils.explain.source import FUNCTIONS, called, operand, walk, written


def _not_a_tensor(s: Situation, m: re.Match[str]) -> Explanation | None:
    kind, node = m[1], s.node
    owner = receiver(node) if node is not None else None
    name = written(owner) or "it"
    value = getattr(s.error, "obj", None)
    needed = s.needed()
    if is_a(value, torch.nn.Module):
        why = f"`{name}` is the module {kind}, not a loss: what it returns is one, and has backward()."
        fix = f"# call backward() on what {name}(...) returned"
        return card("not-a-tensor", f"`{name}` is the loss module {kind} itself, not a loss", why, fix, needed)
    if kind in ("float", "int"):
        found = Flow(s).cut(owner) if owner is not None else Found("unknown")
        cut = found.where if found.state == "cut" else None
        why = f"`{name}` is a plain Python number: " + (
            f"it {'comes' if found.proved else 'seems to come'} from `{found.what}`, without a graph."
            if cut
            else "it has no graph and no backward()."
        )
        fix = "# keep the tensor for backward(); .item() and float() are for the log"
        return card(
            "not-a-tensor",
            f"`{name}` is {with_article(kind)}, not a tensor",
            why,
            fix,
            (*([cut] if cut else ()), *needed),
            True,
        )
    if kind == "NoneType":
        return _none(s, name, owner)
    if kind in ("list", "tuple", "dict", "ndarray") or (value is not None and type(value).__name__.endswith("Output")):
        fixes = {
            "ndarray": "compute the loss with torch functions; NumPy records no graph",
            "dict": f"{name}['loss'].backward()  # or the sum of its values",
        }
        why = f"backward() belongs to a tensor; `{name}` is {with_article(kind)}."
        fix = fixes.get(
            kind,
            f"# call backward() on the one element of {name} that is the loss",
        )
        if kind.endswith("Output"):
            fix = f"{name}.loss.backward()  # give the model labels, or it computes no loss"
        return card("not-a-tensor", f"`{name}` is {with_article(kind)}, not a tensor", why, fix, needed)
    return None


def _none(s: Situation, name: str, owner: ast.expr | None) -> Explanation:
    function = without_return(s, owner)
    if function:
        why = f"`{name}` is None: `{function}` has no return with a value."
        fix = f"# at the end of {function}: return what it computed"
        return card("not-a-tensor", f"`{name}` is None, not a loss", why, fix, s.needed())
    bindings = assigned(s.here, name) if s.here is not None else []
    given = [owner, *(getattr(it, "value", None) for it in bindings)]
    output = next((it for it in given if isinstance(it, ast.Attribute) and it.attr == "loss"), None)
    if output is not None:
        why = f"`{written(output)}` is None: models of this kind compute a loss only where they are given the labels."
        fix = "outputs = model(**inputs, labels=labels)  # or compute the loss from outputs.logits yourself"
    else:
        why, fix = (
            f"`{name}` is None, where a loss was expected.",
            "# does its function return a result?",
        )
    return card("not-a-tensor", f"`{name}` is None, not a loss", why, fix, s.needed(), False)


def without_return(s: Situation, owner: ast.expr | None) -> str:
    """Return the learner's function that gave a name its value, where that function has no return with a value."""
    if s.here is None or owner is None:
        return ""
    call: ast.AST | None = owner
    if not isinstance(owner, ast.Call):
        bindings = bound_before(s.here, written(owner))
        call = getattr(bindings[-1], "value", None) if bindings else None
    if not isinstance(call, ast.Call):
        return ""
    found = callee(s.here.value, s.here.sources, call)
    scope = found.scope if found is not None else None
    if not isinstance(scope, FUNCTIONS):
        return ""
    returns = [it for it in walk(scope) if isinstance(it, ast.Return) and it.value is not None]
    return "" if returns else scope.name


def _needs_floats(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = "A gradient says what a small change does. Integers and booleans cannot change by a little."
    own = receiver(s.node) if called(s.node) != "tensor" else None
    value = s.here.value(own) if s.here is not None and own is not None else None
    owner = "" if own is None or is_a(value, types.ModuleType) else written(own)
    name = f"`{owner}` holds integers" if owner else "a tensor of integers was to require a gradient"
    if owner:
        fix = (
            f"{owner} = {owner}.float().requires_grad_()"
            if owner.isidentifier()
            else f"{operand(owner)}.float().requires_grad_()"
        )
        headline = f"{name} (or booleans), which cannot require a gradient"
    else:
        fix = "torch.tensor([1.0, 2.0], requires_grad=True)  # with a decimal point, or dtype=torch.float32"
        headline = f"{name}; only floating point numbers can"
        why += " Numbers without a decimal point make a tensor of integers."
    return card("grad-needs-floats", headline, why, fix, s.needed())


def _flag_of_non_leaf(s: Situation, m: re.Match[str]) -> Explanation | None:
    statement = s.line_tree
    owner = ""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
        owner = written(statement.targets[0].value)
    name = f"`{owner}`" if owner else "a computed tensor"
    why = f"{name} is the result of recorded operations, so whether it requires a gradient follows from its inputs."
    fix = f"{owner or 'y'} = {owner or 'y'}.detach()  # the same values, without the graph"
    return card("flag-of-non-leaf", f"requires_grad of {name} cannot be set: it is not a leaf", why, fix, s.needed())


RULES = (
    Rule(AttributeError, r"^'(\w+)' object has no attribute 'backward'", _not_a_tensor),
    Rule(
        RuntimeError, r"[Oo]nly Tensors of floating point (?:and complex )?dtype can require gradients", _needs_floats
    ),
    Rule(RuntimeError, r"you can only change requires_grad flags of leaf variables", _flag_of_non_leaf),
)
