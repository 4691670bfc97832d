"""Where a pass starts, hooks, gradients put in place by hand, and Functions of one's own."""

from __future__ import annotations

import ast
import re
from typing import Any

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.naming import argument
from course_utils.explain.nodes import backward_of, behind, operation_named
from course_utils.explain.ownership import is_learners
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card, shape_in, with_article
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, operand, walk, written


def _function_named(s: Situation, name: str) -> tuple[str, tuple[Place, ...]]:
    """Return a learner's Function and the line of its backward, from the name of its node."""
    own = name.removesuffix("Backward")
    for node in behind(s.roots):
        kind: Any = type(node)
        if kind.__name__ == name and is_a(node, torch.autograd.function.FunctionCtx):
            code = backward_of(node)
            if code is not None and is_learners(code.co_filename):
                source = s.sources.of(code.co_filename)
                scope = source.function(code) if source is not None else None
                line = getattr(scope, "lineno", code.co_firstlineno)
                ends = [it for it in walk(scope) if isinstance(it, ast.Return)] if scope is not None else []
                line, role = (ends[0].lineno, "returned here") if len(ends) == 1 else (line, "defined here")
                return own, (Place(role, code.co_filename, line, source.text(line) if source else ""),)
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
        [*where, *s.at_start()],
    )


def _gradient_shape(s: Situation, m: re.Match[str]) -> Explanation | None:
    own, where = _function_named(s, m[1])
    got, expected = shape_in(m[3]), shape_in(m[4])
    why = f"A gradient has the shape of what it is the gradient of. Input {m[2]} of `{own}` has shape {expected}."
    fix = "return grad.expand_as(x)  # where forward summed\nreturn grad.sum_to_size(x.shape)  # where it broadcast"
    returned = _returned_by_backward(s, m[1], int(m[2]))
    if got == f"({', '.join(reversed(expected.strip('()').split(', ')))})" and returned:
        fix = f"{operand(returned)}.t()  # for input {m[2]}: its shape is the right one, reversed"
    function = f"`{own}`" if where else f"`{operation_named(m[1])}`"
    return card(
        "gradient-shape",
        f"backward of {function} returned shape {got} for input {m[2]} of shape {expected}",
        why,
        fix,
        [*where, *s.at_start()],
        bool(where),
    )


def _returned_by_backward(s: Situation, name: str, position: int) -> str:
    """Return the expression by which the backward of a learner's Function gives one gradient."""
    _, where = _function_named(s, name)
    source = s.sources.of(where[0].file) if where else None
    for it in ast.walk(source.tree) if source is not None else ():
        if isinstance(it, ast.Return) and it.lineno == where[0].line and isinstance(it.value, ast.Tuple):
            return written(it.value.elts[position]) if position < len(it.value.elts) else ""
    return ""


def _gradient_type(s: Situation, m: re.Match[str]) -> Explanation | None:
    kinds = {type(node).__name__ for node in behind(s.roots) if is_a(node, torch.autograd.function.FunctionCtx)}
    own, where = _function_named(s, kinds.pop()) if len(kinds) == 1 else ("", ())
    name = f"`{own}`" if own else "a Function"
    why = "backward returns tensors, one for each input, or None where an input needs no gradient. "
    why += f"It returned {with_article(m[1])}."
    fix = "# return a tensor with the shape of the input: for a factor, the factor times the gradient that arrived"
    return card(
        "gradient-type",
        f"backward of {name} returned {with_article(m[1])} instead of a tensor",
        why,
        fix,
        [*where, *s.at_start()],
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


def _not_static(s: Situation, m: re.Match[str]) -> Explanation | None:
    own, method = m[1], m[2]
    why = f"apply calls {method} with ctx and the inputs only. Written as a method, with self, it lacks one argument."
    cls = s.given("autograd/function.py", "apply", "cls")
    code = getattr(getattr(cls, method, None), "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ("self", "ctx", "x")
    given = ", ".join(names[1:] if names[:1] == ("self",) else names)
    fix = f"@staticmethod\ndef {method}({given}): ...  # without self; the other one likewise"
    return card("function-not-static", f"`{own}.{method}` is a method, and must be static", why, fix, s.needed())


def _instance(s: Situation, m: re.Match[str]) -> Explanation | None:
    """A Function that was called like a layer is an object, and no tensor."""
    for call in s.calls:
        kind = call.look_up(m[1])
        if is_a(kind, type) and issubclass(kind, torch.autograd.Function):
            why = f"`{m[1]}(...)` makes an object of the class. `{m[1]}.apply` runs forward and records a node."
            fix = f"{m[1]}.apply(...)  # in place of {m[1]}(...)"
            return card("function-called", f"`{m[1]}` was called instead of `{m[1]}.apply`", why, fix, s.needed())
    return None


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
    return card("function-without-backward", f"{name} has no backward", why, fix, s.at_start(), bool(own))


def _save(s: Situation, m: re.Match[str]) -> Explanation | None:
    position, kind = int(m[1]), m[2]
    call, where = _in_forward(s, "save_for_backward")
    own = written(argument(call, position)) or "it"
    why = f"save_for_backward keeps tensors. `{own}` is {with_article(kind)}, which may stand on ctx itself."
    others = [ast.unparse(it) for at, it in enumerate(call.args) if at != position] if call is not None else ["..."]
    fix = f"ctx.factor = {own}  # a plain value\nctx.save_for_backward({', '.join(others)})  # the tensors only"
    return card("save-for-backward", f"save_for_backward was given {with_article(kind)}", why, fix, where or s.needed())


def _in_forward(s: Situation, name: str) -> tuple[ast.Call | None, tuple[Place, ...]]:
    """Return a call in the forward of the Function at work, and its line. PyTorch looks at it when forward is over."""
    cls = s.given("autograd/function.py", "apply", "cls")
    code = getattr(getattr(cls, "forward", None), "__code__", None)
    source = s.sources.of(code.co_filename) if code is not None else None
    scope = source.function(code) if source is not None and code is not None else None
    for node in walk(scope) if scope is not None else ():
        if isinstance(node, ast.Call) and called(node) == name and source is not None:
            return node, (source.place("raised here", node),)
    return None, ()


def _setup_context(s: Situation, m: re.Match[str]) -> Explanation | None:
    cls = s.given("autograd/function.py", "apply", "cls")
    own = cls.__name__ if is_a(cls, type) else "MyFunction"
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
    fix = "# remove @once_differentiable, and write backward with torch functions of tensors"
    return card(
        "once-differentiable", "a Function made for one derivative was differentiated twice", why, fix, s.at_start()
    )


RULES = (
    Rule(
        RuntimeError, r"function (\w+) returned an incorrect number of gradients \(expected (\d+), got (\d+)\)", _count
    ),
    Rule(
        RuntimeError,
        r"Function (\w+) returned an invalid gradient at index (\d+) - got (\[.*?\]) but expected shape .*?(\[.*?\])",
        _gradient_shape,
    ),
    Rule(RuntimeError, r"expected Variable or None \(got (\w+)\)", _gradient_type),
    Rule(RuntimeError, r"Legacy autograd function with non-static forward", _legacy),
    Rule(Warning, r"should not be instantiated\. Methods on autograd functions are all static", _legacy),
    Rule(
        TypeError,
        r"(\w+)\.(forward|backward)\(\) missing \d+ required positional argument",
        _not_static,
        "autograd/function.py",
    ),
    Rule(TypeError, r"must be Tensor, not (\w+)", _instance),
    Rule(NotImplementedError, r"You must implement either the backward or vjp method", _no_backward),
    Rule(TypeError, r"save_for_backward can only save variables, but argument (\d+) is of type (\w+)", _save),
    Rule(RuntimeError, r"it must override the setup_context staticmethod", _setup_context),
    Rule(RuntimeError, r"marked with @once_differentiable", _once),
)
