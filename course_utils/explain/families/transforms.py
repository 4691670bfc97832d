"""torch.func's transforms, gradcheck, and derivatives that do not exist."""

from __future__ import annotations

import ast
import re

import torch

from course_utils.explain.explanation import Explanation, Place
from course_utils.explain.lines import everywhere, only_line
from course_utils.explain.naming import argument, targets
from course_utils.explain.reading import is_a
from course_utils.explain.rules import Rule, card
from course_utils.explain.situation import Situation
from course_utils.explain.source import called, operand, walk, written
from course_utils.explain.writers import out_of_place


def _vmap_item(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = (
        "vmap runs the function once for all samples together, so inside it a tensor stands for many numbers, "
        "and item() wants one."
    )
    owner = (
        written(s.node.func.value) if isinstance(s.node, ast.Call) and isinstance(s.node.func, ast.Attribute) else "x"
    )
    fix = _bounded(s, owner) or f"{owner}  # use the tensor itself, without .item(), float() or int()"
    return card("vmap-item", "item() was called inside vmap", why, fix, s.needed())


def _bounded(s: Situation, owner: str) -> str:
    """Return what Python's max() or min() of a tensor and a number is with tensors; "" elsewhere."""
    source = s.here.source if s.here is not None else None
    outer = next(source.around(s.node), None) if source is not None and s.node is not None else None
    if not isinstance(outer, ast.Call) or written(outer.func) not in ("max", "min") or len(outer.args) != 2:
        return ""
    other = next((written(it) for it in outer.args if it is not s.node), "")
    bound = "min" if written(outer.func) == "max" else "max"
    return f"{operand(owner)}.clamp({bound}={other})  # for {written(outer, 60) or 'that'}: a tensor, without a branch"


def _vmap_either(s: Situation, m: re.Match[str]) -> Explanation | None:
    """PyTorch 2.13 does not say which of both it was; the line does."""
    tests = (ast.If, ast.While, ast.IfExp, ast.Assert)
    branch = s.line_tree is not None and any(isinstance(it, tests) for it in ast.walk(s.line_tree))
    return _vmap_branch(s, m) if branch and called(s.node) not in ("item", "float", "int") else _vmap_item(s, m)


def _vmap_branch(s: Situation, m: re.Match[str]) -> Explanation | None:
    test = (
        next((it.test for it in ast.walk(s.line_tree) if isinstance(it, ast.If | ast.While | ast.IfExp)), None)
        if s.line_tree
        else None
    )
    why = "vmap runs the function once for all samples together, and a branch would have to go both ways at once."
    fix = f"torch.where({written(test) or 'condition'}, value_if_true, value_if_false)"
    return card("vmap-branch", "a branch inside vmap depends on the values of a tensor", why, fix, s.needed())


def _vmap_random(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = "Random numbers inside vmap may be the same for all samples or differ. PyTorch asks you to say which."
    fix = "# randomness='different' in the call of vmap, or 'same'; a Dropout draws none in eval()"
    return card("vmap-random", "random numbers are drawn inside vmap, which was not told how", why, fix, s.needed())


def _vmap_sizes(s: Situation, m: re.Match[str]) -> Explanation | None:
    sizes = ", ".join(re.findall(r"\d+", m[1]))
    why = f"vmap goes over one dimension of each input together, so these must be equally long; they are {sizes}."
    fix = "# give as many samples of each; in_dims=(0, None) where an input is the same for all"
    return card("vmap-sizes", f"the inputs of vmap have unequal numbers of samples: {sizes}", why, fix, s.needed())


def _vmap_write(s: Situation, m: re.Match[str]) -> Explanation | None:
    statement = s.line_tree
    name = ""
    if isinstance(s.node, ast.Call) and isinstance(s.node.func, ast.Attribute) and called(s.node).endswith("_"):
        name = written(s.node.func.value)
    elif isinstance(statement, ast.AugAssign):
        name = written(statement.target)
    elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        name = written(statement.targets[0].value)
    value = s.here.look_up(name) if s.here is not None else None
    if not is_a(value, torch.Tensor) or torch._C._functorch.is_batchedtensor(value):
        return None
    why = (
        f"Inside vmap a value stands for one sample of many. `{name}` was made without the samples, so it has room "
        f"for one, and cannot take them all."
    )
    fix = out_of_place(statement) if isinstance(statement, ast.AugAssign) else "# return the value, and join outside"
    return card(
        "vmap-in-place", f"`{name}` has no samples of vmap, and was written into inside it", why, fix, s.needed()
    )


def _vmap_sized(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = "vmap runs all samples together, so each result has one shape. Here the values decide how many are taken."
    fix = "# torch.where keeps the shape: the value where the mask holds, 0 elsewhere"
    return card("vmap-branch", "the size of a result inside vmap depends on values", why, fix, s.needed())


def _vmap_batch_norm(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = "A batch norm in training mode writes its running statistics, one set for all samples, and vmap cannot."
    fix = "# torch.func.replace_all_batch_norm_modules_(model); or eval(); or track_running_stats=False"
    return card("vmap-in-place", "a batch norm writes its statistics inside vmap", why, fix, s.needed())


def _func_not_scalar(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = "torch.func.grad takes a function that returns one number (a tensor without dimensions). This one does not."
    fix = "# return a .sum() or .mean(); or torch.func.jacrev for the derivative of each output"
    return card("seed-missing", "the function in torch.func.grad does not return one number", why, fix, s.needed())


def _gradcheck(s: Situation, m: re.Match[str]) -> Explanation | None:
    what = (written(argument(s.node, 0, "func")) or "the function").removesuffix(".apply")
    given = s.given("autograd/gradcheck.py", "gradcheck", "inputs")
    given = given if isinstance(given, list | tuple) else [given]
    if any(is_a(it, torch.Tensor) and it.is_floating_point() and it.dtype != torch.float64 for it in given):
        why = (
            "Finite differences subtract nearly equal numbers. Not all inputs are float64, and in float32 the rounding "
            "alone can be larger than what gradcheck compares."
        )
        fix = f"# give gradcheck float64 inputs, and {what} float64 parameters: .double()"
        return card(
            "gradcheck-precision", f"gradcheck compared `{what}` in less than float64", why, fix, s.needed(), False
        )
    where, unread = _own_backward(s, what)
    why = (
        f"gradcheck compared what backward gives with finite differences, for output {m[1]} and input {m[2]}: "
        "numerical is what forward does, analytical is what backward says."
    )
    if unread:
        why += f" forward keeps `{unread}`, and backward never reads it."
    fix = (
        "# derive the backward again from the forward, and compare the two matrices printed above\n# or: forward "
        "is not smooth there, or depends on something else than its inputs"
    )
    return card(
        "gradcheck-mismatch",
        f"backward and finite differences of `{what}` differ",
        why,
        fix,
        [*where, *s.needed()],
        False,
    )


def _own_backward(s: Situation, what: str) -> tuple[list[Place], str]:
    """Return where the backward of a Function that is checked returns, and what its forward keeps for nothing."""
    name = re.search(r"(\w+)(?:\.apply|$)", what)
    kinds = [(own, it) for own, it in everywhere(s) if isinstance(it, ast.ClassDef)]
    found = [(own, it) for own, it in kinds if name is not None and it.name == name[1]]
    parts = {it.name: it for it in found[0][1].body if isinstance(it, ast.FunctionDef)} if len(found) == 1 else {}
    backward = parts.get("backward")
    if backward is None:
        return [], ""
    ends = [it for it in walk(backward) if isinstance(it, ast.Return)]
    source = found[0][0]
    places = [source.place("backward of it", it) for it in ends[:1]]
    kept = [
        target
        for method in ("forward", "setup_context")
        for it in (walk(parts[method]) if method in parts else ())
        if isinstance(it, ast.Assign)
        for target in targets(it)
        if target.startswith("ctx.")
    ]
    read = ast.unparse(backward)
    return places, next((it for it in kept if it not in read), "")


def _gradcheck_inputs(s: Situation, m: re.Match[str]) -> Explanation | None:
    given = written(argument(s.node, 1, "inputs")) or "x"
    why = "gradcheck compares gradients of inputs, and none of the inputs requires one."
    fix = "# requires_grad_() on the inputs whose gradient is to be checked"
    return card("gradcheck-inputs", f"no input of gradcheck requires a gradient (`{given}`)", why, fix, s.needed())


def _precision(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = (
        "Finite differences subtract nearly equal numbers. In float32 the rounding can be larger than what "
        "gradcheck compares."
    )
    fix = "# make the inputs float64, and the parameters: .double()"
    return card("gradcheck-precision", f"input {m[1]} of gradcheck is not float64", why, fix, s.needed())


def _no_derivative(s: Situation, m: re.Match[str]) -> Explanation | None:
    name = m[1].removeprefix("aten::")
    again = "backward" in name
    why = f"PyTorch has no formula for the derivative of `{name}`."
    if again:
        why += " It is itself a step of a backward pass, so this was a derivative of a derivative."
    if "scaled_dot_product" in name and again:
        return _attention(s)
    fix = "# write this part with operations that have one, or keep it out of the second derivative with detach()"
    return card("no-derivative", f"`{name}` has no derivative in PyTorch", why, fix, s.needed(), False)


def _attention(s: Situation) -> Explanation:
    """The fused kernels of attention have a backward, and that backward has none."""
    kinds = ("scaled_dot_product_attention", "MultiheadAttention", "TransformerEncoderLayer", "TransformerDecoderLayer")
    where = only_line(s, "fused attention here", lambda it: called(it) in kinds)
    why = (
        "scaled_dot_product_attention, which nn.MultiheadAttention also uses, runs a fused kernel. That kernel has a "
        "first derivative and no second one."
    )
    fix = "with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):\n    ...  # the forward, in "
    fix += "operations that have every derivative"
    headline = "fused attention was differentiated twice"
    return card("no-derivative", headline, why, fix, [*where, *s.at_start()])


def _zero_tensor(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = (
        "A derivative that is zero everywhere is kept as a tensor without memory. Some backward steps, as that of "
        "mse_loss, write into what they are given, and cannot write into that."
    )
    fix = (
        "((prediction - target) ** 2).mean()  # mse_loss, written out\n"
        "torch.autograd.functional.hvp(f, x, v)[1]  # or two backward passes instead of torch.func.jvp over grad"
    )
    headline = "a derivative of zeros, which has no memory of its own, was to be written into"
    return card("zero-tensor", headline, why, fix, s.at_start(), False)


def _forward_over(s: Situation, m: re.Match[str]) -> Explanation | None:
    why = (
        "Inside a transform of torch.func the gradient is that transform's own; backward() belongs to the "
        "other way of working."
    )
    fix = "torch.func.grad(loss_fn)(params)  # inside transforms; loss.backward() outside of them"
    return card("transform-backward", "backward() was called inside a transform of torch.func", why, fix, s.needed())


RULES = (
    Rule(RuntimeError, r"vmap: It looks like you're either \(1\) calling \.item\(\)", _vmap_either),
    Rule(RuntimeError, r"vmap: It looks like you're calling \.item\(\)", _vmap_item),
    Rule(
        RuntimeError,
        r"vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow",
        _vmap_branch,
    ),
    Rule(RuntimeError, r"vmap: called random operation while in randomness error mode", _vmap_random),
    Rule(
        ValueError,
        r"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes (\[.*?\])",
        _vmap_sizes,
    ),
    Rule(RuntimeError, r"output with shape .* doesn't match the broadcast shape", _vmap_write, "_functorch/vmap.py"),
    Rule(RuntimeError, r"vmap: inplace arithmetic\(self, \*extra_args\) is not possible", _vmap_write),
    Rule(RuntimeError, r"vmap: We do not support batching operators that can support dynamic shape", _vmap_sized),
    Rule(RuntimeError, r"grad_and_value\(f\)\(\*args\): Expected f\(\*args\) to return a scalar", _func_not_scalar),
    Rule(RuntimeError, r"Batch norm got a batched tensor as input while the running_mean", _vmap_batch_norm),
    Rule(RuntimeError, r"Jacobian mismatch for output (\d+) with respect to input (\d+)", _gradcheck),
    Rule(ValueError, r"gradcheck expects at least one input tensor to require gradient", _gradcheck_inputs),
    Rule(Warning, r"Input #(\d+) requires gradient and is not a double precision", _precision),
    Rule(RuntimeError, r"derivative for (\S+) is not implemented", _no_derivative),
    Rule(RuntimeError, r"[Zz]ero[Tt]ensors? are immutable", _zero_tensor),
    Rule(RuntimeError, r"called inside a functorch transform", _forward_over),
)
