"""Tensors without a graph, where one was needed."""

from __future__ import annotations

import ast
import re

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.flow import Flow, Found
from course_utils.explain.naming import argument, name_of, receiver
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, written

_WHY = {
    "no-graph-detach": "{what} gives the values without their graph, so nothing after it leads back to the parameters.",
    "no-graph-item": "{what} gives a plain Python number. What is computed from it has no graph.",
    "no-graph-numpy": "NumPy records nothing. What passes through {what} comes back without a graph.",
    "no-graph-argmax": "{what} picks or compares: its result jumps and has no derivative, so PyTorch records no graph.",
    "no-graph-integers": "{what} makes integers, which cannot change by a little and so have no gradient.",
    "no-graph-new-tensor": "{what} copies numbers into a new tensor. The graph of what they were stays behind.",
    "no-graph-no-grad": "It was computed under {what}, where PyTorch records no graph.",
    "no-graph-inference": "It was computed under {what}, where PyTorch records no graph, and never can later.",
}
_FIX = {
    "no-graph-detach": "leave out {cut}, and use the tensor itself in the loss",
    "no-graph-item": "keep tensors in the loss: drop .item(), float() and .tolist(); use them for printing only",
    "no-graph-numpy": "write this with torch functions: torch.square for np.square, and so on",
    "no-graph-argmax": "F.cross_entropy(logits, labels)  # a smooth loss of the logits; argmax is for the accuracy",
    "no-graph-integers": "leave out the conversion: a loss needs floating point predictions",
    "no-graph-new-tensor": "torch.stack(losses).mean()  # joins tensors and keeps their graphs; one tensor needs "
    "neither",
    "no-graph-no-grad": "move the forward pass and the loss out of {what}",
    "no-graph-inference": "move the forward pass and the loss out of {what}",
}


def _no_graph(s: Situation, m: re.Match[str]) -> Explanation | None:
    node = started_from(s)
    shown = written(node) or "the tensor"
    if s.roots and all(root.grad_fn is not None or root.requires_grad for root in s.roots):
        return _once_differentiable(s)
    if node is None:
        return _unknown(s, "the tensor that backward() started from")
    found = Flow(s).cut(node)
    name = f"`{shown}`"
    if found.state == "cut" and found.code == "no-graph-second-order":
        return _second_order(s, name, found)
    if found.state == "cut":
        what = f"`{found.what}`"
        why = _WHY[found.code].format(what=what)
        fix = _FIX[found.code].format(what=found.what.removeprefix("with "), cut=_last(found.what))
        where = (*([found.where] if found.where else []), *s.needed())
        headline = f"{name} has no graph: it was cut at {what}"
        return card(found.code, headline, why, fix, where, found.proved)
    if not torch.is_grad_enabled():
        why = "Gradients are switched off for the whole session (torch.set_grad_enabled(False)): no graph is recorded."
        headline = f"{name} has no graph: gradients are switched off"
        return card("no-graph-no-grad", headline, why, "torch.set_grad_enabled(True)", s.needed())
    if found.state == "bare" and found.frozen:
        model = found.frozen[0]
        why = f"No parameter of `{model}` requires a gradient, and no input does, so there is nothing to record."
        fix = f"{model}.requires_grad_(True)  # or only the part that is to learn"
        return card("no-graph-frozen", f"{name} has no graph: all of `{model}` is frozen", why, fix, s.needed())
    if found.state == "bare" and found.inputs:
        names = ", ".join(f"`{it}`" for it in found.inputs[:3])
        why = f"It was computed from {names} alone, and none of them requires a gradient: PyTorch records nothing."
        fix = f"{found.inputs[0]}.requires_grad_()  # before it is used"
        return card(
            "no-graph-inputs", f"{name} has no graph: nothing in it requires a gradient", why, fix, s.needed(), False
        )
    return _unknown(s, name)


def _unknown(s: Situation, name: str) -> Explanation:
    why = (
        "No parameter that requires a gradient is behind it. Most often the graph was cut by detach(), .item(), NumPy, "
        "torch.tensor(...), argmax or no_grad; or all parameters are frozen."
    )
    fix = (
        "print(loss.requires_grad)  # ask this of each tensor from the model's output to the loss: the first "
        "False is it"
    )
    return card("no-graph", f"{name} has no graph to go back through", why, fix, s.needed(), False)


def _once_differentiable(s: Situation) -> Explanation | None:
    """The roots have a graph, so the error comes from inside the pass: from a node that ends one."""
    for node in _nodes(s):
        if "DelayedError" in type(node).__name__:
            why = "A custom Function whose backward is marked @once_differentiable was differentiated twice."
            fix = "remove @once_differentiable, and write backward with torch functions of tensors"
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
            "# of a linear function the second derivative is 0: leave it out\n# remove @once_differentiable "
            "from the Function"
        )
        headline = f"{name} is a gradient that depends on nothing, and has no derivative"
        return card("no-graph-second-order", headline, why, fix, where, False)
    else:
        why = "autograd.grad gives plain numbers unless it is asked to record how it computed them."
        fix = f"{found.what[:-1]}, create_graph=True)" if found.what.endswith(")") else "create_graph=True"
    where = (*([Place("computed here", *_rest(found.where))] if found.where else []), *s.needed())
    headline = f"{name} is a gradient without a graph, and cannot be differentiated again"
    return card("no-graph-second-order", headline, why, fix, where, True)


def _rest(place: Place) -> tuple[str, int, str]:
    return place.file, place.line, place.text


def _last(what: str) -> str:
    """Return ".detach()" of "model(x).detach()"."""
    return what[what.rfind(".") :] if "." in what else what


def started_from(s: Situation) -> ast.expr | None:
    """Return the expression that the failing line called backward on, or asked the gradient of."""
    node = s.started.node if s.started is not None else None
    name = called(node) if node is not None else ""
    if name not in ("backward", "grad"):
        return None
    inner = argument(node, 0, "outputs" if name == "grad" else "tensors")
    owner = receiver(node)
    if name == "grad" or (s.here is not None and _is_module(s, owner) and inner is not None):
        if isinstance(inner, ast.List | ast.Tuple) and inner.elts:
            inner = inner.elts[0]
        return inner
    if called(owner) == "scale":  # scaler.scale(loss).backward()
        return argument(owner, 0) or owner
    if s.here is not None and not isinstance(s.here.value(owner), torch.Tensor) and inner is not None:
        return inner  # accelerator.backward(loss)
    return owner


def _is_module(s: Situation, node: ast.expr | None) -> bool:
    import types

    return s.here is not None and isinstance(s.here.value(node), types.ModuleType)


def _not_a_tensor(s: Situation, m: re.Match[str]) -> Explanation | None:
    kind, node = m[1], s.node
    owner = receiver(node) if node is not None else None
    name = written(owner) or "it"
    value = getattr(s.error, "obj", None)
    needed = s.needed()
    if isinstance(value, torch.nn.Module):
        why = f"`{name}` is the module {kind}, not a loss: a module must be called with predictions and targets."
        fix = f"loss = {name}(pred, target)\nloss.backward()"
        return card("not-a-tensor", f"`{name}` is the loss module {kind} itself, not a loss", why, fix, needed)
    if kind in ("float", "int"):
        found = Flow(s).cut(owner) if owner is not None else Found("unknown")
        cut = found.where if found.state == "cut" else None
        why = f"`{name}` is a plain Python number: " + (
            f"`{found.what}` took it out of its tensor." if cut else "it has no graph and no backward()."
        )
        fix = "loss = criterion(pred, target)  # a tensor\nloss.backward()\nprint(loss.item())  # a number, for the log"
        return card(
            "not-a-tensor", f"`{name}` is a {kind}, not a tensor", why, fix, (*([cut] if cut else ()), *needed), True
        )
    if kind == "NoneType":
        function = _gave(s, owner)
        why = f"`{name}` is None" + (
            f": `{function}` returned nothing." if function else ", where a loss was expected."
        )
        fix = f"end {function} with `return loss`" if function else f"print({name})  # find out who left it None"
        return card("not-a-tensor", f"`{name}` is None, not a loss", why, fix, needed, bool(function))
    if kind in ("list", "tuple", "dict", "ndarray") or (value is not None and type(value).__name__.endswith("Output")):
        fixes = {
            "ndarray": "compute the loss with torch functions; NumPy records no graph",
            "dict": f"{name}['loss'].backward()  # or the sum of its values",
        }
        why = f"backward() belongs to a tensor; `{name}` is a {kind}."
        fix = fixes.get(kind, f"sum({name}).backward()  # or only the part that is the loss, as in {name}[0]")
        if kind.endswith("Output"):
            fix = f"{name}.loss.backward()  # give the model labels, or it computes no loss"
        return card("not-a-tensor", f"`{name}` is a {kind}, not a tensor", why, fix, needed)
    return None


def _gave(s: Situation, owner: ast.expr | None) -> str:
    """Return the learner's function that gave a name its value, where that function has no return with a value."""
    from course_utils.explain.naming import assigned
    from course_utils.explain.source import FUNCTIONS, walk

    if s.here is None or owner is None:
        return ""
    call: ast.AST | None = owner
    if not isinstance(owner, ast.Call):
        bindings = [it for it in assigned(s.here, written(owner)) if it.lineno < s.here.line]
        call = getattr(bindings[-1], "value", None) if bindings else None
    if not isinstance(call, ast.Call):
        return ""
    function = s.here.value(call.func)
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    source = s.sources.of(code.co_filename) if code is not None else None
    scope = source.function(code) if source is not None and code is not None else None
    if not isinstance(scope, FUNCTIONS):
        return ""
    returns = [it for it in walk(scope) if isinstance(it, ast.Return) and it.value is not None]
    return "" if returns else scope.name


def _needs_floats(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = "A gradient says what a small change does. Integers and booleans cannot change by a little."
    owner = written(receiver(s.node)) if called(s.node) != "tensor" else ""
    name = (
        f"`{owner}` holds integers" if owner and owner != "torch" else "a tensor of integers was to require a gradient"
    )
    if owner and owner != "torch":
        fix = f"{owner} = {owner}.float().requires_grad_()"
        headline = f"{name} (or booleans), which cannot require a gradient"
    else:
        fix = "torch.tensor([1.0, 2.0], requires_grad=True)  # with a decimal point, or dtype=torch.float32"
        headline = f"{name}; only floating point numbers can"
        why += " PyTorch took integers from numbers without a decimal point."
    return card("grad-needs-floats", headline, why, fix, s.needed())


def _not_used(s: Situation, m: re.Match[str]) -> Explanation | None:
    inputs, names = _asked_for(s)
    index = int(m[1]) if m[1] else 0
    which = names[index] if index < len(names) else f"input {index}"
    output = written(started_from(s)) or "the output"
    code, why = "not-in-graph", f"`{output}` does not depend on {which}: changing {which} would not change it."
    from course_utils.explain.nodes import behind

    tensor = inputs[index] if index < len(inputs) else None
    if any("Backward" in type(n).__name__ for n in behind(s.roots)) and _is_gradient(s):
        code = "not-in-graph-second-order"
        why = f"`{output}` is a gradient, and {which} is not in its formula: the function is linear in {which}."
        why += " Its second derivative is 0."
    fix = "torch.autograd.grad(..., allow_unused=True)  # gives None there; materialize_grads=True gives zeros"
    proved = tensor is not None
    if tensor is not None and tensor.is_leaf is False and code == "not-in-graph":
        why += " It may be a copy made after the output was computed."
    return card(code, f"{which} is not in the graph of `{output}`", why, fix, s.needed(), proved)


def _is_gradient(s: Situation) -> bool:
    """Return whether what was differentiated came from autograd.grad itself."""
    from course_utils.explain.naming import assigned
    from course_utils.explain.source import walk

    node = started_from(s)
    names = [it.id for it in ast.walk(node) if isinstance(it, ast.Name)] if node is not None else []
    if s.here is None:
        return False
    for name in names:
        for statement in assigned(s.here, name):
            if any(called(it) == "grad" for it in ast.walk(statement)):
                return True
    return any(called(it) == "grad" for it in walk(node)) if node is not None else False


def _asked_for(s: Situation) -> tuple[list[torch.Tensor], list[str]]:
    """Return the inputs that autograd.grad was asked about, and what the learner calls them."""
    given = s.given("autograd/__init__.py", "grad", "inputs")
    given = [given] if isinstance(given, torch.Tensor) else list(given) if isinstance(given, list | tuple) else []
    tensors = [it for it in given if isinstance(it, torch.Tensor)]
    return tensors, [name_of(s, it, f"input {at}") for at, it in enumerate(tensors)]


def _input_without_grad(s: Situation, m: re.Match[str]) -> Explanation | None:
    tensors, names = _asked_for(s)
    without = [name for tensor, name in zip(tensors, names, strict=True) if not tensor.requires_grad]
    which = ", ".join(without) or "an input"
    own = without[0].strip("`") if without and "`" in without[0] else "x"
    why = "A gradient with respect to a tensor needs its uses recorded, which PyTorch does only where it requires one."
    fix = f"{own}.requires_grad_()  # before it is used"
    return card("input-without-grad", f"{which} does not require a gradient", why, fix, s.needed(), bool(without))


def _numpy(s: Situation, m: re.Match[str]) -> Explanation | None:
    owner = receiver(s.node) if called(s.node) == "numpy" else argument(s.node, 0)
    name = written(owner) or "the tensor"
    why = f"`{name}` is in a graph, and NumPy records nothing: PyTorch asks you to say that the graph may end here."
    fix = f"{name}.detach().cpu().numpy()" if owner is not None else "tensor.detach().cpu().numpy()"
    return card(
        "numpy-of-graph",
        f"`{name}` requires a gradient, so it does not turn into an array by itself",
        why,
        fix,
        s.needed(),
    )


def _inference(s: Situation, m: re.Match[str]) -> Explanation | None:
    name = ""
    if s.here is not None:
        from course_utils.explain.naming import tensors

        found = [own for own, tensor in tensors(s.here) if tensor.is_inference()]
        mentioned = [own for own in found if own in written(s.here.statement, 500)]
        name = (mentioned or found or [""])[0]
    shown = f"`{name}`" if name else "a tensor"
    own = name or "x"
    why = f"{shown} was made under torch.inference_mode(), which leaves out what autograd needs, for good."
    fix = f"{own} = {own}.clone()  # a normal tensor; or make it under torch.no_grad() instead"
    headline = f"{shown} comes from inference_mode and cannot take part in a graph"
    return card("inference-tensor", headline, why, fix, s.needed(), bool(name))


def _grad_is_none(s: Situation, m: re.Match[str]) -> Explanation | None:
    if s.here is None or s.here.statement is None:
        return None
    nodes = [s.node] if s.node is not None else []
    grads = [it for top in nodes for it in ast.walk(top) if isinstance(it, ast.Attribute) and it.attr == "grad"]
    empty = [it for it in grads if s.here.value(it) is None]
    if empty:
        grad, owner = written(empty[0]), written(empty[0].value)
        why = (
            f"`{owner}` has received no gradient: backward() did not run yet, zero_grad() emptied it, or the "
            f"loss does not depend on it."
        )
        fix = f"loss.backward()  # first\nif {grad} is not None:  # for what the loss does not use"
        return card("grad-is-none", f"`{grad}` is None", why, fix, s.needed(), True)
    return _none_of_grad(s)


def _none_of_grad(s: Situation) -> Explanation | None:
    """None among what autograd.grad(..., allow_unused=True) gave."""
    from course_utils.explain.naming import assigned

    assert s.here is not None
    names = [it.id for it in ast.walk(s.node) if isinstance(it, ast.Name)] if s.node is not None else []
    for name in names:
        if s.here.look_up(name) is not None:
            continue
        for statement in assigned(s.here, name):
            if "allow_unused=True" in written(statement, 400):
                why = (
                    f"`{name}` is None: the output does not depend on that input, and allow_unused=True says "
                    f"so with None."
                )
                fix = "torch.autograd.grad(..., allow_unused=True, materialize_grads=True)  # zeros instead of None"
                return card(
                    "not-in-graph",
                    f"`{name}` is None, because its input is not in the graph",
                    why,
                    fix,
                    (s.here.place("asked for here", statement), *s.needed()),
                    False,
                )
            if any(isinstance(it, ast.Attribute) and it.attr == "grad" for it in ast.walk(statement)):
                why = f"`{name}` was read from `.grad` before anything put a gradient there."
                return card(
                    "grad-is-none",
                    f"`{name}` is None",
                    why,
                    "loss.backward()  # before .grad is read",
                    (s.here.place("read here", statement), *s.needed()),
                    False,
                )
    return None


def _flag_of_non_leaf(s: Situation, m: re.Match[str]) -> Explanation | None:
    statement = s.line_tree
    owner = ""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute):
        owner = written(statement.targets[0].value)
    name = f"`{owner}`" if owner else "a computed tensor"
    why = f"{name} is the result of recorded operations, so whether it requires a gradient follows from its inputs."
    fix = f"{owner or 'y'} = {owner or 'y'}.detach()  # the same values, without the graph"
    return card("flag-of-non-leaf", f"requires_grad of {name} cannot be set: it is not a leaf", why, fix, s.needed())


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
        "waiting = [y.grad_fn]; seen = set()  # a list of nodes to visit instead of calls within calls\nwhile "
        "waiting: ..."
    )
    return card("graph-too-deep", "the graph is too deep to be walked by recursion", why, fix, s.needed(), False)


RULES = (
    Rule(RuntimeError, r"element \d+ of tensors does not require grad", _no_graph),
    Rule(AttributeError, r"^'(\w+)' object has no attribute 'backward'", _not_a_tensor),
    Rule(
        RuntimeError, r"[Oo]nly Tensors of floating point (?:and complex )?dtype can require gradients", _needs_floats
    ),
    Rule(RuntimeError, r"differentiated Tensors?(?: at index (\d+))? appears? to not have been used", _not_used),
    Rule(RuntimeError, r"One of the differentiated Tensors does not require grad", _input_without_grad),
    Rule(RuntimeError, r"Can't call numpy\(\) on Tensor that requires grad", _numpy),
    Rule(RuntimeError, r"[Ii]nference tensor", _inference),
    Rule(AttributeError, r"^'NoneType' object has no attribute", _grad_is_none),
    Rule(TypeError, r"'NoneType'", _grad_is_none),
    Rule(RuntimeError, r"you can only change requires_grad flags of leaf variables", _flag_of_non_leaf),
    Rule(RecursionError, r"maximum recursion depth", _deep),
)
