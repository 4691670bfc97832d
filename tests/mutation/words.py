"""Rules about the words of autograd and of PyTorch: what is dropped, and what is taken for what."""

import ast
import re
from collections.abc import Iterator

import torch

# `x.detach()` becomes `x`, whatever is in the brackets.
DROPPED = ("detach", "clone", "to", "float", "double", "item", "requires_grad_", "abs", "contiguous", "conj")
# `float(x)` becomes `x`.
UNWRAPPED = ("float", "abs", "sorted", "reversed", "set", "deepcopy")
EXCHANGED = {
    **{"detach": "clone", "clone": "detach", "eval": "train", "train": "eval"},
    **{"no_grad": "enable_grad", "enable_grad": "no_grad", "inference_mode": "no_grad"},
    **{"sum": "mean", "mean": "sum", "max": "min", "min": "max", "amax": "amin", "amin": "amax"},
    **{"all": "any", "any": "all", "zeros_like": "ones_like", "ones_like": "zeros_like", "zeros": "ones"},
    **{"ones": "zeros", "float64": "float32", "float32": "float64"},
}
BUILTINS = ("max", "min", "all", "any")  # of EXCHANGED, what is exchanged without a dot as well
TEXTS = {"sum": ("mean", "none"), "mean": ("sum", "none"), "none": ("sum", "mean")}
PASSES = ("backward", "grad")
KEPT = ("retain_graph", "create_graph")
_IN_PLACE = re.compile(r"(?!requires_grad)[a-z]\w*[a-z0-9]_")
_OUT_OF_PLACE = ("add", "sub", "mul", "div", "pow", "square", "sqrt", "exp", "clamp", "neg", "abs", "tanh", "lerp")


def of_words(node: ast.expr, parent: ast.AST) -> Iterator[ast.expr]:
    """Yield what an expression becomes by these rules."""
    if isinstance(node, ast.Call):
        yield from _of_call(node, parent)
    elif isinstance(node, ast.Attribute) and node.attr in EXCHANGED:
        yield ast.Attribute(node.value, EXCHANGED[node.attr], node.ctx)
    elif isinstance(node, ast.Attribute) and node.attr == "data":
        yield node.value
    elif isinstance(node, ast.Name) and node.id in BUILTINS and isinstance(node.ctx, ast.Load):
        yield ast.Name(EXCHANGED[node.id], ast.Load())
    elif isinstance(node, ast.Constant) and isinstance(parent, ast.keyword) and node.value in TEXTS:
        yield from map(ast.Constant, TEXTS[node.value])


def _of_call(call: ast.Call, parent: ast.AST) -> Iterator[ast.expr]:
    function = call.func
    if isinstance(function, ast.Name) and function.id in UNWRAPPED and len(call.args) == 1:
        yield call.args[0]
    if isinstance(function, ast.Attribute):
        if function.attr in DROPPED:
            yield function.value
        if function.attr in UNWRAPPED and len(call.args) == 1:
            yield call.args[0]
        if (other := _place_exchanged(call, function, parent)) is not None:
            yield ast.Call(ast.Attribute(function.value, other, ast.Load()), call.args, call.keywords)
        if function.attr == "set_grad_enabled" and isinstance(call.args[0], ast.Name):
            yield ast.Call(function, [ast.UnaryOp(ast.Not(), call.args[0])], [])
        if function.attr == "zero_grad" and not call.keywords:
            yield _with_keyword(call, "set_to_none", False)
        if function.attr in PASSES and not _of_super(function):
            named = {keyword.arg for keyword in call.keywords}
            for word in KEPT:
                if word not in named:
                    yield _with_keyword(call, word, True)
    for index, keyword in enumerate(call.keywords):
        if keyword.arg == "strict":  # zip's: it guards the answer against itself, and a right one needs no guard
            continue
        yield ast.Call(function, call.args, [*call.keywords[:index], *call.keywords[index + 1 :]])


def _place_exchanged(call: ast.Call, function: ast.Attribute, parent: ast.AST) -> str | None:
    """Return the name of the method that does the same in place, or not in place; None where there is none.

    What a call has just made is nobody else's: to write into it changes nothing, so that is not tried.
    """
    method = function.attr
    if _IN_PLACE.fullmatch(method) and hasattr(torch.Tensor, method[:-1]):
        return method[:-1]
    of_torch = ast.unparse(function.value) == "torch"
    written = call.args[0] if of_torch and call.args else function.value
    # As a statement it is no tensor's, but `names.add(name)`.
    tried = isinstance(written, ast.Name | ast.Attribute | ast.Subscript) and not isinstance(parent, ast.Expr)
    return f"{method}_" if method in _OUT_OF_PLACE and tried else None


def _with_keyword(call: ast.Call, name: str, value: bool) -> ast.Call:
    return ast.Call(call.func, call.args, [*call.keywords, ast.keyword(name, ast.Constant(value))])


def _of_super(function: ast.Attribute) -> bool:
    return isinstance(function.value, ast.Call) and isinstance(function.value.func, ast.Name)
