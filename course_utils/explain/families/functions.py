"""Where a pass starts, hooks, gradients put in place by hand, and Functions of one's own."""

from __future__ import annotations

import ast
import re
from typing import Any

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.families.no_graph import started_from
from course_utils.explain.naming import argument, receiver
from course_utils.explain.nodes import behind, operation_named
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation, is_learners
from course_utils.explain.source import written


def _scalar(s: Situation, m: re.Match[str]) -> Explanation | None:
    name = written(started_from(s)) or "the output"
    shapes = {tuple(root.shape) for root in s.roots if root.numel() != 1}
    shape = f" of shape {next(iter(shapes))}" if len(shapes) == 1 else ""
    why = (
        f"backward() starts from one number. `{name}` holds several{shape and ','}{shape}, and each would have "
        f"a gradient of its own."
    )
    fix = (
        f"{name}.mean().backward()  # or .sum(): one number\n{name}.backward(torch.ones_like({name}))  # the "
        f"same as for the sum"
    )
    if any(keyword.arg == "reduction" for node in _statements_of(s, name) for keyword in _keywords(node)):
        why += " It was computed with reduction='none'."
    headline = f"`{name}`{shape} is not one number, and backward() was given no gradient to start from"
    return card("seed-missing", headline, why, fix, s.needed())


def _statements_of(s: Situation, name: str) -> list[ast.stmt]:
    from course_utils.explain.naming import assigned

    return assigned(s.started, name) if s.started is not None else []


def _keywords(node: ast.AST) -> list[ast.keyword]:
    return [it for part in ast.walk(node) if isinstance(part, ast.Call) for it in part.keywords]


def _seed_shape(s: Situation, m: re.Match[str]) -> Explanation | None:
    seed, output = _shape(m[1]), _shape(m[2])
    name = written(started_from(s)) or "the output"
    why = (
        f"The gradient to start from says how much each element of `{name}` counts, so it has one number for "
        f"each of them."
    )
    fix = f"{name}.backward(torch.ones_like({name}))"
    return card("seed-shape", f"the gradient has shape {seed}, `{name}` has shape {output}", why, fix, s.needed())


def _shape(text: str) -> str:
    numbers = re.findall(r"-?\d+", text)
    return f"({', '.join(numbers)}{',' if len(numbers) == 1 else ''})"


def _seed_type(s: Situation, m: re.Match[str]) -> Explanation | None:
    name = written(started_from(s)) or "y"
    given = written(argument(s.node, 0)) or "1.0"
    why = f"The first argument of backward() is a tensor with the shape of `{name}`; it was given a {m[1]}."
    fix = f"{name}.backward(torch.full_like({name}, {given}))  # or nothing, if {name} is one number"
    return card("seed-type", f"backward() was given a {m[1]} to start from, not a tensor", why, fix, s.needed())


def _function_named(s: Situation, name: str) -> tuple[str, tuple[Place, ...]]:
    """Return a learner's Function and the line of its backward, from the name of its node."""
    own = name.removesuffix("Backward")
    for node in behind(s.roots):
        kind: Any = type(node)
        if kind.__name__ == name and isinstance(node, torch.autograd.function.FunctionCtx):
            function = getattr(kind, "_forward_cls", None)
            code = getattr(getattr(function, "backward", None), "__code__", None)
            if code is not None and is_learners(code.co_filename):
                source = s.sources.of(code.co_filename)
                scope = source.function(code) if source is not None else None
                line = getattr(scope, "lineno", code.co_firstlineno)
                return own, (Place("defined here", code.co_filename, line, source.text(line) if source else ""),)
    return own, ()


def _count(s: Situation, m: re.Match[str]) -> Explanation | None:
    own, where = _function_named(s, m[1])
    why = (
        f"forward of `{own}` takes {m[2]} inputs, so its backward owes {m[2]} values, one for each; it returned {m[3]}."
    )
    fix = (
        f"return {', '.join(['grad_a', 'grad_b', 'grad_c', 'grad_d'][: min(int(m[2]), 4)])}  # None for an "
        f"input that needs no gradient"
    )
    return card(
        "gradient-count",
        f"backward of `{own}` returned {m[3]} gradients for {m[2]} inputs",
        why,
        fix,
        [*where, *_start(s)],
    )


def _start(s: Situation) -> tuple[Place, ...]:
    return (s.started.place("needed here"),) if s.started is not None else ()


def _gradient_shape(s: Situation, m: re.Match[str]) -> Explanation | None:
    own, where = _function_named(s, m[1])
    got, expected = _shape(m[3]), _shape(m[4])
    why = f"A gradient has the shape of what it is the gradient of. Input {m[2]} of `{own}` has shape {expected}."
    fix = "return grad.expand_as(x)  # where forward summed\nreturn grad.sum_to_size(x.shape)  # where it broadcast"
    function = f"`{own}`" if where else f"`{operation_named(m[1])}`"
    return card(
        "gradient-shape",
        f"backward of {function} returned shape {got} for input {m[2]} of shape {expected}",
        why,
        fix,
        [*where, *_start(s)],
        bool(where),
    )


def _gradient_type(s: Situation, m: re.Match[str]) -> Explanation | None:
    own, where = "", ()
    for node in behind(s.roots):
        if isinstance(node, torch.autograd.function.FunctionCtx) and not where:
            own, where = _function_named(s, type(node).__name__)  # type: ignore[assignment]
    name = f"`{own}`" if own else "a Function"
    why = (
        f"backward returns tensors, one for each input, or None where an input needs no gradient. It returned a {m[1]}."
    )
    fix = f"return grad * {2.0 if m[1] == 'float' else '...'}  # a tensor with the shape of the input"
    return card(
        "gradient-type",
        f"backward of {name} returned a {m[1]} instead of a tensor",
        why,
        fix,
        [*where, *_start(s)],
        bool(where),
    )


def _legacy(s: Situation, m: re.Match[str]) -> Explanation | None:
    own = re.sub(r"^<class '(?:.*\.)?(\w+)'>.*", r"\1", s.text, flags=re.DOTALL) if "<class" in s.text else ""
    if not own and isinstance(s.node, ast.Call):
        function = s.node.func.func if isinstance(s.node.func, ast.Call) else s.node.func
        own = written(function).removesuffix(".apply")
    own = own or "MyFunction"
    if (s.here is not None and "instantiated" in s.text) or "instantiated" in s.text:
        why = (
            f"A Function is not an object to make: its methods are static, and `{own}.apply` runs them and "
            f"records a node."
        )
        fix = f"y = {own}.apply(x)  # not {own}(x)"
        return card("function-called", f"`{own}` was called instead of `{own}.apply`", why, fix, s.needed())
    why = (
        f"forward and backward of `{own}` must be static and take `ctx`, on which they keep what they need, not `self`."
    )
    fix = f"@staticmethod\ndef forward(ctx, x): ...  # backward(ctx, grad) likewise\ny = {own}.apply(x)"
    return card("legacy-function", f"`{own}` is written in the old style, without @staticmethod", why, fix, s.needed())


def _no_backward(s: Situation, m: re.Match[str]) -> Explanation | None:
    own = ""
    for node in behind(s.roots):
        kind: Any = type(node)
        function = getattr(kind, "_forward_cls", None)
        if function is not None and getattr(function, "backward", None) is torch.autograd.Function.backward:
            own = function.__name__
    name = f"`{own}`" if own else "a Function"
    why = (
        f"{name} has a forward but no static method named backward (or it is misspelt), so a pass cannot go through it."
    )
    fix = f"class {own or 'MyFunction'}(torch.autograd.Function):\n    @staticmethod\n    def backward(ctx, grad): ..."
    return card("function-without-backward", f"{name} has no backward", why, fix, _start(s), bool(own))


def _save(s: Situation, m: re.Match[str]) -> Explanation | None:
    position, kind = int(m[1]), m[2]
    argument_text = written(argument(s.node, position)) or "it"
    why = f"save_for_backward keeps tensors. `{argument_text}` is a {kind}, which may stand on ctx itself."
    fix = f"ctx.factor = {argument_text}  # a plain value\nctx.save_for_backward(...)  # the tensors only"
    return card("save-for-backward", f"save_for_backward was given a {kind}", why, fix, s.needed())


def _setup_context(s: Situation, m: re.Match[str]) -> Explanation | None:
    cls = s.given("autograd/function.py", "apply", "cls")
    own = cls.__name__ if isinstance(cls, type) else "MyFunction"
    why = (
        "torch.func runs forward without ctx, so a Function that it is to transform keeps forward and "
        "setup_context apart."
    )
    fix = (
        "@staticmethod\ndef forward(x): ...  # without ctx\n@staticmethod\ndef setup_context(ctx, inputs, "
        "output): ctx.save_for_backward(...)"
    )
    return card(
        "setup-context", f"`{own}` has forward(ctx, ...), which torch.func cannot transform", why, fix, s.needed()
    )


def _once(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = (
        "Its backward is marked @once_differentiable, so that nothing is recorded of it, and a second "
        "derivative needs that."
    )
    fix = "remove @once_differentiable, and write backward with torch functions of tensors"
    return card(
        "once-differentiable", "a Function made for one derivative was differentiated twice", why, fix, _start(s)
    )


def _assigned_grad(s: Situation, m: re.Match[str]) -> Explanation | None:
    statement = s.line_tree
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    owner = written(target.value) if isinstance(target, ast.Attribute) else "w"
    given = written(statement.value) if isinstance(statement, ast.Assign) else "g"
    sizes = re.search(r"gradient of size '(\[.*?\])' to a tensor of size '(\[.*?\])'", s.text)
    dtypes = re.search(r"dtype '(\w+)' to a tensor with grad_dtype '(\w+)'", s.text)
    kind = re.search(r"but got grad of type (\w+)", s.text)
    if sizes:
        what = f"`{owner}.grad` was given shape {_shape(sizes[1])}, but `{owner}` has shape {_shape(sizes[2])}"
        fix = f"{owner}.grad = {given}.expand_as({owner}).clone()  # or check which tensor this gradient belongs to"
    elif dtypes:
        names = {"double": "float64", "float": "float32", "half": "float16", "long": "int64"}
        got, own = (names.get(it.lower(), it.lower()) for it in (dtypes[1], dtypes[2]))
        what = f"`{owner}.grad` was given {got}, but `{owner}` is {own}"
        fix = (
            f"{owner}.grad = {given or 'g'}.to({owner}.dtype)"
            if len(given) < 20
            else f"{owner}.grad = g.to({owner}.dtype)"
        )
    elif kind:
        what = f"`{owner}.grad` was given a {kind[1]}, not a tensor"
        fix = f"{owner}.grad = torch.full_like({owner}, {given})  # or None, for no gradient"
    else:
        return None
    why = "A gradient has the shape, the dtype and the device of the tensor that it belongs to."
    return card("grad-assigned", what, why, fix, s.needed())


def _hook_without_graph(s: Situation, m: re.Match[str]) -> Explanation | None:
    name = written(receiver(s.node)) or "the tensor"
    why = (
        f"A hook runs when a gradient arrives. None will ever arrive at `{name}`: it requires none and no "
        f"recorded operation made it."
    )
    fix = f"{name}.requires_grad_()  # before it is used; or put the hook on what a layer returns"
    return card(
        "hook-without-graph", f"`{name}` gets no gradient, so a hook on it would never run", why, fix, s.needed()
    )


def _retain_grad(s: Situation, m: re.Match[str]) -> Explanation | None:
    name = written(receiver(s.node)) or "the tensor"
    why = f"retain_grad() keeps a gradient that passes through. None passes through `{name}`, which requires none."
    fix = f"{name}.requires_grad_()  # a leaf keeps its gradient anyway"
    return card(
        "retain-grad-refused", f"`{name}` requires no gradient, so there is none to retain", why, fix, s.needed()
    )


def _hook_result(s: Situation, m: re.Match[str]) -> Explanation | None:
    if m[0].startswith("expected Variable"):
        kind = m[1]
        why = (
            "What a hook returns replaces the gradient, so it must be a tensor like it; None leaves the "
            "gradient as it is."
        )
        fix = "return grad * 2.0  # a new gradient\nreturn None  # or leave it as it is"
        return card("hook-result", f"a hook returned a {kind} instead of a gradient", why, fix, _start(s))
    roots = {tuple(node._input_metadata[0].shape) for node in behind(s.roots) if getattr(node, "_input_metadata", ())}
    shape = f" such as {max(roots, key=len)}" if roots else ""
    why = (
        f"What a hook returns replaces the gradient, and a gradient has the shape of its tensor{shape}. The "
        f"hook `{m[1]}` changed it."
    )
    fix = (
        "return grad * grad.sum()  # for example: a tensor of the same shape\nprint(grad.norm())  # to look "
        "only: return nothing"
    )
    return card("hook-result", f"the hook `{m[1]}` returned a gradient of another shape", why, fix, _start(s))


def _post_accumulate(s: Situation, m: re.Match[str]) -> Explanation | None:
    name = written(receiver(s.node)) or "the tensor"
    why = (
        f"This hook runs after a gradient was added to `.grad`, which happens at leaves. `{name}` was "
        f"computed, so it is none."
    )
    fix = f"{name}.register_hook(lambda grad: ...)  # when the gradient passes through {name}"
    return card("hook-on-leaves-only", f"`{name}` is not a leaf, and this hook is for leaves", why, fix, s.needed())


RULES = (
    Rule(RuntimeError, r"grad can be implicitly created only for scalar outputs", _scalar),
    Rule(
        RuntimeError,
        r"Mismatch in shape: grad_output\[\d+\] has a shape of (.*?) and output\[\d+\] has a shape of (torch\.Size\(\[.*?\]\))",
        _seed_shape,
    ),
    Rule(TypeError, r"^'(\w+)' object is not iterable", _seed_type, "autograd/__init__.py"),
    Rule(TypeError, r"gradients can be either Tensors or None, but got (\w+)", _seed_type),
    Rule(
        RuntimeError, r"function (\w+) returned an incorrect number of gradients \(expected (\d+), got (\d+)\)", _count
    ),
    Rule(
        RuntimeError,
        r"Function (\w+) returned an invalid gradient at index (\d+) - got (\[.*?\]) but expected shape compatible with (\[.*?\])",
        _gradient_shape,
    ),
    Rule(RuntimeError, r"expected Variable or None \(got (\w+)\)", _gradient_type),
    Rule(RuntimeError, r"Legacy autograd function with non-static forward", _legacy),
    Rule(Warning, r"should not be instantiated\. Methods on autograd functions are all static", _legacy),
    Rule(NotImplementedError, r"You must implement either the backward or vjp method", _no_backward),
    Rule(TypeError, r"save_for_backward can only save variables, but argument (\d+) is of type (\w+)", _save),
    Rule(RuntimeError, r"it must override the setup_context staticmethod", _setup_context),
    Rule(RuntimeError, r"marked with @once_differentiable", _once),
    Rule(RuntimeError, r"attempting to assign a gradient", _assigned_grad),
    Rule(TypeError, r"assigned grad expected to be a Tensor or None", _assigned_grad),
    Rule(RuntimeError, r"cannot register a hook on a tensor that doesn't require gradient", _hook_without_graph),
    Rule(RuntimeError, r"can't retain_grad on Tensor that has requires_grad=False", _retain_grad),
    Rule(RuntimeError, r"hook '(.*?)' has changed the size of value", _hook_result),
    Rule(TypeError, r"expected Variable, but hook returned '(\w+)'", _hook_result),
    Rule(RuntimeError, r"post accumulate grad hooks cannot be registered on non-leaf", _post_accumulate),
)
